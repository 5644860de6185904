//! Traces for viewers: trace events in JSON.

use super::{Place, SHORTS, expected};
use crate::support::Job;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The events of a trace for viewers; the closing bracket may be missing.
pub(super) fn events(text: &str, is_closed: bool) -> Vec<Value> {
    let text = text.trim_end();
    assert_eq!(text.ends_with(']'), is_closed, "{text}");
    let whole = if is_closed {
        text.to_owned()
    } else {
        format!("{text}]")
    };
    serde_json::from_str(&whole).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(super) fn text<'e>(event: &'e Value, key: &str) -> &'e str {
    event[key].as_str().unwrap_or_default()
}

/// In nanoseconds, which three digits of microseconds are.
pub(super) fn nanos(value: &Value) -> u64 {
    (value.as_f64().unwrap_or_else(|| panic!("no time: {value}")) * 1000.0).round() as u64
}

/// Process and thread.
type Thread = (u64, u64);
/// Begin, end and name of a span.
type Stretch<'e> = (u64, u64, &'e str);

/// Checks that hold for every trace for viewers.
pub(super) fn check_events(events: &[Value]) {
    let mut open: BTreeMap<Thread, Vec<Stretch<'_>>> = BTreeMap::new();
    let mut begun: BTreeMap<Thread, Vec<&str>> = BTreeMap::new();
    for event in events {
        let id = |key: &str| event[key].as_u64().unwrap_or(0);
        let thread = (id("pid"), id("tid"));
        let name = text(event, "name");
        match text(event, "ph") {
            "X" => {
                let begin = nanos(&event["ts"]);
                let end = begin + nanos(&event["dur"]);
                open.entry(thread).or_default().push((begin, end, name));
            }
            "B" => begun.entry(thread).or_default().push(name),
            "E" => assert_eq!(begun.get_mut(&thread).and_then(Vec::pop), Some(name)),
            "s" | "f" => assert!(text(event, "id").starts_with("0x"), "{event}"),
            "M" | "i" => {}
            other => panic!("phase {other}: {event}"),
        }
    }
    assert!(
        begun.values().all(Vec::is_empty),
        "handlers that do not end: {begun:?}"
    );
    for spans in open.values_mut() {
        // Of two spans of a thread one holds the other, or they are apart.
        spans.sort_by_key(|&(begin, end, _)| (begin, std::cmp::Reverse(end)));
        let mut around: Vec<Stretch<'_>> = Vec::new();
        for &(begin, end, name) in spans.iter() {
            while around.last().is_some_and(|&(_, end, _)| end <= begin) {
                around.pop();
            }
            if let Some(outer) = around.last() {
                assert!(
                    end <= outer.1,
                    "{name} from {begin} to {end} crosses {outer:?}"
                );
            }
            around.push((begin, end, name));
        }
    }
}

/// Times at which messages leave and arrive, by their number.
pub(super) fn flows(events: &[Value]) -> BTreeMap<&str, (Vec<u64>, Vec<u64>)> {
    let mut flows: BTreeMap<&str, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for event in events {
        let at = || (nanos(&event["ts"]), text(event, "id"));
        match text(event, "ph") {
            "s" => flows.entry(at().1).or_default().0.push(at().0),
            "f" => {
                assert_eq!(text(event, "bp"), "e");
                flows.entry(at().1).or_default().1.push(at().0);
            }
            _ => {}
        }
    }
    flows
}

pub(super) fn json() {
    for size in [1, 2, 4] {
        let place = Place::new();
        Job::launched(size, "traced")
            .env("GASNET_TRACEFILE", &place.name("t.json"))
            .run()
            .well();
        let text = place.read("t.json");
        let events = events(&text, true);
        check_events(&events);
        let named: BTreeSet<u64> = events
            .iter()
            .filter(|event| event["name"] == "process_name")
            .filter_map(|event| event["pid"].as_u64())
            .collect();
        assert_eq!(named, (0..u64::from(size)).collect());
        for rank in 0..size {
            for (name, count) in expected(size) {
                let (name, is_local) = match name.strip_suffix("_LOCAL") {
                    Some(name) => (name, true),
                    None => (name, false),
                };
                let own = |event: &&Value| {
                    let peer = event["args"]["peer"].as_u64();
                    let is_rma = ["PUT", "GET"].contains(&name);
                    event["pid"] == rank
                        && event["name"] == name
                        && event["ph"] != "E"
                        && (!is_rma || (peer == Some(rank.into())) == is_local)
                };
                let found = events.iter().filter(own).count();
                assert_eq!(
                    found, count,
                    "{name} of rank {rank}, local {is_local}: {text}"
                );
            }
        }
        let flows = flows(&events);
        assert_eq!(flows.len(), (size * (2 * SHORTS + 2)) as usize);
        for (id, (left, arrived)) in flows {
            assert!(
                left.len() == 1 && arrived.len() == 1,
                "{id}: {left:?} {arrived:?}"
            );
            assert!(left[0] <= arrived[0], "{id} arrives before it leaves");
        }
    }
}

pub(super) fn json_of_each() {
    let place = Place::new();
    Job::self_started(2, "traced")
        .env("GASNET_TRACEFILE", &place.name("%.trace"))
        .env("ARGONET_TRACE_FORMAT", "perfetto")
        .run()
        .well();
    let texts = [place.read("0.trace"), place.read("1.trace")];
    let both: Vec<Value> = texts.iter().flat_map(|text| events(text, true)).collect();
    check_events(&both);
    let flows = flows(&both);
    assert!(
        flows
            .values()
            .all(|(left, arrived)| left.len() == 1 && arrived.len() == 1)
    );
}

pub(super) fn of_threads() {
    let place = Place::new();
    Job::launched(2, "traced_threads")
        .env("GASNET_TRACEFILE", &place.name("t.json"))
        .run()
        .well();
    let text = place.read("t.json");
    let events = events(&text, true);
    check_events(&events);
    for rank in 0..2 {
        let puts = events
            .iter()
            .filter(|e| e["pid"] == rank && e["name"] == "PUT");
        let mut of_thread: BTreeMap<u64, usize> = BTreeMap::new();
        puts.for_each(|put| {
            *of_thread
                .entry(put["tid"].as_u64().expect("a thread"))
                .or_default() += 1
        });
        // A thread that ends leaves its class, not its number, to the next.
        assert_eq!(of_thread.values().collect::<Vec<_>>(), [&1000; 4]);
    }
    let flows = flows(&events);
    assert_eq!(flows.len(), 800);
    for (id, (left, arrived)) in flows {
        assert!(
            left.len() == 1 && arrived.len() == 1 && left[0] <= arrived[0],
            "{id}"
        );
    }
}
