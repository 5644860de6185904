//! The check of paths to some peers.

use super::{Locked, Shared};
use argonet_base::JobRank;
use argonet_nic::datagram::DatagramQueue;
use argonet_nic::reliable::{BadPath, PathFault, PathState};
use core::time::Duration;
use std::sync::Arc;

/// Longest sleep between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Looks at least: a process that was stopped meanwhile finds what has come.
const LEAST_LOOKS: u32 = 5;

/// A look that is later by so much comes after a pause of this process.
const PAUSE: Duration = Duration::from_millis(500);

// spec U10: the peers of a check are asked at once.
/// Whether datagrams pass between this rank and some others, which ask it, too.
///
/// The questions are answered by the thread of a rank, whatever the rank does.
pub struct PathCheck<Q: DatagramQueue> {
    shared: Arc<Shared<Q>>,
    peers: Vec<JobRank>,
}

impl<Q: DatagramQueue> core::fmt::Debug for PathCheck<Q> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("PathCheck").field(&self.peers).finish()
    }
}

impl<Q: DatagramQueue + 'static> PathCheck<Q> {
    /// Begins to ask.
    pub(in crate::usnic) fn begin(shared: Arc<Shared<Q>>, peers: Vec<JobRank>, full: bool) -> Self {
        let mut locked = shared.lock();
        for &peer in &peers {
            locked.state.endpoint.ask(locked.now, peer, full);
        }
        locked.end();
        Self { shared, peers }
    }

    /// Waits until all have answered, at most for so long, and asks no more: the peers that have
    /// not, and what is known of the paths to them.
    ///
    /// The peers have made their rails by now. Blocks; one thread of a rank, before others poll.
    pub fn finish(&self, limit: Duration) -> Vec<(JobRank, PathState)> {
        let mut end = self.shared.now() + limit;
        let mut looks = 0;
        loop {
            looks += 1;
            let mut locked = self.shared.lock();
            let bad = locked.bad_paths(&self.peers);
            let left = end.saturating_sub(locked.now);
            if bad.is_empty() || (left.is_zero() && looks > LEAST_LOOKS) {
                for &peer in &self.peers {
                    locked.state.endpoint.end_asking(peer);
                }
                locked.end();
                return bad;
            }
            locked.end();
            let before = self.shared.now();
            self.shared.sleep(Some(left.clamp(LOOK / 5, LOOK)));
            self.shared.attend(None);
            // A pause of this process is no silence of its peers.
            let paused = self.shared.now().saturating_sub(before + LOOK);
            if paused > PAUSE {
                end += paused;
            }
        }
    }

    /// A fault of the path between two ranks that has been seen for so long, with its ends.
    #[must_use]
    pub fn describe(
        &self,
        [from, to]: [JobRank; 2],
        fault: PathFault,
        silent: Duration,
    ) -> BadPath {
        let shared = &self.shared;
        let is_here = from == shared.rank;
        BadPath {
            from: shared.path_end(from),
            to: shared.path_end(to),
            fault,
            silent,
            sends: 0,
            answer: is_here.then(|| shared.answer(to, fault)).flatten(),
            over_fabric: shared.queue.provider().is_some(),
        }
    }

    /// Length of the longest datagrams that are asked for.
    #[must_use]
    pub fn datagram_bytes(&self) -> usize {
        self.shared.lock().state.endpoint.datagram_bytes()
    }
}

impl<Q: DatagramQueue> Locked<'_, Q> {
    fn bad_paths(&self, peers: &[JobRank]) -> Vec<(JobRank, PathState)> {
        let states = peers
            .iter()
            .map(|peer| (*peer, self.state.endpoint.path(*peer)));
        states
            .filter(|(_, state)| *state != PathState::WELL)
            .collect()
    }
}
