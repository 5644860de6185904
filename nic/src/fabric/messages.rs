//! Messages through an endpoint of a provider.
//!
//! Buffers are made and, where the provider wants that, registered once: a number of them is posted
//! for what comes, the others are free or wait for the completion of a send. What the provider
//! needs room for before a message is left free there. An owner of [`Messages`] makes its calls one
//! after the other, so any provider fits, however it wants its clients to take turns.

use super::abi::{self, CqEntry};
use super::address::MOST_BYTES;
use super::buffers::{Buffers, CONTEXT_BYTES, Places};
use super::object::{Addresses, Domain, Endpoint, Found, Queue, Region};
use super::offer::{Offer, Wish};
use super::{FabricAddress, FabricError, Sleep};
use rustix::fd::BorrowedFd;

/// Modes of providers that are known here.
pub(crate) const MODES: u64 = abi::CONTEXT | abi::CONTEXT2 | abi::MSG_PREFIX;

/// Demands on memory that are met here.
pub(crate) const MEMORY: core::ffi::c_int =
    abi::MR_LOCAL | abi::MR_VIRT_ADDR | abi::MR_ALLOCATED | abi::MR_PROV_KEY;

/// Completions that a look takes.
pub(crate) const BATCH: usize = 8;

/// While few buffers for sends are free, a peer has no more than one in so many of all.
const SHARES: usize = 4;

/// One in so many is for messages of so few bytes: those by which peers say what they have read.
const SHARES_OF_SHORT: usize = 8;
const SHORT: usize = 32;

/// As few buffers at least, where messages are long.
const LEAST_BUFFERS: usize = 16;

static_assertions::const_assert!(2 * BATCH <= LEAST_BUFFERS);

/// How much of a provider's offer is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Longest message, and how long messages must be able to be.
    pub(crate) message_bytes: usize,
    pub(crate) least_message_bytes: usize,
    /// Longest message that the provider copies, so that it needs no buffer and no completion.
    pub(crate) injected_bytes: usize,
    /// Buffers for what comes, and for what is sent: how many at most, and their bytes.
    pub(crate) receives: (usize, usize),
    pub(crate) sends: (usize, usize),
}

/// An offer that can be used.
pub(crate) struct Fitting {
    offer: Offer,
    sizes: Sizes,
    /// Bytes before each message: of sends, and of receives.
    prefixes: [usize; 2],
}

impl Fitting {
    /// Checks that an offer demands nothing but what the wish allows.
    ///
    /// # Errors
    /// [`FabricError::Unfit`] says what it demands.
    pub(crate) fn new(offer: Offer, wish: &Wish, sizes: &Sizes) -> Result<Self, FabricError> {
        let attributes = offer.attributes();
        let modes = offer.modes();
        let unknown = (modes[0] | modes[1]) & !wish.mode;
        let memory = attributes.domain.mr_mode & !wish.mr_mode;
        if unknown != 0 || memory != 0 {
            let what =
                format!("demands what is unknown here: modes {unknown:#x}, memory {memory:#x}");
            return Err(offer.unfit(wish, what));
        }
        if wish.order & !(attributes.tx.msg_order & attributes.rx.msg_order) != 0 {
            return Err(offer.unfit(wish, "does not keep the order of messages".into()));
        }
        let management = attributes.domain.resource_mgmt;
        if wish.resource_mgmt != abi::RM_UNSPEC && management != wish.resource_mgmt {
            return Err(offer.unfit(wish, "lets its queues overflow".into()));
        }
        let prefix = attributes.endpoint.msg_prefix_size;
        if prefix > CONTEXT_BYTES * 16 {
            return Err(offer.unfit(wish, format!("wants {prefix} bytes before each message")));
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
            return Err(offer.unfit(wish, what));
        }
        if most < sizes.least_message_bytes {
            let least = sizes.least_message_bytes;
            let what = format!("takes messages of {most} bytes, {least} are needed");
            return Err(offer.unfit(wish, what));
        }
        // A provider that does not see to its own resources has no bound for what is injected; and
        // one that sends again only while it is polled does not say until when that is needed.
        let progresses = attributes.domain.data_progress == abi::PROGRESS_MANUAL;
        let most_injected = match management {
            abi::RM_DISABLED => 0,
            _ if progresses && wish.is_reliable => 0,
            _ => attributes.tx.inject_size,
        };
        let message_bytes = most.min(sizes.message_bytes);
        let buffers = |(most, bytes): (usize, usize), size: usize| {
            let of_bytes = (bytes / message_bytes.max(1)).max(LEAST_BUFFERS);
            let provided = if size == 0 { most } else { size };
            let count = provided.min(most).min(of_bytes);
            (count, count * message_bytes)
        };
        Ok(Self {
            sizes: Sizes {
                message_bytes,
                least_message_bytes: sizes.least_message_bytes,
                injected_bytes: most_injected.min(sizes.injected_bytes),
                receives: buffers(sizes.receives, attributes.rx.size),
                sends: buffers(sizes.sends, attributes.tx.size),
            },
            prefixes,
            offer,
        })
    }

