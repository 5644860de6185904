//! How much the cases try.

/// How many seeds `CONFORMANCE_SEEDS` asks for; `None` if it is not set.
///
/// # Panics
/// If it is no number.
#[must_use]
pub fn seeds_asked() -> Option<u64> {
    let seeds = std::env::var("CONFORMANCE_SEEDS").ok()?;
    Some(seeds.parse().expect("CONFORMANCE_SEEDS is a number"))
}

/// So many messages where seeds are asked for, else a third.
///
/// Threads must meet inside of calls for a lock that is missing to show, so with fewer messages
/// more runs miss it.
pub(crate) fn messages(many: u32) -> u32 {
    match seeds_asked() {
        Some(_) => many,
        None => many / 3,
    }
}
