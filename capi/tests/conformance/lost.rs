//! Jobs that go on without a rank that has died.

use std::collections::BTreeMap;
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

/// Each program is built once in each way.
#[derive(Default)]
struct Programs(BTreeMap<(&'static str, &'static str), Arc<Program>>);

impl Programs {
    fn of(&mut self, name: &'static str, way: Way, network: Network) -> Arc<Program> {
        let make = || Arc::new(Program::new(way, name));
        let program = self.0.entry((name, way.name)).or_insert_with(make);
        program.over(network)
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut programs = Programs::default();
    let mut trials = Vec::new();
    for (way, network, ranks, end) in JOBS {
        let program = programs.of("lost", way, network);
        let how = format!("{}{}", way.name, network.suffix());
        let title = format!("a job goes on without one of {ranks} ranks, {end} ({how})");
        trials.push(way.trial(title, move || {
            let run = Run::with(&program, ranks, &[end], 60, &[GOES_ON])?;
            passes(&run, "lost", &[ranks - 1])
        }));
    }
    for (way, network, ranks) in SURVIVORS {
        let program = programs.of("survivors", way, network);
        let how = format!("{}{}", way.name, network.suffix());
        let title = format!("a job goes on without two of {ranks} ranks ({how})");
        trials.push(way.trial(title, move || {
            let run = Run::with(&program, ranks, &[], 60, &[GOES_ON])?;
            passes(&run, "survivors", &[1, ranks - 1])
        }));
    }
    let way = Way::LAUNCHED;
    let program = programs.of("lost", way, Network::Memory);
    let title = "a job does not go on without a lost rank unless its user wants that".to_owned();
    trials.push(way.trial(title, move || {
        let run = Run::new(&program, 3, &[], 60)?;
        expect(&run, 128 + 9, &["rank 2"])
    }));
    let program = programs.of("lost", way, Network::Interfaces);
    let title = "a job over portals cannot go on without a rank".to_owned();
    trials.push(way.trial(title, move || {
        let run = Run::with(&program, 2, &[], 60, &[GOES_ON])?;
        expect(&run, 1, &["the conduit portals cannot go on", GOES_ON.0])
    }));
    trials
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
