//! Messages that arrive once and in order, through a provider of libfabric.
//!
//! A rank opens an [`RdmPort`] and publishes its [`FabricAddress`]; with those of all peers it
//! becomes an [`Rdm`]: an endpoint of the kind `FI_EP_RDM`, which sends messages to all peers and
//! keeps the order of those to each. The provider connects, repeats and acknowledges. It sees to it
//! that its queues do not overflow: a send that finds no room is made again.
//!
//! An [`Rdm`] is used by one thread at a time; a thread that waits does so at its [`Sleep`].

use crate::fabric::abi;
use crate::fabric::messages::{BATCH, Fitting, MEMORY, MODES, Messages, Sent, Sizes};
use crate::fabric::offer::Wish;
use crate::fabric::{FabricAddress, FabricError, Library, Sleep};
use crate::incarnation::new_incarnation;
use core::net::IpAddr;
use core::num::NonZeroU64;

/// What this module wants of a provider.
const WISH: Wish = Wish {
    endpoint: (abi::EP_RDM, "endpoints for reliable messages (FI_EP_RDM)"),
    caps: abi::MSG,
    mode: MODES,
    mr_mode: MEMORY,
    threading: abi::THREAD_DOMAIN,
    order: abi::ORDER_SAS,
    resource_mgmt: abi::RM_ENABLED,
    is_reliable: true,
    setting: "ARGONET_OFI_PROVIDER",
};

/// Clients have headers.
const LEAST_MESSAGE_BYTES: usize = 256;

/// Providers copy messages of up to 16 KiB with their own headers; longer ones take a handshake.
const SIZES: Sizes = Sizes {
    message_bytes: 16 << 10,
    least_message_bytes: LEAST_MESSAGE_BYTES,
    injected_bytes: 4 << 10,
    receives: (256, 4 << 20),
    sends: (64, 1 << 20),
};

/// The providers among which a rank chooses that names none, the first that can be used: those of
/// network cards, then those over sockets.
///
/// Others of the library come last, but for those that reach this host alone.
pub const PROVIDERS: &[&str] = &[
    "cxi",
    "opx",
    "psm3",
    "psm2",
    "efa",
    "verbs;ofi_rxm",
    "tcp",
    "tcp;ofi_rxm",
    "udp;ofi_rxd",
    "sockets",
];

/// Providers that are taken by name only.
const OF_ONE_HOST: &[&str] = &["shm", "sm2"];

/// An endpoint that has its address, and does not know those of peers.
pub struct RdmPort {
    messages: Messages,
    sleep: Sleep,
    incarnation: NonZeroU64,
}

