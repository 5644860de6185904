//! Signals that are none of a library's business.

use core::ffi::c_int;
use core::{mem, ptr};

/// Gives a signal its previous action back, when dropped: a library's loop of events may take
/// `SIGCHLD` for itself (libev does), and with it the exit codes of all children of the process,
/// among them the ranks of a job that has started itself.
pub(super) struct Kept {
    signal: c_int,
    action: libc::sigaction,
}

impl Kept {
    pub(super) fn of(signal: c_int) -> Self {
        // SAFETY: zero is a valid `sigaction`.
        let mut action = unsafe { mem::zeroed() };
        // SAFETY: nothing is set, and the place is valid.
        unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
        Self { signal, action }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: the action before is still valid: its code belongs to the program, which has not
        // run meanwhile.
        unsafe { libc::sigaction(self.signal, &raw const self.action, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    fn action(signal: libc::c_int) -> usize {
        Kept::of(signal).action.sa_sigaction
    }

    #[test]
    fn a_signal_gets_its_action_back() {
        let signal = libc::SIGURG;
        let before = action(signal);
        assert_ne!(before, libc::SIG_IGN);
        let kept = Kept::of(signal);
        // SAFETY: the signal is ignored, which is its default, too.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
        assert_eq!(action(signal), libc::SIG_IGN);
        drop(kept);
        assert_eq!(action(signal), before);
    }
}
