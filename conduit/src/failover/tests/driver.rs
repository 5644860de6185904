//! Two ranks whose members are cut, fall silent and come back.

use super::pair::{Net, Rank, Way, exchange, pair, until};
use super::pipe::Chance;
use crate::channel::rail::Rails;
use std::sync::Arc;

/// Room of a rail: less than what one rank writes at once.
const ROOM: usize = 5000;

fn nets<const N: usize>(lasts: [bool; N]) -> [Arc<Net>; N] {
    lasts.map(|lasts| Net::new(lasts, ROOM, None))
}

fn connected(ranks: &[Rank; 2]) -> bool {
    let [here, there] = ranks;
    here.has_wire() && there.has_wire() && here.generations.last() == there.generations.last()
}

#[test]
fn the_first_wish_of_either_or_both_makes_a_stream() {
    for wishes in [&[0][..], &[1], &[0, 1]] {
        for lasts in [[false, false], [true, true]] {
            let nets = nets(lasts);
            let mut ranks = pair(&nets);
            for rank in wishes {
                let rank = &ranks[*rank];
                rank.rails.want(rank.id());
            }
            until(&mut ranks, "a stream", connected);
            exchange(&mut ranks, 100_000);
            let [here, there] = &ranks;
            assert_eq!(here.generations.last(), there.generations.last());
            // Two offers at most, one of each.
            assert!(here.generations.len() <= 2 && there.generations.len() <= 2);
        }
    }
}

#[test]
fn a_stream_goes_on_over_another_member_and_back() {
    for lasts in [[false, false], [false, true]] {
        let nets = nets(lasts);
        let mut ranks = pair(&nets);
        ranks[1].rails.want(ranks[1].id());
        exchange(&mut ranks, 50_000);
        // In the middle of what is under way.
        ranks.iter_mut().for_each(|rank| rank.bytes += 50_000);
        until(&mut ranks, "some bytes pass", |ranks| {
            ranks[0].taken > 60_000
        });
        nets[0].turn(Way::Refuses);
        exchange(&mut ranks, 50_000);
        until(&mut ranks, "a stream", connected);
        let over_the_other = ranks[0].generations.len();
        nets[0].turn(Way::Good);
        until(&mut ranks, "back", |ranks| {
            connected(ranks) && ranks[0].generations.len() > over_the_other
        });
        exchange(&mut ranks, 50_000);
        // It does not need the other one.
        nets[1].turn(Way::Refuses);
        exchange(&mut ranks, 50_000);
    }
}

#[test]
fn a_rail_that_lasts_goes_on_where_it_was_in_the_middle_of_a_run() {
    for seed in 0..4 {
        let chance = Chance::new(seed);
        let net = Net::new(true, ROOM, Some(chance.clone()));
        let mut ranks = pair(core::slice::from_ref(&net));
        ranks[0].rails.want(ranks[0].id());
        until(&mut ranks, "a stream", connected);
        for _ in 0..3 {
            ranks.iter_mut().for_each(|rank| rank.bytes += 60_000);
            for _ in 0..chance.below(100) {
                ranks.iter_mut().for_each(Rank::poll);
            }
            // One channel finds that nothing comes, or both.
            ranks[chance.below(2)].lose();
            if chance.below(2) == 0 {
                ranks[chance.below(2)].lose();
            }
            exchange(&mut ranks, 1);
        }
    }
}

/// Counts of a rank's members: begun, ended, silent, address.
fn counts(rank: &Rank) -> Vec<[u64; 4]> {
    let members = rank.rails.rail_report().expect("counts").members;
    let each = members.iter();
    each.map(|one| [one.begun, one.ended, one.silent, one.address])
        .collect()
}

