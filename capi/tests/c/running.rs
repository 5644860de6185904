//! Programs that check what they call.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace};
use crate::files::{Library, source};

/// How programs are built.
///
/// With all of them every function is called through both libraries, checked and not.
const WAYS: [(&str, Compiler, Dialect, Library, &[&str]); 4] = [
    (
        "static",
        Compiler::OWN,
        Dialect::C99,
        Library::Static,
        &["-O2"],
    ),
    (
        "debug",
        Compiler::OWN,
        Dialect::C11,
        Library::Shared,
        &["-O0", "-g", "-DGASNET_DEBUG"],
    ),
    (
        "C++",
        Compiler::OWN,
        Dialect::CPP17,
        Library::Shared,
        &["-O2"],
    ),
    (
        "clang",
        Compiler::CLANG,
        Dialect::C11,
        Library::Shared,
        &["-O2"],
    ),
];
const SAFE: &str = "-DGASNETT_THREAD_SAFE";
const PROGRAMS: [(&str, &str); 9] = [
    ("lite", "-DGASNETT_LITE_MODE"),
    ("annotations", SAFE),
    ("atomics", SAFE),
    ("atomics", "-DGASNETT_THREAD_SINGLE"),
    ("threads", SAFE),
    ("single", "-DGASNETT_THREAD_SINGLE"),
    ("ticks", SAFE),
    ("environment", SAFE),
    ("system", SAFE),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (way, compiler, dialect, library, options) in WAYS {
        for (program, mode) in PROGRAMS {
            let name = format!(
                "{program} ({way}, {})",
                mode.trim_start_matches("-DGASNETT_")
            );
            let test = move || {
                let place = Workplace::new()?;
                let to = place.file(program);
                let options = [options, &[mode]].concat();
                build(compiler, dialect, library, &options, program, &to)?;
                runs_well(program, &to)
            };
            trials.push(Trial::test(name, test).with_ignored_flag(!compiler.exists()));
        }
    }
    let first = "the first conversion of ticks does not wait";
    trials.push(Trial::test(first, first_ticks).with_ignored_flag(!Compiler::OWN.exists()));
    trials
}

/// The first conversion of ticks returns soon: a measuring program would take a wait in it for a
/// stall of its rank.
///
/// A loaded machine delays some processes, so the least time of several counts.
fn first_ticks() -> Result<(), Failed> {
    const PROCESSES: usize = 20;
    const MOST_NS: u64 = 50_000;
    let place = Workplace::new()?;
    let to = place.file("first_ticks");
    let options = ["-O2", SAFE];
    let (own, library) = (Compiler::OWN, Library::Static);
    build(own, Dialect::C11, library, &options, "first_ticks", &to)?;
    for later in [None, Some("later")] {
        let mut least = u64::MAX;
        for _ in 0..PROCESSES {
            let output = command(&to).args(later).output()?;
            let text = said(&output);
            // A warning would be more than the number.
            let took: Result<u64, _> = text.trim().parse();
            let took = took.map_err(|error| format!("{error}: {}\n{text}", output.status))?;
            least = least.min(took);
        }
        if least > MOST_NS {
            return Err(format!("{later:?}: at least {least} ns").into());
        }
    }
    Ok(())
}

/// Builds one of the programs, with another translation unit beside it.
pub(crate) fn build(
    compiler: Compiler,
    dialect: Dialect,
    library: Library,
    options: &[&str],
    program: &str,
    to: &Path,
) -> Result<(), String> {
    let words = library.words();
    let mut after: Vec<&str> = words.iter().map(String::as_str).collect();
    let to = to.display().to_string();
    after.extend(["-o", &to]);
    compiler.compile(
        dialect,
        options,
        &[source(program), source("second")],
        &after,
    )
}

/// Runs a program, ended by `timeout` if it hangs.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["-k", "1", "120"])
        .arg(program)
        .stdin(Stdio::null());
    for name in [
        "GASNET_VERBOSEENV",
        "GASNET_BACKTRACE",
        "GASNET_BACKTRACE_TYPE",
        "GASNET_FREEZE_ON_ERROR",
    ] {
        command.env_remove(name);
    }
    command
}

fn runs_well(name: &str, program: &Path) -> Result<(), Failed> {
    let output = command(program).output()?;
    // The program of the system ends by gasnett_killmyprocess.
    let expected = if name == "system" { 7 } else { 0 };
    if output.status.code() != Some(expected) {
        return Err(format!("{}\n{}", output.status, said(&output)).into());
    }
    let wanted: &[&str] = match name {
        "annotations" => &["FAMILY:", "1 4\n"],
        "system" => &["CACHE_LINE_BYTES=", "RELEASE="],
        "environment" => return shown(program),
        _ => &[],
    };
    let text = said(&output);
    for wanted in wanted {
        if !text.contains(wanted) {
            return Err(format!("no {wanted:?} in\n{text}").into());
        }
    }
    if name == "annotations" {
        let file = std::fs::read(program)?;
        for ident in [
            "$ArgonetTest: found $",
            "$GASNetToolsThreadModel: THREAD_SAFE $",
            "$GASNetToolsConfig: RELEASE=",
        ] {
            if !file
                .windows(ident.len())
                .any(|part| part == ident.as_bytes())
            {
                return Err(format!("{ident} is not in the program").into());
            }
        }
    }
    Ok(())
}

/// With `GASNET_VERBOSEENV` each variable is shown, once.
fn shown(program: &Path) -> Result<(), Failed> {
    let output = command(program).env("GASNET_VERBOSEENV", "1").output()?;
    let text = said(&output);
    for (wanted, times) in [
        ("verbose 1", 1),
        ("ENV parameter: ARGONET_C_SHOWN = 4 KB", 1),
        ("ENV parameter: ARGONET_C_SHOWN_TEXT = text", 1),
        ("ENV parameter: ARGONET_C_SHOWN_DECIMAL = 0.5", 1),
        ("ENV parameter: ARGONET_C_TEXT = else", 1),
        ("ENV parameter: ARGONET_C_NUMBER = ", 1),
        ("ENV parameter: ARGONET_C_YES = YES", 1),
    ] {
        if text.matches(wanted).count() != times {
            return Err(format!("{wanted:?} is not there {times} times:\n{text}").into());
        }
    }
    Ok(())
}

/// Both outputs of a program.
pub(crate) fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}
