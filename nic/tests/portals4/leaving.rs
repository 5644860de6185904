//! Interfaces and processes that end while their data is still in descriptors.

use super::away::{reporting_portal, source, to};
use super::group::{MEMORY, Member, exactly, part};
use super::hosts;
use super::ranks::{self, Kind};
use argonet_base::JobRank;
use argonet_nic::portals::networked::Networked;
use argonet_nic::portals::{Ack, Outcome, Portals, Queue};
use libtest_mimic::{Failed, Trial};
use std::time::Duration;

/// A process that puts, waits until its peers have that, and ends without anything else.
pub(crate) const LEAVES: &str = "leaves";

/// Many times the first window.
const LONG: u64 = 2 << 20;

pub(crate) fn trials() -> Vec<Trial> {
    type Test = fn() -> Result<(), Failed>;
    let tests: [(&str, Test); 2] = [
        ("a_put_in_descriptors_leaves_before_its_interface", dropped),
        ("a_process_in_its_exit_grace_may_end", left),
    ];
    let trial = |(name, test)| Trial::test(format!("hosts::{name}"), test);
    tests.map(trial).into()
}

fn bytes() -> Vec<u8> {
    (0..LONG).map(|n| (n % 251) as u8).collect()
}

/// A put without an answer, so its sender does not learn when it has arrived.
fn put(m: &Member<Networked>, target: u32) {
    let (_, from) = source(m);
    m.write(0, &bytes());
    let put = part(0, LONG);
    let put = m.nic.put_region(from, put, Ack::None, to(target, 1, 0), 0);
    put.expect("put");
}

fn has_all(m: &Member<Networked>, queue: Queue) {
    let event = m.next(queue);
    assert_eq!(
        (event.outcome, event.moved_bytes),
        (Outcome::Done, LONG),
        "{event:?}"
    );
    assert!(m.read(0, LONG as usize) == bytes());
}

fn dropped() -> Result<(), Failed> {
    hosts::job(2, 1, hosts::config(2, &hosts::WIRES[0]), |mut m| {
        if m.nic.rank() == JobRank(1) {
            let (queue, _) = reporting_portal(&m, exactly(1), 0, MEMORY);
            (m.barrier)();
            has_all(&m, queue);
        } else {
            (m.barrier)();
            put(&m, 1);
        }
    })
}

/// The process of the other rank.
pub(crate) fn leave(m: &mut Member<Networked>) -> ! {
    (m.barrier)();
    put(m, 0);
    let limit = Duration::from_secs(20);
    let have_all = m.nic.exit_grace(limit);
    // The interface is not dropped.
    std::process::exit(i32::from(!have_all));
}

fn left() -> Result<(), Failed> {
    let port = hosts::port();
    let here = port.whereabouts();
    let mut child = ranks::Process::start(Kind::Hosts, 1, LEAVES)?;
    let there = child.line()?;
    child.say(&hosts::to_line(here))?;
    child.say(&there)?;
    let peers = [here, hosts::of_line(&there)];
    let config = hosts::config(2, &hosts::WIRES[0]);
    let nic = hosts::open(&hosts::file(), (0, 1), JobRank(0), port, &peers, &config);
    let m = hosts::member(nic, Box::new(|| {}));
    let (queue, _) = reporting_portal(&m, exactly(1), 0, MEMORY);
    let ready = child.line()?;
    child.say(&ready)?;
    child.say(&ready)?;
    assert!(child.end()?.success(), "it waited in vain");
    has_all(&m, queue);
    Ok(())
}
