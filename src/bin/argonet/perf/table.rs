//! All metrics, each with its raw limit and its goal.

use super::metric::{EQUAL, Goal, Limit, Metric, Side, Unit};
use super::{collectives, limits, memory, messages};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Operations of one chunk, for operations of about so many nanoseconds: a chunk lasts about a
/// millisecond, short beside a time slice, long beside the clock.
const fn chunk_of(estimate_ns: u64) -> u64 {
    let count = 1_000_000 / estimate_ns;
    if count == 0 { 1 } else { count }
}

const fn metric(
    name: &'static str,
    what: &'static str,
    unit: Unit,
    bytes: usize,
    estimate_ns: u64,
    ours: Side,
) -> Metric {
    Metric {
        name,
        what,
        unit,
        bytes,
        count: chunk_of(estimate_ns),
        ours,
        limit: None,
        goal: Goal::Information,
    }
}

impl Metric {
    const fn limit(mut self, what: &'static str, side: Side) -> Self {
        let count = self.count;
        self.limit = Some(Limit { what, side, count });
        self
    }

    /// A goal and a limit as measured on the machine where the goals were set.
    const fn goal(mut self, goal: f64, of_limit: f64) -> Self {
        self.goal = Goal::Ratio(goal / of_limit);
        self
    }

    const fn equal(mut self) -> Self {
        self.goal = Goal::Ratio(EQUAL);
        self
    }

    const fn within_ns(mut self, ns: f64) -> Self {
        self.goal = Goal::Nanoseconds(ns);
        self
    }
}

const LINES: &str = "a cache line each way";
const RING_CALL: &str = "mock ring, 4 messages a line, handler called";
const RING_COPY: &str = "mock ring, copied in";
const RING_CROSS: &str = "mock ring, copied in and out";
const RING_ECHO: &str = "mock ring each way, copied in and across";
const COPY: &str = "memcpy";

