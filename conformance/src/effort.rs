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

/// `many` if `CONFORMANCE_SEEDS` is set, else a third of them.
///
/// A missing lock shows only when two threads are inside a call at once. Fewer messages make that
/// rarer, so more runs pass despite the fault.
pub(crate) fn fewer_unless_seeds(many: u32) -> u32 {
    match seeds_asked() {
        Some(_) => many,
        None => many / 3,
    }
}
