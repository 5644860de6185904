//! C programs under ThreadSanitizer: those of `tests/c` with several threads, compiled for it and
//! linked with a library that is, so that inline code of C and the library are seen as one.

use crate::command::{output, root};
use crate::stages::TRIPLE;
use crate::suite::Run;
use crate::tsan::{built_in, options, sanitized};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs, and the thread modes as `GASNET_*` names them.
///
/// Not those that end the job in the middle of what its threads do.
const PROGRAMS: &[(&str, &str)] = &[
    ("threads_am", "PAR"),
    ("threads_rma", "PAR"),
    ("threads_hsl", "PAR"),
    ("threads_wait", "PAR"),
    ("threads_churn", "PAR"),
    ("threads_ratomic", "PAR"),
    ("threads_teams", "PAR"),
    ("threads_vis", "PAR"),
    ("threads_serial", "PARSYNC"),
];

/// Threads of the one rank, beside its first.
const THREADS: [&str; 2] = ["2", "4"];

/// How often each runs with each number of threads, released and debugging.
const REPEATS: u32 = 3;

/// Debugging or not: locks are the header's or the library's.
const KINDS: [(&str, &[&str]); 2] = [("", &["-O1"]), (", debug", &["-O0", "-DGASNET_DEBUG=1"])];

/// The files and options for the build of a program.
struct Kit {
    /// The library, compiled for the sanitizer.
    library: PathBuf,
    /// The sanitizer itself, as rustc comes with it: the library was compiled for this one.
    runtime: PathBuf,
    /// Where programs go.
    place: PathBuf,
}

/// Builds and runs them, after one with a planted race.
pub(crate) fn programs(run: &mut Run) {
    let name = "ThreadSanitizer: C programs";
    if !compiler_can(run) {
        let reason = "cc cannot compile with -fsanitize=thread";
        run.tally.skip(name, reason);
        return;
    }
    let Some(kit) = Kit::new(run) else {
        let what = format!("{name}: build of the library");
        run.tally.step(&what, false);
        return;
    };
    kit.planted(run);
    for &(program, mode) in PROGRAMS {
        let source = root().join(format!("tests/c/{program}.c"));
        for (kind, flags) in KINDS {
            let built = kit.build(run, &source, mode, flags);
            for threads in THREADS {
                let clean = built.as_deref().is_some_and(|built| {
                    (0..REPEATS).all(|_| passes(run, built, program, threads))
                });
                let name = format!("ThreadSanitizer: {program}, {threads} threads{kind}");
                run.tally.step(&name, clean);
            }
        }
    }
}

fn compiler_can(run: &Run) -> bool {
    let nothing = built_in().join("nothing.c");
    let written = std::fs::create_dir_all(built_in()).and_then(|()| std::fs::write(&nothing, ""));
    let mut cc = Command::new("cc");
    cc.args(["-fsanitize=thread", "-c", "-o"])
        .arg(built_in().join("nothing.o"))
        .arg(&nothing);
    written.is_ok() && output(&mut cc, run.until).is_some()
}

/// Whether a run with so many threads on one rank passes and nothing is reported.
fn passes(run: &Run, built: &Path, program: &str, threads: &str) -> bool {
    let mut command = Command::new(built);
    command
        .arg(threads)
        .env("TSAN_OPTIONS", options())
        .env("GASNET_PSHM_NODES", "1")
        // Few, so that threads take what others have left.
        .env("GASNET_MAX_THREADS", "9");
    let pass = format!("PASS {program}");
    output(&mut command, run.until).is_some_and(|said| said.lines().any(|line| line == pass))
}

impl Kit {
    fn new(run: &Run) -> Option<Self> {
        let mut library = sanitized("rustc");
        // Not the shared one: it would need the sanitizer in every program that loads it.
        library.args(["--package", "argonet-capi", "--lib"]);
        library.args(["--crate-type", "staticlib"]);
        output(&mut library, run.until)?;
        let mut rustc = Command::new("rustc");
        rustc.args(["--print", "target-libdir", "--target", TRIPLE]);
        let directory = output(&mut rustc, run.until)?;
        let files = std::fs::read_dir(directory.trim()).ok()?.flatten();
        let mut names = files.map(|file| file.path());
        let kit = Self {
            library: built_in().join(TRIPLE).join("debug/libargonet_capi.a"),
            runtime: names.find(|path| is_runtime(path))?,
            place: built_in().join("c"),
        };
        std::fs::create_dir_all(&kit.place).ok()?;
        Some(kit)
    }

