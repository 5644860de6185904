//! The client, and how a job begins.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use argonet_am::HandlerTable;
use argonet_base::gasnet::number32;
use argonet_boot::Bootstrap;
use argonet_conduit::ThreadMode;
use argonet_settings::{MAX_THREADS, Settings};
use argonet_start::{Joining, join};
use parking_lot::Mutex;

use crate::am::Handlers;
use crate::export::export;
use crate::job::everything::{self, SegmentMode};
use crate::job::linked::{Variant, linked_with};
use crate::job::losses;
use crate::job::state::{find, set};
use crate::job::threads::Threads;
use crate::job::{
    BAD_ARG, CData, Endpoint, Job, NOT_INIT, OK, Placed, RESOURCE, Team, Teams, given, hooks,
    refuse,
};
use crate::legacy::{Permit, ValueGets};

/// `GEX_FLAG_USES_GASNET1`.
pub(crate) const USES_GASNET1: u32 = number32("GEX_FLAG_USES_GASNET1");

/// `GEX_FLAG_DEFER_THREADS`.
const DEFER_THREADS: u32 = number32("GEX_FLAG_DEFER_THREADS");

/// The client of a job.
pub(crate) struct Client {
    name: CString,
    flags: u32,
    /// Whether it has asked which threads to start.
    asked: AtomicBool,
    cdata: CData,
}

impl Client {
    /// Whether this is the one time that it may ask which threads to start.
    pub(crate) fn may_ask_for_threads(&self) -> bool {
        self.flags & DEFER_THREADS != 0 && !self.asked.swap(true, Ordering::Relaxed)
    }
}

/// Checks the arguments of `gex_Client_Init`.
fn check(variant: &Variant, flags: u32) -> Result<(ThreadMode, SegmentMode), String> {
    let modes = variant.mode().zip(variant.segment());
    let Some(modes) = modes.filter(|_| variant.fits()) else {
        return Err("the library of the conduit and libargonet are of different versions".into());
    };
    if flags & !(USES_GASNET1 | DEFER_THREADS) != 0 {
        return Err(format!(
            "flags are {flags:#x}; only GEX_FLAG_USES_GASNET1 and GEX_FLAG_DEFER_THREADS are known"
        ));
    }
    Ok(modes)
}

/// Whether a client's name is of the form that the specification asks for: `[A-Z][A-Z0-9_]+`.
fn is_plain(name: &CStr) -> bool {
    let word = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    match name.to_bytes() {
        [first, rest @ ..] => {
            first.is_ascii_uppercase() && !rest.is_empty() && rest.iter().all(word)
        }
        [] => false,
    }
}

/// Warns of a client's name that is not what it should be, once in a job; no call depends on the
/// name.
fn warn_of_name(job: &Job, name: &CStr, function: &str) {
    if job.joined.engine.rank().0 == 0 && !is_plain(name) {
        let line = format!(
            "argonet: warning: {function}: the client's name is {name:?}; it should be a capital letter, then capital letters, digits and _, two characters at least\n"
        );
        // If standard error is closed there is no other place for the warning.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// Joins the job.
fn init(
    (mode, segments): (ThreadMode, SegmentMode),
    debug: bool,
    name: &CStr,
    flags: u32,
    gasnet1: Permit,
) -> argonet_start::Result<&'static Job> {
    let how = Joining {
        mode,
        ranks: None,
        limit: hooks::segment_limit(),
        // Handlers come later, and may differ.
        digest: b"gasnetex",
        count: 0,
    };
    argonet_boot::report_as_gasnet();
    let handlers: &'static Handlers = Box::leak(Box::default());
    let register = |table: &mut HandlerTable, _| Ok(handlers.register(table)?);
    // SAFETY: the functions of this crate keep the engine's contract, or ask C for it (see
    // `with_job`). They hold no quiet phases.
    let joined = unsafe { join(how, register) }?;
    if segments == SegmentMode::Everything {
        everything::bind(&joined);
    }
    losses::go_on(&joined)?;
    joined.start()?;
    // No call of C's finalizes.
    joined.boot.leaves_by_exit();
    let endpoint: &'static Endpoint = Box::leak(Box::new(Endpoint::primordial(handlers)));
    let size = joined.engine.size();
    let rank = joined.engine.rank().0;
    let own = joined.engine.rank();
    let near = joined.placement.neighbors(own);
    let world = Placed::new(Team::world(endpoint, rank, size, near.end));
    let teams = Teams::default();
    let neighbors = match segments {
        SegmentMode::Everything => {
            let deltas = everything::deltas(rank, size);
            world.set_deltas(&deltas);
            teams.set_deltas(deltas);
            [rank].into()
        }
        SegmentMode::Fast | SegmentMode::Large => near.collect(),
    };
    let ranks = joined.placement.on_host(own).collect();
    let threads = Threads::new(mode, joined.settings.get(&MAX_THREADS), debug);
    threads.expect(debug);
    Ok(set(Job {
        joined,
        debug,
        client: Client {
            name: name.to_owned(),
            flags,
            asked: AtomicBool::new(false),
            cdata: CData::default(),
        },
        world,
        teams,
        segments,
        was_attached: AtomicBool::new(false),
        handlers,
        endpoints: Mutex::new(vec![endpoint]),
        attached: OnceLock::new(),
        neighbors,
        ranks,
        threads,
        gasnet1,
        value_gets: ValueGets::default(),
    }))
}

/// How a program begins.
pub(crate) struct Start<'a> {
    /// Name of the call in C.
    pub(crate) function: &'static str,
    pub(crate) variant: &'static Variant,
    pub(crate) name: &'a CStr,
    pub(crate) flags: u32,
    pub(crate) gasnet1: Permit,
}

