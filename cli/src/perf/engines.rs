//! Engines beside the job's own: any number in a process, of either thread mode, over the same
//! conduit.

use argonet::{AmError, HandlerIndex, JobRank, SegmentOffset};
use argonet_am::record::Short;
use argonet_am::{HandlerTable, Message, Payload};
use argonet_boot::{BootError, Bootstrap, Key, WaitFor, Waiting};
use argonet_conduit::ThreadMode;
use argonet_conduit::smp::{Barrier, Smp, SmpConfig};
use argonet_engine::{
    Engine, EngineConfig, Internals, Side, Target, ThreadCtx, Transfer, WaitMode, WaitPolicy,
};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use argonet_start::StartError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Bytes of a segment.
const SEGMENT: u64 = 64 << 10;

/// Operations with a handle at once.
///
/// There are none: this conduit completes at injection.
const OPERATIONS: u32 = 64;

/// Identity of an engine that no launcher started.
struct Identity {
    rank: JobRank,
    size: u32,
}

impl Bootstrap for Identity {
    fn rank(&self) -> JobRank {
        self.rank
    }
    fn size(&self) -> u32 {
        self.size
    }
    fn job_id(&self) -> u64 {
        0
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
    fn abort(&self, code: u8, message: &str) -> ! {
        eprintln!("argonet perf: {message}");
        std::process::exit(code.max(1).into())
    }
}

/// The memory that the engines of some ranks share.
pub(crate) struct Memory {
    rings: OwnedFd,
    segments: OwnedFd,
    ranks: u32,
}

impl Memory {
    /// Takes memory for so many ranks.
    pub(crate) fn create(ranks: u32) -> std::io::Result<Self> {
        let segments = SegmentFile::create(ranks, SEGMENT, PageKind::Normal);
        Ok(Self {
            rings: memfd_create(c"argonet-perf-rings", MemfdFlags::CLOEXEC)?,
            segments: segments.map_err(std::io::Error::other)?.into_fd(),
            ranks,
        })
    }

    /// The files, for another process to open.
    pub(crate) fn files(&self) -> [BorrowedFd<'_>; 2] {
        [self.rings.as_fd(), self.segments.as_fd()]
    }

    /// The same memory in another process.
    pub(crate) fn from_files([rings, segments]: [OwnedFd; 2], ranks: u32) -> Self {
        Self {
            rings,
            segments,
            ranks,
        }
    }
}

/// An engine with three handlers, and what they count.
pub(crate) struct Station {
    pub(crate) engine: Engine<Smp>,
    _segment: OwnSegment,
    /// A request that is answered.
    pub(crate) ask: HandlerIndex,
    /// A request that is not.
    pub(crate) one_way: HandlerIndex,
    requests: Arc<AtomicU64>,
    replies: Arc<AtomicU64>,
}

/// Counts without a locked instruction: one thread at a time runs handlers of a station here.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Station {
    /// The engine of one rank over memory of its own or of several processes.
    pub(crate) fn new(
        memory: &Memory,
        rank: JobRank,
        mode: ThreadMode,
        barrier: Barrier,
    ) -> argonet::Result<Self> {
        let ranks = memory.ranks;
        let failed = |cause| StartError::Rings {
            rank: argonet::Rank(rank.0),
            ranks,
            cause,
        };
        let (requests, replies) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut handlers = HandlerTable::default();
        let internals = Internals::register(&mut handlers)?;
        let answered = Arc::clone(&replies);
        let answer = handlers.register("answer", Box::new(move |_| count(&answered)))?;
        let asked = Arc::clone(&requests);
        let ask = handlers.register(
            "ask",
            Box::new(move |delivery| {
                count(&asked);
                let sent = delivery.reply(&Message {
                    handler: answer,
                    args: &[1],
                    payload: Payload::None,
                });
                debug_assert!(sent.is_ok());
            }),
        )?;
        let unanswered = Arc::clone(&requests);
        let one_way = handlers.register("one-way", Box::new(move |_| count(&unanswered)))?;

        let fd = memory.segments.try_clone().map_err(failed)?;
        let file = SegmentFile::from_fd(fd, ranks, SEGMENT, PageKind::Normal)?;
        let directory = Directory::new(file, rank)?;
        let segment = OwnSegment::attach(&directory, SEGMENT)?;
        let segment_len: argonet_conduit::SegmentLen = Arc::new(|_| SEGMENT);
        let config = SmpConfig {
            rank,
            first: JobRank(0),
            ranks,
            mode,
            barrier,
            directory: Arc::clone(&directory),
            registered: handlers.registered(),
            segment_len: Arc::clone(&segment_len),
        };
        let conduit = Smp::new(memory.rings.as_fd(), config).map_err(failed)?;
        let start = Instant::now();
        let config = EngineConfig {
            boot: Arc::new(Identity { rank, size: ranks }),
            conduit,
            handlers,
            internals,
            directory,
            segment_len,
            segment_base: Arc::new(|_| 0),
            // Everybody has a processor.
            policy: WaitPolicy::for_host(1, 1),
            wait: WaitMode::Auto,
            stall: None,
            mode,
            operations: OPERATIONS,
            clock: Box::new(move || start.elapsed()),
        };
        // SAFETY: the engine stays in the station, whose calls keep the contract; a mode of one
        // thread is measured with one.
        #[allow(unsafe_code)]
        let engine = unsafe { Engine::new(config) };
        Ok(Self {
            engine,
            _segment: segment,
            ask,
            one_way,
            requests,
            replies,
        })
    }

