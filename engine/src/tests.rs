//! The engine over a conduit that completes late, refuses, and completes in any order.
#![allow(unsafe_code)]

use super::*;
use ::core::time::Duration;
use argonet_am::{AmError, HandlerTable, Message};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_boot::{BootError, Bootstrap, Key};
use argonet_conduit::{
    Capabilities, Completion, Conduit, Injected, Limits, OpToken, PrepareRequest, Prepared,
    SMALL_PUT, SendError, Sink, ThreadMode,
};
use argonet_event::{Category, CategoryMask, Event, EventError};
use argonet_segment::{Directory, PageKind, SegmentFile};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::sync::Arc;

mod background;
mod broadcast;
mod collective;
mod deferred;
mod named;
mod outgoing;
mod post;
mod shared_memory;
mod split;

/// One rank of a job.
struct Member {
    rank: JobRank,
    size: u32,
}

impl Bootstrap for Member {
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
        panic!("aborted: {message}")
    }
}

struct Pending {
    op: OpToken,
    /// Completions that are still to be reported.
    parts: Vec<Completion>,
    /// The transfer's own memory, segment offset, length, whether it is a put.
    copy: Option<(usize, u64, usize, bool)>,
}

/// Completes parts when `allow` permits it, in the order of its `picks`.
struct Late {
    memory: Mutex<Vec<u8>>,
    pending: Mutex<Vec<Pending>>,
    /// Operations that it holds at most.
    room: usize,
    /// Completions that a poll may report, and which of the pending operations comes next.
    script: Mutex<Vec<usize>>,
}

impl Late {
    fn new(room: usize) -> Self {
        Self {
            memory: Mutex::new(vec![0; 4096]),
            pending: Mutex::default(),
            room,
            script: Mutex::default(),
        }
    }

    /// Lets polls report `picks.len()` parts.
    fn allow(&self, picks: &[usize]) {
        self.script.lock().extend_from_slice(picks);
    }

    fn add(
        &self,
        op: OpToken,
        at: usize,
        offset: u64,
        len: usize,
        put: bool,
    ) -> Result<Injected, SendError> {
        let mut pending = self.pending.lock();
        if pending.len() == self.room {
            return Err(SendError::Full);
        }
        let parts = if put {
            vec![Completion::Local, Completion::Remote]
        } else {
            vec![Completion::Remote]
        };
        if put && len <= SMALL_PUT {
            let place = offset as usize..offset as usize + len;
            // SAFETY: the caller's source is there during the call.
            let source = unsafe { std::slice::from_raw_parts(at as *const u8, len) };
            self.memory.lock()[place].copy_from_slice(source);
            pending.push(Pending {
                op,
                parts: vec![Completion::Remote],
                copy: None,
            });
            return Ok(Injected::Local);
        }
        pending.push(Pending {
            op,
            parts,
            copy: Some((at, offset, len, put)),
        });
        Ok(Injected::Pending)
    }
}

