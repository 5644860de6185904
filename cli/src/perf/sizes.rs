//! Metrics by size, of which curves are drawn.

use super::metric::{Metric, Side, Unit};
use super::over::Over;
use super::pair::LARGEST;
use super::table::{COPY, Network, RING_CROSS, RING_ECHO, network};
use super::{limits, memory, messages, mock_ring};
use argonet::MAX_MEDIUM;
use argonet_base::size::parse_size;
use std::ops::RangeInclusive;

/// Below it a copy alone is no limit of a message.
const SMALLEST_LONG: usize = 4096;

/// A family of metrics, one for each size.
struct Family {
    name: &'static str,
    /// Also the name of its curve.
    what: &'static str,
    unit: Unit,
    sizes: RangeInclusive<usize>,
    /// Nanoseconds of the smallest operation, about.
    base_ns: u64,
    ours: Side,
    limit: (&'static str, Side),
}

#[rustfmt::skip]
const OF_MEMORY: [Family; 5] = [
    Family { name: "am-medium-rt", what: "AM medium echo", unit: Unit::Microseconds, sizes: 1..=MAX_MEDIUM, base_ns: 400,
        ours: messages::medium_echo, limit: (RING_ECHO, mock_ring::echo) },
    Family { name: "am-medium", what: "AM medium flood, copied out", unit: Unit::Gigabytes, sizes: 1..=MAX_MEDIUM, base_ns: 25,
        ours: messages::medium_flood_copied, limit: (RING_CROSS, mock_ring::flood_copied) },
    Family { name: "am-long", what: "AM long flood", unit: Unit::Gigabytes, sizes: SMALLEST_LONG..=LARGEST, base_ns: 40,
        ours: messages::long_flood, limit: (COPY, limits::copy_there) },
    Family { name: "put", what: "put", unit: Unit::Gigabytes, sizes: 1..=LARGEST, base_ns: 2,
        ours: memory::put_flood, limit: (COPY, limits::copy_there) },
    Family { name: "get", what: "get", unit: Unit::Gigabytes, sizes: 1..=LARGEST, base_ns: 2,
        ours: memory::get_flood, limit: (COPY, limits::copy_here) },
];

#[rustfmt::skip]
fn of_network(raw: &Network) -> [Family; 4] {
    let [stream, _] = raw.streams;
    [
    Family { name: "am-medium-rt", what: "AM medium echo", unit: Unit::Microseconds, sizes: 1..=MAX_MEDIUM, base_ns: 1_000,
        ours: messages::medium_echo, limit: raw.round },
    Family { name: "am-long", what: "AM long flood", unit: Unit::Gigabytes, sizes: SMALLEST_LONG..=LARGEST, base_ns: 100,
        ours: messages::long_flood, limit: stream },
    Family { name: "put", what: "put", unit: Unit::Gigabytes, sizes: 1..=LARGEST, base_ns: 100,
        ours: memory::put_started, limit: stream },
    Family { name: "get", what: "get", unit: Unit::Gigabytes, sizes: SMALLEST_LONG..=LARGEST, base_ns: 100,
        ours: memory::get_started, limit: raw.back },
]}

/// Sizes that a plot has when none are given: powers of four.
pub(crate) fn usual() -> Vec<usize> {
    (0..=11).map(|i| 1 << (2 * i)).collect()
}

/// Reads one size of the list.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    let size = parse_size(text)
        .ok()
        .and_then(|size| usize::try_from(size).ok());
    size.filter(|size| (1..=LARGEST).contains(size))
        .ok_or_else(|| format!("a size from 1 to {LARGEST} bytes is needed, such as 64 or 4KiB"))
}

/// All families of a conduit at these sizes, as far as they go.
pub(crate) fn metrics(over: Over, sizes: &[usize]) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let families = match over.shares_memory() {
        true => Vec::from(OF_MEMORY),
        false => of_network(network(over)).into(),
    };
    for family in families {
        for &size in sizes.iter().filter(|size| family.sizes.contains(size)) {
            let metric = Metric::new(
                format!("{}@{size}", family.name),
                format!("{}, {size} B", family.what),
                family.unit,
                size,
                // Some 20 bytes a nanosecond.
                family.base_ns + size as u64 / 20,
                family.ours,
            );
            let metric = metric.limit(family.limit.0, family.limit.1);
            metrics.push(metric.curve(family.what));
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_sizes_are_left_out() {
        let names: Vec<_> = metrics(Over::DEFAULT, &[64, 65536, 65537]);
        let names: Vec<_> = names.into_iter().map(|m| m.subject.name).collect();
        assert!(names.contains(&"am-medium@65536".into()));
        assert!(!names.contains(&"am-medium@65537".into()));
        assert!(!names.contains(&"am-long@64".into()));
        assert!(names.contains(&"put@65537".into()));
    }

    #[test]
    fn a_conduit_is_compared_with_what_carries_its_messages() {
        for over in Over::all().filter(|over| !over.shares_memory()) {
            let all = super::super::table::metrics(over);
            for metric in all.iter().chain(&metrics(over, &usual())) {
                let is_of_datagrams = metric.subject.limit_is.starts_with("raw datagrams");
                assert_eq!(is_of_datagrams, over.sends_datagrams(), "{over:?}");
            }
        }
    }

    #[test]
    fn bad_sizes_are_refused() {
        assert_eq!(parse("4KiB"), Ok(4096));
        for bad in ["0", "-1", "5MiB", "many", ""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn usual_sizes_are_allowed() {
        assert!(
            usual()
                .iter()
                .all(|size| parse(&size.to_string()) == Ok(*size))
        );
    }
}
