//! Ranks that compute and make no call, and the thread that serves meanwhile.

use super::*;
use argonet_am::MAX_CARRIED;
use core::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Rank 0 calls, rank 1 has the thread.
fn served(sizes: ChannelSizes) -> [Rank; 2] {
    let [here, there] = pair();
    [
        Rank::new(0, sizes, Some(connection(1, here, 1))),
        Rank::with_progress(1, sizes, Some(connection(0, there, 1))),
    ]
}

/// Something takes at most so long on a machine with nothing else to do.
const PATIENCE: Duration = Duration::from_secs(20);

fn poll_until(rank: &mut Rank, what: &str, done: impl Fn(&Seen) -> bool) {
    let begun = Instant::now();
    while !done(&rank.seen) {
        rank.poll();
        assert!(begun.elapsed() < PATIENCE, "it never came to this: {what}");
    }
}

impl Rank {
    pub(super) fn get(&self, offset: u64, place: &mut [u8], handle: u64) {
        assert_eq!(self.try_get(offset, place, handle), Ok(Injected::Pending));
    }

    pub(super) fn try_get(
        &self,
        offset: u64,
        place: &mut [u8],
        handle: u64,
    ) -> Result<Injected, SendError> {
        let op = OpToken {
            handle,
            implicit: false,
        };
        let offset = SegmentOffset(offset);
        // SAFETY: the tests' places live as long as the ranks.
        unsafe {
            self.tcp
                .get(JobRank(1), offset, place.as_mut_ptr(), place.len(), op)
        }
    }
}

/// The rank makes no call at all, from the beginning on.
#[test]
fn puts_and_gets_are_served_while_the_target_makes_no_call() {
    let [mut a, b] = served(ChannelSizes {
        eager_bytes: 100,
        fragment_bytes: 5000,
        ..ChannelSizes::default()
    });
    for (round, len) in [(1, 8), (2, 60_000), (3, 1)] {
        let bytes: Vec<u8> = (0..len).map(|i| (i * round) as u8).collect();
        a.put(16, &bytes, round).unwrap();
        poll_until(&mut a, "the put is there", |seen| {
            seen.completed.contains(&(round, Completion::Remote))
        });
        let mut back = vec![0; len as usize];
        a.get(16, &mut back, 100 + round);
        poll_until(&mut a, "the get is here", |seen| {
            seen.completed.contains(&(100 + round, Completion::Remote))
        });
        assert_eq!(back, bytes);
    }
    assert_eq!(b.seen.messages, 0);
}

/// Between messages of both classes, which wait for the rank, in order.
#[test]
fn messages_wait_for_the_rank_and_operations_behind_them_do_not() {
    let [mut a, mut b] = served(ChannelSizes::default());
    b.seen.answer = 9;
    let bytes = [7; 50];
    for round in 1..=20 {
        assert!(a.note(round));
        let medium = Message {
            handler: NOTE,
            args: &[round; MAX_CARRIED],
            payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
        };
        a.tcp.request(JobRank(1), &medium).unwrap();
        a.put(64, &[round as u8; 30], round.into()).unwrap();
        let long = Message {
            handler: NOTE,
            args: &[round],
            payload: Payload::Long(SharedBytes::from_slice(&bytes), SegmentOffset(200)),
        };
        a.tcp.request(JobRank(1), &long).unwrap();
        let mut back = [0; 30];
        a.get(64, &mut back, 100 + u64::from(round));
        poll_until(&mut a, "the get is here", |seen| {
            seen.completed
                .contains(&(100 + u64::from(round), Completion::Remote))
        });
        assert_eq!(back, [round as u8; 30]);
    }
    assert_eq!(b.seen.firsts, []);
    assert!(b.tcp.has_work(), "waiting messages are no work");
    poll_until(&mut b, "all messages", |seen| seen.messages == 60);
    let due: Vec<u32> = (1..=20).flat_map(|round| [round; 3]).collect();
    assert_eq!(b.seen.firsts, due);
    poll_until(&mut a, "all replies", |seen| seen.messages == 60);
}

