//! Bad input: a documented code, or the end of the job by one line that names function and
//! argument.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::cases::{Build, Case, HEAP, MESSAGES, START, TRANSFERS};
use crate::chosen::Chosen;
use crate::coll_cases::COLL;
use crate::endpoint_cases::ENDPOINTS;
use crate::everything_cases::EVERYTHING;
use crate::legacy_cases::LEGACY;
use crate::network::Network;
use crate::ratomic_cases::RATOMIC;
use crate::running::Run;
use crate::team_cases::TEAMS;

/// The outcome that a case must have.
#[derive(Clone, Copy)]
pub(crate) enum Expected {
    /// The call gives this code.
    Returns(&'static str),
    /// The job ends, and one line on stderr holds all the words.
    Ends(&'static [&'static str]),
    /// Any error code, or the end as above.
    Refused(&'static [&'static str]),
}

const RANKS: u32 = 2;
/// A pair of two is all of them.
const NETWORKS: [Network; 3] = [Network::Memory, Network::Wire, Network::Interfaces];
/// Codes of a shell for a process that died of touching wrong memory, and for one that `timeout`
/// had to end.
const NEVER: [i32; 5] = [128 + 11, 128 + 7, 124, 128 + 9, 98];

pub(crate) fn trials(chosen: Chosen) -> Vec<Trial> {
    let mut trials = Vec::new();
    let programs: &[(&str, &[Case])] = &[
        ("start", &START),
        ("messages", &MESSAGES),
        ("transfers", &TRANSFERS),
        ("coll", &COLL),
        ("teams", &TEAMS),
        ("endpoints", &ENDPOINTS),
        ("heap", &HEAP),
        ("legacy", &LEGACY),
        ("ratomic", &RATOMIC),
    ];
    let everything: &[(&str, &[Case])] = &[("everything", &EVERYTHING)];
    // How many ways a case is tried in, and which of them this is; debug builds try all cases.
    for (way, programs, (at, of)) in [
        (Way::RELEASE, programs, (0, 2)),
        (Way::LAUNCHED, programs, (1, 2)),
        (Way::DEBUG, programs, (0, 1)),
        (Way::EVERYTHING, everything, (0, 1)),
        (Way::EVERYTHING_DEBUG, everything, (0, 1)),
    ] {
        for &(name, cases) in programs {
            let program = Program::new(way, &format!("bad/{name}"));
            for (network_at, network) in NETWORKS.into_iter().enumerate() {
                let program = program.over(network);
                for (number, &case) in cases.iter().enumerate() {
                    let network_at = (network_at, NETWORKS.len());
                    let debug_alone = case.1 == Build::Debug && !way.debug;
                    if debug_alone || !chosen.has(number, (at, of), network_at) {
                        continue;
                    }
                    let program = Arc::clone(&program);
                    let how = format!("{}{}", way.name, network.suffix());
                    let title = format!("bad {name}, {} ({how})", case.0);
                    trials.push(way.trial(title, move || comes_to(&program, case)));
                }
            }
        }
    }
    trials
}

fn comes_to(program: &Program, (name, _, expected): Case) -> Result<(), Failed> {
    let run = Run::new(program, RANKS, &[name], 20)?;
    let right = match expected {
        Expected::Returns(code) => returned(&run, code),
        Expected::Ends(words) => ended(&run, words),
        Expected::Refused(words) => returned(&run, "GASNET_ERR_") || ended(&run, words),
    };
    if right {
        return Ok(());
    }
    Err(run.said().into())
}

/// Every result is an error that begins so, and there is one.
fn returned(run: &Run, code: &str) -> bool {
    let out = run.out();
    let mut results = out
        .lines()
        .filter_map(|line| line.strip_prefix("returned "))
        .peekable();
    run.code() == 0 && results.peek().is_some() && results.all(|result| result.starts_with(code))
}

fn ended(run: &Run, words: &[&str]) -> bool {
    let is_report = |line: &str| {
        line.starts_with("*** FATAL ERROR (p") && words.iter().all(|word| line.contains(word))
    };
    let code = run.code();
    code != 0 && !NEVER.contains(&code) && run.err().lines().any(is_report)
}
