//! All metrics of one job of ranks, each with its raw limit and its goal.

use super::metric::{Goal, Metric, Side, Unit};
use super::over::Over;
use super::{collectives, datagrams, halo, limits, memory, messages, mock_ring, modes, sockets};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

const LINES: &str = "a cache line each way";
const RING_CALL: &str = "mock ring, 4 messages a line, handler called";
const RING_COPY: &str = "mock ring, copied in";
pub(super) const RING_CROSS: &str = "mock ring, copied in and out";
pub(super) const RING_ECHO: &str = "mock ring each way, copied in and across";
pub(super) const COPY: &str = "memcpy";

const SEQ: &str = "the same, SEQ";
const LOOPS: &str = "loops written by hand";

const LONG_DATAGRAMS: &str = "raw datagrams of 65,000 bytes";
const GATHERED_DATAGRAMS: &str = "raw datagrams of 4 KiB, a call each";

pub(super) const ROUND: &str = "raw sockets, busy";
const ONE_WRITE: &str = "raw sockets, a write each";
const GATHERED: &str = "raw sockets, writes of 4 KiB, a call each";
const BEST_STREAM: &str = "raw sockets, the better of 1 and 2";
pub(super) const STREAM: &str = "raw sockets, a stream";

/// The table of a conduit.
pub(crate) fn metrics(over: Over) -> Vec<Metric> {
    match over.shares_memory() {
        true => of_memory(),
        // Raw limits of memory need ranks that share it; beside sockets figures are read for
        // themselves.
        false if over.sends_datagrams() => of_network(&DATAGRAMS),
        false => of_network(&SOCKETS),
    }
}

