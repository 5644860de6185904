//! Ranks of one job in one process, over the smp conduit.

use crate::{
    BoundPlace, Engine, EngineConfig, Injection, Internals, Long, PeerAddress, Side, Target,
    ThreadCtx, Transfer, WaitMode, WaitPolicy,
};
use argonet_am::{
    AmError, Category, Delivery, Endpoints, HandlerTable, Message, MessageClass, Payload,
};
use argonet_base::{HandlerIndex, JobRank};
use argonet_boot::{BootError, Bootstrap, Key};
use argonet_conduit::ThreadMode;
use argonet_conduit::smp::{Barrier, Smp, SmpConfig};
use argonet_event::Event;
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile, SharedBytes, bulk};
use parking_lot::Mutex;
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

const SEGMENT: u64 = 64 << 10;

/// Records the message that it gets; registered on every rank.
pub(crate) const NOTE: HandlerIndex = HandlerIndex(128);
/// Sends its payload back as a long to bound memory for [`NOTE`]: see [`bounce`].
pub(crate) const BOUNCE: HandlerIndex = HandlerIndex(129);
/// Replies with a message for the handler that argument 0 names, with the arguments that follow and
/// its own payload.
pub(crate) const FORGE: HandlerIndex = HandlerIndex(130);
/// Nothing stands there.
pub(crate) const UNREGISTERED: HandlerIndex = HandlerIndex(131);

/// The endpoint with memory.
pub(crate) const ENDPOINT: u32 = 5;

/// A message as a handler saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) source: u32,
    pub(crate) class: MessageClass,
    pub(crate) category: Category,
    pub(crate) args: Vec<u32>,
    pub(crate) address: Option<u64>,
    pub(crate) payload: Vec<u8>,
}

/// The records of a rank's handlers and its boot.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) seen: Mutex<Vec<Seen>>,
    pub(crate) refused: Mutex<Vec<AmError>>,
    pub(crate) aborts: Mutex<Vec<String>>,
}

struct Boot {
    rank: JobRank,
    size: u32,
    notes: Arc<Notes>,
}

impl Bootstrap for Boot {
    fn rank(&self) -> JobRank {
        self.rank
    }
    fn size(&self) -> u32 {
        self.size
    }
    fn job_id(&self) -> u64 {
        1
    }
    fn publish(&self, _: Key, _: &[u8]) -> Result<(), BootError> {
        Ok(())
    }
    fn fence(&self) -> Result<(), BootError> {
        Ok(())
    }
    fn lookup(&self, rank: JobRank, key: Key) -> Result<Vec<u8>, BootError> {
        Err(BootError::NotPublished { rank, key })
    }
    fn started(&self) {}
    fn finalized(&self) {}
    fn abort(&self, _: u8, message: &str) -> ! {
        self.notes.aborts.lock().push(message.to_owned());
        panic!("aborted: {message}")
    }
}

/// Memory that a rank binds.
///
/// All access it through the bulk routine.
pub(crate) struct Memory {
    base: *mut u8,
    len: usize,
    /// Held by a thread that polls for the rank and by one that looks at the memory itself, in
    /// [`Rig::served`].
    ///
    /// The rings order these, but each rank has a mapping of its own of them: ThreadSanitizer does
    /// not know that they are the same memory.
    turn: Mutex<()>,
}

impl Memory {
    fn new(len: usize) -> Self {
        let bytes = vec![0xee_u8; len].into_boxed_slice();
        Self {
            base: Box::into_raw(bytes).cast(),
            len,
            turn: Mutex::new(()),
        }
    }

    pub(crate) fn address(&self) -> u64 {
        self.base.addr() as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn read(&self, at: usize, len: usize) -> Vec<u8> {
        assert!(at + len <= self.len);
        let mut bytes = vec![0; len];
        let _turn = self.turn.lock();
        // SAFETY: it lies inside, as was just checked.
        unsafe { bulk::copy(bytes.as_mut_ptr(), self.base.add(at), len) };
        bytes
    }

    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len);
        let _turn = self.turn.lock();
        // SAFETY: it lies inside, as was just checked.
        unsafe { bulk::copy(self.base.add(at), bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let bytes = core::ptr::slice_from_raw_parts_mut(self.base, self.len);
        // SAFETY: `new` made it of such a box; the engines that reached it are gone.
        drop(unsafe { Box::from_raw(bytes) });
    }
}

pub(crate) struct Rank {
    pub(crate) engine: Arc<Engine<Smp>>,
    pub(crate) notes: Arc<Notes>,
    _segment: OwnSegment,
}

/// A job whose ranks all have memory at [`ENDPOINT`].
pub(crate) struct Rig {
    pub(crate) ranks: Vec<Rank>,
    /// Of each rank; dropped after the ranks.
    pub(crate) memory: Vec<Memory>,
    _watchdog: Sender<()>,
}

/// Ends the process if a test lasts forever.
fn watchdog() -> Sender<()> {
    let (alive, dead) = channel();
    std::thread::spawn(move || {
        if dead.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a test of bound memory lasts too long");
            std::process::abort();
        }
    });
    alive
}

