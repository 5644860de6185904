//! Counts of messages between a rank and a peer, for reports of a job that hangs.
//!
//! The numbers are the conduit's own positions, read when a report is made; nothing is counted for
//! a ledger's sake.

use core::fmt;

/// One class to and from a peer.
///
/// The numbers start at 0 and may wrap around at 2^32 or more; their unit is the conduit's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassLedger {
    /// Sent to the peer.
    pub sent: u64,
    /// How much of that the peer is known to have taken; it may have taken more.
    pub taken: u64,
    /// Taken from the peer and handled here.
    pub handled: u64,
    /// Whether something from the peer has arrived and waits for a poll.
    pub waiting: bool,
}

/// Memory that is kept for a peer; none where all is shared memory of the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// Bytes of its state.
    pub state_bytes: u64,
    /// Bytes of buffers, which grow with use.
    pub buffer_bytes: u64,
    /// Sockets.
    pub descriptors: u32,
}

/// Both classes to and from a peer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PeerLedger {
    /// The unit of the numbers.
    pub unit: &'static str,
    /// The class of requests.
    pub requests: ClassLedger,
    /// The class of replies.
    pub replies: ClassLedger,
    /// Memory that is kept for it.
    pub held: Held,
    /// The rails to it and their states, in words, where one of several is chosen.
    pub rails: Option<String>,
}

impl fmt::Display for ClassLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sent,
            taken,
            handled,
            waiting,
        } = self;
        write!(
            f,
            "{sent} sent ({taken} known to be taken), {handled} handled"
        )?;
        if *waiting {
            f.write_str(", more has arrived")?;
        }
        Ok(())
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            state_bytes,
            buffer_bytes,
            descriptors,
        } = self;
        write!(
            f,
            "kept: {state_bytes} bytes of state, {buffer_bytes} of buffers, {descriptors} sockets"
        )
    }
}

impl fmt::Display for PeerLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            unit,
            requests,
            replies,
            held,
            rails,
        } = self;
        write!(f, "requests {requests}; replies {replies}; in {unit}")?;
        if *held != Held::default() {
            write!(f, "; {held}")?;
        }
        if let Some(rails) = rails {
            write!(f, "; rails: {rails}")?;
        }
        Ok(())
    }
}
