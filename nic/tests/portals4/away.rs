//! Cases that exist only between hosts.

use super::cases::{PORTAL, data};
use super::group::{END, MEMORY, Member, exactly, part};
use super::hosts::{self, Wire};
use super::mad;
use super::ranks::{self, Kind};
use argonet_base::JobRank;
use argonet_nic::datagram::Port;
use argonet_nic::portals::networked::{Networked, NetworkedConfig};
use argonet_nic::portals::{
    Ack, AtomicKind, AtomicOp, Descriptor, DescriptorHandle, Entry, EventKind, Managed, Matching,
    NicError, Outcome, PortalOptions, Portals, Queue, Register, Target,
};
use libtest_mimic::{Failed, Trial};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long anything may take.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// A process that makes an entry, and is killed.
pub(crate) const KILLED: &str = "killed";

pub(crate) const COMPUTING: &str = "a_target_that_computes_is_served";

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for wire in hosts::WIRES {
        let title = |name| format!("hosts::{}::{name}", wire.name);
        let all = move || hosts::job(4, 2, hosts::config(4, &wire), everybody);
        trials.push(Trial::test(
            title("four_ranks_of_two_hosts_do_everything_at_once"),
            all,
        ));
        let few = move || answers_wait(&wire);
        trials.push(Trial::test(
            title("requests_wait_until_others_are_answered"),
            few,
        ));
    }
    type Test = fn() -> Result<(), Failed>;
    let tests: [(&str, Test); 9] = [
        ("many_seeds_of_faults", many_seeds),
        ("sources_on_other_hosts_are_distinguished", sources),
        ("a_peer_that_is_silent_is_lost_and_named", silent),
        ("a_peer_that_owes_an_answer_is_probed", watched),
        ("a_process_that_is_killed_is_lost", killed),
        ("puts_arrive_though_their_sender_has_gone", arrives_late),
        ("a_long_put_is_cut_where_its_entry_ends", cut),
        ("operations_under_way_are_limited", limited),
        ("invalid_operations_are_refused", refused),
    ];
    for (name, test) in tests {
        trials.push(Trial::test(format!("hosts::{name}"), test));
    }
    trials
}

pub(super) fn quick(ranks: u32) -> NetworkedConfig {
    let mut config = hosts::config(ranks, &hosts::WIRES[0]);
    config.link.most_rto = Duration::from_millis(200);
    config.link.first_rto = Duration::from_millis(50);
    config.link.probe_after = Duration::from_millis(200);
    config.link.give_up_after = Duration::from_secs(2);
    config.exit_grace = Duration::from_millis(200);
    config
}

pub(super) fn to(rank: u32, bits: u64, offset_bytes: u64) -> Target {
    Target {
        rank: JobRank(rank),
        portal: PORTAL,
        bits,
        offset_bytes,
    }
}

/// A queue, and a descriptor over all memory that reports to it.
pub(super) fn source(m: &Member<Networked>) -> (Queue, DescriptorHandle) {
    let queue = m.nic.queue_alloc(1 << 10).expect("queue");
    let from = m.bind(Descriptor {
        events: END,
        queue: Some(queue),
        ..Descriptor::SILENT
    });
    (queue, from)
}

/// A portal with an entry over some of the memory that reports to a queue.
pub(super) fn reporting_portal(
    m: &Member<Networked>,
    matching: Matching,
    at: u64,
    len: u64,
) -> (Queue, argonet_nic::portals::EntryHandle) {
    let queue = m.nic.queue_alloc(1 << 10).expect("queue");
    let options = PortalOptions::default();
    let portal = m.nic.portal_alloc(options, Some(queue), Some(PORTAL));
    portal.expect("portal");
    let entry = Entry {
        events: END,
        queue: Some(queue),
        ..Entry::OPEN
    };
    (queue, m.attach(PORTAL, matching, (at, len), entry))
}

fn word(m: &Member<Networked>, at: u64) -> u64 {
    u64::from_ne_bytes(m.read(at, 8).try_into().expect("8"))
}

