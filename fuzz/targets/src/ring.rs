//! Writes of a hostile neighbor into the memory that it shares: any bytes, in any of its rings,
//! read positions and sleep words, between any of our calls.
//!
//! Nothing it writes may make us read or write outside of our memory, panic, or poll without end.
//!
//! The input is a list of steps of the neighbor's and ours; see [`step`].

use argonet_am::{
    AmError, Category, Delivery, HandlerTable, MAX_CARRIED, MAX_MEDIUM, Message, MessageClass,
    Payload,
};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_conduit::smp::{Barrier, Layout, RING_BYTES, Smp, SmpConfig};
use argonet_conduit::{Completion, Conduit, OpToken, SendError, Sink, ThreadMode};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile, SharedBytes};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;

const US: JobRank = JobRank(0);
const THEM: JobRank = JobRank(1);
const SEGMENT: u64 = 1 << 16;
/// Steps of one input; more would only make it slow.
const MOST_STEPS: usize = 64;
const HANDLER: HandlerIndex = HandlerIndex(128);

/// Handlers of ours: they read all bytes that they get, and reply to some requests.
#[derive(Default)]
struct Handlers {
    broken: bool,
    delivered: usize,
}

impl Sink for Handlers {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        self.delivered += 1;
        // Its own name or ours: the ring to ourselves lies in the same memory.
        assert!(delivery.source().index() < 2);
        assert!(delivery.args().len() <= MAX_CARRIED);
        let bytes = delivery.payload().to_vec();
        match delivery.category() {
            Category::Short => assert!(bytes.is_empty()),
            Category::Medium => assert!(bytes.len() <= MAX_MEDIUM),
            Category::Long => assert!(bytes.len() as u64 <= SEGMENT),
        }
        if let Some(payload) = delivery.payload_mut() {
            let len = payload.len();
            payload.fill(0, len, 0xa5).expect("all of it");
        }
        if delivery.class() == MessageClass::Request && !bytes.len().is_multiple_of(3) {
            let reply = Message {
                handler: HANDLER,
                args: &[1, 2, 3, 4, 5],
                payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
            };
            // Room was reserved; a longer payload than a medium's is refused.
            match delivery.reply(&reply) {
                Ok(()) => {}
                Err(error) => assert!(bytes.len() > MAX_MEDIUM, "{error}"),
            }
        }
    }

    fn completed(&mut self, _: OpToken, _: Completion) {}

    fn on_error(&mut self, error: AmError) {
        assert!(!error.to_string().is_empty());
        self.broken = true;
    }
}

struct Neighbors {
    us: Smp,
    rings: OwnedFd,
    layout: Layout,
    /// Where the neighbor writes on, in the rings to us.
    at: [u64; 2],
    _segments: [OwnSegment; 2],
}

fn neighbors(mode: ThreadMode) -> Neighbors {
    let segments = SegmentFile::create(2, SEGMENT, PageKind::Normal).expect("memory");
    let segments = segments.into_fd();
    let rings = memfd_create("rings", MemfdFlags::CLOEXEC).expect("memory");
    let [(ours, directory), (theirs, _)] = [US, THEM].map(|rank| {
        let fd = segments.try_clone().expect("a descriptor");
        let file = SegmentFile::from_fd(fd, 2, SEGMENT, PageKind::Normal).expect("memory");
        let directory = Directory::new(file, rank).expect("addresses");
        let own = OwnSegment::attach(&directory, SEGMENT).expect("memory");
        (own, directory)
    });
    directory.map_all(|_| SEGMENT).expect("memory");
    let mut handlers = HandlerTable::default();
    handlers
        .register_at(HANDLER, "handler", Box::new(|_| {}))
        .expect("a free place");
    let config = SmpConfig {
        rank: US,
        first: JobRank(0),
        ranks: 2,
        mode,
        barrier: Barrier::Sender,
        directory,
        registered: handlers.registered(),
        segment_len: Arc::new(|_| SEGMENT),
    };
    Neighbors {
        us: Smp::new(rings.as_fd(), config).expect("memory"),
        rings,
        layout: Layout::new(JobRank(0), 2),
        at: [0; 2],
        _segments: [ours, theirs],
    }
}

