//! The board: the waits of the ranks of a host, as each publishes on its page, for reports of a job
//! that hangs.
//!
//! A rank writes there when a wait has lasted some microseconds, so nothing is written on a fast
//! path; every process that can map the control file can read it, even if the rank hangs or is
//! stopped. The state of each process comes from the system.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use argonet_base::JobRank;
use num_enum::{IntoPrimitive, TryFromPrimitive};
use rustix::fs::{Mode, OFlags, open};
use rustix::time::{ClockId, clock_gettime};
use static_assertions::const_assert_eq;

use crate::page::{Control, RankState};

/// Kind of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
#[non_exhaustive]
pub enum WaitFor {
    /// A condition of the program's own, which handlers make true.
    Condition = 1,
    /// Room for a message or an operation at a peer.
    Room = 2,
    /// A free handle for an operation.
    Handle = 3,
    /// Operations that were started.
    Operations = 4,
    /// The other ranks in a barrier.
    Barrier = 5,
    /// The other ranks in another collective operation.
    Collective = 6,
    /// The end of everything that is under way.
    Drain = 7,
    /// The other ranks at the begin or end of a quiet phase.
    Quiet = 8,
    /// The other ranks, in order to leave the job.
    Finalize = 9,
    /// A future.
    Future = 10,
    /// Anything that arrives.
    Arrival = 11,
    /// The other ranks, before or after they attach or publish segments.
    Segments = 12,
    /// A word of its segment that another rank changes.
    Signal = 13,
    /// The other ranks, which make their instances of a distributed object.
    Instances = 14,
    /// Tasks that other ranks give away.
    Tasks = 15,
}

/// A wait of a rank, and the rank that it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Its kind.
    pub what: WaitFor,
    /// The one peer that can end the wait, where that is known.
    pub peer: Option<JobRank>,
}

impl Waiting {
    /// A wait that any peer may end.
    #[must_use]
    pub const fn new(what: WaitFor) -> Self {
        Self { what, peer: None }
    }

    /// A wait that `peer` ends.
    #[must_use]
    pub const fn on(what: WaitFor, peer: JobRank) -> Self {
        let peer = Some(peer);
        Self { what, peer }
    }

    fn pack(self) -> u64 {
        let peer = self.peer.map_or(0, |p| u64::from(p.0) + 1);
        u64::from(u8::from(self.what)) << 56 | peer
    }

    fn unpack(word: u64) -> Option<Self> {
        let what = WaitFor::try_from((word >> 56) as u8).ok()?;
        let peer = (word as u32).checked_sub(1).map(JobRank);
        Some(Self { what, peer })
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, link) = match self.what {
            WaitFor::Condition => ("for a condition of the program", " from"),
            WaitFor::Room => ("for room", " at"),
            WaitFor::Handle => ("for a free handle", " from"),
            WaitFor::Operations => ("for operations to complete", " at"),
            WaitFor::Barrier => ("in a barrier", " for"),
            WaitFor::Collective => ("in a collective operation", " for"),
            WaitFor::Drain => ("for everything under way to end", ", now for"),
            WaitFor::Quiet => ("at the begin or end of a quiet phase", " for"),
            WaitFor::Finalize => ("in order to leave the job", ", now for"),
            WaitFor::Future => ("for a future", " from"),
            WaitFor::Arrival => ("for anything to arrive", " from"),
            WaitFor::Segments => ("for segments to be there", " on"),
            WaitFor::Signal => ("for a signal", " from"),
            WaitFor::Instances => ("for all instances of a distributed object", ", now for"),
            WaitFor::Tasks => ("for tasks, or for all to have none", " from"),
        };
        f.write_str(what)?;
        match self.peer {
            Some(peer) => write!(f, "{link} rank {peer}"),
            None => Ok(()),
        }
    }
}

/// A rank's notice, on its page.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Notice {
    /// The packed [`Waiting`], 0 for none.
    ///
    /// Written by the rank: by the thread that begins a wait when it is 0 (AcqRel), and by the same
    /// thread at the end (Release). Read by every process of the host (Acquire).
    what: AtomicU64,
    /// Monotonic nanoseconds when the wait began.
    ///
    /// Written after `what` by the same thread; a reader between the two sees the time of the wait
    /// before, which a report can bear.
    since_ns: AtomicU64,
    /// Monotonic nanoseconds when the rank last looked around.
    ///
    /// As `since_ns`.
    seen_ns: AtomicU64,
}
const_assert_eq!(size_of::<Notice>(), 24);

/// The monotonic clock, which is the same for all processes of a host.
///
/// Async-signal-safe.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The board of a job, as one of its processes sees it.
#[derive(Clone, Copy, Debug)]
pub struct Board<'a> {
    control: &'a Control,
}

impl<'a> Board<'a> {
    pub(crate) fn new(control: &'a Control) -> Self {
        Self { control }
    }

