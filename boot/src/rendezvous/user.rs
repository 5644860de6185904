//! Whether the user of this process can be distinguished from others: in a user namespace the
//! kernel shows every user that it has no name for as one, the overflow user.

use std::fs;
use std::io::ErrorKind;

/// The overflow user, where the system does not say which it is.
const USUAL_OVERFLOW: u32 = 65534;

/// Why the user cannot be distinguished from others, if so.
pub(super) fn check() -> Result<(), String> {
    let user = rustix::process::geteuid().as_raw();
    let overflow = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    let overflow = overflow.and_then(|text| text.trim().parse().ok());
    match fs::read_to_string("/proc/self/uid_map") {
        // A kernel without user namespaces.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        map => check_user(
            user,
            overflow.unwrap_or(USUAL_OVERFLOW),
            &map.unwrap_or_default(),
        ),
    }
}

/// The same for a user, with the map of the namespace as `/proc/self/uid_map` has it.
fn check_user(user: u32, overflow: u32, map: &str) -> Result<(), String> {
    if user != overflow || has_all(map) {
        return Ok(());
    }
    Err(format!(
        "its user namespace does not map all users, so that it sees others as {user}, which it is itself, and could join those of \
         another; be another user there (`unshare --map-current-user`), or start the program outside of the namespace"
    ))
}

/// Whether a map has all users: its lines are the first user inside, the first outside, the number.
///
/// With one that has the overflow user and not all, those that it has not look like that one.
fn has_all(map: &str) -> bool {
    map.lines().any(|line| {
        let count = line.split_whitespace().nth(2);
        count.and_then(|count| count.parse().ok()) == Some(u32::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overflow_user_is_refused_unless_the_namespace_maps_it() {
        const ALL: &str = "         0          0 4294967295\n";
        assert_eq!(check_user(1000, 65534, ""), Ok(()));
        assert_eq!(check_user(65534, 65534, ALL), Ok(()), "it is mapped");
        for map in [
            "",
            "0 1000 1\n",
            "x",
            "0 1000 1\n65534 7 1\n",
            "0 100000 65536\n",
        ] {
            let error = check_user(65534, 65534, map).unwrap_err();
            assert!(error.contains("sees others as 65534"), "{error}");
        }
    }
}
