//! The report of the heap: at the end of the process where `GASNET_MALLOCFILE` asks for it, and on
//! demand.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::heap::table::{self, Table};
use crate::job;

/// Blocks that are listed: the others are counted.
const MOST_LISTED: usize = 1000;

/// Lines about counts and, if wanted, each block that is not freed.
fn text(table: &Table, lists: bool) -> String {
    let stats = table.stats();
    let place = match job::rank() {
        Some(rank) => format!("rank {rank}"),
        None => format!("process {}", std::process::id()),
    };
    let mut text = format!(
        "argonet: {place}: checked memory\n\
         allocated: {} objects, {} bytes\nfreed: {} objects, {} bytes\n\
         live: {} objects, {} bytes; at most {} objects, {} bytes\noverhead: {} bytes\n",
        stats.allocated_objects,
        stats.allocated_bytes,
        stats.freed_objects,
        stats.freed_bytes,
        stats.live_objects,
        stats.live_bytes,
        stats.live_objects_max,
        stats.live_bytes_max,
        stats.overhead_bytes,
    );
    let live = table
        .blocks
        .iter()
        .filter(|(_, block)| block.freed.is_none());
    for (address, block) in live.take(if lists { MOST_LISTED } else { 0 }) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "not freed: {} bytes at {address:#x}, allocated at {}",
            block.bytes, block.allocated
        );
    }
    if lists && stats.live_objects as usize > MOST_LISTED {
        let more = stats.live_objects as usize - MOST_LISTED;
        let _ = writeln!(text, "not freed: {more} more");
    }
    text
}

/// Writes to a file, in whose name `%` is the rank, or to `stdout`, `stderr` or `-`, which is the
/// latter.
pub(super) fn write(table: &Table, file: &str, lists: bool) {
    let text = text(table, lists);
    let rank = job::rank().unwrap_or(0).to_string();
    let written = match file {
        "stdout" => std::io::stdout().write_all(text.as_bytes()),
        "stderr" | "-" => std::io::stderr().write_all(text.as_bytes()),
        _ => std::fs::write(file.replace('%', &rank), text),
    };
    if let Err(error) = written {
        eprintln!("argonet: the report of memory cannot be written to {file}: {error}");
    }
}

/// Reports once, at the end of this rank that it asks for itself.
pub(crate) fn report_at_end() {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    let Some(table) = table::find() else {
        return;
    };
    let Some(file) = table.options.file.clone() else {
        return;
    };
    let wanted = table.options.nodes.contains(job::rank().unwrap_or(0));
    if wanted && !REPORTED.swap(true, Ordering::Relaxed) {
        write(&table, &file, true);
    }
}

extern "C" fn at_exit_of_process() {
    report_at_end();
}

/// Has that done when the process ends by `exit` too.
pub(super) fn at_exit() {
    // SAFETY: a function that lives as long as the process, or at least as this library.
    if unsafe { libc::atexit(at_exit_of_process) } != 0 {
        eprintln!(
            "argonet: memory is not reported if the program ends by exit: no room for another handler"
        );
    }
}
