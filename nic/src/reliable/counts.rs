//! Counts of an endpoint.

use crate::dropped::Dropped;

/// Datagrams of an endpoint since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Handed out to be sent, of every kind.
    pub sent: u64,
    /// Of them those with a record that had been sent before.
    pub sent_again: u64,
    /// Of them those with nothing but an acknowledgement.
    pub acknowledgements: u64,
    /// Of them questions whether a peer lives.
    pub probes: u64,
    /// Of them those that say that this rank ends.
    pub leaves: u64,
    /// Of them those that try how long a datagram may be.
    pub trials: u64,
    /// Of them those with a chunk of a record.
    pub chunks: u64,
    /// Taken, of every kind.
    pub taken: u64,
    /// Records that came again.
    pub repeated: u64,
    /// Records that there was no room to keep; they will come again.
    pub no_room: u64,
    /// Dropped: no datagram of this protocol, or of another length than it says.
    pub malformed: u64,
    /// Dropped: a code that is missing, not wanted or wrong.
    pub forged: u64,
    /// Dropped: one of the same number was here, or may have been long ago.
    ///
    /// The wire has repeated it, or an attacker; a record that is sent again has a new number.
    pub replayed: u64,
    /// Dropped: of another job, for another rank, or of one that is not known (any more).
    pub strangers: u64,
    /// Dropped: acknowledges records that were never sent, or has a number that is not due.
    pub impossible: u64,
}

impl Counts {
    /// What was dropped, with the driver's count of records without a meaning.
    #[must_use]
    pub fn dropped(&self, bad_records: u64) -> Dropped {
        let &Self {
            malformed,
            forged,
            replayed,
            strangers,
            impossible,
            ..
        } = self;
        Dropped {
            malformed,
            forged,
            replayed,
            strangers,
            impossible,
            bad_records,
        }
    }
}
