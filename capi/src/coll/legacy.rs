//! `gasnet_coll_*`: prototypes that neither specification has, and that clients call.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use argonet_base::gasnet::number32;
use argonet_engine::{AllSync, Call, Count, Engine, Kind};
use argonet_event::Event;

use super::{Asked, bytes};
use crate::barrier;
use crate::context::{communicating, done};
use crate::events::{code, peek_all, several};
use crate::export::export;
use crate::job::{Team, fatal, job};

/// `GASNET_COLL_*`.
///
/// Of the first three of each group a call gives one.
const IN: [c_int; 3] = [
    number32("GASNET_COLL_IN_NOSYNC") as c_int,
    number32("GASNET_COLL_IN_MYSYNC") as c_int,
    number32("GASNET_COLL_IN_ALLSYNC") as c_int,
];
const OUT: [c_int; 3] = [
    number32("GASNET_COLL_OUT_NOSYNC") as c_int,
    number32("GASNET_COLL_OUT_MYSYNC") as c_int,
    number32("GASNET_COLL_OUT_ALLSYNC") as c_int,
];
const LOCAL: c_int = number32("GASNET_COLL_LOCAL") as c_int;
/// Further flags, which change nothing: the place of memory is found out, there are no images but
/// ranks, and nothing searches while a program runs.
const HINTS: c_int = (number32("GASNET_COLL_FIXED_THREADS_PER_NODE")
    | number32("GASNET_COLL_DST_IN_SEGMENT")
    | number32("GASNET_COLL_SRC_IN_SEGMENT")
    | number32("GASNET_COLL_DISABLE_AUTOTUNE")
    | number32("GASNET_COLL_NO_IMAGES")) as c_int;

/// Whether the flags ask for `ALLSYNC` before and after the call.
fn all_sync(function: &str, flags: c_int) -> AllSync {
    let one_of = |group: [c_int; 3], name: &str| {
        let given = flags & (group[0] | group[1] | group[2]);
        if !group.contains(&given) {
            fatal(
                function,
                &format!(
                    "flags are {flags:#x}; give one of GASNET_COLL_{name}_NOSYNC, _MYSYNC and _ALLSYNC"
                ),
            );
        }
        given == group[2]
    };
    let all_sync = AllSync {
        before: one_of(IN, "IN"),
        after: one_of(OUT, "OUT"),
    };
    if flags & LOCAL == 0 {
        fatal(
            function,
            &format!(
                "flags are {flags:#x}; they need GASNET_COLL_LOCAL, as addresses are those of the calling rank"
            ),
        );
    }
    let unknown = flags & !(IN[0] | IN[1] | IN[2] | OUT[0] | OUT[1] | OUT[2] | LOCAL | HINTS);
    if unknown != 0 {
        fatal(
            function,
            &format!("flags are {flags:#x}, of which {unknown:#x} is not known"),
        );
    }
    all_sync
}

/// The data of an operation: lengths, memory and flags.
#[derive(Clone, Copy)]
struct Data {
    dst: *mut c_void,
    src: *const c_void,
    bytes: usize,
    flags: c_int,
}

/// Starts an operation; `root` is the argument's name and value.
///
/// # Safety
/// A team of ours, or null; memory as the header asks.
unsafe fn start(
    function: &str,
    kind: Kind,
    tm: *const Team,
    root: Option<(&str, u32)>,
    data: Data,
) -> Event {
    // SAFETY: this function's contract.
    let mut asked = unsafe { Asked::new(function, tm) };
    if let Some((argument, root)) = root {
        asked = asked.rooted(argument, root);
    }
    let (size, is_root) = (asked.size(), asked.is_root());
    let at_root = |blocks| if is_root { blocks } else { 0 };
    let (given, taken) = match kind {
        Kind::Broadcast => (at_root(1), 1),
        Kind::Scatter => (at_root(size), 1),
        Kind::Gather => (1, at_root(size)),
        Kind::GatherAll => (1, size),
        _ => (size, size),
    };
    let call = Call {
        all_sync: all_sync(function, data.flags),
        ..bytes(kind, data.dst, data.src, data.bytes)
    };
    // SAFETY: this function's contract.
    unsafe { asked.blocks(given, taken).start(call) }
}

fn wait(function: &str, event: Event) {
    communicating(function, |job, ctx| {
        done(function, job.joined.engine.wait(ctx, event))
    });
}

