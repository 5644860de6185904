//! Output of the ranks with each line tagged by its rank.
//!
//! Every rank writes to pipes of its own; the launcher takes what comes, cuts it into lines and writes each line whole, with
//! its tag, to its own standard output or standard error. What a rank leaves without a newline at its end is
//! written as a line. A line longer than [`MAX_LINE_BYTES`] is written in pieces of that size, all but the first tagged `[3]+`,
//! so that a rank that never ends a line takes no more memory than that. When the launcher's own output is not taken, ranks are
//! no longer read, and wait: nothing piles up beyond [`QUEUE_BYTES`].

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use argonet_base::JobRank;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::pipe::{PIPE_BUF, PipeFlags, pipe_with};

/// The longest line that is written in one piece.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 10;
/// How much may wait to be written before ranks are no longer read.
const QUEUE_BYTES: usize = 256 << 10;
const READ_BYTES: usize = 64 << 10;

/// Cuts one rank's output into tagged lines.
#[derive(Debug)]
struct Tagger {
    rank: JobRank,
    /// The line so far, without its tag.
    line: Vec<u8>,
    /// Whether pieces of this line have been written.
    continued: bool,
}

impl Tagger {
    fn new(rank: JobRank) -> Self {
        Self {
            rank,
            line: Vec::new(),
            continued: false,
        }
    }

    fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while let Some(end) = bytes.iter().position(|&b| b == b'\n') {
            self.extend(&bytes[..end], out);
            self.write_line(out);
            self.continued = false;
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes, out);
    }

    /// Adds to the line, writing pieces when it gets too long.
    fn extend(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while self.line.len() + bytes.len() > MAX_LINE_BYTES {
            let (now, later) = bytes.split_at(MAX_LINE_BYTES - self.line.len());
            self.line.extend_from_slice(now);
            self.write_line(out);
            self.continued = true;
            bytes = later;
        }
        self.line.extend_from_slice(bytes);
    }

    fn write_line(&mut self, out: &mut Vec<u8>) {
        let tag = format!("[{}]{} ", self.rank, if self.continued { "+" } else { "" });
        out.extend_from_slice(tag.as_bytes());
        out.append(&mut self.line);
        out.push(b'\n');
    }

    /// Writes what came without a newline.
    fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.line.is_empty() {
            self.write_line(out);
        }
    }
}

/// Where tagged lines go: the launcher's standard output or standard error.
struct Sink {
    to: BorrowedFd<'static>,
    queue: Vec<u8>,
    /// How much of `queue` has been written.
    written: usize,
    /// How much may be written at once without blocking when `to` is writable.
    chunk: usize,
    /// Nobody takes the output any more.
    closed: bool,
}

impl Sink {
    fn new(to: BorrowedFd<'static>) -> Self {
        let regular =
            fstat(to).is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile);
        let chunk = if regular { QUEUE_BYTES } else { PIPE_BUF };
        Self {
            to,
            queue: Vec::new(),
            written: 0,
            chunk,
            closed: false,
        }
    }

    fn waiting(&self) -> &[u8] {
        &self.queue[self.written..]
    }

    fn write_some(&mut self) {
        let waiting = self.waiting();
        match rustix::io::write(self.to, &waiting[..waiting.len().min(self.chunk)]) {
            Ok(n) => self.written += n,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.closed = true,
        }
        if self.closed || self.waiting().is_empty() {
            self.queue.clear();
            self.written = 0;
        } else if self.written > QUEUE_BYTES {
            self.queue.drain(..self.written);
            self.written = 0;
        }
    }
}

struct Stream {
    pipe: OwnedFd,
    sink: usize,
    tagger: Tagger,
}

/// What a descriptor of [`TaggedOutput::poll_fds`] stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Stream(usize),
    Sink(usize),
}

/// The tagged output of all ranks.
pub(crate) struct TaggedOutput {
    sinks: [Sink; 2],
    streams: Vec<Option<Stream>>,
    scratch: Vec<u8>,
}

impl TaggedOutput {
    pub(crate) fn new() -> Self {
        let sinks = [
            Sink::new(rustix::stdio::stdout()),
            Sink::new(rustix::stdio::stderr()),
        ];
        Self {
            sinks,
            streams: Vec::new(),
            scratch: vec![0; READ_BYTES],
        }
    }

    /// Makes the standard output and standard error of `rank`, in this order.
    pub(crate) fn add_rank(&mut self, rank: JobRank) -> std::io::Result<[OwnedFd; 2]> {
        let mut make = |sink| -> std::io::Result<OwnedFd> {
            let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
            fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
            self.streams.push(Some(Stream {
                pipe: ours,
                sink,
                tagger: Tagger::new(rank),
            }));
            Ok(theirs)
        };
        Ok([make(0)?, make(1)?])
    }