/// The target makes its entry and then reads its memory until the last put is there, calling
/// nothing.
pub(crate) fn computing(m: &mut Member<Networked>) {
    const MARK: u64 = 0x600d;
    const LAST: u64 = 1 << 20;
    if m.nic.rank() == JobRank(1) {
        let (queue, _) = reporting_portal(m, exactly(1), 0, MEMORY);
        (m.barrier)();
        let begun = Instant::now();
        while word(m, LAST) != MARK {
            assert!(begun.elapsed() < LIMIT, "the last put does not come");
            std::hint::spin_loop();
        }
        let kinds: Vec<_> = (0..7).map(|_| m.next(queue).kind).collect();
        use EventKind::{AtomicEnd, GetEnd, PutEnd};
        assert_eq!(
            kinds,
            [PutEnd, GetEnd, PutEnd, GetEnd, AtomicEnd, AtomicEnd, PutEnd]
        );
        return;
    }
    let (queue, from) = source(m);
    (m.barrier)();
    let wait = |kind| loop {
        let event = m.next(queue);
        assert_eq!(event.outcome, Outcome::Done);
        if event.kind == kind {
            break;
        }
    };
    m.write(0, &data(300_000, 1));
    for len in [8, 300_000] {
        m.nic
            .put_region(from, part(0, len), Ack::Event, to(1, 1, 64), 0)
            .expect("put");
        wait(EventKind::Ack);
        m.nic
            .get_region(from, part(LAST, len), to(1, 1, 64))
            .expect("get");
        wait(EventKind::ReplyEnd);
        assert!(m.read(LAST, len as usize) == data(len, 1));
    }
    let (sum, kind) = (AtomicOp::Sum, AtomicKind::U64);
    m.write(0, &1_u64.to_ne_bytes());
    m.nic
        .atomic(from, part(0, 8), Ack::Event, to(1, 1, 0), 0, sum, kind)
        .expect("atomic");
    wait(EventKind::Ack);
    let fetched = m
        .nic
        .fetch_atomic(from, LAST, from, part(0, 8), to(1, 1, 0), 0, sum, kind, 0);
    fetched.expect("fetch");
    wait(EventKind::ReplyEnd);
    assert_eq!(word(m, LAST), 1);
    m.write(0, &MARK.to_ne_bytes());
    m.nic
        .put_region(from, part(0, 8), Ack::Event, to(1, 1, LAST), 0)
        .expect("put");
    wait(EventKind::Ack);
}

/// Lengths that one datagram holds, that some need, and many.
const LENGTHS: [u64; 4] = [0, 40, 5000, 200_000];
const ROUNDS: u64 = 6;
/// Where each rank has the data of others' puts, its sums, the source of its puts, and the data of
/// its gets.
const TAKEN: u64 = 0;
const SUMS: u64 = 1 << 20;
const GIVEN: u64 = 2 << 20;
const GOTTEN: u64 = 3 << 20;
const SHARE: u64 = 250_000;

