//! Several threads of a rank.

use super::super::lock::taken;
use super::*;

/// Threads whose peers differ share no lock, so none waits for another.
#[test]
fn threads_on_different_classes_share_no_lock() {
    let pair = pair_for(ThreadMode::Par);
    let [a, b] = &pair.ranks;
    let source = [7_u8; 64];
    let talk = |to: JobRank| {
        let mut log = Log::default();
        for i in 0..1000 {
            while a.request(to, &message(&[i], Payload::None)).is_err() {
                [a, b][to.index()].poll(&mut log);
            }
            // SAFETY: the source lives as long as the test; smp is done with it on return.
            let put = unsafe { a.put(to, SegmentOffset(0), source.as_ptr(), 64, OpToken::NONE) };
            put.unwrap();
        }
        taken::take()
    };
    let [own, other] = std::thread::scope(|scope| {
        let threads = [JobRank(0), JobRank(1)].map(|to| scope.spawn(move || talk(to)));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!((own.len(), other.len()), (1, 1), "one lock for a class");
    assert_eq!(own.intersection(&other).count(), 0);
}

/// A message of a thread to its own rank is handled when `poll_own` returns, also if another thread
/// has begun to take from the class before.
#[test]
fn messages_to_oneself_are_taken_at_once() {
    for mode in [ThreadMode::Seq, ThreadMode::Par] {
        let pair = pair_for(mode);
        let a = &pair.ranks[0];
        let threads: u32 = if mode == ThreadMode::Par { 4 } else { 1 };
        let handled: Vec<AtomicU32> = (0..threads * 500).map(|_| AtomicU32::new(0)).collect();
        let handled = handled.as_slice();
        std::thread::scope(|scope| {
            let one = |thread: u32| {
                scope.spawn(move || {
                    for i in 0..500 {
                        let mark = thread * 500 + i;
                        a.request(JobRank(0), &message(&[mark], Payload::None))
                            .unwrap();
                        let mut sink = Shared(handled);
                        a.poll_own(&mut sink);
                        let times = handled[mark as usize].load(Ordering::Relaxed);
                        assert_eq!(times, 1, "{mark} of {mode:?}");
                    }
                })
            };
            let threads: Vec<_> = (0..threads).map(one).collect();
            // ThreadSanitizer sees a join, but not the end of a scope.
            threads.into_iter().for_each(|t| t.join().unwrap());
        });
        let once = |times: &AtomicU32| times.load(Ordering::Relaxed) == 1;
        assert!(handled.iter().all(once), "{mode:?}: {handled:?}");
    }
}

/// How often a message with this first argument was delivered, to any thread.
struct Shared<'a>(&'a [AtomicU32]);

impl Sink for Shared<'_> {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        self.0[delivery.arg(0) as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        panic!("{op:?} {completion:?}: smp completes at injection");
    }

    fn on_error(&mut self, error: AmError) {
        panic!("{error}");
    }
}

/// Two threads send to their own rank and two poll for it.
///
/// Both sides have the same mapping here, so that ThreadSanitizer sees the shared memory: rings,
/// payloads, locks of classes.
#[test]
fn threads_share_classes_to_themselves() {
    const EACH: u32 = 20_000;
    const SENDERS: u32 = 2;
    let pair = pair_for(ThreadMode::Par);
    let a = &pair.ranks[0];
    let handled: Vec<AtomicU32> = (0..SENDERS * EACH).map(|_| AtomicU32::new(0)).collect();
    let left = AtomicU32::new(SENDERS * EACH);
    let (handled, left) = (handled.as_slice(), &left);
    let send = |thread: u32| {
        for i in 0..EACH {
            let mark = thread * EACH + i;
            // Copies this long are made by memcpy, where ThreadSanitizer sees them.
            let bytes = [mark as u8; 200];
            let payload = match i % 8 {
                0 => Payload::Medium(SharedBytes::from_slice(&bytes)),
                _ => Payload::None,
            };
            while a
                .request(JobRank(0), &message(&[mark, 1, 2, 3, 4], payload))
                .is_err()
            {
                std::thread::yield_now();
            }
        }
    };
    let poll = || {
        let mut sink = Emptying(Shared(handled), left);
        while left.load(Ordering::Relaxed) > 0 {
            if a.poll(&mut sink) == 0 {
                std::thread::yield_now();
            }
        }
    };
    std::thread::scope(|scope| {
        let mut threads = vec![scope.spawn(poll), scope.spawn(poll)];
        threads.extend((0..SENDERS).map(|thread| scope.spawn(move || send(thread))));
        // ThreadSanitizer sees a join, but not the end of a scope.
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    let once = |times: &AtomicU32| times.load(Ordering::Relaxed) == 1;
    assert!(handled.iter().all(once));
}

/// Counts down, and looks at payloads.
struct Emptying<'a>(Shared<'a>, &'a AtomicU32);

impl Sink for Emptying<'_> {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        let bytes = delivery.payload().to_vec();
        assert!(bytes.iter().all(|byte| *byte == delivery.arg(0) as u8));
        self.0.deliver(delivery);
        self.1.fetch_sub(1, Ordering::Relaxed);
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        self.0.completed(op, completion);
    }

    fn on_error(&mut self, error: AmError) {
        self.0.on_error(error);
    }
}
