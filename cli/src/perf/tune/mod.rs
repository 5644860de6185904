//! `argonet perf --tune`: the settings of collective operations with which a job is fastest,
//! measured in that job.
//!
//! * [`knobs`] — settings, the values that are tried, and with which operations
//! * [`rig`] — the operations, timed
//! * [`choice`] — which value is taken
//! * [`file`] — what is written

mod choice;
mod file;
mod knobs;
mod rig;

use super::error::PerfError;
use super::machine::{Machine, load_average};
use argonet::{Reduction, Result, World};
use argonet_engine::Tuning;
use choice::Timed;
use file::Found;
use knobs::{KNOBS, Knob, Load};
use rig::Rig;

/// Approximate time of a chunk.
const CHUNK_NS: f64 = 2e6;

/// Calls of a chunk at most.
const MOST_CALLS: f64 = 2000.0;

/// Measures, and returns the tuning file at rank 0.
///
/// Collective. `before` is the load average when the command began.
pub(super) fn run(
    world: &World,
    chunks: usize,
    (machine, before): (Machine, Option<f64>),
) -> Result<Option<String>, PerfError> {
    let rig = Rig::new(world);
    let mut tuning = rig.tuning();
    let mut all = Vec::new();
    for knob in &KNOBS {
        let (found, chosen) = tune(&rig, knob, tuning, chunks)?;
        tuning = chosen;
        all.push(found);
    }
    if world.rank().0 != 0 {
        return Ok(None);
    }
    let conduit = rig.conduit();
    let average = |load: Option<f64>| load.map_or("unknown".into(), |load| load.to_string());
    let heading = [
        format!(
            "argonet {}; {} ranks in {} neighborhood(s), conduit {conduit}; {machine}.",
            env!("CARGO_PKG_VERSION"),
            world.size(),
            rig.neighborhoods(),
        ),
        format!(
            "First quartiles of {chunks} chunks, in turn; load average {} before, {} after.",
            average(before),
            average(load_average()),
        ),
    ];
    Ok(Some(file::text(&heading, &all)))
}

/// The tuning with another value of one setting.
fn with(tuning: Tuning, name: &str, value: &str) -> Tuning {
    let mut tuning = tuning;
    let read = tuning.read(&format!("{name}={value}"));
    debug_assert_eq!(read, Ok(()));
    tuning
}

/// Finds the value of one setting.
///
/// Collective.
fn tune(rig: &Rig<'_>, knob: &Knob, tuning: Tuning, chunks: usize) -> Result<(Found, Tuning)> {
    let others = knob.values.iter().map(|value| (*value).to_owned());
    let mut values = vec![tuning.text_of(knob.name)];
    values.extend(
        others
            .filter(|value| *value != values[0])
            .collect::<Vec<_>>(),
    );
    let tunings: Vec<Tuning> = values
        .iter()
        .map(|value| with(tuning, knob.name, value))
        .collect();
    let loads = knob.loads(rig.world().size());
    let pairs = |load: Load| tunings.iter().map(move |tuning| (load, *tuning));
    let pairs: Vec<(Load, Tuning)> = loads.iter().copied().flat_map(pairs).collect();
    let ways = rig.ways(&pairs)?;
    let timed = loads
        .iter()
        .zip(ways.chunks(values.len()))
        .map(|(load, ways)| time(rig, *load, ways, &tunings, chunks))
        .collect::<Result<Vec<_>>>()?;
    let chosen = choice::choose(&timed, values.len());
    let taken = tunings[chosen];
    rig.tune(taken);
    let found = Found {
        name: knob.name,
        values,
        loads,
        timed,
        chosen,
    };
    Ok((found, taken))
}

/// Measures the ways that differ, in turn.
///
/// Collective; all ranks return the same.
fn time(
    rig: &Rig<'_>,
    load: Load,
    ways: &[u64],
    tunings: &[Tuning],
    chunks: usize,
) -> Result<Timed> {
    let mut firsts: Vec<usize> = Vec::new();
    let way_of: Vec<usize> = (0..ways.len())
        .map(|value| {
            let known = firsts.iter().position(|first| ways[*first] == ways[value]);
            known.unwrap_or_else(|| {
                firsts.push(value);
                firsts.len() - 1
            })
        })
        .collect();
    let mut times = vec![Vec::new(); firsts.len()];
    if firsts.len() > 1 {
        let mut calls = Vec::new();
        for first in &firsts {
            rig.tune(tunings[*first]);
            // Once so that pages exist.
            rig.chunk(load, 1)?;
            calls.push(CHUNK_NS / agreed(rig, rig.chunk(load, 4)?)?);
        }
        for _ in 0..chunks {
            for ((first, times), calls) in firsts.iter().zip(&mut times).zip(&calls) {
                rig.tune(tunings[*first]);
                times.push(rig.chunk(load, calls.clamp(1.0, MOST_CALLS) as u64)?);
            }
        }
        for times in &mut times {
            rig.world().reduce_all(Reduction::Max, times)?;
        }
    }
    Ok(Timed { way_of, times })
}

/// The longest time of all ranks.
fn agreed(rig: &Rig<'_>, time: f64) -> Result<f64> {
    let mut time = [time];
    rig.world().reduce_all(Reduction::Max, &mut time)?;
    Ok(time[0])
}
