//! Processes by what `/proc` says of them: parents and times of start.
//!
//! A process id alone may be another's by the time that it is used; with the time of start it is
//! one process.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::{OwnedFd, RawFd};

use rustix::process::{Pid, PidfdFlags, getpgid, pidfd_open};

use crate::sys;

/// The longest chain of parents that is followed.
const MOST_GENERATIONS: usize = 64;

/// The process that starts all others.
const INIT: u32 = 1;

/// Facts of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts {
    parent: u32,
    /// In ticks of the clock since the system started.
    started: u64,
}

impl Facts {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// From the text of `/proc/PID/stat`.
    fn parse(text: &str) -> Option<Self> {
        // The name, in brackets, may hold anything; the state follows, then the parent.
        let (_, fields) = text.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        let parent = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self { parent, started })
    }
}

/// The process that made the socket behind a descriptor by socketpair, or listened for it: its id
/// and the time of its start.
///
/// `None` where there is no such socket, or the process has ended.
pub(crate) fn maker_of_socket(raw: RawFd) -> Option<String> {
    let fd = sys::examine_fd(raw)?;
    let maker = sys::peer_of(fd).ok()?;
    let started = Facts::of(maker.pid)?.started;
    Some(format!("{} {started}", maker.pid))
}

/// A process, its parent, and so on.
fn generations(pid: u32) -> Vec<u32> {
    let parents = std::iter::successors(Some(pid), |&pid| {
        Facts::of(pid)
            .map(|facts| facts.parent)
            .filter(|&parent| parent > INIT)
    });
    parents.take(MOST_GENERATIONS).collect()
}

/// The youngest process from which all of these descend and that is none of them.
fn common_ancestor(pids: &[u32], generations: impl Fn(u32) -> Vec<u32>) -> Option<u32> {
    let (first, others) = pids.split_first()?;
    let chains: Vec<Vec<u32>> = others.iter().map(|&pid| generations(pid)).collect();
    let is_common = |pid: &u32| chains.iter().all(|chain| chain.contains(pid));
    let mut own = generations(*first).into_iter();
    own.find(|pid| !pids.contains(pid) && is_common(pid))
}

/// The process of the launcher on this host that started these processes, all alive: its id, and a
/// descriptor of it.
///
/// `None` where they have none in common but init.
pub(crate) fn starter_of(pids: &[u32]) -> Option<(u32, OwnedFd)> {
    let starter = common_ancestor(pids, generations)?;
    let pid = Pid::from_raw(i32::try_from(starter).ok()?)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // Had the id become another's before it was opened, they would not descend from it any more.
    let same = common_ancestor(pids, generations) == Some(starter);
    same.then_some((starter, pidfd))
}

/// Of each of these processes, whether it leads a process group that is its own: none of the others
/// is in it, and no process between another and `starter`, which started all of them.
///
/// Other launchers may put all their processes into the group of the first.
pub(crate) fn lead_own_groups(pids: &[u32], starter: Option<u32>) -> Vec<bool> {
    let groups: Vec<Vec<u32>> = pids
        .iter()
        .map(|&pid| {
            let chain = generations(pid).into_iter();
            let own = chain.take_while(|&pid| Some(pid) != starter);
            own.filter_map(group_of).collect()
        })
        .collect();
    alone_in_groups(pids, &groups)
}

/// The same, from the groups of each of them and of the processes between it and the starter.
fn alone_in_groups(pids: &[u32], groups: &[Vec<u32>]) -> Vec<bool> {
    let mut members: HashMap<u32, HashSet<usize>> = HashMap::new();
    for (i, groups) in groups.iter().enumerate() {
        for &group in groups {
            members.entry(group).or_default().insert(i);
        }
    }
    let is_alone = |(i, pid): (usize, &u32)| {
        groups[i].first() == Some(pid) && members.get(pid).is_some_and(|all| all.len() == 1)
    };
    pids.iter().enumerate().map(is_alone).collect()
}

fn group_of(pid: u32) -> Option<u32> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    u32::try_from(getpgid(Some(pid)).ok()?.as_raw_nonzero().get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::CommandExt;
    use std::process;

    #[test]
    fn parent_and_start_are_found_behind_any_name() {
        let rest = "S 41 3 3 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        for name in ["(sh)", "() ) S 1 (x)", "(a b) c)"] {
            let facts = Facts::parse(&format!("42 {name} {rest}")).unwrap();
            let expected = Facts {
                parent: 41,
                started: 4711,
            };
            assert_eq!(facts, expected, "{name}");
        }
        for text in ["", "42 (sh", "42 (sh) S", "42 (sh) S x 1"] {
            assert_eq!(Facts::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_common_ancestor_is_the_youngest_that_is_no_rank() {
        let chains = |pid| match pid {
            10 => vec![10, 7, 5, 2],
            11 => vec![11, 5, 2],
            12 => vec![12, 10, 7, 5, 2],
            13 => vec![13],
            _ => Vec::new(),
        };
        assert_eq!(common_ancestor(&[10, 11], chains), Some(5));
        assert_eq!(
            common_ancestor(&[10, 12], chains),
            Some(7),
            "a rank's child"
        );
        assert_eq!(common_ancestor(&[10, 13], chains), None);
        assert_eq!(common_ancestor(&[10, 99], chains), None);
        assert_eq!(common_ancestor(&[], chains), None);
    }

    #[test]
    fn a_socket_names_its_maker_until_that_is_started_again() {
        let (one, other) = UnixStream::pair().unwrap();
        let by = maker_of_socket(one.as_raw_fd()).unwrap();
        assert_eq!(maker_of_socket(other.as_raw_fd()).as_ref(), Some(&by));
        assert!(by.starts_with(&format!("{} ", process::id())), "{by}");
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(maker_of_socket(file.as_raw_fd()), None);
        assert_eq!(maker_of_socket(-1), None);
        assert_eq!(maker_of_socket(1 << 20), None);
    }

    #[test]
    fn a_group_with_others_is_nobodys_own() {
        let alone =
            |groups: [&[u32]; 3]| alone_in_groups(&[10, 11, 12], &groups.map(<[u32]>::to_vec));
        assert_eq!(alone([&[10], &[11], &[12]]), [true; 3]);
        // As Slurm does it.
        assert_eq!(alone([&[10], &[10], &[10]]), [false; 3]);
        assert_eq!(alone([&[10], &[11, 10], &[12]]), [false, true, true]);
        // Of a shell.
        assert_eq!(alone([&[5], &[11, 11], &[]]), [false, true, false]);
    }

    #[test]
    fn the_group_of_a_child_is_its_own_until_another_joins_it() {
        let child = |group| {
            let mut command = process::Command::new("sleep");
            command.arg("1000").process_group(group).spawn().unwrap()
        };
        let first = child(0);
        let group = i32::try_from(first.id()).unwrap();
        let mut children = [first, child(0), child(group)];
        let pids = children.each_ref().map(process::Child::id);
        let own = Some(process::id());
        let found = [
            lead_own_groups(&pids[..2], own),
            lead_own_groups(&pids, own),
        ];
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found[0], [true, true]);
        assert_eq!(found[1], [false, true, false]);
    }

    #[test]
    fn children_descend_from_this_process() {
        let child = || process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut children = [child(), child()];
        let pids = children.each_ref().map(process::Child::id);
        let found = starter_of(&pids).map(|(pid, _)| pid);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found, Some(process::id()));
    }
}
