//! Whether the user of this process can be distinguished from others: in a user namespace the
//! kernel shows every user that it has no name for as one, the overflow user.

use std::fs;

/// The overflow user, where the system does not say which it is.
const USUAL_OVERFLOW: u32 = 65534;

/// Why the user cannot be distinguished from others, if so.
pub(super) fn check() -> Result<(), String> {
    let user = rustix::process::geteuid().as_raw();
    let overflow = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    let overflow = overflow.and_then(|text| text.trim().parse().ok());
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    check_user(user, overflow.unwrap_or(USUAL_OVERFLOW), &map)
}

/// The same for a user, with the map of the namespace as `/proc/self/uid_map` has it.
fn check_user(user: u32, overflow: u32, map: &str) -> Result<(), String> {
    if user != overflow || has(map, user) {
        return Ok(());
    }
    Err(format!(
        "its user namespace does not map its user, so that it sees all users as {user} and could join those of another; map the user \
         (`unshare --map-current-user`), or start the program outside of the namespace"
    ))
}

/// Whether a map has a user: its lines are the first user inside, the first outside, the number.
fn has(map: &str, user: u32) -> bool {
    map.lines().any(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u64>);
        let (first, count) = (fields.next(), fields.nth(1));
        match (first, count) {
            (Some(Ok(first)), Some(Ok(count))) => {
                (first..first.saturating_add(count)).contains(&user.into())
            }
            _ => false,
        }
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
        assert_eq!(check_user(65534, 65534, "0 1000 1\n65534 7 1\n"), Ok(()));
        for map in ["", "0 1000 1\n", "x", "65533 0 1\n65535 0 9\n"] {
            let error = check_user(65534, 65534, map).unwrap_err();
            assert!(error.contains("sees all users as 65534"), "{error}");
        }
    }
}
