//! Whether other threads of this process can do anything, as the system reports.
//!
//! A thread that sleeps on a futex without a time-out, as in a join, on a mutex or a condition
//! variable, does nothing before another thread wakes it. The library's own threads, which
//! [`argonet_base::threads`] knows, do nothing for the program by themselves.

use std::fs;
use std::path::Path;

use argonet_base::threads::is_of_library;
use rustix::thread::gettid;

/// Whether a thread other than the calling one may act before it is woken by one.
///
/// True where the system does not report it.
pub(crate) fn others_may_act() -> bool {
    any_other(|thread| !read(thread, "syscall").is_some_and(|call| sleeps_until_woken(&call)))
}

/// Whether there is a thread beside the calling one and the library's own.
///
/// True where the system does not report it.
pub(crate) fn others_exist() -> bool {
    any_other(|_| true)
}

/// Whether such a thread is among the client's but the calling one, by their directories.
fn any_other(is_such: impl Fn(&Path) -> bool) -> bool {
    let own = gettid().as_raw_nonzero().to_string();
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return true;
    };
    threads.flatten().any(|thread| {
        let name = thread.file_name();
        let number = name.to_str().and_then(|n| n.parse().ok());
        name != *own && !number.is_some_and(is_of_library) && is_such(&thread.path())
    })
}

fn read(thread: &Path, file: &str) -> Option<String> {
    fs::read_to_string(thread.join(file)).ok()
}

/// Whether a line of `/proc/PID/task/TID/syscall` is a wait on a futex without a time-out.
fn sleeps_until_woken(line: &str) -> bool {
    let mut fields = line.split_whitespace();
    let number = fields.next().and_then(|n| n.parse().ok());
    let mut argument = |skip| {
        let field: Option<&str> = fields.nth(skip);
        let digits = field?.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    };
    let (operation, timeout) = (argument(1), argument(1));
    let waits = |operation: u64| {
        // Without the flags for private futexes and for the clock.
        let command = (operation as i32) & libc::FUTEX_CMD_MASK;
        matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET)
    };
    number == Some(libc::SYS_futex) && operation.is_some_and(waits) && timeout == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn only_a_futex_without_a_time_out_is_a_sleep_until_woken() {
        let futex = libc::SYS_futex;
        let line = |rest: &str| format!("{futex} 0x7f3a {rest} 0x0 0xffffffff 0x7ffc 0x7f3b\n");
        assert!(sleeps_until_woken(&line("0x80 0x2 0x0")));
        assert!(sleeps_until_woken(&line("0x189 0x0 0x0")));
        assert!(
            !sleeps_until_woken(&line("0x189 0x0 0x7ffd10")),
            "a time-out"
        );
        assert!(!sleeps_until_woken(&line("0x81 0x1 0x0")), "a wake-up");
        for other in ["running\n", "230 0x0 0x0 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", ""] {
            assert!(!sleeps_until_woken(other), "{other:?}");
        }
    }

    #[test]
    fn a_thread_that_runs_may_act() {
        let (stop, stopped) = channel::<()>();
        let spinning = thread::spawn(move || {
            while stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
                std::hint::spin_loop();
            }
        });
        assert!(others_may_act() && others_exist());
        drop(stop);
        spinning.join().unwrap();
    }
}
