//! A file that processes of one host share, mapped.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fd::BorrowedFd;
use rustix::fs::{fstat, ftruncate};
use rustix::thread::futex;

pub(crate) const WORD: u64 = 8;
pub(crate) const PAGE: u64 = 4096;
/// Words of the identity at the beginning of a file.
pub(crate) const IDENTITY_WORDS: u64 = 8;

/// The mapping.
///
/// Invariant: the map holds `len` bytes, a multiple of the page size, as long as this value lives.
/// Words are accessed as `AtomicU64`, those that threads sleep on as `AtomicU32`; ranges of bytes
/// through `bulk` and atomics.
pub(crate) struct HostFile {
    base: NonNull<u8>,
    len: u64,
    /// Read and written in place of words outside of the map.
    nowhere: AtomicU64,
    no_sleep: AtomicU32,
    _map: MmapRaw,
}

// SAFETY: the map belongs to the process, not to a thread, and is accessed as the invariant says,
// by atomics.
unsafe impl Send for HostFile {}
// SAFETY: as above.
unsafe impl Sync for HostFile {}

/// A file that cannot be used.
pub(crate) enum HostFileError {
    /// It is another one; why.
    Wrong(String),
    /// The system refused something.
    Os {
        action: &'static str,
        source: std::io::Error,
    },
}

/// Words that lie one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a, const N: usize>(&'a [AtomicU64; N]);

impl<const N: usize> Words<'_, N> {
    #[inline(always)]
    pub(crate) fn get(&self, number: usize) -> u64 {
        self.0[number].load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn load(&self, number: usize, order: Ordering) -> u64 {
        self.0[number].load(order)
    }

    #[inline(always)]
    pub(crate) fn set(&self, number: usize, value: u64) {
        self.0[number].store(value, Ordering::Relaxed);
    }

    /// Moves a word on by one, releasing, if no other thread has moved it from `held` before.
    #[inline(always)]
    pub(crate) fn advance(&self, number: usize, held: u64) -> bool {
        let next = held.wrapping_add(1);
        let word = &self.0[number];
        word.compare_exchange(held, next, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }
}

impl HostFile {
    /// Makes the file at least `len` bytes long, whole pages, and maps it.
    ///
    /// All processes call it with the same length; fresh bytes are zero.
    pub(crate) fn map(file: BorrowedFd<'_>, len: u64) -> Result<Self, HostFileError> {
        let os = |action| move |source: std::io::Error| HostFileError::Os { action, source };
        let wrong = |reason: &str| HostFileError::Wrong(reason.to_owned());
        if !len.is_multiple_of(PAGE) {
            return Err(wrong("its length is not one of whole pages"));
        }
        let stat = fstat(file).map_err(|e| os("look at the interfaces' file")(e.into()))?;
        if u64::try_from(stat.st_size).unwrap_or(0) < len {
            ftruncate(file, len)
                .map_err(|e| os("set the length of the interfaces' file")(e.into()))?;
        }
        let map = MmapOptions::new()
            .len(len as usize)
            .map_raw(&file)
            .map_err(os("map the interfaces' file"))?;
        let base = NonNull::new(map.as_mut_ptr()).ok_or_else(|| wrong("it was mapped nowhere"))?;
        Ok(Self {
            base,
            len,
            nowhere: AtomicU64::new(0),
            no_sleep: AtomicU32::new(0),
            _map: map,
        })
    }

    /// The first process writes the identity; all others compare it.
    pub(crate) fn identify(
        &self,
        identity: [u64; IDENTITY_WORDS as usize],
    ) -> Result<(), HostFileError> {
        for (at, wanted) in (0..).step_by(WORD as usize).zip(identity) {
            let word = self.word(at);
            // Not 0, so that a word that is 0 was not written.
            let held = match word.compare_exchange(
                0,
                wanted.wrapping_add(1),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => wanted,
                Err(held) => held.wrapping_sub(1),
            };
            if held != wanted {
                return Err(HostFileError::Wrong(format!(
                    "word {} of its identity is {held:#x} and should be {wanted:#x}: another version of the library, or other sizes",
                    at / WORD
                )));
            }
        }
        Ok(())
    }

    /// The word at this place, or, outside of the file, `nowhere`, which no record uses.
    #[inline(always)]
    pub(crate) fn word(&self, at: u64) -> &AtomicU64 {
        if at.is_multiple_of(WORD) && at < self.len {
            // SAFETY: the length is a multiple of the page size, so a whole aligned word lies in
            // the map, which lives as long as self; words are accessed as atomics only (invariant).
            unsafe { &*self.base.as_ptr().add(at as usize).cast() }
        } else {
            &self.nowhere
        }
    }

    /// So many words from this place on; `None` if they are not all in the file.
    #[inline(always)]
    pub(crate) fn words<const N: usize>(&self, at: u64) -> Option<Words<'_, N>> {
        let end = at.checked_add(N as u64 * WORD)?;
        if !at.is_multiple_of(WORD) || end > self.len {
            return None;
        }
        // SAFETY: they lie in the map, which lives as long as self; words are accessed as atomics
        // only (invariant).
        Some(Words(unsafe {
            &*self.base.as_ptr().add(at as usize).cast()
        }))
    }

    /// A word that threads sleep on; the place is a multiple of 8, or is rounded down to one.
    #[inline(always)]
    pub(crate) fn sleep_word(&self, at: u64) -> &AtomicU32 {
        if at >= self.len {
            return &self.no_sleep;
        }
        let at = at & !(WORD - 1);
        // SAFETY: as in `word`; it is accessed as an `AtomicU32` only.
        unsafe { &*self.base.as_ptr().add(at as usize).cast() }
    }

    #[inline(always)]
    pub(crate) fn load(&self, at: u64) -> u64 {
        self.word(at).load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn store(&self, at: u64, value: u64) {
        self.word(at).store(value, Ordering::Relaxed);
    }

    /// `len` bytes from this place on; `None` if they are not all in the file.
    #[inline(always)]
    pub(crate) fn bytes(&self, at: u64, len: u64) -> Option<NonNull<u8>> {
        let end = at.checked_add(len)?;
        if end > self.len {
            return None;
        }
        // SAFETY: inside of the map, or one past its end.
        Some(unsafe { self.base.add(at as usize) })
    }

    /// The address of a place in the file.
    ///
    /// # Safety
    /// The place is not beyond the end of the file.
    #[inline(always)]
    pub(crate) unsafe fn address(&self, at: u64) -> NonNull<u8> {
        // SAFETY: inside of the map, or one past its end (caller).
        unsafe { self.base.add(at as usize) }
    }
}

/// Sleeps while the word has this value, up to a time; may return for nothing.
pub(crate) fn sleep_on(word: &AtomicU32, value: u32, timeout: Option<Duration>) {
    let timeout = timeout.map(|time| futex::Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    });
    // Every outcome means the same: look again. The word is shared with other processes, so the
    // futex is not a private one.
    let _ = futex::wait(word, futex::Flags::empty(), value, timeout.as_ref());
}

/// The bit of a word that says that threads sleep on it, or are about to.
pub(crate) const SLEEPS: u32 = 1;

/// Makes an odd word the next even number and wakes the threads that sleep on it; whether it was
/// odd.
pub(crate) fn wake_sleepers(word: &AtomicU32) -> bool {
    let next = |word: u32| (word & SLEEPS != 0).then(|| word.wrapping_add(1));
    let woken = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next);
    let any = woken.is_ok();
    if any {
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }
    any
}
