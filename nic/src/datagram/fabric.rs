//! Datagrams through a provider of libfabric.
//!
//! A rank opens a [`FabricPort`] and publishes its [`FabricAddress`]; with those of all peers it
//! becomes a [`Fabric`]. That has a fabric, a domain and a datagram endpoint with a queue of
//! completions for what it sends and one for what comes, and a table of addresses (spec U8).
//!
//! All calls of the library are made under one lock, so any provider fits, however it wants its
//! clients to take turns. Datagrams are handed out without the lock. Buffers are made and, where
//! the provider wants that, registered once: a number of them is posted for what comes, the others
//! are free or wait for the completion of a send. What the provider needs room for before a
//! datagram is left free there.

use super::fabric_address::{FabricAddress, MOST_BYTES};
use super::fabric_buffers::{Buffers, CONTEXT_BYTES};
use super::port::new_incarnation;
use super::{Batch, DatagramQueue};
use crate::fabric::abi::{self, CqEntry};
use crate::fabric::object::{Addresses, Domain, Endpoint, Found, Queue, Region};
use crate::fabric::offer::{Offer, Wish};
use crate::fabric::{FabricError, Library};
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use crossbeam_utils::Backoff;
use parking_lot::Mutex;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::sync::Arc;
use std::time::Instant;

/// What this queue wants of a provider.
const WISH: Wish = Wish {
    endpoint: (abi::EP_DGRAM, "datagram endpoints (FI_EP_DGRAM)"),
    caps: abi::MSG,
    mode: MODES,
    mr_mode: abi::MR_LOCAL | abi::MR_VIRT_ADDR | abi::MR_ALLOCATED | abi::MR_PROV_KEY,
    threading: abi::THREAD_DOMAIN,
    setting: "ARGONET_USNIC_PROVIDER",
};

/// Modes of providers that this queue knows.
const MODES: u64 = abi::CONTEXT | abi::CONTEXT2 | abi::MSG_PREFIX;

/// Longest datagram: longer ones are not worth their buffers.
const MOST_DATAGRAM_BYTES: usize = 60 << 10;

/// Longest datagram that the provider copies, so that it needs no buffer and no completion.
const MOST_INJECTED_BYTES: usize = 768;

/// Buffers for what comes, and for what is sent: how many at most, and their bytes.
const RECEIVES: (usize, usize) = (512, 4 << 20);
const SENDS: (usize, usize) = (64, 1 << 20);

/// As few at least, where datagrams are long.
const LEAST_BUFFERS: usize = 16;

/// Completions that a look takes.
const BATCH: usize = 8;

static_assertions::const_assert!(2 * BATCH <= LEAST_BUFFERS);

/// How long a send waits for room, before the datagram counts as lost.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Between two tries of a send that waits.
const WAIT: Duration = Duration::from_micros(20);

/// How long a thread sleeps where the provider cannot wake it: at first, and twice as long each
/// time nothing has come, so often.
const NAP: Duration = Duration::from_micros(20);
const DOUBLINGS: u32 = 8;

/// Bytes of arriving datagrams that a socket keeps where the system does not say.
const USUAL_SOCKET_BYTES: usize = 212_992;

