//! Where bytes go.

use core::fmt::Write;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::lane::Cursor;
use crate::options::{Options, Target, TraceError};

/// An open target.
pub(crate) struct Sink {
    /// `None` for standard error and output.
    file: Option<OwnedFd>,
    target: Target,
    /// The error after which nothing was written any more; 0 before.
    failed: AtomicI32,
    /// Lines that were not written.
    lost: AtomicU64,
}

fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::from_raw_mode(0o666))?)
}

fn explained(
    options: &Options,
    setting: &'static str,
    path: &Path,
    cause: io::Error,
) -> TraceError {
    TraceError {
        rank: options.rank,
        setting,
        path: path.to_owned(),
        cause,
    }
}

/// Makes a file that all ranks write to, empty but for its beginning.
///
/// By rank 0, before others open it.
///
/// # Errors
/// It cannot be opened or written.
pub(crate) fn make_shared(
    options: &Options,
    setting: &'static str,
    target: &Target,
    opening: &[u8],
) -> Result<(), TraceError> {
    let Target::Shared(path) = target else {
        return Ok(());
    };
    let begin = |file: OwnedFd| match opening {
        // Some devices refuse even that.
        [] => Ok(()),
        _ => Ok(rustix::io::write(&file, opening).map(|_| ())?),
    };
    open(path, OFlags::TRUNC)
        .and_then(begin)
        .map_err(|cause| explained(options, setting, path, cause))
}

impl Sink {
    /// Opens a target; a file of this rank alone is empty then, but for `opening`.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open(
        options: &Options,
        setting: &'static str,
        target: &Target,
        opening: &[u8],
    ) -> Result<Self, TraceError> {
        let error = |path: &Path, cause| explained(options, setting, path, cause);
        let file = match target {
            Target::Stdout | Target::Stderr => None,
            Target::Own(path) => {
                Some(open(path, OFlags::TRUNC).map_err(|cause| error(path, cause))?)
            }
            Target::Shared(path) => {
                Some(open(path, OFlags::empty()).map_err(|cause| error(path, cause))?)
            }
        };
        let sink = Self {
            file,
            target: target.clone(),
            failed: AtomicI32::new(0),
            lost: AtomicU64::new(0),
        };
        if !sink.is_shared() {
            sink.write(opening);
        }
        Ok(sink)
    }

    /// Whether other ranks write to it too.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.target, Target::Shared(_))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match (&self.file, &self.target) {
            (Some(file), _) => file.as_fd(),
            (None, Target::Stdout) => rustix::stdio::stdout(),
            (None, _) => rustix::stdio::stderr(),
        }
    }

    /// Writes whole records: in one piece where the system takes them so, since other ranks may
    /// write there too.
    ///
    /// After an error nothing more is written, but counted. Async-signal-safe.
    pub(crate) fn write(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.failed.load(Ordering::Relaxed) == 0 {
            match rustix::io::write(self.fd(), bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => rustix::thread::sched_yield(),
                Err(error) => self.failed.store(error.raw_os_error(), Ordering::Relaxed),
            }
        }
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        if lines > 0 {
            self.lost.fetch_add(lines as u64, Ordering::Relaxed);
        }
    }

    /// Counts a record that was too long.
    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports on standard error what could not be written.
    ///
    /// Async-signal-safe.
    pub(crate) fn report_loss(&self, rank: u32, setting: &str) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost == 0 {
            return;
        }
        let mut room = [0; 256];
        let mut line = Cursor::new(&mut room);
        let error = self.failed.load(Ordering::Relaxed);
        // It has room.
        let _ = write!(
            line,
            "argonet: rank {rank}: {lost} lines are missing in the file of {setting}"
        );
        let _ = match error {
            0 => writeln!(line, ": they were too long"),
            _ => writeln!(line, ": writing failed with error {error} of the system"),
        };
        let _ = rustix::io::write(rustix::stdio::stderr(), line.bytes());
    }
}
