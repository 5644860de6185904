//! The rows of `benches/c/rows.c`: a program in C over a conduit, by itself or beside an installed
//! GASNet-EX, in alternating runs.
//!
//! The machine changes its state within seconds, so a run measures the rows of one name, and its
//! first row shows the state.

use crate::command::{root, target};
use crate::install;
use argonet_settings::{CONDUIT_NAMES, ConduitRow};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Two runs are in the same state of the machine if their first rows differ by less than this.
const SAME_STATE: f64 = 1.3;

/// A cache line both ways takes less than this, in microseconds, in the machine's fast state.
const FAST_US: f64 = 0.15;

/// The row that is the machine and no operation.
const MACHINE: &str = "line both ways";

/// The measured library, and the one beside it.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// What is measured, and when.
    pub(super) stamp: String,
    pub(super) conduit: String,
    pub(super) ranks: u32,
    /// Pairs of runs, or runs where there is no peer.
    pub(super) runs: u32,
    /// Chunks of each row in a run.
    pub(super) chunks: u32,
    /// Where a release of GASNet-EX is installed.
    pub(super) peer: Option<PathBuf>,
}

/// A row of one run.
#[derive(Clone, PartialEq, Debug)]
struct Row {
    name: String,
    bytes: String,
    best_us: f64,
    median_us: f64,
    /// The machine's row of the same run.
    machine_us: Option<f64>,
}

/// Builds, runs and compares; a table for the page.
pub(super) fn table(question: &Question) -> Result<String, String> {
    let place = target().join("perf-rows");
    let prefix = place.join("tree");
    std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let options = install::Options {
        prefix: prefix.clone(),
        destdir: None,
        debug: false,
        segment: install::Segment::Fast,
        conduits: vec![question.conduit.clone()],
        library: None,
    };
    if !install::install(&options) {
        return Err("the installation failed".into());
    }
    let ours = build(&prefix, &question.conduit, &place.join("rows"))?;
    let links = ConduitRow::named(&question.conduit).map_or(&[][..], |row| row.links);
    let of_gasnet = links.iter().find(|link| link.is_gasnets);
    // Where releases have none of the same name, the one for Ethernet.
    let conduit = of_gasnet.map_or("udp", |link| link.name);
    let theirs = match &question.peer {
        Some(peer) => Some(build(peer, conduit, &place.join("rows-peer"))?),
        None => None,
    };
    let mut names: Vec<String> = Vec::new();
    for row in run(&ours, question, 1, None)? {
        // A name is asked for by how it begins.
        if !names.iter().any(|name| row.name.starts_with(name.as_str())) {
            names.push(row.name);
        }
    }
    let mut pairs = Vec::new();
    for turn in 0..question.runs {
        for name in &names {
            let first = run(&ours, question, question.chunks, Some(name))?;
            let second = match &theirs {
                Some(theirs) => run(theirs, question, question.chunks, Some(name))?,
                None => Vec::new(),
            };
            for (at, row) in first.into_iter().enumerate() {
                let other = second
                    .get(at)
                    .filter(|other| other.name == row.name)
                    .cloned();
                pairs.push((row, other));
            }
        }
        eprintln!("run {} of {}", turn + 1, question.runs);
    }
    Ok(written(question, &pairs))
}

/// Compiles the program against an installation, by its files for pkg-config.
fn build(prefix: &Path, conduit: &str, to: &Path) -> Result<PathBuf, String> {
    let flags = |which: &str| -> Result<Vec<String>, String> {
        let text = said(
            Command::new("pkg-config")
                .args([which, &format!("gasnet-{conduit}-seq")])
                .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
        )?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    };
    let object = to.with_extension("o");
    let source = root().join("benches/c/rows.c");
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-O2", "-c"]).arg(&source);
    compile.args(flags("--cflags")?).arg("-o").arg(&object);
    said(&mut compile)?;
    // Some libraries are C++ inside.
    let mut link = Command::new("c++");
    link.arg(&object).arg("-o").arg(to).args(flags("--libs")?);
    said(&mut link)?;
    Ok(to.to_path_buf())
}

