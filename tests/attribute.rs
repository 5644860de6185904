//! Tests by the attribute `argonet::test`.
//!
//! Some do nothing unless others ask for it, which start this program anew for one of them and look
//! at its output.

use argonet::{Par, Result, SharedArray, Threading, World};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

argonet::rpc! {
    fn double(x: u32) -> u32 { x * 2 }
    fn refuse() -> u32 { panic!("not today") }
}

/// Every rank finds the number of the one before it.
fn ring<M: Threading>(world: &mut World<M>) -> Result<()> {
    let numbers = SharedArray::<u32>::alloc(world, 1)?;
    world.put_value(numbers.ptr(world.rank_offset(1), 0), world.rank().0)?;
    world.barrier()?;
    assert_eq!(numbers.read(world, 0), world.rank_offset(-1).0);
    Ok(())
}

#[argonet::test]
fn has_two_ranks(world: &mut World) {
    assert_eq!(world.size(), 2);
}

#[argonet::test(ranks = [1, 2, 3, 5])]
fn runs_with_each_number_of_ranks(world: &mut World) -> Result<()> {
    assert!([1, 2, 3, 5].contains(&world.size()));
    ring(world)
}

const RANKS: u32 = 3;

#[argonet::test(ranks = RANKS, conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn runs_over_each_conduit(world: &mut World) -> Result<()> {
    assert_eq!(world.size(), RANKS);
    ring(world)?;
    assert_eq!(world.rpc(world.rank_offset(1), &double, (21,))?.wait()?, 42);
    Ok(())
}

#[argonet::test(ranks = 2)]
fn gives_a_world_for_many_threads(world: &mut World<Par>) -> Result<()> {
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..3).map(|_| s.spawn(|| world.poll())).collect();
        threads
            .into_iter()
            .try_for_each(|t| t.join().unwrap().map(drop))
    })?;
    ring(world)
}

#[argonet::test(ranks = 2, env("ARGONET_SEGMENT" = "1MB", "OF_THE_TEST" = "a = b, c"))]
fn gives_ranks_variables(_: &mut World) {
    assert_eq!(std::env::var("OF_THE_TEST").unwrap(), "a = b, c");
    assert_eq!(std::env::var("ARGONET_SEGMENT").unwrap(), "1MB");
}

#[argonet::test(ranks = 3)]
#[should_panic(expected = "rank 1: assertion `left == right` failed: of rank 1")]
fn expects_a_panic(world: &mut World) -> Result<()> {
    if world.rank().0 == 1 {
        assert_eq!(1, 2, "of rank 1");
    }
    world.barrier()
}

#[argonet::test(ranks = 2, conduit = "smp")]
#[should_panic(expected = "the job of 2 ranks over smp ended with code 1: rank 0: no such thing")]
fn expects_an_error(world: &mut World) -> std::result::Result<(), String> {
    if world.rank().0 == 0 {
        return Err("no such thing".into());
    }
    world.barrier().map_err(|error| error.to_string())
}

#[argonet::test(ranks = 1)]
#[should_panic(expected = "the job of 1 rank ended with code 101: rank 0: alone")]
fn expects_a_panic_of_the_only_rank(_: &mut World) {
    panic!("alone");
}

#[argonet::test]
#[should_panic(expected = "not today")]
fn expects_a_panic_of_a_function_that_was_called(world: &mut World) -> Result<()> {
    if world.rank().0 == 0 {
        world.rpc(world.rank_offset(1), &refuse, ())?.wait()?;
    }
    world.barrier()
}

#[argonet::test]
#[should_panic(expected = "SIGKILL")]
fn fails_with_a_rank_that_is_killed(world: &mut World) -> Result<()> {
    if world.rank().0 == 1 {
        let this = rustix::process::getpid();
        rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap();
    }
    world.barrier()
}

#[argonet::test]
#[should_panic(expected = "ended with code 3")]
fn fails_with_a_code(world: &mut World) -> Result<()> {
    if world.rank().0 == 1 {
        argonet::exit(3);
    }
    world.barrier()
}

/// A rank that leaves with code 0 has not passed.
#[argonet::test]
#[should_panic(expected = "exited with code 0")]
fn fails_with_a_rank_that_leaves(world: &mut World) -> Result<()> {
    if world.rank().0 == 1 {
        std::process::exit(0);
    }
    world.barrier()
}