    /// `source`, built for a thread mode.
    fn build(&self, run: &Run, source: &Path, mode: &str, flags: &[&str]) -> Option<PathBuf> {
        let kind = if flags.contains(&"-O0") { "-debug" } else { "" };
        let stem = source.file_stem()?.to_string_lossy();
        let built = self.place.join(format!("{stem}{kind}"));
        // Each is compiled by itself: the sanitizer of the compiler must not be linked, too.
        let mut objects = Vec::new();
        for file in [source, &root().join("capi/variant/variant.c")] {
            let object = built.with_extension(format!("{}.o", file.file_stem()?.to_string_lossy()));
            let mut cc = Command::new("cc");
            cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g"])
                // It says of each fence that it does not see it; the headers know.
                .args(["-Wno-tsan", "-Wno-unknown-warning-option"])
                .args(["-fsanitize=thread", "-DCHECK_WITH_THREAD_SANITIZER"])
                .args(["-D_POSIX_C_SOURCE=200809L", "-D_REENTRANT"])
                .arg(format!("-DGASNET_{mode}"))
                .arg("-DARGONET_CONDUIT_WORD=\"smp\"")
                .args(flags)
                .arg("-I")
                .arg(root().join("include"))
                .args(["-c", "-o"])
                .args([&object, file]);
            output(&mut cc, run.until)?;
            objects.push(object);
        }
        let mut cc = Command::new("cc");
        cc.args(objects)
            .arg(&self.library)
            // All of it: it stands in for functions of the system, which no object asks it for by
            // name.
            .arg("-Wl,--whole-archive")
            .arg(&self.runtime)
            .args(["-Wl,--no-whole-archive", "-Wl,--export-dynamic"])
            .args(["-lpthread", "-ldl", "-lm", "-lrt", "-o"])
            .arg(&built);
        output(&mut cc, run.until).map(|_| built)
    }

    /// The race that must be found.
    fn planted(&self, run: &mut Run) {
        let source = root().join("xtask/tsan/planted_race.c");
        let built = self.build(run, &source, "PAR", KINDS[0].1);
        let found = built.is_some_and(|built| {
            let said = Command::new(built)
                .env("TSAN_OPTIONS", options())
                .env("GASNET_PSHM_NODES", "1")
                .output();
            said.is_ok_and(|said| {
                let text = String::from_utf8_lossy(&said.stderr);
                !said.status.success()
                    && text.contains("data race")
                    && text.contains("planted_race.c:")
            })
        });
        let name = "ThreadSanitizer finds a planted race in C";
        run.tally.step(name, found);
    }
}

/// Its name has the channel of the compiler.
fn is_runtime(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("librustc") && name.ends_with("_rt.tsan.a")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_found_in_any_channel() {
        assert!(is_runtime(Path::new("/x/librustc-stable_rt.tsan.a")));
        assert!(is_runtime(Path::new("/x/librustc-nightly_rt.tsan.a")));
        assert!(!is_runtime(Path::new("/x/librustc-stable_rt.asan.a")));
    }

    #[test]
    fn all_programs_with_threads_run_unless_they_end_the_job() {
        let mut known: Vec<String> = PROGRAMS
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        known.extend(["threads_exit", "threads_wrong"].map(str::to_owned));
        for file in std::fs::read_dir(root().join("tests/c")).unwrap() {
            let name = file.unwrap().file_name().to_string_lossy().into_owned();
            if let Some(name) = name
                .strip_suffix(".c")
                .filter(|name| name.starts_with("threads_"))
            {
                assert!(
                    known.iter().any(|known| known == name),
                    "{name} is left out"
                );
            }
        }
    }
}