/// Numbers below are no addresses but offsets.
const OFFSETS: u64 = 4096;

/// Request: arguments are the address for the reply, or an offset, and then its arguments.
fn bounce(engine: &Engine<Smp>, notes: &Notes, delivery: &mut Delivery<'_>) {
    let args = delivery.args();
    let address = u64::from(args[0]) | u64::from(args[1]) << 32;
    // The request's payload goes back as it is; arguments 2 and 3 say how much of it, again and
    // again.
    let bytes = delivery.payload().to_vec().repeat(args[2] as usize);
    let bytes = &bytes[..args[3] as usize];
    let shared = SharedBytes::from_slice(bytes);
    let at = PeerAddress {
        rank: delivery.source(),
        endpoint: match engine.regions().is_everything(0) {
            true => 0,
            false => ENDPOINT,
        },
        address,
        is_offset: address < OFFSETS,
    };
    let reply = |args| Long {
        handler: NOTE,
        args,
        bytes: shared,
    };
    let sent = engine.bound_long_reply(delivery, at, &reply(&args[4..]));
    if let Err(error) = sent {
        notes.refused.lock().push(error);
    } else {
        let second = engine.bound_long_reply(delivery, at, &reply(&[]));
        notes.refused.lock().extend(second.err());
    }
}

fn forge(delivery: &mut Delivery<'_>) {
    let args = delivery.args();
    let payload = delivery.payload().to_vec();
    let sent = delivery.reply(&Message {
        handler: HandlerIndex(args[0] as u8),
        args: &args[1..],
        payload: Payload::Medium(SharedBytes::from_slice(&payload)),
    });
    assert_eq!(sent, Ok(()));
}

fn handlers(notes: &Arc<Notes>, own: &Arc<OnceLock<Weak<Engine<Smp>>>>) -> HandlerTable {
    let mut table = HandlerTable::default();
    let into = Arc::clone(notes);
    let note = move |delivery: &mut Delivery<'_>| {
        into.seen.lock().push(Seen {
            source: delivery.source().0,
            class: delivery.class(),
            category: delivery.category(),
            args: delivery.args().to_vec(),
            address: delivery.address(),
            payload: delivery.payload().to_vec(),
        });
    };
    let (into, own) = (Arc::clone(notes), Arc::clone(own));
    let bounce = move |delivery: &mut Delivery<'_>| {
        let engine = own.get().and_then(Weak::upgrade).unwrap();
        bounce(&engine, &into, delivery);
    };
    table.register_at(NOTE, "note", Box::new(note)).unwrap();
    table
        .register_at(BOUNCE, "bounce", Box::new(bounce))
        .unwrap();
    table.register_at(FORGE, "forge", Box::new(forge)).unwrap();
    table
}

impl Rig {
    pub(crate) fn new(ranks: u32, mode: ThreadMode, bytes: usize) -> Self {
        let rings = memfd_create(c"bound-rings", MemfdFlags::CLOEXEC).unwrap();
        let segments = SegmentFile::create(ranks, SEGMENT, PageKind::Normal).unwrap();
        let segments = segments.into_fd();
        let memory: Vec<Memory> = (0..ranks).map(|_| Memory::new(bytes)).collect();
        let rank = |rank: u32| {
            let (notes, own) = (Arc::new(Notes::default()), Arc::new(OnceLock::new()));
            let mut handlers = handlers(&notes, &own);
            let internals = Internals::register(&mut handlers).unwrap();
            let fd = segments.try_clone().unwrap();
            let file = SegmentFile::from_fd(fd, ranks, SEGMENT, PageKind::Normal).unwrap();
            let directory = Directory::new(file, JobRank(rank)).unwrap();
            let segment = OwnSegment::attach(&directory, SEGMENT).unwrap();
            let segment_len: argonet_conduit::SegmentLen = Arc::new(|_| SEGMENT);
            let config = SmpConfig {
                rank: JobRank(rank),
                first: JobRank(0),
                ranks,
                mode,
                barrier: Barrier::Sender,
                directory: Arc::clone(&directory),
                registered: handlers.registered(),
                segment_len: Arc::clone(&segment_len),
            };
            let start = Instant::now();
            let config = EngineConfig {
                boot: Arc::new(Boot {
                    rank: JobRank(rank),
                    size: ranks,
                    notes: Arc::clone(&notes),
                }),
                conduit: Smp::new(rings.as_fd(), config).unwrap(),
                handlers,
                internals,
                directory,
                segment_len,
                segment_base: Arc::new(|_| 0),
                policy: WaitPolicy::CROWDED,
                wait: WaitMode::Auto,
                stall: None,
                mode,
                operations: 10_000,
                clock: Box::new(move || start.elapsed()),
            };
            // SAFETY: tests of this module keep the contract.
            let engine = Arc::new(unsafe { Engine::new(config) });
            own.set(Arc::downgrade(&engine)).unwrap();
            let bound = &memory[rank as usize];
            // SAFETY: the rig drops the engines before the memory, which no other code accesses.
            unsafe { engine.regions().bind(ENDPOINT, bound.base, bound.len) }.unwrap();
            Rank {
                engine,
                notes,
                _segment: segment,
            }
        };
        Self {
            ranks: (0..ranks).map(rank).collect(),
            memory,
            _watchdog: watchdog(),
        }
    }

