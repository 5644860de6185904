//! Random updates as users run them: the table is right however they are made, on every path.
#![cfg(target_os = "linux")]

mod example;

use example::{built, finish, text};
use std::process::Command;

#[test]
fn the_table_is_as_it_was_after_updates_by_all_ranks() {
    let program = built::example("gups");
    for (conduit, most) in [("smp", "0"), ("tcp", "1"), ("tcp", "2"), ("usnic", "1")] {
        for ranks in ["1", "2", "4"] {
            // Each single one over a network needs its target's turn on a processor.
            for (how, bits) in [("gathered", "12"), ("single", "5")] {
                let mut job = Command::new(built::command());
                job.args(["run", "-n", ranks, "--conduit", conduit])
                    .arg(&program)
                    .args([bits, how])
                    .env_remove("GASNET_PSHM_NODES")
                    .env("GASNET_SUPERNODE_MAXSIZE", most);
                let output = finish(job);
                let printed = text(&output.stdout);
                let case = format!("{how}, {ranks} ranks over {conduit}");
                assert!(output.status.success(), "{case}: {}", text(&output.stderr));
                assert!(
                    printed.contains("and the table is right"),
                    "{case}: {printed}"
                );
            }
        }
    }
}
