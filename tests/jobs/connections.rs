//! Reports of a rank about its connections: to `argonet info`, in the report of a job that hangs,
//! in its statistics.

use std::collections::HashSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use argonet::{Rank, World};

use crate::built;
use crate::support::{Done, Job, Program, Test};

pub(crate) const TESTS: &[Test] = &[
    ("connections_of_a_live_job_and_strangers_at_its_doors", live),
    ("connections_of_another_process_are_none", elsewhere),
    ("connections_datagrams_of_strangers_are_counted", datagrams),
];

pub(crate) const PROGRAMS: &[Program] = &[("visited", visited)];

/// Ports at which this process listens.
fn ports() -> Vec<u16> {
    listening("tcp", "0A")
}

/// Ports of this process of a protocol that are in one state.
fn listening(protocol: &str, state: &str) -> Vec<u16> {
    let entries = fs::read_dir("/proc/self/fd").expect("/proc");
    let links = entries
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    let files: HashSet<String> = links
        .map(|link| link.to_string_lossy().into_owned())
        .collect();
    let table = fs::read_to_string(format!("/proc/self/net/{protocol}")).expect("/proc");
    let rows = table.lines().skip(1);
    let rows = rows.map(|row| row.split_whitespace().collect::<Vec<_>>());
    let own = rows.filter(|row| row[3] == state && files.contains(&format!("socket:[{}]", row[9])));
    let port = |row: Vec<&str>| u16::from_str_radix(row[1].split_once(':')?.1, 16).ok();
    own.filter_map(port).collect()
}

/// All send to rank 0, which then waits until its standard input ends, and the others for it.
fn visited() -> Done {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    static ENDED: AtomicBool = AtomicBool::new(false);
    let mut builder = World::builder();
    let take = builder.am("take", |_, _: u32| TAKEN.store(true, Ordering::Relaxed));
    let world = builder.build()?;
    if world.rank() == Rank(1) {
        world.send(Rank(0), &take, 1)?;
    }
    if world.rank() == Rank(0) {
        world.wait_until(|| TAKEN.load(Ordering::Relaxed))?;
        // A socket for datagrams is in state 07 when it listens.
        let all = [ports(), listening("udp", "07")].concat();
        eprintln!("listens {}", all[0]);
        let reader = std::thread::spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            ENDED.store(true, Ordering::Release);
        });
        // Meanwhile it answers the door.
        world.wait_until(|| ENDED.load(Ordering::Acquire))?;
        reader.join().expect("a reader");
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

/// Output of `argonet info --connections` for a process and its descendants.
fn info(pid: &str) -> String {
    info_of("--connections", pid)
}