    pub(crate) fn provider(&self) -> &str {
        self.offer.provider()
    }

    /// What is used of it.
    pub(crate) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Provider, versions and longest message in words.
    pub(crate) fn in_words(&self) -> String {
        let (offer, library) = (&self.offer, self.offer.library());
        format!(
            "provider {} {} of libfabric {} ({}), {} bytes each",
            offer.provider(),
            offer.version(),
            library.version(),
            library.name(),
            self.sizes.message_bytes,
        )
    }
}

/// A queue for what comes, and how a thread waits at it: at its descriptor, if it has one.
fn waking_queue(domain: &Domain, receives: usize) -> Result<(Queue, Sleep), FabricError> {
    if let Ok(queue) = domain.queue(receives, true)
        && let Ok(descriptor) = queue.descriptor(domain)
    {
        // SAFETY: it stays open as long as its queue, which is there.
        let sleep = Sleep::at(unsafe { BorrowedFd::borrow_raw(descriptor) })?;
        return Ok((queue, sleep));
    }
    Ok((domain.queue(receives, false)?, Sleep::nap()?))
}

/// How a send has gone.
#[derive(Debug)]
pub(crate) enum Sent {
    Yes,
    Refused,
    NoRoom,
}

/// What a look has found: so many buffers, and whether there may be more.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) count: usize,
    pub(crate) more: bool,
}

/// The library's objects of an endpoint, and its buffers; dropped in this order.
pub(crate) struct Messages {
    endpoint: Endpoint,
    sent: Queue,
    came: Queue,
    addresses: Addresses,
    _region: Option<Region>,
    domain: Domain,
    buffers: Buffers,
    wish: &'static Wish,
    address: FabricAddress,
    /// Of the region; null if there is none.
    descriptor: *mut core::ffi::c_void,
    /// Where messages are written that are injected, behind the prefix: as long as the longest.
    injected: Box<[u8]>,
    /// Sends end only while the queue is polled.
    progresses: bool,
    /// The peer of the send that has each buffer.
    to: Box<[u64]>,
    /// Operations that failed, and why the first did.
    failed: u64,
    trouble: Option<String>,
    /// Receives that failed since one did not.
    failed_in_turn: usize,
    /// Why nothing comes or leaves any more.
    broken: Option<String>,
    /// Peers to whom sends failed, as the library names them, and why the first did.
    failures: Vec<(u64, String)>,
}

// SAFETY: the descriptor is a number that only the library reads, and any thread may pass it.
unsafe impl Send for Messages {}

const NO_ENTRY: CqEntry = CqEntry {
    context: core::ptr::null_mut(),
    flags: 0,
    len: 0,
};

