//! Making the interface of a process.

use super::abi::{self, Guarded, NiLimits, Process};
use super::answer::{check, made, unexpected};
use super::bound::Bound;
use super::config::Portals4Config;
use super::library::Library;
use super::objects::Tables;
use super::outstanding::Outstanding;
use super::queue;
use super::signals::Kept;
use super::threads::Tid;
use crate::portals::slots::Slots;
use crate::portals::{NicError, Target};
use argonet_base::JobRank;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64};
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::BTreeSet;

/// The address of a process in the network, which ranks publish before [`Opening::map`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessId {
    /// The node.
    pub nid: u32,
    /// The process on that node.
    pub pid: u32,
}

impl ProcessId {
    /// As one number.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        u64::from(self.nid) << 32 | u64::from(self.pid)
    }

    /// From [`to_bits`](Self::to_bits).
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self {
            nid: (bits >> 32) as u32,
            pid: bits as u32,
        }
    }
}

/// The network interface of the process, released with it.
pub(super) struct Ni {
    pub(super) library: Library,
    pub(super) handle: abi::Handle,
    pub(super) rank: JobRank,
    /// 0 until it is mapped.
    pub(super) ranks: u32,
    pub(super) uid: u32,
    pub(super) portals: u32,
    pub(super) entries: u32,
    pub(super) limits: NiLimits,
}

impl Drop for Ni {
    fn drop(&mut self) {
        // SAFETY: the interface was made by this library and is not used any more; its objects go
        // with it.
        unsafe {
            (self.library.call.ni_fini)(self.handle);
            (self.library.call.fini)();
        }
    }
}

impl Ni {
    /// A rank as the library names it.
    pub(super) fn reach(&self, peer: JobRank) -> Result<Process, NicError> {
        if peer.0 >= self.ranks {
            return Err(NicError::BadRank {
                rank: self.rank,
                peer,
                ranks: self.ranks,
            });
        }
        Ok(Process {
            nid_or_rank: peer.0,
            pid: 0,
        })
    }

    pub(super) fn target(&self, target: &Target) -> Result<Process, NicError> {
        if target.portal.0 >= self.portals {
            return Err(NicError::BadPortal {
                rank: self.rank,
                portal: target.portal.0,
                portals: self.portals,
            });
        }
        self.reach(target.rank)
    }

    /// The error of a library that does not behave as expected.
    #[cold]
    pub(super) fn wrong(&self, what: String) -> NicError {
        NicError::WrongLibrary {
            library: self.library.name().to_owned(),
            what,
        }
    }
}

fn int(value: u64) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

/// Limits to ask for: those that the user wants, and the needs of `probe.rs`.
fn desired(config: &Portals4Config) -> NiLimits {
    NiLimits {
        entries: int(u64::from(config.entries) + 1),
        unexpected_headers: 64,
        descriptors: int(u64::from(config.descriptors) * 3 + 3),
        counters: int(u64::from(config.counters) + 1),
        queues: int(u64::from(config.queues) + 1),
        last_portal: int(u64::from(config.portals).saturating_sub(1)),
        iovecs: 1,
        list: int(u64::from(config.entries) + 1),
        triggered: 0,
        message_bytes: config.message_bytes,
        atomic_bytes: i64::MAX as u64,
        fetch_atomic_bytes: i64::MAX as u64,
        waw_ordered_bytes: 64,
        war_ordered_bytes: 8,
        volatile_bytes: 64,
        features: 0,
    }
}

/// An interface that has an address, and does not know those of others.
pub struct Opening {
    ni: Ni,
    config: Portals4Config,
    id: ProcessId,
    /// Threads that the library has started.
    threads: BTreeSet<Tid>,
}