/// All ranks put into all others, get the same data from them, and add to their sums, with many
/// operations under way; near ones the same as those of other hosts.
fn everybody(mut m: Member<Networked>) {
    let (this, ranks) = (m.nic.rank().0, 4);
    let (queue, from) = source(&m);
    let (target_queue, _) = reporting_portal(&m, exactly(1), 0, MEMORY);
    m.write(GIVEN, &data(SHARE, u64::from(this)));
    m.write(SUMS + 8, &1_u64.to_ne_bytes());
    (m.barrier)();
    let others = (0..ranks).filter(|rank| *rank != this);
    let (mut acks, mut replies) = (0, 0);
    for round in 0..ROUNDS {
        let len = LENGTHS[round as usize % LENGTHS.len()];
        for peer in others.clone() {
            let place = to(peer, 1, TAKEN + u64::from(this) * SHARE);
            m.nic
                .put_region(from, part(GIVEN, len), Ack::Event, place, round)
                .expect("put");
            // In order, so it brings the data that was just put.
            let back = part(GOTTEN + u64::from(peer) * SHARE, len);
            m.nic.get_region(from, back, place).expect("get");
            let (sum, kind) = (AtomicOp::Sum, AtomicKind::U64);
            let one = part(SUMS + 8, 8);
            m.nic
                .atomic(from, one, Ack::Event, to(peer, 1, SUMS), 0, sum, kind)
                .expect("atomic");
            acks += 2;
            replies += 1;
        }
        let mut ended = HashMap::new();
        while acks > 0 || replies > 0 {
            let event = m.next(queue);
            assert_eq!(event.outcome, Outcome::Done, "{event:?}");
            assert_ne!(event.peer, m.nic.rank());
            *ended.entry(event.peer).or_insert(0) += 1;
            match event.kind {
                EventKind::Ack => acks -= 1,
                EventKind::ReplyEnd => {
                    replies -= 1;
                    let at = GOTTEN + u64::from(event.peer.0) * SHARE;
                    assert!(m.read(at, len as usize) == data(len, u64::from(this)));
                }
                kind => assert_eq!(kind, EventKind::SendEnd),
            }
        }
        assert_eq!(ended.len(), 3);
        (m.barrier)();
    }
    let mut puts = HashMap::new();
    let mut next = HashMap::new();
    for _ in 0..3 * 3 * ROUNDS {
        let event = m.next(target_queue);
        assert_eq!(event.outcome, Outcome::Done);
        if event.kind == EventKind::PutEnd {
            *puts.entry(event.peer).or_insert(0) += 1;
            let round: &mut u64 = next.entry(event.peer).or_default();
            assert_eq!(event.header, *round, "of {}", event.peer);
            *round += 1;
        }
    }
    assert_eq!(m.nic.queue_get(target_queue).expect("queue"), None);
    assert!(puts.len() == 3 && puts.values().all(|count| *count == ROUNDS));
    assert_eq!(word(&m, SUMS), 3 * ROUNDS);
    for peer in others {
        let got = m.read(TAKEN + u64::from(peer) * SHARE, 200_000);
        assert!(got == data(200_000, u64::from(peer)), "of {peer}");
    }
    let traffic = m.nic.traffic();
    assert_eq!((traffic.bad_records, traffic.refused), (0, 0));
    (m.barrier)();
}

/// Wires with all faults, each with a seed of its own.
fn many_seeds() -> Result<(), Failed> {
    for seed in 0..8 {
        let mut wire: Wire = hosts::WIRES[2];
        wire.faults.seed = seed;
        wire.faults.drop *= 1 + seed as u32 % 3;
        wire.datagram_bytes = [1472, 8192][seed as usize % 2];
        hosts::job(4, 2, hosts::config(4, &wire), everybody)?;
    }
    Ok(())
}

/// With room for one answer, many gets and puts at once all end.
fn answers_wait(wire: &Wire) -> Result<(), Failed> {
    let config = NetworkedConfig {
        answers: 1,
        ..hosts::config(2, wire)
    };
    hosts::job(2, 1, config, |mut m| {
        let (queue, from) = source(&m);
        reporting_portal(&m, exactly(1), 0, MEMORY);
        (m.barrier)();
        let peer = 1 - m.nic.rank().0;
        for _ in 0..60 {
            m.nic
                .get_region(from, part(0, 30_000), to(peer, 1, 0))
                .expect("get");
            m.nic
                .put_region(from, part(0, 8), Ack::Event, to(peer, 1, 0), 0)
                .expect("put");
            m.nic
                .put_region(from, part(0, 8), Ack::None, to(peer, 1, 0), 0)
                .expect("put");
        }
        for _ in 0..240 {
            assert_eq!(m.next(queue).outcome, Outcome::Done);
        }
        assert_eq!(m.nic.traffic().bad_records, 0);
        (m.barrier)();
    })
}

