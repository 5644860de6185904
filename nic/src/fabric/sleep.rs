//! Waiting for what comes through an endpoint.

use super::FabricError;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// How long a thread sleeps where the provider cannot wake it: at first, and twice as long each
/// time nothing has come, so often.
const NAP: Duration = Duration::from_micros(20);
const DOUBLINGS: u32 = 8;

/// How a thread sleeps until something comes: at a descriptor that can be read then.
#[derive(Debug)]
pub struct Sleep(Kind);

#[derive(Debug)]
enum Kind {
    /// The provider's, which stays open here.
    Descriptor(OwnedFd),
    /// A timer, as the provider wakes no thread; and how often in turn nothing had come.
    Nap(OwnedFd, AtomicU32),
}

impl Sleep {
    /// At a descriptor of a provider's queue.
    pub(super) fn at(descriptor: BorrowedFd<'_>) -> Result<Self, FabricError> {
        let own = descriptor.try_clone_to_owned();
        let own = own.map_err(|source| FabricError::Os {
            action: "keep a descriptor of libfabric",
            source,
        })?;
        Ok(Self(Kind::Descriptor(own)))
    }

    /// At a descriptor of the caller's, which can be read while something has come.
    #[must_use]
    pub fn at_own(descriptor: OwnedFd) -> Self {
        Self(Kind::Descriptor(descriptor))
    }

    /// At a timer, where nothing wakes a thread.
    ///
    /// # Errors
    /// The system has none.
    pub fn nap() -> Result<Self, FabricError> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags);
        let timer = timer.map_err(|source| FabricError::Os {
            action: "make a timer",
            source: source.into(),
        })?;
        Ok(Self(Kind::Nap(timer, AtomicU32::new(0))))
    }

    /// Before a thread sleeps at the descriptor: whether it wakes for what comes from now on.
    ///
    /// `may_sleep` asks the provider.
    pub fn arm(&self, may_sleep: impl FnOnce() -> bool) -> bool {
        match &self.0 {
            Kind::Descriptor(_) => may_sleep(),
            Kind::Nap(timer, naps) => {
                let before = naps.fetch_add(1, Ordering::Relaxed).min(DOUBLINGS);
                let nap = Timespec {
                    tv_sec: 0,
                    tv_nsec: (NAP * (1 << before)).subsec_nanos().into(),
                };
                let once = Itimerspec {
                    it_interval: Timespec::default(),
                    it_value: nap,
                };
                timerfd_settime(timer, TimerfdTimerFlags::empty(), &once).is_ok()
            }
        }
    }

    /// Something has come.
    #[inline]
    pub fn note(&self) {
        if let Kind::Nap(_, naps) = &self.0 {
            naps.store(0, Ordering::Relaxed);
        }
    }

    /// How often in turn nothing had come, if it sleeps at a timer.
    #[cfg(test)]
    pub(crate) fn naps(&self) -> Option<u32> {
        match &self.0 {
            Kind::Descriptor(_) => None,
            Kind::Nap(_, naps) => Some(naps.load(Ordering::Relaxed)),
        }
    }
}

impl AsFd for Sleep {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Descriptor(descriptor) | Kind::Nap(descriptor, _) => descriptor.as_fd(),
        }
    }
}
