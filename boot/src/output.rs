//! Output of the ranks, line by line, with each line tagged by its rank if the user wants that.
//!
//! Every rank writes to pipes of its own; the launcher, or its host's agent, takes the bytes
//! ([`Streams`]) and cuts it into lines. The launcher writes each line whole, with its tag, to its
//! own standard output or standard error. Output without a newline at the end of a rank is written
//! as a line. A line longer than [`MAX_LINE_BYTES`] is written in pieces of that size, all but the
//! first tagged `[3]+`, so that a rank that never ends a line takes no more memory than that. When
//! the launcher's own output is not taken, ranks are no longer read, and wait: nothing piles up
//! beyond `QUEUE_BYTES`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use argonet_base::JobRank;
use num_enum::{IntoPrimitive, TryFromPrimitive};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::sink::{QUEUE_BYTES, Sink};

/// The longest line that is written in one piece.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 64 << 10;

/// Cuts one stream into tagged lines.
#[derive(Debug)]
struct Tagger {
    tag: String,
    /// The tag of the second and further pieces of a line.
    continuation: String,
    /// The line so far, without its tag.
    line: Vec<u8>,
    /// Whether pieces of this line have been written.
    continued: bool,
}

impl Tagger {
    fn new(tag: String, continuation: String) -> Self {
        Self {
            tag,
            continuation,
            line: Vec::new(),
            continued: false,
        }
    }

    fn of_rank(rank: JobRank) -> Self {
        Self::new(format!("[{rank}] "), format!("[{rank}]+ "))
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
            if self.tag.is_empty() {
                out.pop(); // A piece cannot be distinguished from a line then.
            }
            self.continued = true;
            bytes = later;
        }
        self.line.extend_from_slice(bytes);
    }

    fn write_line(&mut self, out: &mut Vec<u8>) {
        let tag = match self.continued {
            true => &self.continuation,
            false => &self.tag,
        };
        out.extend_from_slice(tag.as_bytes());
        out.append(&mut self.line);
        out.push(b'\n');
    }

    /// Writes the rest that came without a newline.
    fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.line.is_empty() {
            self.write_line(out);
        }
    }
}

#[derive(Debug)]
struct Stream {
    pipe: OwnedFd,
    to: To,
    tagger: Tagger,
}

/// Target of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
pub(crate) enum To {
    Out = 1,
    Err = 2,
}

/// Lines that wait to be written, for standard output and standard error.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
}

impl Lines {
    pub(crate) fn to(&mut self, to: To) -> &mut Vec<u8> {
        match to {
            To::Out => &mut self.out,
            To::Err => &mut self.err,
        }
    }

    /// Whether so much waits for `to` that no more should be read.
    pub(crate) fn is_full(&self, to: To) -> bool {
        let waiting = match to {
            To::Out => &self.out,
            To::Err => &self.err,
        };
        waiting.len() >= QUEUE_BYTES
    }
}

