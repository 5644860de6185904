//! A rank of the job, whose connection was made as it should be, and over which garbage comes.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use argonet::{Rank, World};
use rustix::fd::OwnedFd;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::support::{Done, Job, Program, Random, Test};

pub(crate) const TESTS: &[Test] = &[("garbled_frames_end_the_job_by_name", garbled)];

pub(crate) const PROGRAMS: &[Program] = &[("garbled", rank)];

fn garbled() {
    let job = Job::launched(3, "garbled").env("ARGONET_CONDUIT", "tcp");
    let outcome = job.env("GASNET_SUPERNODE_MAXSIZE", "1").run();
    outcome.failed(&["got a broken record from rank 1: "]);
}

/// This process's connections.
fn connections() -> Vec<TcpStream> {
    let this = pidfd_open(getpid(), PidfdFlags::empty()).expect("this process");
    let entries = fs::read_dir("/proc/self/fd").expect("/proc");
    let numbers = entries.flatten().filter_map(|entry| {
        let link = fs::read_link(entry.path()).ok()?;
        let is_socket = link.to_string_lossy().starts_with("socket:");
        let number = entry.file_name().to_string_lossy().parse().ok()?;
        is_socket.then_some(number)
    });
    let sockets = numbers.filter_map(|number| {
        let socket: OwnedFd = pidfd_getfd(&this, number, PidfdGetfdFlags::empty()).ok()?;
        Some(TcpStream::from(socket))
    });
    sockets
        .filter(|socket| socket.peer_addr().is_ok())
        .collect()
}

fn rank() -> Done {
    let world = World::init()?;
    world.barrier()?;
    if world.rank() == Rank(1) {
        let mut random = Random::new(5);
        let garbage: Vec<u8> = (0..1 << 16).map(|_| random.next() as u8).collect();
        for mut socket in connections() {
            // As much as fits; the socket does not block.
            let _ = socket.write(&garbage);
        }
    }
    world.wait_until(|| false)?;
    Ok(())
}