    /// Two ranks with one thread each.
    pub(crate) fn pair(bytes: usize) -> Self {
        Self::new(2, ThreadMode::Seq, bytes)
    }

    /// Where byte `at` of the memory of `rank` lies.
    pub(crate) fn place(&self, rank: usize, at: usize) -> BoundPlace {
        BoundPlace {
            rank: JobRank(rank as u32),
            endpoint: ENDPOINT,
            address: self.memory[rank].address() + at as u64,
        }
    }

    /// Calls `f` while another thread polls for rank 1.
    pub(crate) fn served<R>(&self, f: impl FnOnce(&Engine<Smp>, &ThreadCtx) -> R) -> R {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            let (peer, turns) = (&self.ranks[1].engine, &self.memory[1].turn);
            let server = scope.spawn(move || {
                let ctx = context();
                while !stop.load(Ordering::Relaxed) {
                    let turn = turns.lock();
                    let taken = peer.poll(&ctx).unwrap();
                    drop(turn);
                    if taken == 0 {
                        std::thread::yield_now();
                    }
                }
            });
            let stopping = Stop(stop);
            let result = f(&self.ranks[0].engine, &context());
            drop(stopping);
            // ThreadSanitizer sees a join, but not the end of a scope.
            server.join().expect("the thread that polls");
            result
        })
    }

    /// Polls for all ranks until nothing comes any more or one has ended the job; returns its first
    /// message.
    pub(crate) fn settle(&self) -> Option<String> {
        let ctx = context();
        loop {
            let mut taken = 0;
            for rank in &self.ranks {
                let polled = catch_unwind(AssertUnwindSafe(|| rank.engine.poll(&ctx).unwrap()));
                if let Some(message) = self.aborted() {
                    return Some(message);
                }
                taken += polled.unwrap();
            }
            if taken == 0 {
                return None;
            }
        }
    }

    /// The message that ended the job.
    pub(crate) fn aborted(&self) -> Option<String> {
        { self.ranks.iter() }.find_map(|rank| rank.notes.aborts.lock().first().cloned())
    }

    /// The messages that the handlers of a rank have seen since the last call.
    pub(crate) fn seen(&self, rank: usize) -> Vec<Seen> {
        std::mem::take(&mut self.ranks[rank].notes.seen.lock())
    }
}

/// Stops the polling thread however the test ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn context() -> ThreadCtx {
    ThreadCtx::uncounted()
}

/// Bytes that differ from each other and from those of other seeds.
pub(crate) fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (seed * 37 + i + i / 251) as u8).collect()
}

/// A transfer of bound memory.
pub(crate) fn bound(place: BoundPlace, side: Side, len: usize) -> Transfer {
    let target = Target::Bound(place);
    Transfer { target, side, len }
}

pub(crate) fn put(
    engine: &Engine<Smp>,
    ctx: &ThreadCtx,
    place: BoundPlace,
    source: &[u8],
) -> Event {
    let put = bound(place, Side::Put(source.as_ptr()), source.len());
    // SAFETY: the slice is readable.
    unsafe { engine.start(ctx, put, Injection::Blocking) }.unwrap()
}

pub(crate) fn get(
    engine: &Engine<Smp>,
    ctx: &ThreadCtx,
    place: BoundPlace,
    target: &mut [u8],
) -> Event {
    let get = bound(place, Side::Get(target.as_mut_ptr()), target.len());
    // SAFETY: all tests keep their buffers until the event is complete or the rig is gone.
    unsafe { engine.start(ctx, get, Injection::Blocking) }.unwrap()
}

/// Sends a long to bound memory for a handler.
pub(crate) fn long(
    engine: &Engine<Smp>,
    ctx: &ThreadCtx,
    place: BoundPlace,
    handler: HandlerIndex,
    args: &[u32],
    source: &[u8],
    injection: Injection,
) -> Result<(), crate::OpError> {
    let long = Long {
        handler,
        args,
        bytes: SharedBytes::from_slice(source),
    };
    let target = Target::Bound(place);
    engine.request_long(ctx, Endpoints::PRIMORDIAL, target, &long, injection)
}