/// The pipes that ranks, and other started processes, write to.
#[derive(Debug)]
pub(crate) struct Streams {
    streams: Vec<Option<Stream>>,
    scratch: Vec<u8>,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            streams: Vec::new(),
            scratch: vec![0; READ_BYTES],
        }
    }

    /// Makes the standard output and standard error of `rank`, in this order.
    pub(crate) fn add_rank(&mut self, rank: JobRank, tagged: bool) -> io::Result<[OwnedFd; 2]> {
        let mut make = |to| -> io::Result<OwnedFd> {
            let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
            let tagger = match tagged {
                true => Tagger::of_rank(rank),
                false => Tagger::new(String::new(), String::new()),
            };
            self.add(ours, to, tagger)?;
            Ok(theirs)
        };
        Ok([make(To::Out)?, make(To::Err)?])
    }

    /// Takes lines for standard error from another process's pipe, and begins each with `tag`.
    pub(crate) fn add_notes(&mut self, pipe: OwnedFd, tag: &str) -> io::Result<()> {
        self.add(pipe, To::Err, Tagger::new(tag.into(), tag.into()))
    }

    fn add(&mut self, pipe: OwnedFd, to: To, tagger: Tagger) -> io::Result<()> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        self.streams.push(Some(Stream { pipe, to, tagger }));
        Ok(())
    }

    /// Adds the pipes that may be read now, and calls `stands_for` with the number of each.
    pub(crate) fn poll_fds<'a>(
        &'a self,
        fds: &mut Vec<PollFd<'a>>,
        is_full: impl Fn(To) -> bool,
        mut stands_for: impl FnMut(usize),
    ) {
        for (i, stream) in self.streams.iter().enumerate() {
            if let Some(stream) = stream.as_ref().filter(|s| !is_full(s.to)) {
                fds.push(PollFd::from_borrowed_fd(stream.pipe.as_fd(), PollFlags::IN));
                stands_for(i);
            }
        }
    }

    /// Reads once from a pipe and appends whole lines to the queue that `queue_of` returns; whether
    /// there may be more now.
    pub(crate) fn read<'q>(
        &mut self,
        i: usize,
        queue_of: impl FnOnce(To) -> &'q mut Vec<u8>,
    ) -> bool {
        let Some(stream) = self.streams[i].as_mut() else {
            return false;
        };
        match rustix::io::read(&stream.pipe, &mut self.scratch[..]) {
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => false,
            Ok(0) | Err(_) => {
                stream.tagger.finish(queue_of(stream.to));
                self.streams[i] = None;
                false
            }
            Ok(n) => {
                stream.tagger.take(&self.scratch[..n], queue_of(stream.to));
                true
            }
        }
    }

    /// Number of pipes, with the closed ones.
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    /// Target of pipe `i`, if it is open.
    pub(crate) fn to(&self, i: usize) -> Option<To> {
        self.streams[i].as_ref().map(|s| s.to)
    }

    /// Does not read pipe `i` any more: the next write of the process at its other end fails or
    /// raises SIGPIPE.
    pub(crate) fn close(&mut self, i: usize) {
        self.streams[i] = None;
    }

    /// Stops reading the pipes that go to `to`.
    pub(crate) fn close_all(&mut self, to: To) {
        for stream in &mut self.streams {
            if stream.as_ref().is_some_and(|s| s.to == to) {
                *stream = None;
            }
        }
    }

    /// Takes the rest in pipe `i`, whose rank has ended.
    ///
    /// If it is still open, a process that left the rank's group has it, which is not waited for.
    pub(crate) fn end<'q>(&mut self, i: usize, queue_of: impl FnOnce(To) -> &'q mut Vec<u8>) {
        if let Some(mut stream) = self.streams[i].take() {
            stream.tagger.finish(queue_of(stream.to));
        }
    }
}

/// Meaning of a descriptor of [`TaggedOutput::poll_fds`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Stream(usize),
    Sink(To),
}

/// The launcher's output: from all ranks of its host, tagged, or from agents.
pub(crate) struct TaggedOutput {
    out: Sink,
    err: Sink,
    pub(crate) streams: Streams,
}

impl TaggedOutput {
    pub(crate) fn new() -> Self {
        Self {
            out: Sink::new(rustix::stdio::stdout()),
            err: Sink::new(rustix::stdio::stderr()),
            streams: Streams::new(),
        }
    }

    pub(crate) fn sink(&mut self, to: To) -> &mut Sink {
        match to {
            To::Out => &mut self.out,
            To::Err => &mut self.err,
        }
    }

    fn sinks(&self) -> [(To, &Sink); 2] {
        [(To::Out, &self.out), (To::Err, &self.err)]
    }

    /// Makes the standard output and standard error of `rank`, in this order.
    pub(crate) fn add_rank(&mut self, rank: JobRank) -> io::Result<[OwnedFd; 2]> {
        self.streams.add_rank(rank, true)
    }

