//! The standard error of a rank's process, on which the guardian says why it killed the rank.
//!
//! The guardian takes hold of the file while the process lives, kills, and writes then: a file that
//! takes nothing, such as a full pipe, cannot keep it from killing. The write is bounded as well.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdGetfdFlags, pidfd_getfd};

/// Time that a line waits for room in the file; it is lost then.
const ROOM: Duration = Duration::from_millis(500);

/// A line is cut to the length that a pipe with room takes in one piece.
const MAX_LINE_BYTES: usize = 4096;
static_assertions::const_assert!(MAX_LINE_BYTES <= libc::PIPE_BUF);

/// The standard error of a process, which may have ended since.
#[derive(Debug)]
pub(crate) struct RankStderr {
    file: File,
}

impl RankStderr {
    /// The standard error of a process that has not been reaped; `None` if the system does not give
    /// it.
    pub(crate) fn of(process: BorrowedFd<'_>, pid: Pid) -> Option<Self> {
        const STANDARD_ERROR: i32 = 2;
        let file = match pidfd_getfd(process, STANDARD_ERROR, PidfdGetfdFlags::empty()) {
            Ok(same) => same.into(),
            // Some systems allow that to a parent only.
            Err(_) => open(&format!("/proc/{pid}/fd/{STANDARD_ERROR}")).ok()?,
        };
        Some(Self { file })
    }

    /// That of this process, for a copy that it forks.
    pub(crate) fn of_this_process() -> Option<Self> {
        let file = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3).ok()?;
        Some(Self { file: file.into() })
    }

    /// A pipe in its place.
    #[cfg(test)]
    pub(crate) fn of_pipe(writer: io::PipeWriter) -> Self {
        let file = std::os::fd::OwnedFd::from(writer).into();
        Self { file }
    }

    /// Writes a line, for which it waits a bounded time.
    ///
    /// The rest that the file does not take is lost.
    pub(crate) fn say(self, line: &str) {
        let text = format!("{line}\n");
        let mut rest = &text.as_bytes()[..text.len().min(MAX_LINE_BYTES)];
        let mut file = self.without_waiting();
        let until = Instant::now() + ROOM;
        while !rest.is_empty() && has_room(&file, until) {
            match file.write(rest) {
                Ok(bytes) => rest = &rest[bytes..],
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock => {}
                    // Nothing can be done where it takes nothing.
                    _ => return,
                },
            }
        }
    }

    /// A pipe or a terminal is opened once more.
    ///
    /// Its file description may be shared with processes that expect writes to wait, and other
    /// writers may fill the room that poll has seen. A file keeps its description, whose offset all
    /// of its writers share.
    fn without_waiting(self) -> File {
        let Self { file } = self;
        let kind = file.metadata().map(|metadata| metadata.file_type());
        if !kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device()) {
            return file;
        }
        open(&format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or(file)
    }
}

impl AsFd for RankStderr {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens a file anew, for writes that do not wait.
fn open(path: &str) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
        .open(path)
}

/// Waits until a write would not; false if that takes too long.
fn has_room(file: &File, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let Ok(limit) = Timespec::try_from(left) else {
        return false;
    };
    let mut room = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::OUT)];
    // An error is for the write to find.
    !left.is_zero() && poll(&mut room, Some(&limit)) != Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read, Seek, SeekFrom};
    use std::os::fd::OwnedFd;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    /// Both ends of a pipe.
    ///
    /// Writes to it wait for room.
    fn pipe() -> (PipeReader, File) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, OwnedFd::from(writer).into())
    }

    /// Says the line, which is to return however slow the machine is.
    fn say(file: &File, line: &str) {
        let stderr = RankStderr {
            file: file.try_clone().unwrap(),
        };
        let (done, end) = channel();
        let line = line.to_owned();
        thread::spawn(move || {
            stderr.say(&line);
            done.send(()).unwrap();
        });
        let done = end.recv_timeout(Duration::from_secs(60));
        done.expect("a line that is written or lost");
    }

    fn all_of(mut reader: PipeReader) -> String {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_full_pipe_takes_bounded_time() {
        let (reader, mut writer) = pipe();
        let full = "x".repeat(rustix::pipe::fcntl_getpipe_size(&writer).unwrap());
        writer.write_all(full.as_bytes()).unwrap();
        say(&writer, "killed");
        drop(writer);
        assert_eq!(all_of(reader), full);
    }

    #[test]
    fn a_pipe_with_room_gets_the_line() {
        let (reader, writer) = pipe();
        say(&writer, "killed");
        drop(writer);
        assert_eq!(all_of(reader), "killed\n");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut() {
        let (reader, writer) = pipe();
        say(&writer, &"x".repeat(10_000));
        drop(writer);
        assert_eq!(all_of(reader), "x".repeat(MAX_LINE_BYTES));
    }

    #[test]
    fn a_pipe_without_a_reader_is_no_error() {
        let (reader, writer) = pipe();
        drop(reader);
        say(&writer, "killed");
    }

    #[test]
    fn other_writers_of_a_pipe_still_wait_for_room() {
        let (_reader, writer) = pipe();
        say(&writer, "killed");
        let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
    }

    #[test]
    fn a_file_gets_the_line_where_its_writers_are() {
        let memory = rustix::fs::memfd_create(c"stderr", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = File::from(memory);
        file.write_all(b"before\n").unwrap();
        say(&file, "killed");
        file.write_all(b"after\n").unwrap();
        let mut text = String::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "before\nkilled\nafter\n");
    }

    #[test]
    fn the_duplicate_is_the_standard_error_of_the_process() {
        let own = rustix::process::getpid();
        let pidfd = rustix::process::pidfd_open(own, rustix::process::PidfdFlags::empty()).unwrap();
        let its = RankStderr::of(pidfd.as_fd(), own).unwrap();
        let id = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let expected = rustix::fs::fstat(rustix::stdio::stderr()).unwrap();
        let found = rustix::fs::fstat(&its.file).unwrap();
        assert_eq!(id(found), id(expected));
    }
}
