//! Flow control over networks, as users see it: reports of a live job, the file of statistics,
//! settings that do not fit.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use argonet::World;

use crate::built;
use crate::support::{Done, Job, Program, Test};

pub(crate) const TESTS: &[Test] = &[
    ("credits_of_a_live_job_and_its_file", live),
    (
        "credits_that_do_not_fit_are_refused_with_their_sums",
        wishes,
    ),
    ("credits_of_none_name_their_setting", none),
    ("credits_can_be_turned_off", off),
];

pub(crate) const PROGRAMS: &[Program] = &[("credited", credited)];

/// Rounds of a long payload, and short ones that do not wait for each other where long ones do.
const ROUNDS: u64 = 64;
const SHORT_ONES: u64 = 8;

/// All send rank 0 more than their shares; it waits until its standard input ends.
fn credited() -> Done {
    let seen = Arc::new(AtomicU64::new(0));
    let mut builder = World::builder();
    let take = builder.am("take", {
        let seen = Arc::clone(&seen);
        move |_, _: u32| _ = seen.fetch_add(1, Ordering::Relaxed)
    });
    let world = builder.build()?;
    if world.rank().0 > 0 {
        let bytes = vec![7u8; 30_000];
        for n in 0..ROUNDS as u32 {
            world.send_medium(argonet::Rank(0), &take, n, &bytes)?;
            for _ in 0..SHORT_ONES {
                world.send_medium(argonet::Rank(0), &take, n, &bytes[..500])?;
            }
        }
    }
    world.drain()?;
    if world.rank().0 == 0 {
        assert_eq!(
            seen.load(Ordering::Relaxed),
            ROUNDS * (1 + SHORT_ONES) * u64::from(world.size() - 1)
        );
        eprintln!("ready");
        std::io::stdin().read_to_end(&mut Vec::new())?;
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

/// A network whose ranks pay with credits.
struct Network {
    conduit: &'static str,
    /// Credits that a peer has at the start, and that are wished for the bank.
    share: u64,
    banked: u64,
    /// Number of peers with a share: over portals a rank is a peer of its own.
    sharers: u64,
    /// Credits that the receive space has beyond those, as it consists of whole buffers.
    rest: u64,
    /// A share, a space in which it does not fit, and the error.
    too_much: [&'static str; 3],
}

const NETWORKS: [Network; 2] = [
    Network {
        conduit: "tcp",
        share: 257,
        banked: 500,
        sharers: 2,
        rest: 0,
        too_much: [
            "400",
            "64K",
            "400 credits for each of 2 peers and 0 in the bank are 800 credits, but the receive space of 65536 bytes holds 256",
        ],
    },
    Network {
        conduit: "portals",
        share: 8,
        banked: 500,
        sharers: 3,
        rest: 52,
        too_much: [
            "400",
            "64K",
            "400 credits for each of 3 peers and 0 in the bank are 1200 credits",
        ],
    },
];

impl Network {
    fn job(&self) -> Job {
        Job::launched(3, "credited")
            .env("ARGONET_CONDUIT", self.conduit)
            .env("GASNET_SUPERNODE_MAXSIZE", "1")
    }
}

/// A report of a rank: credits in all, banked, with unused peers; for each peer held, in use,
/// stalls, lent, owed.
struct Report {
    head: [u64; 3],
    peers: Vec<Vec<u64>>,
}

impl Report {
    fn read(text: &str, rank: u32) -> Self {
        let begin = format!("rank {rank} of 3: ");
        let (_, text) = text.split_once(&begin).unwrap_or_else(|| panic!("{text}"));
        let numbers = |line: &str| -> Vec<u64> {
            let words = line.split_whitespace();
            words.filter_map(|word| word.parse().ok()).collect()
        };
        let mut lines = text.lines();
        let head = lines.next().expect("a head");
        // "T credits of 256 bytes, B banked, U with peers ..."
        let head = numbers(head);
        let peers = lines.skip(1).map(numbers);
        Self {
            head: [head[0], head[2], head[3]],
            peers: peers.take_while(|row| row.len() == 6).collect(),
        }
    }

    fn sum(&self) -> u64 {
        let lent: u64 = self.peers.iter().map(|row| row[4]).sum();
        self.head[1] + self.head[2] + lent
    }
}

/// Reports that ranks make at different times may not agree yet.
fn agrees(texts: &[String; 3]) -> bool {
    let [rank0, others @ ..] = texts;
    let rank0 = Report::read(rank0, 0);
    (1..).zip(others).all(|(rank, text)| {
        let its = Report::read(text, rank);
        let held = its.peers.iter().find(|row| row[0] == 0).map(|row| row[1]);
        let lent = rank0.peers.iter().find(|row| row[0] == u64::from(rank));
        held == lent.map(|row| row[4])
    })
}

fn check(network: &Network, texts: &[String; 3]) {
    let Network {
        share,
        banked,
        sharers,
        rest,
        ..
    } = network;
    let [rank0, others @ ..] = texts;
    let rank0 = Report::read(rank0, 0);
    assert_eq!(rank0.head[0], sharers * share + banked + rest);
    assert_eq!(rank0.sum(), rank0.head[0], "credits are somewhere");
    let mut stalls = 0;
    for (rank, text) in (1..).zip(others) {
        let its = Report::read(text, rank);
        let of_rank0 = its.peers.iter().find(|row| row[0] == 0);
        let of_rank0 = of_rank0.expect("it has sent to rank 0");
        let lent = rank0.peers.iter().find(|row| row[0] == u64::from(rank));
        assert_eq!(of_rank0[1], lent.expect("a loan")[4], "held and lent");
        assert!(of_rank0[1] >= *share);
        stalls += of_rank0[3];
    }
    assert!(
        stalls > 0,
        "rank 0 was sent more than the shares: {texts:?}"
    );
    let lent: u64 = rank0.peers.iter().map(|row| row[4]).sum();
    assert!(
        lent > sharers * share,
        "a rank that stalls gets a loan: {texts:?}"
    );
}

fn live() {
    NETWORKS.iter().for_each(live_over);
}

// spec P15: statistics of credits to a file.
fn live_over(network: &Network) {
    let place = tempfile::tempdir().expect("a directory");
    let name = |rank: &str| -> String {
        let path = place.path().join(format!("credits-{rank}"));
        path.to_str().expect("a name").to_owned()
    };
    let job = network
        .job()
        .env("ARGONET_CREDITS_SHARE", &network.share.to_string())
        .env("GASNET_PORTAL_BANKED_CREDITS", &network.banked.to_string())
        .env("ARGONET_CREDITS_FILE", &name("%"));
    let outcome = job.run_with(|talk| {
        talk.line_with("ready");
        // The last credits that rank 0 lent may still be on their way; the watchdog bounds the
        // wait.
        let texts = loop {
            let mut info = Command::new(built::command());
            let pid = talk.pid.as_raw_nonzero().to_string();
            info.args(["info", "--credits", "--pid", &pid]);
            let output = info.output().expect("argonet info");
            let text = String::from_utf8(output.stdout).expect("text");
            assert_eq!(text.matches("process ").count(), 3, "{text}");
            let texts = [text.clone(), text.clone(), text];
            if agrees(&texts) {
                break texts;
            }
        };
        check(network, &texts);
    });
    assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
    let read = |rank: &str| std::fs::read_to_string(Path::new(&name(rank))).expect("a file");
    check(network, &["0", "1", "2"].map(read));
}

fn wishes() {
    for network in &NETWORKS {
        let [share, space, sums] = network.too_much;
        let job = network
            .job()
            .env("ARGONET_CREDITS_SHARE", share)
            .env("GASNET_PORTAL_AMRECV_SPACE", space);
        let outcome = job.run();
        assert_ne!(outcome.code(), Some(0), "{outcome:#?}");
        assert!(outcome.err.contains(sums), "{}", outcome.err);
    }
}

/// A setting of 0: the error names it, or, as of a bank that is empty at the start, it is a value
/// like others.
fn none() {
    const SETTINGS: [(&str, &str, bool); 5] = [
        ("ARGONET_CREDITS_SHARE", "GASNET_PORTAL_CRED_PER_NODE", true),
        (
            "ARGONET_CREDITS_MOST",
            "GASNET_PORTAL_MAX_CRED_PER_NODE",
            true,
        ),
        ("ARGONET_CREDITS_SPACE", "GASNET_PORTAL_AMRECV_SPACE", true),
        (
            "ARGONET_CREDITS_BANK",
            "GASNET_PORTAL_BANKED_CREDITS",
            false,
        ),
        (
            "ARGONET_CREDITS_EPOCH",
            "GASNET_PORTAL_EPOCH_DURATION",
            true,
        ),
    ];
    for network in &NETWORKS {
        for (own, of_portals, is_refused) in SETTINGS {
            for name in [own, of_portals] {
                let outcome = network.job().env(name, "0").run();
                let failed = outcome.code() != Some(0);
                assert_eq!(failed, is_refused, "{name}: {outcome:#?}");
                let named = outcome.err.contains(name);
                assert_eq!(named, is_refused, "{name}: {}", outcome.err);
            }
        }
    }
}

fn off() {
    for network in &NETWORKS {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("credits");
        let job = network
            .job()
            .env("GASNET_PORTAL_FLOW_CONTROL", "0")
            .env("ARGONET_CREDITS_FILE", path.to_str().expect("a name"));
        let outcome = job.run();
        assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
        let text = std::fs::read_to_string(path).expect("a file");
        assert!(
            text.contains("there is no flow control by credits"),
            "{text}"
        );
    }
}