/// Output of `argonet info` with this option.
pub(crate) fn info_of(option: &str, pid: &str) -> String {
    let mut info = Command::new(built::command());
    let output = info.args(["info", option, "--pid", pid]).output();
    let output = output.expect("argonet info");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The number in front of `what` in the line of rank 0.
fn number(text: &str, what: &str) -> u64 {
    let line = text.lines().find(|line| line.contains("rank 0 of 3: "));
    let line = line.unwrap_or_else(|| panic!("no rank 0 in {text}"));
    let before = line.split_once(what).map(|(before, _)| before);
    let word = before.and_then(|before| before.trim_end().rsplit([' ', '(']).next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

const STRANGERS: [(&str, u64); 3] = [
    ("of another protocol", 3),
    ("closed by the other end", 2),
    ("dropped", 5),
];

fn live() {
    let place = tempfile::tempdir().expect("a directory");
    let statistics = place.path().join("statistics-%");
    let job = Job::launched(3, "visited")
        .env("ARGONET_CONDUIT", "tcp")
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .env("ARGONET_STALL_TIMEOUT", "0.2")
        .env("GASNET_STATSFILE", statistics.to_str().expect("a name"));
    let outcome = job.run_with(|talk| {
        let line = talk.line_with("listens ");
        let port: u16 = line["listens ".len()..].parse().expect("a port");
        let pid = talk.pid.as_raw_nonzero().to_string();
        // The watchdog bounds these.
        let before = loop {
            let text = info(&pid);
            assert_eq!(text.matches("process ").count(), 3, "{text}");
            if number(&text, "peers used") == 2 && number(&text, " connections;") == 2 {
                break text;
            }
        };
        assert_eq!(number(&before, "dropped"), 0, "{before}");
        for n in 0..5 {
            let mut stranger = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            if n < 3 {
                stranger
                    .write_all(b"GET / HTTP/1.1\r\n\r\n")
                    .expect("it is accepted");
                // It is closed, or reset because of unread bytes.
                let answered = stranger.read(&mut [0; 64]).unwrap_or(0);
                assert_eq!(answered, 0, "strangers are not answered");
            }
        }
        let after = loop {
            let text = info(&pid);
            if number(&text, "dropped") >= 5 {
                break text;
            }
        };
        for (what, count) in STRANGERS {
            assert_eq!(number(&after, what), count, "{what} in {after}");
        }
        let came = |text: &str| number(text, " came");
        assert_eq!(came(&after), came(&before) + 5, "{before}{after}");
        assert_eq!(
            number(&after, " proved"),
            number(&before, " proved"),
            "{after}"
        );
        // A rank keeps a pointer for each rank, and more for the two that were used; it reports
        // both.
        let (each, used) = (
            number(&after, "for each rank"),
            number(&after, "more for each peer used"),
        );
        assert!(each <= 64 && used > each, "{after}");
        assert_eq!(number(&after, " bytes: "), 3 * each + 2 * used, "{after}");
        // The report of a job that hangs has them, too, and the contents of the connections.
        loop {
            let line = talk.line_with("  connections of rank 0 of 3: ");
            if number(&line, "dropped") == 5 {
                assert_eq!(number(&line, " sockets"), 2, "{line}");
                assert!(number(&line, " bytes, ") > 0, "{line}");
                break;
            }
        }
    });
    assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
    let path = place.path().join("statistics-0");
    let text = fs::read_to_string(&path).expect("statistics");
    for (what, count) in STRANGERS {
        assert_eq!(number(&text, what), count, "{what} in {text}");
    }
}

/// Junk at the socket of a rank: `info`, the report of a job that hangs and the statistics count
/// it.
fn datagrams() {
    for conduit in ["portals", "usnic"] {
        datagrams_over(conduit);
    }
}

/// The lines about sockets of ranks; there are others of connections over usnic.
fn sockets(info: &str) -> String {
    let of_socket = |line: &&str| line.contains(": at its socket: ");
    info.split_inclusive('\n').filter(of_socket).collect()
}

fn datagrams_over(conduit: &str) {
    let place = tempfile::tempdir().expect("a directory");
    let statistics = place.path().join("statistics-%");
    let job = Job::launched(3, "visited")
        .env("ARGONET_CONDUIT", conduit)
        .env("ARGONET_PORTALS_INTERFACE", "udp")
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .env("ARGONET_STALL_TIMEOUT", "0.2")
        .env("GASNET_STATSFILE", statistics.to_str().expect("a name"));
    let junk: [&[u8]; 4] = [b"", b"hello", &[0; 100], &[0xff; 1400]];
    let (what, count) = ("of another protocol", junk.len() as u64);
    let outcome = job.run_with(|talk| {
        let line = talk.line_with("listens ");
        let port: u16 = line["listens ".len()..].parse().expect("a port");
        let pid = talk.pid.as_raw_nonzero().to_string();
        let before = sockets(&info(&pid));
        assert_eq!(before.matches("process ").count(), 3, "{before}");
        assert_eq!(number(&before, "dropped"), 0, "{before}");
        let stranger = UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
        for bytes in junk {
            let sent = stranger.send_to(bytes, ("127.0.0.1", port));
            assert_eq!(sent.expect("it is sent"), bytes.len());
        }
        // The watchdog bounds this.
        let after = loop {
            let text = sockets(&info(&pid));
            if number(&text, "dropped") >= count {
                break text;
            }
        };
        assert_eq!(number(&after, what), count, "{after}");
        loop {
            let line = talk.line_with("  datagrams of rank 0 of 3: ");
            if number(&line, "dropped") == count {
                assert_eq!(number(&line, what), count, "{line}");
                break;
            }
        }
    });
    assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
    let path = place.path().join("statistics-0");
    let text = fs::read_to_string(&path).expect("statistics");
    let line = text
        .lines()
        .find(|line| line.contains("datagrams of rank 0 of 3: "));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(number(line, what), count, "{line}");
}

fn elsewhere() {
    // `cat` has no children: other tests' jobs descend from most processes that there are.
    let mut stranger = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("cat");
    let pid = stranger.id().to_string();
    let text = info(&pid);
    drop(stranger.stdin.take());
    stranger.wait().expect("cat has ended");
    assert!(
        text.contains(&format!("no rank of process {pid} makes connections")),
        "{text}"
    );
}