impl Conduit for Late {
    fn name(&self) -> &'static str {
        "late"
    }
    fn limits(&self) -> Limits {
        Limits {
            args: 16,
            medium_request: 64,
            medium_reply: 64,
            long: 64,
        }
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            put: true,
            get: true,
            ..Capabilities::default()
        }
    }
    fn request(&self, _: JobRank, _: &Message<'_>) -> Result<(), SendError> {
        Err(SendError::Full)
    }
    fn prepare(&self, _: &PrepareRequest) -> Result<Prepared, SendError> {
        Err(SendError::Full)
    }
    fn commit(&self, _: Prepared, _: HandlerIndex, _: &[u32], _: usize) {}
    fn cancel(&self, _: Prepared) {}
    unsafe fn put(
        &self,
        _to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        self.add(op, src as usize, offset.0, len, true)
    }
    unsafe fn get(
        &self,
        _from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        self.add(op, dst as usize, offset.0, len, false)
    }
    fn poll(&self, sink: &mut dyn Sink) -> usize {
        let picks = std::mem::take(&mut *self.script.lock());
        let mut reported = 0;
        for pick in picks {
            let mut pending = self.pending.lock();
            if pending.is_empty() {
                break;
            }
            let i = pick % pending.len();
            let part = pending[i].parts.remove(0);
            if let Some((at, offset, len, put)) = pending[i].copy.take() {
                let mut memory = self.memory.lock();
                let side = &mut memory[offset as usize..offset as usize + len];
                // SAFETY: the tests keep their buffers until completion, as `start` demands.
                unsafe {
                    if put {
                        side.copy_from_slice(std::slice::from_raw_parts(at as *const u8, len));
                    } else {
                        std::slice::from_raw_parts_mut(at as *mut u8, len).copy_from_slice(side);
                    }
                }
            }
            let op = pending[i].op;
            if pending[i].parts.is_empty() {
                pending.remove(i);
            }
            drop(pending);
            sink.completed(op, part);
            reported += 1;
        }
        reported
    }
    fn has_work(&self) -> bool {
        !self.pending.lock().is_empty()
    }
    fn sleep(&self, _: Option<Duration>, _: u32) {}
}

/// Rank 0 of a job of two; the other rank is memory inside the conduit.
fn engine(room: usize, operations: u32, mode: ThreadMode) -> Engine<Late> {
    let alone = Member {
        rank: JobRank(0),
        size: 2,
    };
    build(alone, Late::new(room), operations, mode)
}

fn build<C: Conduit>(member: Member, conduit: C, operations: u32, mode: ThreadMode) -> Engine<C> {
    let file = SegmentFile::create(member.size, 4096, PageKind::Normal).unwrap();
    let mut handlers = HandlerTable::default();
    let internals = Internals::register(&mut handlers).unwrap();
    let part = crate::internal::RPC_RESULT_PART;
    let got = handlers.register_internal(part, "part", Box::new(outgoing::got));
    got.unwrap();
    // A clock that moves by a second whenever it is read.
    let now = Mutex::new(Duration::ZERO);
    let config = EngineConfig {
        directory: Directory::new(file, member.rank).unwrap(),
        boot: Arc::new(member),
        conduit,
        handlers,
        internals,
        segment_len: Arc::new(|_| 0),
        segment_base: Arc::new(|_| 0),
        policy: WaitPolicy {
            spins: 1,
            yields: 1,
            room: 1,
            gives_way: false,
        },
        wait: WaitMode::Auto,
        stall: None,
        mode,
        operations,
        clock: Box::new(move || {
            let mut now = now.lock();
            *now += Duration::from_secs(1);
            *now
        }),
    };
    // SAFETY: tests of this module keep the contract.
    unsafe { Engine::new(config) }
}

/// Ranks that forked each other may have their segments at the same addresses, so that jobs show
/// little of this.
#[test]
fn a_delta_leads_from_the_owners_address_to_the_one_here() {
    let engine = engine(1, 1, ThreadMode::Seq);
    for rank in [0, 1].map(JobRank) {
        let here = engine.directory().span_base(rank).unwrap();
        // The owners say that their segments begin at 0.
        assert_eq!(engine.segment_delta(rank), here.addr().get() as isize);
        assert_eq!(engine.offset_of(rank, 77), SegmentOffset(77));
    }
    // Nothing is attached.
    assert_eq!(*engine.mapped_deltas().unwrap(), [None; 2]);
}

/// C takes an entry of 0 for no way, and the rank itself is at no distance.
#[test]
fn no_distance_is_a_way_too() {
    assert_eq!(
        [None, Some(0), Some(-4096)].map(mapped_entry),
        [MAPPED_NONE, 1, -4095]
    );
}

fn put(src: &[u8], offset: u64) -> Transfer {
    Transfer {
        target: Target::Segment {
            rank: JobRank(1),
            offset: SegmentOffset(offset),
        },
        side: Side::Put(src.as_ptr()),
        len: src.len(),
    }
}

