//! Datagrams through a provider of libfabric.
//!
//! A rank opens a [`FabricPort`] and publishes its [`FabricAddress`]; with those of all peers it
//! becomes a [`Fabric`]. That has a fabric, a domain and a datagram endpoint with a queue of
//! completions for what it sends and one for what comes, and a table of addresses (spec U8).
//!
//! All calls of the library are made under one lock. Datagrams are handed out without it.

use super::{Batch, DatagramQueue};
use crate::fabric::abi;
use crate::fabric::messages::{BATCH, Fitting, MEMORY, MODES, Messages, Sent, Sizes};
use crate::fabric::offer::Wish;
use crate::fabric::{FabricAddress, FabricError, Library, Places, Sleep};
use crate::incarnation::new_incarnation;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use crossbeam_utils::Backoff;
use parking_lot::Mutex;
use rustix::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

/// What this queue wants of a provider.
const WISH: Wish = Wish {
    endpoint: (abi::EP_DGRAM, "datagram endpoints (FI_EP_DGRAM)"),
    caps: abi::MSG,
    mode: MODES,
    mr_mode: MEMORY,
    threading: abi::THREAD_DOMAIN,
    order: 0,
    resource_mgmt: abi::RM_UNSPEC,
    is_reliable: false,
    setting: "ARGONET_USNIC_PROVIDER",
};

/// Longer datagrams are not worth their buffers.
const SIZES: Sizes = Sizes {
    message_bytes: 60 << 10,
    least_message_bytes: 0,
    injected_bytes: 768,
    receives: (512, 4 << 20),
    sends: (64, 1 << 20),
};

/// How long a send waits for room, before the datagram counts as lost.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Between two tries of a send that waits.
const WAIT: Duration = Duration::from_micros(20);

/// Bytes of arriving datagrams that a socket keeps where the system does not say.
const USUAL_SOCKET_BYTES: usize = 212_992;

/// An endpoint that has its address, and does not know those of peers.
pub struct FabricPort {
    messages: Messages,
    sleep: Sleep,
    incarnation: NonZeroU64,
    receive_bytes: usize,
}

impl FabricPort {
    /// Opens an endpoint of a provider, of the first with datagram endpoints if there is no name;
    /// at this address if its addresses are those of the Internet.
    ///
    /// # Errors
    /// No provider fits, or a call of the library fails.
    pub fn open(
        library: &Library,
        provider: Option<&str>,
        address: Option<IpAddr>,
    ) -> Result<Self, FabricError> {
        let fitting = fitting(library, provider, address)?;
        let (_, posted_bytes) = fitting.sizes().receives;
        let receive_bytes = room(fitting.provider(), posted_bytes);
        let (messages, sleep) = Messages::open(fitting, &WISH)?;
        Ok(Self {
            messages,
            sleep,
            incarnation: new_incarnation().map_err(FabricError::no_random)?,
            receive_bytes,
        })
    }

    /// Where it is reached.
    #[must_use]
    pub fn address(&self) -> &FabricAddress {
        self.messages.address()
    }

    /// Which endpoint of this address it is: a number that no earlier one had.
    #[must_use]
    pub fn incarnation(&self) -> NonZeroU64 {
        self.incarnation
    }

    /// Bytes of arriving datagrams for which there is room while the rank does not poll.
    #[must_use]
    pub fn receive_bytes(&self) -> usize {
        self.receive_bytes
    }
}

/// What a provider would carry datagrams with, in words: its version, and the longest datagram.
///
/// # Errors
/// No provider fits.
pub fn describe(
    library: &Library,
    provider: Option<&str>,
    address: Option<IpAddr>,
) -> Result<String, FabricError> {
    Ok(fitting(library, provider, address)?.in_words())
}

fn fitting(
    library: &Library,
    provider: Option<&str>,
    address: Option<IpAddr>,
) -> Result<Fitting, FabricError> {
    let offer = library.offer(&WISH, provider, address)?;
    Fitting::new(offer, &WISH, &SIZES)
}

/// Bytes of datagrams that wait where a rank does not poll: in posted buffers, but for a provider
/// over sockets, which takes them from its socket when it is polled.
fn room(provider: &str, posted_bytes: usize) -> usize {
    if provider != "udp" {
        return posted_bytes;
    }
    let default = std::fs::read_to_string("/proc/sys/net/core/rmem_default").ok();
    let bytes = default.and_then(|text| text.trim().parse().ok());
    // As much of it counts for what the system keeps beside them.
    bytes.unwrap_or(USUAL_SOCKET_BYTES) / 2
}