/// Raw limits over a network, and the ratios that are wanted to them.
struct Network {
    /// A message there and as many bytes back.
    round: (&'static str, Side),
    /// The same for a message of the least size, for an operation of any size.
    short_round: Side,
    most_rounds: f64,
    /// Both ranks at the same time.
    exchange: (&'static str, Side),
    most_exchanges: f64,
    /// Messages, and puts of a word, that are gathered by hand.
    gathered: (&'static str, [Side; 2]),
    gathered_goals: [Goal; 2],
    /// Bytes one way, for pieces of 4 KiB, and for longer ones.
    streams: [(&'static str, Side); 2],
    /// For pieces of 4 KiB, of 64 KiB, and for longer ones.
    most_streams: [f64; 3],
    /// The other way.
    back: (&'static str, Side),
}

const SOCKETS: Network = Network {
    round: (ROUND, sockets::round_trip),
    short_round: sockets::short_round_trip,
    most_rounds: 1.10,
    exchange: ("raw sockets, both at once", sockets::exchange),
    most_exchanges: 4.0 / 3.1,
    gathered: (
        GATHERED,
        [sockets::gathered_shorts, sockets::gathered_words],
    ),
    gathered_goals: [Goal::Ratio(0.06 / 0.03), Goal::Ratio(0.05 / 0.03)],
    streams: [
        (ONE_WRITE, sockets::stream),
        (BEST_STREAM, sockets::best_stream),
    ],
    most_streams: [1.2 / 2.0, 1.0 / 0.9, 1.0 / 0.9],
    back: (STREAM, sockets::stream_back),
};

const DATAGRAMS: Network = Network {
    round: ("raw datagrams, busy", datagrams::round_trip),
    short_round: datagrams::short_round_trip,
    most_rounds: 1.12,
    exchange: ("raw datagrams, both at once", datagrams::exchange),
    most_exchanges: 1.45,
    gathered: (
        GATHERED_DATAGRAMS,
        [datagrams::gathered_shorts, datagrams::gathered_words],
    ),
    gathered_goals: [Goal::Nanoseconds(80.0), Goal::Nanoseconds(100.0)],
    streams: [(LONG_DATAGRAMS, datagrams::stream); 2],
    most_streams: [1.0 / 0.33, 1.0 / 0.66, 1.0 / 0.92],
    back: (LONG_DATAGRAMS, datagrams::stream_back),
};

#[rustfmt::skip]
fn of_network(raw: &Network) -> Vec<Metric> {
    let (round, short) = (raw.round, (raw.round.0, raw.short_round));
    let (gathered, [shorts, words]) = raw.gathered;
    let [short_goal, word_goal] = raw.gathered_goals;
    let [four, long] = raw.streams;
    let [most_four, most_64, most_long] = raw.most_streams;
    vec![
    Metric::new("am-short-rt", "AM short round trip", Unit::Microseconds, 0, 10_000, messages::short_round_trip).lasting(10)
        .limit(short.0, short.1).within(raw.most_rounds),
    Metric::new("am-medium-rt-512", "AM medium 512 B echo", Unit::Microseconds, 512, 10_000, messages::medium_echo).lasting(10)
        .limit(round.0, round.1),
    Metric::new("am-medium-rt-64k", "AM medium 64 KiB echo", Unit::Microseconds, 64 * KIB, 40_000, messages::medium_echo).lasting(10)
        .limit(round.0, round.1),
    Metric::new("put-8", "put 8 B blocking", Unit::Microseconds, 8, 10_000, memory::put_word).lasting(10)
        .limit(short.0, short.1).within(raw.most_rounds),
    Metric::new("get-8", "get 8 B blocking", Unit::Microseconds, 8, 10_000, memory::get_word).lasting(10)
        .limit(short.0, short.1).within(raw.most_rounds),
    Metric::new("fetch-add", "fetch-and-add u64", Unit::Microseconds, 0, 10_000, memory::fetch_add).lasting(10)
        .limit(short.0, short.1).within(raw.most_rounds),
    Metric::new("am-short-flood", "AM short one way, flood", Unit::Nanoseconds, 0, 100, messages::short_flood).lasting(10)
        .limit(gathered, shorts).goal(short_goal),
    Metric::new("put-8-started", "put 8 B, started", Unit::Nanoseconds, 8, 100, memory::put_started).lasting(10)
        .limit(gathered, words).goal(word_goal),
    Metric::new("put-4k", "put 4 KiB flood", Unit::Gigabytes, 4 * KIB, 4_000, memory::put_started).lasting(20)
        .limit(four.0, four.1).within(most_four),
    Metric::new("put-64k", "put 64 KiB flood", Unit::Gigabytes, 64 * KIB, 20_000, memory::put_started).lasting(20)
        .limit(long.0, long.1).within(most_64),
    Metric::new("put-1m", "put 1 MiB flood", Unit::Gigabytes, MIB, 200_000, memory::put_started).lasting(20)
        .limit(long.0, long.1).within(most_long),
    Metric::new("put-4m", "put 4 MiB flood", Unit::Gigabytes, 4 * MIB, 1_000_000, memory::put_started).lasting(20)
        .limit(long.0, long.1).within(most_long),
    Metric::new("get-64k", "get 64 KiB flood", Unit::Gigabytes, 64 * KIB, 20_000, memory::get_started).lasting(20)
        .limit(raw.back.0, raw.back.1),
    Metric::new("get-1m", "get 1 MiB flood", Unit::Gigabytes, MIB, 200_000, memory::get_started).lasting(20)
        .limit(raw.back.0, raw.back.1),
    Metric::new("barrier", "barrier", Unit::Microseconds, 0, 6_000, collectives::barrier).lasting(10)
        .limit(raw.exchange.0, raw.exchange.1).within(raw.most_exchanges),
    Metric::new("broadcast-8", "broadcast 8 B", Unit::Microseconds, 0, 6_000, collectives::broadcast).lasting(10)
        .limit(short.0, short.1),
    Metric::new("reduce-all-8", "reduce-to-all 8 B", Unit::Microseconds, 0, 6_000, collectives::reduce_all).lasting(10)
        .limit(raw.exchange.0, raw.exchange.1),
]}

#[rustfmt::skip]
fn of_memory() -> Vec<Metric> { vec![
    Metric::new("am-short-rt", "AM short round trip", Unit::Microseconds, 0, 350, messages::short_round_trip)
        .limit(LINES, limits::ping_pong).within(0.36 / 0.25),
    Metric::new("am-short-flood", "AM short one way, flood", Unit::Nanoseconds, 0, 8, messages::short_flood)
        .limit(RING_CALL, mock_ring::flood_unread).within(10.0 / 4.0),
    Metric::new("am-medium-rt-8", "AM medium 8 B echo", Unit::Microseconds, 8, 400, messages::medium_echo)
        .limit(RING_ECHO, mock_ring::echo).within(0.40 / 0.29),
    Metric::new("am-medium-rt-512", "AM medium 512 B echo", Unit::Microseconds, 512, 600, messages::medium_echo)
        .limit(RING_ECHO, mock_ring::echo).within(0.50 / 0.35),
    Metric::new("am-medium-rt-4k", "AM medium 4 KiB echo", Unit::Microseconds, 4 * KIB, 1_500, messages::medium_echo)
        .limit(RING_ECHO, mock_ring::echo),
    Metric::new("am-medium-rt-64k", "AM medium 64 KiB echo", Unit::Microseconds, 64 * KIB, 10_000, messages::medium_echo)
        .limit(RING_ECHO, mock_ring::echo).within(1.1 / 1.0),
    Metric::new("am-medium-in-64k", "AM medium 64 KiB request, empty reply", Unit::Microseconds, 64 * KIB, 3_000, messages::medium_round_trip)
        .limit("mock ring, copied in, a line back", mock_ring::round_trip).within(2.5 / 2.0),
    Metric::new("am-medium-flood-64", "AM medium 64 B flood, unread", Unit::Nanoseconds, 64, 30, messages::medium_flood_unread)
        .limit(RING_COPY, mock_ring::flood_unread).within_ns(40.0),
    Metric::new("am-medium-flood-512", "AM medium 512 B flood, unread", Unit::Nanoseconds, 512, 60, messages::medium_flood_unread)
        .limit(RING_COPY, mock_ring::flood_unread).within(0.055 / 0.038),
    Metric::new("am-medium-flood-4k", "AM medium 4 KiB flood, unread", Unit::Nanoseconds, 4 * KIB, 200, messages::medium_flood_unread)
        .limit(RING_COPY, mock_ring::flood_unread).within(0.19 / 0.146),
    Metric::new("am-medium-copied-64", "AM medium 64 B flood, copied out", Unit::Nanoseconds, 64, 40, messages::medium_flood_copied)
        .limit(RING_CROSS, mock_ring::flood_copied),
    Metric::new("am-medium-copied-512", "AM medium 512 B flood, copied out", Unit::Nanoseconds, 512, 120, messages::medium_flood_copied)
        .limit(RING_CROSS, mock_ring::flood_copied).within(1.15 / 1.0),
    Metric::new("am-medium-copied-4k", "AM medium 4 KiB flood, copied out", Unit::Nanoseconds, 4 * KIB, 500, messages::medium_flood_copied)
        .limit(RING_CROSS, mock_ring::flood_copied).within(1.15 / 1.0),
    Metric::new("am-long-flood-64k", "AM long 64 KiB flood", Unit::Gigabytes, 64 * KIB, 2_000, messages::long_flood)
        .limit(COPY, limits::copy_there).within(38.0 / 36.0),
    Metric::new("am-long-rt-64k", "AM long 64 KiB request, empty reply", Unit::Microseconds, 64 * KIB, 3_000, messages::long_round_trip)
        .limit("mock ring, copied in, a line back", mock_ring::round_trip),
    Metric::new("put-8", "put 8 B blocking", Unit::Nanoseconds, 8, 2, memory::put_word)
        .limit("a store", limits::store),
    Metric::new("get-8", "get 8 B blocking", Unit::Nanoseconds, 8, 2, memory::get_word)
        .limit("a load", limits::load),
    Metric::new("put-4k", "put 4 KiB flood", Unit::Gigabytes, 4 * KIB, 40, memory::put_flood)
        .limit(COPY, limits::copy_there).equal(),
    Metric::new("put-64k", "put 64 KiB flood", Unit::Gigabytes, 64 * KIB, 2_000, memory::put_flood)
        .limit(COPY, limits::copy_there).equal(),
    Metric::new("put-1m", "put 1 MiB flood", Unit::Gigabytes, MIB, 50_000, memory::put_flood)
        .limit(COPY, limits::copy_there).equal(),
    Metric::new("put-4m", "put 4 MiB flood", Unit::Gigabytes, 4 * MIB, 300_000, memory::put_flood)
        .limit(COPY, limits::copy_there).equal(),
    Metric::new("get-4k", "get 4 KiB flood", Unit::Gigabytes, 4 * KIB, 40, memory::get_flood)
        .limit(COPY, limits::copy_here).equal(),
    Metric::new("get-64k", "get 64 KiB flood", Unit::Gigabytes, 64 * KIB, 2_000, memory::get_flood)
        .limit(COPY, limits::copy_here).equal(),
    Metric::new("get-1m", "get 1 MiB flood", Unit::Gigabytes, MIB, 50_000, memory::get_flood)
        .limit(COPY, limits::copy_here).equal(),
    Metric::new("get-4m", "get 4 MiB flood", Unit::Gigabytes, 4 * MIB, 300_000, memory::get_flood)
        .limit(COPY, limits::copy_here).equal(),
    Metric::new("halo-planes", "put of a face of 64^3 doubles, a plane", Unit::Microseconds, halo::FACE, 2_000, halo::put_first)
        .limit(LOOPS, halo::loops_first).within(1.3 / 1.0),
    Metric::new("halo-rows", "put of a face of 64^3 doubles, rows", Unit::Microseconds, halo::FACE, 2_000, halo::put_middle)
        .limit(LOOPS, halo::loops_middle).within(1.3 / 1.0),
    Metric::new("halo-elements", "put of a face of 64^3 doubles, elements", Unit::Microseconds, halo::FACE, 8_000, halo::put_last)
        .limit(LOOPS, halo::loops_last).within(1.3 / 1.0),
    Metric::new("fetch-add", "fetch-and-add u64", Unit::Nanoseconds, 0, 7, memory::fetch_add)
        .limit("the processor's", limits::fetch_add).within(6.6 / 6.0),
    Metric::new("barrier", "barrier", Unit::Microseconds, 0, 200, collectives::barrier)
        .limit("a line each way at once", limits::exchange).within(0.20 / 0.12),
    Metric::new("broadcast-8", "broadcast 8 B", Unit::Microseconds, 0, 250, collectives::broadcast)
        .limit("a line each way at once", limits::exchange).within(0.25 / 0.12),
    Metric::new("reduce-all-8", "reduce-to-all 8 B", Unit::Microseconds, 0, 350, collectives::reduce_all)
        .limit(LINES, limits::ping_pong).within(0.35 / 0.24),
    Metric::new("reduce-all-1m", "reduce-to-all 1 MiB of f64", Unit::Gigabytes, MIB, 400_000, collectives::reduce_all_long)
        .limit(LOOPS, collectives::reduce_by_hand).within(1.0 / 0.7),
    Metric::new("par-am-short-rt", "AM short round trip, PAR", Unit::Microseconds, 0, 400, modes::par_round_trip)
        .limit(SEQ, modes::seq_round_trip).within(1.10 / 1.0),
    Metric::new("par-put-8", "put 8 B blocking, PAR", Unit::Nanoseconds, 8, 2, modes::par_put)
        .limit(SEQ, modes::seq_put).equal(),
    Metric::new("par-get-8", "get 8 B blocking, PAR", Unit::Nanoseconds, 8, 2, modes::par_get)
        .limit(SEQ, modes::seq_get).equal(),
]}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for over in Over::all() {
            let mut names: Vec<_> = metrics(over).into_iter().map(|m| m.subject.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }

    #[test]
    fn a_metric_with_a_ratio_for_a_goal_has_a_limit() {
        for metric in Over::all().flat_map(metrics) {
            let ratio = matches!(metric.subject.goal, Goal::Ratio(_));
            assert!(!ratio || metric.limit.is_some(), "{}", metric.subject.name);
        }
    }
}
