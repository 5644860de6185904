//! Traces as lines of text.

use super::{Place, expected};
use crate::support::Job;
use std::collections::{BTreeMap, BTreeSet};

/// A line of a trace that has a letter.
#[derive(Debug)]
pub(super) struct Line<'t> {
    rank: u32,
    thread: &'t str,
    micros: u64,
    letter: char,
    name: &'t str,
    rest: &'t str,
}

impl Line<'_> {
    /// The number behind `what` and an equals sign.
    fn number(&self, what: &str) -> Option<u64> {
        let (_, after) = self.rest.split_once(&format!("{what} = "))?;
        let digits = after.trim_start();
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        digits[..end].parse().ok()
    }
}

/// `0(2f03) 0.001532s> (P) PUT: sz = ...`, or a heading, which is `None`.
pub(super) fn line(text: &str) -> Option<Line<'_>> {
    let bad = || -> ! { panic!("no line of a trace: {text:?}") };
    let (who, rest) = text.split_once(['(', '>']).unwrap_or_else(|| bad());
    let Ok(rank) = who.parse() else { bad() };
    if text[who.len()..].starts_with('>') {
        return None;
    }
    let Some((thread, rest)) = rest.split_once(") ") else {
        bad()
    };
    let Some((time, rest)) = rest.split_once("s> (") else {
        bad()
    };
    let Some((letter, rest)) = rest.split_once(") ") else {
        bad()
    };
    let (seconds, micros) = time.split_once('.').unwrap_or_else(|| bad());
    assert_eq!(micros.len(), 6, "{text}");
    let number = |digits: &str| digits.parse::<u64>().unwrap_or_else(|_| bad());
    let (name, rest) = rest.split_once(": ").unwrap_or((rest, ""));
    Some(Line {
        rank,
        thread,
        micros: number(seconds) * 1_000_000 + number(micros),
        letter: letter.chars().next().unwrap_or_else(|| bad()),
        name,
        rest,
    })
}

pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    assert!(text.ends_with('\n'), "a trace ends with a whole line");
    text.lines().filter_map(line).collect()
}

/// Number of lines of a rank with a name in the trace.
pub(super) fn counted(lines: &[Line<'_>], rank: u32, name: &str) -> usize {
    // Details are further lines of the same operation.
    let same = |line: &&Line<'_>| line.rank == rank && line.name == name && line.letter != 'D';
    lines.iter().filter(same).count()
}

pub(super) fn check(lines: &[Line<'_>], size: u32, rank: u32) {
    for (name, count) in expected(size) {
        assert_eq!(
            counted(lines, rank, name),
            count,
            "{name} of rank {rank}: {lines:#?}"
        );
    }
    let of_rank = || lines.iter().filter(|line| line.rank == rank);
    let atomics = of_rank().filter(|line| line.letter == 'R').count();
    assert_eq!(atomics, 1);
    let next = u64::from((rank + 1) % size);
    let before = u64::from((rank + size - 1) % size);
    for line in of_rank() {
        let peer = match line.name {
            "PUT" | "GET" | "AMREQUEST_SHORT" | "AMREPLY_SHORT_HANDLER" => next,
            "PUT_LOCAL" | "GET_LOCAL" => rank.into(),
            "AMREPLY_SHORT" | "AMREQUEST_SHORT_HANDLER" => before,
            _ => continue,
        };
        if line.letter != 'D' {
            assert_eq!(line.number("node"), Some(peer), "{line:?}");
        }
    }
    let bytes: u64 = of_rank()
        .filter(|line| line.letter == 'P')
        .filter_map(|line| line.number("sz"))
        .sum();
    assert_eq!(bytes, 8 + 16 + 8);
    let mut last = BTreeMap::new();
    for line in of_rank() {
        let before = last.insert(line.thread, line.micros).unwrap_or(0);
        assert!(before <= line.micros, "times go back: {line:?}");
    }
}

pub(super) fn each_once() {
    for size in [1, 2, 4] {
        for job in [
            Job::launched(size, "traced"),
            Job::self_started(size, "traced"),
        ] {
            let place = Place::new();
            job.env("GASNET_TRACEFILE", &place.name("t-%")).run().well();
            for rank in 0..size {
                let text = place.read(&format!("t-{rank}"));
                assert!(text.starts_with(&format!("{rank}> Program ")), "{text}");
                let lines = lines(&text);
                assert!(lines.iter().all(|line| line.rank == rank));
                check(&lines, size, rank);
            }
        }
    }
}

pub(super) fn shared() {
    let place = Place::new();
    std::fs::write(place.path("t"), "left from before\n").expect("a file");
    Job::launched(4, "traced")
        .env("GASNET_TRACEFILE", &place.name("t"))
        .run()
        .well();
    let text = place.read("t");
    let lines = lines(&text);
    for rank in 0..4 {
        check(&lines, 4, rank);
        let magic = format!("I am thread {rank} of 4 on node {rank} of 4");
        assert!(text.contains(&magic), "{text}");
    }
}

pub(super) fn letters(text: &str) -> BTreeSet<char> {
    lines(text).iter().map(|line| line.letter).collect()
}

pub(super) fn masks() {
    let run = |mask: &str| {
        let place = Place::new();
        Job::launched(2, "traced")
            .env("GASNET_TRACEFILE", &place.name("t-%"))
            .env("GASNET_TRACENODES", "1")
            .env("GASNET_TRACEMASK", mask)
            .run()
            .well();
        assert!(!place.path("t-0").exists(), "rank 0 does not trace");
        place.read("t-1")
    };
    assert_eq!(letters(&run("GP")), BTreeSet::from(['G', 'P', 'U']));
    assert_eq!(letters(&run("U")), BTreeSet::from(['U']));
    let text = run("^AD");
    let found = letters(&text);
    assert!(!found.contains(&'A') && !found.contains(&'D'), "{found:?}");
    assert!(
        found.is_superset(&BTreeSet::from(['B', 'G', 'P', 'R', 'S', 'W', 'O'])),
        "{found:?}"
    );
    assert!(
        text.contains("1> GASNET_TRACEMASK: GPRSWBLXIOCNHU\n"),
        "{text}"
    );
}

pub(super) fn not_local() {
    let place = Place::new();
    Job::launched(2, "traced")
        .env("GASNET_TRACEFILE", &place.name("t-%"))
        .env("GASNET_STATSFILE", &place.name("s-%"))
        .env("GASNET_TRACELOCAL", "0")
        .run()
        .well();
    let text = place.read("t-0");
    let lines = lines(&text);
    assert_eq!(counted(&lines, 0, "PUT_LOCAL"), 0);
    assert_eq!(counted(&lines, 0, "PUT"), 2);
    // They are counted all the same.
    assert!(
        place
            .read("s-0")
            .contains(" PUT:                              3  ")
    );
}

pub(super) fn streams() {
    let outcome = Job::launched(2, "traced")
        .env("GASNET_TRACEFILE", "stdout")
        .run();
    let text: String = outcome
        .out
        .lines()
        .filter(|line| *line != crate::support::ENDED)
        .map(|line| format!("{line}\n"))
        .collect();
    let lines_of = lines(&text);
    (0..2).for_each(|rank| check(&lines_of, 2, rank));
    outcome.well();
    for name in ["stderr", "-"] {
        let outcome = Job::launched(2, "traced")
            .env("GASNET_TRACEFILE", name)
            .run();
        let lines = lines(&outcome.err);
        (0..2).for_each(|rank| check(&lines, 2, rank));
    }
}
