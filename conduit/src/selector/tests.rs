//! Which way messages go, and that sleepers of both ways wake.

use super::{Network, Selector};
use crate::ThreadMode;
use crate::conduit::{
    Capabilities, Conduit, Injected, Limits, OpToken, PrepareRequest, Prepared, SendError, Sink,
};
use crate::smp::{Barrier, Smp, SmpConfig};
use argonet_am::{AmError, Delivery, HandlerTable, Message, Payload, Registered};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_segment::{Directory, PageKind, SegmentFile};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use parking_lot::{Condvar, Mutex};
use rustix::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

/// A network that records the targets of messages, and whose arrivals the test makes.
#[derive(Default)]
struct Noted {
    sent: Mutex<Vec<u32>>,
    polls: AtomicU32,
    epoch: AtomicU32,
    /// Something is there, which polls take.
    arrived: Mutex<bool>,
    wakeup: Condvar,
    /// Calls of sleep that are under way.
    sleepers: AtomicU32,
    yields: AtomicU32,
}

impl Noted {
    fn arrive(&self) {
        *self.arrived.lock() = true;
        self.wakeup.notify_all();
    }
}

impl Conduit for Noted {
    fn name(&self) -> &'static str {
        "noted"
    }

    fn limits(&self) -> Limits {
        Limits {
            args: 8,
            medium_request: 1000,
            medium_reply: 900,
            long: 800,
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn request(&self, to: JobRank, _: &Message<'_>) -> Result<(), SendError> {
        self.sent.lock().push(to.0);
        Ok(())
    }

    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        self.sent.lock().push(want.to.0);
        Err(SendError::Full)
    }

    fn commit(&self, _: Prepared, _: HandlerIndex, _: &[u32], _: usize) {}

    fn cancel(&self, _: Prepared) {}

    unsafe fn put(
        &self,
        to: JobRank,
        _: SegmentOffset,
        _: *const u8,
        _: usize,
        _: OpToken,
    ) -> Result<Injected, SendError> {
        self.sent.lock().push(to.0);
        Ok(Injected::Complete)
    }

    unsafe fn get(
        &self,
        from: JobRank,
        _: SegmentOffset,
        _: *mut u8,
        _: usize,
        _: OpToken,
    ) -> Result<Injected, SendError> {
        self.sent.lock().push(from.0);
        Ok(Injected::Complete)
    }

    fn poll(&self, _: &mut dyn Sink) -> usize {
        self.polls.fetch_add(1, Ordering::Relaxed);
        usize::from(core::mem::take(&mut *self.arrived.lock()))
    }

    fn has_work(&self) -> bool {
        *self.arrived.lock()
    }

    fn yield_now(&self) {
        self.yields.fetch_add(1, Ordering::Relaxed);
    }

    fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        let mut arrived = self.arrived.lock();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let end = timeout.map(|time| Instant::now() + time);
        while !*arrived && self.epoch() == seen {
            match end {
                None => self.wakeup.wait(&mut arrived),
                Some(end) if self.wakeup.wait_until(&mut arrived, end).timed_out() => break,
                Some(_) => {}
            }
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake(&self) {
        let arrived = self.arrived.lock();
        self.epoch.fetch_add(1, Ordering::SeqCst);
        self.wakeup.notify_all();
        drop(arrived);
    }
}

const HANDLER: HandlerIndex = HandlerIndex(128);

/// Counts deliveries.
#[derive(Default)]
struct Count(u32);

impl Sink for Count {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        self.0 += 1;
        assert_eq!(delivery.source(), JobRank(6));
    }

    fn completed(&mut self, _: OpToken, _: crate::conduit::Completion) {}

    fn on_error(&mut self, error: AmError) {
        panic!("{error}");
    }
}

fn registered() -> Registered {
    let mut table = HandlerTable::default();
    let handler = Box::new(|_: &mut Delivery<'_>| {});
    table.register_at(HANDLER, "handler", handler).unwrap();
    table.registered()
}

/// Ranks from 5 on that share memory, as many as wanted.
fn neighbors(count: u32) -> Vec<Smp> {
    let pages = PageKind::Normal;
    let file = SegmentFile::create(count, 4096, pages).unwrap();
    let fd = file.as_fd().try_clone_to_owned().unwrap();
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let rings = rustix::fs::memfd_create("rings", flags).unwrap();
    let ranks = (5..5 + count).map(JobRank);
    ranks
        .map(|rank| {
            let fd = fd.try_clone().unwrap();
            let file = SegmentFile::from_fd(fd, count, 4096, pages).unwrap();
            let file = file.starting_at(JobRank(5));
            let config = SmpConfig {
                rank,
                first: JobRank(5),
                ranks: count,
                mode: ThreadMode::Par,
                barrier: Barrier::Sender,
                directory: Directory::of_job(file, rank, 9).unwrap(),
                registered: registered(),
                segment_len: Arc::new(|_| 0),
            };
            Smp::new(rings.as_fd(), config).unwrap()
        })
        .collect()
}

const MESSAGE: Message<'static> = Message {
    handler: HANDLER,
    args: &[],
    payload: Payload::None,
};