/// Datagrams that a look has found: their buffers, which the next look posts again.
#[derive(Debug)]
pub struct Taken {
    /// The queue whose buffers they are.
    queue: Arc<()>,
    /// Buffers, and bytes in them; those before `count`.
    buffers: [(u32, usize); BATCH],
    count: usize,
}

impl Taken {
    fn of(queue: Arc<()>) -> Self {
        Self {
            queue,
            buffers: Default::default(),
            count: 0,
        }
    }

    fn drain(&mut self) -> impl Iterator<Item = (u32, usize)> + use<> {
        let count = core::mem::take(&mut self.count);
        self.buffers.into_iter().take(count)
    }
}

/// Datagrams through an endpoint of libfabric.
pub struct Fabric {
    /// No other queue has the same.
    token: Arc<()>,
    messages: Mutex<Messages>,
    /// Where the buffers begin, for what was taken from them without the lock.
    places: Places,
    sleep: Sleep,
    datagram_bytes: usize,
    /// By peer: as the library names it, and its address.
    peers: Box<[(u64, FabricAddress)]>,
    provider: String,
    /// Datagrams that the provider did not take.
    ///
    /// A statistic.
    refused: AtomicU64,
}

impl Fabric {
    /// Takes an endpoint, and where each peer is reached.
    ///
    /// # Errors
    /// An address of another kind than that of the endpoint, or one that the library does not take.
    pub fn new(port: FabricPort, peers: &[FabricAddress]) -> Result<Self, FabricError> {
        let FabricPort {
            messages, sleep, ..
        } = port;
        let inserted = |peer: &FabricAddress| Ok((messages.insert(peer)?, peer.clone()));
        let provider = messages.address().provider().to_owned();
        let peers: Result<Box<[_]>, FabricError> = peers.iter().map(inserted).collect();
        Ok(Self {
            token: Arc::default(),
            peers: peers?,
            places: messages.places(),
            datagram_bytes: messages.address().message_bytes(),
            messages: Mutex::new(messages),
            sleep,
            provider,
            refused: AtomicU64::new(0),
        })
    }

    /// Waits a moment for room; false if it has been waited for too long.
    fn wait(backoff: &Backoff, begun: &mut Option<Instant>) -> bool {
        if !backoff.is_completed() {
            backoff.snooze();
            return true;
        }
        let begun = begun.get_or_insert_with(Instant::now);
        std::thread::sleep(WAIT);
        begun.elapsed() < LONGEST_WAIT
    }
}

impl AsFd for Fabric {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sleep.as_fd()
    }
}

impl DatagramQueue for Fabric {
    type ReceiveBuffers = Taken;

    fn receive_buffers(&self) -> Taken {
        Taken::of(Arc::clone(&self.token))
    }

    fn address(&self, peer: u32) -> Option<SocketAddr> {
        self.peers.get(peer as usize)?.1.socket()
    }

    fn place(&self, peer: u32) -> Option<String> {
        Some(self.peers.get(peer as usize)?.1.in_words())
    }

    fn provider(&self) -> Option<&str> {
        Some(&self.provider)
    }

    fn send(&self, peer: u32, datagram: &[u8]) {
        let Some((to, _)) = self.peers.get(peer as usize) else {
            return;
        };
        let (backoff, mut begun) = (Backoff::new(), None);
        while datagram.len() <= self.datagram_bytes {
            match self.messages.lock().send(*to, datagram, false) {
                Sent::Yes => return,
                Sent::Refused => break,
                Sent::NoRoom => {}
            }
            if !Self::wait(&backoff, &mut begun) {
                break;
            }
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn receive(&self, taken: &mut Taken, take: &mut dyn FnMut(&mut [u8])) -> Batch {
        if !Arc::ptr_eq(&taken.queue, &self.token) {
            // Buffers of another queue are not these.
            return Batch {
                any: false,
                full: false,
            };
        }
        let full = {
            let mut messages = self.messages.lock();
            // What was handed out before.
            for (index, _) in taken.drain() {
                messages.post(index);
            }
            let look = messages.look(&mut taken.buffers);
            taken.count = look.count;
            look.more
        };
        let any = taken.count > 0;
        if any {
            self.sleep.note();
        }
        for (index, bytes) in &taken.buffers[..taken.count] {
            // SAFETY: the look has taken the buffer of this queue from the provider for `taken`,
            // and the next one gives it back, which needs `taken` too. No other `Taken` names it:
            // none can be made or copied but by a look.
            take(unsafe { self.places.message_mut(*index, *bytes) });
        }
        Batch { any, full }
    }

    fn arm(&self) -> bool {
        self.sleep.arm(|| self.messages.lock().may_sleep())
    }

    fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn trouble(&self) -> Option<String> {
        self.messages.lock().trouble()
    }
}

#[cfg(test)]
mod tests;
