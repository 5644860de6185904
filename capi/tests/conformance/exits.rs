//! The ends of a job: the code reaches the launcher, no output is lost, nothing is left over.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::chosen::Chosen;
use crate::network::Network;
use crate::running::Run;

/// The cases of `exits.c`, and whether functions given to `atexit` run: by all ranks, or by the one
/// that returns.
const CASES: [(&str, Atexit); 20] = [
    ("before-attach", Atexit::Never),
    ("collective", Atexit::Never),
    ("return", Atexit::All),
    ("return-late", Atexit::All),
    ("exit", Atexit::All),
    ("locked", Atexit::Never),
    ("prepared", Atexit::Never),
    ("handler", Atexit::Never),
    ("reply-handler", Atexit::Never),
    ("one-barrier", Atexit::Never),
    ("one-named-barrier", Atexit::Never),
    ("one-polling", Atexit::Never),
    ("one-computing", Atexit::Never),
    ("one-sending", Atexit::Never),
    ("one-waiting", Atexit::Never),
    ("one-sleeping", Atexit::Never),
    ("return-polling", Atexit::One),
    ("return-barrier", Atexit::One),
    ("return-computing", Atexit::One),
    ("return-sleeping", Atexit::One),
];

#[derive(Clone, Copy)]
enum Atexit {
    Never,
    One,
    All,
}

/// Ends that are reported in words that users of GASNet, and scripts of theirs, look for; and their
/// codes.
const REPORTED: [(&str, &str, i32); 2] = [
    (
        "fault-polling",
        "*** Caught a fatal signal (proc 1): SIGSEGV(11)",
        128 + 11,
    ),
    (
        "fatal-polling",
        "*** FATAL ERROR (proc 1): main at ",
        128 + 6,
    ),
];

const RANKS: [u32; 3] = [1, 2, 4];
const WAYS: [Way; 3] = [Way::RELEASE, Way::DEBUG, Way::LAUNCHED];

pub(crate) fn trials(chosen: Chosen) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (way_at, way) in WAYS.into_iter().enumerate() {
        let program = Arc::new(Program::new(way, "exits"));
        let over = Network::ALL.map(|network| program.over(network));
        for (at, (case, atexit)) in CASES.into_iter().enumerate() {
            for (ranks_at, ranks) in RANKS.into_iter().enumerate() {
                for (network_at, program) in over.iter().enumerate() {
                    let ranks_at = (ranks_at, RANKS.len());
                    if !chosen.has(at + way_at, (network_at, over.len()), ranks_at) {
                        continue;
                    }
                    let program = Arc::clone(program);
                    let how = format!("{}{}", way.name, program.way.network.suffix());
                    let title = format!("exits, {case}, {ranks} ranks ({how})");
                    let test = move || ends(&program, case, ranks, atexit);
                    trials.push(way.trial(title, test));
                }
            }
        }
        if way.name != Way::LAUNCHED.name {
            for ends in MASKED {
                let program = Arc::clone(&program);
                let cases = ends.map(|(case, code, ..)| format!("{case} with {code}"));
                let title = format!(
                    "exits, rank 0 that takes no signal, {} ({})",
                    cases.join(", "),
                    way.name
                );
                let test = move || at_once(ends, |end| masked(&program, end));
                trials.push(way.trial(title, test));
            }
            let program = Arc::clone(&program);
            let title = format!(
                "exits, masked-full and a full standard error ({})",
                way.name
            );
            trials.push(way.trial(title, move || masked_full(&program)));
        }
        for end in REPORTED {
            let program = Arc::clone(&program);
            let title = format!("exits, {} in GASNet's words ({})", end.0, way.name);
            trials.push(way.trial(title, move || reports(&program, end)));
        }
    }
    trials
}