// The channel reads no end, and finds no silence.
#[test]
fn a_member_whose_address_stops_working_is_left_at_once() {
    let address = core::net::IpAddr::from([192, 0, 2, 1]);
    for lasts in [false, true] {
        let nets = nets([lasts, false]);
        nets[0].place(0, address);
        let mut ranks = pair(&nets);
        ranks[0].rails.add_address(address);
        ranks[0].rails.want(ranks[0].id());
        exchange(&mut ranks, 20_000);
        assert_eq!(counts(&ranks[0]), [[1, 0, 0, 0], [0; 4]]);
        nets[0].turn(Way::Quiet);
        ranks.iter_mut().for_each(|rank| rank.bytes += 50_000);
        let before = ranks[0].generations.len();
        ranks[0].rails.report_change();
        until(&mut ranks, "another one", |ranks| {
            connected(ranks) && ranks[0].generations.len() > before
        });
        exchange(&mut ranks, 50_000);
        assert_eq!(counts(&ranks[0]), [[1, 0, 0, 1], [1, 0, 0, 0]], "{lasts}");
        // It is not gone back to before it works, and then it is.
        let before = ranks[0].generations.len();
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 600 {
            ranks.iter_mut().for_each(Rank::poll);
        }
        assert_eq!(ranks[0].generations.len(), before, "{lasts}");
        ranks[0].rails.add_address(address);
        nets[0].turn(Way::Good);
        until(&mut ranks, "back", |ranks| {
            connected(ranks) && ranks[0].generations.len() > before
        });
        exchange(&mut ranks, 1000);
        assert_eq!(counts(&ranks[0])[0][0], 2);
    }
}

#[test]
fn losses_are_counted_by_their_reason() {
    let nets = nets([false, true]);
    let mut ranks = pair(&nets);
    ranks[0].rails.want(ranks[0].id());
    exchange(&mut ranks, 1000);
    nets[0].turn(Way::Refuses);
    exchange(&mut ranks, 1000);
    assert_eq!(counts(&ranks[0])[0][1..], [1, 0, 0]);
    assert_eq!(counts(&ranks[0])[1][1..], [0; 3]);
    let carries = |ranks: &[Rank; 2]| {
        let members = ranks[0].rails.rail_report().expect("counts").members;
        members.iter().map(|one| one.carries).collect::<Vec<_>>()
    };
    assert_eq!(carries(&ranks), [0, 1]);
    // The channel has heard nothing for long.
    nets[1].turn(Way::Silent);
    nets[0].turn(Way::Good);
    ranks[0].lose();
    exchange(&mut ranks, 1000);
    assert_eq!(counts(&ranks[0])[1][1..], [0, 1, 0]);
    assert_eq!(carries(&ranks), [1, 0]);
}

#[test]
fn where_no_member_reaches_the_peer_each_says_why() {
    let nets = nets([false, true]);
    nets.iter().for_each(|net| net.turn(Way::Refuses));
    let mut ranks = pair(&nets);
    ranks[0].rails.want(ranks[0].id());
    until(&mut ranks, "an end", |ranks| ranks[0].unreachable.is_some());
    let error = ranks[0]
        .unreachable
        .take()
        .expect("there is one")
        .to_string();
    for why in ["m0: ", "way 0 is closed", "m1: ", "way 1 is closed"] {
        assert!(error.contains(why), "{error}");
    }
    assert!(ranks[1].unreachable.is_none());
    // What asks again is heard.
    nets[1].turn(Way::Good);
    ranks[0].rails.want(ranks[0].id());
    exchange(&mut ranks, 1000);
}

#[test]
fn room_of_a_rail_that_was_given_up_is_not_waited_for() {
    let nets = nets([true, true]);
    let mut ranks = pair(&nets);
    ranks[0].rails.want(ranks[0].id());
    until(&mut ranks, "a stream", connected);
    nets[0].turn(Way::Silent);
    ranks[0].bytes += 1 << 20;
    ranks[0].poll();
    ranks[0].wait_for_room();
    until(&mut ranks, "a full rail", |_| nets[0].waits(0));
    ranks[0].lose();
    exchange(&mut ranks, 1);
    nets[0].turn(Way::Good);
    until(&mut ranks, "sleeps", |_| !nets[0].waits(0));
}

