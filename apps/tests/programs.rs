//! The programs as users run them.
#![cfg(target_os = "linux")]

#[path = "../../tests/example/mod.rs"]
mod example;

use example::{built, finish, text};
use std::process::Command;

/// Conduits, and how many ranks share memory at most.
const PATHS: [(&str, &str); 4] = [("smp", "0"), ("tcp", "1"), ("tcp", "2"), ("usnic", "1")];

/// Runs a program on several paths, with so many ranks each; each job says this once.
#[track_caller]
fn each_says(name: &str, args: &[&str], ranks: &[u32], says: impl Fn(u32) -> String) {
    for (path, ranks) in PATHS
        .iter()
        .flat_map(|path| ranks.iter().map(move |ranks| (path, *ranks)))
    {
        let (conduit, most) = path;
        let mut job = Command::new(built::command());
        job.args(["run", "-n", &ranks.to_string(), "--conduit", conduit])
            .arg(built::program("argonet-apps", name))
            .args(args)
            .env_remove("GASNET_PSHM_NODES")
            .env("GASNET_SUPERNODE_MAXSIZE", most);
        let output = finish(job);
        let (printed, errors) = (text(&output.stdout), text(&output.stderr));
        let case = format!("{name} {args:?}, {ranks} ranks over {conduit}: {printed}{errors}");
        assert!(output.status.success(), "{case}");
        assert_eq!(printed.matches(&says(ranks)).count(), 1, "{case}");
    }
}

#[test]
fn a_service_answers_its_clients() {
    each_says("service", &["40"], &[1, 3], |ranks| {
        format!(
            "{} clients made 40 requests each; all counts are right",
            8 * ranks
        )
    });
}

#[test]
fn tasks_follow_chains_through_all_ranks() {
    each_says("chase", &["50", "100"], &[1, 2, 3], |ranks| {
        format!("50 tasks on each of {ranks} ranks are right")
    });
    // No tasks, and tasks without steps.
    each_says("chase", &["0"], &[2], |_| "0 tasks on each".into());
    each_says("chase", &["3", "0"], &[2], |_| "3 tasks on each".into());
}