    fn reports(&self) -> &'a AtomicU32 {
        self.control.job().reports()
    }

    /// A thread of `rank` begins to wait.
    ///
    /// False if another thread of it has its notice there: then there is nothing to
    /// [`end`](Self::end).
    #[must_use]
    pub fn begin(&self, rank: JobRank, waiting: Waiting) -> bool {
        let notice = self.control.rank_page(rank).notice();
        let free = notice
            .what
            .compare_exchange(0, waiting.pack(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if free {
            let now = now_ns();
            notice.since_ns.store(now, Ordering::Relaxed);
            notice.seen_ns.store(now, Ordering::Relaxed);
        }
        free
    }

    /// The thread that began to wait looks around and goes on waiting.
    pub fn go_on(&self, rank: JobRank) {
        let notice = self.control.rank_page(rank).notice();
        notice.seen_ns.store(now_ns(), Ordering::Relaxed);
    }

    /// The wait is over.
    pub fn end(&self, rank: JobRank) {
        let notice = self.control.rank_page(rank).notice();
        notice.what.store(0, Ordering::Release);
    }

    /// Number of reports asked for so far.
    ///
    /// A waiting rank compares it with the number that it saw last, and reports when it has grown.
    #[must_use]
    pub fn reports_asked(&self) -> u32 {
        self.reports().load(Ordering::Relaxed)
    }

    /// Asks all ranks to report, unless they have been asked since `seen`; whether this call did.
    ///
    /// Async-signal-safe.
    pub fn ask_for_reports(&self, seen: u32) -> bool {
        self.reports()
            .compare_exchange(
                seen,
                seen.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

/// One line for each rank, or for neighboring ranks in the same state: the state, the wait and its
/// begin, and the state of the process.
///
/// Allocates nothing; async-signal-safe if the formatter's writer is.
impl Board<'_> {
    /// Prints the waits of all ranks on standard error, and asks the ranks for more.
    ///
    /// Async-signal-safe.
    pub(crate) fn report(&self) {
        let mut text = Fixed::<4096>::default();
        // Text that does not fit is cut.
        let _ = fmt::Write::write_fmt(&mut text, format_args!("argonet: all ranks:\n{self}"));
        let _ = rustix::io::write(rustix::stdio::stderr(), text.text());
        self.ask_for_reports(self.reports_asked());
    }
}

impl fmt::Display for Board<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, Process::examine)
    }
}

