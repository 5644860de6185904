//! Joining a job, and attaching a segment at once or later.
#![allow(unsafe_code)]

use crate::error::{Result, StartError};
use crate::network::{Network, StartCheck, follow_exits, reaches};
use crate::networks::Connecting;
use crate::placement::{Card, Placement};
use crate::plan::{own_processors, processors};
use crate::process;
use crate::published::Published;
use crate::settings;
use crate::tracing;
use crate::tuning;
use argonet_am::{AmError, HandlerTable};
use argonet_base::{JobRank, Rank};
use argonet_boot::{AttachOptions, Bootstrap, Key, LocalJob, attach, launch_self};
use argonet_conduit::selector::Selector;
use argonet_conduit::smp::{Barrier, Smp, SmpConfig};
use argonet_conduit::{SegmentLen, ThreadMode};
use argonet_engine::{
    BarrierKind, DataType, Direction, Engine, EngineConfig, Internals, Operation, Outgoing,
    SegmentBase, Signature, ThreadCtx, TreePass, WaitPolicy, fold, trace_handlers,
};
use argonet_event::HandleTable;
use argonet_segment::cross_memory::allow_descendants_of;
use argonet_segment::{Directory, HostMemory, OwnSegment, PageKind, SegmentFile, admit};
use argonet_settings::{Bytes, Reach, VIS_GET_MAX_CHUNK, VIS_MAX_CHUNK, VIS_PUT_MAX_CHUNK};
use argonet_settings::{
    CONDUIT, CONDUIT_NAMES, CROSS_MEMORY, Letter, STALL_TIMEOUT, SegmentLimit, Settings, WAIT,
};
use core::ops::Range;
use rustix::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use zerocopy::IntoBytes;

/// How a rank joins.
pub struct Joining<'a> {
    /// Threads that will call.
    pub mode: ThreadMode,
    /// Ranks of a program that was started alone; `None` as the environment says.
    pub ranks: Option<u32>,
    /// Length that a segment may grow to where the user sets none; `None` for the usual.
    pub limit: Option<SegmentLimit>,
    /// Hash of the registrations of the client; the same on all ranks.
    pub digest: &'a [u8],
    /// How many things the client registers.
    pub count: usize,
}

/// Calls `f` with the context of the calling thread, which every call of an [`Engine`] takes.
///
/// Safe code has no context: if it retired the thread, or entered another context, a scope would
/// end before its operations are complete:
///
/// ```compile_fail,E0133
/// argonet_start::with_thread(|ctx| ctx.retire());
/// ```
///
/// # Safety
/// `f` keeps the [contract of the engine](argonet_engine#contract) with the context, and passes it
/// only to calls of the engine of this process's job.
#[inline(always)]
pub unsafe fn with_thread<R>(f: impl FnOnce(&ThreadCtx) -> R) -> R {
    process::with(f)
}

/// At most `most` live threads may call from now on: the first call of another one fails with
/// [`AmError::TooManyThreads`](argonet_am::AmError::TooManyThreads).
///
/// Each thread that has called calls `at_end` when it ends, before the library releases its state
/// of the thread. Once a process.
///
/// # Safety
/// `at_end` keeps the [contract of the engine](argonet_engine#contract) with the context that it is
/// given.
pub unsafe fn expect_threads(most: u64, at_end: fn(&ThreadCtx)) {
    process::expect_threads(most, at_end);
}

/// A rank that has joined its job.
pub struct Joined {
    /// The engine.
    pub engine: Engine<Selector>,
    /// The bootstrap that started the job.
    pub boot: Arc<LocalJob>,
    /// The settings of the job.
    pub settings: Settings,
    /// Bytes that a segment may grow to.
    pub limit: u64,
    /// Where the ranks are.
    pub placement: Arc<Placement>,
    /// Published bases and lengths of the ranks' segments.
    pub published: Arc<Published>,
    /// Until the start.
    check: Mutex<Option<StartCheck>>,
}

/// Starts the job, where this process is neither a rank nor to become one: it was started as
/// `./program N arguments` and the settings name a conduit that joins hosts, or it is such a job's
/// agent on a host.
///
/// The process then ends with the job, and the call does not return.
///
/// # Errors
/// A number of ranks that is missing or none; a launcher that cannot start.
pub fn launch_if_alone() -> Result<()> {
    if !process::may_join() {
        // It is or was a rank, which `join` reports.
        return Ok(());
    }
    let settings = Settings::from_environment()?;
    settings.keep_quiet();
    match launch_self(CONDUIT_NAMES[0], std::env::args_os(), &settings)? {
        None => Ok(()),
        Some(code) => std::process::exit(code.into()),
    }
}

