//! Memory of another process of this host, copied by the kernel ("cross memory attach"): one copy
//! and no mapping, whether the owner pays attention or not.
//!
//! An address at which the owner has nothing is an answer and no fault. Costs some 1.5 us a call,
//! and 80 ns a page.

use std::io;

use rustix::io::Errno;

/// Why bytes were not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrossMemoryError {
    /// The kernel lets this process reach nothing of that one, or not in this way.
    #[error("the kernel does not let this process reach memory of process {process}: {source}")]
    NotPermitted {
        /// The process that has the memory.
        process: u32,
        /// The error of the system.
        source: io::Error,
    },
    /// There is no such process any more.
    #[error("process {process} is gone")]
    Gone {
        /// The process that has the memory.
        process: u32,
    },
    /// Memory is not there, on this side or on that, or cannot be written.
    ///
    /// Bytes before it have been copied.
    #[error("memory of this process or of process {process} is missing after {copied} bytes")]
    Missing {
        /// The process that has the memory.
        process: u32,
        /// Bytes that were copied.
        copied: usize,
    },
}

/// Copies `len` bytes from `src` to `address` in another process.
///
/// # Safety
/// The process expects bytes to be written there. `src` need not be readable: that is noticed.
///
/// # Errors
/// [`CrossMemoryError`].
pub unsafe fn write_process(
    process: u32,
    address: u64,
    src: *const u8,
    len: usize,
) -> Result<(), CrossMemoryError> {
    copy(process, len, |at| {
        let (local, remote) = (
            vector(src.addr() + at, len - at),
            vector(address as usize + at, len - at),
        );
        // SAFETY: the vectors are this function's; the memory that they name is read here, and
        // written in the other process as this function's caller says that it expects.
        let count =
            unsafe { libc::process_vm_writev(process as libc::pid_t, &local, 1, &remote, 1, 0) };
        outcome(count)
    })
}

/// Copies `len` bytes from `address` in another process to `dst`.
///
/// # Safety
/// `dst` is writable for `len` bytes, as far as it is mapped: that is noticed.
///
/// # Errors
/// [`CrossMemoryError`].
pub unsafe fn read_process(
    process: u32,
    address: u64,
    dst: *mut u8,
    len: usize,
) -> Result<(), CrossMemoryError> {
    copy(process, len, |at| {
        let (local, remote) = (
            vector(dst.expose_provenance() + at, len - at),
            vector(address as usize + at, len - at),
        );
        // SAFETY: the vectors are this function's; `dst` is writable, as its caller promises.
        let count =
            unsafe { libc::process_vm_readv(process as libc::pid_t, &local, 1, &remote, 1, 0) };
        outcome(count)
    })
}

fn vector(address: usize, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: core::ptr::with_exposed_provenance_mut(address),
        iov_len: len,
    }
}

/// Calls until all is copied: one call stops at 2 GiB, and before memory that is missing.
fn copy(
    process: u32,
    len: usize,
    mut call: impl FnMut(usize) -> Result<usize, Errno>,
) -> Result<(), CrossMemoryError> {
    let mut copied = 0;
    while copied < len {
        match call(copied) {
            Ok(0) | Err(Errno::FAULT) => {
                return Err(CrossMemoryError::Missing { process, copied });
            }
            Ok(now) => copied += now,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(Errno::SRCH) => return Err(CrossMemoryError::Gone { process }),
            Err(error) => {
                let source = error.into();
                return Err(CrossMemoryError::NotPermitted { process, source });
            }
        }
    }
    Ok(())
}

/// The outcome of a call that has returned `count`.
fn outcome(count: isize) -> Result<usize, Errno> {
    usize::try_from(count).map_err(|_| {
        let error = io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::NOSYS)
    })
}