impl RdmPort {
    /// Opens an endpoint of a provider, of the first of [`PROVIDERS`] that can be used if there is
    /// no name; at this address if its addresses are those of the Internet.
    ///
    /// # Errors
    /// No provider fits, or a call of the library fails.
    pub fn open(
        library: &Library,
        provider: Option<&str>,
        address: Option<IpAddr>,
    ) -> Result<Self, FabricError> {
        let open = |fitting| Messages::open(fitting, &WISH);
        let (messages, sleep) = first_fitting(library, provider, address, open)?;
        Ok(Self {
            messages,
            sleep,
            incarnation: new_incarnation().map_err(FabricError::no_random)?,
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

    /// The endpoint, given where each rank is reached, and where its threads wait.
    ///
    /// # Errors
    /// An address of another kind than that of the endpoint, or one that the library does not take.
    pub fn connect(self, peers: &[FabricAddress]) -> Result<(Rdm, Sleep), FabricError> {
        let Self {
            messages, sleep, ..
        } = self;
        let is_short = |peer: &&FabricAddress| peer.message_bytes() < LEAST_MESSAGE_BYTES;
        if let Some(short) = peers.iter().find(is_short) {
            let (words, bytes) = (short.in_words(), short.message_bytes());
            return Err(
                messages.unfit(format!("does not reach {words}, which takes {bytes} bytes"))
            );
        }
        let lengths = peers.iter().map(FabricAddress::message_bytes);
        let peers: Result<Box<[u64]>, FabricError> =
            peers.iter().map(|peer| messages.insert(peer)).collect();
        let least = lengths.fold(messages.address().message_bytes(), usize::min);
        let rdm = Rdm {
            peers: peers?,
            held: vec![None; messages.buffers()].into(),
            message_bytes: least,
            refused: Vec::new(),
            messages,
        };
        Ok((rdm, sleep))
    }
}

/// What a provider would carry messages with, in words: its version, and the longest message.
///
/// # Errors
/// No provider fits.
pub fn describe(
    library: &Library,
    provider: Option<&str>,
    address: Option<IpAddr>,
) -> Result<String, FabricError> {
    let describe = |fitting: Fitting| Ok(fitting.in_words());
    first_fitting(library, provider, address, describe)
}

/// What is made of the provider of this name; without one, of the first for which that works.
fn first_fitting<T>(
    library: &Library,
    provider: Option<&str>,
    address: Option<IpAddr>,
    make: impl Fn(Fitting) -> Result<T, FabricError>,
) -> Result<T, FabricError> {
    let of_name = |name: &str| {
        let offer = library.offer(&WISH, Some(name), address)?;
        make(Fitting::new(offer, &WISH, &SIZES)?)
    };
    if let Some(name) = provider {
        return of_name(name);
    }
    let there = library.providers(&WISH)?;
    let is_there = |name: &&str| there.iter().any(|one| one == name);
    let is_other = |name: &&str| !PROVIDERS.contains(name) && !OF_ONE_HOST.contains(name);
    let known = PROVIDERS.iter().copied().filter(is_there);
    let others = there.iter().map(String::as_str).filter(is_other);
    let mut refusals = Vec::new();
    for name in known.chain(others) {
        match of_name(name) {
            Ok(made) => return Ok(made),
            Err(error) => refusals.push(error),
        }
    }
    Err(match refusals.len() {
        0 | 1 => match refusals.pop() {
            Some(only) => only,
            None => library.no_provider(&WISH),
        },
        _ => FabricError::NoneFits {
            refusals: refusals
                .iter()
                .map(|error| format!("\n  {error}"))
                .collect(),
        },
    })
}

/// How a message was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// The provider sends it.
    Sent,
    /// There is no room now; it is sent again later.
    NoRoom,
    /// The provider refuses it: [`Rdm::failures`] says why.
    Refused,
}

impl From<Sent> for Taken {
    fn from(sent: Sent) -> Self {
        match sent {
            Sent::Yes => Self::Sent,
            Sent::NoRoom => Self::NoRoom,
            Sent::Refused => Self::Refused,
        }
    }
}

/// A message that has come, in a buffer of an [`Rdm`].
#[derive(Debug)]
pub struct Received(u32);

/// An endpoint that sends messages to peers, which are numbered as they were given.
pub struct Rdm {
    messages: Messages,
    /// By peer: as the library names it.
    peers: Box<[u64]>,
    /// By buffer: bytes of the message that is in it, while the client has it.
    held: Box<[Option<u32>]>,
    message_bytes: usize,
    /// Messages that no peer takes: to whom, and why.
    refused: Vec<(u32, String)>,
}

/// Messages that arrive once and in order, to peers numbered from 0 on: an [`Rdm`], or what stands
/// in for one in tests.
///
/// One thread at a time uses it.
pub trait MessageQueue: Send + 'static {
    /// A message that has come, until it is [given back](Self::give_back).
    type Received: Send;

    /// Longest message.
    fn message_bytes(&self) -> usize;

    /// Buffers for what comes.
    fn receives(&self) -> usize;

    /// Sends a message.
    ///
    /// `awaited`: it counts as [being sent](Self::is_sending) until the provider has sent it.
    fn send(&mut self, peer: u32, message: &[u8], awaited: bool) -> Taken;

    /// Sends a message of so many bytes, which `fill` writes; where there is no room the message is
    /// in `kept`, to be sent again.
    ///
    /// `awaited`: as for [`send`](Self::send).
    fn send_filled(
        &mut self,
        peer: u32,
        bytes: usize,
        awaited: bool,
        kept: &mut Vec<u8>,
        fill: impl FnOnce(&mut [u8]),
    ) -> Taken;

    /// Takes a batch of what has come, each of which the client [gives back](Self::give_back);
    /// whether there may be more.
    ///
    /// Does not wait. Sends go on meanwhile, too.
    fn receive(&mut self, take: &mut dyn FnMut(Self::Received)) -> bool;

    /// The bytes of a message that has come; none of a message of another queue.
    fn bytes<'a>(&'a self, received: &'a Self::Received) -> &'a [u8];

    /// The buffer of a message is used again.
    fn give_back(&mut self, received: Self::Received);

    /// Whether sends are under way, which may need that this rank looks.
    fn is_sending(&mut self) -> bool;

    /// The same, as it was known when that was looked at the last time.
    fn has_sent(&self) -> bool;

    /// Whether a thread may sleep until something comes.
    ///
    /// If not, something may have come.
    fn may_sleep(&self) -> bool;

    /// Peers to whom a message could not be sent since the last call, and why.
    fn failures(&mut self) -> Vec<(u32, String)>;

    /// Why nothing comes or leaves any more, if that is so.
    fn broken(&self) -> Option<&str>;

    /// What has failed so far, in the provider's words.
    fn trouble(&self) -> Option<String>;

    /// Where this end is reached, in words.
    fn in_words(&self) -> String;
}

impl Rdm {
    /// The name in the library of a peer that takes a message of so many bytes.
    fn to(&mut self, peer: u32, bytes: usize) -> Option<u64> {
        let to = self.peers.get(peer as usize).copied();
        let to = to.filter(|_| bytes <= self.message_bytes);
        if to.is_none() {
            let most = self.message_bytes;
            let words = format!("a message of {bytes} bytes, where the longest has {most}");
            self.refused.push((peer, words));
        }
        to
    }
}

impl MessageQueue for Rdm {
    type Received = Received;

    fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    fn receives(&self) -> usize {
        self.messages.receives()
    }

    fn send(&mut self, peer: u32, message: &[u8], awaited: bool) -> Taken {
        match self.to(peer, message.len()) {
            Some(to) => self.messages.send(to, message, awaited).into(),
            None => Taken::Refused,
        }
    }

    fn send_filled(
        &mut self,
        peer: u32,
        bytes: usize,
        awaited: bool,
        kept: &mut Vec<u8>,
        fill: impl FnOnce(&mut [u8]),
    ) -> Taken {
        match self.to(peer, bytes) {
            Some(to) => {
                let sent = self.messages.send_filled(to, bytes, awaited, kept, fill);
                sent.into()
            }
            None => Taken::Refused,
        }
    }

    fn receive(&mut self, take: &mut dyn FnMut(Received)) -> bool {
        let mut came = [(0, 0); BATCH];
        let look = self.messages.look(&mut came);
        for (index, bytes) in &came[..look.count] {
            if let Some(held) = self.held.get_mut(*index as usize) {
                *held = Some(*bytes as u32);
                take(Received(*index));
            }
        }
        look.more
    }

    #[inline]
    fn bytes<'a>(&'a self, received: &'a Received) -> &'a [u8] {
        let Received(index) = *received;
        match self.held.get(index as usize) {
            // SAFETY: the buffer is not the provider's as long as it is held, so that it is not
            // written to, and so many bytes came. It is given back by a call that borrows `self`
            // mutably, and the memory goes with `self`.
            Some(Some(bytes)) => unsafe { self.messages.places().message(index, *bytes as usize) },
            _ => &[],
        }
    }

    fn give_back(&mut self, received: Received) {
        let Received(index) = received;
        if let Some(held) = self.held.get_mut(index as usize)
            && held.take().is_some()
        {
            self.messages.post(index);
        }
    }

    fn is_sending(&mut self) -> bool {
        self.messages.reap();
        self.messages.is_sending()
    }

    fn has_sent(&self) -> bool {
        self.messages.is_sending()
    }

    fn may_sleep(&self) -> bool {
        self.messages.may_sleep()
    }

    fn failures(&mut self) -> Vec<(u32, String)> {
        let failures = self.messages.take_failures();
        let peer = |named| self.peers.iter().position(|one| *one == named);
        let of = |(named, words)| Some((u32::try_from(peer(named)?).ok()?, words));
        let mut all = core::mem::take(&mut self.refused);
        all.extend(failures.into_iter().filter_map(of));
        all
    }

    fn broken(&self) -> Option<&str> {
        self.messages.broken()
    }

    fn trouble(&self) -> Option<String> {
        self.messages.trouble()
    }

    fn in_words(&self) -> String {
        self.messages.address().in_words()
    }
}

#[cfg(test)]
mod tests;