#[argonet::test]
#[should_panic(expected = "ranks 0, 1 left the job with code 0 before the end of the test")]
fn fails_with_ranks_that_exit_before_the_end(_: &mut World) {
    argonet::exit(0);
}

#[argonet::test(ranks = 1)]
#[should_panic(expected = "rank 0 left the job with code 0 before the end of the test")]
fn fails_with_an_exit_of_the_only_rank(_: &mut World) {
    std::process::exit(0);
}

/// A time that no clock holds is no limit.
#[argonet::test(timeout = u64::MAX)]
fn may_take_any_time(world: &mut World) -> Result<()> {
    world.barrier()
}

const fn three() -> u32 {
    3
}

const CONDUITS: [&str; 2] = ["smp", "tcp"];

#[argonet::test(ranks = three(), conduit = CONDUITS[1], env("OF_THE_TEST" = CONDUITS[0]))]
fn takes_expressions_of_constants(world: &mut World) {
    assert_eq!(world.size(), 3);
    assert_eq!(std::env::var("ARGONET_CONDUIT").unwrap(), "tcp");
    assert_eq!(std::env::var("OF_THE_TEST").unwrap(), "smp");
}

macro_rules! on {
    ($vis:vis, $name:ident, $ranks:expr, $size:pat) => {
        #[argonet::test(ranks = $ranks)]
        $vis fn $name(world: &mut World) {
            assert!(matches!(world.size(), $size));
        }
    };
}

on!(pub, takes_values_of_a_macro, 1 + 2, 3);
on!(, takes_lists_of_a_macro, [1, 3], 1 | 3);

#[forbid(unsafe_code)]
mod strict {
    #[argonet::test]
    fn works_where_unsafe_code_is_forbidden(_: &mut argonet::World) {}
}

#[argonet::test(ranks = [])]
#[should_panic(expected = "`ranks = []` makes no job")]
fn fails_without_a_number_of_ranks(_: &mut World) {}

#[argonet::test(conduit = [])]
#[should_panic(expected = "`conduit = []` makes no job")]
fn fails_without_a_conduit(_: &mut World) {}

#[argonet::test(timeout = 0)]
#[should_panic(expected = "`timeout = 0`")]
fn fails_without_any_time(_: &mut World) {}

#[argonet::test(conduit = "pigeon")]
#[should_panic(expected = "pigeon")]
fn fails_with_an_unknown_conduit(_: &mut World) {}

#[test]
#[should_panic(expected = "2 of 2 ranks did not run the test")]
fn fails_if_the_harness_finds_no_test() {
    fn body(_: &mut World) {}
    let test = argonet::__private::Test {
        name: "attribute::no_such_test",
        ranks: &[2],
        conduits: &[None],
        neighborhood_size: None,
        timeout_s: 60,
        variables: &[],
    };
    argonet::__private::run_test(&test, body);
}

mod inner {
    use super::*;

    #[argonet::test]
    fn prints_and_fails(world: &mut World) -> Result<()> {
        if !is_asked() {
            return Ok(());
        }
        println!("out of {}", world.rank());
        eprintln!("err of {}", world.rank());
        world.barrier()?;
        assert_ne!(world.rank().0, 1, "the second");
        world.barrier()
    }
}

#[argonet::test(ranks = 2, timeout = 1)]
fn hangs(world: &mut World) -> Result<()> {
    if !is_asked() {
        return Ok(());
    }
    match world.rank().0 {
        0 => world.barrier(),
        _ => world.wait_until(|| false),
    }
}

/// Ends by itself between the report and the end that the launcher makes.
#[argonet::test(timeout = 1)]
#[should_panic(expected = "the job took longer than 1 s (`timeout` of the test)")]
fn fails_if_it_ends_too_late(world: &mut World) -> Result<()> {
    let limit = std::time::Duration::from_millis(1200);
    let begun = std::time::Instant::now();
    while begun.elapsed() < limit {
        world.poll()?;
    }
    Ok(())
}

#[argonet::test(ranks = 3)]
fn waits_for_ever(world: &mut World) -> Result<()> {
    if !is_asked() {
        return Ok(());
    }
    println!("process {}", std::process::id());
    world.wait_until(|| false)
}