/// An endpoint that has its address, and does not know those of peers.
pub struct FabricPort {
    state: State,
    sleep: Sleep,
    address: FabricAddress,
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
        let offer = offer(library, provider, address)?;
        let datagram_bytes = offer.datagram_bytes;
        let (receives, sends) = (offer.buffers(RECEIVES, true), offer.buffers(SENDS, false));
        let needs_region = offer.all.attributes().domain.mr_mode & abi::MR_LOCAL != 0;
        let progresses = offer.all.attributes().domain.data_progress == abi::PROGRESS_MANUAL;
        // A provider that does not see to its own resources has no bound for what is injected.
        let attributes = offer.all.attributes();
        let most_injected = match attributes.domain.resource_mgmt {
            abi::RM_DISABLED => 0,
            _ => attributes.tx.inject_size,
        };
        let room = room(offer.all.provider(), receives * datagram_bytes);
        let [send_prefix, receive_prefix] = offer.prefixes;
        let buffers = Buffers::new(
            [receives, sends],
            [receive_prefix, send_prefix],
            datagram_bytes,
        )
        .map_err(|source| FabricError::Os {
            action: "map buffers for datagrams",
            source,
        })?;
        let domain = Domain::open(offer.all)?;
        let region = match needs_region {
            // SAFETY: the state drops the region before the buffers.
            true => Some(unsafe { domain.register(buffers.memory(), buffers.bytes()) }?),
            false => None,
        };
        let sent = domain.queue(sends, false)?;
        // A provider that cannot wake a thread refuses it.
        let (came, wakes) = match domain.queue(receives, true) {
            Ok(queue) => (queue, true),
            Err(_) => (domain.queue(receives, false)?, false),
        };
        let addresses = domain.addresses(0)?;
        let endpoint = domain.endpoint(&sent, &came, &addresses)?;
        let sleep = match wakes {
            true => Sleep::Descriptor(came.descriptor(&domain)?),
            false => Sleep::nap()?,
        };
        let name = domain.name(&endpoint)?;
        let info = domain.offer();
        if name.is_empty() || name.len() > MOST_BYTES {
            return Err(info.unfit(&WISH, format!("has addresses of {} bytes", name.len())));
        }
        let address = FabricAddress::new(info.provider(), info.format(), datagram_bytes, name);
        let mut state = State {
            endpoint,
            sent,
            came,
            addresses,
            descriptor: region
                .as_ref()
                .map_or(core::ptr::null_mut(), Region::descriptor),
            _region: region,
            domain,
            injects: most_injected.min(MOST_INJECTED_BYTES),
            progresses,
            buffers,
            failed: 0,
            trouble: None,
        };
        for index in 0..receives as u32 {
            state.post(index);
        }
        if let Some(trouble) = state.trouble.take() {
            return Err(state
                .domain
                .offer()
                .unfit(&WISH, format!("takes no buffers: {trouble}")));
        }
        let incarnation = new_incarnation().map_err(|source| FabricError::Os {
            action: "draw a random number",
            source,
        })?;
        Ok(Self {
            state,
            sleep,
            address,
            incarnation,
            receive_bytes: room,
        })
    }

    /// Where it is reached.
    #[must_use]
    pub fn address(&self) -> &FabricAddress {
        &self.address
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
    let Fitting {
        all,
        datagram_bytes,
        ..
    } = offer(library, provider, address)?;
    Ok(format!(
        "provider {} {} of libfabric {} ({}), {datagram_bytes} bytes each",
        all.provider(),
        all.version(),
        library.version(),
        library.name(),
    ))
}

/// An offer that this queue can use.
struct Fitting {
    all: Offer,
    datagram_bytes: usize,
    /// Bytes before each datagram: of sends, and of receives.
    prefixes: [usize; 2],
}

fn offer(
    library: &Library,
    provider: Option<&str>,
    address: Option<IpAddr>,
) -> Result<Fitting, FabricError> {
    let all = library.offer(&WISH, provider, address)?;
    let attributes = all.attributes();
    let modes = all.modes();
    let unknown = (modes[0] | modes[1]) & !MODES;
    let memory = attributes.domain.mr_mode & !WISH.mr_mode;
    if unknown != 0 || memory != 0 {
        let what = format!("demands what is unknown here: modes {unknown:#x}, memory {memory:#x}");
        return Err(all.unfit(&WISH, what));
    }
    let prefix = attributes.endpoint.msg_prefix_size;
    if prefix > CONTEXT_BYTES * 16 {
        return Err(all.unfit(&WISH, format!("wants {prefix} bytes before each datagram")));
    }
    let prefixes = modes.map(|mode| {
        if mode & abi::MSG_PREFIX == 0 {
            0
        } else {
            prefix
        }
    });
    // usnic counts the prefix of a send, other providers do not.
    let most = attributes.endpoint.max_msg_size.saturating_sub(prefixes[0]);
    if attributes.rx.size != 0 && attributes.rx.size < 2 * BATCH {
        let what = format!(
            "takes {} receives, at least {} are needed",
            attributes.rx.size,
            2 * BATCH
        );
        return Err(all.unfit(&WISH, what));
    }
    Ok(Fitting {
        datagram_bytes: most.min(MOST_DATAGRAM_BYTES),
        prefixes,
        all,
    })
}