/// Runs the program as a job, whose ranks share memory over smp alone.
fn run(
    program: &Path,
    question: &Question,
    chunks: u32,
    row: Option<&str>,
) -> Result<Vec<Row>, String> {
    let mut command = Command::new(program);
    let ranks = question.ranks.to_string();
    if question.conduit == CONDUIT_NAMES[0] {
        command.env("GASNET_PSHM_NODES", &ranks);
    } else {
        command.env("GASNET_SPAWNFN", "L").arg(&ranks);
        command.env("GASNET_SUPERNODE_MAXSIZE", "1");
    }
    command.arg(chunks.to_string()).args(row);
    let text = said(&mut command)?;
    let rows = parsed(&text);
    if rows.is_empty() {
        return Err(format!("{command:?}: no row in {text:?}"));
    }
    Ok(rows)
}

/// The output of a program, if it ends well.
fn said(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{command:?}: {error}"))
}

/// The rows of a run; other output of a job is passed over.
fn parsed(text: &str) -> Vec<Row> {
    let fields = |line: &str| {
        let mut fields = line.split('\t');
        Some(Row {
            name: fields.next()?.to_owned(),
            bytes: fields.next()?.to_owned(),
            best_us: fields.next()?.parse().ok()?,
            median_us: fields.next()?.parse().ok()?,
            machine_us: None,
        })
    };
    let mut rows: Vec<Row> = text.lines().filter_map(fields).collect();
    let machine = rows.iter().position(|row| row.name == MACHINE);
    if let Some(at) = machine {
        let machine_us = rows.remove(at).median_us;
        rows.iter_mut()
            .for_each(|row| row.machine_us = Some(machine_us));
    }
    rows
}

type Pair = (Row, Option<Row>);

/// The state of a pair: `None` if its runs are in different ones.
///
/// Where ranks share no memory, and without a peer, all count.
fn state(pair: &Pair) -> Option<&'static str> {
    let theirs = pair.1.as_ref().and_then(|row| row.machine_us);
    let (Some(ours), Some(theirs)) = (pair.0.machine_us, theirs) else {
        return Some("");
    };
    let (least, most) = (ours.min(theirs), ours.max(theirs));
    (most < least * SAME_STATE).then_some(if most < FAST_US { "fast" } else { "slow" })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn written(question: &Question, pairs: &[Pair]) -> String {
    let mut text = format!(
        "From C (`benches/c/rows.c`), {}:\n{} ranks over {}, {} runs of each row in turn, {} chunks in a run;\n\
         microseconds an operation, the best chunk of all and the median of the runs' medians.\n",
        question.stamp, question.ranks, question.conduit, question.runs, question.chunks
    );
    for name in ["", "fast", "slow"] {
        let these: Vec<&Pair> = pairs
            .iter()
            .filter(|&pair| state(pair) == Some(name))
            .collect();
        if these.is_empty() {
            continue;
        }
        if !name.is_empty() {
            let _ = writeln!(text, "\nIn the {name} state of the machine:");
        }
        text += &compared(&these);
    }
    let mixed = pairs.iter().filter(|pair| state(pair).is_none()).count();
    if mixed > 0 {
        let _ = writeln!(
            text,
            "\n{mixed} of {} pairs were left out: the machine changed its state between their runs.",
            pairs.len()
        );
    }
    text
}

