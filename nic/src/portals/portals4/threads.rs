//! Threads that a library starts, and whether they ever sleep.

use core::time::Duration;
use std::collections::BTreeSet;

/// How often a thread is looked at, and how long after each other.
const LOOKS: u32 = 5;
const BETWEEN: Duration = Duration::from_micros(200);

/// A thread of this process, by its number.
pub(super) type Tid = i32;

/// All threads of this process; none where the system does not list them.
pub(super) fn all() -> BTreeSet<Tid> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return BTreeSet::new();
    };
    let names = tasks.filter_map(|task| Some(task.ok()?.file_name()));
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

/// How many of these threads run, or want to, whenever they are looked at.
pub(super) fn busy(threads: &BTreeSet<Tid>) -> u32 {
    let mut busy = threads.clone();
    for look in 0..LOOKS {
        if busy.is_empty() {
            break;
        }
        if look > 0 {
            std::thread::sleep(BETWEEN);
        }
        busy.retain(|tid| is_runnable(*tid));
    }
    u32::try_from(busy.len()).unwrap_or(u32::MAX)
}

fn is_runnable(tid: Tid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"));
    // The name before the state may have any characters.
    stat.is_ok_and(|stat| {
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.starts_with(" R"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    #[test]
    fn spinning_and_sleeping_threads_are_distinguished() {
        let ends = &AtomicBool::new(false);
        let before = all();
        let (say, hear) = mpsc::channel();
        let (keep, wait) = mpsc::channel::<()>();
        let seen: Vec<_> = std::thread::scope(|s| {
            let spins = say.clone();
            s.spawn(move || {
                spins.send((1, own())).expect("heard");
                while !ends.load(Ordering::Relaxed) {
                    core::hint::spin_loop();
                }
            });
            s.spawn(move || {
                say.send((0, own())).expect("heard");
                wait.recv().expect_err("nothing is sent");
            });
            let look = |(spins, tid)| {
                // The thread that is to wait is on its way to sleep.
                let settled = spins == 1 || (0..1_000_000).any(|_| !is_runnable(tid));
                let new = &all() - &before;
                (settled, new, spins, tid, busy(&BTreeSet::from([tid])))
            };
            let seen = hear.iter().take(2).map(look).collect();
            ends.store(true, Ordering::Relaxed);
            drop(keep);
            seen
        });
        for (settled, new, spins, tid, busy) in seen {
            assert!(settled && new.contains(&tid), "{new:?} {tid}");
            assert_eq!(busy, spins);
        }
    }

    fn own() -> Tid {
        rustix::thread::gettid().as_raw_nonzero().get()
    }
}
