//! What came to a gate, and why it was dropped.

use super::super::handshake::Refused;

/// What a gate has counted since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GateCounts {
    /// Connections that were accepted.
    pub seen: u64,
    /// That proved to be of the job.
    pub proven: u64,
    /// Dropped at once: all places were taken.
    pub full: u64,
    /// Dropped for one from an address of the job.
    pub evicted: u64,
    /// Dropped at the deadline.
    pub expired: u64,
    /// Closed or broken by the other end.
    pub closed: u64,
    /// Dropped: no word of argonet's protocol.
    pub other_protocol: u64,
    /// Dropped: another version of it.
    pub other_version: u64,
    /// Dropped: of another job.
    pub other_job: u64,
    /// Dropped: without the key, or with an old message.
    pub no_proof: u64,
    /// Dropped: of the job, and for another rank than this or from none that it has.
    pub wrong_rank: u64,
}

impl GateCounts {
    /// How many were dropped, whatever the reason.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.full
            + self.evicted
            + self.expired
            + self.closed
            + self.other_protocol
            + self.other_version
            + self.other_job
            + self.no_proof
            + self.wrong_rank
    }

    pub(super) fn refused(&mut self, why: Refused) {
        let count = match why {
            Refused::Magic => &mut self.other_protocol,
            Refused::Version(_) => &mut self.other_version,
            Refused::Job => &mut self.other_job,
            Refused::Acceptor(_) | Refused::Connector(_) => &mut self.wrong_rank,
            // The last two are a connector's.
            Refused::Proof | Refused::ByPeer { .. } | Refused::Verdict(_) => &mut self.no_proof,
        };
        *count += 1;
    }
}
