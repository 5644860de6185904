//! The report of checked memory that `GASNET_MALLOCFILE` asks for: one of each rank that wants it,
//! however the program ends.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::running::Run;

const NAME: &str = "debug_malloc_end";

pub(crate) fn trials() -> Vec<Trial> {
    let program = Arc::new(Program::new(Way::DEBUG, NAME));
    ["exit", "return"]
        .map(|how| {
            let program = Arc::clone(&program);
            let title = format!("{NAME}, by {how} ({})", Way::DEBUG.name);
            Way::DEBUG.trial(title, move || is_reported(&program, how))
        })
        .into()
}

fn is_reported(program: &Program, how: &str) -> Result<(), Failed> {
    // Beside the program, whose directory is its own.
    let place = program.path()?.with_file_name(format!("heaps-{how}"));
    std::fs::create_dir(&place)?;
    let file = place.join("heap-%").display().to_string();
    let variables = [
        ("GASNET_MALLOCFILE", file.as_str()),
        ("GASNET_MALLOCNODES", "0,2"),
    ];
    let run = Run::with(program, 3, &[how], 120, &variables)?;
    let text = |rank: u32| std::fs::read_to_string(place.join(format!("heap-{rank}")));
    let reports = |rank: u32| {
        let leak = format!("not freed: {} bytes at ", 1000 + rank);
        let text = text(rank).unwrap_or_default();
        let left: Vec<_> = text
            .lines()
            .filter(|line| line.contains("not freed"))
            .collect();
        left.len() == 1 && left[0].starts_with(&leak) && left[0].contains("debug_malloc_end.c:")
    };
    if run.code() == 0 && reports(0) && reports(2) && text(1).is_err() {
        return Ok(());
    }
    let texts: Vec<_> = (0..3).map(text).collect();
    Err(format!("{texts:?}\n{}", run.said()).into())
}
