//! Bad input and misuse end a program with one line that says what; backtraces; waiting for a
//! debugger.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Output, Stdio};

use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace};
use crate::files::{Library, source};
use crate::running::{build, command, said};

/// A program that ends as its argument says, built in some way.
struct Endings(Workplace);

/// As a shell has it after an abort.
const ABORTED: i32 = 128 + 6;

/// The exit code, as a shell has it.
fn code_of(output: &Output) -> i32 {
    let signal = output.status.signal().map(|signal| 128 + signal);
    output.status.code().or(signal).unwrap_or(-1)
}

impl Endings {
    fn new(library: Library, options: &[&str]) -> Result<Self, Failed> {
        let place = Workplace::new()?;
        let options = [&["-g", "-DGASNETT_THREAD_SAFE"], options].concat();
        build(
            Compiler::OWN,
            Dialect::C11,
            library,
            &options,
            "endings",
            &place.file("endings"),
        )?;
        Ok(Self(place))
    }

    fn run(&self, what: &str, environment: &[(&str, &str)]) -> Result<Output, Failed> {
        let mut command = command(&self.0.file("endings"));
        Ok(command
            .arg(what)
            .envs(environment.iter().copied())
            .output()?)
    }

    /// Runs to an abort with a line that holds all `wanted`.
    fn dies(
        &self,
        what: &str,
        environment: &[(&str, &str)],
        wanted: &[&str],
    ) -> Result<(), Failed> {
        let output = self.run(what, environment)?;
        let text = said(&output);
        let aborted = code_of(&output) == ABORTED;
        let reported = text.lines().any(|line| {
            line.contains("*** FATAL ERROR (pid ")
                && wanted.iter().all(|wanted| line.contains(wanted))
        });
        if aborted && reported {
            return Ok(());
        }
        Err(format!("{what}: {}, wanted {wanted:?}\n{text}", output.status).into())
    }

    /// Runs to its end and says all `wanted` and nothing of `unwanted`.
    fn says(
        &self,
        what: &str,
        environment: &[(&str, &str)],
        code: i32,
        wanted: &[&str],
        unwanted: &[&str],
    ) -> Result<(), Failed> {
        let output = self.run(what, environment)?;
        let text = said(&output);
        let all = wanted.iter().all(|wanted| text.contains(wanted));
        let none = !unwanted.iter().any(|unwanted| text.contains(unwanted));
        if code_of(&output) == code && all && none {
            return Ok(());
        }
        Err(format!(
            "{what}: {}, wanted {wanted:?} and not {unwanted:?}\n{text}",
            output.status
        )
        .into())
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("fatal errors show text and place", fatal),
        Trial::test("bad values end the program", bad_values),
        Trial::test("misuse of locks ends a debug program", misuse),
        Trial::test("backtraces", || backtraces(Library::Shared)),
        Trial::test("backtraces in a static program", || {
            backtraces(Library::Static)
        }),
        Trial::test("the rate of ticks as the user says", rates),
        Trial::test("a program waits for a debugger", freezes),
        Trial::test("a library of another version does not link", other_version),
    ]
}

fn fatal() -> Result<(), Failed> {
    let program = Endings::new(Library::Shared, &[])?;
    program.dies(
        "fatal",
        &[],
        &["main at ", "endings.c:", ": number 42 of all"],
    )?;
    program.dies("fatal_nopos", &[], &["): nowhere"])?;
    program.dies("reghandler", &[], &["gasnett_reghandler", "signal 9"])?;
    program.dies("setenv", &[], &["gasnett_setenv", "A=B"])?;
    program.says("fatal", &[], ABORTED, &[], &["backtrace", "waits"])
}

fn bad_values() -> Result<(), Failed> {
    let program = Endings::new(Library::Shared, &[])?;
    for (what, values) in [
        (
            "number",
            ["x", "1.5", "0x", "9223372036854775808"].as_slice(),
        ),
        ("size", &["x", "1.2.3", "5 parsecs", "9999999999TB"]),
        ("yesno", &["maybe", "2"]),
        ("decimal", &["x", "1/0", "inf"]),
    ] {
        for value in values {
            program.dies(
                what,
                &[("ARGONET_C_BAD", value)],
                &["ARGONET_C_BAD", value, "allowed: "],
            )?;
        }
    }
    program.dies("parse", &[], &["gasnett_parse_int", "\"x\""])?;
    program.dies(
        "freeze_err",
        &[("GASNET_FREEZE_ON_ERROR", "x")],
        &["GASNET_FREEZE_ON_ERROR"],
    )
}

