//! The receiver of a message that names a team and a rank.

use argonet_am::Endpoints;
use argonet_base::JobRank;

use crate::job::fatal;
use crate::job::team::{Kind, Team, known};

/// The process that a message goes to, and its endpoints on both sides.
#[derive(Clone, Copy)]
pub(crate) struct Receiver {
    pub(crate) rank: JobRank,
    pub(crate) ends: Endpoints,
}

impl Receiver {
    /// A rank of the job, between the primordial endpoints.
    #[inline(always)]
    pub(crate) const fn primordial(rank: JobRank) -> Self {
        Self {
            rank,
            ends: Endpoints::PRIMORDIAL,
        }
    }
}

impl Team {
    /// The receiver of a message to a rank.
    ///
    /// The engine checks ranks of the job, so those of the world may not exist. Ends the job where
    /// the local endpoint cannot have messages; the other one is known to its process alone.
    #[inline(always)]
    pub(crate) fn receiver(&self, rank: u32, function: &str) -> Receiver {
        match &self.kind {
            Kind::World => Receiver::primordial(JobRank(rank)),
            Kind::Pair(0) if self.endpoint.index() == 0 => Receiver::primordial(JobRank(rank)),
            _ => self.chosen_receiver(rank, function),
        }
    }

    #[inline(never)]
    fn chosen_receiver(&self, rank: u32, function: &str) -> Receiver {
        self.exists(function);
        let to = known(self, rank, function);
        self.has_messages(function);
        // There are no more than 32, so that nothing is cut off.
        let ends = Endpoints {
            from: self.endpoint.index() as u8,
            to: self.remote_endpoint(rank) as u8,
        };
        Receiver {
            rank: JobRank(to),
            ends,
        }
    }

    /// Ends the job if the local endpoint cannot have messages.
    pub(crate) fn has_messages(&self, function: &str) {
        if self.endpoint.handlers().is_some() {
            return;
        }
        let here = self.endpoint.index();
        let what = match self.kind {
            Kind::Pair(_) => "is a pair of",
            Kind::World | Kind::Made(_) => "stands for",
        };
        fatal(
            function,
            &format!(
                "tm {what} endpoint {here} of this process, which was created without GEX_EP_CAPABILITY_AM"
            ),
        )
    }
}