/// Starts the job, if that is this process's part in it: the code to exit with.
fn launch(variant: &Variant) -> Result<Option<u8>, String> {
    let settings = Settings::from_environment().map_err(|error| error.to_string())?;
    settings.keep_quiet();
    let launched = argonet_boot::launch_self(variant.conduit(), std::env::args_os(), &settings);
    launched.map_err(|error| error.to_string())
}

/// Joins the job as C asks for it, or gives the code of what is wrong.
///
/// The arguments of the program stay as they are: nothing of the launcher's is among them.
pub(crate) fn start(
    start: Start<'_>,
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
) -> Result<&'static Job, c_int> {
    let Start {
        function,
        variant,
        name,
        flags,
        gasnet1,
    } = start;
    if argc.is_null() != argv.is_null() {
        let why = "argc and argv must both be null, or neither";
        return Err(refuse(function, BAD_ARG, why));
    }
    linked_with(variant);
    let modes = check(variant, flags).map_err(|why| refuse(function, BAD_ARG, &why))?;
    match launch(variant) {
        Ok(None) => {}
        // The ranks were other processes, or this was the agent of a host.
        Ok(Some(code)) => std::process::exit(code.into()),
        Err(why) => return Err(refuse(function, RESOURCE, &why)),
    }
    let job = init(modes, variant.is_debug(), name, flags, gasnet1);
    let job = job.map_err(|error| refuse(function, RESOURCE, &error.to_string()))?;
    warn_of_name(job, name, function);
    Ok(job)
}

/// Whether this process has begun already; says so if it has.
pub(crate) fn is_second(function: &str) -> Option<c_int> {
    let why = "this process has a client already; there is one in each process";
    find().map(|_| refuse(function, NOT_INIT, why))
}

export! {
    /// Joins the job.
    ///
    /// `gex_Client_Init` calls it with the variant that the program was linked with.
    fn argonet_client_init(variant: *const Variant, client: *mut *const Client, ep: *mut *const Endpoint, tm: *mut *const Team, name: *const c_char, argc: *mut c_int, argv: *mut *mut *mut c_char, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_Client_Init";
        if let Some(code) = is_second(FUNCTION) {
            return code;
        }
        if client.is_null() || ep.is_null() || tm.is_null() || name.is_null() {
            return refuse(FUNCTION, BAD_ARG, "the places for client, endpoint and team, and the name, must not be null");
        }
        // SAFETY: the variant's library passes its own; the name is a string, as the header asks.
        let (variant, name): (&'static Variant, _) = unsafe { (given(variant, FUNCTION, "variant"), CStr::from_ptr(name)) };
        let gasnet1 = if flags & USES_GASNET1 == 0 { Permit::never() } else { Permit::now() };
        let job = match start(Start { function: FUNCTION, variant, name, flags, gasnet1 }, argc, argv) {
            Ok(job) => job,
            Err(code) => return code,
        };
        argonet_trace::note_with(argonet_settings::Letter::Object, || format!("{FUNCTION}: client {}", name.to_string_lossy()));
        // SAFETY: not null, and the caller's to write, as the header asks.
        unsafe {
            *client = &raw const job.client;
            *ep = job.world.endpoint();
            *tm = job.world.handle();
        }
        OK
    }

    fn gex_Client_QueryFlags(client: *const Client) -> u32 {
        // SAFETY: a client of ours, or null.
        unsafe { given(client, "gex_Client_QueryFlags", "client") }.flags
    }

    fn gex_Client_QueryName(client: *const Client) -> *const c_char {
        // SAFETY: a client of ours, or null.
        unsafe { given(client, "gex_Client_QueryName", "client") }.name.as_ptr()
    }

    fn gex_Client_SetCData(client: *const Client, value: *const c_void) {
        // SAFETY: a client of ours, or null.
        unsafe { given(client, "gex_Client_SetCData", "client") }.cdata.set(value);
    }

    fn gex_Client_QueryCData(client: *const Client) -> *mut c_void {
        // SAFETY: a client of ours, or null.
        unsafe { given(client, "gex_Client_QueryCData", "client") }.cdata.get()
    }
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn names_are_plain_as_the_specification_has_it() {
        for name in [c"UPCXX", c"A1", c"A_", c"GASNET1"] {
            assert!(is_plain(name), "{name:?}");
        }
        for name in [
            c"",
            c"A",
            c"1A",
            c"_A",
            c"Ab",
            c"A-B",
            c"my client",
            c"\xc3\x84B",
        ] {
            assert!(!is_plain(name), "{name:?}");
        }
    }
}