    /// A context for the calling thread.
    pub(crate) fn context() -> ThreadCtx {
        ThreadCtx::uncounted()
    }

    /// Requests that have been handled here.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Replies that have been handled here.
    pub(crate) fn replies(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }

    /// Sends a short request.
    #[inline(always)]
    pub(crate) fn send(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        handler: HandlerIndex,
        n: u32,
    ) -> Result<(), AmError> {
        // One argument always fits.
        match Short::pack(handler, &[n]) {
            Some(short) => self.engine.request_short(ctx, to, short),
            None => unreachable!("a short with one argument"),
        }
    }

    /// Polls once.
    #[inline(always)]
    pub(crate) fn poll(&self, ctx: &ThreadCtx) -> Result<usize, AmError> {
        self.engine.poll(ctx)
    }

    /// Polls until `done`.
    #[inline(always)]
    pub(crate) fn wait_until(
        &self,
        ctx: &ThreadCtx,
        done: impl FnMut() -> bool,
    ) -> Result<(), AmError> {
        self.engine
            .wait_until(ctx, Waiting::new(WaitFor::Condition), done)
    }

    /// Puts 8 bytes to the start of a segment.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn put(&self, ctx: &ThreadCtx, to: JobRank, value: u64) -> argonet::Result<()> {
        let put = Transfer {
            target: Target::Segment {
                rank: to,
                offset: SegmentOffset(0),
            },
            side: Side::Put((&raw const value).cast()),
            len: 8,
        };
        // SAFETY: the value is readable for 8 bytes until the call, and so the transfer, has ended.
        Ok(unsafe { self.engine.transfer(ctx, put) }?)
    }

    /// Gets 8 bytes from there.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn get(&self, ctx: &ThreadCtx, from: JobRank) -> argonet::Result<u64> {
        let mut value = 0u64;
        let get = Transfer {
            target: Target::Segment {
                rank: from,
                offset: SegmentOffset(0),
            },
            side: Side::Get((&raw mut value).cast()),
            len: 8,
        };
        // SAFETY: the value is writable for 8 bytes until the call, and so the transfer, has ended.
        unsafe { self.engine.transfer(ctx, get) }?;
        Ok(value)
    }
}
