//! The client, and how a job begins.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::offset_of;
use std::ffi::CString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use argonet::start::{Joining, join};
use argonet_am::HandlerTable;
use argonet_boot::Bootstrap;
use argonet_conduit::smp::ThreadMode;
use argonet_settings::MAX_THREADS;
use parking_lot::Mutex;

use crate::am::Handlers;
use crate::export::export;
use crate::job::state::{find, set};
use crate::job::threads::Threads;
use crate::job::{
    BAD_ARG, CData, Endpoint, Job, NOT_INIT, OK, RESOURCE, Team, given, hooks, refuse,
};

/// `GEX_FLAG_USES_GASNET1`.
const USES_GASNET1: u32 = 1;

/// `GEX_FLAG_DEFER_THREADS`.
const DEFER_THREADS: u32 = 2;

/// `struct argonet_variant`: which library a program was linked with.
#[repr(C)]
pub(crate) struct Variant {
    version: u32,
    mode: u32,
    debug: u32,
    spare: u32,
    conduit: *const c_char,
}

/// Changes with [`Variant`].
const VARIANT_VERSION: u32 = 1;

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

impl Variant {
    fn mode(&self) -> Option<ThreadMode> {
        [ThreadMode::Seq, ThreadMode::Parsync, ThreadMode::Par]
            .get(self.mode as usize)
            .copied()
    }
}

/// What is wrong with the arguments of `gex_Client_Init`.
fn check(variant: &Variant, name: &CStr, flags: u32) -> Result<ThreadMode, String> {
    let mode = variant
        .mode()
        .filter(|_| variant.version == VARIANT_VERSION);
    let Some(mode) = mode else {
        return Err("the library of the conduit and libargonet are of different versions".into());
    };
    let named = name.to_str().is_ok_and(|name| {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        name.chars().all(word) && name.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    if !named {
        return Err(format!(
            "the client's name is {name:?}; it must be a letter, then letters, digits and _"
        ));
    }
    if flags & !(USES_GASNET1 | DEFER_THREADS) != 0 {
        return Err(format!(
            "flags are {flags:#x}; only GEX_FLAG_USES_GASNET1 and GEX_FLAG_DEFER_THREADS are known"
        ));
    }
    Ok(mode)
}

/// Joins the job.
fn init(mode: ThreadMode, debug: bool, name: &CStr, flags: u32) -> argonet::Result<&'static Job> {
    let how = Joining {
        mode,
        ranks: None,
        limit: hooks::segment_limit(),
        // Handlers come later, and may differ.
        digest: b"gasnetex",
        count: 0,
    };
    let handlers: &'static Handlers = Box::leak(Box::default());
    let joined = join(
        how,
        |table: &mut HandlerTable| Ok(handlers.register(table)?),
    )?;
    joined.start()?;
    // No call of C's finalises.
    joined.boot.leaves_by_exit();
    let endpoint: &'static Endpoint = Box::leak(Box::new(Endpoint::primordial()));
    let size = joined.engine.size();
    let rank = joined.engine.rank().0;
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
        world: Team::world(endpoint, rank, size),
        handlers,
        endpoints: Mutex::new(vec![endpoint]),
        attached: OnceLock::new(),
        neighbours: (0..size).collect(),
        threads,
    }))
}

export! {
    /// Joins the job: what `gex_Client_Init` calls, with the variant that the program was linked with.
    fn argonet_client_init(variant: *const Variant, client: *mut *const Client, ep: *mut *const Endpoint, tm: *mut *const Team, name: *const c_char, argc: *mut c_int, argv: *mut *mut *mut c_char, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_Client_Init";
        if find().is_some() {
            return refuse(FUNCTION, NOT_INIT, "this process has a client already; there is one in each process");
        }
        if client.is_null() || ep.is_null() || tm.is_null() || name.is_null() {
            return refuse(FUNCTION, BAD_ARG, "the places for client, endpoint and team, and the name, must not be null");
        }
        if argc.is_null() != argv.is_null() {
            return refuse(FUNCTION, BAD_ARG, "argc and argv must both be null, or neither");
        }
        // SAFETY: the variant's library passes its own; the name is a string, as the header asks.
        let (variant, name) = unsafe { (given(variant, FUNCTION, "variant"), CStr::from_ptr(name)) };
        let mode = match check(variant, name, flags) {
            Ok(mode) => mode,
            Err(why) => return refuse(FUNCTION, BAD_ARG, &why),
        };
        let job = match init(mode, variant.debug != 0, name, flags) {
            Ok(job) => job,
            Err(error) => return refuse(FUNCTION, RESOURCE, &error.to_string()),
        };
        // SAFETY: not null, and the caller's to write, as the header asks.
        unsafe {
            *client = &raw const job.client;
            *ep = job.world.endpoint();
            *tm = &raw const job.world;
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

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    ("sizeof(struct argonet_variant)", size_of::<Variant>()),
    (
        "offsetof(struct argonet_variant, mode)",
        offset_of!(Variant, mode),
    ),
    (
        "offsetof(struct argonet_variant, debug)",
        offset_of!(Variant, debug),
    ),
    (
        "offsetof(struct argonet_variant, conduit)",
        offset_of!(Variant, conduit),
    ),
];
