//! A C program that is traced without being built anew: every operation is there once, and its own
//! messages are.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::running::Run;

/// Records that each rank of `traced.c` leaves in a trace, beside details.
const EACH_ONCE: [(&str, usize); 18] = [
    // One word, one value.
    ("(P) PUT", 2),
    ("(P) PUT_NB", 1),
    ("(P) PUT_NBI", 1),
    ("(G) GET", 2),
    ("(G) GET_NB", 1),
    ("(G) GET_NBI", 1),
    ("(R) ATOMIC_NB", 1),
    ("(R) ATOMIC_NBI", 1),
    ("(A) AMREQUEST_MEDIUM", 2),
    ("(A) AMREQUEST_MEDIUM_HANDLER", 2),
    ("(A) AMREPLY_SHORT", 2),
    ("(A) AMREPLY_SHORT_HANDLER", 2),
    ("(B) BARRIER_NOTIFY", 1),
    ("(B) BARRIER_NOTIFYWAIT", 1),
    ("(B) BARRIER_WAIT", 1),
    ("(U) not left out", 1),
    ("(H) hello 5 from C", 1),
    ("(H) in the handler of 42", 2),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for way in [Way::RELEASE, Way::DEBUG, Way::CLANG] {
        let program = Arc::new(Program::new(way, "traced"));
        for ranks in [1, 2, 4] {
            let program = Arc::clone(&program);
            let title = format!("traced program, {ranks} ranks ({})", way.name);
            let test = move || is_traced(&program, ranks);
            trials.push(way.trial(title, test));
        }
    }
    trials
}

fn is_traced(program: &Program, ranks: u32) -> Result<(), Failed> {
    // Beside the program, whose directory is its own.
    let place = program.path()?.with_file_name(format!("traces-{ranks}"));
    std::fs::create_dir(&place)?;
    let name = |what: &str| place.join(what).display().to_string();
    let files = [
        ("GASNET_TRACEFILE", name("trace-%")),
        ("GASNET_STATSFILE", name("stats-%")),
    ];
    let files = files
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let run = Run::with(program, ranks, &["traced"], 120, &files)?;
    if run.code() != 0 || !run.out().ends_with("PASS traced\n") {
        return Err(run.said().into());
    }
    for rank in 0..ranks {
        let trace = std::fs::read_to_string(place.join(format!("trace-{rank}")))?;
        check_trace(&trace, rank, ranks).map_err(|why| format!("{why}\n{trace}"))?;
        let stats = std::fs::read_to_string(place.join(format!("stats-{rank}")))?;
        check_stats(&stats, rank).map_err(|why| format!("{why}\n{stats}"))?;
    }
    Ok(())
}

fn check_trace(trace: &str, rank: u32, ranks: u32) -> Result<(), String> {
    let count = |name: &str| {
        let named = |line: &&str| {
            let after = line.split_once(name).map(|(_, after)| after);
            after.is_some_and(|after| {
                after.is_empty() || after.starts_with(": ") || after.starts_with("_LOCAL: ")
            })
        };
        trace.lines().filter(named).count()
    };
    for (name, expected) in EACH_ONCE {
        let found = count(name);
        if found != expected {
            return Err(format!("rank {rank} has {found} of {name}, not {expected}"));
        }
    }
    if trace.contains("left out: 1") {
        return Err("a message that the mask leaves out".into());
    }
    // A line names the place in the source where it was made, as the program says.
    let local = if ranks == 1 { "_LOCAL" } else { "" };
    let next = (rank + 1) % ranks;
    let put = format!("s> [one.c:12] (P) PUT_NB{local}: sz =     20,  node = {next},  time = ");
    match trace.contains(&put) {
        true => Ok(()),
        false => Err(format!("no line has {put}")),
    }
}

fn check_stats(stats: &str, rank: u32) -> Result<(), String> {
    for wanted in [
        format!("{rank}> (H) counted 6\n"),
        format!("{rank}> (U) lines of the client: 1 and two\n"),
        format!(
            "{rank}>  PUT_NB:                           1  avg/min/max/total sz (bytes) = 20.000/20/20/20  "
        ),
        format!(
            "{rank}> Total puts:                        4  avg/min/max/total sz (bytes) = 12.000/4/20/48  "
        ),
        format!(
            "{rank}> Total gets:                        4  avg/min/max/total sz (bytes) = 12.000/4/20/48  "
        ),
        // Counted from 0 again since the program asked for it.
        format!("{rank}> Total puts:                        0\n"),
    ] {
        if !stats.contains(&wanted) {
            return Err(format!("no line has {wanted:?}"));
        }
    }
    Ok(())
}
