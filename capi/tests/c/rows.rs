//! The measuring program `benches/c/rows.c`: it compiles without a warning, and every row of it can
//! be measured over every conduit.

use libtest_mimic::{Failed, Trial};

use crate::compiler::{Dialect, Workplace, root};
use crate::files::Library;
use crate::linked::{link, object};
use crate::running::{command, said};

/// Conduits, the rows that are measured there, and how many lines these give, that of the machine
/// among them where ranks share memory.
const RUNS: [(&str, &str, usize); 7] = [
    ("smp", "", 34),
    ("tcp", "PutNB", 9),
    ("tcp", "AM", 11),
    ("portals", "PutNB", 9),
    ("portals", "AM", 11),
    ("usnic", "PutNB", 9),
    ("usnic", "AM", 11),
];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |(conduit, row, lines): (&'static str, &'static str, usize)| {
        let name = format!("the measuring program over {conduit}, rows {row:?}");
        Trial::test(name, move || measures(conduit, row, lines))
    };
    RUNS.into_iter().map(trial).collect()
}

fn measures(conduit: &str, row: &str, lines: usize) -> Result<(), Failed> {
    let place = Workplace::new()?;
    let options = [
        "-DGASNET_SEQ",
        "-D_GNU_SOURCE",
        "-O2",
        "-c",
        "-Wall",
        "-Wextra",
        "-Werror",
    ];
    let variant = [options.as_slice(), &["-DARGONET_CONDUIT_WORD=\"smp\""]].concat();
    let program = root().join("benches/c/rows.c");
    let variant_file = root().join("capi/variant/variant.c");
    let mut words = vec![
        object(&place, "rows.o", Dialect::C11, &options, program)?,
        object(&place, "variant.o", Dialect::C11, &variant, variant_file)?,
    ];
    words.extend(Library::Shared.words());
    let program = link(&place, "rows", &words)?;
    let output = command(&program)
        .args(["1", row])
        .env("GASNET_PSHM_NODES", "2")
        .env("LD_LIBRARY_PATH", program.parent().unwrap_or(&program))
        .env("ARGONET_CONDUIT", conduit)
        .env(
            "GASNET_SUPERNODE_MAXSIZE",
            if conduit == "smp" { "2" } else { "1" },
        )
        .output()?;
    let found = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.split('\t').count() == 4)
        .count();
    if !output.status.success() || found != lines {
        return Err(format!("{}: {found} rows\n{}", output.status, said(&output)).into());
    }
    Ok(())
}