/// More replies than are set aside: the others stay in the connection, and nothing is lost or
/// changes places.
#[test]
fn unhandled_replies_are_bounded() {
    const COUNT: usize = 40;
    let sizes = ChannelSizes::smallest();
    let [mut a, mut b] = served(sizes);
    a.seen.answer = MAX_MEDIUM;
    let send = |b: &Rank, n: usize| {
        let short = Short::pack(NOTE, &[n as u32]).unwrap();
        b.tcp.request_short(JobRank(0), short)
    };
    for n in 0..COUNT {
        let begun = Instant::now();
        while !send(&b, n) {
            a.poll();
            assert!(begun.elapsed() < PATIENCE, "no room comes without a poll");
        }
    }
    b.tcp.flush();
    let kept = |b: &Rank| {
        let inbound = b.tcp.core.used(0).unwrap().inbound.lock();
        inbound.replies.len()
    };
    let begun = Instant::now();
    while kept(&b) == 0 {
        a.poll();
        assert!(begun.elapsed() < PATIENCE);
    }
    for _ in 0..2000 {
        a.poll();
        assert!(kept(&b) <= sizes.window_bytes);
    }
    assert_eq!(b.seen.messages, 0);
    let begun = Instant::now();
    while b.seen.messages < COUNT {
        a.poll();
        b.poll();
        assert!(begun.elapsed() < PATIENCE, "{} replies", b.seen.messages);
    }
}

/// The rank waits for the reply or completion in a sleep, while the thread is at the socket.
#[test]
fn messages_taken_by_the_thread_end_a_sleep() {
    let [mut a, mut b] = served(ChannelSizes::default());
    b.seen.answer = 5;
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let its = Arc::clone(&stop);
        let rank = scope.spawn(move || {
            while !its.load(Ordering::Relaxed) {
                let seen = b.tcp.epoch();
                if b.poll() == 0 {
                    b.tcp.sleep(Some(Duration::from_secs(60)), seen);
                }
                // Long enough for the thread to take the rank for one that computes.
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_micros(150) {
                    core::hint::spin_loop();
                }
            }
        });
        for round in 1..=300 {
            assert!(a.note(round));
            poll_until(&mut a, "a reply", |seen| seen.messages == round as usize);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(a.note(0));
        a.tcp.flush();
        rank.join().unwrap();
    });
}

/// A rank that spins and makes no call answers in the time that was wished.
///
/// Half of all, as the machine may have more to do.
#[test]
fn a_get_from_a_rank_that_computes_is_quick() {
    let [mut a, _b] = served(ChannelSizes::default());
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let its = Arc::clone(&stop);
        let computing = scope.spawn(move || while !its.load(Ordering::Relaxed) {});
        let mut times = Vec::new();
        for round in 0..201 {
            let mut place = [0; 8];
            let begun = Instant::now();
            a.get(0, &mut place, round);
            poll_until(&mut a, "the get is here", |seen| {
                seen.completed.len() == round as usize + 1
            });
            times.push(begun.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
        computing.join().unwrap();
        times.sort();
        println!(
            "gets: {:?} to {:?}, half within {:?}",
            times[0], times[200], times[100]
        );
        // With cores for all; else the system gives them in turn, for some milliseconds each.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let most = if cores > 2 { 200 } else { 20_000 };
        assert!(times[100] < Duration::from_micros(most), "{:?}", times[100]);
    });
}

/// Connections are taken, too.
#[test]
fn a_connection_is_taken_while_the_rank_makes_no_call() {
    let [here, there] = pair();
    let mut a = Rank::new(0, ChannelSizes::default(), Some(connection(1, here, 1)));
    let b = Rank::with_progress(1, ChannelSizes::default(), None);
    b.queue.push(connection(0, there, 1));
    a.put(0, &[1; 8], 1).unwrap();
    poll_until(&mut a, "the put is there", |seen| {
        seen.completed.contains(&(1, Completion::Remote))
    });
}