export! {
    /// The value of `GASNET_TEAM_ALL`.
    fn argonet_coll_team_all() -> *const Team {
        job("GASNET_TEAM_ALL").world.handle()
    }

    fn gasnet_coll_broadcast_nb(team: *const Team, dst: *mut c_void, srcimage: u32, src: *const c_void, nbytes: usize, flags: c_int) -> Event {
        let data = Data { dst, src, bytes: nbytes, flags };
        // SAFETY: as the header asks.
        unsafe { start("gasnet_coll_broadcast_nb", Kind::Broadcast, team, Some(("srcimage", srcimage)), data) }
    }

    fn gasnet_coll_broadcast(team: *const Team, dst: *mut c_void, srcimage: u32, src: *const c_void, nbytes: usize, flags: c_int) {
        const FUNCTION: &str = "gasnet_coll_broadcast";
        let data = Data { dst, src, bytes: nbytes, flags };
        // SAFETY: as the header asks.
        wait(FUNCTION, unsafe { start(FUNCTION, Kind::Broadcast, team, Some(("srcimage", srcimage)), data) });
    }

    fn gasnet_coll_scatter_nb(team: *const Team, dst: *mut c_void, srcimage: u32, src: *const c_void, nbytes: usize, flags: c_int) -> Event {
        let data = Data { dst, src, bytes: nbytes, flags };
        // SAFETY: as the header asks.
        unsafe { start("gasnet_coll_scatter_nb", Kind::Scatter, team, Some(("srcimage", srcimage)), data) }
    }

    fn gasnet_coll_scatter(team: *const Team, dst: *mut c_void, srcimage: u32, src: *const c_void, nbytes: usize, flags: c_int) {
        const FUNCTION: &str = "gasnet_coll_scatter";
        let data = Data { dst, src, bytes: nbytes, flags };
        // SAFETY: as the header asks.
        wait(FUNCTION, unsafe { start(FUNCTION, Kind::Scatter, team, Some(("srcimage", srcimage)), data) });
    }

    fn gasnet_coll_gather_nb(team: *const Team, dstimage: u32, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: c_int) -> Event {
        let data = Data { dst, src, bytes: nbytes, flags };
        // SAFETY: as the header asks.
        unsafe { start("gasnet_coll_gather_nb", Kind::Gather, team, Some(("dstimage", dstimage)), data) }
    }

    fn gasnet_coll_gather(team: *const Team, dstimage: u32, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: c_int) {
        const FUNCTION: &str = "gasnet_coll_gather";
        let data = Data { dst, src, bytes: nbytes, flags };
        // SAFETY: as the header asks.
        wait(FUNCTION, unsafe { start(FUNCTION, Kind::Gather, team, Some(("dstimage", dstimage)), data) });
    }

    fn gasnet_coll_gather_all_nb(team: *const Team, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: c_int) -> Event {
        let data = Data { dst, src, bytes: nbytes, flags };
        // SAFETY: as the header asks.
        unsafe { start("gasnet_coll_gather_all_nb", Kind::GatherAll, team, None, data) }
    }

    fn gasnet_coll_gather_all(team: *const Team, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: c_int) {
        const FUNCTION: &str = "gasnet_coll_gather_all";
        let data = Data { dst, src, bytes: nbytes, flags };
        // SAFETY: as the header asks.
        wait(FUNCTION, unsafe { start(FUNCTION, Kind::GatherAll, team, None, data) });
    }

    fn gasnet_coll_exchange_nb(team: *const Team, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: c_int) -> Event {
        let data = Data { dst, src, bytes: nbytes, flags };
        // SAFETY: as the header asks.
        unsafe { start("gasnet_coll_exchange_nb", Kind::Exchange, team, None, data) }
    }

    fn gasnet_coll_exchange(team: *const Team, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: c_int) {
        const FUNCTION: &str = "gasnet_coll_exchange";
        let data = Data { dst, src, bytes: nbytes, flags };
        // SAFETY: as the header asks.
        wait(FUNCTION, unsafe { start(FUNCTION, Kind::Exchange, team, None, data) });
    }

    fn gasnet_coll_try_sync(handle: Event) -> c_int {
        const FUNCTION: &str = "gasnet_coll_try_sync";
        communicating(FUNCTION, |job, ctx| code(done(FUNCTION, job.joined.engine.test(ctx, handle))))
    }

    fn gasnet_coll_try_sync_some(handles: *mut Event, count: usize) -> c_int {
        const FUNCTION: &str = "gasnet_coll_try_sync_some";
        poll(FUNCTION);
        // SAFETY: as the header asks.
        code(unsafe { several(FUNCTION, handles, count, 0, Engine::peek_some, true) })
    }

    fn gasnet_coll_try_sync_all(handles: *mut Event, count: usize) -> c_int {
        const FUNCTION: &str = "gasnet_coll_try_sync_all";
        poll(FUNCTION);
        // SAFETY: as the header asks.
        code(unsafe { several(FUNCTION, handles, count, 0, peek_all, true) })
    }

    fn gasnet_coll_wait_sync(handle: Event) {
        wait("gasnet_coll_wait_sync", handle);
    }

    fn gasnet_coll_wait_sync_some(handles: *mut Event, count: usize) {
        // SAFETY: as the header asks.
        unsafe { several("gasnet_coll_wait_sync_some", handles, count, 0, Engine::wait_some, ()) };
    }

    fn gasnet_coll_wait_sync_all(handles: *mut Event, count: usize) {
        // SAFETY: as the header asks.
        unsafe { several("gasnet_coll_wait_sync_all", handles, count, 0, Engine::wait_all, ()) };
    }

    fn gasnet_coll_dumpTuningState(filename: *const c_char, team: *const Team) {
        const FUNCTION: &str = "gasnet_coll_dumpTuningState";
        // SAFETY: as the header asks.
        let (asked, path) = unsafe { (Asked::new(FUNCTION, team), path(filename)) };
        communicating(FUNCTION, |job, _| {
            let tuning = job.joined.engine.tuning_of(asked.team.of_engine(job));
            write(FUNCTION, &asked, path, &tuning.to_string());
        });
    }

    fn gasnet_coll_loadTuningState(filename: *const c_char, team: *const Team) {
        const FUNCTION: &str = "gasnet_coll_loadTuningState";
        // SAFETY: as the header asks.
        let (asked, path) = unsafe { (Asked::new(FUNCTION, team), path(filename)) };
        let Some(path) = path else {
            fatal(FUNCTION, "filename is null");
        };
        communicating(FUNCTION, |job, ctx| {
            let engine = &job.joined.engine;
            let team = asked.team.of_engine(job);
            let mut tuning = engine.tuning_of(team);
            let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
            if let Err(error) = read.and_then(|text| tuning.read(&text)) {
                fatal(FUNCTION, &format!("filename is {}: {error}", path.display()));
            }
            done(FUNCTION, engine.team_barrier(ctx, team));
            engine.retune(team, tuning);
        });
    }

    fn gasnet_coll_dumpProfile(filename: *const c_char, team: *const Team) {
        const FUNCTION: &str = "gasnet_coll_dumpProfile";
        // SAFETY: as the header asks.
        let (asked, path) = unsafe { (Asked::new(FUNCTION, team), path(filename)) };
        communicating(FUNCTION, |job, _| {
            let counts = job.joined.engine.collective_counts(asked.team.of_engine(job));
            let line = |(kind, count): &(Kind, Count)| {
                format!("{}: {} calls, {} bytes\n", kind.name(), count.calls, count.bytes)
            };
            let text: String = counts.iter().map(line).collect();
            write(FUNCTION, &asked, path, &text);
        });
    }

    fn gasnet_coll_barrier_notify(team: *const Team, id: c_int, flags: c_int) {
        const FUNCTION: &str = "gasnet_coll_barrier_notify";
        // SAFETY: as the header asks.
        let asked = unsafe { Asked::new(FUNCTION, team) };
        barrier::notify(FUNCTION, Some(asked.team), id, flags);
    }

    fn gasnet_coll_barrier_wait(team: *const Team, id: c_int, flags: c_int) -> c_int {
        const FUNCTION: &str = "gasnet_coll_barrier_wait";
        // SAFETY: as the header asks.
        let asked = unsafe { Asked::new(FUNCTION, team) };
        barrier::wait(FUNCTION, Some(asked.team), id, flags)
    }

    fn gasnet_coll_barrier_try(team: *const Team, id: c_int, flags: c_int) -> c_int {
        const FUNCTION: &str = "gasnet_coll_barrier_try";
        // SAFETY: as the header asks.
        let asked = unsafe { Asked::new(FUNCTION, team) };
        barrier::try_once(FUNCTION, Some(asked.team), id, flags)
    }

    fn gasnet_coll_barrier(team: *const Team, id: c_int, flags: c_int) -> c_int {
        const FUNCTION: &str = "gasnet_coll_barrier";
        // SAFETY: as the header asks.
        let asked = unsafe { Asked::new(FUNCTION, team) };
        barrier::notify(FUNCTION, Some(asked.team), id, flags);
        barrier::wait(FUNCTION, Some(asked.team), id, flags)
    }

    fn gasnet_coll_barrier_result(team: *const Team, id: *mut c_int) -> c_int {
        const FUNCTION: &str = "gasnet_coll_barrier_result";
        // SAFETY: as the header asks.
        let asked = unsafe { Asked::new(FUNCTION, team) };
        // SAFETY: as above.
        unsafe { barrier::result(FUNCTION, Some(asked.team), id) }
    }
}

/// The path that C gives, or `None` for null.
///
/// # Safety
/// Null, or a string.
unsafe fn path(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: this function's contract.
    let name = unsafe { CStr::from_ptr(name) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// Rank 0 of the team writes a text to a file, or to the standard output.
fn write(function: &str, asked: &Asked<'_>, to: Option<PathBuf>, text: &str) {
    if asked.rank() != 0 {
        return;
    }
    let written = match &to {
        Some(path) => std::fs::write(path, text),
        None => std::io::stdout().write_all(text.as_bytes()),
    };
    if let Err(error) = written {
        let path = to.unwrap_or_default();
        fatal(
            function,
            &format!("filename is {}: {error}", path.display()),
        );
    }
}

fn poll(function: &str) {
    communicating(function, |job, ctx| {
        done(function, job.joined.engine.poll(ctx).map_err(Into::into))
    });
}
