//! Random numbers of the system, for keys, nonces and identities.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::Read;

/// Fills `place` with random bytes, which no process can predict.
///
/// It blocks only until the system has collected its first random numbers after it has started.
/// Where a sandbox forbids `getrandom`, they come from `/dev/urandom`.
///
/// # Errors
/// The system's, if it gives this process no random bytes.
pub fn fill(mut place: &mut [u8]) -> Result<(), Errno> {
    while !place.is_empty() {
        match getrandom(&mut *place, GetRandomFlags::empty()) {
            Ok(filled) => place = &mut place[filled..],
            Err(Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => return read(place),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// As [`fill`], from a file.
fn read(place: &mut [u8]) -> Result<(), Errno> {
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(place));
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
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
        // The first is more than one call of `getrandom` returns, 32 MiB.
        for (len, fill) in [(36 << 20, fill as fn(&mut [u8]) -> _), (1 << 20, read)] {
            let mut bytes = vec![0; len];
            fill(&mut bytes).unwrap();
            for part in bytes.chunks(64) {
                assert!(part.iter().any(|byte| *byte != 0));
            }
        }
        fill(&mut []).unwrap();
    }

    #[test]
    fn numbers_differ() {
        assert_ne!(number().unwrap(), number().unwrap());
    }
}
