//! Random numbers of the system, for keys, nonces and identities.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Fills `place` with numbers that no process can predict.
///
/// It blocks only until the system has collected its first random numbers after it has started.
///
/// # Errors
/// What the system says; it has none.
pub fn fill(mut place: &mut [u8]) -> Result<(), Errno> {
    while !place.is_empty() {
        match getrandom(&mut *place, GetRandomFlags::empty()) {
            Ok(filled) => place = &mut place[filled..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A number that no process can predict.
///
/// # Errors
/// Those of [`fill`].
pub fn number() -> Result<u64, Errno> {
    let mut bytes = [0; size_of::<u64>()];
    fill(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_place_is_filled() {
        // More than the system gives in one call.
        let mut bytes = vec![0; 1 << 20];
        fill(&mut bytes).unwrap();
        for part in bytes.chunks(64) {
            assert!(part.iter().any(|byte| *byte != 0));
        }
        fill(&mut []).unwrap();
    }

    #[test]
    fn numbers_differ() {
        assert_ne!(number().unwrap(), number().unwrap());
    }
}
