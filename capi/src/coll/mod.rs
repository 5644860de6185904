//! Collective operations of teams: those of GASNet-EX, those beyond, and the `gasnet_coll_*` of
//! GASNet-1's days.

mod beyond;
mod ex;
mod fold;
mod legacy;

use core::ffi::c_void;

use argonet_engine::{AllSync, Call};
use argonet_event::Event;

use crate::Prototype;
use crate::context::{communicating, done};
use crate::job::{Team, fatal, known_as, team};

/// All functions of `gasnet_coll.h`.
pub(crate) fn prototypes() -> Vec<Prototype> {
    [beyond::PROTOTYPES, ex::PROTOTYPES, legacy::PROTOTYPES].concat()
}

/// A call as C makes it: where it is checked.
struct Asked<'a> {
    function: &'a str,
    team: &'a Team,
    /// The name of the root's argument, and the root; of kinds that have one.
    root: Option<(&'a str, u32)>,
    /// How many blocks this member gives and gets.
    blocks: (usize, usize),
}

impl<'a> Asked<'a> {
    /// # Safety
    /// A team of ours, or null.
    unsafe fn new(function: &'a str, tm: *const Team) -> Self {
        // SAFETY: this function's contract.
        let team = unsafe { team(tm, function) }.no_pair(function);
        Self {
            function,
            team,
            root: None,
            blocks: (1, 1),
        }
    }

    /// Names the root, which exists.
    fn rooted(mut self, argument: &'a str, root: u32) -> Self {
        known_as(self.team, root, self.function, argument);
        self.root = Some((argument, root));
        self
    }

    fn rank(&self) -> u32 {
        self.team.rank()
    }

    /// Whether this member is the root.
    fn is_root(&self) -> bool {
        self.root.is_some_and(|(_, root)| root == self.rank())
    }

    fn size(&self) -> usize {
        self.team.size() as usize
    }

    /// Says how many blocks this member gives and gets.
    fn blocks(mut self, given: usize, taken: usize) -> Self {
        self.blocks = (given, taken);
        self
    }

    /// Checks memory, and starts it.
    ///
    /// # Safety
    /// As `Engine::collective_start`.
    unsafe fn start(self, call: Call) -> Event {
        let Self {
            function,
            team,
            root,
            blocks,
        } = self;
        memory(function, "src", call.src.cast(), blocks.0 * call.block());
        memory(function, "dst", call.dst.cast(), blocks.1 * call.block());
        let call = Call {
            root: root.map_or(0, |(_, root)| root),
            ..call
        };
        communicating(function, |job, ctx| {
            let engine = &job.joined.engine;
            // SAFETY: this function's contract.
            let started = unsafe { engine.collective_start(ctx, team.of_engine(job), call) };
            done(function, started)
        })
    }
}

/// Memory that a collective operation uses.
fn memory(function: &str, what: &str, at: *const c_void, bytes: usize) {
    if at.is_null() && bytes > 0 {
        fatal(
            function,
            &format!("{what} is null, and there are {bytes} bytes"),
        );
    }
}

fn no_flags(function: &str, flags: u32) {
    if flags != 0 {
        fatal(function, &format!("flags are {flags:#x}; they must be 0"));
    }
}

/// A call of blocks of bytes.
fn bytes(kind: argonet_engine::Kind, dst: *mut c_void, src: *const c_void, bytes: usize) -> Call {
    Call {
        count: bytes,
        src: src.cast(),
        dst: dst.cast(),
        all_sync: AllSync::default(),
        ..Call::of(kind)
    }
}
