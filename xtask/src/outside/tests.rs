//! Little shell scripts as programs of a suite.

use super::one::{Verdict, marked};
use super::*;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("argonet-suite-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    /// Another process writes it: a file that is open for writing here is so in what other tests
    /// start at that time, and cannot be run.
    fn script(&self, name: &str, body: &str) {
        let mut writer = Command::new("install");
        writer.args(["-m", "755", "/dev/stdin"]);
        writer.arg(self.0.join(name)).stdin(Stdio::piped());
        let mut writer = writer.spawn().unwrap();
        let mut input = writer.stdin.take().unwrap();
        write!(input, "#!/bin/sh\n{body}\n").unwrap();
        drop(input);
        assert!(writer.wait().unwrap().success());
    }

    fn options(&self, ranks: &[u32], seconds: u64) -> Options {
        Options {
            dir: self.0.clone(),
            ranks: ranks.to_vec(),
            launcher: None,
            variables: Vec::new(),
            seconds,
            out: None,
        }
    }

    fn run(&self, options: &Options) -> Vec<Row> {
        run(options, &self.0.join("logs")).unwrap()
    }

    /// The only run of a script.
    ///
    /// No process of it is left.
    fn only(&self, body: &str, seconds: u64) -> Outcome {
        self.script("program", body);
        let mut options = self.options(&[1], seconds);
        let mark = format!("ARGONET_TEST_SUITE={}", self.0.display());
        options.variables = vec![mark.clone()];
        let mut rows = self.run(&options);
        assert_eq!(marked(&mark), Vec::<u32>::new());
        rows.remove(0).outcomes.remove(0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_end_of_a_program_is_its_verdict() {
    for (body, verdict, how) in [
        ("exit 0", Verdict::Passed, ""),
        ("exit 3", Verdict::Failed, "code 3"),
        ("exit 77", Verdict::Skipped, "code 77"),
        (
            "echo SKIP: no device; exit 0",
            Verdict::Skipped,
            "SKIP: no device",
        ),
        ("echo SKIP; exit 4", Verdict::Failed, "code 4"),
        ("kill -SEGV $$", Verdict::Crashed, "signal 11"),
        ("exit 139", Verdict::Crashed, "signal 11 of a rank"),
        ("exit 130", Verdict::Failed, "code 130"),
        ("exec yes", Verdict::Failed, "too much output"),
    ] {
        let outcome = Scratch::new().only(body, 60);
        assert_eq!(
            (outcome.verdict, outcome.how.as_str()),
            (verdict, how),
            "{body}"
        );
    }
}

/// Both the program's group, and a process that has left it for another session.
#[test]
fn a_hanging_program_and_its_processes_are_killed() {
    let scratch = Scratch::new();
    let body = "sleep 1000 &\nsetsid sleep 1000 &\nexec sleep 1000";
    let outcome = scratch.only(body, 2);
    assert_eq!(outcome.verdict, Verdict::TimedOut);
}

#[test]
fn a_program_that_leaves_a_process_behind_fails() {
    let body = "setsid sleep 1000 &\nexit 0";
    let outcome = Scratch::new().only(body, 60);
    assert_eq!(outcome.verdict, Verdict::Failed);
    assert_eq!(outcome.how, "left 1 processes behind");
}

#[test]
fn ranks_reach_the_program_by_variable_and_by_launcher() {
    let scratch = Scratch::new();
    scratch.script("program", "echo by $GASNET_PSHM_NODES $1; exit 1");
    let mut options = scratch.options(&[1, 4], 60);
    let tails = |options: &Options| -> Vec<String> {
        let rows = scratch.run(options);
        let outcomes = rows[0].outcomes.iter();
        outcomes.map(|o| o.tail.trim().to_owned()).collect()
    };
    assert_eq!(tails(&options), ["by 1", "by 4"]);
    options.variables = vec!["GASNET_PSHM_NODES=x{n}".to_owned()];
    assert_eq!(tails(&options), ["by x1", "by x4"]);
    options.variables.clear();
    // The launcher's word for the number comes before the program.
    options.launcher = Some("/usr/bin/env GASNET_PSHM_NODES=launched-{n}".to_owned());
    assert_eq!(tails(&options), ["by launched-1", "by launched-4"]);
    let text = report::markdown(&options, &[]);
    assert!(
        text.contains("| `env GASNET_PSHM_NODES=launched-{n}` |"),
        "{text}"
    );
}

#[test]
fn only_executable_files_are_run_and_none_is_an_error() {
    let scratch = Scratch::new();
    std::fs::write(scratch.0.join("text"), "no program").unwrap();
    std::fs::create_dir(scratch.0.join("directory")).unwrap();
    let options = scratch.options(&[1], 60);
    let error = run(&options, &scratch.0.join("logs")).unwrap_err();
    assert_eq!(error.to_string(), "there is no executable file");
    scratch.script("a", "exit 0");
    scratch.script("b", "exit 0");
    let names: Vec<String> = scratch
        .run(&options)
        .into_iter()
        .map(|r| r.program)
        .collect();
    assert_eq!(names, ["a", "b"]);
    std::fs::write(scratch.0.join("c"), "neither script nor binary\0").unwrap();
    std::fs::set_permissions(scratch.0.join("c"), PermissionsExt::from_mode(0o755)).unwrap();
    let outcome = &scratch.run(&options)[2].outcomes[0];
    assert_eq!(outcome.verdict, Verdict::Failed);
    assert!(outcome.how.starts_with("cannot be started"), "{outcome}");
}

#[test]
fn the_table_has_a_row_a_program_and_the_output_of_failures() {
    let scratch = Scratch::new();
    scratch.script("good", "exit 0");
    scratch.script("bad", "echo 'expected 3 | got 4' >&2; exit 3");
    let mut options = scratch.options(&[1, 2], 60);
    let out = scratch.0.join("results.md");
    options.out = Some(out.clone());
    assert!(!conformance(&options));
    let text = std::fs::read_to_string(out).unwrap();
    assert!(text.contains(
        "| program | 1 ranks | 2 ranks |\n| --- | --- | --- |\n| `bad` | failed (code 3), "
    ));
    assert!(text.contains("\n| `good` | passed, "));
    assert!(text.contains("\n2 passed, 2 failed, 0 skipped, 0 timed out, 0 crashed\n"));
    assert!(text.contains("\n## `bad`, 2 ranks: failed (code 3), "));
    assert!(text.contains("\n    expected 3 | got 4\n"));
    assert!(
        !text.contains(scratch.0.to_str().unwrap()),
        "a path of one machine"
    );
}