impl Fitting {
    /// How many buffers of a direction there are: no more than the provider takes.
    fn buffers(&self, (most, bytes): (usize, usize), receives: bool) -> usize {
        let attributes = self.all.attributes();
        let size = if receives {
            attributes.rx.size
        } else {
            attributes.tx.size
        };
        let of_bytes = (bytes / self.datagram_bytes.max(1)).max(LEAST_BUFFERS);
        let provided = if size == 0 { most } else { size };
        provided.min(most).min(of_bytes)
    }
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

/// How a thread sleeps until something comes.
enum Sleep {
    /// At a descriptor of the provider's, which stays as long as its queue.
    Descriptor(RawFd),
    /// At a timer, as the provider wakes no thread; and how often in turn nothing had come.
    Nap(OwnedFd, AtomicU32),
}

impl Sleep {
    fn nap() -> Result<Self, FabricError> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags);
        let timer = timer.map_err(|source| FabricError::Os {
            action: "make a timer",
            source: source.into(),
        })?;
        Ok(Self::Nap(timer, AtomicU32::new(0)))
    }
}

/// The library's objects and the buffers; dropped in this order.
struct State {
    endpoint: Endpoint,
    sent: Queue,
    came: Queue,
    addresses: Addresses,
    _region: Option<Region>,
    domain: Domain,
    buffers: Buffers,
    /// Of the region; null if there is none.
    descriptor: *mut core::ffi::c_void,
    /// Longest datagram that is injected.
    injects: usize,
    /// Sends end only while the queue is polled.
    progresses: bool,
    /// Operations that failed, and why the first did.
    failed: u64,
    trouble: Option<String>,
}

// SAFETY: the descriptor is a number that only the library reads, and any thread may pass it.
unsafe impl Send for State {}

/// How a send has gone.
enum Sent {
    Yes,
    Refused,
    NoRoom,
}

impl State {
    fn note(&mut self, why: impl FnOnce(&Self) -> String) {
        self.failed += 1;
        if self.trouble.is_none() {
            self.trouble = Some(why(self));
        }
    }

    fn note_code(&mut self, call: &str, code: isize) {
        self.note(|state| {
            let text = state.domain.offer().library().text(code as i64);
            format!("{call}: {text} ({code})")
        });
    }

    /// Gives a buffer for what comes to the provider; whether that takes it.
    fn post(&mut self, index: u32) -> bool {
        let buffer = self.buffers.whole(index, self.descriptor);
        self.buffers.lend(index);
        // SAFETY: the provider has the buffer until its completion was taken.
        let code = unsafe { self.endpoint.recv(&buffer) };
        if code != 0 {
            // The next look tries once more.
            self.buffers.take_back(index);
            self.buffers.keep_unposted(index);
            if code != -abi::EAGAIN {
                self.note_code("fi_recv", code);
            }
        }
        code == 0
    }

    /// Takes back the buffers of sends that have ended.
    fn reap(&mut self) {
        let mut entries = [NO_ENTRY; BATCH];
        loop {
            let context = match self.sent.take(&mut entries, &self.domain) {
                Found::Completions(0) => return,
                Found::Completions(count) => {
                    for entry in &entries[..count] {
                        self.buffers.end_send(entry.context.addr());
                    }
                    continue;
                }
                Found::Failed(context, words) => {
                    self.note(|_| format!("a send failed: {words}"));
                    context
                }
            };
            if !self.buffers.end_send(context) {
                // It names no send, so that the next look may find it again.
                return;
            }
        }
    }

    fn send(&mut self, peer: u64, datagram: &[u8]) -> Sent {
        let injects = self.injects > 0 && datagram.len() <= self.injects;
        let code = if injects && self.buffers.send_prefix() == 0 {
            self.endpoint.inject(datagram, peer)
        } else {
            if !self.buffers.has_free() {
                self.reap();
            }
            let Some(index) = self.buffers.take_free() else {
                return Sent::NoRoom;
            };
            let buffer = self.buffers.fill(index, datagram, self.descriptor);
            let code = match injects {
                true => self.endpoint.inject(self.buffers.contents(&buffer), peer),
                false => {
                    self.buffers.lend(index);
                    // SAFETY: the buffer is the provider's until its completion was taken.
                    unsafe { self.endpoint.send(&buffer, peer) }
                }
            };
            if injects || code != 0 {
                self.buffers.put_free(index);
            }
            code
        };
        match code {
            0 => Sent::Yes,
            code if code == -abi::EAGAIN => {
                self.reap();
                Sent::NoRoom
            }
            code => {
                self.note_code("fi_send", code);
                Sent::Refused
            }
        }
    }