/// Lets the processes that descend from one, itself included, reach this process's memory, where
/// the kernel asks for such a word (the Yama module with `ptrace_scope` 1).
///
/// Elsewhere there is nothing to allow.
pub fn allow_descendants_of(process: u32) {
    // SAFETY: takes numbers alone. A kernel that does not know the request returns an error,
    // without consequences.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(process)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`copy`] makes of these outcomes of calls, and where each began.
    fn copied(
        len: usize,
        outcomes: &[Result<usize, Errno>],
    ) -> (Result<(), CrossMemoryError>, Vec<usize>) {
        let (mut begun, mut outcomes) = (Vec::new(), outcomes.iter());
        let result = copy(9, len, |at| {
            begun.push(at);
            *outcomes.next().expect("one more call")
        });
        assert!(outcomes.next().is_none(), "fewer calls");
        (result, begun)
    }

    #[test]
    fn calls_go_on_where_the_last_one_stopped() {
        let (again, busy) = (Err(Errno::INTR), Err(Errno::AGAIN));
        let (result, begun) = copied(10, &[Ok(4), again, busy, Ok(5), Ok(1)]);
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(begun, [0, 4, 4, 4, 9]);
        let (nothing, begun) = copied(0, &[]);
        assert!(nothing.is_ok() && begun.is_empty());
    }

    #[test]
    fn errors_say_what_was_copied_and_of_which_process() {
        for missing in [Ok(0), Err(Errno::FAULT)] {
            let (result, _) = copied(10, &[Ok(4), missing]);
            let Err(CrossMemoryError::Missing { process, copied }) = result else {
                panic!("{result:?}");
            };
            assert_eq!((process, copied), (9, 4));
        }
        let (gone, _) = copied(10, &[Ok(4), Err(Errno::SRCH)]);
        assert!(matches!(gone, Err(CrossMemoryError::Gone { process: 9 })));
        let (refused, _) = copied(10, &[Err(Errno::PERM)]);
        let Err(CrossMemoryError::NotPermitted { process, source }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(
            (process, source.kind()),
            (9, io::ErrorKind::PermissionDenied)
        );
    }

    #[test]
    fn missing_memory_is_reported_to_the_byte() {
        let own = std::process::id();
        let page = rustix::param::page_size();
        let mut map = memmap2::MmapMut::map_anon(3 * page).unwrap();
        let base = map.as_mut_ptr();
        // SAFETY: the last page of the map, which nothing uses after this.
        unsafe { rustix::mm::munmap(base.add(2 * page).cast(), page) }.unwrap();
        let source = vec![7u8; 3 * page];
        let address = base.expose_provenance() as u64;
        // SAFETY: memory of this test, and the missing page behind it.
        let written = unsafe { write_process(own, address, source.as_ptr(), 3 * page) };
        match written {
            Err(CrossMemoryError::Missing { copied, .. }) => assert_eq!(copied, 2 * page),
            // Some containers let no process do this.
            Err(CrossMemoryError::NotPermitted { .. }) => return core::mem::forget(map),
            other => panic!("{other:?}"),
        }
        let mut back = vec![0u8; 2 * page];
        // SAFETY: as above.
        unsafe { read_process(own, address, back.as_mut_ptr(), 2 * page) }.unwrap();
        assert_eq!(back, source[..2 * page]);
        // SAFETY: as above.
        let nowhere = unsafe { read_process(own, 8, back.as_mut_ptr(), 1) };
        assert!(
            matches!(nowhere, Err(CrossMemoryError::Missing { copied: 0, .. })),
            "{nowhere:?}"
        );
        // SAFETY: as above; there is no such process.
        let gone = unsafe { read_process(i32::MAX as u32, 8, back.as_mut_ptr(), 1) };
        assert!(
            matches!(gone, Err(CrossMemoryError::Gone { .. })),
            "{gone:?}"
        );
        // SAFETY: the rest of the map, which is not unmapped again.
        unsafe { rustix::mm::munmap(base.cast(), 2 * page) }.unwrap();
        core::mem::forget(map);
    }
}
