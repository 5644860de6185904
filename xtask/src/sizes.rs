//! Bytes of an installed release, and of a small program that is linked with it, against limits.

use crate::command::{exists, root, target};
use crate::install::{self, Segment};
use crate::suite::Run;
use argonet_settings::CONDUIT_NAMES;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Measured sizes, and their limits in bytes: a twentieth above the size when the limit was set.
const LIMITS: [(&str, u64); 5] = [
    ("the archive", 10_870_000),
    ("hello as linked", 5_710_000),
    ("hello stripped", 4_880_000),
    ("hello with --gc-sections", 5_000_000),
    ("hello with --gc-sections, stripped", 4_270_000),
];

/// Installs and measures; each limit is one test.
pub(crate) fn check(run: &mut Run) {
    if !exists("cc", &["--version"]) {
        run.tally.skip("bytes of a program for C", "no C compiler");
        return;
    }
    match measured() {
        Ok(sizes) => {
            for ((name, limit), size) in LIMITS.into_iter().zip(sizes) {
                println!("    bytes of {name}: {size}, at most {limit}");
                run.tally.step(&format!("bytes of {name}"), size <= limit);
            }
        }
        Err(error) => {
            println!("    {error}");
            run.tally.step("bytes of a program for C", false);
        }
    }
}

/// The bytes of each of [`LIMITS`].
fn measured() -> Result<Vec<u64>, String> {
    let directory = target().join("sizes");
    let prefix = directory.join("tree");
    let options = install::Options {
        prefix: prefix.clone(),
        destdir: None,
        debug: false,
        segment: Segment::default(),
        conduits: vec![CONDUIT_NAMES[0].into()],
        library: None,
    };
    if !install::install(&options) {
        return Err("no installation to measure".to_owned());
    }
    let mut sizes = vec![size(&prefix.join("lib/libargonet.a"))?];
    for (name, option) in [("hello", None), ("collected", Some("-Wl,--gc-sections"))] {
        let program = linked(&prefix, &directory.join(name), option)?;
        sizes.push(size(&program)?);
        succeeded(Command::new("strip").arg(&program))?;
        sizes.push(size(&program)?);
    }
    Ok(sizes)
}

fn size(path: &Path) -> Result<u64, String> {
    let data = path.metadata();
    data.map(|data| data.len())
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// The program of the tests of installations, as clients build theirs.
fn linked(prefix: &Path, program: &Path, option: Option<&str>) -> Result<PathBuf, String> {
    let variant = prefix.join("include/smp-conduit/smp-seq.mak");
    let text = std::fs::read_to_string(&variant)
        .map_err(|error| format!("{}: {error}", variant.display()))?;
    let value = |name: &str| {
        let start = format!("GASNET_{name} = ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.ok_or(format!("{}: no {start}", variant.display()))
    };
    // The values are words of the shell.
    let (flags, libraries) = (value("CPPFLAGS")?, value("LIBS")?);
    let script = format!("cc -O2 {flags} \"$@\" {libraries}");
    let source = root().join("xtask/tests/install/programs/hello.c");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script, "sh", "-o"])
        .args([program, &source]);
    succeeded(shell.args(option))?;
    Ok(program.to_path_buf())
}

fn succeeded(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status();
    match status.map(|status| status.success()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("{name} failed")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}
