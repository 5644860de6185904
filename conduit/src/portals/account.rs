//! Counts of a rank's resources in use: for reports, and for tests that nothing is lost.

use super::core::Portals;
use super::large::Large;
use argonet_am::credit::Figures;
use argonet_base::JobRank;
use argonet_nic::portals::Portals as Interface;
use core::sync::atomic::Ordering;

/// Tickets, chunks, slots and buffers of a rank that are not free, and messages that wait.
///
/// All 0 where nothing is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InUse {
    /// Tickets of messages.
    pub tickets: u32,
    /// Tickets of temporary descriptors.
    pub temporaries: u32,
    /// Chunks that requests leave from.
    pub send_chunks: u32,
    /// Chunks that replies leave from.
    pub reply_chunks: u32,
    /// Slots of large mediums, for requests and for replies.
    pub slots: u32,
    /// Operations that have a handle.
    pub operations: u32,
    /// Requests and operations that are not complete.
    pub under_way: u32,
    /// Messages in receive buffers, and buffers that the interface has not got.
    pub received: u32,
    /// Messages of which a half is missing.
    pub halves: u32,
    /// Messages that are to be sent again, or errors to be reported.
    pub again: u32,
    /// Questions of the system queue that are not answered.
    pub questions: u32,
    /// Credits of requests that are not answered, of this rank at others and of others at this one.
    pub credits: u32,
}

impl InUse {
    /// Whether nothing is.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Credits of this rank, wherever they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lent {
    /// In its bank.
    pub banked: u64,
    /// Shares of peers that were not used.
    pub untouched: u64,
    /// Held by peers, as far as this rank knows.
    pub lent: u64,
    /// All that there are.
    pub total: u64,
}

impl<N: Interface> Portals<N> {
    /// This rank's resources in use now.
    #[must_use]
    pub fn in_use(&self) -> InUse {
        let sizes = &self.sizes;
        let (received, halves) = {
            let arrivals = self.arrivals.lock();
            let returns = self.returns.lock();
            let large = [&arrivals.large, &returns.large].map(Large::in_use);
            (
                arrivals.requests.in_use() + large.iter().sum::<u32>(),
                (arrivals.halves.len() + returns.halves.len()) as u32,
            )
        };
        let mut of_peers = InUse::default();
        for peer in self.peers.all() {
            let state = peer.state.lock();
            of_peers.questions += u32::from(state.slot.is_busy());
            let figures = state.credit.as_ref().map(argonet_am::credit::Peer::figures);
            let Figures { in_use, owed, .. } = figures.unwrap_or_default();
            of_peers.credits += u32::from(in_use) + u32::from(owed);
        }
        InUse {
            tickets: sizes.messages - self.tickets.free(),
            temporaries: sizes.temporaries - self.temporaries.free(),
            send_chunks: sizes.send_chunks - self.send_chunks.free.count(),
            reply_chunks: sizes.reply_chunks - self.reply_chunks.free.count(),
            slots: 2 * sizes.large_slots - self.request_slots.count() - self.reply_slots.count(),
            operations: self.table.lock().len() as u32,
            under_way: self.under_way.load(Ordering::Acquire),
            received,
            halves,
            again: self.agains.load(Ordering::Relaxed),
            ..of_peers
        }
    }

    /// Where this rank's credits are; `None` without flow control.
    #[must_use]
    pub fn lent(&self) -> Option<Lent> {
        let bank = self.bank.as_ref()?;
        let loans = self.peers.all().filter_map(|peer| {
            let state = peer.state.lock();
            Some(u64::from(state.credit.as_ref()?.figures().loan))
        });
        Some(Lent {
            banked: bank.banked().into(),
            untouched: bank.untouched(),
            lent: loans.sum(),
            total: bank.plan().total(),
        })
    }

    /// Credits lent between this rank and a peer, as this rank knows them; `None` without flow
    /// control and before the first message.
    #[must_use]
    pub fn credit(&self, peer: JobRank) -> Option<Figures> {
        let state = self.peers.used(peer.0)?.state.lock();
        Some(state.credit.as_ref()?.figures())
    }
}
