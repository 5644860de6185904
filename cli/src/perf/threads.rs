//! Several threads of a process against one: each has an endpoint (an engine in PAR mode) and a
//! core of its own, and sends short messages to itself.
//!
//! State that two endpoints share shows as time.

use super::engines::{Memory, Station};
use super::error::PerfError;
use super::metric::{Goal, Subject, Unit};
use super::stats::Chunks;
use argonet::{JobRank, Rank};
use argonet_boot::binding::allowed_cores;
use argonet_conduit::ThreadMode;
use argonet_conduit::smp::Smp;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Name of the metric.
pub(crate) const NAME: &str = "threads-am-short";

/// Messages of a thread in a chunk.
const MESSAGES: u64 = 100_000;

/// Messages that a thread sends before it polls for them.
const BURST: u64 = 32;

/// Least share of the first thread's rate that each further thread is to add: two threads do 1.7
/// times as much as one.
const SHARE: f64 = 0.85;

/// The quantity that is measured for so many threads.
pub(crate) fn subject(threads: u32) -> Subject {
    Subject {
        name: NAME.into(),
        what: format!("AM short to oneself, {threads} threads, a message"),
        unit: Unit::Nanoseconds,
        bytes: 0,
        limit_is: "the same, one thread",
        goal: match threads {
            1 => Goal::Information,
            n => Goal::Ratio(1.0 / (SHARE * f64::from(n))),
        },
        curve: None,
    }
}

/// Measures chunks of `threads` threads and of one in turn.
pub(crate) fn measure(threads: u32, chunks: usize) -> Result<Chunks, PerfError> {
    let cores = allowed_cores().map_err(argonet::Error::from)?;
    let stations: Vec<Station> = (0..threads)
        .map(|_| {
            Ok(Station::new(
                &Memory::create(1)?,
                JobRank(0),
                ThreadMode::Par,
                Smp::register_barrier(),
            )?)
        })
        .collect::<Result<_, PerfError>>()?;
    let mut measured = Chunks::default();
    for turn in 0..=chunks {
        let (all, one) = (chunk(&stations, &cores)?, chunk(&stations[..1], &cores)?);
        if turn > 0 {
            measured.ours.push(all);
            measured.limit.push(one);
        }
    }
    Ok(measured)
}

/// Nanoseconds a message of all threads together, each with one of the stations.
fn chunk(stations: &[Station], cores: &[usize]) -> Result<f64, PerfError> {
    let waiting = AtomicUsize::new(stations.len());
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let threads: Vec<_> = stations
            .iter()
            .enumerate()
            .map(|(i, station)| {
                let (waiting, core) = (&waiting, cores[i % cores.len()]);
                scope.spawn(move || {
                    pin(Rank(0), core)?;
                    // Not a barrier that sleeps: no thread is to begin before the last is awake.
                    waiting.fetch_sub(1, Ordering::AcqRel);
                    while waiting.load(Ordering::Acquire) > 0 {
                        std::thread::yield_now();
                    }
                    run(station)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .expect("a thread that measures does not panic")
            })
            .collect::<Result<_, PerfError>>()
    })?;
    let begin = spans.iter().map(|(begin, _)| *begin).min();
    let end = spans.iter().map(|(_, end)| *end).max();
    let time = begin
        .zip(end)
        .map_or(Duration::ZERO, |(begin, end)| end - begin);
    Ok(time.as_secs_f64() * 1e9 / (MESSAGES * stations.len() as u64) as f64)
}

fn run(station: &Station) -> Result<(Instant, Instant), PerfError> {
    let ctx = Station::context();
    let (begin, before) = (Instant::now(), station.requests());
    let mut sent = 0;
    while sent < MESSAGES {
        for i in 0..BURST {
            station
                .send(&ctx, JobRank(0), station.one_way, i as u32)
                .map_err(argonet::Error::from)?;
        }
        sent += BURST;
        while station.requests() < before + sent {
            station.poll(&ctx).map_err(argonet::Error::from)?;
        }
    }
    Ok((begin, Instant::now()))
}

/// Pins the calling thread.
pub(crate) fn pin(rank: Rank, core: usize) -> Result<(), PerfError> {
    let mut mask = CpuSet::new();
    mask.set(core);
    sched_setaffinity(None, &mask).map_err(|cause| PerfError::Pin { rank, core, cause })
}
