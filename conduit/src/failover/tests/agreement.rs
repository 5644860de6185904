//! Both ranks agree on a member, whatever links do.
//!
//! Many seeds: `ARGONET_SIM_SEEDS=100000 cargo test -p argonet-conduit --release --lib failover`.

use super::super::succession::{Act, Succession};
use super::world::{MS, S, Way, World};

/// Of each test, where `ARGONET_SIM_SEEDS` says nothing else.
const SEEDS: u64 = 500;

/// What was under way when faults have ended is of no effect after so long: a rail that one end has
/// closed is found to have ended after 30 s, and offers over such may be made up to 60 s later.
const SETTLED_WITHIN: u64 = 120 * S;

/// Both ranks use the best then: members are asked again after 6 s at the latest, and wait for 60 s
/// at most.
const BEST_WITHIN: u64 = 200 * S;

fn seeds() -> u64 {
    let seeds = std::env::var("ARGONET_SIM_SEEDS").ok();
    seeds.map_or(SEEDS, |seeds| seeds.parse().expect("a number"))
}

/// Runs what `run` does for each seed; a failed one says its number.
fn each_seed(run: impl Fn(u64)) {
    for seed in 0..seeds() {
        let ran = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| run(seed)));
        if let Err(panic) = ran {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Both ranks use the best member that works in the end, and stay with it.
fn ends_well(world: &mut World) {
    let end_ns = world.now_ns;
    let best = world.finally.iter().position(|way| *way == Way::Good);
    let best = best.expect("one works");
    // What was under way arrives, channels find that nothing comes, and hosts that rails have
    // ended.
    world.run_until(end_ns + SETTLED_WITHIN);
    assert!(world.agreement().is_some(), "{}", world.shown());
    while world.agreement().is_none_or(|(member, _)| member != best) {
        let late = world.now_ns > end_ns + BEST_WITHIN;
        assert!(!late, "the best is {best}: {}", world.shown());
        world.run_until(world.now_ns + 50 * MS);
    }
    let agreement = world.agreement();
    world.run_until(world.now_ns + 100 * S);
    assert_eq!(world.agreement(), agreement, "{}", world.shown());
}

/// A world of 2 to 4 members, of which at least one works in the end.
fn any_world(seed: u64) -> World {
    let mut world = World::new(seed, Vec::new(), true);
    let members = 2 + world.random(3);
    let lasts = (0..members).map(|_| world.random(2) == 0).collect();
    let mut world = World::new(seed, lasts, true);
    for member in 0..members as usize {
        if world.random(3) == 0 {
            world.finally[member] = [Way::Refuses, Way::Silent][world.random(2) as usize];
        }
    }
    let works = world.random(members) as usize;
    world.finally[works] = Way::Good;
    world
}

// spec B4, with offers that are lost, late or cross.
#[test]
fn both_ranks_agree_whatever_links_do() {
    each_seed(|seed| {
        let mut world = any_world(seed);
        let until_ns = S + world.random(20 * S);
        let [turns, breaks, stops] = [30, 20, 4].map(|most| world.random(most));
        world.faults_until(until_ns, turns, breaks, stops);
        let first = world.random(2) as usize;
        world.want(first, S);
        if world.random(2) == 0 {
            world.want(1 - first, S);
        }
        world.run_until(until_ns);
        ends_well(&mut world);
    });
}

/// Members of both kinds, all of which are like this from the beginning on.
fn world_of(seed: u64, way: Way) -> World {
    let mut world = World::new(seed, vec![false, true, false], false);
    (0..3).for_each(|member| world.turn(member, way));
    world.want(0, S);
    world.want(1, S);
    world
}

#[test]
fn where_nothing_works_little_is_done_and_the_channel_hears() {
    for seed in 0..20 {
        for (way, gives_up) in [(Way::Refuses, true), (Way::Silent, false)] {
            let mut world = world_of(seed, way);
            world.run_until(60 * S);
            // Each rank asks three members five times a second, about.
            assert!(world.acts < 2 * 60 * 3 * 6, "{way:?}: {} steps", world.acts);
            assert!(!gives_up || world.give_ups >= 2, "{way:?}");
            // It is asked for still.
            world.turn(1, Way::Good);
            world.run_until(63 * S);
            let agreement = world.agreement().map(|(member, _)| member);
            assert_eq!(agreement, Some(1), "{}", world.shown());
        }
    }
}

/// A channel may ask for a carrier that it is about to get.
#[test]
fn the_time_without_a_carrier_begins_when_it_is_lost() {
    const LIMIT: u64 = 75 * S;
    let mut machine = Succession::new(true, [true, true].into_iter(), LIMIT, 1);
    let acts = |machine: &mut Succession| -> Vec<Act> {
        core::iter::from_fn(|| machine.poll_act()).collect()
    };
    machine.want(0);
    machine.made(0, 0);
    assert_eq!(acts(&mut machine), [Act::Ask(0), Act::Offer(0, 1)]);
    machine.heard(0, 1, 0, 0);
    assert_eq!(acts(&mut machine), [Act::Carry(0, 1, 0)]);
    machine.want(0);
    let mut now_ns = 200 * S;
    machine.lost(1, now_ns);
    let end_ns = now_ns + LIMIT;
    loop {
        machine.tick(now_ns, |_| false);
        let gives_up = acts(&mut machine).contains(&Act::GiveUp);
        assert_eq!(gives_up, now_ns >= end_ns, "at {now_ns}");
        if gives_up {
            break;
        }
        now_ns = machine.poll_timeout().expect("it waits").max(now_ns + 1);
    }
}

#[test]
fn a_member_that_flaps_is_left_alone_for_longer_and_longer() {
    for seed in 0..20 {
        let mut world = world_of(seed, Way::Good);
        world.run_until(2 * S);
        assert_eq!(world.agreement().map(|(member, _)| member), Some(0));
        // The best one fails a little after each time that it carries the stream.
        let mut changes = 0;
        let end_ns = 120 * S;
        while world.now_ns < end_ns {
            if world.agreement().is_some_and(|(member, _)| member == 0) {
                changes += 1;
                world.turn(0, Way::Refuses);
                world.run_until(world.now_ns + 500 * MS);
                world.turn(0, Way::Good);
            }
            world.run_until(world.now_ns + 50 * MS);
        }
        assert!((4..=25).contains(&changes), "{changes} changes");
    }
}

#[test]
fn the_best_member_carries_again_5_s_after_it_works() {
    for seed in 0..40 {
        for (best, way) in [(0, Way::Refuses), (0, Way::Silent), (1, Way::Silent)] {
            let mut world = world_of(seed, Way::Good);
            // Both kinds as the best one.
            (0..best).for_each(|member| world.turn(member, Way::Refuses));
            world.run_until(2 * S);
            let of = |world: &World| world.agreement().map(|(member, _)| member);
            assert_eq!(of(&world), Some(best));
            world.turn(best, way);
            world.run_until((20 + seed % 7) * S);
            assert!(
                of(&world).is_some_and(|member| member > best),
                "{}",
                world.shown()
            );
            world.turn(best, Way::Good);
            world.run_until(world.now_ns + 5 * S);
            assert_eq!(of(&world), Some(best), "{way:?}: {}", world.shown());
        }
    }
}

#[test]
fn a_failure_that_only_the_peer_finds_counts() {
    let mut machine = Succession::new(true, [false, false].into_iter(), 75 * S, 1);
    let acts = |machine: &mut Succession| -> Vec<Act> {
        core::iter::from_fn(|| machine.poll_act()).collect()
    };
    machine.want(0);
    machine.made(0, 0);
    machine.heard(0, 1, 0, 0);
    machine.made(1, S);
    machine.heard(1, 2, 0, S);
    let before = acts(&mut machine);
    assert_eq!(
        before[before.len() - 2..],
        [Act::Offer(1, 2), Act::Carry(1, 2, 0)]
    );
    let names = ["a", "b"].map(str::to_owned);
    let wanted = "a down (failed once), b carries messages";
    assert_eq!(machine.in_words(&names), wanted);
    // It is asked whether it answers, after a pause.
    machine.tick(S + 80 * MS, |_| true);
    assert_eq!(acts(&mut machine), [Act::Ask(0)]);
    machine.made(0, 2 * S);
    let wanted = "a in probation (failed once), b carries messages";
    assert_eq!(machine.in_words(&names), wanted);
    // It has to be there for twice the first time.
    machine.tick(2 * S + 399 * MS, |_| true);
    assert_eq!(acts(&mut machine), []);
    machine.tick(2 * S + 400 * MS, |_| true);
    assert_eq!(acts(&mut machine), [Act::Offer(0, 3)]);
}

/// Both offer another member at once: that is no failure of the one that counts less.
#[test]
fn offers_that_cross_are_no_failure() {
    let mut machine = Succession::new(false, [false, false].into_iter(), 75 * S, 1);
    machine.want(0);
    machine.made(1, 0);
    machine.heard(0, 1, 0, 0);
    machine.heard(1, 2, 0, 0);
    let names = ["a", "b"].map(str::to_owned);
    assert_eq!(machine.in_words(&names), "a up, b carries messages");
    // The peer has offered the second one before it heard the first.
    let mut machine = Succession::new(true, [false, false].into_iter(), 75 * S, 1);
    machine.want(0);
    machine.made(0, 0);
    machine.heard(0, 1, 0, 0);
    machine.heard(1, 2, 0, S / 10);
    assert_eq!(machine.in_words(&names), "a down, b carries messages");
    assert!(!machine.has_failed(0));
    // It leaves this one later, and knows why.
    machine.made(0, S);
    machine.heard(0, 3, 0, 2 * S);
    machine.heard(1, 4, 0, 3 * S);
    assert!(machine.has_failed(0));
}

/// Both go back to a member that lasts, and one is answered late.
#[test]
fn a_carrier_is_kept_whose_other_offer_is_not_answered() {
    let mut machine = Succession::new(false, [true].into_iter(), 75 * S, 1);
    machine.want(0);
    machine.made(0, 0);
    machine.heard(0, 1, 0, 0);
    machine.tick(100 * S, |_| false);
    assert!(machine.carries(1));
    let names = ["a".to_owned()];
    assert_eq!(machine.in_words(&names), "a carries messages");
}

/// The answer may come after the member has ended and is there again.
#[test]
fn an_answer_is_not_answered() {
    let mut machine = Succession::new(true, [true].into_iter(), 75 * S, 1);
    let acts = |machine: &mut Succession| -> Vec<Act> {
        core::iter::from_fn(|| machine.poll_act()).collect()
    };
    machine.want(0);
    machine.made(0, 0);
    machine.ended(0, 1);
    assert_eq!(acts(&mut machine), [Act::Ask(0), Act::Offer(0, 1)]);
    machine.heard(0, 1, 700, 2);
    assert_eq!(acts(&mut machine), [Act::Carry(0, 1, 700)]);
    // The peer's own one is.
    machine.heard(0, 2, 900, 3);
    assert_eq!(
        acts(&mut machine),
        [Act::Offer(0, 2), Act::Carry(0, 2, 900)]
    );
}
