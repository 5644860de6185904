//! Instructions of the fast paths, counted by callgrind and compared with what was recorded.
//!
//! Times depend on the machine and on what else runs there; these do not.

use crate::command::{cargo, exists, output, root, target};
use crate::suite::Run;
use std::path::Path;
use std::process::Command;

/// The recorded counts, one line `name = count` each.
const RECORDED: &str = "benches/counts.toml";

/// A count may differ from the recorded one by this part of it, in either direction: one that has
/// become smaller is to be recorded too, or the next that grows is not noticed.
const TOLERANCE: f64 = 0.03;

/// And by so many instructions: the compiler places a move or two elsewhere when code nearby
/// changes.
const SLACK: f64 = 3.0;

/// Operations of the two runs whose difference is counted.
const TIMES: [u64; 2] = [4_000, 12_000];

/// Its counts on the standard output.
pub(crate) const CALLGRIND: [&str; 3] = [
    "--tool=callgrind",
    "--callgrind-out-file=/dev/null",
    "--log-fd=1",
];

/// Counts of the fast paths as they are now, by name.
type Counts = Vec<(String, f64)>;

/// Compares the counts with the recorded ones; each is one test.
pub(crate) fn check(run: &mut Run) {
    let Some(counts) = count(run) else { return };
    let text = std::fs::read_to_string(root().join(RECORDED)).unwrap_or_default();
    let recorded = parse(&text);
    for (name, now) in &counts {
        let recorded = recorded
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, count)| *count);
        let verdict = compare(*now, recorded);
        println!(
            "    instructions of {name}: {now}, {}",
            verdict.as_deref().unwrap_or("as recorded")
        );
        run.tally
            .step(&format!("instructions of {name}"), verdict.is_none());
    }
    for (name, _) in recorded
        .iter()
        .filter(|(n, _)| counts.iter().all(|(c, _)| c != n))
    {
        println!("    {RECORDED} has {name}, which nothing counts");
        run.tally.step(&format!("instructions of {name}"), false);
    }
}

/// Records the counts, if everything could be counted.
pub(crate) fn record(run: &mut Run) {
    let Some(counts) = count(run) else { return };
    if run.tally.failed > 0 {
        println!("    {RECORDED} is left as it is, as not everything could be counted");
        return;
    }
    let mut text = String::from(
        "# Instructions of one operation on x86-64, as `cargo xtask counts --record` found them. \
         `cargo xtask counts` compares.\n",
    );
    for (name, count) in counts {
        text += &format!("{name} = {count}\n");
    }
    let written = std::fs::write(root().join(RECORDED), &text);
    print!("{text}");
    run.tally.step(RECORDED, written.is_ok());
}

/// Compares a count with the recorded one; an error if it is off.
fn compare(now: f64, recorded: Option<f64>) -> Option<String> {
    let Some(recorded) = recorded else {
        return Some("which was never recorded: cargo xtask counts --record".into());
    };
    let allowed = (TOLERANCE * recorded).max(SLACK);
    ((now - recorded).abs() > allowed).then(|| {
        format!(
            "but {recorded} were recorded, and {allowed:.1} more or less are allowed; if that is meant: cargo xtask counts --record"
        )
    })
}

fn parse(text: &str) -> Counts {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs
        .filter_map(|(name, count)| Some((name.trim().to_owned(), count.trim().parse().ok()?)))
        .collect()
}

/// Builds all programs and the library whose instructions are counted, in one command: one for
/// each would choose other features of dependencies and compile those and most crates again.
pub(crate) fn build() -> Command {
    let mut build = cargo(&["build", "--profile", "bench-counts"]);
    for package in ["argonet-benches", "argonet-capi", "argonet-cli"] {
        build.args(["--package", package]);
    }
    build.args(["--lib", "--bin", "counts", "--bin", "argonet"]);
    build
}

/// Counts everything; nothing if it cannot be done here or went wrong, which the tally says.
fn count(run: &mut Run) -> Option<Counts> {
    const WHAT: &str = "instruction counts";
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        run.tally
            .skip(WHAT, "they are recorded for x86-64 Linux only");
        return None;
    }
    if !exists("valgrind", &["--version"]) {
        run.tally.skip(WHAT, "no valgrind");
        return None;
    }
    if !run.step("build of counts", &mut build()) {
        return None;
    }
    let program = target().join("bench-counts/counts");
    let list = output(Command::new(&program).arg("--list"), run.until);
    let mut counts = Counts::new();
    for name in list.as_deref().unwrap_or_default().lines() {
        let totals = TIMES.map(|times| total(run, &program, name, times));
        let [Some(few), Some(many)] = totals else {
            run.tally.step(&format!("instructions of {name}"), false);
            continue;
        };
        let each = many.saturating_sub(few) as f64 / (TIMES[1] - TIMES[0]) as f64;
        // Starting a program does not always take the same.
        counts.push((name.to_owned(), (each * 10.0).round() / 10.0));
    }
    for (name, count) in super::counts_c::count(run) {
        match count {
            Some(count) => counts.push((name, count)),
            None => run.tally.step(&format!("instructions of {name}"), false),
        }
    }
    if counts.is_empty() {
        run.tally.step(WHAT, false);
        return None;
    }
    Some(counts)
}

/// All instructions of a run.
fn total(run: &Run, program: &Path, name: &str, times: u64) -> Option<u64> {
    let mut command = Command::new("valgrind");
    command.args(CALLGRIND).arg(program);
    command.args([name, &times.to_string()]);
    output(&mut command, run.until)
        .as_deref()
        .and_then(collected)
}

/// The number in "==1234== Collected : 567".
pub(crate) fn collected(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("Collected :")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_noticed() {
        for (now, recorded) in [(97.0, 100.0), (103.0, 100.0), (53.0, 50.0), (515.0, 500.0)] {
            assert_eq!(compare(now, Some(recorded)), None, "{now} {recorded}");
        }
        for (now, recorded) in [(96.0, 100.0), (53.5, 50.0), (516.0, 500.0)] {
            let wrong = compare(now, Some(recorded)).unwrap();
            let helps = wrong.contains(&recorded.to_string()) && wrong.contains("--record");
            assert!(helps, "{wrong}");
        }
        assert!(compare(1.0, None).is_some());
    }

    #[test]
    fn recorded_counts_are_read_back() {
        let text = "# comment = 3\nput-8 = 58\npoll-64 = 828.5\n";
        let wanted = [("put-8".to_owned(), 58.0), ("poll-64".to_owned(), 828.5)];
        assert_eq!(parse(text), wanted);
    }

    #[test]
    fn totals_are_found_in_the_output() {
        let text = "==7== Events    : Ir\n==7== Collected : 305340\n==7==\n";
        assert_eq!(collected(text), Some(305_340));
        assert_eq!(collected("==7== nothing\n"), None);
    }
}