/// Entries for one source: the rank before the first of the host, too.
fn sources() -> Result<(), Failed> {
    hosts::job(4, 2, hosts::config(4, &hosts::WIRES[0]), |mut m| {
        let (queue, from) = source(&m);
        let this = m.nic.rank().0;
        let options = PortalOptions::default();
        m.nic
            .portal_alloc(options, None, Some(PORTAL))
            .expect("portal");
        for peer in 0..4 {
            let matching = Matching {
                source: Some(JobRank(peer)),
                ..exactly(1)
            };
            let entry = Entry {
                managed: Managed::Local { min_free_bytes: 0 },
                ..Entry::OPEN
            };
            m.attach(PORTAL, matching, (u64::from(peer) * 64, 64), entry);
        }
        let no_rank = Matching {
            source: Some(JobRank(4)),
            ..exactly(1)
        };
        let at = m.at(0);
        // SAFETY: nothing is attached.
        let refused = unsafe {
            let position = argonet_nic::portals::Position::Tail;
            m.nic.attach(PORTAL, position, no_rank, at, 8, Entry::OPEN)
        };
        assert!(
            matches!(refused, Err(NicError::BadRank { ranks: 4, .. })),
            "{refused:?}"
        );
        (m.barrier)();
        m.write(1024, &[this as u8 + 1; 8]);
        for peer in 0..4 {
            m.nic
                .put_region(from, part(1024, 8), Ack::Event, to(peer, 1, 0), 0)
                .expect("put");
        }
        for _ in 0..8 {
            assert_eq!(m.next(queue).outcome, Outcome::Done);
        }
        (m.barrier)();
        for peer in 0..4_u8 {
            let got = m.read(u64::from(peer) * 64, 16);
            assert_eq!(got, [[peer + 1; 8], [0; 8]].concat());
        }
        (m.barrier)();
    })
}

fn silent() -> Result<(), Failed> {
    let config = quick(2);
    let (m, mut mad) = mad::beside(&config);
    let (queue, from) = source(&m);
    let begun = Instant::now();
    m.nic
        .put_region(from, part(0, 8), Ack::Event, to(1, 1, 0), 0)?;
    m.nic.get_region(from, part(0, 1 << 20), to(1, 1, 0))?;
    m.nic
        .put_region(from, part(0, 1 << 20), Ack::Event, to(1, 1, 0), 0)?;
    // It acknowledges datagrams, but it answers nothing; then it ends.
    mad.until(|mad| mad.got.len() > 3);
    let mut outcomes = HashMap::new();
    for _ in 0..5 {
        let event = m.next(queue);
        assert_eq!(event.peer, JobRank(1));
        *outcomes.entry((event.kind, event.outcome)).or_insert(0) += 1;
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    use EventKind::{Ack as Acked, ReplyEnd, SendEnd};
    for (kind, outcome, count) in [
        (SendEnd, Outcome::Done, 2),
        (Acked, Outcome::PeerDied, 2),
        (ReplyEnd, Outcome::PeerDied, 1),
    ] {
        assert_eq!(outcomes.get(&(kind, outcome)), Some(&count), "{outcomes:?}");
    }
    let again = m
        .nic
        .put_region(from, part(0, 8), Ack::Event, to(1, 1, 0), 0);
    let error = again.expect_err("it is lost").to_string();
    let address = mad.whereabouts().address.to_string();
    for wanted in ["rank 0", "rank 1", "UDP", &address] {
        assert!(error.contains(wanted), "no {wanted} in: {error}");
    }
    m.nic.release(from)?;
    Ok(())
}

/// All datagrams were acknowledged, so no timer of theirs finds the peer dead.
fn watched() -> Result<(), Failed> {
    let (m, mut mad) = mad::beside(&quick(2));
    let (queue, from) = source(&m);
    m.nic
        .put_region(from, part(0, 8), Ack::Event, to(1, 1, 0), 0)?;
    mad.until(|mad| !mad.got.is_empty() && mad.endpoint.is_drained());
    assert_eq!(m.next(queue).kind, EventKind::SendEnd);
    assert_eq!(m.next(queue).outcome, Outcome::PeerDied);
    assert!(m.nic.traffic().datagrams.probes > 0);
    Ok(())
}

/// The work of the process that is to be killed.
pub(crate) fn be_killed(m: &mut Member<Networked>) {
    reporting_portal(m, exactly(1), 0, MEMORY);
    (m.barrier)();
    loop {
        std::thread::park();
    }
}

fn killed() -> Result<(), Failed> {
    let port = hosts::port();
    let here = port.whereabouts();
    let mut child = ranks::Process::start(Kind::Hosts, 1, KILLED)?;
    let there = child.line()?;
    child.say(&hosts::to_line(here))?;
    child.say(&there)?;
    let peers = [here, hosts::of_line(&there)];
    let config = quick(2);
    let nic = hosts::open(&hosts::file(), (0, 1), JobRank(0), port, &peers, &config);
    let m = hosts::member(nic, Box::new(|| {}));
    let (queue, from) = source(&m);
    // It has made its entry.
    let barrier = child.line()?;
    m.nic
        .put_region(from, part(0, 8), Ack::Event, to(1, 1, 0), 0)?;
    assert_eq!(m.next(queue).outcome, Outcome::Done);
    assert_eq!(m.next(queue).outcome, Outcome::Done);
    const GETS: usize = 100;
    for _ in 0..GETS {
        m.nic.get_region(from, part(0, 1 << 20), to(1, 1, 0))?;
    }
    // In the middle of them.
    assert_eq!(m.next(queue).outcome, Outcome::Done);
    child.kill()?;
    drop(barrier);
    let begun = Instant::now();
    let outcomes: Vec<_> = (1..GETS).map(|_| m.next(queue).outcome).collect();
    let lost = outcomes
        .iter()
        .filter(|outcome| **outcome == Outcome::PeerDied);
    let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Done);
    let (lost, done) = (lost.count(), done.count());
    assert!(lost > 0 && lost + done == GETS - 1, "{outcomes:?}");
    assert!(begun.elapsed() < LIMIT / 2);
    let again = m.nic.get_region(from, part(0, 8), to(1, 1, 0));
    assert!(
        matches!(again, Err(NicError::Unreachable { .. })),
        "{again:?}"
    );
    m.nic.release(from)?;
    Ok(())
}

