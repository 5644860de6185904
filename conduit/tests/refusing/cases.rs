//! Each call, each of its errors, at several uses.

use crate::documented::documented;
use crate::interface::{Orders, Rule};
use crate::job::{Job, Way};
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Calls that the conduit has no use for.
const UNUSED: [&str; 10] = [
    "atomic",
    "counter_alloc",
    "counter_free",
    "counter_get",
    "counter_set",
    "fetch_atomic",
    "get",
    "portal_free",
    "put",
    "queue_free",
];
/// As these, but its own form of another call.
const POLL: &str = "queue_poll";
/// Used by sleeps and at the end of objects, where an error has no effect.
const IN_VAIN: [&str; 2] = ["portal_enable", "queue_wait"];

/// Those of the conduit.
const PORTALS: u32 = 8;

/// Where the payloads of large mediums go.
const LARGE_REQUESTS: u32 = 3;

/// Takes entries and descriptors away.
const TAKES_AWAY: [&str; 2] = ["release", "unlink"];

/// Calls that the conduit makes again by itself.
const TRIED_AGAIN: [&str; 4] = ["attach", "put_region", "release", "unlink"];

const WAYS: [Way; 3] = [Way::AtOnce, Way::Late, Way::Unpaid];
/// The first uses, and later ones.
const USES: [u32; 10] = [0, 1, 2, 3, 7, 12, 20, 33, 60, 150];

/// Calls that can fail and that the conduit makes.
fn used() -> impl Iterator<Item = (String, String)> {
    let all = documented().into_iter();
    let used = all.filter(|(call, _)| !UNUSED.contains(&call.as_str()) && call != POLL);
    used.flat_map(|(call, errors)| {
        let beside = ["Corrupt".to_owned()];
        let all = errors.into_iter().chain(beside);
        all.map(move |error| (call.clone(), error))
    })
}

/// While ranks start: it fails, with that error, and nothing else happens.
#[test]
fn a_rank_that_cannot_start_says_why() {
    let mut seen = BTreeSet::new();
    for (call, error) in used() {
        for after in USES {
            let rule = Rule {
                call: call.clone(),
                error: error.clone(),
                after,
                portal: None,
                twice: false,
            };
            let orders = Orders {
                rule: Some(rule.clone()),
                ..Orders::default()
            };
            let orders = Arc::new(Mutex::new(orders));
            let job = Job::start(Way::AtOnce, Arc::clone(&orders));
            if !orders.lock().unwrap().refused {
                assert!(job.is_ok());
                break;
            }
            seen.insert(call.clone());
            let text = job.err().map(|error| error.to_string());
            // A refusal while a failed rank is dropped is reported to no caller.
            let is_reported = text.as_ref().is_some_and(|text| text.contains("rank"));
            assert!(
                is_reported || IN_VAIN.contains(&call.as_str()),
                "{rule:?}: {text:?}"
            );
        }
    }
    let due = ["attach", "bind", "portal_alloc", "queue_alloc"];
    assert!(due.iter().all(|call| seen.contains(*call)), "{seen:?}");
}

/// While ranks work.
#[test]
fn calls_refused_once_succeed_or_are_reported() {
    let mut seen = BTreeSet::new();
    for way in WAYS {
        for (call, error) in used() {
            for after in USES {
                let rule = Rule {
                    call: call.clone(),
                    error: error.clone(),
                    after,
                    portal: None,
                    twice: false,
                };
                if !goes_on(way, &rule).refused {
                    break;
                }
                seen.insert(rule.call);
            }
        }
    }
    let called = ["attach", "bind", "get_region", "put_region", "queue_get"];
    let more = ["queue_is_empty", "release", "unlink", "queue_wait"];
    let more = more.iter().chain(&["get_answered", "put_answered"]);
    for call in called.iter().chain(more) {
        assert!(seen.contains(*call), "{call} was never refused");
    }
}

/// Each purpose has a portal of its own; the last is that of questions and answers about credits.
#[test]
fn puts_refused_once_on_any_portal_succeed_or_are_reported() {
    for portal in 0..PORTALS {
        let mut is_refused = false;
        let calls = ["put_region", "put_answered"];
        for (way, call) in WAYS
            .into_iter()
            .flat_map(|way| calls.map(|call| (way, call)))
        {
            for after in 0..8 {
                let rule = Rule {
                    call: call.to_owned(),
                    error: "NoSpace".to_owned(),
                    after,
                    portal: Some(portal),
                    twice: false,
                };
                is_refused |= goes_on(way, &rule).refused;
            }
        }
        assert!(is_refused, "no put to portal {portal} was refused");
    }
}

