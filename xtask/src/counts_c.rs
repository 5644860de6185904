//! Instructions of operations from C: a job of two ranks under callgrind, which collects what rank
//! 0 does in one function of `benches/c/counts.c`.

use crate::command::{output, root, target};
use crate::counts::{self, CALLGRIND, collected};
use crate::suite::Run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Operations that are counted.
///
/// No rank takes messages meanwhile, so that they must find room.
const TIMES: u32 = 200;

/// A conduit, and the rows of `counts.c` that are counted.
struct Variant {
    conduit: &'static str,
    rows: &'static [&'static str],
}

/// Gets over a network need the other rank.
const VARIANTS: [Variant; 3] = [
    Variant {
        conduit: "smp",
        rows: &["put-val", "get-val", "am-short", "am-medium-64"],
    },
    Variant {
        conduit: "tcp",
        rows: &["put-val", "put-64", "am-short", "am-medium-64"],
    },
    Variant {
        conduit: "portals",
        rows: &["put-val", "put-64", "am-short"],
    },
];

/// Counts all rows; `None` for a row that cannot be counted.
pub(crate) fn count(run: &mut Run) -> Vec<(String, Option<f64>)> {
    let place = target().join("bench-counts");
    let library = run.step(
        "build of the library for counts from C",
        &mut counts::build(),
    );
    let mut counts = Vec::new();
    for variant in &VARIANTS {
        let built = library.then(|| compile(run, &place, variant)).flatten();
        for row in variant.rows {
            let total = built
                .as_deref()
                .and_then(|built| total(run, &place, built, variant, row));
            let name = format!("c-{}-{row}", variant.conduit);
            let each = |total: u64| (total as f64 / f64::from(TIMES) * 10.0).round() / 10.0;
            counts.push((name, total.map(each)));
        }
    }
    counts
}

fn compile(run: &Run, place: &Path, variant: &Variant) -> Option<PathBuf> {
    let built = place.join(format!("counts-{}", variant.conduit));
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"])
        .args(["-D_REENTRANT", "-DGASNET_SEQ"])
        .arg(format!(
            "-DARGONET_CONDUIT_{}=1",
            variant.conduit.to_uppercase()
        ))
        .arg(format!("-DARGONET_CONDUIT_WORD=\"{}\"", variant.conduit))
        .arg("-I")
        .arg(root().join("include"))
        .args(["benches/c/counts.c", "capi/variant/variant.c"].map(|file| root().join(file)))
        .arg(place.join("libargonet_capi.a"))
        .args([
            "-Wl,--gc-sections",
            "-lpthread",
            "-ldl",
            "-lm",
            "-lrt",
            "-o",
        ])
        .arg(&built);
    output(&mut cc, run.until).map(|_| built)
}

/// Instructions of a row in a job.
fn total(run: &Run, place: &Path, built: &Path, variant: &Variant, row: &str) -> Option<u64> {
    let fifo = place.join("counts.fifo");
    let _ = std::fs::remove_file(&fifo);
    output(Command::new("mkfifo").arg(&fifo), run.until)?;
    let mut command = Command::new(place.join("argonet"));
    command
        .args(["run", "-n", "2", "--timeout", "60", "valgrind"])
        .args(CALLGRIND)
        .arg("--toggle-collect=counted")
        .arg(built)
        .args([row, &TIMES.to_string()])
        .arg(&fifo)
        .env("ARGONET_CONDUIT", variant.conduit);
    if variant.conduit != "smp" {
        command.env("GASNET_SUPERNODE_MAXSIZE", "1");
    }
    let text = output(&mut command, run.until)?;
    // Rank 1 never enters the function.
    let totals = text.lines().filter_map(collected);
    totals.max().filter(|total| *total > 0)
}