fn get(dst: &mut [u8], offset: u64) -> Transfer {
    Transfer {
        target: Target::Segment {
            rank: JobRank(1),
            offset: SegmentOffset(offset),
        },
        side: Side::Get(dst.as_mut_ptr()),
        len: dst.len(),
    }
}

fn start(engine: &Engine<Late>, ctx: &ThreadCtx, transfer: Transfer) -> Event {
    // SAFETY: every test keeps its buffers until it has waited.
    unsafe { engine.start(ctx, transfer, Injection::Blocking) }.unwrap()
}

// spec P3: completions arrive by handle, and waiting is polling.
#[test]
fn local_and_remote_completion_are_separate() {
    let (engine, ctx) = (engine(8, 100, ThreadMode::Seq), ThreadCtx::uncounted());
    let source = [3; SMALL_PUT + 1];
    let root = start(&engine, &ctx, put(&source, 10));
    let local = engine.leaf(root, Category::Lc).unwrap();
    assert!(!engine.test(&ctx, root).unwrap());
    engine.conduit().allow(&[0]);
    engine.wait(&ctx, local).unwrap();
    assert!(!engine.test(&ctx, root).unwrap());
    engine.conduit().allow(&[0]);
    engine.wait(&ctx, root).unwrap();
    assert_eq!(engine.conduit().memory.lock()[10..][..source.len()], source);
    assert!(matches!(
        engine.test(&ctx, root),
        Err(OpError::Event(EventError::Stale(_)))
    ));
}

/// The first of these calls learns it, and no other operation is blamed.
#[test]
fn an_operation_that_a_loss_has_ended_fails_once() {
    let (engine, ctx) = (engine(99, 100, ThreadMode::Seq), ThreadCtx::uncounted());
    let mut places = [[0; 8]; 4];
    let events = places
        .each_mut()
        .map(|dst| start(&engine, &ctx, get(dst, 0)));
    let [waited, tested, peeked, kept] = events;
    let is_lost = |outcome: Result<(), OpError>| {
        matches!(
            outcome,
            Err(OpError::Am(AmError::PeerLost {
                peer: JobRank(1),
                ..
            }))
        )
    };
    for event in [waited, tested, peeked] {
        let op = OpToken {
            handle: event.raw(),
            implicit: false,
        };
        engine.end_by_loss(JobRank(1), op, Completion::Remote, 1);
    }
    assert!(is_lost(engine.wait(&ctx, waited)));
    assert!(is_lost(engine.test(&ctx, tested).map(drop)));
    assert!(is_lost(engine.peek(&ctx, peeked).map(drop)));
    let is_stale = |event| matches!(engine.peek(&ctx, event), Err(OpError::Event(_)));
    assert!([waited, tested, peeked].into_iter().all(is_stale));
    assert!(!engine.peek(&ctx, kept).unwrap());
    engine.complete(
        OpToken {
            handle: kept.raw(),
            implicit: false,
        },
        Completion::Remote,
        1,
    );
    engine.wait(&ctx, kept).unwrap();
}

#[test]
fn a_peek_takes_completed_events_and_does_not_poll() {
    let (engine, ctx) = (engine(99, 100, ThreadMode::Seq), ThreadCtx::uncounted());
    let source = [1, 2, 3];
    let one = start(&engine, &ctx, put(&source, 0));
    let mut two = [one, start(&engine, &ctx, put(&source, 8))];
    // SAFETY: the source lives to the end.
    unsafe { engine.start_implicit(&ctx, put(&source, 16), Injection::Blocking) }.unwrap();
    engine.conduit().allow(&[0; 6]);
    assert!(!engine.peek(&ctx, one).unwrap());
    assert!(!engine.peek_some(&ctx, &mut two).unwrap());
    assert!(!engine.peek_all(&ctx, &mut two).unwrap());
    assert!(!engine.peek_implicit(&ctx, Category::Put.mask()).unwrap());
    engine.poll(&ctx).unwrap();
    assert!(engine.peek(&ctx, one).unwrap());
    assert!(engine.peek_all(&ctx, &mut two[1..]).unwrap());
    assert!(two[1].is_done());
    assert!(engine.peek_implicit(&ctx, CategoryMask::ALL).unwrap());
    let stale = engine.peek_some(&ctx, &mut two);
    assert!(matches!(stale, Err(OpError::Event(EventError::Stale(event))) if event == one));
    assert!(engine.peek(&ctx, Event::NO_OP).is_err());
    ctx.enter(Context::Handler);
    assert!(engine.peek_all(&ctx, &mut two[1..]).is_err());
}