/// Joins the job; `register` puts the client's handlers into the table, some of which
/// may leave answers to be sent in parts.
///
/// A process joins once. Ranks may communicate after [`Joined::start`].
///
/// ```compile_fail,E0133
/// # fn f(how: argonet_start::Joining<'_>) {
/// let joined = argonet_start::join(how, |_, _| Ok(())).unwrap();
/// # }
/// ```
///
/// # Safety
/// The caller keeps the [contract of the engine](argonet_engine#contract) with the result: other
/// ranks of the job may be programs of safe code. It publishes no length of a segment but that of
/// attached memory ([`Published`]).
///
/// # Errors
/// The job cannot start; see [`StartError`].
pub unsafe fn join(
    how: Joining<'_>,
    register: impl FnOnce(&mut HandlerTable, Outgoing) -> Result<()>,
) -> Result<Joined> {
    let settings = Settings::from_environment()?;
    let options = AttachOptions::new();
    let options = match how.ranks {
        Some(ranks) => options.ranks(ranks),
        None => options,
    };
    let chance = process::join().map_err(|rank| StartError::SecondWorld { rank })?;
    let boot = Arc::new(attach(options, &settings)?);
    let rank = Rank(boot.rank().0);
    chance.used(rank);
    settings::report(&settings, rank);
    let network = Network::open(&boot, &settings)?;
    let trace = tracing::prepare(&*boot, &settings)?;
    let mut handlers = HandlerTable::default();
    let internals = Internals::register(&mut handlers)?;
    register(&mut handlers, internals.outgoing())?;
    let barrier = Smp::register_barrier();
    settings::publish(&*boot, &settings)?;
    let choices = tuning::tuning(&settings, rank)?;
    tuning::publish(&*boot, &choices)?;
    boot.publish(Key::HandlerTable, how.digest)?;
    boot.publish(Key::Membarrier, &[u8::from(barrier == Barrier::Sleeper)])?;
    boot.publish(Key::Processors, &own_processors())?;
    let published = Arc::new(Published::new(Arc::clone(&boot)));
    let (directory, reached, placement) = spans(&boot, how.limit, &settings, &published)?;
    tuning::compare(&*boot, &settings, &choices)?;
    tracing::start(&*boot, trace)?;
    trace_handlers(&mut handlers);
    check_handlers(&*boot, how.digest, how.count)?;
    let near = boot.neighborhood();
    let barrier = agree_on_barrier(&*boot, near.clone())?;
    let (lengths, bases) = (Arc::clone(&published), Arc::clone(&published));
    let segment_len: SegmentLen = Arc::new(move |rank| lengths.len(rank));
    let segment_base: SegmentBase = Arc::new(move |rank| bases.base(rank));
    let config = SmpConfig {
        rank: boot.rank(),
        first: JobRank(near.start),
        ranks: near.len() as u32,
        mode: how.mode,
        barrier,
        directory: Arc::clone(&directory),
        registered: handlers.registered(),
        segment_len: Arc::clone(&segment_len),
    };
    let smp = Smp::new(boot.files().rings.as_fd(), config).map_err(|cause| StartError::Rings {
        rank,
        ranks: near.len() as u32,
        cause,
    })?;
    let on_host = boot.host_ranks();
    let (busy, processors) = (on_host.len() as u32, processors(&*boot, on_host)?);
    let registered = handlers.registered();
    let spare = processors > busy;
    let connecting = Connecting {
        boot: &boot,
        mode: how.mode,
        directory: &directory,
        reached,
        registered,
        segment_len: &segment_len,
        processor_to_spare: spare,
    };
    let network = network.map(|opened| opened.conduit(connecting));
    let (network, check) = match network.transpose()? {
        Some((network, check)) => (Some(network), check),
        None => (None, None),
    };
    if let Some(network) = &network {
        published.before_publishing(reaches(network, rank));
    }
    let threads = network.as_ref().map_or(0, |n| n.busy_threads());
    let running = busy.saturating_mul(threads.saturating_add(1));
    let policy = WaitPolicy::for_host(running, processors);
    let exits = network.clone();
    let (conduit, policy) = match network {
        None => (Selector::neighbors_only(smp), policy),
        Some(network) => {
            let policy = match network.polls_ask_system() {
                true => policy.of_slow_polls(),
                false => policy,
            };
            (Selector::over(network, smp), policy.over_a_network())
        }
    };
    let start = Instant::now();
    let config = EngineConfig {
        boot: Arc::clone(&boot) as Arc<dyn Bootstrap>,
        conduit,
        handlers,
        internals,
        directory,
        segment_len,
        segment_base,
        policy,
        wait: settings.get(&WAIT),
        stall: Some(settings.get(&STALL_TIMEOUT)).filter(|time| !time.is_zero()),
        mode: how.mode,
        operations: HandleTable::MAX_OPERATIONS,
        clock: Box::new(move || start.elapsed()),
    };
    // SAFETY: the caller has promised to keep the contract. The conduit was made here, with the
    // handlers of the table.
    let engine = unsafe { Engine::new(config) };
    if let Some(network) = &exits {
        follow_exits(network, &boot);
    }
    engine.tune_collectives(choices);
    let placement = Arc::new(placement);
    let hoods = Arc::clone(&placement);
    engine.set_neighborhoods(Box::new(move |rank| hoods.neighborhood(rank)));
    if settings.get(&CROSS_MEMORY) {
        // The ranks of a host descend from the launcher, or from the rank that forked the others.
        allow_descendants_of(boot.job_page().launcher_pid());
        let pages = Arc::clone(&boot);
        engine.copy_across(Box::new(move |rank| {
            let process = match near.contains(&rank.0) {
                true => pages.rank_page(rank).pid(),
                false => 0,
            };
            (process != 0).then_some(process)
        }));
    }
    limit_vis_chunks(&engine, &settings);
    Ok(Joined {
        engine,
        boot,
        settings,
        limit: placement.limit(),
        placement,
        published,
        check: Mutex::new(check),
    })
}