impl Neighbors {
    /// The neighbor writes; bytes beyond the shared file are left out.
    fn scribble(&self, offset: u64, bytes: &[u8]) {
        let room = (self.layout.bytes() as u64).saturating_sub(offset);
        let len = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        let written = rustix::io::pwrite(&self.rings, &bytes[..len], offset);
        assert_eq!(written, Ok(len));
    }

    fn send(&self, len: usize, long: bool) {
        let bytes = vec![7; len];
        let bytes = SharedBytes::from_slice(&bytes);
        let payload = if long {
            Payload::Long(bytes, SegmentOffset(0))
        } else {
            Payload::Medium(bytes)
        };
        let message = Message {
            handler: HANDLER,
            args: &[1, 2, 3],
            payload,
        };
        match self.us.request(THEM, &message) {
            Ok(()) | Err(SendError::Full) => {}
            Err(SendError::Message(error)) => {
                assert!(len > MAX_MEDIUM || len as u64 > SEGMENT, "{error}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Takes `n` bytes of the input; fewer at its end.
fn take<'a>(data: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (taken, rest) = data.split_at(n.min(data.len()));
    *data = rest;
    taken
}

fn number(data: &mut &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let taken = take(data, 4);
    bytes[..taken.len()].copy_from_slice(taken);
    u64::from_le_bytes(bytes)
}

fn class(byte: u8) -> MessageClass {
    if byte & 1 == 0 {
        MessageClass::Request
    } else {
        MessageClass::Reply
    }
}

/// One step.
///
/// The first byte says which, its high half is a parameter.
fn step(n: &mut Neighbors, handlers: &mut Handlers, data: &mut &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    *data = rest;
    let (what, parameter) = (first & 15, first >> 4);
    match what {
        // Writes on in a ring to us, whole units.
        0..=3 => {
            let class = class(parameter);
            let bytes = take(data, usize::from(parameter >> 1) * 16 + 16);
            let (_, ring) = n.layout.ring(US, THEM, class);
            let at = n.at[class as usize];
            n.scribble(ring as u64 + at, bytes);
            let next = at + bytes.len().next_multiple_of(16) as u64;
            n.at[class as usize] = next % RING_BYTES as u64;
        }
        // Goes on at another place of a ring to us, without writing.
        4 => n.at[usize::from(parameter & 1)] = number(data) % RING_BYTES as u64 / 16 * 16,
        // Says how far it has read what we wrote.
        5 | 6 => {
            let (position, _) = n.layout.ring(THEM, US, class(parameter));
            n.scribble(position as u64, &(number(data) as u32).to_le_bytes());
        }
        // Says how far we have read what it wrote.
        7 => {
            let (position, _) = n.layout.ring(US, THEM, class(parameter));
            n.scribble(position as u64, &(number(data) as u32).to_le_bytes());
        }
        // Writes anything anywhere.
        8 => {
            let offset = number(data) % n.layout.bytes() as u64;
            let bytes = take(data, usize::from(parameter) * 4 + 1);
            n.scribble(offset, bytes);
        }
        9 => n.send(usize::from(parameter) * 16, false),
        10 => n.send(number(data) as usize % (MAX_MEDIUM + 16), false),
        11 => n.send(number(data) as usize % (SEGMENT as usize + 16), true),
        _ => {
            if !handlers.broken {
                // After a peer has broken the rules the engine polls it no more.
                n.us.poll(handlers);
            }
        }
    }
}

pub(crate) fn run(data: &[u8]) {
    let Some((first, mut data)) = data.split_first() else {
        return;
    };
    let mode = if first & 1 == 0 {
        ThreadMode::Seq
    } else {
        ThreadMode::Par
    };
    let mut n = neighbors(mode);
    let mut handlers = Handlers::default();
    for _ in 0..MOST_STEPS {
        step(&mut n, &mut handlers, &mut data);
    }
    if !handlers.broken {
        n.us.poll(&mut handlers);
    }
}
