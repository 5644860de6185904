//! Lack of room: nothing is lost, no rank waits forever.

use super::{Case, always};
use crate::bench::{Bench, Idle, Want};
use crate::mail::Mail;
use crate::rig::Rig;
use argonet_am::Category;
use argonet_conduit::{Conduit, SendError};

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    vec![
        always(
            "largest_requests_with_largest_replies",
            largest_requests_with_largest_replies,
        ),
        always("a_target_that_never_polls", a_target_that_never_polls),
        always(
            "a_long_without_room_writes_nothing",
            a_long_without_room_writes_nothing,
        ),
        always("untaken_replies_are_kept", untaken_replies_are_kept),
        always(
            "one_full_peer_does_not_stop_another",
            one_full_peer_does_not_stop_another,
        ),
        always("both_ways_full", both_ways_full),
    ]
}

/// All ranks ask all ranks, with the largest payload there is each way.
fn largest_requests_with_largest_replies<R: Rig>(rig: &R) {
    const EACH: u32 = 24;
    for ranks in 2..=4 {
        let mut bench = Bench::new(rig, Want::ranks(ranks).cramped());
        let limits = bench.at(0).limits();
        let all: Vec<u32> = bench.ranks().collect();
        let pairs = all
            .iter()
            .flat_map(|&from| all.iter().map(move |&to| (from, to)));
        let mut left: Vec<(u32, u32, u32)> = pairs.map(|(from, to)| (from, to, 0)).collect();
        let mut idle = Idle::default();
        while !left.is_empty() {
            // All send as much as there is room for, before any rank polls.
            let mut sent = false;
            left.retain_mut(|(from, to, tag)| {
                while *tag < EACH {
                    let mail = Mail::note(*tag).medium(limits.medium_request);
                    let mail = mail.asks(Category::Medium, 16, limits.medium_reply, 0);
                    match bench.try_send(*from, *to, mail) {
                        Ok(()) => *tag += 1,
                        Err(SendError::Full) => return true,
                        Err(error) => bench.fail(&error.to_string()),
                    }
                    sent = true;
                }
                false
            });
            idle.round(bench.round(&all) > 0 || sent);
            assert!(
                !idle.is_stuck(&bench.promises),
                "deadlock: {}",
                bench.board.report()
            );
        }
        bench.account();
    }
}

/// `Full` comes, leaves nothing sent, and goes when the target polls.
///
/// In each category.
fn a_target_that_never_polls<R: Rig>(rig: &R) {
    let kinds: [fn(u32, usize) -> Mail; 5] = [
        |tag, _| Mail::note(tag),
        |tag, _| Mail::note(tag).args(16),
        |tag, _| Mail::note(tag).medium(24),
        |tag, max| Mail::note(tag).medium(max),
        |tag, _| Mail::note(tag).long(64, u64::from(tag) % 4096 * 64),
    ];
    for kind in kinds {
        let mut bench = Bench::new(rig, Want::ranks(2).cramped());
        let max = bench.at(0).limits().medium_request;
        for _ in 0..3 {
            let mut sent = 0;
            bench.until("there is room for one", |bench| {
                // The long 4096 later has the same bytes at the same place.
                sent = bench.fill(0, 1, |tag| kind(tag % 4096, max));
                sent > 0
            });
            for _ in 0..1000 {
                let again = bench.try_send(0, 1, kind(sent % 4096, max));
                if again.is_ok() {
                    // Time has made room, which a wire may.
                    continue;
                }
                assert_eq!(again, Err(SendError::Full));
                bench.round(&[0]);
            }
            bench.account();
            bench.forget();
        }
    }
}

/// A long that is refused for lack of room has written nothing.
fn a_long_without_room_writes_nothing<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2).cramped());
    let before = vec![0xa5; 1000];
    bench.write(1, 0, &before);
    bench.fill(0, 1, |tag| Mail::note(tag).args(16));
    // The shortest messages take the room that those have left.
    bench.fill(0, 1, Mail::note);
    let refused = bench.try_send(0, 1, Mail::note(1).long(1000, 0));
    if refused == Err(SendError::Full) {
        bench.account();
        assert!(bench.read(1, 0, 1000) == before, "refused and written");
    }
    bench.account();
}

// spec P6
/// The sender of requests takes no replies: they are not lost, and no reply fails for lack of room.
fn untaken_replies_are_kept<R: Rig>(rig: &R) {
    let limits = Bench::new(rig, Want::ranks(2).cramped()).at(0).limits();
    let kinds: [&dyn Fn(u32) -> Mail; 2] = [&|tag| Mail::note(tag).asks_short(), &|tag| {
        // Requests as long as their replies, or there would be far more to answer than to ask.
        let mail = Mail::note(tag).medium(limits.medium_request);
        mail.asks(Category::Medium, 2, limits.medium_reply, 0)
    }];
    for kind in kinds {
        let mut bench = Bench::new(rig, Want::ranks(2).cramped());
        for _ in 0..5 {
            let (mut tag, mut idle) = (0, 0);
            while idle < 50 {
                match bench.try_send(0, 1, kind(tag)) {
                    Ok(()) => {
                        tag += 1;
                        idle = 0;
                    }
                    Err(SendError::Full) => idle += 1,
                    Err(error) => bench.fail(&error.to_string()),
                }
                if tag % 64 == 0 || idle > 0 {
                    bench.round(&[1]);
                }
                assert!(tag < 1 << 20, "no limit");
            }
            bench.account();
            bench.forget();
        }
    }
}

/// A rank floods two peers of which one never polls: the other gets everything.
fn one_full_peer_does_not_stop_another<R: Rig>(rig: &R) {
    const COUNT: u32 = 2000;
    let mut bench = Bench::new(rig, Want::ranks(3).cramped());
    let mut at_full_peer = 0;
    for tag in 0..COUNT {
        if bench
            .try_send(0, 1, Mail::note(at_full_peer).medium(100).asks_short())
            .is_ok()
        {
            at_full_peer += 1;
        }
        let mail = Mail::note(tag).medium(100).asks_short();
        bench.until_among(&[0, 2], "the peer that polls takes it", |bench| {
            bench.try_send(0, 2, mail).is_ok()
        });
    }
    bench.until_among(&[0, 2], "the peer that polls has answered", |bench| {
        bench.logs[0].replies[2].len() == COUNT as usize
    });
    assert!(bench.logs[1].count() == 0);
    bench.account();
}

/// The request classes between two ranks are full in both directions; replies still pass.
fn both_ways_full<R: Rig>(rig: &R) {
    for ranks in [1, 2] {
        let mut bench = Bench::new(rig, Want::ranks(ranks).cramped());
        let limits = bench.at(0).limits();
        let mail = |tag| {
            Mail::note(tag)
                .medium(500)
                .asks(Category::Medium, 4, limits.medium_reply, 0)
        };
        for _ in 0..2 {
            bench.fill(0, ranks - 1, mail);
            if ranks == 2 {
                bench.fill(1, 0, mail);
            }
            bench.until("all of it is here", |bench| bench.all_here());
            bench.compare();
            bench.forget();
        }
        bench.account();
    }
}