/// A segment that others know of, after a call in which they met: it stays when that was cut short
/// by a loss, as others may reach it.
fn published(own: OwnSegment, met: core::result::Result<(), AmError>) -> Result<OwnSegment> {
    match met {
        Ok(()) | Err(AmError::PeerLost { .. }) => Ok(own),
        Err(error) => Err(error.into()),
    }
}

/// Sets the most bytes that one message of a non-contiguous transfer moves.
fn limit_vis_chunks(engine: &Engine<Selector>, settings: &Settings) {
    let all = settings.get(&VIS_MAX_CHUNK);
    for (direction, own) in [
        (Direction::Put, settings.get(&VIS_PUT_MAX_CHUNK)),
        (Direction::Get, settings.get(&VIS_GET_MAX_CHUNK)),
    ] {
        if let Some(Bytes(bytes)) = own.or(all) {
            engine.limit_vis_chunk(direction, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }
}

impl Joined {
    /// The most that each rank's segment can be, if all ranks ask for as much: a whole number of
    /// pages.
    #[must_use]
    pub fn largest_segment(&self) -> u64 {
        self.placement.share()
    }

    /// Attaches this rank's segment before the start; `bytes` is the same on all ranks.
    ///
    /// They can reach it after the start. Collective; does not poll, so no handler runs.
    ///
    /// # Errors
    /// [`StartError::Mismatch`]; on all ranks if there is not enough memory; otherwise an error of
    /// this rank's segment alone.
    pub fn attach_at_start(&self, bytes: u64) -> Result<OwnSegment> {
        let (boot, rank) = (&self.boot, self.boot.rank());
        boot.publish(Key::Request, &bytes.to_ne_bytes())?;
        boot.fence()?;
        let request = |rank| Ok(word(&boot.lookup(JobRank(rank), Key::Request)?, 0));
        let requests: Result<Vec<u64>> = (0..boot.size()).map(request).collect();
        let requests = requests?;
        if requests[0] != bytes {
            // Ranks would not grow together later.
            return Err(StartError::Mismatch {
                rank: Rank(rank.0),
                what: "the size of the segment at start",
            });
        }
        let own = self.attach_one_of(&requests)?;
        self.published.all_have(own.len())?;
        Ok(own)
    }

    /// Ranks may communicate from now on.
    ///
    /// Collective; does not poll.
    ///
    /// # Errors
    /// A rank cannot start; the network does not pass between some ranks.
    pub fn start(&self) -> Result<()> {
        self.boot.fence()?;
        let check = self.check.lock();
        let check = check.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(check) = check {
            check(&self.boot)?;
        }
        self.boot.started();
        Ok(())
    }

    /// Attaches this rank's segment after the start; ranks may ask for different sizes.
    ///
    /// All ranks can reach all segments on return. Collective; polls; once a process.
    ///
    /// # Errors
    /// On all ranks if there is not enough memory; otherwise an error of this rank's segment alone,
    /// or a loss before it is attached.
    pub fn attach(&self, ctx: &ThreadCtx, bytes: u64) -> Result<OwnSegment> {
        let engine = &self.engine;
        let mut requests = vec![0u64; engine.size() as usize];
        requests[engine.rank().index()] = bytes;
        let sum = |sum: &mut [u8], other: &[u8]| fold(Operation::Add, DataType::U64, sum, other);
        let pass = TreePass {
            root: JobRank(0),
            fold: Some(&sum),
            down: true,
            signature: Signature::VOTE,
        };
        let words = requests.as_mut_bytes();
        engine.collective(ctx, &pass, words, size_of::<u64>())?;
        let own = self.attach_one_of(&requests)?;
        self.published.publish_len(own.len())?;
        if !self.published.has_others() {
            return published(own, engine.barrier(ctx, BarrierKind::Segments));
        }
        // Elsewhere pages may have another size.
        requests.fill(0);
        requests[engine.rank().index()] = own.len();
        let passed = engine.collective(ctx, &pass, requests.as_mut_bytes(), size_of::<u64>());
        if passed.is_ok() {
            self.published.remember(&requests);
        }
        published(own, passed)
    }

    /// Attaches the bytes that this rank requests, if its host has memory for the requests of all
    /// its ranks.
    fn attach_one_of(&self, requests: &[u64]) -> Result<OwnSegment> {
        let rank = self.boot.rank();
        let available = self.placement.card(rank).available;
        let host = HostMemory::probe()?.with_available(available);
        let on_host = self.placement.on_host(rank);
        admit(
            &requests[on_host.start as usize..on_host.end as usize],
            &host,
        )?;
        let own = OwnSegment::attach(self.engine.directory(), requests[rank.index()])?;
        argonet_trace::note_with(Letter::Object, || {
            format!("segment: {} bytes at {:p}", own.len(), own.base())
        });
        Ok(own)
    }
}

/// Reserves addresses for the segments of all neighbors; and where all ranks are.
///
/// Fences.
fn spans(
    boot: &LocalJob,
    preset: Option<SegmentLimit>,
    settings: &Settings,
    published: &Published,
) -> Result<(Arc<Directory>, Option<Arc<Directory>>, Placement)> {
    let (rank, near) = (boot.rank(), boot.neighborhood());
    let reaches = near != boot.host_ranks() && Reach::of(settings.get(&CONDUIT), settings).segments;
    // The ranks whose segments the file holds.
    let whole = if reaches {
        boot.host_ranks()
    } else {
        near.clone()
    };
    let (first, ranks) = (JobRank(whole.start), whole.len() as u32);
    let pages = match boot.files().huge_pages {
        Some(huge) => PageKind::Huge {
            size_bytes: huge.bytes(),
        },
        None => PageKind::TransparentHuge,
    };
    let fd = || {
        let segments = boot.files().segments.try_clone();
        segments.map_err(|cause| StartError::Rings {
            rank: Rank(rank.0),
            ranks,
            cause,
        })
    };
    // One rank decides for its neighbors: ranks that look at the host a moment later see another
    // number.
    let card = match rank.0 == near.start {
        true => Some(Card::make(boot, preset, settings)?),
        false => None,
    };
    if let Some(card) = &card {
        card.publish(boot)?;
    }
    let card = card.filter(|_| rank == first);
    let file = card.map(|card| {
        SegmentFile::establish(fd()?, ranks, card.limit, pages).map_err(StartError::from)
    });
    let file = file.transpose()?;
    boot.fence()?;
    // The first place where it can be done: other differences may follow from this one.
    settings::compare(boot, settings)?;
    let placement = Placement::read(boot)?;
    let open = || -> Result<SegmentFile> {
        let limit = placement.card(first).limit;
        Ok(SegmentFile::from_fd(fd()?, ranks, limit, pages)?.starting_at(first))
    };
    let file = match file {
        Some(file) => file.starting_at(first),
        None => open()?,
    };
    let reached = match reaches {
        true => Some(Directory::of_all(open()?)?),
        false => None,
    };
    let directory = Directory::of_neighborhood(file, rank, boot.size(), near)?;
    if let Some(base) = directory.span_base(rank) {
        published.publish_base(base.addr().get() as u64)?;
    }
    Ok((directory, reached, placement))
}

/// Word `i` of a published card; 0 where it is too short.
fn word(card: &[u8], i: usize) -> u64 {
    let bytes = card
        .get(i * 8..i * 8 + 8)
        .and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_ne_bytes)
}

fn check_handlers(boot: &dyn Bootstrap, digest: &[u8], count: usize) -> Result<()> {
    if boot.lookup(JobRank(0), Key::HandlerTable)? == digest {
        return Ok(());
    }
    Err(StartError::DifferentHandlers {
        rank: Rank(boot.rank().0),
        count,
    })
}

/// All neighbors have registered, or all use the sender's fence.
fn agree_on_barrier(boot: &dyn Bootstrap, near: Range<u32>) -> Result<Barrier> {
    for rank in near.map(JobRank) {
        if boot.lookup(rank, Key::Membarrier)? != [1] {
            return Ok(Barrier::Sender);
        }
    }
    Ok(Barrier::Sleeper)
}
