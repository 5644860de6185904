//! Two machines over a network that does its worst, in virtual time.

use super::super::DialConfig;
use super::world::{Way, World};
use super::{MS, S};

/// No peer answers at all: the end comes when it is due, with nothing else before.
#[test]
fn an_unreachable_peer_is_given_up_in_time() {
    for (addresses, way) in [
        (1, Way::Swallows),
        (3, Way::Swallows),
        (1, Way::Refuses),
        (2, Way::Refuses),
    ] {
        let mut world = World::new(5, addresses);
        world.all_ways(way);
        world.ask(100 * MS, 0, 0);
        world.run_until(200 * S);
        let limit = DialConfig::default().unreachable_ns;
        assert_eq!(
            world.given_up(),
            [Some((100 * MS + limit, limit)), None],
            "{way:?}"
        );
    }
}

/// A peer that computes for ten minutes is waited for, and found when it polls again.
#[test]
fn a_peer_that_does_not_poll_is_waited_for() {
    let mut world = World::new(6, 1);
    world.deaf(1, 600 * S);
    world.ask(0, 0, 0);
    world.run_until(599 * S);
    assert_eq!((world.given_up(), world.is_up(0, 0)), ([None, None], false));
    world.run_until(602 * S);
    world.assert_joined(0);
}

/// An address that leads to another host's kernel does not hide the right one.
#[test]
fn a_silent_address_is_left_for_the_next() {
    let mut world = World::new(7, 2);
    world.set_way(0, 0, Way::Silent);
    world.ask(0, 0, 0);
    world.run_until(DialConfig::default().answer_ns + S);
    world.assert_joined(0);
}

/// spec T1, by 3,000 seeds that choose which rank asks when, where addresses lead at first, and
/// which connections are reset: when the faults are over both ends have the same connection, and
/// keep it.
#[test]
fn both_ends_agree_after_any_faults() {
    let seeds = std::env::var("ARGONET_SIM_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok());
    let (mut resets, mut crossings, mut stale) = (0, 0, 0);
    for seed in 0..seeds.unwrap_or(3000u64).max(3000) {
        let world = World::trial(seed);
        resets += world.resets;
        crossings += world.crossings;
        stale += world.stale;
    }
    // The trials are worth something.
    assert!(
        resets > 1000 && crossings > 300 && stale > 0,
        "{resets} {crossings} {stale}"
    );
}