#[test]
fn at_the_limit_immediate_says_so_and_one_thread_ends_the_job() {
    let (engine, ctx) = (engine(99, 3, ThreadMode::Seq), ThreadCtx::uncounted());
    let source = [7];
    let events: Vec<Event> = (0..3)
        .map(|i| start(&engine, &ctx, put(&source, i)))
        .collect();
    // SAFETY: the source lives to the end.
    let refused = unsafe { engine.start(&ctx, put(&source, 9), Injection::Immediate) };
    assert!(
        matches!(
            refused,
            Err(OpError::NoHandle {
                rank: JobRank(0),
                ..
            })
        ),
        "{refused:?}"
    );
    let fatal = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        start(&engine, &ctx, put(&source, 9))
    }));
    let message = *fatal.unwrap_err().downcast::<String>().unwrap();
    assert!(
        message.contains("rank 0") && message.contains('3'),
        "{message}"
    );
    // Implicit operations need no handle each.
    // SAFETY: as above.
    unsafe { engine.start_implicit(&ctx, put(&source, 9), Injection::Blocking) }.unwrap();
    engine.conduit().allow(&[0; 8]);
    let mut events = events;
    engine.wait_all(&ctx, &mut events).unwrap();
    engine.wait_implicit(&ctx, CategoryMask::ALL).unwrap();
}

#[test]
fn several_threads_wait_for_a_handle_before_the_job_ends() {
    let (engine, ctx) = (engine(99, 1, ThreadMode::Par), ThreadCtx::uncounted());
    let source = [7];
    let first = start(&engine, &ctx, put(&source, 0));
    let fatal = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        start(&engine, &ctx, put(&source, 1))
    }));
    // The clock moves a second a look, so ten looks were taken.
    let message = *fatal.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("10000 ms"), "{message}");
    engine.conduit().allow(&[0, 0]);
    engine.wait(&ctx, first).unwrap();
    let second = start(&engine, &ctx, put(&source, 1));
    engine.conduit().allow(&[0, 0]);
    engine.wait(&ctx, second).unwrap();
}

#[test]
fn no_room_at_the_conduit_gives_the_handle_back() {
    let (engine, ctx) = (engine(1, 2, ThreadMode::Seq), ThreadCtx::uncounted());
    let source = [7];
    let first = start(&engine, &ctx, put(&source, 0));
    for _ in 0..10 {
        // SAFETY: the source lives to the end.
        let refused = unsafe { engine.start(&ctx, put(&source, 1), Injection::Immediate) };
        assert!(matches!(
            refused,
            Err(OpError::Am(argonet_am::AmError::Full { .. }))
        ));
    }
    engine.conduit().allow(&[0, 0]);
    // It waits for room, polling, and gets it.
    let second = start(&engine, &ctx, put(&source, 1));
    engine.wait(&ctx, first).unwrap();
    engine.conduit().allow(&[0, 0]);
    engine.wait(&ctx, second).unwrap();
}

