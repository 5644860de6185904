//! Jobs that go on without a rank that has died.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::network::Network;
use crate::running::Run;

const GOES_ON: (&str, &str) = ("ARGONET_ON_RANK_LOST", "continue");

/// How the programs are built, over what, with how many ranks, and how they end.
const JOBS: [(Way, Network, u32, &str); 8] = [
    (Way::LAUNCHED, Network::Memory, 4, "exit"),
    (Way::LAUNCHED_DEBUG, Network::Memory, 2, "return"),
    (Way::LAUNCHED, Network::Wire, 3, "return"),
    (Way::LAUNCHED_DEBUG, Network::Wire, 5, "exit"),
    (Way::LAUNCHED_DEBUG, Network::Pairs, 4, "return"),
    (Way::LAUNCHED, Network::Datagrams, 3, "exit"),
    (Way::C23_DEBUG, Network::Pairs, 4, "exit"),
    (Way::RELEASE, Network::Memory, 3, "return"),
];

/// The same for the program that loses two ranks.
const SURVIVORS: [(Way, Network, u32); 4] = [
    (Way::LAUNCHED_DEBUG, Network::Memory, 5),
    (Way::LAUNCHED, Network::Wire, 4),
    (Way::LAUNCHED, Network::Pairs, 6),
    (Way::C23_DEBUG, Network::Datagrams, 4),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<_> = JOBS.into_iter().map(survives).collect();
    trials.extend(SURVIVORS.map(|(way, network, ranks)| {
        let program = Arc::new(Program::new(way, "survivors")).over(network);
        let how = format!("{}{}", way.name, network.suffix());
        let title = format!("a job goes on without two of {ranks} ranks ({how})");
        way.trial(title, move || {
            let run = Run::with(&program, ranks, &[], 60, &[GOES_ON])?;
            passes(&run, "survivors", &[1, ranks - 1])
        })
    }));
    let program = Arc::new(Program::new(Way::LAUNCHED, "lost"));
    let portals = program.over(Network::Interfaces);
    let title = "a job does not go on without a lost rank unless its user wants that".to_owned();
    trials.push(Way::LAUNCHED.trial(title, move || {
        let run = Run::new(&program, 3, &[], 60)?;
        expect(&run, 128 + 9, &["rank 2"])
    }));
    let title = "a job over portals cannot go on without a rank".to_owned();
    trials.push(Way::LAUNCHED.trial(title, move || {
        let run = Run::with(&portals, 2, &[], 60, &[GOES_ON])?;
        expect(&run, 1, &["the conduit portals cannot go on", GOES_ON.0])
    }));
    trials
}

fn survives((way, network, ranks, end): (Way, Network, u32, &'static str)) -> Trial {
    let program = Arc::new(Program::new(way, "lost")).over(network);
    let how = format!("{}{}", way.name, network.suffix());
    let title = format!("a job goes on without one of {ranks} ranks, {end} ({how})");
    way.trial(title, move || {
        let run = Run::with(&program, ranks, &[end], 60, &[GOES_ON])?;
        passes(&run, "lost", &[ranks - 1])
    })
}

/// Checks that a program has come to its end without some ranks, and that nothing else is reported.
fn passes(run: &Run, name: &str, lost: &[u32]) -> Result<(), Failed> {
    let line = |rank| format!("rank {rank} (pid ");
    let lines: Vec<String> = lost.iter().map(line).collect();
    let mut words: Vec<&str> = lines.iter().map(String::as_str).collect();
    words.push("the job goes on without it");
    expect(run, 0, &words)?;
    if run.out() == format!("PASS {name}\n") && run.err().lines().count() == lost.len() {
        return Ok(());
    }
    Err(run.said().into())
}

/// Checks the code, and that the error output has all of some words.
fn expect(run: &Run, code: i32, words: &[&str]) -> Result<(), Failed> {
    let err = run.err();
    if run.code() == code && words.iter().all(|words| err.contains(words)) {
        return Ok(());
    }
    Err(run.said().into())
}
