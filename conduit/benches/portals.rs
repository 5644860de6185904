//! Speeds of the portals conduit over interfaces in software beside those of shared memory: two
//! ranks in one process, a thread and a core each, in alternating chunks.
//!
//! Prints the median of ours and of the reference, the median of the pairwise ratios, and their
//! quartiles.
//!
//! `cargo bench -p argonet-conduit --bench portals -- [--ours] [FILTER]`; with `--ours` nothing is
//! compared, for profiles.

mod support;

use argonet_am::{Message, Payload};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_conduit::{Conduit, Injected, OpToken, SendError};
use argonet_segment::bulk;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::compare::{Case, pin, run, timed};
use support::pairs::{over_portals, over_smp};
use support::{ASK, Count, NOTE, registered};

/// Of a thread's implicit operations.
const TOKEN: OpToken = OpToken {
    handle: 1,
    implicit: true,
};

/// The rank that measures.
struct Measured<'a, C> {
    conduit: &'a C,
    sink: Count,
}

impl<C: Conduit> Measured<'_, C> {
    fn admitted<T>(&mut self, mut send: impl FnMut(&C) -> Result<T, SendError>) -> T {
        loop {
            match send(self.conduit) {
                Ok(sent) => return sent,
                Err(SendError::Full) => {
                    self.conduit.poll_with(&mut self.sink);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn short(&mut self, handler: HandlerIndex) {
        let message = Message {
            handler,
            args: &[1, 2],
            payload: Payload::None,
        };
        self.admitted(|conduit| conduit.request(JobRank(1), &message));
    }

    fn until(&mut self, done: impl Fn(&Count) -> bool) {
        while !done(&self.sink) {
            self.conduit.poll_with(&mut self.sink);
        }
    }

    fn rounds(&mut self, count: u64) -> f64 {
        timed(count, || {
            for _ in 0..count {
                let due = self.sink.messages + 1;
                self.short(ASK);
                self.until(|sink| sink.messages >= due);
            }
        })
    }

    /// Puts, each of which is complete at the target before the next.
    fn puts(&mut self, bytes: &[u8], count: u64) -> f64 {
        let (start, len) = (bytes.as_ptr(), bytes.len());
        timed(count, || {
            for _ in 0..count {
                let due = self.sink.remote + 1;
                // SAFETY: the bytes are there for the call.
                let now = |conduit: &C| unsafe {
                    conduit.put_now(JobRank(1), SegmentOffset(0), start, len)
                };
                let put = |conduit: &C| match now(conduit) {
                    true => Ok(Injected::Complete),
                    // SAFETY: complete before the bytes end.
                    false => unsafe {
                        conduit.put(JobRank(1), SegmentOffset(0), start, len, TOKEN)
                    },
                };
                match self.admitted(put) {
                    Injected::Complete => self.sink.remote = due,
                    Injected::Local | Injected::Pending => self.until(|sink| sink.remote >= due),
                }
            }
        })
    }

    fn flood(&mut self, count: u64, handled: &AtomicU64) -> f64 {
        let until = handled.load(Ordering::Acquire) + count;
        timed(count, || {
            (0..count).for_each(|_| self.short(NOTE));
            self.until(|_| handled.load(Ordering::Acquire) >= until);
        })
    }
}

/// Conduits that the other side serves in turn.
const PORTALS: u64 = 0;
const SMP: u64 = 1;
const IDLE: u64 = 2;
const KINDS: u64 = 3;

fn serve<C: Conduit>(conduit: &C, count: &mut Count, handled: &AtomicU64, on: impl Fn() -> bool) {
    while on() {
        conduit.poll_with(count);
        handled.store(count.messages, Ordering::Release);
    }
}

fn main() {
    let (portals, smp) = (over_portals(registered()), over_smp(registered()));
    let (stop, turn) = (AtomicBool::new(false), AtomicU64::new(0));
    let handled = [AtomicU64::new(0), AtomicU64::new(0)];
    std::thread::scope(|scope| {
        let (stop, turn, handled) = (&stop, &turn, &handled);
        let (other, other_smp) = (&portals.ends[1], &smp.ends[1]);
        let others = scope.spawn(move || {
            pin(1);
            let mut counts = [Count::default(), Count::default()];
            while !stop.load(Ordering::Relaxed) {
                let now = turn.load(Ordering::Acquire);
                let on = || turn.load(Ordering::Acquire) == now && !stop.load(Ordering::Relaxed);
                match now % KINDS {
                    PORTALS => serve(other, &mut counts[0], &handled[0], on),
                    SMP => serve(other_smp, &mut counts[1], &handled[1], on),
                    _ => {
                        while on() {
                            std::hint::spin_loop();
                        }
                    }
                }
            }
        });
        pin(0);
        let to = |kind: u64| {
            let now = turn.load(Ordering::Relaxed);
            turn.store(
                now + (KINDS + kind - now % KINDS) % KINDS,
                Ordering::Release,
            );
        };
        let to = &to;
        let ours = RefCell::new(Measured {
            conduit: &portals.ends[0],
            sink: Count::default(),
        });
        let shared = RefCell::new(Measured {
            conduit: &smp.ends[0],
            sink: Count::default(),
        });
        let (ours, shared) = (&ours, &shared);
        let data = vec![7_u8; 1 << 20];
        let copied = RefCell::new(vec![0_u8; 1 << 20]);
        let (data, copied) = (&data, &copied);
        let mut cases = vec![
            Case {
                name: "short round trip",
                ours: Box::new(move || {
                    to(PORTALS);
                    ours.borrow_mut().rounds(500)
                }),
                limit: Box::new(move || {
                    to(SMP);
                    shared.borrow_mut().rounds(500)
                }),
            },
            Case {
                name: "short flood",
                ours: Box::new(move || {
                    to(PORTALS);
                    ours.borrow_mut().flood(5000, &handled[0])
                }),
                limit: Box::new(move || {
                    to(SMP);
                    shared.borrow_mut().flood(5000, &handled[1])
                }),
            },
        ];
        for (name, len, count) in [
            ("put 8 B", 8, 2000),
            ("put 4 KiB", 4 << 10, 1000),
            ("put 64 KiB", 64 << 10, 100),
            ("put 1 MiB", 1 << 20, 10),
        ] {
            cases.push(Case {
                name,
                ours: Box::new(move || {
                    to(IDLE);
                    ours.borrow_mut().puts(&data[..len], count)
                }),
                limit: Box::new(move || {
                    to(IDLE);
                    let mut copied = copied.borrow_mut();
                    timed(count, || {
                        for _ in 0..count {
                            let to = std::hint::black_box(copied.as_mut_ptr());
                            // SAFETY: both have that many bytes, and are apart.
                            unsafe { bulk::copy(to, data.as_ptr(), len) };
                        }
                    })
                }),
            });
        }
        run(cases, "smp, memcpy");
        stop.store(true, Ordering::Relaxed);
        others.join().expect("the other rank");
    });
}