fn compared(pairs: &[&Pair]) -> String {
    let beside = pairs.iter().all(|pair| pair.1.is_some());
    let mut text = String::from(if beside {
        "\n| row | bytes | argonet | GASNet-EX | ratio of pairs | lowest, highest | pairs |\n\
         | --- | ---: | --- | --- | --- | --- | ---: |\n"
    } else {
        "\n| row | bytes | argonet |\n| --- | ---: | --- |\n"
    });
    let mut done: Vec<(&str, &str)> = Vec::new();
    for (row, _) in pairs {
        let key = (row.name.as_str(), row.bytes.as_str());
        if done.contains(&key) {
            continue;
        }
        done.push(key);
        let same = |pair: &&&Pair| (pair.0.name.as_str(), pair.0.bytes.as_str()) == key;
        let these: Vec<&&Pair> = pairs.iter().filter(same).collect();
        let ours = figure(these.iter().map(|pair| &pair.0));
        let _ = write!(text, "| {} | {} | {ours} |", row.name, row.bytes);
        if beside {
            let theirs = figure(these.iter().filter_map(|pair| pair.1.as_ref()));
            let ratio = |pair: &&&Pair| Some(pair.0.median_us / pair.1.as_ref()?.median_us);
            let ratios: Vec<f64> = these.iter().filter_map(ratio).collect();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let most = ratios.iter().copied().fold(0.0, f64::max);
            let count = ratios.len();
            let middle = median(ratios);
            let _ = write!(
                text,
                " {theirs} | **{middle:.2}** | {least:.2}, {most:.2} | {count} |"
            );
        }
        text.push('\n');
    }
    text
}

/// The best chunk of some runs, and the median of their medians.
fn figure<'r>(rows: impl Iterator<Item = &'r Row> + Clone) -> String {
    let best = rows
        .clone()
        .map(|row| row.best_us)
        .fold(f64::INFINITY, f64::min);
    let middle = median(rows.map(|row| row.median_us).collect());
    format!("{} / {}", digits(best), digits(middle))
}

/// Three digits that count.
fn digits(value: f64) -> String {
    match value {
        v if v < 0.1 => format!("{v:.4}"),
        v if v < 1.0 => format!("{v:.3}"),
        v if v < 10.0 => format!("{v:.2}"),
        v => format!("{v:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(line: f64, put: f64) -> Row {
        let text = format!(
            "a word\n{MACHINE}\t8\t{line}\t{line}\nPutNBI\t8\t{put}\t{put}\nbad\t8\tx\t1\n"
        );
        let mut rows = parsed(&text);
        assert_eq!(rows.len(), 1);
        rows.remove(0)
    }

    #[test]
    fn pairs_are_compared_within_a_state_of_the_machine() {
        let question = Question {
            stamp: "commit 15a0c77, 2026-11-27".into(),
            conduit: "smp".into(),
            ranks: 2,
            runs: 5,
            chunks: 3,
            peer: None,
        };
        let pairs = [
            (put(0.08, 1.0), Some(put(0.09, 2.0))),
            (put(0.08, 1.0), Some(put(0.08, 4.0))),
            (put(0.08, 1.2), Some(put(0.08, 4.0))),
            (put(0.25, 3.0), Some(put(0.26, 3.0))),
            (put(0.08, 1.0), Some(put(0.25, 9.0))),
        ];
        let text = written(&question, &pairs);
        let fast = "In the fast state of the machine:\n\n| row |";
        assert!(text.contains(fast), "{text}");
        let row = "| PutNBI | 8 | 1.00 / 1.00 | 2.00 / 4.00 | **0.30** | 0.25, 0.50 | 3 |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("In the slow state"), "{text}");
        assert!(text.contains("| **1.00** | 1.00, 1.00 | 1 |"), "{text}");
        assert!(text.contains("1 of 5 pairs were left out"), "{text}");
    }

    #[test]
    fn without_a_peer_all_runs_count() {
        let question = Question {
            stamp: "commit 15a0c77, 2026-11-27".into(),
            conduit: "tcp".into(),
            ranks: 2,
            runs: 2,
            chunks: 3,
            peer: None,
        };
        let text = written(&question, &[(put(0.08, 1.0), None), (put(0.25, 3.0), None)]);
        assert!(text.contains("| PutNBI | 8 | 1.00 / 3.00 |"), "{text}");
    }
}
