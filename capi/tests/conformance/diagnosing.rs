//! `gasnett_run_diagnostics`: that it finds nothing where nothing is wrong, and each mechanism of
//! `tests/c/broken.h` that does not work.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::compiler::root;
use crate::files;
use crate::running::Run;

const NAME: &str = "diagnostics";

/// A mechanism that is broken, the letter of a section that must find it, and words of the fault's
/// message.
const BROKEN: [(&str, char, &str); 22] = [
    ("MUTEX", 'N', "updates are left of"),
    ("TRYLOCK", 'N', "gasnett_mutex_trylock"),
    ("RWLOCK", 'P', "gasnett_rwlock_rdlock, for writing"),
    ("HSL", 'Q', "gex_HSL_Trylock"),
    ("ADD", 'R', "gasnett_atomic32_add"),
    ("SWAP", 'E', "gasnett_atomic64_compare_and_swap"),
    ("TEARING", 'R', "halves of two values"),
    ("SPIN", 'S', "a spin lock"),
    ("WMB", 'S', "gasnett_local_wmb and _rmb"),
    ("KEY", 'T', "has another's data"),
    ("CALLOC", 'H', "is not zero"),
    ("MMAP", 'H', "which is no page"),
    ("PUT", 'I', "gex_RMA_PutNBI"),
    ("BESIDE", 'I', "a byte beside"),
    ("VALUE", 'I', "a value of 8 bytes"),
    ("EVENTS", 'J', "is left when all are complete"),
    ("REGION", 'J', "puts in an access region"),
    ("ARGUMENT", 'K', "is another's"),
    ("MEDIUM", 'L', "a medium reply has"),
    ("LONG", 'K', "a long request of"),
    ("BROADCAST", 'M', "gex_Coll_BroadcastNB"),
    ("BARRIER", 'M', "after barrier"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (way, ranks) in [
        (Way::RELEASE, 2),
        (Way::TCP, 2),
        (Way::CLANG, 3),
        (Way::RELEASE.threaded(), 1),
        (Way::CLANG.threaded(), 2),
        (Way::C99_DEBUG.threaded(), 3),
    ] {
        let program = Arc::new(Program::new(way, NAME).with(files::diagnostics(), Vec::new()));
        let title = format!("{NAME}, {ranks} ranks ({}, {})", way.name, way.threads);
        let test = move || finds_nothing(&program, ranks);
        trials.push(way.trial(title, test));
    }
    trials.extend(BROKEN.map(|(broken, letter, words)| {
        let title = format!("{NAME} find that {broken} is broken");
        Trial::test(title, move || finds(broken, letter, words))
    }));
    trials
}

fn finds_nothing(program: &Program, ranks: u32) -> Result<(), Failed> {
    let run = Run::new(program, ranks, &["100", "4"], 120)?;
    let has_threads = program.way.threads == "PAR";
    let wanted = if has_threads { 12 } else { 0 };
    let done = run.out().matches(": parallel: ").count();
    let skipped = run
        .out()
        .matches("SKIPPED, this library is for one")
        .count();
    let passed = run.out().lines().last() == Some(&format!("PASS {NAME}"));
    if run.code() == 0 && passed && done == 12 && skipped == 12 - wanted {
        return Ok(());
    }
    Err(run.said().into())
}

fn finds(broken: &str, letter: char, words: &str) -> Result<(), Failed> {
    let header = root().join("tests/c/broken.h").display().to_string();
    let options = [format!("-DBROKEN_{broken}"), "-include".into(), header];
    // Debug builds of headers refuse some of it by themselves.
    let way = Way {
        library: files::Library::Shared,
        ..Way::RELEASE.threaded()
    };
    let program = Program::new(way, NAME).with(files::diagnostics(), options.to_vec());
    // No other section, as the broken mechanism may stop that.
    let arguments = ["200", "4", &letter.to_string()];
    let run = Run::new(&program, 2, &arguments, 60)?;
    let start = format!("fault in section {letter} ");
    let err = run.err();
    let found = err
        .lines()
        .any(|line| line.contains(&start) && line.contains(words));
    if found && run.code() == 1 {
        return Ok(());
    }
    Err(run.said().into())
}
