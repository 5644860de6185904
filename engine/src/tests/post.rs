//! Jobs of several engines in one process, whose messages lie in boxes until they are taken, in
//! any order.

use super::*;
use argonet_am::{AmError, Delivery, MessageClass, Payload, Registered, ReplyPort};
use argonet_segment::SharedBytesMut;
use std::time::{Duration as StdDuration, Instant};

struct Letter {
    from: JobRank,
    handler: HandlerIndex,
    args: Vec<u32>,
    payload: Option<Vec<u8>>,
    category: argonet_am::Category,
}

/// The letters of all ranks.
struct Office {
    boxes: Vec<Mutex<Vec<Letter>>>,
    /// Letters that a box holds at most.
    room: usize,
    /// Which letter is taken next.
    random: Mutex<u64>,
}

/// One rank's way to its box and the others'.
pub(super) struct Post {
    rank: JobRank,
    office: Arc<Office>,
    registered: Registered,
    /// How long this rank was to sleep, each time.
    pub(super) sleeps: Mutex<Vec<Duration>>,
}

/// Bytes of a medium.
pub(super) const MEDIUM: usize = 5000;

/// A watchdog for code that must end.
pub(super) const PATIENCE: StdDuration = StdDuration::from_secs(60);

/// A rank, and the context of its only or first thread.
pub(super) struct Rank {
    pub(super) engine: Engine<Post>,
    pub(super) ctx: ThreadCtx,
}

pub(super) fn job(size: u32, room: usize, mode: ThreadMode) -> Vec<Rank> {
    let office = Arc::new(Office {
        boxes: (0..size).map(|_| Mutex::default()).collect(),
        room,
        random: Mutex::new(u64::from(size) << 32 | room as u64 | 1),
    });
    let rank = |rank| Rank {
        engine: build(
            Member {
                rank: JobRank(rank),
                size,
            },
            Post {
                rank: JobRank(rank),
                office: Arc::clone(&office),
                registered: HandlerTable::default().registered(),
                sleeps: Mutex::default(),
            },
            1000,
            mode,
        ),
        ctx: ThreadCtx::uncounted(),
    };
    (0..size).map(rank).collect()
}

impl Rank {
    pub(super) fn poll(&self) -> usize {
        self.engine.poll(&self.ctx).unwrap()
    }

    pub(super) fn test(&self, event: Event) -> bool {
        self.engine.test(&self.ctx, event).unwrap()
    }
}

/// Polls for all ranks in turn until `done`.
pub(super) fn until(ranks: &[Rank], mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        for rank in ranks {
            rank.poll();
        }
        assert!(begun.elapsed() < PATIENCE, "it never ends");
    }
}

/// Polls for all ranks until nothing more happens.
pub(super) fn quiet(ranks: &[Rank]) {
    until(ranks, || ranks.iter().map(Rank::poll).sum::<usize>() == 0);
}

/// The message with which a call of `f` ends the job.
pub(super) fn ended<R>(f: impl FnOnce() -> R) -> String {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    *outcome.err().unwrap().downcast::<String>().unwrap()
}

struct NoReply<'a>(&'a Post);

impl ReplyPort for NoReply<'_> {
    fn reply(&self, to: JobRank, _: &Message<'_>) -> Result<(), AmError> {
        let rank = self.0.rank;
        Err(AmError::ReplyToReply { rank, to })
    }
    fn rank(&self) -> JobRank {
        self.0.rank
    }
    fn registered(&self) -> &Registered {
        &self.0.registered
    }
}

impl Conduit for Post {
    fn name(&self) -> &'static str {
        "post"
    }
    fn limits(&self) -> Limits {
        Limits {
            args: 16,
            medium_request: MEDIUM,
            medium_reply: MEDIUM,
            long: 0,
        }
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        let mut letters = self.office.boxes[to.0 as usize].lock();
        if letters.len() >= self.office.room {
            return Err(SendError::Full);
        }
        letters.push(Letter {
            from: self.rank,
            handler: message.handler,
            args: message.args.to_vec(),
            payload: match message.payload {
                Payload::Medium(bytes) => Some(bytes.to_vec()),
                _ => None,
            },
            category: message.payload.category(),
        });
        Ok(())
    }
    fn prepare(&self, _: &PrepareRequest) -> Result<Prepared, SendError> {
        Err(SendError::Full)
    }
    fn commit(&self, _: Prepared, _: HandlerIndex, _: &[u32], _: usize) {}
    fn cancel(&self, _: Prepared) {}
    unsafe fn put(
        &self,
        _: JobRank,
        _: SegmentOffset,
        _: *const u8,
        _: usize,
        _: OpToken,
    ) -> Result<Injected, SendError> {
        Err(SendError::Full)
    }
    unsafe fn get(
        &self,
        _: JobRank,
        _: SegmentOffset,
        _: *mut u8,
        _: usize,
        _: OpToken,
    ) -> Result<Injected, SendError> {
        Err(SendError::Full)
    }
    fn poll(&self, sink: &mut dyn Sink) -> usize {
        let mut letters = self.office.boxes[self.rank.0 as usize].lock();
        if letters.is_empty() {
            return 0;
        }
        let pick = {
            let mut random = self.office.random.lock();
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            (*random >> 8) as usize % letters.len()
        };
        let mut letter = letters.swap_remove(pick);
        drop(letters);
        let port = NoReply(self);
        sink.deliver(&mut Delivery::new(
            letter.from,
            MessageClass::Request,
            letter.category,
            letter.handler,
            &letter.args,
            letter
                .payload
                .as_deref_mut()
                .map(SharedBytesMut::from_slice),
            SegmentOffset(0),
            &port,
        ));
        1
    }
    fn has_work(&self) -> bool {
        !self.office.boxes[self.rank.0 as usize].lock().is_empty()
    }
    fn sleep(&self, time: Option<Duration>, _: u32) {
        self.sleeps.lock().extend(time);
        std::thread::yield_now();
    }
}
