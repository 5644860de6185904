//! Open files of ranks that reach each other by connections alone: none for peers without messages.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use argonet::{Rank, World};

use crate::support::{Done, Job, Program, Test};

pub(crate) const TESTS: &[Test] = &[("crowd_connections_are_made_when_they_are_used", || {
    let job = Job::launched(12, "crowd").env("ARGONET_CONDUIT", "tcp");
    job.env("GASNET_SUPERNODE_MAXSIZE", "1").run().well();
})];

pub(crate) const PROGRAMS: &[Program] = &[("crowd", crowd)];

/// Open files of a rank that has sent nothing.
const IDLE_FILES: usize = 20;

/// Messages to each other rank.
const MESSAGES: u64 = 40;

/// The open files of this process.
fn files() -> Vec<String> {
    let entries = fs::read_dir("/proc/self/fd").expect("/proc");
    let link = |entry: fs::DirEntry| fs::read_link(entry.path());
    let links = entries.flatten().filter_map(|entry| link(entry).ok());
    let links = links.map(|link| link.to_string_lossy().into_owned());
    // The directory itself is open only now.
    links.filter(|link| !link.ends_with("/fd")).collect()
}

/// Number of established connections among them.
fn connections() -> usize {
    let table = fs::read_to_string("/proc/self/net/tcp").expect("/proc");
    let rows = table.lines().skip(1);
    let rows = rows.map(|row| row.split_whitespace().collect::<Vec<_>>());
    let stand = rows.filter(|row| row[3] == "01");
    let sockets: HashSet<_> = stand.map(|row| format!("socket:[{}]", row[9])).collect();
    files()
        .iter()
        .filter(|file| sockets.contains(*file))
        .count()
}

fn crowd() -> Done {
    let taken = Arc::new(AtomicU64::new(0));
    let mut builder = World::builder();
    let take = builder.am("take", {
        let taken = Arc::clone(&taken);
        move |_, n: u64| {
            taken.fetch_add(n, Ordering::Relaxed);
        }
    });
    let world = builder.build()?;
    let others = world.size() as usize - 1;
    let idle = files();
    assert!(idle.len() <= IDLE_FILES, "{idle:#?}");
    assert_eq!(connections(), 0, "before anything was sent");
    match world.rank() {
        Rank(0) => world.send(Rank(1), &take, 1)?,
        Rank(1) => world.wait_until(|| taken.load(Ordering::Relaxed) == 1)?,
        _ => {}
    }
    if world.rank() < Rank(2) {
        world.wait_until(|| connections() == 1)?;
    }
    world.barrier()?;
    for n in 1..=MESSAGES {
        for distance in 1..=others {
            world.send(world.rank_offset(distance as i64), &take, n)?;
        }
    }
    let all = others as u64 * MESSAGES * (MESSAGES + 1) / 2 + u64::from(world.rank() == Rank(1));
    world.wait_until(|| taken.load(Ordering::Relaxed) == all)?;
    world.barrier()?;
    // A connection that lost against the one from the other side may still be closing.
    world.wait_until(|| connections() == others && files().len() == idle.len() + others)?;
    Ok(world.finalize()?)
}
