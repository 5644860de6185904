//! Reports of ranks that run on this host, out of the memory files in which they keep them.

use rustix::fs::{Mode, OFlags};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// No report is longer, in bytes; a file of this name that is, is none of argonet's.
const LONGEST: u64 = 1 << 26;

/// One kind of memory file: its name, and its report in words.
pub(super) type Kind = (&'static str, fn(&[u8]) -> Option<String>);

/// The reports of all ranks that this user may look at, or of one process and those that it has
/// started, out of memory files of some kinds.
///
/// `what` names the property of a rank with such a file, and `which` the jobs whose ranks have one,
/// for the message if there is none.
pub(super) fn text(kinds: &[Kind], [what, which]: [&str; 2], pid: Option<u32>) -> String {
    let mut text = String::new();
    for process in processes() {
        if pid.is_none_or(|root| is_within(process, root)) {
            for report in kinds.iter().flat_map(|kind| reports(process, kind)) {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "process {process}: {report}");
            }
        }
    }
    if text.is_empty() {
        let whose = pid.map_or("on this host".to_owned(), |pid| format!("of process {pid}"));
        text = format!(
            "no rank {whose} {what}: ranks of jobs {which} do, and only their user sees them, while they run\n"
        );
    }
    text
}

/// All processes, in order.
fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    all.sort_unstable();
    all
}

/// Whether a process is `root`, or was started by it or by one that is.
fn is_within(process: u32, root: u32) -> bool {
    let mut process = process;
    while process != root {
        match parent(process) {
            Some(parent) if parent != 0 => process = parent,
            _ => return false,
        }
    }
    true
}

fn parent(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may hold anything: state and parent.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// The reports of a process; none if it has ended meanwhile, or belongs to another user.
fn reports(process: u32, kind: &Kind) -> Vec<String> {
    let directory = PathBuf::from(format!("/proc/{process}/fd"));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let report = |entry: std::fs::DirEntry| report(&entry.path(), kind);
    entries.filter_map(report).collect()
}

fn report(descriptor: &Path, &(wanted, read): &Kind) -> Option<String> {
    let target = std::fs::read_link(descriptor).ok()?;
    let name = target.to_str()?.strip_prefix("/memfd:")?;
    if name.split(' ').next()? != wanted {
        return None;
    }
    // Its process may have put a pipe in its place meanwhile, which would be waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(descriptor, flags, Mode::empty()).ok()?);
    let kind = file.metadata().ok()?;
    if !kind.is_file() || kind.len() > LONGEST {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    read(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::os::fd::AsRawFd as _;

    /// Names of memory files are their processes' choice, and so is what is in them.
    #[test]
    fn files_that_are_too_long_are_not_read() {
        let file = File::from(memfd_create("argonet-long", MemfdFlags::CLOEXEC).unwrap());
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let kind: Kind = ("argonet-long", |bytes| Some(bytes.len().to_string()));
        for (len, wanted) in [(16, Some("16")), (LONGEST + 8, None), (8, Some("8"))] {
            file.set_len(len).unwrap();
            assert_eq!(report(&path, &kind).as_deref(), wanted, "{len} bytes");
        }
        assert_eq!(report(&path, &("argonet-other", kind.1)), None);
    }
}