    /// Adds what this waits for to `fds` and what it stands for to `sources`.
    pub(crate) fn poll_fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>, sources: &mut Vec<Source>) {
        for (i, sink) in self
            .sinks
            .iter()
            .enumerate()
            .filter(|(_, s)| !s.waiting().is_empty())
        {
            fds.push(PollFd::from_borrowed_fd(sink.to, PollFlags::OUT));
            sources.push(Source::Sink(i));
        }
        for (i, stream) in self.streams.iter().enumerate() {
            if let Some(stream) = stream
                .as_ref()
                .filter(|s| self.sinks[s.sink].waiting().len() < QUEUE_BYTES)
            {
                fds.push(PollFd::from_borrowed_fd(stream.pipe.as_fd(), PollFlags::IN));
                sources.push(Source::Stream(i));
            }
        }
    }

    /// Does what can be done for a source that is ready.
    pub(crate) fn serve(&mut self, source: Source) {
        match source {
            Source::Sink(i) => self.sinks[i].write_some(),
            Source::Stream(i) => {
                self.read(i);
            }
        }
    }

    /// Reads once from a stream; whether there may be more now.
    fn read(&mut self, i: usize) -> bool {
        let Some(stream) = self.streams[i].as_mut() else {
            return false;
        };
        let sink = &mut self.sinks[stream.sink];
        if sink.closed {
            // As if the rank wrote there itself: its next write fails or raises SIGPIPE.
            self.streams[i] = None;
            return false;
        }
        match rustix::io::read(&stream.pipe, &mut self.scratch[..]) {
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => false,
            Ok(0) | Err(_) => {
                stream.tagger.finish(&mut sink.queue);
                self.streams[i] = None;
                false
            }
            Ok(n) => {
                stream.tagger.take(&self.scratch[..n], &mut sink.queue);
                true
            }
        }
    }

    /// Writes everything that has been written by the ranks so far; the ranks have ended. Blocks while the launcher's
    /// own output is not taken.
    pub(crate) fn finish(mut self) {
        for i in 0..self.streams.len() {
            while self.read(i) {
                self.flush();
            }
            // Still open: a process that left the rank's group has it. It is not waited for.
            if let Some(mut stream) = self.streams[i].take() {
                stream.tagger.finish(&mut self.sinks[stream.sink].queue);
            }
        }
        self.flush();
    }

    fn flush(&mut self) {
        for sink in &mut self.sinks {
            while !sink.waiting().is_empty() {
                let mut writable = [PollFd::from_borrowed_fd(sink.to, PollFlags::OUT)];
                let _ = rustix::event::poll(&mut writable, None);
                sink.write_some();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut tagger, mut out) = (Tagger::new(JobRank(7)), Vec::new());
        for piece in pieces {
            tagger.take(piece, &mut out);
        }
        tagger.finish(&mut out);
        out
    }

    #[test]
    fn lines_are_tagged_however_they_arrive() {
        assert_eq!(tagged(&[b"one\ntwo\n"]), b"[7] one\n[7] two\n");
        assert_eq!(
            tagged(&[b"o", b"ne", b"\n\nt", b"wo"]),
            b"[7] one\n[7] \n[7] two\n"
        );
        assert_eq!(tagged(&[b""]), b"");
    }

    #[test]
    fn an_endless_line_comes_in_pieces_and_takes_bounded_memory() {
        let long = vec![b'x'; 2 * MAX_LINE_BYTES + 10];
        let out = tagged(&[&long, b"y\nz\n"]);
        let lines: Vec<&[u8]> = out.split(|&b| b == b'\n').collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[0].len(), MAX_LINE_BYTES + 4);
        assert!(lines[0].starts_with(b"[7] x") && lines[1].starts_with(b"[7]+ x"));
        assert_eq!(lines[2], b"[7]+ xxxxxxxxxxy");
        assert_eq!(lines[3], b"[7] z");
        let mut tagger = Tagger::new(JobRank(0));
        for _ in 0..100 {
            tagger.take(&[b'x'; 10_000], &mut Vec::new());
            assert!(tagger.line.len() <= MAX_LINE_BYTES);
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_stays_whole() {
        let mut line = vec![b'x'; MAX_LINE_BYTES];
        line.push(b'\n');
        assert_eq!(tagged(&[&line]).len(), 4 + line.len());
    }
}
