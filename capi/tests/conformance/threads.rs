//! Programs with several threads: those that check what they call, the ends of a job, and threads
//! where none may be.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::chosen::Chosen;
use crate::network::Network;
use crate::running::Run;

/// Each program, and in which modes it is run.
const PROGRAMS: &[(&str, [Way; 2])] = &[
    ("threads_am", PAR),
    ("threads_rma", PAR),
    ("threads_ratomic", PAR),
    ("threads_vis", PAR),
    ("threads_hsl", PAR),
    ("threads_wait", PAR),
    ("threads_churn", PAR),
    ("threads_teams", PAR),
    ("threads_serial", [Way::SERIAL_DEBUG, Way::SERIAL]),
];
const PAR: [Way; 2] = [Way::CPP20, Way::C23_DEBUG];

const RANKS: [u32; 3] = [1, 2, 4];
const THREADS: [&str; 3] = ["1", "2", "8"];

/// Cases of `threads_exit`.
const EXITS: [&str; 5] = ["all", "all-of-one", "one", "exit", "handler"];

/// Cases of `threads_wrong`, and the words of one line on standard error; none if all is right.
const WRONG: [(&str, Way, &[&str]); 9] = [
    ("up-to", Way::CPP20, &[]),
    ("beyond", Way::CPP20, BEYOND),
    ("beyond", Way::C23_DEBUG, BEYOND),
    (
        "second",
        Way::DEBUG,
        &["gasnet_AMPoll", "second thread", "GASNET_PAR"],
    ),
    (
        "overlap",
        Way::SERIAL_DEBUG,
        &["gasnet_AMPoll", "GASNET_PARSYNC", "exclude each other"],
    ),
    (
        "prepared",
        Way::C23_DEBUG,
        &["end of a thread", "medium request to rank", "Cancel"],
    ),
    ("prepared", Way::CPP20, &[]),
    (
        "locked",
        Way::C23_DEBUG,
        &["end of a thread", "1 handler-safe locks"],
    ),
    ("locked", Way::CPP20, &[]),
];
const BEYOND: &[&str] = &[
    "live thread 5",
    "GASNET_MAX_THREADS allows 4",
    "QueryMaxThreads",
];

/// Few, so that threads that have ended must have given their place back.
const FEW: (&str, &str) = ("GASNET_MAX_THREADS", "9");

pub(crate) fn trials(chosen: Chosen) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (at, &(name, ways)) in PROGRAMS.iter().enumerate() {
        for (way_at, way) in ways.into_iter().enumerate() {
            for (place, ranks, count, network) in combinations() {
                // In each way one number of ranks, with one number of threads, over one network.
                if chosen.has_of_three(
                    at + way_at,
                    place,
                    [RANKS.len(), THREADS.len(), Network::ALL.len()],
                ) {
                    let way = way.over(network);
                    let program = Program::new(way, name);
                    let how = format!("{}{}", way.name, network.suffix());
                    let title = format!("{name}, {ranks} ranks, {count} threads ({how})");
                    let test = move || passes(&program, name, ranks, &[count]);
                    trials.push(way.trial(title, test));
                }
            }
        }
    }
    for (way, further) in [
        (Way::EVERYTHING.threaded(), &[][..]),
        (Way::EVERYTHING.threaded(), &["messages"]),
        (Way::EVERYTHING_DEBUG.threaded(), &[]),
    ] {
        let program = Program::new(way, "threads_vis");
        let title = format!(
            "threads_vis {further:?}, 2 ranks, 3 threads ({}, PAR)",
            way.name
        );
        let test = move || passes(&program, "threads_vis", 2, &[&["3"], further].concat());
        trials.push(way.trial(title, test));
    }
    let exits = Arc::new(Program::new(Way::CPP20, "threads_exit"));
    for (at, case) in EXITS.into_iter().enumerate() {
        for (ranks_at, ranks) in RANKS.into_iter().enumerate() {
            if !chosen.has_end(at, (ranks_at, RANKS.len())) {
                continue;
            }
            let program = Arc::clone(&exits);
            let title = format!("threads_exit, {case}, {ranks} ranks");
            trials.push(Way::CPP20.trial(title, move || ends(&program, case, ranks)));
        }
    }
    for (case, way, words) in WRONG {
        let title = format!("threads_wrong, {case} ({})", way.name);
        let program = Program::new(way, "threads_wrong");
        trials.push(way.trial(title, move || comes_to(&program, case, words)));
    }
    trials
}

/// All numbers of ranks and threads over all networks, with their places in the lists.
fn combinations() -> impl Iterator<Item = ([usize; 3], u32, &'static str, Network)> {
    let all = RANKS.into_iter().enumerate();
    all.flat_map(|(ranks_at, ranks)| {
        let all = THREADS.into_iter().enumerate();
        all.flat_map(move |(count_at, count)| {
            let all = Network::ALL.into_iter().enumerate();
            all.map(move |(at, network)| ([ranks_at, count_at, at], ranks, count, network))
        })
    })
}

fn passes(program: &Program, name: &str, ranks: u32, arguments: &[&str]) -> Result<(), Failed> {
    let run = Run::with(program, ranks, arguments, 120, &[FEW])?;
    let last = format!("PASS {name}");
    if run.code() == 0 && run.out().lines().last() == Some(&last) {
        return Ok(());
    }
    Err(run.said().into())
}

fn ends(program: &Program, case: &str, ranks: u32) -> Result<(), Failed> {
    for code in [0, 7] {
        for threads in ["1", "2", "8"] {
            let arguments = [threads, case, &code.to_string()];
            let run = Run::new(program, ranks, &arguments, 60)?;
            let lines = run.out().matches("was here\n").count();
            if run.code() != code || lines != ranks as usize {
                return Err(format!("not code {code}, {ranks} lines: {}", run.said()).into());
            }
        }
    }
    Ok(())
}

fn comes_to(program: &Program, case: &str, words: &[&str]) -> Result<(), Failed> {
    let variables = [("GASNET_MAX_THREADS", "4")];
    let run = Run::with(program, 2, &[case], 20, &variables)?;
    let errors = run.err();
    let is_report = |line: &str| words.iter().all(|word| line.contains(word));
    let right = if words.is_empty() {
        run.code() == 0
    } else {
        // Not by a signal, and not by the time-out.
        (1..124).contains(&run.code()) && errors.lines().any(is_report)
    };
    if right {
        return Ok(());
    }
    Err(run.said().into())
}
