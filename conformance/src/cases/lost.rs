//! Peers that are given up because their process has ended.

use super::operations::Operations;
use super::{Case, always};
use crate::bench::{Bench, Want};
use crate::log::{Log, token};
use crate::mail::Mail;
use crate::rig::{Job, Rig};
use argonet_am::{AmError, MessageClass};
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::{Completion, Conduit, Injected, PrepareRequest, SendError};

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    vec![
        always(
            "all_with_a_lost_peer_ends_once",
            all_with_a_lost_peer_ends_once,
        ),
        always("a_lost_peer_is_refused", a_lost_peer_is_refused),
        always(
            "a_lost_peer_that_was_not_used",
            a_lost_peer_that_was_not_used,
        ),
    ]
}

const SURVIVORS: [u32; 2] = [0, 2];

/// Ends rank 1 and gives it up at rank 0; false where the conduit cannot.
fn lose<R: Rig>(bench: &mut Bench<R>) -> bool {
    if !bench.at(0).outlives_peers() {
        let log = &mut bench.logs[0];
        assert!(!bench.job.endpoint(JobRank(0)).lose(JobRank(1), log));
        return false;
    }
    bench.end(1);
    let (endpoint, log) = (bench.job.endpoint(JobRank(0)), &mut bench.logs[0]);
    let before = messages(log);
    assert!(endpoint.lose(JobRank(1), log));
    let log = &bench.logs[0];
    assert_eq!(messages(log), before, "nothing is delivered meanwhile");
    assert!(log.broken.is_empty(), "{:?}", log.broken);
    true
}

fn messages(log: &Log) -> usize {
    let entries = log.requests.iter().chain(&log.replies);
    entries.map(Vec::len).sum()
}

/// It is refused because the peer is lost.
#[track_caller]
fn is_refused<T: std::fmt::Debug>(outcome: Result<T, SendError>) {
    let lost = AmError::PeerLost {
        at: JobRank(0),
        peer: JobRank(1),
    };
    assert_eq!(outcome.unwrap_err(), SendError::Message(lost));
}

/// The survivors hear each other, and nothing is left of the lost peer.
fn the_others_go_on<R: Rig>(bench: &mut Bench<R>) {
    let before = SURVIVORS.map(|rank| bench.logs[rank as usize].count());
    for tag in 0..50 {
        for (from, to) in [(0, 2), (2, 0)] {
            bench.until_among(&SURVIVORS, "room", |bench| {
                let mail = Mail::note(tag).medium(300).asks_short();
                mail.try_send(bench.at(from), JobRank(to)).is_ok()
            });
        }
    }
    bench.until_among(&SURVIVORS, "the others hear each other", |bench| {
        let now = SURVIVORS.map(|rank| bench.logs[rank as usize].count());
        now.iter()
            .zip(before)
            .all(|(now, before)| now - before >= 100)
    });
    bench.until_among(&SURVIVORS, "nothing is left", |bench| {
        bench.at(0).is_quiescent()
    });
}

/// Puts, gets and messages of all lengths are under way in both directions.
fn all_with_a_lost_peer_ends_once<R: Rig>(rig: &R) {
    const LONG: usize = 150_000;
    // How far they are when the peer is lost.
    for polls in [0, 1, 3, 8] {
        let mut bench = Bench::new(rig, Want::ranks(3));
        let mut ops = Operations::of(0);
        let mut pending = Vec::new();
        let mut sources = Vec::new();
        if bench.promises.remote {
            for len in [8, 3_000, LONG] {
                let handle = ops.put(&mut bench, 1, 0, &vec![7; len]);
                pending.push(handle);
                let (handle, _) = ops.get(&mut bench, 1, 0, len, 0);
                pending.push(handle);
            }
        }
        for tag in 0..30u32 {
            for (from, to) in [(0, 1), (1, 0), (2, 1)] {
                let mail = Mail::note(tag).medium(200 * tag as usize).asks_short();
                let _ = mail.try_send(bench.at(from), JobRank(to));
            }
            // A payload that stays where it is.
            let mail = Mail::note(tag).medium(20_000);
            let bytes = mail.payload();
            let op = token(1000 + u64::from(tag));
            let args = mail.arguments();
            let message = crate::log::message(
                crate::log::NOTE,
                argonet_am::Category::Medium,
                &args,
                &bytes,
                0,
            );
            // SAFETY: the bytes are kept until the test ends.
            let sent = unsafe { bench.at(0).request_in_place(JobRank(1), &message, op) };
            if sent == Ok(Injected::Pending) {
                sources.push((op.handle, bytes));
            }
        }
        for _ in 0..polls {
            for rank in [0, 2, 1] {
                bench.poll(rank);
            }
        }
        if !lose(&mut bench) {
            return;
        }
        for handle in pending {
            let open = ops.open.iter().find(|(its, ..)| *its == handle);
            let Some((_, due, _)) = open else {
                continue; // It was complete at injection.
            };
            for (completion, is_due) in [
                (Completion::Local, due.local),
                (Completion::Remote, due.remote),
            ] {
                let reported = bench.reported(0, handle, completion);
                assert_eq!(reported, usize::from(is_due), "{handle} {completion:?}");
            }
        }
        for (handle, _) in &sources {
            let reported = bench.reported(0, *handle, Completion::Local);
            assert_eq!(reported, 1, "the payload of {handle} after {polls} polls");
        }
        // No memory of theirs is used any more.
        drop((ops, sources));
        the_others_go_on(&mut bench);
    }
}

/// Every call that names it fails, also where the room for it was full.
fn a_lost_peer_is_refused<R: Rig>(rig: &R) {
    for is_full in [false, true] {
        let mut bench = Bench::new(rig, Want::ranks(3).cramped());
        if is_full {
            bench.fill(0, 1, |tag| Mail::note(tag).medium(64));
        }
        if !lose(&mut bench) {
            return;
        }
        let (endpoint, to) = (bench.at(0), JobRank(1));
        for mail in [
            Mail::note(0),
            Mail::note(1),
            Mail::note(2).args(16),
            Mail::note(3).medium(64),
            Mail::note(4).medium(0),
        ] {
            is_refused(mail.try_send(endpoint, to));
        }
        is_refused(endpoint.prepare(&PrepareRequest {
            to,
            class: MessageClass::Request,
            nargs: 1,
            least: 0,
            most: 100,
            offset: None,
        }));
        let mut bytes = vec![0u8; 100_000];
        for len in [8, 100, 100_000] {
            let (at, op) = (SegmentOffset(0), token(1));
            // SAFETY: nothing is under way, as it is refused, or complete at once.
            let put = unsafe { endpoint.put(to, at, bytes.as_ptr(), len, op) };
            // SAFETY: as above.
            let get = unsafe { endpoint.get(to, at, bytes.as_mut_ptr(), len, op) };
            for outcome in [put, get] {
                // What is mapped here the engine refuses.
                if outcome != Ok(Injected::Complete) && bench.promises.remote {
                    is_refused(outcome);
                }
            }
        }
        the_others_go_on(&mut bench);
    }
}

fn a_lost_peer_that_was_not_used<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(3));
    if !lose(&mut bench) {
        return;
    }
    is_refused(Mail::note(0).try_send(bench.at(0), JobRank(1)));
    the_others_go_on(&mut bench);
}