impl Messages {
    /// Opens an endpoint and posts its buffers for what comes.
    ///
    /// # Errors
    /// A call of the library fails.
    pub(crate) fn open(
        fitting: Fitting,
        wish: &'static Wish,
    ) -> Result<(Self, Sleep), FabricError> {
        let Fitting {
            offer,
            sizes,
            prefixes: [send_prefix, receive_prefix],
        } = fitting;
        let ((receives, _), (sends, _)) = (sizes.receives, sizes.sends);
        let injected_bytes = match sizes.injected_bytes {
            0 => 0,
            bytes => send_prefix + bytes,
        };
        let needs_region = offer.attributes().domain.mr_mode & abi::MR_LOCAL != 0;
        let progresses = offer.attributes().domain.data_progress == abi::PROGRESS_MANUAL;
        let buffers = Buffers::new(
            [receives, sends],
            [receive_prefix, send_prefix],
            sizes.message_bytes,
        )
        .map_err(|source| FabricError::Os {
            action: "map buffers for messages",
            source,
        })?;
        let domain = Domain::open(offer)?;
        if needs_region {
            let kept = buffers.keep_from_children();
            kept.map_err(|source| FabricError::Os {
                action: "keep buffers for messages out of child processes",
                source,
            })?;
        }
        let region = match needs_region {
            // SAFETY: what is made drops the region before the buffers.
            true => Some(unsafe { domain.register(buffers.memory(), buffers.bytes()) }?),
            false => None,
        };
        let sent = domain.queue(sends, false)?;
        let (came, sleep) = waking_queue(&domain, receives)?;
        let addresses = domain.addresses(0)?;
        let endpoint = domain.endpoint(&sent, &came, &addresses)?;
        let name = domain.name(&endpoint)?;
        let info = domain.offer();
        if name.is_empty() || name.len() > MOST_BYTES {
            return Err(info.unfit(wish, format!("has addresses of {} bytes", name.len())));
        }
        let (provider, format) = (info.provider(), info.format());
        let mut own = Self {
            address: FabricAddress::new(provider, format, sizes.message_bytes, name),
            endpoint,
            sent,
            came,
            addresses,
            descriptor: region
                .as_ref()
                .map_or(core::ptr::null_mut(), Region::descriptor),
            _region: region,
            domain,
            wish,
            injected: vec![0; injected_bytes].into(),
            progresses,
            buffers,
            to: vec![0; receives + sends].into(),
            failed: 0,
            trouble: None,
            failed_in_turn: 0,
            broken: None,
            failures: Vec::new(),
        };
        for index in 0..receives as u32 {
            own.post(index);
        }
        if let Some(trouble) = own.trouble.take() {
            return Err(own.unfit(format!("takes no buffers: {trouble}")));
        }
        Ok((own, sleep))
    }

    pub(crate) fn unfit(&self, what: String) -> FabricError {
        self.domain.offer().unfit(self.wish, what)
    }

    /// Where it is reached.
    pub(crate) fn address(&self) -> &FabricAddress {
        &self.address
    }

    /// Takes the address of a peer; by what sends name it.
    ///
    /// # Errors
    /// An address of another kind than its own, or one that the library does not take.
    pub(crate) fn insert(&self, peer: &FabricAddress) -> Result<u64, FabricError> {
        if !self.address.is_alike(peer) {
            return Err(self.unfit(format!("does not reach {}", peer.in_words())));
        }
        self.domain.insert(&self.addresses, peer.bytes())
    }

    /// Buffers of both directions; those for what comes are first.
    pub(crate) fn buffers(&self) -> usize {
        self.to.len()
    }

    /// Buffers for what comes.
    pub(crate) fn receives(&self) -> usize {
        self.buffers.receives()
    }

    /// Whether buffers of sends are the provider's.
    pub(crate) fn is_sending(&self) -> bool {
        self.buffers.is_sending()
    }

    /// Where the buffers are.
    pub(crate) fn places(&self) -> Places {
        self.buffers.places()
    }

    /// Whether a thread may sleep until something comes.
    pub(crate) fn may_sleep(&self) -> bool {
        self.domain.may_sleep(&self.came)
    }

    fn note(&mut self, why: impl FnOnce(&Self) -> String) {
        self.failed += 1;
        if self.trouble.is_none() {
            self.trouble = Some(why(self));
        }
    }

    /// A call has failed; the words for it.
    fn note_code(&mut self, call: &str, code: isize) -> String {
        let text = self.domain.offer().library().text(code as i64);
        let words = format!("{call}: {text} ({code})");
        self.note(|_| words.clone());
        words
    }