#[test]
fn an_access_region_is_one_event() {
    let (engine, ctx) = (engine(99, 100, ThreadMode::Seq), ThreadCtx::uncounted());
    let (source, mut target) = ([9u8; 4], [0u8; 4]);
    engine.begin_region(&ctx).unwrap();
    assert!(engine.begin_region(&ctx).is_err(), "regions do not nest");
    // SAFETY: the buffers live to the end.
    unsafe {
        engine
            .start_implicit(&ctx, put(&source, 0), Injection::Blocking)
            .unwrap();
        engine
            .start_implicit(&ctx, get(&mut target, 0), Injection::Blocking)
            .unwrap();
    }
    assert!(
        engine.wait_implicit(&ctx, CategoryMask::ALL).is_err(),
        "a region is open"
    );
    let region = engine.end_region(&ctx).unwrap();
    assert!(
        engine.test_implicit(&ctx, CategoryMask::ALL).unwrap(),
        "they count for the region"
    );
    engine.conduit().allow(&[0]);
    assert!(!engine.test(&ctx, region).unwrap());
    engine.conduit().allow(&[0]);
    engine.wait(&ctx, region).unwrap();
    assert_eq!(target, source);
    engine.begin_region(&ctx).unwrap();
    assert_eq!(
        engine.end_region(&ctx).unwrap(),
        Event::DONE,
        "nothing was started"
    );
}

#[test]
fn outside_every_segment_and_inside_handlers_it_is_refused() {
    let (engine, ctx) = (engine(9, 9, ThreadMode::Seq), ThreadCtx::uncounted());
    let missing = Transfer {
        target: Target::Segment {
            rank: JobRank(2),
            offset: SegmentOffset(0),
        },
        side: Side::Put([0u8; 1].as_ptr()),
        len: 1,
    };
    // SAFETY: it is refused.
    let refused = unsafe { engine.start(&ctx, missing, Injection::Blocking) };
    assert!(matches!(
        refused,
        Err(OpError::Am(argonet_am::AmError::NoSuchRank { .. }))
    ));
    ctx.enter(Context::Handler);
    // SAFETY: it is refused.
    let refused = unsafe { engine.start(&ctx, put(&[1], 0), Injection::Blocking) };
    assert!(matches!(
        refused,
        Err(OpError::Am(argonet_am::AmError::Restricted { .. }))
    ));
    assert!(engine.poll(&ctx).is_err());
    assert!(engine.barrier(&ctx, BarrierKind::Client).is_err());
}

proptest! {
    /// In any order of completions, every event completes once, and the data is there.
    #[test]
    fn any_order_of_completions(
        lens in prop::collection::vec(1usize..40, 1..60),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 200),
        implicit in any::<u64>(),
    ) {
        let (engine, ctx) = (engine(1000, 1000, ThreadMode::Seq), ThreadCtx::uncounted());
        let sources: Vec<Vec<u8>> =
            lens.iter().enumerate().map(|(i, &len)| vec![i as u8 + 1; len]).collect();
        let mut events = Vec::new();
        for (i, source) in sources.iter().enumerate() {
            let transfer = put(source, i as u64 * 64);
            if implicit >> i & 1 != 0 {
                // SAFETY: the sources live to the end.
                unsafe { engine.start_implicit(&ctx, transfer, Injection::Blocking) }.unwrap();
            } else {
                events.push(start(&engine, &ctx, transfer));
            }
        }
        let picks: Vec<usize> = picks.iter().map(|i| i.index(1000)).collect();
        engine.conduit().allow(&picks);
        let mut some = events.clone();
        if !some.is_empty() {
            engine.wait_some(&ctx, &mut some).unwrap();
        }
        engine.conduit().allow(&vec![0; 200]);
        engine.wait_all(&ctx, &mut some).unwrap();
        engine.wait_implicit(&ctx, CategoryMask::ALL).unwrap();
        prop_assert!(some.iter().all(|event| event.is_done()));
        let memory = engine.conduit().memory.lock();
        for (i, source) in sources.iter().enumerate() {
            prop_assert_eq!(&memory[i * 64..i * 64 + source.len()], &source[..]);
        }
    }
}
