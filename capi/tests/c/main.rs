//! The headers from C's side: they compile in every language and mode and say the same as the
//! library, and `gasnet_tools.h` does what it says in programs that never start a job.
//!
//! The programs are in `programs/`.

mod compiler;
mod drift;
mod early;
mod endings;
mod files;
mod headers;
mod linked;
mod mixed;
mod names;
mod numbers;
mod one_sided;
mod one_sided_runs;
mod ranks;
mod rows;
mod running;

use compiler::{Compiler, Dialect};
use files::source;
use libtest_mimic::{Arguments, Failed, Trial};

/// Programs for each way in which a client may choose the thread mode, with the options that say
/// so.
const MODES: [(&str, &[&str], &[&str]); 6] = [
    ("safe", &["-DGASNETT_THREAD_SAFE=1"], &THREADED),
    (
        "par, debug",
        &["-DGASNET_PAR", "-DGASNET_DEBUG=1", "-O2"],
        &THREADED,
    ),
    (
        "pthread.h first",
        &["-include", "pthread.h", "-DAFTER_OTHERS"],
        &PORTABLE,
    ),
    ("single", &["-DGASNETT_THREAD_SINGLE", "-O2"], &SINGLE),
    (
        "seq, after others",
        &["-DGASNET_SEQ", "-DAFTER_OTHERS"],
        &SINGLE,
    ),
    ("lite", &["-DGASNETT_LITE_MODE"], &["lite"]),
];
const THREADED: [&str; 8] = [
    "annotations",
    "atomics",
    "threads",
    "ticks",
    "environment",
    "system",
    "endings",
    "second",
];
/// Those that ask the C library for nothing that strict C hides, so that its headers may come
/// first.
const PORTABLE: [&str; 5] = ["annotations", "atomics", "threads", "environment", "second"];
const SINGLE: [&str; 8] = [
    "annotations",
    "atomics",
    "single",
    "ticks",
    "environment",
    "system",
    "endings",
    "second",
];

fn main() {
    if std::env::args().nth(1).as_deref() == Some("__rank") {
        return ranks::rank().unwrap_or_else(|error| panic!("{error}"));
    }
    let mut trials = Vec::new();
    for compiler in [Compiler::OWN, Compiler::CLANG] {
        let missing = !compiler.exists();
        for dialect in Dialect::ALL {
            let name = format!("tools as {} with {}", dialect.standard, compiler.c);
            let test = move || compiles(compiler, dialect);
            trials.push(Trial::test(name, test).with_ignored_flag(missing));
        }
    }
    trials.push(Trial::test(
        "tools refuse modes that exclude each other",
        refused,
    ));
    trials.extend(drift::trials());
    trials.extend(early::trials());
    trials.extend(rows::trials());
    trials.extend(headers::trials());
    trials.extend(linked::trials());
    trials.extend(mixed::trials());
    trials.extend(numbers::trials());
    trials.extend(one_sided::trials());
    trials.extend(one_sided_runs::trials());
    trials.extend(running::trials());
    trials.extend(endings::trials());
    trials.extend(ranks::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn compiles(compiler: Compiler, dialect: Dialect) -> Result<(), Failed> {
    for (mode, options, programs) in MODES {
        let files: Vec<_> = programs.iter().map(|name| source(name)).collect();
        let mut all = vec!["-fsyntax-only"];
        all.extend(options);
        let said = compiler.compile(dialect, &all, &files, &[]);
        said.map_err(|said| format!("{mode}: {said}"))?;
    }
    Ok(())
}

fn refused() -> Result<(), Failed> {
    for options in [
        ["-DGASNETT_THREAD_SAFE", "-DGASNETT_THREAD_SINGLE"],
        ["-DGASNETT_THREAD_SAFE", "-DGASNETT_LITE_MODE"],
        ["-DGASNET_DEBUG", "-DGASNET_NDEBUG"],
    ] {
        let all = [["-fsyntax-only"].as_slice(), options.as_slice()].concat();
        match Compiler::OWN.compile(Dialect::C99, &all, &[source("lite")], &[]) {
            Err(said) if said.contains("#error") => {}
            other => return Err(format!("{options:?}: {other:?}").into()),
        }
    }
    Ok(())
}