    fn note_failure(&mut self, peer: u64, words: String) {
        if self.failures.iter().all(|(other, _)| *other != peer) {
            self.failures.push((peer, words));
        }
    }

    fn note_broken(&mut self, words: String) {
        self.note(|_| words.clone());
        self.broken.get_or_insert(words);
    }

    /// Why nothing comes or leaves any more.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Operations that failed, in words.
    pub(crate) fn trouble(&self) -> Option<String> {
        let (provider, failed) = (self.domain.offer().provider(), self.failed);
        let first = self.trouble.as_ref()?;
        Some(format!(
            "of {provider}, {failed} operations failed, the first with {first}"
        ))
    }

    /// Peers to whom a send has failed since the last call, and the provider's words.
    pub(crate) fn take_failures(&mut self) -> Vec<(u64, String)> {
        core::mem::take(&mut self.failures)
    }

    /// Gives a buffer for what comes to the provider; whether that takes it.
    pub(crate) fn post(&mut self, index: u32) -> bool {
        let buffer = self.buffers.whole(index, self.descriptor);
        self.buffers.lend(index);
        // SAFETY: the provider has the buffer until its completion was taken.
        let code = unsafe { self.endpoint.recv(&buffer) };
        if code != 0 {
            // The next look tries once more.
            self.buffers.take_back(index);
            self.buffers.keep_unposted(index);
            if code != -abi::EAGAIN {
                let words = self.note_code("fi_recv", code);
                if !self.buffers.receives_any() {
                    self.broken.get_or_insert(words);
                }
            }
        }
        code == 0
    }

    /// Takes back the buffers of sends that have ended.
    pub(crate) fn reap(&mut self) {
        let mut entries = [NO_ENTRY; BATCH];
        loop {
            let (context, words) = match self.sent.take(&mut entries, &self.domain) {
                Found::Completions(0) => return,
                Found::Completions(count) => {
                    for entry in &entries[..count] {
                        self.buffers.end_send(entry.context.addr());
                    }
                    continue;
                }
                Found::Failed(context, words) => (context, words),
                Found::Broken(words) => return self.note_broken(words),
            };
            self.note(|_| format!("a send failed: {words}"));
            // Otherwise it was injected, or is the provider's own.
            if let Some(index) = self.buffers.end_send(context) {
                self.note_failure(self.to[index as usize], words);
            }
        }
    }

    /// A free buffer for a message of so many bytes to a peer, which has no more than a share of
    /// few, the last of them for short messages.
    fn take_free(&mut self, peer: u64, bytes: usize) -> Option<u32> {
        // Datagrams leave whether their target takes them or not.
        let shares = self.wish.is_reliable;
        let is_free = |own: &Self| {
            let sends = own.to.len() - own.buffers.receives();
            let (free, share) = (own.buffers.free(), sends / SHARES);
            let least = if bytes > SHORT {
                sends / SHARES_OF_SHORT
            } else {
                0
            };
            let lent = || own.buffers.lent_sends().filter(|at| own.to[*at] == peer);
            let has_share = || free > sends / 2 || lent().count() < share;
            free > 0 && (!shares || free > least && has_share())
        };
        if !is_free(self) {
            self.reap();
            if !is_free(self) {
                return None;
            }
        }
        self.buffers.take_free()
    }

    /// Injects a message of so many bytes, which `fill` writes.
    fn inject(&mut self, peer: u64, bytes: usize, fill: impl FnOnce(&mut [u8])) -> isize {
        let prefix = self.buffers.send_prefix();
        let place = &mut self.injected[..prefix + bytes];
        fill(&mut place[prefix..]);
        self.endpoint.inject(place, peer)
    }

    /// Whether a message of so many bytes is injected.
    fn injects(&self, bytes: usize) -> bool {
        !self.injected.is_empty() && self.buffers.send_prefix() + bytes <= self.injected.len()
    }