/// Two neighbors, 5 and 6, of nine ranks; the network of the first.
fn two() -> (Selector, Smp, Arc<Noted>) {
    let mut smps = neighbors(2).into_iter();
    let network = Arc::new(Noted::default());
    let remote: Network = Arc::clone(&network) as Network;
    let (five, six) = (smps.next().unwrap(), smps.next().unwrap());
    (Selector::over(remote, five), six, network)
}

#[test]
fn neighbors_are_reached_through_memory_and_others_over_the_network() {
    let (five, six, network) = two();
    for to in 0..9 {
        five.request(JobRank(to), &MESSAGE).unwrap();
    }
    assert_eq!(*network.sent.lock(), [0, 1, 2, 3, 4, 7, 8]);
    six.request(JobRank(5), &MESSAGE).unwrap();
    let mut count = Count::default();
    struct Any(u32);
    impl Sink for Any {
        fn deliver(&mut self, delivery: &mut Delivery<'_>) {
            assert_eq!(delivery.source(), JobRank(5));
            self.0 += 1;
        }
        fn completed(&mut self, _: OpToken, _: crate::conduit::Completion) {}
        fn on_error(&mut self, error: AmError) {
            panic!("{error}");
        }
    }
    let mut any = Any(0);
    six.poll(&mut any);
    assert_eq!(any.0, 1, "the message of rank 5");
    // And its message to itself.
    five.poll_own(&mut any);
    assert_eq!(any.0, 2);
    five.poll_with(&mut count);
    assert_eq!(count.0, 1, "the message of rank 6");
    assert_eq!(five.limits().long, 800, "the least of both");
    assert_eq!(five.limits().medium_reply, 900);
    assert_eq!(five.name(), "noted");
}

#[test]
fn a_rank_without_neighbors_sends_to_itself_over_the_network_too() {
    let network = Arc::new(Noted::default());
    let alone = neighbors(1).remove(0);
    let selector = Selector::over(Arc::clone(&network) as Network, alone);
    selector.request(JobRank(5), &MESSAGE).unwrap();
    assert_eq!(*network.sent.lock(), [5]);
    assert!(selector.shared_cells().is_none());
}

#[test]
fn a_yield_is_forwarded_to_the_network() {
    let (selector, _, noted) = two();
    selector.yield_now();
    assert_eq!(noted.yields.load(Ordering::Relaxed), 1);
}

/// Breaks of the order in which a sleeper announces itself and looks lose wake-ups here, if seldom.
#[test]
fn arrivals_over_the_network_wake_a_sleeper_on_memory() {
    let (five, _six, network) = two();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            for _ in 0..300 {
                // Comes while the rank is about to sleep, or sleeps.
                while *network.arrived.lock() {
                    std::thread::yield_now();
                }
                network.arrive();
            }
        });
        let mut taken = 0;
        let mut count = Count::default();
        while taken < 300 {
            let begun = Instant::now();
            let seen = five.epoch();
            five.sleep(Some(Duration::from_secs(20)), seen);
            assert!(begun.elapsed() < Duration::from_secs(10), "not woken");
            taken += five.poll_with(&mut count);
        }
        sender.join().unwrap();
    });
}

#[test]
fn a_neighbor_wakes_a_sleeper_and_the_watch_ends_with_its_rank() {
    let (five, six, network) = two();
    std::thread::scope(|scope| {
        let neighbor = scope.spawn(|| {
            while network.sleepers.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            six.request(JobRank(5), &MESSAGE).unwrap();
        });
        let mut count = Count::default();
        while count.0 == 0 {
            let begun = Instant::now();
            let seen = five.epoch();
            five.sleep(Some(Duration::from_secs(20)), seen);
            assert!(begun.elapsed() < Duration::from_secs(10), "not woken");
            five.poll_with(&mut count);
        }
        neighbor.join().unwrap();
    });
    assert_eq!(network.sleepers.load(Ordering::SeqCst), 1, "the watch");
    drop(five);
    assert_eq!(network.sleepers.load(Ordering::SeqCst), 0);
}

#[test]
fn a_wake_ends_the_sleep_of_a_thread_wherever_that_sleeps() {
    let network = || Arc::new(Noted::default()) as Network;
    let one = || neighbors(2).remove(0);
    for selector in [
        Selector::neighbors_only(one()),
        Selector::over(network(), one()),
        Selector::over(network(), neighbors(1).remove(0)),
    ] {
        for _ in 0..20 {
            let (begun, seen) = (Instant::now(), selector.epoch());
            std::thread::scope(|scope| {
                let other = scope.spawn(|| selector.wake());
                selector.sleep(Some(Duration::from_secs(20)), seen);
                other.join().unwrap();
            });
            assert!(begun.elapsed() < Duration::from_secs(10), "not woken");
        }
    }
}