impl Board<'_> {
    /// The lines, with the state of each process by `examine`.
    fn write(&self, f: &mut impl Write, examine: fn(u32) -> Option<Process>) -> fmt::Result {
        let ranks = self.control.part().all();
        let now = now_ns();
        let line_of = |rank| Line::of(self.control, JobRank(rank), now, examine);
        let mut rank = ranks.start;
        while rank < ranks.end {
            let mut line = line_of(rank);
            let first = rank;
            rank += 1;
            while rank < ranks.end {
                let next = line_of(rank);
                if !next.says_the_same(&line) {
                    break;
                }
                line.waited = line.waited.max(next.waited);
                rank += 1;
            }
            if rank - first == 1 {
                write!(f, "  rank {first}")?;
            } else {
                write!(f, "  ranks {first}-{}", rank - 1)?;
            }
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

/// State of a rank, for its line of the report.
struct Line {
    pid: u32,
    state: RankState,
    waiting: Option<Waiting>,
    waited: Duration,
    process: Option<Process>,
}

impl Line {
    fn of(control: &Control, rank: JobRank, now: u64, examine: fn(u32) -> Option<Process>) -> Self {
        let page = control.rank_page(rank);
        let notice = page.notice();
        let waiting = Waiting::unpack(notice.what.load(Ordering::Acquire));
        let since = notice.since_ns.load(Ordering::Relaxed);
        Self {
            pid: page.pid(),
            state: page.state(),
            waiting,
            waited: Duration::from_nanos(now.saturating_sub(since)),
            process: examine(page.pid()),
        }
    }

    /// Ranks outside the library differ in their work.
    fn says_the_same(&self, other: &Self) -> bool {
        let kind = |line: &Self| line.process.map(|p| p.state);
        self.state == other.state
            && self.waiting == other.waiting
            && self.waiting.is_some()
            && kind(self) == kind(other)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " (pid {}) {}", self.pid, self.state.words())?;
        match self.waiting {
            Some(waiting) => {
                let waited = self.waited.as_secs_f64();
                write!(f, ", waits {waiting} since {waited:.1} s")?;
            }
            None if self.state == RankState::Running => {
                f.write_str(", waits for nothing in the library")?;
            }
            None => {}
        }
        match self.process {
            Some(process) => write!(f, "; {process}"),
            None if self.pid == 0 => Ok(()),
            None => f.write_str("; no such process"),
        }
    }
}

/// The system's view of a process.
#[derive(Clone, Copy)]
struct Process {
    state: u8,
    busy: Duration,
}

impl Process {
    fn examine(pid: u32) -> Option<Self> {
        let mut path = Fixed::<32>::default();
        write!(path, "/proc/{pid}/stat").ok()?;
        let file = open(path.text(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut text = [0; 512];
        let len = rustix::io::read(&file, &mut text).ok()?;
        Self::parse(&text[..len])
    }

    /// Reads a line as proc(5) describes it: the second field, the program's name, may hold
    /// anything, so fields are counted from its closing parenthesis.
    fn parse(stat: &[u8]) -> Option<Self> {
        let name_ends = stat.iter().rposition(|&b| b == b')')?;
        let mut fields = stat[name_ends + 1..]
            .split(|&b| b == b' ')
            .filter(|f| !f.is_empty());
        let state = *fields.next()?.first()?;
        let mut number =
            |skip: usize| -> Option<u64> { str::from_utf8(fields.nth(skip)?).ok()?.parse().ok() };
        let (user, system) = (number(10)?, number(0)?);
        let ticks = user.saturating_add(system);
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        let busy = Duration::from_millis(ticks.saturating_mul(1000) / per_second);
        Some(Self { state, busy })
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = match self.state {
            b'R' => "runs",
            b'S' => "sleeps",
            b'D' => "is in a system call that cannot be interrupted",
            b'T' => "is stopped by a signal",
            b't' => "is stopped by a debugger",
            b'Z' | b'X' => "has ended",
            _ => "is in an unknown state",
        };
        let busy = self.busy.as_secs_f64();
        write!(f, "its process {does}, {busy:.2} s of processor time")
    }
}

/// Text in a fixed place; text that does not fit is cut.
pub(crate) struct Fixed<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Default for Fixed<N> {
    fn default() -> Self {
        let (bytes, len) = ([0; N], 0);
        Self { bytes, len }
    }
}

impl<const N: usize> Fixed<N> {
    pub(crate) fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<const N: usize> Write for Fixed<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.len..];
        let n = room.len().min(text.len());
        room[..n].copy_from_slice(&text.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::make_job;
    use argonet_settings::Settings;

    #[test]
    fn waits_survive_packing() {
        let whats = (0..=255).filter_map(|code| WaitFor::try_from(code).ok());
        let mut seen = 0;
        for what in whats {
            for waiting in [Waiting::new(what), Waiting::on(what, JobRank(u32::MAX - 1))] {
                assert_eq!(Waiting::unpack(waiting.pack()), Some(waiting));
            }
            seen += 1;
        }
        assert_eq!(seen, 15);
        assert_eq!(Waiting::unpack(0), None);
        assert_eq!(Waiting::unpack(u64::MAX), None);
    }

    #[test]
    fn a_process_is_read_for_any_name() {
        let line = b"77 (a) b (c)) T 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0";
        let process = Process::parse(line).unwrap();
        assert_eq!(process.state, b'T');
        let per_second = rustix::param::clock_ticks_per_second();
        assert_eq!(process.busy.as_millis() as u64, 200_000 / per_second);
        assert!(Process::parse(b"77 (x").is_none() && Process::parse(b"7 (x) R 1 2").is_none());
        assert!(Process::examine(std::process::id()).is_some());
    }

    #[test]
    fn the_board_has_a_line_for_every_rank_and_joins_equal_ones() {
        let (_files, control) = make_job(4, &Settings::default()).unwrap();
        let board = Board::new(&control);
        let own = std::process::id();
        for rank in (0..4).map(JobRank) {
            assert!(control.rank_page(rank).join(own));
            control.rank_page(rank).advance(RankState::Running);
        }
        let waiting = Waiting::on(WaitFor::Barrier, JobRank(3));
        for rank in (0..3).map(JobRank) {
            assert!(board.begin(rank, waiting));
        }
        assert!(!board.begin(JobRank(0), waiting), "one notice at a time");
        // The state of this process changes while the lines are written, so the test supplies one.
        let written = |examine| {
            let mut text = String::new();
            board.write(&mut text, examine).unwrap();
            text
        };
        let asleep: fn(u32) -> _ = |_| {
            let (state, busy) = (b'S', Duration::from_millis(250));
            Some(Process { state, busy })
        };
        let text = written(asleep);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("  ranks 0-2 (pid "), "{text}");
        assert!(lines[0].contains("waits in a barrier for rank 3 since 0."));
        assert!(lines[1].starts_with("  rank 3 ") && lines[1].contains("waits for nothing"));
        assert!(
            lines[1].ends_with("its process sleeps, 0.25 s of processor time"),
            "{text}"
        );
        board.end(JobRank(1));
        assert_eq!(written(asleep).lines().count(), 4);
        assert!(
            written(|_| None)
                .lines()
                .all(|line| line.ends_with("; no such process"))
        );
        assert!(board.to_string().contains("s of processor time"));
        assert!(board.begin(JobRank(1), waiting));
    }

    #[test]
    fn one_of_many_asks_for_reports() {
        let (_files, control) = make_job(1, &Settings::default()).unwrap();
        let board = Board::new(&control);
        let seen = board.reports_asked();
        assert!(board.ask_for_reports(seen) && !board.ask_for_reports(seen));
        assert_eq!(board.reports_asked(), seen + 1);
    }
}
