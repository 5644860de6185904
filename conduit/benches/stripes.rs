//! Large puts between two hosts with two networks: over one of them, and over both.
//!
//! The hosts are network namespaces of this one, connected by two pairs of virtual interfaces, each
//! limited to a rate. Wants root, and `ip` and `tc`; says so where it has them not.
//!
//! `cargo bench -p argonet-conduit --bench stripes -- [Mbit/s of the first] [Mbit/s of the second]`

mod support;

use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::channel::ChannelSizes;
use argonet_conduit::{Conduit, OpToken, SendError};
use rustix::fd::AsFd;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use support::{Count, rank};

const PUT_BYTES: usize = 4 << 20;
const PUTS: u64 = 24;

/// Two namespaces, which go with it.
struct Hosts([String; 2]);

fn run(command: &str) -> Result<(), String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{command}: {said}"))
}

impl Hosts {
    fn new(rates: [u32; 2]) -> Result<Self, String> {
        let id = std::process::id();
        let hosts = Self([0, 1].map(|host| format!("argonet-{id}-{host}")));
        let [a, b] = &hosts.0;
        run(&format!("ip netns add {a}"))?;
        run(&format!("ip netns add {b}"))?;
        for (net, rate) in rates.into_iter().enumerate() {
            run(&format!(
                "ip -n {a} link add net{net} type veth peer name net{net} netns {b}"
            ))?;
            for (host, name) in hosts.0.iter().enumerate() {
                let address = format!("10.77.{net}.{}/24", host + 1);
                run(&format!("ip -n {name} address add {address} dev net{net}"))?;
                run(&format!("ip -n {name} link set net{net} up"))?;
                run(&format!(
                    "tc -n {name} qdisc add dev net{net} root tbf rate {rate}mbit burst 128kb latency 20ms"
                ))?;
            }
        }
        Ok(hosts)
    }

    /// A connection over each network: the ends of both hosts.
    fn connect(&self, net: usize) -> [TcpStream; 2] {
        let [a, b] = &self.0;
        let listener = within(b, move || {
            TcpListener::bind((format!("10.77.{net}.2"), 0)).expect("an address of the host")
        });
        let to = listener.local_addr().expect("an address");
        let here = within(a, move || TcpStream::connect(to).expect("the other host"));
        [here, listener.accept().expect("a connection").0]
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = run(&format!("ip netns delete {name}"));
        }
    }
}

/// Does something on a host, in a thread of its own.
fn within<T: Send>(host: &str, f: impl FnOnce() -> T + Send) -> T {
    let space = File::open(format!("/run/netns/{host}")).expect("the namespace");
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(space.as_fd(), kind).expect("root");
            f()
        });
        thread.join().expect("the work on the host")
    })
}

/// Bytes a second of puts, one after the other and all at once.
fn measure(hosts: &Hosts, nets: &[usize]) -> [f64; 2] {
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for net in nets {
        let [a, b] = hosts.connect(*net);
        here.push(a);
        there.push(b);
    }
    let ((a, _a_segment), (b, _b_segment)) = (
        rank(0, ChannelSizes::default(), here),
        rank(1, ChannelSizes::default(), there),
    );
    let stop = AtomicBool::new(false);
    let source = vec![5u8; PUT_BYTES];
    std::thread::scope(|scope| {
        let polls = scope.spawn(|| {
            let mut count = Count::default();
            while !stop.load(Ordering::Relaxed) {
                if b.poll_with(&mut count) == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let mut count = Count::default();
        let put = |count: &mut Count| {
            loop {
                let (start, len) = (source.as_ptr(), source.len());
                // SAFETY: all puts are waited for before the source ends.
                match unsafe { a.put(JobRank(1), SegmentOffset(0), start, len, OpToken::NONE) } {
                    Ok(_) => return,
                    Err(SendError::Full) => {
                        a.poll_with(count);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let until = |count: &mut Count, due: u64| {
            while count.remote < due {
                a.poll_with(count);
            }
        };
        // The rails' speeds are measured before.
        for due in 1..=PUTS {
            put(&mut count);
            until(&mut count, due);
        }
        let begun = Instant::now();
        for due in PUTS + 1..=2 * PUTS {
            put(&mut count);
            until(&mut count, due);
        }
        let one_by_one = begun.elapsed();
        let begun = Instant::now();
        (0..PUTS).for_each(|_| put(&mut count));
        until(&mut count, 3 * PUTS);
        let flood = begun.elapsed();
        stop.store(true, Ordering::Relaxed);
        polls.join().expect("it polls");
        let bytes = (PUTS * PUT_BYTES as u64) as f64;
        [one_by_one, flood].map(|time| bytes / time.as_secs_f64())
    })
}

fn main() {
    let given: Vec<u32> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let rates = [0, 1].map(|net| given.get(net).copied().unwrap_or(1000));
    let hosts = match Hosts::new(rates) {
        Ok(hosts) => hosts,
        Err(error) => {
            println!("skipped: no hosts can be made here: {error}");
            return;
        }
    };
    println!(
        "{} and {} Mbit/s; puts of {PUT_BYTES} bytes, MB/s",
        rates[0], rates[1]
    );
    let all = [&[0][..], &[1], &[0, 1]];
    let [first, second, both] = all.map(|nets| measure(&hosts, nets));
    for (name, at) in [("one by one", 0), ("flood", 1)] {
        println!(
            "{name:<12} first {:>7.1}  second {:>7.1}  both {:>7.1}  {:.2} x the first",
            first[at] / 1e6,
            second[at] / 1e6,
            both[at] / 1e6,
            both[at] / first[at]
        );
    }
}
