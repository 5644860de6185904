//! Whether the process of a rank has ended.
//!
//! Asked only by a thread that has waited long for it, so it may be slow. A process is known by its
//! number and the time at which it was started, as numbers are used again.

use super::layout::WORD;
use super::region::Region;
use core::sync::atomic::Ordering;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

/// Field of `/proc/PID/stat` that holds the time of start, counted from behind the name.
const START_TIME_FIELD: usize = 19;

/// The time at which a process was started, in ticks of the system; `None` if there is none.
fn start_time(pid: Pid) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name may hold anything, but its closing bracket is the last.
    let (_, fields) = stat.rsplit_once(')')?;
    fields
        .split_whitespace()
        .nth(START_TIME_FIELD)?
        .parse()
        .ok()
}

impl Region {
    /// Makes the calling process that of the rank at `place`.
    pub(super) fn join(&self, place: u32) {
        let at = self.layout.joined(place);
        let pid = getpid();
        // Without /proc the number alone must do.
        self.store(at + WORD, start_time(pid).unwrap_or(0));
        let number = pid.as_raw_nonzero().get() as u64;
        self.word(at).store(number, Ordering::Release);
    }

    /// Whether the process of a rank has ended.
    ///
    /// A process whose state is unknown counts as alive; so does one that has not joined yet.
    pub(super) fn has_ended(&self, place: u32) -> bool {
        let at = self.layout.joined(place);
        let number = self.word(at).load(Ordering::Acquire);
        if number == 0 {
            return false;
        }
        // A value that is no number of a process was not written by a working one.
        let Some(pid) = i32::try_from(number).ok().and_then(Pid::from_raw) else {
            return true;
        };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => return error == Errno::SRCH,
        };
        let started = self.load(at + WORD);
        if started != 0 && start_time(pid).is_some_and(|now| now != started) {
            return true;
        }
        // The pidfd is readable once all threads have ended, even if no process has waited for
        // them.
        let mut end = [PollFd::new(&pidfd, PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut end, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }
}