impl Opening {
    /// Makes the network interface of this process: matching, with logical addresses.
    ///
    /// One a process; behind `fork`, as libraries have threads.
    ///
    /// # Errors
    /// [`NicError::Library`] where there is no network, or no right to it;
    /// [`NicError::WrongLibrary`].
    pub fn new(library: &Library, rank: JobRank, config: Portals4Config) -> Result<Self, NicError> {
        let call = &library.call;
        let before = super::threads::all();
        let _children = Kept::of(libc::SIGCHLD);
        // SAFETY: the library is loaded; the call has no arguments.
        check(rank, "PtlInit", unsafe { (call.init)() })?;
        let wanted = Guarded::new(desired(&config));
        let mut actual = Guarded::new(NiLimits::default());
        let mut handle = 0;
        // SAFETY: the places are valid, with room for structures that are longer in another
        // version.
        let code = unsafe {
            (call.ni_init)(
                abi::INTERFACE_DEFAULT,
                abi::NI_MATCHING | abi::NI_LOGICAL,
                abi::PID_ANY,
                (&raw const wanted).cast(),
                (&raw mut actual).cast(),
                &raw mut handle,
            )
        };
        if code != abi::OK {
            // SAFETY: it was initialized, and nothing was made.
            unsafe { (call.fini)() };
            return Err(unexpected(rank, "PtlNIInit", code));
        }
        let mut limits = actual.value;
        // A library without such a limit may report more than it was asked for.
        limits.message_bytes = limits.message_bytes.min(config.message_bytes);
        let mut ni = Ni {
            library: library.clone(),
            handle,
            rank,
            ranks: 0,
            uid: 0,
            portals: u32::try_from(limits.last_portal).unwrap_or(0) + 1,
            entries: u32::try_from(limits.entries).unwrap_or(0),
            limits,
        };
        let sane = limits.last_portal > 0
            && limits.entries > 0
            && limits.message_bytes >= 8
            && limits.atomic_bytes >= 8
            && limits.fetch_atomic_bytes >= 8;
        if !actual.is_whole() || !sane {
            return Err(ni.wrong(format!("its limits are {limits:?}")));
        }
        let mut uid = 0;
        // SAFETY: the place is valid.
        let code = unsafe { (call.get_uid)(handle, &raw mut uid) };
        check(rank, "PtlGetUid", code)?;
        ni.uid = uid;
        let mut id = Process::default();
        // SAFETY: the place is valid.
        let code = unsafe { (call.get_phys_id)(handle, &raw mut id) };
        check(rank, "PtlGetPhysId", code)?;
        let id = ProcessId {
            nid: id.nid_or_rank,
            pid: id.pid,
        };
        let threads = &super::threads::all() - &before;
        Ok(Self {
            ni,
            config,
            id,
            threads,
        })
    }

    /// The address of this process.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// Gives the interface the addresses of all ranks, the first of rank 0, and tries it with
    /// itself.
    ///
    /// Every rank calls this with the same list. The reference implementation waits for the others
    /// of the host where it has shared memory.
    ///
    /// # Errors
    /// [`NicError::BadRank`] and [`NicError::Invalid`] if the own address is not at the own place;
    /// [`NicError::Library`]; [`NicError::WrongLibrary`] if the library's constants or structures
    /// are others.
    pub fn map(self, ranks: &[ProcessId]) -> Result<Portals4, NicError> {
        let Self {
            mut ni,
            config,
            id,
            threads,
        } = self;
        let rank = ni.rank;
        ni.ranks = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
        ni.reach(rank)?;
        if ranks[rank.0 as usize] != id {
            return Err(NicError::Invalid {
                rank,
                what: "a map of ranks that has another address at the place of this rank",
            });
        }
        let process = |id: &ProcessId| Process {
            nid_or_rank: id.nid,
            pid: id.pid,
        };
        let map: Vec<Process> = ranks.iter().map(process).collect();
        let count = map.len() as u64;
        // SAFETY: as many addresses as the call says.
        let code = unsafe { (ni.library.call.set_map)(ni.handle, count, map.as_ptr()) };
        if code == abi::IGNORED {
            // Another library of this process has set a map before, which is as good if it is the
            // same.
            let (mut found, mut len) = (vec![Process::default(); map.len()], 0);
            // SAFETY: room for as many addresses as the call says.
            let code = unsafe {
                (ni.library.call.get_map)(ni.handle, count, found.as_mut_ptr(), &raw mut len)
            };
            check(rank, "PtlGetMap", code)?;
            if len != count || found != map {
                return Err(NicError::Invalid {
                    rank,
                    what: "another user of the library in this process has mapped other ranks",
                });
            }
        } else {
            made(rank, "PtlSetMap", code, "rank of a map", count)?;
        }
        super::probe::run(&ni)?;
        Ok(Portals4 {
            queues: RwLock::new(Slots::new(rank, "queue", config.queues)),
            tables: Mutex::new(Tables::new(&ni, &config)),
            bound: RwLock::new(Slots::new(rank, "descriptor", config.descriptors)),
            outstanding: Mutex::new(Outstanding::new(rank, config.operations)),
            asleep: Mutex::default(),
            woken: Condvar::new(),
            dropped: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            naps: AtomicU32::new(0),
            busy_threads: super::threads::busy(&threads),
            config,
            ni,
        })
    }
}

/// The interface of a rank, over a library of Portals 4.
///
/// Dropping it frees all that was made of it; no memory is accessed by peers then.
///
/// Locks are taken in this order: `asleep`, `bound`, `queues`, a queue's own, `tables`,
/// `outstanding`.
pub struct Portals4 {
    pub(super) queues: RwLock<Slots<queue::Record>>,
    pub(super) tables: Mutex<Tables>,
    pub(super) bound: RwLock<Slots<Bound>>,
    pub(super) outstanding: Mutex<Outstanding>,
    /// Threads that wait for events.
    pub(super) asleep: Mutex<()>,
    pub(super) woken: Condvar,
    /// How often events were dropped.
    pub(super) dropped: AtomicU64,
    /// Operations.
    pub(super) begun: AtomicU64,
    /// How often in turn a thread slept and found nothing.
    pub(super) naps: AtomicU32,
    /// Threads of the library that never sleep.
    pub(super) busy_threads: u32,
    pub(super) config: Portals4Config,
    pub(super) ni: Ni,
}