    /// Sends the message in a buffer, which is free again after an error.
    fn send_buffer(&mut self, index: u32, bytes: usize, peer: u64) -> isize {
        let buffer = self.buffers.part(index, bytes, self.descriptor);
        self.buffers.lend(index);
        self.to[index as usize] = peer;
        // SAFETY: the buffer is the provider's until its completion was taken.
        let code = unsafe { self.endpoint.send(&buffer, peer) };
        if code != 0 {
            self.buffers.put_free(index);
        }
        code
    }

    fn outcome(&mut self, code: isize, peer: u64) -> Sent {
        match code {
            0 => Sent::Yes,
            code if code == -abi::EAGAIN => {
                self.reap();
                Sent::NoRoom
            }
            code => {
                let words = self.note_code("fi_send", code);
                self.note_failure(peer, words);
                Sent::Refused
            }
        }
    }

    /// Sends a message.
    ///
    /// `awaited`: it counts as [being sent](Self::is_sending) until the provider says otherwise.
    pub(crate) fn send(&mut self, peer: u64, message: &[u8], awaited: bool) -> Sent {
        let copy = |place: &mut [u8]| place.copy_from_slice(message);
        let code = if !awaited && self.injects(message.len()) {
            self.inject(peer, message.len(), copy)
        } else {
            let Some(index) = self.take_free(peer, message.len()) else {
                return Sent::NoRoom;
            };
            self.buffers.fill(index, message.len(), copy);
            self.send_buffer(index, message.len(), peer)
        };
        self.outcome(code, peer)
    }

    /// Sends a message of so many bytes, which `fill` writes; where there is no room the message is
    /// in `kept`.
    ///
    /// `awaited`: as for [`send`](Self::send).
    pub(crate) fn send_filled(
        &mut self,
        peer: u64,
        bytes: usize,
        awaited: bool,
        kept: &mut Vec<u8>,
        fill: impl FnOnce(&mut [u8]),
    ) -> Sent {
        if !awaited && self.injects(bytes) {
            let code = self.inject(peer, bytes, fill);
            if code == -abi::EAGAIN {
                let prefix = self.buffers.send_prefix();
                kept.clear();
                kept.extend_from_slice(&self.injected[prefix..prefix + bytes]);
            }
            return self.outcome(code, peer);
        }
        let Some(index) = self.take_free(peer, bytes) else {
            kept.clear();
            kept.resize(bytes, 0);
            fill(kept);
            return Sent::NoRoom;
        };
        self.buffers.fill(index, bytes, fill);
        let code = self.send_buffer(index, bytes, peer);
        if code == -abi::EAGAIN {
            // It is free, and nothing was put there since.
            kept.clear();
            kept.extend_from_slice(self.buffers.message(index, bytes));
        }
        self.outcome(code, peer)
    }

    /// Takes what has come: buffers, and bytes in them, which are the caller's until it posts them.
    pub(crate) fn look(&mut self, came: &mut [(u32, usize); BATCH]) -> Look {
        while let Some(index) = self.buffers.take_unposted()
            && self.post(index)
        {}
        if self.progresses {
            self.reap();
        }
        let mut entries = [NO_ENTRY; BATCH];
        match self.came.take(&mut entries, &self.domain) {
            Found::Completions(found) => {
                let mut count = 0;
                if found > 0 {
                    self.failed_in_turn = 0;
                }
                for entry in &entries[..found] {
                    match self.buffers.arrived(entry.context.addr(), entry.len) {
                        Some(one) => {
                            came[count] = one;
                            count += 1;
                        }
                        None => self.note(|_| "a completion of no buffer".into()),
                    }
                }
                Look {
                    count,
                    more: found > 0,
                }
            }
            Found::Failed(context, words) => {
                let words = format!("a receive failed: {words}");
                self.note(|_| words.clone());
                self.failed_in_turn += 1;
                if self.failed_in_turn > self.buffers.receives() {
                    self.broken.get_or_insert(words);
                }
                if let Some((index, _)) = self.buffers.arrived(context, 0) {
                    self.post(index);
                }
                Look {
                    count: 0,
                    more: self.broken.is_none(),
                }
            }
            Found::Broken(words) => {
                self.note_broken(words);
                Look {
                    count: 0,
                    more: false,
                }
            }
        }
    }
}