/// The launcher, which the harness does not wait for without end.
#[argonet::test(timeout = 1)]
#[should_panic(expected = "within 6 s after its `timeout` of 1 s, and was killed")]
fn fails_with_a_launcher_that_is_stopped(world: &mut World) -> Result<()> {
    let launcher = rustix::process::getppid().unwrap();
    rustix::process::kill_process(launcher, rustix::process::Signal::STOP).unwrap();
    world.wait_until(|| false)
}

#[argonet::test]
fn passes_and_prints(world: &mut World) {
    println!("out of {}", world.rank());
}

/// Asks tests for what they do not do by themselves.
const ASKED: &str = "ARGONET_TEST_ASKED";

fn is_asked() -> bool {
    std::env::var_os(ASKED).is_some()
}

/// This program, for one of its tests that has to be asked.
fn this(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(ASKED, "1");
    command
}

/// Exit code and output of such a run.
fn run(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text)
}

#[track_caller]
fn has(text: &str, pieces: &[&str]) {
    for piece in pieces {
        assert!(text.contains(piece), "{piece:?} is missing in:\n{text}");
    }
}

#[test]
fn output_is_shown_of_a_test_that_fails_and_names_ranks() {
    let (code, text) = run(&mut this("inner::prints_and_fails"));
    assert_eq!(code, Some(101));
    has(
        &text,
        &[
            "[0] out of 0\n",
            "[1] out of 1\n",
            "[0] err of 0\n",
            "[1] err of 1\n",
            "tests/attribute.rs",
            "the job of 2 ranks ended with code 101: rank 1: assertion",
            "test result: FAILED. 0 passed; 1 failed",
        ],
    );
    // The lines of the harnesses in the ranks.
    assert_eq!(text.matches("running 1 test").count(), 1, "{text}");
    assert!(!text.contains("] test "), "{text}");
}

#[test]
fn output_is_not_shown_of_a_test_that_passes_unless_asked_for() {
    let (code, text) = run(&mut this("passes_and_prints"));
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("out of"), "{text}");
    let (code, text) = run(this("passes_and_prints").arg("--nocapture"));
    assert_eq!(code, Some(0), "{text}");
    has(&text, &["[0] out of 0\n", "[1] out of 1\n"]);
}

#[test]
fn a_test_that_hangs_ends_with_a_report_of_its_ranks() {
    let (code, text) = run(&mut this("hangs"));
    assert_eq!(code, Some(101));
    has(
        &text,
        &[
            "ended by its time limit: the job did not end within 1 s (`timeout` of the test)",
            "waits in a barrier",
            "waits for a condition of the program",
        ],
    );
}

/// Such a process would start a job as a harness, whose processes would do the same.
#[test]
fn a_process_of_a_job_that_is_not_described_ends() {
    const JOB: &str = "ARGONET_TEST_JOB";
    let own = std::process::id();
    let run_with = |variables: &[(&str, &str)]| {
        let mut command = this("passes_and_prints");
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for value in [format!("{own} "), format!("{own} 1 2 60 passes_and_prints")] {
        let (code, text) = run_with(&[(JOB, &value)]);
        assert_eq!(code, Some(1), "{text}");
        has(&text, &["ARGONET_TEST_JOB", "describes no test's job"]);
    }
    let (code, _) = run_with(&[(JOB, "1 2 3 4 t"), ("ARGONET_BOOT", "x")]);
    assert_eq!(code, Some(1));
    // Of another process, or of a program that a launcher of tests started.
    let (code, text) = run_with(&[(JOB, "1 1 2 60 passes_and_prints")]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn nothing_is_left_of_a_test_that_is_killed() {
    let mut command = this("waits_for_ever");
    let mut tests = command
        .arg("--nocapture")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(tests.stdout.take().unwrap()).lines();
    let processes = lines.filter_map(|line| {
        let line = line.unwrap();
        let number: Option<u32> = line.split_once("process ")?.1.parse().ok();
        number
    });
    let processes: Vec<u32> = processes.take(3).collect();
    assert_eq!(processes.len(), 3);
    tests.kill().unwrap();
    tests.wait().unwrap();
    // The test would not end, else.
    for process in processes {
        while is_alive(process) {
            std::thread::yield_now();
        }
    }
}

/// Whether the process exists and is no zombie.
fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, state)| !state.starts_with('Z'))
    })
}