/// A rank 0, of a job that started itself, that cannot be asked to end, and its last message.
///
/// Two run at once, of which one works.
const MASKED: [[(&str, i32, i32, &str); 2]; 3] = [
    [
        ("masked-computing", 0, 0, ""),
        (
            "masked-sleeping",
            0,
            128 + 9,
            "the job's code would have been 0",
        ),
    ],
    [
        ("masked-joining", 0, 0, ""),
        (
            "masked-sleeping",
            7,
            128 + 9,
            "the job's code would have been 7",
        ),
    ],
    [
        (
            "masked-computing",
            7,
            128 + 9,
            "the job's code would have been 7",
        ),
        (
            "masked-sleeping",
            200,
            128 + 9,
            "the job's code would have been 200",
        ),
    ],
];

/// It is left to work for an exit with 0, and killed otherwise, with a line that says so.
fn masked(
    program: &Program,
    (case, code, ends_with, words): (&str, i32, i32, &str),
) -> Result<(), Failed> {
    let run = Run::new(program, 2, &[case, &code.to_string()], 60)?;
    let err = run.err();
    let said = err
        .lines()
        .filter(|line| line.contains("argonet: rank 0 (pid "))
        .count();
    let is_right = match words {
        "" => err.is_empty(),
        words => said == 1 && err.contains(words) && err.contains("GASNET_EXITTIMEOUT"),
    };
    if run.code() != ends_with || !is_right {
        return Err(format!("not code {ends_with} and {words:?}: {}", run.said()).into());
    }
    Ok(())
}

/// A line that no process reads keeps the guardian neither from killing nor from ending.
fn masked_full(program: &Program) -> Result<(), Failed> {
    let (reader, mut writer) = std::io::pipe()?;
    let bytes = rustix::pipe::fcntl_getpipe_size(&writer)?;
    writer.write_all(&vec![b'x'; bytes])?;
    let begun = Instant::now();
    let run = Run::writing(writer.into(), program, 2, &["masked-full", "0"], 60, &[])?;
    drop(reader);
    // The limit of the run kills as well.
    if run.code() != 128 + 9 || begun.elapsed() >= Duration::from_secs(60) {
        return Err(format!("not code {}: {}", 128 + 9, run.said()).into());
    }
    Ok(())
}

/// One line begins with the words, once.
fn reports(program: &Program, (case, words, code): (&str, &str, i32)) -> Result<(), Failed> {
    let run = Run::new(program, 2, &[case, "0"], 60)?;
    let err = run.err();
    let lines = err.lines().filter(|line| line.starts_with(words)).count();
    if run.code() != code || lines != 1 {
        return Err(format!("not code {code} and one line {words:?}: {}", run.said()).into());
    }
    Ok(())
}

fn ends(program: &Program, case: &str, ranks: u32, atexit: Atexit) -> Result<(), Failed> {
    at_once([0, 7, 200], |code| {
        ends_with(program, (case, code), ranks, atexit)
    })
}

/// Runs that wait for most of their time.
fn at_once<End: Send, const RUNS: usize>(
    ends: [End; RUNS],
    run: impl Fn(End) -> Result<(), Failed> + Sync,
) -> Result<(), Failed> {
    let run = &run;
    std::thread::scope(|scope| {
        let runs = ends.map(|end| scope.spawn(move || run(end)));
        // Joined in any case.
        let outcomes = runs.map(|run| run.join().unwrap_or_else(|_| Err("a panic".into())));
        outcomes.into_iter().collect()
    })
}

fn ends_with(
    program: &Program,
    (case, code): (&str, i32),
    ranks: u32,
    atexit: Atexit,
) -> Result<(), Failed> {
    let ran = match atexit {
        Atexit::Never => 0,
        Atexit::One => 1,
        Atexit::All => ranks,
    };
    let run = Run::new(program, ranks, &[case, &code.to_string()], 60)?;
    let out = run.out();
    let count = |text| u32::try_from(out.matches(text).count()).unwrap_or(u32::MAX);
    let lines = count("was here\n");
    if run.code() != code || lines != ranks || count("atexit ran\n") != ran {
        let wanted = format!("code {code}, {ranks} lines, {ran} runs of atexit");
        return Err(format!("not {wanted}: {}", run.said()).into());
    }
    // All ranks end by themselves, and well: there is nothing to report.
    if matches!(atexit, Atexit::All) && code == 0 && !run.err().is_empty() {
        return Err(format!("not silent: {}", run.said()).into());
    }
    Ok(())
}
