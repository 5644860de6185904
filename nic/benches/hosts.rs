//! How long operations between hosts take, over the loopback interface, beside datagrams without
//! anything around them.
//!
//! `cargo bench -p argonet-nic --bench hosts`

use argonet_base::JobRank;
use argonet_nic::datagram::Port;
use argonet_nic::portals::networked::{Networked, NetworkedConfig};
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_nic::portals::{
    Ack, Descriptor, Entry, Events, Matching, Part, PortalIndex, PortalOptions, Portals, Position,
    Target,
};
use argonet_nic::reliable::{ReliableConfig, Seal};
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

const BUFFER: u64 = 1 << 20;
const LONG: u64 = 64 << 10;

/// The least mean of several rounds, in microseconds for one call.
fn time(rounds: u32, count: u32, mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let begun = Instant::now();
        (0..count).for_each(|_| call());
        best = best.min(begun.elapsed().as_secs_f64() * 1e6 / f64::from(count));
    }
    best
}

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("socket")
}

/// Datagrams of `bytes`: how many have `len` bytes.
fn pieces(len: u64, bytes: usize) -> u64 {
    len.div_ceil(bytes as u64).max(1)
}

/// A question of 8 bytes and an answer of `len` in datagrams of `bytes`, between two threads that
/// sleep in `recv`.
fn raw(count: u32, len: u64, bytes: usize) -> f64 {
    let (here, there) = (socket(), socket());
    here.connect(there.local_addr().expect("address"))
        .expect("peer");
    there
        .connect(here.local_addr().expect("address"))
        .expect("peer");
    let answers = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        let answer = vec![0; bytes];
        while there.recv(&mut buffer).expect("question") != 0 {
            let mut left = len as usize;
            for _ in 0..pieces(len, bytes) {
                let now = left.min(bytes);
                there.send(&answer[..now]).expect("answer");
                left -= now;
            }
        }
    });
    let mut buffer = vec![0; 1 << 16];
    let took = time(9, count, || {
        here.send(&[0; 8]).expect("question");
        for _ in 0..pieces(len, bytes) {
            here.recv(&mut buffer).expect("answer");
        }
    });
    here.send(&[]).expect("end");
    answers.join().expect("thread");
    took
}

/// Two ranks, each a host.
fn pair(datagram_bytes: usize, seal: Option<Seal>) -> [Networked; 2] {
    let ports =
        [0, 1].map(|_| Port::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("port"));
    let peers = ports.each_ref().map(Port::whereabouts);
    let config = NetworkedConfig {
        link: ReliableConfig {
            datagram_bytes,
            ..ReliableConfig::default()
        },
        seal,
        exit_grace: Duration::ZERO,
        ..NetworkedConfig::of_ranks(2)
    };
    let mut rank = 0..;
    ports.map(|port| {
        let rank = JobRank(rank.next().unwrap_or_default());
        let file = memfd_create("interfaces", MemfdFlags::CLOEXEC).expect("memfd");
        let sizes = SoftwareConfig {
            first: rank,
            ranks: 1,
            ..SoftwareConfig::default()
        };
        let software = Software::new(file.as_fd(), sizes, rank, None, FaultRules::default());
        Networked::new(software.expect("interface"), port, &peers, &config).expect("interface")
    })
}

fn operations(datagram_bytes: usize, (seal, name): (Option<Seal>, &str), short: f64, long: f64) {
    let [a, b] = pair(datagram_bytes, seal);
    let portal = b.portal_alloc(PortalOptions::default(), None, Some(PortalIndex(0)));
    let portal = portal.expect("portal");
    let matching = Matching {
        bits: 1,
        ignore: 0,
        source: None,
    };
    let memory = b.software().buffers().0;
    // SAFETY: the buffers live as long as the interface and the benchmark does not read them.
    let attached = unsafe {
        b.attach(
            portal,
            Position::Tail,
            matching,
            memory,
            BUFFER,
            Entry::OPEN,
        )
    };
    attached.expect("entry");
    let queue = a.queue_alloc(1 << 10).expect("queue");
    let mut own = vec![1_u8; BUFFER as usize];
    let memory = NonNull::from(own.as_mut_slice()).cast();
    let events = Events {
        start: false,
        end: true,
    };
    let descriptor = |events| Descriptor {
        events,
        queue: Some(queue),
        ..Descriptor::SILENT
    };
    // SAFETY: the vector lives to the end and is not touched.
    let (puts, gets) = unsafe {
        let silent = descriptor(Descriptor::SILENT.events);
        let puts = a.bind(memory, BUFFER, silent).expect("descriptor");
        let gets = a
            .bind(memory, BUFFER, descriptor(events))
            .expect("descriptor");
        (puts, gets)
    };
    let part = |len_bytes| Part {
        offset_bytes: 0,
        len_bytes,
    };
    let target = Target {
        rank: JobRank(1),
        portal,
        bits: 1,
        offset_bytes: 0,
    };
    let put = |len| {
        a.put_region(puts, part(len), Ack::Event, target, 0)
            .expect("put")
    };
    let looked = || {
        while a.queue_get(queue).expect("queue").is_none() {
            std::hint::spin_loop();
        }
    };
    let slept = || {
        while a.queue_get(queue).expect("queue").is_none() {
            a.queue_wait(&[queue], None, &|| false).expect("wait");
        }
    };
    println!("datagrams of {datagram_bytes} bytes, {name}");
    let report = |what: &str, took: f64, raw: f64| {
        println!(
            "  {what:<36} {took:9.1} us, {:.2} of plain datagrams",
            took / raw
        );
    };
    let took = time(9, 2000, || {
        put(8);
        slept();
    });
    report("put 8 B, acknowledged, asleep", took, short);
    let took = time(9, 2000, || {
        put(8);
        looked();
    });
    report("put 8 B, acknowledged, looking", took, short);
    let took = time(9, 200, || {
        a.get_region(gets, part(LONG), target).expect("get");
        slept();
    });
    report("get 64 KiB, asleep", took, long);
    let took = time(5, 20, || {
        (0..16).for_each(|_| put(BUFFER));
        (0..16).for_each(|_| slept());
    });
    let rate = 16.0 * BUFFER as f64 / took;
    println!("  {:<36} {rate:9.0} MB/s", "puts of 1 MiB, 16 under way");
}

fn main() {
    let short = raw(5000, 8, 8);
    println!("plain datagrams of 8 B, there and back {short:9.1} us");
    for bytes in [1472, 65_507] {
        let long = raw(200, LONG, bytes);
        println!("plain datagrams of {bytes} B, 64 KiB for a question {long:9.1} us");
        let secret = b"of a benchmark";
        operations(bytes, (None, "open"), short, long);
        operations(
            bytes,
            (Some(Seal::from_secret(secret)), "sealed"),
            short,
            long,
        );
        operations(
            bytes,
            (Some(Seal::encrypting(secret)), "encrypted"),
            short,
            long,
        );
    }
}