/// An interface that is dropped goes on until its messages have arrived.
fn arrives_late() -> Result<(), Failed> {
    const PUTS: u64 = 20;
    let mut wire = hosts::WIRES[0];
    wire.faults.seed = 3;
    wire.faults.drop = 300_000;
    hosts::job(2, 1, hosts::config(2, &wire), |mut m| {
        if m.nic.rank() == JobRank(1) {
            let (queue, _) = reporting_portal(&m, exactly(1), 0, 4096);
            (m.barrier)();
            for n in 0..PUTS {
                assert_eq!(m.next(queue).header, n);
            }
            return;
        }
        let (_, from) = source(&m);
        (m.barrier)();
        for n in 0..PUTS {
            let put = m
                .nic
                .put_region(from, part(0, 8), Ack::None, to(1, 1, 0), n);
            put.expect("put");
        }
    })
}

/// The rest of a put in pieces goes nowhere.
fn cut() -> Result<(), Failed> {
    hosts::job(2, 1, hosts::config(2, &hosts::WIRES[0]), |mut m| {
        if m.nic.rank() == JobRank(1) {
            let options = PortalOptions::default();
            let portal = m.nic.portal_alloc(options, None, Some(PORTAL));
            portal.expect("portal");
            let entry = Entry {
                truncate: true,
                ..Entry::OPEN
            };
            m.attach(PORTAL, exactly(1), (0, 2000), entry);
            (m.barrier)();
            (m.barrier)();
            assert_eq!(m.read(0, 9000), [vec![7; 2000], vec![0; 7000]].concat());
            return;
        }
        let (queue, from) = source(&m);
        m.write(0, &[7; 9000]);
        (m.barrier)();
        let put = m
            .nic
            .put_region(from, part(0, 9000), Ack::Event, to(1, 1, 0), 0);
        put.expect("put");
        assert_eq!(m.next(queue).kind, EventKind::SendEnd);
        let ack = m.next(queue);
        assert_eq!((ack.outcome, ack.moved_bytes), (Outcome::Done, 2000));
        // And a get of more than there is brings no more.
        let got = m.nic.get_region(from, part(16_000, 9000), to(1, 1, 0));
        got.expect("get");
        let reply = m.next(queue);
        assert_eq!((reply.outcome, reply.moved_bytes), (Outcome::Done, 2000));
        let all = m.read(16_000, 9000);
        assert_eq!(all, [vec![7; 2000], vec![0; 7000]].concat());
        (m.barrier)();
    })
}

