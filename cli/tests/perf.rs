//! `argonet perf` as a program: its measurements, its files, its errors.
//!
//! No figure is asserted: figures depend on the machine and its load.
#![cfg(target_os = "linux")]

#[path = "../../tests/example/mod.rs"]
mod example;

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use example::{Scratch, finish, text, utf8};

fn perf(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_argonet"));
    command.arg("perf").args(args);
    finish(command)
}

/// The least of everything.
const QUICK: [&str; 8] = [
    "--chunks",
    "1",
    "--jobs",
    "1",
    "--idle",
    "0.1",
    "--messages",
    "5",
];

/// Measures some metrics, and returns the standard output of a run that ends well.
fn measured(args: &[&str]) -> String {
    let run = perf(&[&QUICK[..], args].concat());
    let errors = text(&run.stderr);
    assert!(run.status.success(), "{args:?}: {errors}");
    assert_eq!(errors, "", "{args:?}");
    text(&run.stdout)
}

fn names(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|one| one["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn every_metric_is_measured_and_written() {
    let scratch = Scratch::new("perf");
    let [json, svg] = ["out.json", "out.svg"].map(|name| scratch.0.join(name));
    let sizes = ["--sizes", "8,64KiB,1MiB"];
    let listed = text(&perf(&[&sizes[..], &["--list"]].concat()).stdout);
    let listed: Vec<&str> = listed
        .lines()
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert!(listed.len() > 50, "{listed:?}");
    for name in [
        "am-short-rt",
        "put@65536",
        "threads-am-short",
        "hello-64",
        "idle",
    ] {
        assert!(listed.contains(&name), "{name}: {listed:?}");
    }
    let files = [
        "--json",
        utf8(&json),
        "--svg",
        utf8(&svg),
        "--commit",
        "abc123",
    ];
    let table = measured(&[&sizes[..], &files].concat());
    assert!(table.contains("AM short round trip"), "{table}");

    let document: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert_eq!(document["schema"], "argonet-perf-1");
    assert_eq!(document["commit"], "abc123");
    assert_eq!([&document["ranks"], &document["chunks"]], [2, 1]);
    assert!(document["machine"]["kernel"].is_string());
    let all = [names(&document["metrics"]), names(&document["jobs"])].concat();
    let mut missing = listed.clone();
    missing.retain(|name| !all.iter().any(|n| n == name));
    assert!(
        missing.is_empty() && all.len() == listed.len(),
        "{missing:?} of {all:?}"
    );
    for metric in document["metrics"].as_array().unwrap() {
        let positive = |value: &Value| value.as_f64().is_some_and(|v| v > 0.0);
        for figure in ["best", "median", "p10", "p90", "per_second"] {
            assert!(positive(&metric["ours"][figure]), "{figure}: {metric}");
            assert!(positive(&metric["limit"][figure]), "{figure}: {metric}");
        }
        for ratio in ["median", "p10", "p90", "best"] {
            assert!(positive(&metric["ratio"][ratio]), "{ratio}: {metric}");
        }
        assert_eq!(
            metric["goal"].is_null(),
            metric["holds"].is_null(),
            "{metric}"
        );
    }
    for job in document["jobs"].as_array().unwrap() {
        assert!(job["median"].as_f64().is_some_and(|v| v > 0.0), "{job}");
    }
    let svg = fs::read_to_string(svg).unwrap();
    for curve in [
        "AM medium echo",
        "AM long flood",
        "put: limit",
        "get: limit",
        "abc123",
    ] {
        assert!(svg.contains(curve), "{curve}");
    }
}

/// Every metric over connections beside its own limits; jobs of many ranks are the other test's.
#[test]
fn over_connections() {
    let over = ["--conduit", "tcp", "--sizes", "8,8KiB"];
    let listed = text(&perf(&[&over[..], &["--list"]].concat()).stdout);
    let listed = listed.lines().filter_map(|l| l.split_whitespace().next());
    let of_ranks = ["am-", "put", "get", "fetch", "b", "reduce-all-8"];
    let many = ["barrier-4", "barrier-8", "reduce-all-8-ranks"];
    let wanted =
        |name: &&str| of_ranks.iter().any(|of| name.starts_with(of)) && !many.contains(name);
    let wanted: Vec<&str> = listed.filter(wanted).collect();
    let only = format!("{},hello-2", wanted.join(","));
    let json = measured(&[&over[..], &["--only", &only, "--json"]].concat());
    let document: Value = serde_json::from_str(&json).expect("nothing but JSON");
    assert_eq!(document["conduit"], "tcp");
    assert!(wanted.len() > 20, "{wanted:?}");
    assert_eq!(names(&document["metrics"]), wanted);
    assert_eq!(names(&document["jobs"]), ["hello-2"]);
    for metric in document["metrics"].as_array().unwrap() {
        let limit = metric["limit_is"].as_str().unwrap();
        assert!(limit.starts_with("raw sockets"), "{metric}");
        let ratio = &metric["ratio"]["median"];
        assert!(ratio.as_f64().is_some_and(|v| v > 0.0), "{metric}");
    }
}

#[test]
fn other_forms_of_the_report() {
    let only = ["--only", "put-8,par-put-*,idle"];
    let json = measured(&[&only[..], &["--json"]].concat());
    let document: Value = serde_json::from_str(&json).expect("nothing but JSON");
    assert_eq!(names(&document["metrics"]), ["put-8", "par-put-8"]);
    assert_eq!(names(&document["jobs"]), ["idle"]);
    let page = measured(&[&only[..], &["--markdown", "--ranks", "3"]].concat());
    let rows = page.lines().filter(|line| line.starts_with("| "));
    // Two tables with two lines of heading each.
    assert_eq!(rows.count(), 2 + 2 + 2 + 1, "{page}");
    let one = measured(&["--only", "threads*", "--threads", "1", "--json"]);
    let document: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(document["metrics"][0]["goal"], Value::Null, "{one}");
}

/// Jobs read the file that --tune writes, also those in which it measures itself.
#[test]
fn a_tuning_file_is_written_and_read() {
    let scratch = Scratch::new("perf-tune");
    let file = scratch.0.join("coll.tune");
    let run = perf(&[
        "--tune",
        "--chunks",
        "1",
        "--ranks",
        "3",
        "--out",
        utf8(&file),
    ]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(run.stdout.is_empty());
    let written = fs::read_to_string(&file).unwrap();
    for part in [
        "3 ranks in 1 neighborhood(s)",
        "gather of 512 B",
        "\nARGONET_COLL_TREE_LIMIT=",
        // Ranks of one host exchange directly, for any limit.
        "# GASNET_COLL_EXCHANGE_DISSEM_LIMIT_PER_THREAD: in this job",
    ] {
        assert!(written.contains(part), "{part}: {written}");
    }
    let value = |of: &str, name: &str| {
        let start = format!("{name}=");
        let mut lines = of.lines().filter_map(|line| line.strip_prefix(&start));
        lines.next().map(str::to_owned)
    };
    // A job that has read a file begins with its settings, unless the environment has others.
    fs::write(
        &file,
        "ARGONET_COLL_TREE_LIMIT = 3 KB\nGASNET_COLL_SCRATCH_SIZE=7777\n",
    )
    .unwrap();
    let mut again = Command::new(env!("CARGO_BIN_EXE_argonet"));
    again
        .args(["run", "-n", "3", env!("CARGO_BIN_EXE_argonet")])
        .args(["perf", "--tune", "--chunks", "1"])
        .env("GASNET_COLL_TUNING_FILE", &file)
        .env("GASNET_COLL_SCRATCH_SIZE", "1234567");
    let run = finish(again);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let written = text(&run.stdout);
    let heads: Vec<_> = written
        .lines()
        .filter(|line| line.starts_with("#     ") && !line.contains("against"))
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert!(
        heads.contains(&"3072") && heads.contains(&"1234567"),
        "{heads:?}: {written}"
    );
    assert!(
        value(&written, "ARGONET_COLL_TREE_LIMIT").is_some(),
        "{written}"
    );
}

#[test]
fn bad_options() {
    let scratch = Scratch::new("perf-bad");
    let nowhere = scratch.0.join("no/where");
    let nowhere = utf8(&nowhere);
    for (args, message) in [
        (
            &["--conduit", "tpc"][..],
            "invalid value 'tpc' for '--conduit <NAME>'\n  [possible values: smp, tcp, portals, usnic, gni, ofi]",
        ),
        (&["--only", "am-shrt"], "there is no metric \"am-shrt\""),
        (
            &["--sizes", "8,5MiB"],
            "a size from 1 to 4194304 bytes is needed",
        ),
        (
            &["--sizes", "0"],
            "a size from 1 to 4194304 bytes is needed",
        ),
        (&["--chunks", "0"], "a number from 1 to 1,000,000 is needed"),
        (
            &["--idle", "0"],
            "a number of seconds from 0.1 to 3600 is needed",
        ),
        (&["--ranks", "1"], "1 is not in 2.."),
        (&["--messages", "0"], "0 is not in 1..=1000000"),
        (&["--out", nowhere], "not provided:\n  --tune"),
        (
            &["--tune", "--only", "put-8"],
            "'--tune' cannot be used with",
        ),
        (&["--tune", "--chunks", "1", "--out", nowhere], "writing "),
        (&["--threads", "0"], "0 is not in 1..=256"),
        (
            &["--only", "put-8", "--svg", nowhere],
            "has a curve by size",
        ),
        (
            &["--only", "put-8", "--chunks", "1", "--json", nowhere],
            "writing ",
        ),
    ] {
        let run = perf(args);
        let errors = text(&run.stderr);
        assert!(!run.status.success(), "{args:?}");
        assert_eq!(errors.matches(message).count(), 1, "{args:?}: {errors}");
        assert!(run.stdout.is_empty(), "{args:?}");
    }
    let mut launched = Command::new(env!("CARGO_BIN_EXE_argonet"));
    launched.args(["run", "-n", "1", env!("CARGO_BIN_EXE_argonet"), "perf"]);
    let run = finish(launched);
    assert!(!run.status.success());
    assert!(text(&run.stderr).contains("start it without `argonet run`"));
}