#[test]
fn a_member_that_can_make_no_rails_any_more_is_no_hope() {
    let nets = nets([false, false]);
    nets[0].fail(0);
    nets[1].turn(Way::Refuses);
    let mut ranks = pair(&nets);
    // Before it has anything to do with the peer.
    ranks[0].poll();
    ranks[0].rails.want(ranks[0].id());
    until(&mut ranks, "an end", |ranks| ranks[0].unreachable.is_some());
    let error = ranks[0].unreachable.take().map(|error| error.to_string());
    let error = error.expect("there is one");
    for why in ["m0: ", "no descriptors are left", "m1: ", "is closed"] {
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_peer_that_the_channel_has_failed_is_refused_once() {
    for lasts in [false, true] {
        let nets = nets([lasts, lasts]);
        let mut ranks = pair(&nets);
        ranks[0].rails.want(ranks[0].id());
        until(&mut ranks, "a stream", connected);
        ranks[0].fail();
        // It offers another one.
        ranks[1].lose();
        until(&mut ranks, "a refusal", |ranks| ranks[0].refused > 0);
        until(&mut ranks, "its end", |ranks| !ranks[1].has_wire());
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 300 {
            ranks.iter_mut().for_each(Rank::poll);
            assert!(!ranks[1].has_wire());
        }
        assert_eq!(ranks[0].refused, 1);
    }
}

#[test]
fn a_rank_that_ends_leaves_whole_runs_on_rails_that_last() {
    let nets = nets([true]);
    let mut ranks = pair(&nets);
    ranks[0].rails.want(ranks[0].id());
    until(&mut ranks, "a stream", connected);
    let [mut here, mut there] = ranks;
    here.bytes = 30_000;
    here.poll();
    // More than the rail has room for is begun.
    let sent = here.sent();
    assert!(sent > ROOM, "{sent}");
    std::thread::scope(|scope| {
        let takes = scope.spawn(move || {
            let begun = std::time::Instant::now();
            while there.taken < sent && begun.elapsed().as_secs() < 5 {
                there.poll();
            }
            there.taken
        });
        drop(here);
        assert_eq!(takes.join().expect("it takes them"), sent);
    });
}

#[test]
fn a_peer_that_makes_no_call_is_waited_for() {
    let nets = nets([false, true]);
    let mut ranks = pair(&nets);
    ranks[0].bytes = 1000;
    ranks[0].rails.want(ranks[0].id());
    let begun = std::time::Instant::now();
    let mut busy = 0;
    let mut polls = 0;
    while begun.elapsed().as_millis() < 700 {
        busy += u32::from(ranks[0].rails.has_ready());
        polls += 1;
        ranks[0].poll();
    }
    assert!(!ranks[0].has_wire() && ranks[0].unreachable.is_none());
    assert!(
        busy < 100,
        "it may sleep: {busy} of {polls} polls find something"
    );
    until(&mut ranks, "all bytes pass", |ranks| ranks[1].taken == 1000);
    assert_eq!(ranks[0].generations.len(), 1);
}

// spec B5: only one of both channels finds that nothing comes.
#[test]
fn a_member_that_is_silent_is_left_for_another() {
    let nets = nets([true, false]);
    let mut ranks = pair(&nets);
    ranks[0].rails.want(ranks[0].id());
    exchange(&mut ranks, 20_000);
    nets[0].turn(Way::Silent);
    ranks.iter_mut().for_each(|rank| rank.bytes += 50_000);
    // As the channel does after a while.
    ranks[1].lose();
    exchange(&mut ranks, 1);
    let before = ranks[0].generations.len();
    nets[0].turn(Way::Good);
    until(&mut ranks, "back", |ranks| {
        connected(ranks) && ranks[0].generations.len() > before
    });
    exchange(&mut ranks, 50_000);
}

// spec B6: a rail is used again once it has answered.
#[test]
fn a_member_that_lasts_is_not_offered_before_it_answers() {
    let nets = nets([true, false]);
    let mut ranks = pair(&nets);
    ranks[0].rails.want(ranks[0].id());
    exchange(&mut ranks, 20_000);
    nets[0].turn(Way::Quiet);
    // Only one of both finds that nothing comes.
    ranks[1].lose();
    exchange(&mut ranks, 20_000);
    let before = ranks.each_ref().map(Rank::offers);
    for _ in 0..2 {
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 500 {
            ranks.iter_mut().for_each(Rank::poll);
        }
        // As for a process that was stopped, its silence begins anew.
        nets[0].turn(Way::Quiet);
    }
    assert_eq!(ranks.each_ref().map(Rank::offers), before);
    nets[0].turn(Way::Good);
    until(&mut ranks, "back", |ranks| {
        connected(ranks) && ranks[0].offers() > before[0]
    });
    exchange(&mut ranks, 20_000);
}

/// A thread runs a handler while another one asks the member that was left for a rail.
#[test]
fn a_member_that_is_asked_before_the_channel_leaves_it_is_made_anew() {
    let nets = nets([false, false]);
    let mut ranks = pair(&nets);
    ranks[0].rails.want(ranks[0].id());
    exchange(&mut ranks, 20_000);
    // Only one of both can make its rails.
    nets[0].fail(1);
    nets[0].turn(Way::Silent);
    ranks[1].lose();
    let begun = std::time::Instant::now();
    let new = loop {
        assert!(begun.elapsed().as_secs() < 20, "another one");
        ranks[1].poll();
        if let Some(new) = ranks[0].next() {
            break new;
        }
    };
    let begun = std::time::Instant::now();
    while begun.elapsed().as_millis() < 200 {
        ranks[1].poll();
        assert!(ranks[0].next().is_none());
    }
    ranks[0].adopt(new);
    exchange(&mut ranks, 20_000);
    let before = ranks[0].generations.len();
    nets[0].turn(Way::Good);
    until(&mut ranks, "back", |ranks| {
        connected(ranks) && ranks[0].generations.len() > before
    });
    exchange(&mut ranks, 20_000);
}

/// The system's list was wrong, or the rank is on this host.
#[test]
fn a_rail_that_is_made_again_at_a_lost_address_is_used() {
    let address = core::net::IpAddr::from([192, 0, 2, 1]);
    let nets = nets([false, false]);
    nets.iter().for_each(|net| net.place(0, address));
    let mut ranks = pair(&nets);
    ranks[0].rails.add_address(address);
    ranks[0].rails.want(ranks[0].id());
    exchange(&mut ranks, 20_000);
    let before = ranks[0].generations.len();
    ranks[0].rails.report_change();
    ranks.iter_mut().for_each(|rank| rank.bytes += 50_000);
    until(&mut ranks, "a stream at the lost address", |ranks| {
        connected(ranks) && ranks[0].generations.len() > before
    });
    exchange(&mut ranks, 50_000);
}

// spec B2: all that was under way goes on over another rail. spec B3: each byte is taken once.
#[test]
fn every_byte_passes_whatever_is_cut() {
    for seed in 0..3 {
        let chance = Chance::new(seed);
        let nets = [seed % 2 == 0, false, seed % 3 == 0]
            .map(|lasts| Net::new(lasts, ROOM, Some(chance.clone())));
        let mut ranks = pair(&nets);
        ranks[0].rails.want(ranks[0].id());
        for _ in 0..30 {
            ranks.iter_mut().for_each(|rank| rank.bytes += 20_000);
            for _ in 0..chance.below(300) {
                ranks[chance.below(2)].poll();
            }
            let net = &nets[chance.below(3)];
            match chance.below(4) {
                0 => net.turn([Way::Refuses, Way::Silent][chance.below(2)]),
                1 => net.cut(),
                _ => net.turn(Way::Good),
            }
            if chance.below(6) == 0 {
                ranks[chance.below(2)].lose();
            }
        }
        nets.iter().for_each(|net| net.turn(Way::Good));
        // As channels do that hear nothing.
        ranks.iter_mut().for_each(Rank::lose);
        exchange(&mut ranks, 1);
    }
}
