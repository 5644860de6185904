//! Statistics.

use super::{Place, SHORTS};
use crate::support::Job;
use std::collections::BTreeSet;

/// The count and the sum behind a name in statistics.
pub(super) fn row(summary: &str, name: &str) -> (u64, u64) {
    let wanted = format!("{name}:");
    let found = summary
        .lines()
        .find_map(|line| line.split_once("> ")?.1.trim_start().strip_prefix(&wanted));
    let row = found.unwrap_or_else(|| panic!("no {name} in {summary}"));
    let count = row.split_whitespace().next().and_then(|n| n.parse().ok());
    let sizes = row.split_once("sz (bytes) = ").map(|(_, after)| after);
    let total = sizes.and_then(|s| s.split_whitespace().next()?.split('/').nth(3)?.parse().ok());
    (count.expect("a count"), total.unwrap_or(0))
}

pub(super) fn stats() {
    for size in [1, 2, 4] {
        let place = Place::new();
        Job::launched(size, "traced")
            .env("GASNET_STATSFILE", &place.name("s-%"))
            .run()
            .well();
        for rank in 0..size {
            let summary = place.read(&format!("s-{rank}"));
            assert!(
                summary
                    .lines()
                    .all(|line| line.starts_with(&format!("{rank}> ")))
            );
            assert_eq!(row(&summary, "PUT"), (3, 32));
            assert_eq!(row(&summary, "Total puts"), (3, 32));
            assert_eq!(row(&summary, "GET"), (1, 24));
            assert_eq!(row(&summary, "ATOMIC"), (1, 8));
            let shorts = u64::from(SHORTS);
            assert_eq!(row(&summary, "AMREQUEST_SHORT"), (shorts, 0));
            assert_eq!(row(&summary, "AMREPLY_SHORT_HANDLER"), (shorts, 0));
            assert_eq!(row(&summary, "AMREQUEST_MEDIUM_HANDLER"), (1, 100));
            // Messages sent: requests and replies, 100 and 16 bytes of payload.
            assert_eq!(row(&summary, "Total AM's"), (2 * shorts + 2, 116));
            assert_eq!(row(&summary, "Total barriers").0, 2);
        }
    }
}

pub(super) fn some_stats() {
    let place = Place::new();
    Job::launched(3, "traced")
        .env("GASNET_STATSFILE", &place.name("s"))
        .env("GASNET_STATSNODES", "0,2")
        .env("GASNET_STATSMASK", "^A")
        .run()
        .well();
    let summary = place.read("s");
    let ranks: BTreeSet<&str> = summary.lines().map(|line| &line[..2]).collect();
    assert_eq!(ranks, BTreeSet::from(["0>", "2>"]));
    assert!(
        !summary.contains("AMREQUEST") && summary.contains(" GET:"),
        "{summary}"
    );
}
