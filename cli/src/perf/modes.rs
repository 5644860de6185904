//! PAR against SEQ: two engines of each rank that differ in nothing but the thread mode, used by
//! one thread, in turn.

use super::engines::{Memory, Station};
use super::metric::Load;
use super::pair::Pair;
use argonet::{JobRank, Rank, Result, World};
use argonet_conduit::ThreadMode;
use argonet_conduit::smp::Smp;
use argonet_engine::ThreadCtx;
use argonet_start::StartError;
use rustix::fd::{AsRawFd, OwnedFd};
use std::fs::OpenOptions;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Engines of ranks 0 and 1, each with rings of its own.
pub(crate) struct Modes {
    /// None on ranks that take no part.
    stations: Option<[Station; 2]>,
    ctx: ThreadCtx,
}

impl Modes {
    /// Makes engines on memory that rank 0 takes, whose files rank 1 opens.
    ///
    /// Collective.
    pub(crate) fn new(world: &World) -> Result<Self> {
        let station = |mode| station(world, mode);
        let (seq, par) = (station(ThreadMode::Seq)?, station(ThreadMode::Par)?);
        Ok(Self {
            stations: seq.zip(par).map(|(seq, par)| [seq, par]),
            ctx: Station::context(),
        })
    }
}

fn station(world: &World, mode: ThreadMode) -> Result<Option<Station>> {
    let rank = world.rank();
    let failed = |cause| StartError::Rings {
        rank,
        ranks: 2,
        cause,
    };
    let mut place = [0; 3];
    let own = match rank {
        Rank(0) => {
            let memory = Memory::create(2).map_err(failed)?;
            let [rings, segments] = memory.files().map(|file| file.as_raw_fd() as u32);
            place = [std::process::id(), rings, segments];
            Some(memory)
        }
        _ => None,
    };
    world.broadcast(Rank(0), &mut place)?;
    let memory = match (own, rank) {
        (Some(memory), _) => Some(memory),
        (None, Rank(1)) => {
            let open = |fd: u32| -> std::io::Result<OwnedFd> {
                let path = format!("/proc/{}/fd/{fd}", place[0]);
                let file = OpenOptions::new().read(true).write(true).open(path)?;
                Ok(file.into())
            };
            let files = [
                open(place[1]).map_err(failed)?,
                open(place[2]).map_err(failed)?,
            ];
            Some(Memory::from_files(files, 2))
        }
        _ => None,
    };
    let own = JobRank(rank.0);
    // The same system for both ranks, so the same answer.
    let barrier = Smp::register_barrier();
    let station = memory
        .as_ref()
        .map(|memory| Station::new(memory, own, mode, barrier));
    let station = station.transpose()?;
    // Until then rank 0 keeps its files open, and no rank writes to one that has no engine.
    world.barrier()?;
    drop(memory);
    Ok(station)
}

/// Calls `side` on ranks that take part, with this rank's engine of that mode.
fn with_station(
    pair: &Pair<'_>,
    mode: ThreadMode,
    side: impl FnOnce(&Station, &ThreadCtx) -> Result<()>,
) -> Result<Duration> {
    let modes = pair.modes()?;
    let start = Instant::now();
    if let Some(stations) = &modes.stations {
        side(&stations[usize::from(mode == ThreadMode::Par)], &modes.ctx)?;
    }
    Ok(start.elapsed())
}

fn round_trip(pair: &Pair<'_>, load: Load, mode: ThreadMode) -> Result<Duration> {
    let begins = pair.rank() == Rank(0);
    with_station(pair, mode, |station, ctx| {
        if begins {
            let before = station.replies();
            for i in 1..=load.count {
                station.send(ctx, JobRank(1), station.ask, i as u32)?;
                station.wait_until(ctx, || station.replies() == before + i)?;
            }
        } else {
            // No message of this chunk has been polled yet.
            let all = station.requests() + load.count;
            station.wait_until(ctx, || station.requests() == all)?;
        }
        Ok(())
    })
}

fn by_rank_0(
    pair: &Pair<'_>,
    load: Load,
    mode: ThreadMode,
    mut operation: impl FnMut(&Station, &ThreadCtx, u64) -> Result<()>,
) -> Result<Duration> {
    let rank = pair.rank();
    with_station(pair, mode, |station, ctx| match rank {
        Rank(0) => (0..load.count).try_for_each(|i| operation(station, ctx, i)),
        _ => Ok(()),
    })
}

fn put(pair: &Pair<'_>, load: Load, mode: ThreadMode) -> Result<Duration> {
    by_rank_0(pair, load, mode, |station, ctx, i| {
        station.put(ctx, JobRank(1), i)
    })
}

fn get(pair: &Pair<'_>, load: Load, mode: ThreadMode) -> Result<Duration> {
    by_rank_0(pair, load, mode, |station, ctx, _| {
        black_box(station.get(ctx, JobRank(1))?);
        Ok(())
    })
}

macro_rules! in_both_modes {
    ($($seq:ident $par:ident $of:ident $what:literal)*) => {$(
        #[doc = concat!($what, " in SEQ mode.")]
        pub(crate) fn $seq(pair: &Pair<'_>, load: Load) -> Result<Duration> {
            $of(pair, load, ThreadMode::Seq)
        }
        #[doc = concat!($what, " in PAR mode.")]
        pub(crate) fn $par(pair: &Pair<'_>, load: Load) -> Result<Duration> {
            $of(pair, load, ThreadMode::Par)
        }
    )*};
}

in_both_modes! {
    seq_round_trip par_round_trip round_trip "Short request, short reply"
    seq_put par_put put "Blocking put of one word"
    seq_get par_get get "Blocking get of one word"
}