/// The table.
#[rustfmt::skip]
pub(crate) const METRICS: &[Metric] = &[
    metric("am-short-rt", "AM short round trip", Unit::Microseconds, 0, 350, messages::short_round_trip)
        .limit(LINES, limits::ping_pong).goal(0.36, 0.25),
    metric("am-short-flood", "AM short one way, flood", Unit::Nanoseconds, 0, 8, messages::short_flood)
        .limit(RING_CALL, limits::ring_flood_unread).goal(10.0, 4.0),
    metric("am-medium-rt-8", "AM medium 8 B echo", Unit::Microseconds, 8, 400, messages::medium_echo)
        .limit(RING_ECHO, limits::ring_echo).goal(0.40, 0.29),
    metric("am-medium-rt-512", "AM medium 512 B echo", Unit::Microseconds, 512, 600, messages::medium_echo)
        .limit(RING_ECHO, limits::ring_echo).goal(0.50, 0.35),
    metric("am-medium-rt-4k", "AM medium 4 KiB echo", Unit::Microseconds, 4 * KIB, 1_500, messages::medium_echo)
        .limit(RING_ECHO, limits::ring_echo),
    metric("am-medium-rt-64k", "AM medium 64 KiB echo", Unit::Microseconds, 64 * KIB, 10_000, messages::medium_echo)
        .limit(RING_ECHO, limits::ring_echo).goal(1.1, 1.0),
    metric("am-medium-in-64k", "AM medium 64 KiB request, empty reply", Unit::Microseconds, 64 * KIB, 3_000, messages::medium_round_trip)
        .limit("mock ring, copied in, a line back", limits::ring_round_trip).goal(2.5, 2.0),
    metric("am-medium-flood-64", "AM medium 64 B flood, unread", Unit::Nanoseconds, 64, 30, messages::medium_flood_unread)
        .limit(RING_COPY, limits::ring_flood_unread).within_ns(40.0),
    metric("am-medium-flood-512", "AM medium 512 B flood, unread", Unit::Nanoseconds, 512, 60, messages::medium_flood_unread)
        .limit(RING_COPY, limits::ring_flood_unread).goal(0.055, 0.038),
    metric("am-medium-flood-4k", "AM medium 4 KiB flood, unread", Unit::Nanoseconds, 4 * KIB, 200, messages::medium_flood_unread)
        .limit(RING_COPY, limits::ring_flood_unread).goal(0.19, 0.146),
    metric("am-medium-copied-64", "AM medium 64 B flood, copied out", Unit::Nanoseconds, 64, 40, messages::medium_flood_copied)
        .limit(RING_CROSS, limits::ring_flood_copied),
    metric("am-medium-copied-512", "AM medium 512 B flood, copied out", Unit::Nanoseconds, 512, 120, messages::medium_flood_copied)
        .limit(RING_CROSS, limits::ring_flood_copied).goal(1.15, 1.0),
    metric("am-medium-copied-4k", "AM medium 4 KiB flood, copied out", Unit::Nanoseconds, 4 * KIB, 500, messages::medium_flood_copied)
        .limit(RING_CROSS, limits::ring_flood_copied).goal(1.15, 1.0),
    metric("am-long-flood-64k", "AM long 64 KiB flood", Unit::Gigabytes, 64 * KIB, 2_000, messages::long_flood)
        .limit(COPY, limits::copy_there).goal(38.0, 36.0),
    metric("put-8", "put 8 B blocking", Unit::Nanoseconds, 8, 2, memory::put_word)
        .limit("a store", limits::store),
    metric("get-8", "get 8 B blocking", Unit::Nanoseconds, 8, 2, memory::get_word)
        .limit("a load", limits::load),
    metric("put-4k", "put 4 KiB flood", Unit::Gigabytes, 4 * KIB, 40, memory::put_flood)
        .limit(COPY, limits::copy_there).equal(),
    metric("put-64k", "put 64 KiB flood", Unit::Gigabytes, 64 * KIB, 2_000, memory::put_flood)
        .limit(COPY, limits::copy_there).equal(),
    metric("put-1m", "put 1 MiB flood", Unit::Gigabytes, MIB, 50_000, memory::put_flood)
        .limit(COPY, limits::copy_there).equal(),
    metric("put-4m", "put 4 MiB flood", Unit::Gigabytes, 4 * MIB, 300_000, memory::put_flood)
        .limit(COPY, limits::copy_there).equal(),
    metric("get-4k", "get 4 KiB flood", Unit::Gigabytes, 4 * KIB, 40, memory::get_flood)
        .limit(COPY, limits::copy_here).equal(),
    metric("get-64k", "get 64 KiB flood", Unit::Gigabytes, 64 * KIB, 2_000, memory::get_flood)
        .limit(COPY, limits::copy_here).equal(),
    metric("get-1m", "get 1 MiB flood", Unit::Gigabytes, MIB, 50_000, memory::get_flood)
        .limit(COPY, limits::copy_here).equal(),
    metric("get-4m", "get 4 MiB flood", Unit::Gigabytes, 4 * MIB, 300_000, memory::get_flood)
        .limit(COPY, limits::copy_here).equal(),
    metric("fetch-add", "fetch-and-add u64", Unit::Nanoseconds, 0, 7, memory::fetch_add)
        .limit("the processor's", limits::fetch_add).goal(6.6, 6.0),
    metric("barrier", "barrier", Unit::Microseconds, 0, 400, collectives::barrier)
        .limit("a line each way at once", limits::exchange),
    metric("broadcast-8", "broadcast 8 B", Unit::Microseconds, 0, 800, collectives::broadcast)
        .limit("a line each way at once", limits::exchange),
    metric("reduce-all-8", "reduce-to-all 8 B", Unit::Microseconds, 0, 800, collectives::reduce_all)
        .limit(LINES, limits::ping_pong),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }

    #[test]
    fn whoever_has_a_ratio_for_a_goal_has_a_limit() {
        for metric in METRICS {
            let ratio = matches!(metric.goal, Goal::Ratio(_));
            assert!(!ratio || metric.limit.is_some(), "{}", metric.name);
        }
    }
}