/// Nothing is tried a third time.
#[test]
fn calls_refused_twice_succeed_or_are_reported() {
    let mut seen = BTreeSet::new();
    for way in WAYS {
        for call in TRIED_AGAIN {
            for after in USES.into_iter().chain(4..40) {
                let rule = Rule {
                    call: call.to_owned(),
                    error: "NoSpace".to_owned(),
                    after,
                    portal: None,
                    twice: true,
                };
                let Seen { refused, twice } = goes_on(way, &rule);
                if !refused {
                    break;
                }
                if twice {
                    seen.insert(call);
                }
            }
        }
    }
    assert_eq!(seen, BTreeSet::from(TRIED_AGAIN));
}

/// Refusals of the calls of a job.
struct Seen {
    refused: bool,
    twice: bool,
}

/// A job in which a call is refused.
fn goes_on(way: Way, rule: &Rule) -> Seen {
    let orders = Arc::new(Mutex::new(Orders::default()));
    let mut job = Job::start(way, Arc::clone(&orders)).unwrap();
    let made = {
        let mut orders = orders.lock().unwrap();
        orders.rule = Some(rule.clone());
        orders.made
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        job.grow();
        job.work(way);
        let fatal = job.fatal();
        (job.compare(), fatal)
    }));
    let (errors, fatal) = outcome.unwrap_or_else(|_| panic!("{way:?}, {rule:?}"));
    let seen = {
        let orders = orders.lock().unwrap();
        Seen {
            refused: orders.refused,
            twice: orders.refused_twice,
        }
    };
    assert!(
        seen.refused || errors == 0,
        "{way:?}, {rule:?}: an error without a refusal"
    );
    if fatal > 0 {
        return seen;
    }
    // After any refusal all works again.
    orders.lock().unwrap().forget();
    assert!(
        job.grow(),
        "{way:?}, {rule:?}: the segment does not grow again"
    );
    job.work(way);
    assert_eq!(job.compare(), 0, "{way:?}, {rule:?}: a later error");
    // An object that the interface reports as missing cannot be taken away.
    let gone = i64::from(rule.error == "BadHandle" && TAKES_AWAY.contains(&rule.call.as_str()));
    let left = orders.lock().unwrap().made - made;
    assert!((0..=gone).contains(&left), "{way:?}, {rule:?}: {left} more");
    seen
}

/// The conduit makes none of the calls that are left out above, so that none is forgotten when it
/// does.
#[test]
fn calls_that_are_left_out_are_not_made() {
    for way in WAYS {
        let orders = Arc::new(Mutex::new(Orders::default()));
        let mut job = Job::start(way, Arc::clone(&orders)).unwrap();
        assert!(job.grow());
        job.work(way);
        assert_eq!(job.compare(), 0);
        drop(job);
        let called = &orders.lock().unwrap().called;
        let left_out = UNUSED.iter().chain(&[POLL]);
        let made: Vec<_> = left_out.filter(|call| called.contains(**call)).collect();
        assert!(made.is_empty(), "{made:?}");
        let known = documented();
        assert!(
            called.iter().all(|call| known.contains_key(*call)),
            "{called:?}"
        );
    }
}

/// A peer that has no room for long is asked less and less often where each try moves the data
/// again; nothing is lost by that.
#[test]
fn remote_requests_without_room_are_tried_less_and_less_often() {
    let orders = Arc::new(Mutex::new(Orders::default()));
    let mut job = Job::start(Way::Far, Arc::clone(&orders)).unwrap();
    let tries = || orders.lock().unwrap().targets[&LARGE_REQUESTS];
    // Until all requests with room have arrived, and those without were tried some times.
    job.knock(Duration::from_millis(30));
    let before = tries();
    let time = job.knock(Duration::from_millis(100));
    let more = tries() - before;
    // Some 20 milliseconds apart by then; without a pause, thousands.
    let most = 2 + time.as_millis() as u64 / 8;
    assert!((1..=most).contains(&more), "{more} tries in {time:?}");
    job.finish();
    assert_eq!(job.compare(), 0);
}

/// A rank knows when its message to itself has arrived, also where the interface takes its time.
#[test]
fn messages_to_the_own_rank_are_owed_until_they_arrive() {
    for (way, owes) in [(Way::AtOnce, false), (Way::Far, true)] {
        let mut job = Job::start(way, Arc::new(Mutex::new(Orders::default()))).unwrap();
        assert_eq!(job.send_to_itself(), owes, "{way:?}");
        job.finish();
        assert!(!job.owes_itself(), "{way:?}");
        assert_eq!(job.compare(), 0);
    }
}
