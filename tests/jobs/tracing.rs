//! Traces and statistics of whole jobs, compared with what the jobs did.

use crate::support::{Done, Job, Outcome, Program, Test};
use argonet::{SharedVec, Threading, World};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const PROGRAMS: &[Program] = &[
    ("traced", traced),
    ("traced_threads", threads),
    ("traced_exit", exits),
    ("traced_crash", crashes),
    ("traced_kill", killed),
];

pub(crate) const TESTS: &[Test] = &[
    ("trace_has_each_operation_once", each_once),
    ("trace_of_all_ranks_in_one_file", shared),
    ("trace_masks_and_ranks", masks),
    ("trace_without_the_rank_itself", not_local),
    ("trace_on_standard_streams", streams),
    ("trace_for_viewers", json),
    ("trace_for_viewers_of_one_rank", json_of_each),
    ("trace_of_threads", of_threads),
    ("trace_ends_with_exit", with_exit),
    ("trace_ends_with_a_crash", with_crash),
    ("trace_of_a_killed_rank", with_kill),
    ("trace_file_that_cannot_be_opened", no_file),
    ("trace_that_cannot_be_written", full),
    ("trace_mask_that_is_none", bad_mask),
    ("stats_add_up", stats),
    ("stats_of_some_kinds_and_ranks", some_stats),
];

static PINGS: AtomicU32 = AtomicU32::new(0);
static PONGS: AtomicU32 = AtomicU32::new(0);

argonet::am! {
    fn ping(ctx, n: u32) {
        PINGS.fetch_add(1, Ordering::Relaxed);
        if n == 7 {
            ctx.reply(&pong, n).expect("a reply");
        }
    }
    fn pong(_ctx, _n: u32) { PONGS.fetch_add(1, Ordering::Relaxed); }
}

/// Shorts that are sent by each rank; every one of them has one reply.
const SHORTS: u32 = 5;

/// What every rank does with the next one.
fn work<M: Threading>(world: &World<M>, v: &SharedVec<u64>) -> Done {
    let next = world.neighbour(1);
    world.put_value(v.gptr(next, 0), 1)?;
    world.put_from(v.gptr(next, 1), &[2, 3])?;
    world.put_value(v.gptr(world.rank(), 3), 4)?;
    let mut back = [0; 3];
    world.get_into(v.gptr(next, 0), &mut back)?;
    world.fetch_add(v.gptr(next, 4), 1)?;
    for _ in 0..SHORTS {
        world.send(next, &ping, 7)?;
    }
    world.send_medium(next, &ping, 0, &[5u8; 100])?;
    world.send_long(v.gptr(next, 5), &ping, 0, &[6u64, 7])?;
    world.wait_until(|| {
        PINGS.load(Ordering::Relaxed) == SHORTS + 2 && PONGS.load(Ordering::Relaxed) == SHORTS
    })?;
    Ok(())
}

fn traced() -> Done {
    let world = World::init()?;
    let v = SharedVec::<u64>::alloc(&world, 16)?;
    world.barrier()?;
    work(&world, &v)?;
    world.barrier()?;
    world.broadcast(argonet::Rank(0), &mut [1u32; 4])?;
    Ok(world.finalise()?)
}

fn threads() -> Done {
    let world = World::builder().build_par()?;
    let v = SharedVec::<u64>::alloc(&world, 16)?;
    let next = world.neighbour(1);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (world, v) = (&world, &v);
            scope.spawn(move || {
                for n in 0..1000 {
                    world.put_value(v.gptr(next, thread), n).expect("a put");
                }
                for _ in 0..100 {
                    world.send(next, &ping, 0).expect("a message");
                }
            });
        }
    });
    world.wait_until(|| PINGS.load(Ordering::Relaxed) == 400)?;
    Ok(world.finalise()?)
}

fn exits() -> Done {
    let world = World::init()?;
    let v = SharedVec::<u64>::alloc(&world, 16)?;
    world.put_value(v.gptr(world.neighbour(1), 0), 1)?;
    println!("{}", crate::support::ENDED);
    argonet::exit(0)
}

fn crashes() -> Done {
    let world = World::init()?;
    let v = SharedVec::<u64>::alloc(&world, 16)?;
    world.barrier()?;
    if world.rank().0 == 1 {
        world.put_value(v.gptr(world.neighbour(1), 0), 1)?;
        std::process::abort();
    }
    world.wait_until(|| false)?;
    Ok(())
}

