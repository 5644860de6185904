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