fn limited() -> Result<(), Failed> {
    let config = NetworkedConfig {
        operations: 4,
        ..quick(2)
    };
    let (m, _mad) = mad::beside(&config);
    let (queue, from) = source(&m);
    for _ in 0..4 {
        m.nic
            .put_region(from, part(0, 8), Ack::Event, to(1, 1, 0), 0)?;
    }
    let full = m
        .nic
        .put_region(from, part(0, 8), Ack::Event, to(1, 1, 0), 0);
    assert!(
        matches!(full, Err(NicError::NoSpace { limit: 4, .. })),
        "{full:?}"
    );
    assert_eq!(m.nic.software().begun(from)?.0, 4);
    for _ in 0..8 {
        assert_eq!(m.next(queue).peer, JobRank(1));
    }
    m.nic.release(from)?;
    Ok(())
}

fn refused() -> Result<(), Failed> {
    let config = hosts::config(2, &hosts::WIRES[0]);
    let (m, mad) = mad::beside(&config);
    let (queue, from) = source(&m);
    assert!(!m.nic.features().synchronous);
    assert_eq!(m.nic.limits().ranks, 2);
    let most = m.nic.limits().atomic_bytes;
    assert!(
        (256..1472).contains(&most) && most.is_multiple_of(8),
        "{most}"
    );
    let (sum, kind) = (AtomicOp::Sum, AtomicKind::U64);
    for rank in [0, 1] {
        let long = m.nic.atomic(
            from,
            part(0, most + 8),
            Ack::None,
            to(rank, 1, 0),
            0,
            sum,
            kind,
        );
        assert!(matches!(long, Err(NicError::Invalid { .. })), "{long:?}");
    }
    let beyond = m
        .nic
        .put_region(from, part(0, 8), Ack::None, to(2, 1, 0), 0);
    assert!(
        matches!(beyond, Err(NicError::BadRank { ranks: 2, .. })),
        "{beyond:?}"
    );
    let portal = Target {
        portal: argonet_nic::portals::PortalIndex(m.nic.limits().portals),
        ..to(1, 1, 0)
    };
    let beyond = m.nic.get_region(from, part(0, 8), portal);
    assert!(
        matches!(beyond, Err(NicError::BadPortal { .. })),
        "{beyond:?}"
    );
    let beyond = m.nic.get_region(from, part(MEMORY, 8), to(1, 1, 0));
    assert!(
        matches!(beyond, Err(NicError::OutOfRange { .. })),
        "{beyond:?}"
    );
    // Nothing of these is under way.
    m.nic.release(from)?;
    m.nic.queue_free(queue)?;
    assert_eq!(m.nic.status(Register::Matched), 0);
    let again = Port::bind(mad.whereabouts().address);
    let taken = again.as_ref().map_err(std::io::Error::kind);
    assert_eq!(
        taken.err(),
        Some(std::io::ErrorKind::AddrInUse),
        "{again:?}"
    );
    let here = hosts::port().whereabouts();
    let there = hosts::port();
    for peers in [vec![], vec![here], vec![here, here]] {
        let port = hosts::port();
        let made = hosts::try_open(&hosts::file(), (0, 1), JobRank(0), port, &peers, &config);
        assert!(matches!(made, Err(NicError::Invalid { .. })));
    }
    let mut wrong = config.clone();
    wrong.link.datagram_bytes = 100;
    let peers = [there.whereabouts(), here];
    let made = hosts::try_open(&hosts::file(), (0, 1), JobRank(0), there, &peers, &wrong);
    assert!(matches!(made, Err(NicError::Link(_))));
    Ok(())
}
