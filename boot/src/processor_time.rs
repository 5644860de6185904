//! Processor time of the threads of a process, as the scheduler of Linux counts it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Pid;

/// Further lists of the threads of a process, at most, until one is as the last one was.
const LISTS: usize = 16;

/// Times of one thread since it began, and whether it runs or could run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadTime {
    /// Its id.
    pub(crate) thread: u32,
    /// On a processor.
    pub(crate) ran: Duration,
    /// Ready, without a processor.
    ///
    /// A wait is counted when it ends.
    pub(crate) waited: Duration,
    /// Whether it is on a processor or waits for one.
    pub(crate) is_ready: bool,
}

impl ThreadTime {
    /// Those of all threads that the process has now; none of a process that has ended.
    ///
    /// Times are zero where the system does not count.
    pub(crate) fn of_all(pid: Pid) -> Vec<Self> {
        let tasks = PathBuf::from(format!("/proc/{pid}/task"));
        let list = || -> BTreeSet<OsString> {
            let tasks = fs::read_dir(&tasks).into_iter().flatten().flatten();
            tasks.map(|task| task.file_name()).collect()
        };
        // The system may leave some out behind one that it has listed and that ends meanwhile: the
        // next list lacks that one.
        let mut last = list();
        let mut names = last.clone();
        for _ in 0..LISTS {
            let next = list();
            if next == last {
                break;
            }
            names.extend(next.iter().cloned());
            last = next;
        }
        let times = names.iter().map(|name| Self::of(&tasks.join(name)));
        times.flatten().collect()
    }

    /// Times of the thread with this directory; `None` once it has ended.
    fn of(task: &Path) -> Option<Self> {
        let thread = task.file_name()?.to_str()?.parse().ok()?;
        let stat = fs::read_to_string(task.join("stat")).ok()?;
        let times = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        let mut times = times.split(' ').map(|number| number.parse().unwrap_or(0));
        let mut next = || Duration::from_nanos(times.next().unwrap_or(0));
        Some(Self {
            thread,
            ran: next(),
            waited: next(),
            is_ready: is_ready(&stat),
        })
    }
}

/// Whether the state in this line of `stat` is the one of threads that run or could run.
///
/// It follows the thread's name, which may contain anything.
fn is_ready(stat: &str) -> bool {
    let (_, rest) = stat.rsplit_once(')').unwrap_or_default();
    rest.trim_start().starts_with('R')
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    const ROUNDS: usize = 300;

    fn of_thread(thread: u32) -> ThreadTime {
        let task = PathBuf::from(format!("/proc/self/task/{thread}"));
        ThreadTime::of(&task).expect("a thread that has not ended")
    }

    fn own_id() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }

    #[test]
    fn work_counts_for_its_thread() {
        let (go_on, rest) = channel::<()>();
        let (sender, receiver) = channel();
        let idle = thread::spawn(move || {
            sender.send(own_id()).unwrap();
            rest.recv().unwrap_err();
        });
        let (own, other) = (own_id(), receiver.recv().unwrap());
        let begin = of_thread(own);
        let mut sum = 0_u64;
        let end = begin.ran + Duration::from_millis(20);
        // On a busy machine the other may take longer to come to its rest.
        while of_thread(own).ran < end || of_thread(other).is_ready {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(of_thread(own).is_ready);
        let other = of_thread(other);
        assert!(other.ran < Duration::from_millis(20), "{other:?}");
        drop(go_on);
        idle.join().unwrap();
    }

    /// Threads that began earlier end while the system lists them.
    #[test]
    fn a_thread_is_found_while_others_end() {
        let pid = rustix::process::getpid();
        for _ in 0..ROUNDS {
            let go = Arc::new(AtomicBool::new(false));
            let few = [(); 16].map(|()| {
                let go = Arc::clone(&go);
                thread::spawn(move || {
                    while !go.load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                })
            });
            let (last, rest) = channel::<()>();
            let (sender, receiver) = channel();
            let idle = thread::spawn(move || {
                sender.send(own_id()).unwrap();
                rest.recv().unwrap_err();
            });
            let thread = receiver.recv().unwrap();
            go.store(true, Ordering::Relaxed);
            for _ in 0..4 {
                let all = ThreadTime::of_all(pid);
                let is_found = all.iter().any(|time| time.thread == thread);
                assert!(is_found, "{thread} of {all:?}");
            }
            drop(last);
            few.into_iter().for_each(|one| one.join().unwrap());
            idle.join().unwrap();
        }
    }

    #[test]
    fn the_state_follows_the_last_parenthesis() {
        for (stat, ready) in [
            ("7 (prog) R 1 7", true),
            ("7 (prog) S 1 7", false),
            ("7 (prog) D 1 7", false),
            ("7 (a) R (b) S 1 7", false),
            ("7 (a) S (b)) R 1 7", true),
            ("", false),
        ] {
            assert_eq!(is_ready(stat), ready, "{stat}");
        }
    }
}
