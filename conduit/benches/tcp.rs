//! Speeds of the tcp conduit beside those of raw sockets, on the loopback interface: two ranks in
//! one process, a thread and a core each, in alternating chunks.
//!
//! Prints the median of ours and of the limit, the median of the pairwise ratios, and their
//! quartiles.
//!
//! `cargo bench -p argonet-conduit --bench tcp -- [--ours] [FILTER]`; with `--ours` nothing is
//! compared, for profiles.

mod support;

use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_conduit::channel::ChannelSizes;
use argonet_conduit::tcp::Tcp;
use argonet_conduit::{Conduit, OpToken, SendError};
use std::hint::black_box;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::compare::{Case, pin, run, timed};
use support::{ASK, Count, NOTE, pair, ranks};

/// Of a thread's implicit operations.
const TOKEN: OpToken = OpToken {
    handle: 1,
    implicit: true,
};

/// A raw rank: echoes messages of 16 bytes, or swallows everything.
fn raw_peer(mut socket: &TcpStream, echo: bool, goes_on: impl Fn() -> bool, swallowed: &AtomicU64) {
    socket.set_nonblocking(true).expect("a socket");
    let mut buffer = vec![0; 1 << 18];
    let room = if echo { 16 } else { buffer.len() };
    while goes_on() {
        match socket.read(&mut buffer[..room]) {
            Ok(0) => return,
            Ok(count) if echo => socket.write_all(&buffer[..count]).expect("loopback"),
            Ok(count) => {
                swallowed.fetch_add(count as u64, Ordering::Release);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
}

fn raw_round(socket: &mut TcpStream) {
    let mut buffer = [0; 16];
    socket.write_all(&buffer).expect("loopback");
    let mut here = 0;
    while here < 16 {
        match socket.read(&mut buffer[here..]) {
            Ok(count) => here += count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
}

/// Sends so many bytes in writes of `size` and waits until all are read.
fn raw_stream(
    socket: &mut TcpStream,
    bytes: &[u8],
    size: usize,
    total: u64,
    swallowed: &AtomicU64,
) {
    let until = swallowed.load(Ordering::Acquire) + total;
    let mut left = total as usize;
    while left > 0 {
        match socket.write(&bytes[..size.min(left)]) {
            Ok(count) => left -= count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    while swallowed.load(Ordering::Acquire) < until {
        std::hint::spin_loop();
    }
}

struct Ours<'a> {
    tcp: &'a Tcp,
    sink: Count,
}

impl Ours<'_> {
    fn admitted<T>(&mut self, mut send: impl FnMut(&Tcp) -> Result<T, SendError>) {
        loop {
            match send(self.tcp) {
                Ok(_) => return,
                Err(SendError::Full) => {
                    self.tcp.poll_with(&mut self.sink);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn short(&mut self, handler: HandlerIndex) {
        let short = argonet_am::record::Short::pack(handler, &[1, 2]).expect("two arguments");
        while !self.tcp.request_short(JobRank(1), short) {
            self.tcp.poll_with(&mut self.sink);
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        let (start, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the callers wait for all puts before the bytes end.
        self.admitted(|tcp| unsafe { tcp.put(JobRank(1), SegmentOffset(0), start, len, TOKEN) });
    }

    fn get(&mut self, bytes: &mut [u8]) {
        let (start, len) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the callers wait for all gets before the bytes end.
        self.admitted(|tcp| unsafe { tcp.get(JobRank(1), SegmentOffset(0), start, len, TOKEN) });
    }

    fn until(&mut self, done: impl Fn(&Count) -> bool) {
        while !done(&self.sink) {
            self.tcp.poll_with(&mut self.sink);
        }
    }

    fn until_remote(&mut self, count: u64) {
        self.until(|sink| sink.remote >= count);
    }
}

fn main() {
    let ([a, b], _segments) = ranks(ChannelSizes::default());
    let [[mut ping, pong], [mut stream, sink]] = [pair(), pair()];
    let (stop, swallowed, turn) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let handled = AtomicU64::new(0);
    for socket in [&ping, &stream] {
        socket.set_nonblocking(true).expect("a socket");
    }
    std::thread::scope(|scope| {
        let (stop, swallowed, turn, handled) = (&stop, &swallowed, &turn, &handled);
        // One thread plays all the other sides in turn, so that two cores are enough.
        let others = scope.spawn(move || {
            pin(1);
            let mut count = Count::default();
            while !stop.load(Ordering::Relaxed) {
                let now = turn.load(Ordering::Acquire);
                let goes_on =
                    || turn.load(Ordering::Acquire) == now && !stop.load(Ordering::Relaxed);
                match now % 3 {
                    0 => {
                        while goes_on() {
                            b.poll_with(&mut count);
                            handled.store(count.messages, Ordering::Release);
                        }
                    }
                    1 => raw_peer(&pong, true, goes_on, swallowed),
                    _ => raw_peer(&sink, false, goes_on, swallowed),
                }
            }
        });
        pin(0);
        let ours = std::cell::RefCell::new(Ours {
            tcp: &a,
            sink: Count::default(),
        });
        let ours = &ours;
        let (ping, stream) = (
            std::cell::RefCell::new(&mut ping),
            std::cell::RefCell::new(&mut stream),
        );
        let (ping, stream) = (&ping, &stream);
        let data = vec![7u8; 4 << 20];
        let data = &data;
        let to = |kind: u64| {
            let now = turn.load(Ordering::Relaxed);
            turn.store(now + (3 + kind - now % 3) % 3, Ordering::Release);
        };
        let to = &to;
        let rounds = move || -> Box<dyn FnMut() -> f64> {
            Box::new(move || {
                to(1);
                timed(2000, || {
                    (0..2000).for_each(|_| raw_round(&mut ping.borrow_mut()))
                })
            })
        };
        let flow = move |size: usize, total: u64| -> Box<dyn FnMut() -> f64> {
            Box::new(move || {
                to(2);
                let count = total / size as u64;
                timed(count, || {
                    raw_stream(&mut stream.borrow_mut(), data, size, total, swallowed)
                })
            })
        };
        let mut cases = vec![
            Case {
                name: "short round trip",
                ours: Box::new(move || {
                    to(0);
                    let ours = &mut *ours.borrow_mut();
                    timed(2000, || {
                        for _ in 0..2000 {
                            let due = ours.sink.messages + 1;
                            ours.short(ASK);
                            ours.until(|sink| sink.messages >= due);
                        }
                    })
                }),
                limit: rounds(),
            },
            Case {
                name: "put 8 B blocking",
                ours: Box::new(move || {
                    to(0);
                    let ours = &mut *ours.borrow_mut();
                    timed(2000, || {
                        for _ in 0..2000 {
                            let due = ours.sink.remote + 1;
                            ours.put(&data[..8]);
                            ours.until_remote(due);
                        }
                    })
                }),
                limit: rounds(),
            },
            Case {
                name: "get 8 B blocking",
                ours: Box::new(move || {
                    to(0);
                    let ours = &mut *ours.borrow_mut();
                    let mut place = [0; 8];
                    let time = timed(2000, || {
                        for _ in 0..2000 {
                            let due = ours.sink.remote + 1;
                            ours.get(&mut place);
                            ours.until_remote(due);
                        }
                    });
                    black_box(place);
                    time
                }),
                limit: rounds(),
            },
            Case {
                name: "short flood",
                ours: Box::new(move || {
                    to(0);
                    let ours = &mut *ours.borrow_mut();
                    let until = handled.load(Ordering::Acquire) + 200_000;
                    timed(200_000, || {
                        (0..200_000).for_each(|_| ours.short(NOTE));
                        ours.until(|_| handled.load(Ordering::Acquire) >= until);
                    })
                }),
                limit: flow(20, 20 * 40_000),
            },
            Case {
                name: "put 8 B flood",
                ours: Box::new(move || {
                    to(0);
                    let ours = &mut *ours.borrow_mut();
                    let due = ours.sink.remote + 200_000;
                    timed(200_000, || {
                        (0..200_000).for_each(|_| ours.put(&data[..8]));
                        ours.until_remote(due);
                    })
                }),
                limit: flow(36, 36 * 40_000),
            },
        ];
        for (name, size, total) in [
            ("put 4 KiB flood", 4 << 10, 128u64 << 20),
            ("put 64 KiB flood", 64 << 10, 256 << 20),
            ("put 1 MiB flood", 1 << 20, 256 << 20),
            ("put 4 MiB flood", 4 << 20, 256 << 20),
        ] {
            cases.push(Case {
                name,
                ours: Box::new(move || {
                    to(0);
                    let ours = &mut *ours.borrow_mut();
                    let count = total / size as u64;
                    let due = ours.sink.remote + count;
                    timed(count, || {
                        (0..count).for_each(|_| ours.put(&data[..size]));
                        ours.until_remote(due);
                    })
                }),
                limit: flow(size, total),
            });
        }
        run(cases, "raw sockets");
        stop.store(true, Ordering::Relaxed);
        others.join().expect("the other sides");
    });
}
