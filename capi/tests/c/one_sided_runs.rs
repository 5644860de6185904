//! `one_sided.c` as jobs: its own checks, and the report of a debug build for each mistake.

use std::path::Path;
use std::process::Output;

use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace};
use crate::files::{Library, source};
use crate::running::{command, said};

/// How it is built, and for how many ranks.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    compiler: Compiler,
    dialect: Dialect,
    library: Library,
    options: &'static [&'static str],
    ranks: &'static [&'static str],
}

const WAYS: [Way; 4] = [
    Way {
        name: "SEQ",
        compiler: Compiler::OWN,
        dialect: Dialect::C99,
        library: Library::Static,
        options: &["-DGASNET_SEQ", "-O2"],
        ranks: &["1", "2", "3"],
    },
    Way {
        name: "PAR, clang",
        compiler: Compiler::CLANG,
        dialect: Dialect::C11,
        library: Library::Shared,
        options: &["-DGASNET_PAR", "-O2"],
        ranks: &["2"],
    },
    Way {
        name: "PARSYNC, C++",
        compiler: Compiler::OWN,
        dialect: Dialect::CPP17,
        library: Library::Shared,
        options: &["-DGASNET_PARSYNC", "-O2"],
        ranks: &["2"],
    },
    Way {
        name: "PAR, debug",
        ranks: &["1", "2", "3"],
        ..CHECKED
    },
];
/// The one that checks calls.
const CHECKED: Way = Way {
    name: "mistakes",
    compiler: Compiler::OWN,
    dialect: Dialect::C11,
    library: Library::Shared,
    options: &["-DGASNET_PAR", "-DGASNET_DEBUG", "-O0"],
    ranks: &["2"],
};

/// Mistakes by the program's names, and the message that ends the job.
const MISTAKES: [(&str, &str); 31] = [
    (
        "rank",
        "gex_RMA_PutBlocking: rank is 2; the team has 2 ranks",
    ),
    ("outside", "are not in the segment of rank"),
    (
        "offset",
        "gex_RMA_PutNBI: dest is offset 0x100000; 8 bytes there are not",
    ),
    ("own", "go beyond its end; it has 1048576 bytes"),
    ("overlap", "gex_RMA_PutBlocking: the 8 bytes at"),
    ("null", "gex_RMA_GetNBI: dest is null"),
    ("group", "gex_RMA_PutNB: lc_opt is GEX_EVENT_GROUP"),
    ("leaf", "gex_RMA_PutNBI: lc_opt is an event's address"),
    ("lc null", "gex_RMA_PutNB: lc_opt is null"),
    ("self", "is this process, against GEX_FLAG_PEER_NEVER_*"),
    (
        "neighbor",
        "is a neighbor, against GEX_FLAG_PEER_NEVER_NBRHD",
    ),
    ("flags", "gex_RMA_PutBlockingVal: flags are 0x800:"),
    ("value", "gex_RMA_PutNBIVal: nbytes is 9"),
    ("stale", "gex_Event_Test: event 0 generation 1"),
    ("no-op", "gex_Event_Wait: event is GEX_EVENT_NO_OP"),
    ("several", "gex_Event_WaitAll: event is GEX_EVENT_NO_OP"),
    ("array", "gex_Event_TestSome: pevent is null"),
    ("event flags", "gex_Event_TestAll: flags are 0x1"),
    ("category", "gex_NBI_Wait: event_mask is 0x40"),
    (
        "leaves",
        "gex_Event_QueryLeaf: event_category is 0xffffffff",
    ),
    (
        "region",
        "gex_NBI_Test: not allowed inside an access region",
    ),
    ("no region", "gex_NBI_EndAccessRegion: no access region"),
    ("init", "is initialized already"),
    ("unlock", "gex_HSL_Unlock: the lock at"),
    ("relock", "is held by this thread already"),
    (
        "poll",
        "gasnet_AMPoll: called while this thread holds 1 handler-safe locks",
    ),
    ("put", "gex_RMA_PutBlocking: called while this thread holds"),
    ("wait", "gex_Event_Wait: called while this thread holds"),
    ("destroy held", "gex_HSL_Destroy: the lock at"),
    ("order", "is released before the one at"),
    ("destroyed", "has been destroyed"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |way: Way| {
        let name = format!("put, get, events and locks ({})", way.name);
        Trial::test(name, move || runs_well(way)).with_ignored_flag(!way.compiler.exists())
    };
    let mut trials: Vec<Trial> = WAYS.into_iter().map(trial).collect();
    trials.push(Trial::test(
        "mistakes in a debug build are reported",
        mistakes,
    ));
    trials
}

impl Way {
    fn build(self, to: &Path) -> Result<(), String> {
        let words = self.library.words();
        let mut after: Vec<&str> = words.iter().map(String::as_str).collect();
        let to = to.display().to_string();
        after.extend(["-o", &to]);
        let files = [source("one_sided")];
        self.compiler
            .compile(self.dialect, self.options, &files, &after)
    }
}

fn runs_well(way: Way) -> Result<(), Failed> {
    let place = Workplace::new()?;
    let program = place.file("one_sided");
    way.build(&program)?;
    for ranks in way.ranks {
        let output = run(&program, ranks, &[])?;
        if output.status.code() != Some(0) {
            let said = said(&output);
            return Err(format!("{ranks} ranks: {}\n{said}", output.status).into());
        }
    }
    Ok(())
}

fn run(program: &Path, ranks: &str, arguments: &[&str]) -> std::io::Result<Output> {
    command(program)
        .args(arguments)
        .env("GASNET_PSHM_NODES", ranks)
        .output()
}

fn mistakes() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let program = place.file("mistakes");
    CHECKED.build(&program)?;
    for (mistake, words) in MISTAKES {
        let output = run(&program, "2", &[mistake])?;
        let text = said(&output);
        if output.status.success() || !text.contains(words) {
            return Err(format!("{mistake}: {}\n{text}", output.status).into());
        }
    }
    // This one is allowed.
    let output = run(&program, "1", &["long"])?;
    let text = said(&output);
    if !output.status.success() || !text.contains("warning: gex_HSL_Unlock: the lock at") {
        return Err(format!("long: {}\n{text}", output.status).into());
    }
    Ok(())
}
