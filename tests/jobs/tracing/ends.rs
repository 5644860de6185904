//! Ends of all kinds, and files and masks that are none.

use super::Place;
use super::lines::{counted, lines};
use super::viewers::{check_events, events};
use crate::support::{Job, Outcome};

pub(super) fn with_exit() {
    let place = Place::new();
    Job::launched(2, "traced_exit")
        .env("GASNET_TRACEFILE", &place.name("t-%"))
        .env("GASNET_STATSFILE", &place.name("s-%"))
        .run()
        .well();
    for rank in 0..2 {
        let text = place.read(&format!("t-{rank}"));
        assert_eq!(counted(&lines(&text), rank, "PUT"), 1, "{text}");
        let summary = place.read(&format!("s-{rank}"));
        assert!(
            summary.contains(" PUT:                              1  "),
            "{summary}"
        );
        assert!(summary.ends_with("s\n"), "{summary}");
    }
    let place = Place::new();
    let job = Job::launched(2, "traced_exit").env("GASNET_TRACEFILE", &place.name("%.json"));
    job.run().well();
    check_events(&events(&place.read("0.json"), true));
}

pub(super) fn with_crash() {
    let place = Place::new();
    let outcome = Job::launched(2, "traced_crash")
        .env("GASNET_TRACEFILE", &place.name("t-%"))
        .env("GASNET_STATSFILE", &place.name("s-%"))
        .run();
    outcome.failed(&["rank 1"]);
    let text = place.read("t-1");
    assert_eq!(counted(&lines(&text), 1, "PUT"), 1, "{text}");
    let summary = place.read("s-1");
    assert!(
        summary.contains(" PUT:                              1  "),
        "{summary}"
    );
}

pub(super) fn with_kill() {
    let run = |name: &str, flush: &str| {
        let place = Place::new();
        let outcome: Outcome = Job::launched(2, "traced_kill")
            .env("GASNET_TRACEFILE", &place.name(name))
            .env("GASNET_TRACEFLUSH", flush)
            .run();
        outcome.failed(&["rank 1"]);
        place.read(&name.replace('%', "1"))
    };
    let text = run("t-%", "0");
    let puts = counted(&lines(&text), 1, "PUT");
    // Lines beyond the buffer of their class have been written.
    assert!((1000..=2000).contains(&puts), "{puts}");
    let text = run("t-%", "1");
    assert_eq!(counted(&lines(&text), 1, "PUT"), 2000);
    let text = run("%.json", "1");
    let puts = events(&text, false);
    let puts = puts.iter().filter(|event| event["name"] == "PUT");
    assert_eq!(puts.count(), 2000);
}

pub(super) fn no_file() {
    for (setting, job) in [
        ("GASNET_TRACEFILE", Job::launched(2, "traced")),
        ("GASNET_STATSFILE", Job::self_started(2, "traced")),
    ] {
        let name = "/nowhere/at/all/%";
        let outcome = job.env(setting, name).run();
        outcome.failed(&[
            setting,
            "/nowhere/at/all/",
            "No such file or directory",
            "rank ",
        ]);
    }
    let outcome = Job::launched(2, "traced")
        .env("GASNET_TRACEFILE", "/")
        .run();
    outcome.failed(&["GASNET_TRACEFILE", "rank 0", "Is a directory"]);
}

pub(super) fn full() {
    let job = Job::launched(1, "traced").env("GASNET_TRACEFILE", "/dev/full");
    // The beginning of a trace for viewers is written at once.
    let early = Job::launched(1, "traced")
        .env("GASNET_TRACEFILE", "/dev/full")
        .env("ARGONET_TRACE_FORMAT", "perfetto");
    early
        .run()
        .failed(&["GASNET_TRACEFILE", "/dev/full", "No space left"]);
    let outcome = job.run();
    assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
    let lines = outcome.err.lines().count();
    let outcome = outcome.says(&[
        "rank 0: ",
        " lines are missing in the file of GASNET_TRACEFILE",
        "error 28",
    ]);
    assert_eq!(lines, 1, "{outcome:#?}");
}

pub(super) fn bad_mask() {
    let job = Job::launched(2, "traced").env("GASNET_TRACEMASK", "PGZ");
    job.run()
        .failed(&["GASNET_TRACEMASK", "PGZ", "GPRSWBLAXIOCDNHU"]);
    let job = Job::launched(2, "traced").env("GASNET_STATSNODES", "2-1");
    job.run().failed(&["GASNET_STATSNODES", "2-1"]);
}