fn misuse() -> Result<(), Failed> {
    let program = Endings::new(Library::Shared, &["-DGASNET_DEBUG"])?;
    for (what, text) in [
        ("lock_twice", "locked already"),
        ("try_twice", "locked already"),
        ("unlock", "has not locked"),
        ("assert_locked", "not locked by this thread"),
        ("wait_unlocked", "not locked by this thread"),
        ("read_twice", "holds already"),
        ("unlock_rw", "does not hold"),
        ("assert_writing", "not held for writing"),
    ] {
        program.dies(what, &[], &[text])?;
    }
    Ok(())
}

fn backtraces(library: Library) -> Result<(), Failed> {
    let program = Endings::new(library, &[])?;
    let kind = "GASNET_BACKTRACE_TYPE";
    program.says(
        "backtrace",
        &[(kind, "EXECINFO")],
        0,
        &["recognizable", "main"],
        &[],
    )?;
    program.says("backtrace", &[(kind, "DBX")], 1, &[], &["recognizable"])?;
    program.says(
        "backtrace",
        &[(kind, "NONESUCH,EXECINFO")],
        0,
        &["NONESUCH", "recognizable"],
        &[],
    )?;
    program.says("enabled", &[], 1, &[], &["main"])?;
    program.says("enabled", &[("GASNET_BACKTRACE", "1")], 0, &["main"], &[])?;
    program.says(
        "fatal",
        &[("GASNET_BACKTRACE", "1")],
        134,
        &["number 42", ": main"],
        &[],
    )?;
    program.says("replaced", &[], ABORTED, &["broken mechanism"], &[])?;
    let own = Endings::new(library, &["-DOWN_BACKTRACE"])?;
    own.says("backtrace", &[], 0, &["own mechanism"], &["recognizable"])?;
    own.says(
        "backtrace",
        &[(kind, "DBX,own")],
        0,
        &["own mechanism"],
        &["recognizable"],
    )?;
    own.says(
        "backtrace",
        &[(kind, "EXECINFO,OWN")],
        0,
        &["recognizable"],
        &["own mechanism"],
    )?;
    own.says(
        "late",
        &[(kind, "EXECINFO")],
        0,
        &["own mechanism"],
        &["recognizable"],
    )
}

fn rates() -> Result<(), Failed> {
    let program = Endings::new(Library::Shared, &[])?;
    let any = ("GASNET_TSC_RATE_HARD_TOLERANCE", "1e6");
    let rate = "GASNET_TSC_RATE";
    program.says(
        "ticks",
        &[(rate, "1000000"), any],
        0,
        &["1000000000000\n", "GASNET_TSC_RATE_TOLERANCE"],
        &[],
    )?;
    program.says(
        "ticks",
        &[("GASNET_TSC_VERBOSE", "1")],
        0,
        &["ticks per second"],
        &[],
    )?;
    program.dies(
        "ticks",
        &[(rate, "1000000")],
        &["1000000 ticks per second", "GASNET_TSC_RATE_HARD_TOLERANCE"],
    )?;
    for bad in ["never", "999999", "100000000001", "3GHz"] {
        program.dies("ticks", &[(rate, bad)], &[rate, bad, "allowed: "])?;
    }
    program.dies(
        "ticks",
        &[("GASNET_TSC_RATE_TOLERANCE", "x")],
        &["GASNET_TSC_RATE_TOLERANCE"],
    )
}

fn freezes() -> Result<(), Failed> {
    let program = Endings::new(Library::Shared, &[])?;
    program.says("freeze_err", &[], 0, &[], &["waits"])?;
    program.says("freeze_released", &[], 0, &["set var flag = 0"], &[])?;
    for (what, symbol) in [
        ("freeze", "set var flag = 0"),
        ("freeze_err", "argonet_frozen"),
    ] {
        let mut child = command(&program.0.file("endings"))
            .arg(what)
            .env("GASNET_FREEZE_ON_ERROR", "1")
            .stderr(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(stderr) = child.stderr.take() {
            BufReader::new(stderr).read_line(&mut line)?;
        }
        let pid = line
            .split_once("(pid ")
            .and_then(|(_, rest)| rest.split_once(')'))
            .and_then(|(pid, _)| pid.parse::<i32>().ok())
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            rustix::process::kill_process(pid, rustix::process::Signal::CONT)?;
        }
        let status = child.wait()?;
        if !status.success() || !line.contains("waits for a debugger") || !line.contains(symbol) {
            return Err(format!("{what}: {status}\n{line}").into());
        }
    }
    Ok(())
}

fn other_version() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let words = Library::Shared.words();
    let to = place.file("program").display().to_string();
    let after: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .chain(["-o", &to])
        .collect();
    let options = [
        "-DGASNETT_THREAD_SAFE",
        "-Dargonett_version_1=argonett_version_0",
    ];
    match Compiler::OWN.compile(Dialect::C99, &options, &[source("annotations")], &after) {
        Err(said) if said.contains("argonett_version_0") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