fn killed() -> Done {
    let world = World::init()?;
    let v = SharedVec::<u64>::alloc(&world, 16)?;
    world.barrier()?;
    if world.rank().0 == 1 {
        for n in 0..2000 {
            world.put_value(v.gptr(world.neighbour(1), 0), n)?;
        }
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
    }
    world.wait_until(|| false)?;
    Ok(())
}

/// A directory for one test, and a job that writes there.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().expect("a name").to_owned()
    }

    fn read(&self, name: &str) -> String {
        read(&self.path(name))
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A line of a trace that has a letter.
#[derive(Debug)]
struct Line<'t> {
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
fn line(text: &str) -> Option<Line<'_>> {
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

fn lines(text: &str) -> Vec<Line<'_>> {
    assert!(text.ends_with('\n'), "a trace ends with a whole line");
    text.lines().filter_map(line).collect()
}

/// How often a rank has a name in the trace.
fn counted(lines: &[Line<'_>], rank: u32, name: &str) -> usize {
    // Details are further lines of the same operation.
    let same = |line: &&Line<'_>| line.rank == rank && line.name == name && line.letter != 'D';
    lines.iter().filter(same).count()
}

/// What each rank of `traced` does with others, and how often.
fn expected(size: u32) -> Vec<(&'static str, usize)> {
    let shorts = SHORTS as usize;
    let (remote, local) = if size == 1 { (0, 1) } else { (1, 0) };
    vec![
        ("PUT", 2 * remote),
        ("PUT_LOCAL", 1 + 2 * local),
        ("GET", remote),
        ("GET_LOCAL", local),
        ("AMREQUEST_SHORT", shorts),
        ("AMREQUEST_MEDIUM", 1),
        ("AMREQUEST_LONG", 1),
        ("AMREPLY_SHORT", shorts),
        ("AMREQUEST_SHORT_HANDLER", shorts),
        ("AMREQUEST_MEDIUM_HANDLER", 1),
        ("AMREQUEST_LONG_HANDLER", 1),
        ("AMREPLY_SHORT_HANDLER", shorts),
        ("BARRIER_WAIT", 2),
    ]
}

fn check(lines: &[Line<'_>], size: u32, rank: u32) {
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

fn each_once() {
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

fn shared() {
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

fn letters(text: &str) -> BTreeSet<char> {
    lines(text).iter().map(|line| line.letter).collect()
}

fn masks() {
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

fn not_local() {
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

fn streams() {
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

/// The events of a trace for viewers; the closing bracket may be missing.
fn events(text: &str, is_closed: bool) -> Vec<Value> {
    let text = text.trim_end();
    assert_eq!(text.ends_with(']'), is_closed, "{text}");
    let whole = if is_closed {
        text.to_owned()
    } else {
        format!("{text}]")
    };
    serde_json::from_str(&whole).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn text<'e>(event: &'e Value, key: &str) -> &'e str {
    event[key].as_str().unwrap_or_default()
}

/// In nanoseconds, which three digits of microseconds are.
fn nanos(value: &Value) -> u64 {
    (value.as_f64().unwrap_or_else(|| panic!("no time: {value}")) * 1000.0).round() as u64
}

/// What holds for every trace for viewers.
fn check_events(events: &[Value]) {
    let mut open: BTreeMap<(u64, u64), Vec<(u64, u64, &str)>> = BTreeMap::new();
    let mut begun: BTreeMap<(u64, u64), Vec<&str>> = BTreeMap::new();
    for event in events {
        let id = |key: &str| event[key].as_u64().unwrap_or(0);
        let thread = (id("pid"), id("tid"));
        let name = text(event, "name");
        match text(event, "ph") {
            "X" => {
                let begin = nanos(&event["ts"]);
                let end = begin + nanos(&event["dur"]);
                open.entry(thread).or_default().push((begin, end, name));
            }
            "B" => begun.entry(thread).or_default().push(name),
            "E" => assert_eq!(begun.get_mut(&thread).and_then(Vec::pop), Some(name)),
            "s" | "f" => assert!(text(event, "id").starts_with("0x"), "{event}"),
            "M" | "i" => {}
            other => panic!("phase {other}: {event}"),
        }
    }
    assert!(
        begun.values().all(Vec::is_empty),
        "handlers that do not end: {begun:?}"
    );
    for spans in open.values_mut() {
        // Of two spans of a thread one holds the other, or they are apart.
        spans.sort_by_key(|&(begin, end, _)| (begin, std::cmp::Reverse(end)));
        let mut around: Vec<(u64, u64, &str)> = Vec::new();
        for &(begin, end, name) in spans.iter() {
            while around.last().is_some_and(|&(_, end, _)| end <= begin) {
                around.pop();
            }
            if let Some(outer) = around.last() {
                assert!(
                    end <= outer.1,
                    "{name} from {begin} to {end} crosses {outer:?}"
                );
            }
            around.push((begin, end, name));
        }
    }
}

/// Times at which messages leave and arrive, by their number.
fn flows(events: &[Value]) -> BTreeMap<&str, (Vec<u64>, Vec<u64>)> {
    let mut flows: BTreeMap<&str, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for event in events {
        let at = || (nanos(&event["ts"]), text(event, "id"));
        match text(event, "ph") {
            "s" => flows.entry(at().1).or_default().0.push(at().0),
            "f" => {
                assert_eq!(text(event, "bp"), "e");
                flows.entry(at().1).or_default().1.push(at().0);
            }
            _ => {}
        }
    }
    flows
}

fn json() {
    for size in [1, 2, 4] {
        let place = Place::new();
        Job::launched(size, "traced")
            .env("GASNET_TRACEFILE", &place.name("t.json"))
            .run()
            .well();
        let text = place.read("t.json");
        let events = events(&text, true);
        check_events(&events);
        let named: BTreeSet<u64> = events
            .iter()
            .filter(|event| event["name"] == "process_name")
            .filter_map(|event| event["pid"].as_u64())
            .collect();
        assert_eq!(named, (0..u64::from(size)).collect());
        for rank in 0..size {
            for (name, count) in expected(size) {
                let (name, is_local) = match name.strip_suffix("_LOCAL") {
                    Some(name) => (name, true),
                    None => (name, false),
                };
                let own = |event: &&Value| {
                    let peer = event["args"]["peer"].as_u64();
                    let is_rma = ["PUT", "GET"].contains(&name);
                    event["pid"] == rank
                        && event["name"] == name
                        && event["ph"] != "E"
                        && (!is_rma || (peer == Some(rank.into())) == is_local)
                };
                let found = events.iter().filter(own).count();
                assert_eq!(
                    found, count,
                    "{name} of rank {rank}, local {is_local}: {text}"
                );
            }
        }
        let flows = flows(&events);
        assert_eq!(flows.len(), (size * (2 * SHORTS + 2)) as usize);
        for (id, (left, arrived)) in flows {
            assert!(
                left.len() == 1 && arrived.len() == 1,
                "{id}: {left:?} {arrived:?}"
            );
            assert!(left[0] <= arrived[0], "{id} arrives before it leaves");
        }
    }
}

fn json_of_each() {
    let place = Place::new();
    Job::self_started(2, "traced")
        .env("GASNET_TRACEFILE", &place.name("%.trace"))
        .env("ARGONET_TRACE_FORMAT", "perfetto")
        .run()
        .well();
    let texts = [place.read("0.trace"), place.read("1.trace")];
    let both: Vec<Value> = texts.iter().flat_map(|text| events(text, true)).collect();
    check_events(&both);
    let flows = flows(&both);
    assert!(
        flows
            .values()
            .all(|(left, arrived)| left.len() == 1 && arrived.len() == 1)
    );
}

fn of_threads() {
    let place = Place::new();
    Job::launched(2, "traced_threads")
        .env("GASNET_TRACEFILE", &place.name("t.json"))
        .run()
        .well();
    let text = place.read("t.json");
    let events = events(&text, true);
    check_events(&events);
    for rank in 0..2 {
        let puts = events
            .iter()
            .filter(|e| e["pid"] == rank && e["name"] == "PUT");
        let mut of_thread: BTreeMap<u64, usize> = BTreeMap::new();
        puts.for_each(|put| {
            *of_thread
                .entry(put["tid"].as_u64().expect("a thread"))
                .or_default() += 1
        });
        // A thread that ends leaves its lane, not its number, to the next.
        assert_eq!(of_thread.values().collect::<Vec<_>>(), [&1000; 4]);
    }
    let flows = flows(&events);
    assert_eq!(flows.len(), 800);
    for (id, (left, arrived)) in flows {
        assert!(
            left.len() == 1 && arrived.len() == 1 && left[0] <= arrived[0],
            "{id}"
        );
    }
}

fn with_exit() {
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

fn with_crash() {
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

fn with_kill() {
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
    // What did not fit a lane has been written.
    assert!((1000..=2000).contains(&puts), "{puts}");
    let text = run("t-%", "1");
    assert_eq!(counted(&lines(&text), 1, "PUT"), 2000);
    let text = run("%.json", "1");
    let puts = events(&text, false);
    let puts = puts.iter().filter(|event| event["name"] == "PUT");
    assert_eq!(puts.count(), 2000);
}

fn no_file() {
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

fn full() {
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
    let told = outcome.err.lines().count();
    let outcome = outcome.says(&[
        "rank 0: ",
        " lines are missing in what GASNET_TRACEFILE names",
        "error 28",
    ]);
    assert_eq!(told, 1, "{outcome:#?}");
}

fn bad_mask() {
    let job = Job::launched(2, "traced").env("GASNET_TRACEMASK", "PGZ");
    job.run()
        .failed(&["GASNET_TRACEMASK", "PGZ", "GPRSWBLAXIOCDNHU"]);
    let job = Job::launched(2, "traced").env("GASNET_STATSNODES", "2-1");
    job.run().failed(&["GASNET_STATSNODES", "2-1"]);
}

/// The count and the sum behind a name in statistics.
fn row(summary: &str, name: &str) -> (u64, u64) {
    let wanted = format!("{name}:");
    let found = summary
        .lines()
        .find_map(|line| line.split_once("> ")?.1.trim_start().strip_prefix(&wanted));
    let row = found.unwrap_or_else(|| panic!("no {name} in {summary}"));
    let count = row.split_whitespace().next().and_then(|n| n.parse().ok());
    let sizes = row.split_once("sz (bytes) = ").map(|(_, after)| after);
    let total = sizes.and_then(|s| s.split_whitespace().next()?.split('/').nth(3)?.parse().ok());
    (count.expect("a count"), total.unwrap_or(0))
}

fn stats() {
    for size in [1, 2, 4] {
        let place = Place::new();
        Job::launched(size, "traced")
            .env("GASNET_STATSFILE", &place.name("s-%"))
            .run()
            .well();
        for rank in 0..size {
            let summary = place.read(&format!("s-{rank}"));
            assert!(
                summary
                    .lines()
                    .all(|line| line.starts_with(&format!("{rank}> ")))
            );
            assert_eq!(row(&summary, "PUT"), (3, 32));
            assert_eq!(row(&summary, "Total puts"), (3, 32));
            assert_eq!(row(&summary, "GET"), (1, 24));
            assert_eq!(row(&summary, "ATOMIC"), (1, 8));
            let shorts = u64::from(SHORTS);
            assert_eq!(row(&summary, "AMREQUEST_SHORT"), (shorts, 0));
            assert_eq!(row(&summary, "AMREPLY_SHORT_HANDLER"), (shorts, 0));
            assert_eq!(row(&summary, "AMREQUEST_MEDIUM_HANDLER"), (1, 100));
            // What is sent: requests and replies, 100 and 16 bytes of payload.
            assert_eq!(row(&summary, "Total AM's"), (2 * shorts + 2, 116));
            assert_eq!(row(&summary, "Total barriers").0, 2);
        }
    }
}

fn some_stats() {
    let place = Place::new();
    Job::launched(3, "traced")
        .env("GASNET_STATSFILE", &place.name("s"))
        .env("GASNET_STATSNODES", "0,2")
        .env("GASNET_STATSMASK", "^A")
        .run()
        .well();
    let summary = place.read("s");
    let ranks: BTreeSet<&str> = summary.lines().map(|line| &line[..2]).collect();
    assert_eq!(ranks, BTreeSet::from(["0>", "2>"]));
    assert!(
        !summary.contains("AMREQUEST") && summary.contains(" GET:"),
        "{summary}"
    );
}