    /// Takes what has come; whether there may be more.
    fn look(&mut self, taken: &mut Taken) -> bool {
        // What was handed out before.
        for (index, _) in taken.drain() {
            self.post(index);
        }
        while let Some(index) = self.buffers.take_unposted()
            && self.post(index)
        {}
        if self.progresses {
            self.reap();
        }
        let mut entries = [NO_ENTRY; BATCH];
        match self.came.take(&mut entries, &self.domain) {
            Found::Completions(count) => {
                for entry in &entries[..count] {
                    match self.buffers.arrived(entry.context.addr(), entry.len) {
                        Some(came) => taken.add(came),
                        None => self.note(|_| "a completion of no buffer".into()),
                    }
                }
                count > 0
            }
            Found::Failed(context, words) => {
                self.note(|_| format!("a receive failed: {words}"));
                if let Some((index, _)) = self.buffers.arrived(context, 0) {
                    self.post(index);
                }
                true
            }
        }
    }
}

const NO_ENTRY: CqEntry = CqEntry {
    context: core::ptr::null_mut(),
    flags: 0,
    len: 0,
};

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

    fn add(&mut self, one: (u32, usize)) {
        self.buffers[self.count] = one;
        self.count += 1;
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
    state: Mutex<State>,
    /// Where the buffers begin, for what was taken from them without the lock.
    places: super::fabric_buffers::Places,
    sleep: Sleep,
    datagram_bytes: usize,
    /// By peer: as the library names it, and its address.
    peers: Box<[(u64, Option<SocketAddr>)]>,
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
            state,
            sleep,
            address,
            ..
        } = port;
        let inserted = |peer: &FabricAddress| {
            if !address.is_alike(peer) {
                let what = format!("does not reach {}", peer.in_words());
                return Err(state.domain.offer().unfit(&WISH, what));
            }
            let to = state.domain.insert(&state.addresses, peer.bytes())?;
            Ok((to, peer.socket()))
        };
        let peers: Result<Box<[_]>, FabricError> = peers.iter().map(inserted).collect();
        Ok(Self {
            token: Arc::default(),
            peers: peers?,
            places: state.buffers.places(),
            state: Mutex::new(state),
            sleep,
            datagram_bytes: address.datagram_bytes(),
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
        match &self.sleep {
            // SAFETY: it stays open as long as its queue, which `self` has.
            Sleep::Descriptor(descriptor) => unsafe { BorrowedFd::borrow_raw(*descriptor) },
            Sleep::Nap(timer, _) => timer.as_fd(),
        }
    }
}

impl DatagramQueue for Fabric {
    type ReceiveBuffers = Taken;

    fn receive_buffers(&self) -> Taken {
        Taken::of(Arc::clone(&self.token))
    }

    fn address(&self, peer: u32) -> Option<SocketAddr> {
        self.peers.get(peer as usize)?.1
    }

    fn send(&self, peer: u32, datagram: &[u8]) {
        let Some((to, _)) = self.peers.get(peer as usize) else {
            return;
        };
        let (backoff, mut begun) = (Backoff::new(), None);
        while datagram.len() <= self.datagram_bytes {
            match self.state.lock().send(*to, datagram) {
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
        let full = self.state.lock().look(taken);
        let any = taken.count > 0;
        if let (true, Sleep::Nap(_, naps)) = (any, &self.sleep) {
            naps.store(0, Ordering::Relaxed);
        }
        for (index, bytes) in &taken.buffers[..taken.count] {
            // SAFETY: the look has taken the buffer of this queue from the provider for `taken`,
            // and the next one gives it back, which needs `taken` too. No other `Taken` names it:
            // none can be made or copied but by a look.
            take(unsafe { self.places.datagram(*index, *bytes) });
        }
        Batch { any, full }
    }

    fn arm(&self) -> bool {
        match &self.sleep {
            Sleep::Descriptor(_) => {
                let state = self.state.lock();
                state.domain.may_sleep(&state.came)
            }
            Sleep::Nap(timer, naps) => {
                let before = naps.fetch_add(1, Ordering::Relaxed).min(DOUBLINGS);
                let nap = Timespec {
                    tv_sec: 0,
                    tv_nsec: (NAP * (1 << before)).subsec_nanos().into(),
                };
                let once = Itimerspec {
                    it_interval: Timespec::default(),
                    it_value: nap,
                };
                timerfd_settime(timer, TimerfdTimerFlags::empty(), &once).is_ok()
            }
        }
    }

    fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn trouble(&self) -> Option<String> {
        let state = self.state.lock();
        let (provider, failed) = (state.domain.offer().provider(), state.failed);
        let first = state.trouble.as_ref()?;
        Some(format!(
            "of {provider}, {failed} operations failed, the first with {first}"
        ))
    }
}

#[cfg(test)]
mod tests;