    /// Adds the descriptors to wait for to `fds`, and their sources to `sources`.
    pub(crate) fn poll_fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>, sources: &mut Vec<Source>) {
        for (to, sink) in self.sinks() {
            if !sink.waiting().is_empty() {
                fds.push(PollFd::from_borrowed_fd(sink.descriptor(), PollFlags::OUT));
                sources.push(Source::Sink(to));
            }
        }
        let is_full = |to| match to {
            To::Out => self.out.is_full(),
            To::Err => self.err.is_full(),
        };
        self.streams
            .poll_fds(fds, is_full, |i| sources.push(Source::Stream(i)));
    }

    /// Does what can be done for a source that is ready.
    pub(crate) fn serve(&mut self, source: Source) {
        match source {
            Source::Sink(to) => self.sink(to).write_some(),
            Source::Stream(i) => {
                self.read(i);
            }
        }
    }

    /// Reads once from a stream; whether there may be more now.
    fn read(&mut self, i: usize) -> bool {
        let Some(to) = self.streams.to(i) else {
            return false;
        };
        if self.sink(to).is_closed() {
            // As if the rank wrote there itself: its next write fails or raises SIGPIPE.
            self.streams.close(i);
            return false;
        }
        let (out, err) = (&mut self.out, &mut self.err);
        self.streams.read(i, |to| match to {
            To::Out => out.queue(),
            To::Err => err.queue(),
        })
    }

    /// Writes everything that has been written by the ranks so far; the ranks have ended.
    ///
    /// Blocks while the launcher's own output is not taken. Returns a line for each stream with
    /// losses, with the error.
    pub(crate) fn finish(mut self) -> Vec<String> {
        for i in 0..self.streams.len() {
            while self.read(i) {
                self.flush();
            }
            let (out, err) = (&mut self.out, &mut self.err);
            self.streams.end(i, |to| match to {
                To::Out => out.queue(),
                To::Err => err.queue(),
            });
        }
        self.flush();
        let lost = |(to, sink): (To, &Sink)| {
            let error = std::io::Error::from(sink.error()?);
            let name = match to {
                To::Out => "output",
                To::Err => "error",
            };
            Some(format!(
                "writing the ranks' standard {name} failed: {error}; that output is incomplete"
            ))
        };
        self.sinks().into_iter().filter_map(lost).collect()
    }

    fn flush(&mut self) {
        self.out.flush();
        self.err.flush();
    }
}

/// The code of a job that would end with `code`, if its output has been lost: no success, and not
/// that of a rank that got SIGPIPE because the launcher took no more.
pub(crate) const fn code_without_output(code: u8) -> u8 {
    const PIPE: u8 = 128 + libc::SIGPIPE as u8;
    match code {
        0 | PIPE => 1,
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut tagger, mut out) = (Tagger::of_rank(JobRank(7)), Vec::new());
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
        let mut tagger = Tagger::of_rank(JobRank(0));
        for _ in 0..100 {
            tagger.take(&[b'x'; 10_000], &mut Vec::new());
            assert!(tagger.line.len() <= MAX_LINE_BYTES);
        }
    }

    #[test]
    fn each_stream_that_is_lost_is_reported() {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let full: &'static std::fs::File = Box::leak(Box::new(full.unwrap()));
        let mut output = TaggedOutput {
            out: Sink::new(full.as_fd()),
            err: Sink::new(full.as_fd()),
            streams: Streams::new(),
        };
        output.sink(To::Out).queue().extend_from_slice(b"lost\n");
        output
            .sink(To::Err)
            .queue()
            .extend_from_slice(b"lost, too\n");
        let lost = output.finish();
        assert_eq!(lost.len(), 2, "{lost:?}");
        for (line, name) in lost.iter().zip(["output", "error"]) {
            let begin = format!("writing the ranks' standard {name} failed: No space left");
            assert!(line.starts_with(&begin), "{line}");
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_stays_whole() {
        let mut line = vec![b'x'; MAX_LINE_BYTES];
        line.push(b'\n');
        assert_eq!(tagged(&[&line]).len(), 4 + line.len());
    }
}
