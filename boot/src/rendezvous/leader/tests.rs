//! What comes while rank 0 waits, from a process that plays all others.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use super::*;
use crate::foreign::tests::member_of_test;
use crate::foreign::{Member, Spread, Way};
use crate::rendezvous::program::Program;
use crate::rendezvous::socket::Place;

/// A rank as it connects.
struct Comer {
    socket: OwnedFd,
}

fn hello(rank: u32, size: u32) -> Hello {
    Hello {
        rank,
        size,
        program: Program::of_this_process().unwrap().number(),
    }
}

impl Comer {
    fn new(place: &Place) -> Self {
        let socket = place.connect().unwrap();
        Self { socket }
    }

    fn says(self, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Self {
        send(&self.socket, bytes, files).unwrap();
        self
    }

    /// Says that it is `rank`, as it has to.
    fn comes_as(self, rank: u32, size: u32) -> Self {
        let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        self.says(&hello(rank, size).encode(), &[own.as_fd()])
    }

    fn refused_for(self, reason: &str) {
        let mut bytes = [0; MAX_BYTES];
        let received = loop {
            match receive(&self.socket, &mut bytes) {
                Received::Nothing => thread::yield_now(),
                received => break received,
            }
        };
        let Received::Message { bytes: len, .. } = received else {
            panic!("{received:?}")
        };
        let Ok(Answer::Refusal(text)) = Answer::parse(&bytes[..len]) else {
            panic!("no refusal")
        };
        assert!(text.contains(reason), "{text}");
    }
}

/// Gathers three ranks, to which `others` happens; the number of those that have come.
fn gathered(
    name: &str,
    limit: Duration,
    others: impl FnOnce(&Place) -> Vec<Comer> + Send,
) -> Result<usize, BootError> {
    let identity = format!("{name} {}", std::process::id());
    gathered_by(&member_of_test(&identity, 0, 3), limit, others)
}

/// The same by `member`, the first of three of its host.
fn gathered_by(
    member: &Member,
    limit: Duration,
    others: impl FnOnce(&Place) -> Vec<Comer> + Send,
) -> Result<usize, BootError> {
    let wait = Wait {
        member,
        place: Place::of(member),
        program: Program::of_this_process().unwrap(),
        began: Instant::now(),
        limit,
    };
    let mut gathering = Gathering {
        wait: &wait,
        listener: wait.place.listen().unwrap(),
        silent: VecDeque::new(),
        guests: vec![None, None],
        strangers: 0,
        refused: String::new(),
        apart: None,
    };
    thread::scope(|scope| {
        let comers = scope.spawn(|| others(&wait.place));
        let result = gathering.gather();
        drop(comers.join().unwrap());
        let come = gathering.guests.iter().flatten().count();
        result.map(|()| come)
    })
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn ranks_that_come_in_any_order_are_gathered_among_others() {
    let come = gathered("order", LONG, |place| {
        let silent = Comer::new(place);
        let second = Comer::new(place).comes_as(2, 3);
        Comer::new(place)
            .says(b"hello?", &[])
            .refused_for("6 bytes, not 32");
        Comer::new(place)
            .comes_as(2, 3)
            .refused_for("job rank 2 has been taken by process");
        Comer::new(place)
            .comes_as(0, 3)
            .refused_for("job rank 0 has been taken by process");
        Comer::new(place)
            .comes_as(1, 4)
            .refused_for("it is one of 4 ranks, and rank 0 of 3");
        Comer::new(place)
            .comes_as(7, 3)
            .refused_for("it says that it is rank 7 of 3");
        let another = Hello {
            program: 0,
            ..hello(1, 3)
        };
        Comer::new(place)
            .says(&another.encode(), &[])
            .refused_for("it executes another file than rank 0, which is \"argonet_boot-");
        let hello = hello(1, 3).encode();
        let no_process = "no descriptor of its process";
        Comer::new(place).says(&hello, &[]).refused_for(no_process);
        let file = std::fs::File::open("/dev/null").unwrap();
        Comer::new(place)
            .says(&hello, &[file.as_fd()])
            .refused_for(no_process);
        let parent = rustix::process::getppid().unwrap();
        let other = pidfd_open(parent, PidfdFlags::empty()).unwrap();
        Comer::new(place)
            .says(&hello, &[other.as_fd()])
            .refused_for(no_process);
        let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        let two = [own.as_fd(), own.as_fd()];
        Comer::new(place).says(&hello, &two).refused_for(no_process);
        vec![silent, second, Comer::new(place).comes_as(1, 3)]
    });
    assert_eq!(come.unwrap(), 2);
}

/// It may fail at the launcher's store before it is heard.
#[test]
fn a_rank_that_has_ended_before_it_is_heard_ends_the_wait() {
    let error = gathered("ended", LONG, |place| {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        child.wait().unwrap();
        let hello = hello(1, 3).encode();
        vec![Comer::new(place).says(&hello, &[process.as_fd()])]
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("rank 1 (pid "), "{error}");
    assert!(error.contains("ended before all ranks had come"), "{error}");
}

#[test]
fn ranks_of_a_host_among_several_are_consecutive() {
    let member = |name: &str| {
        let mut member = member_of_test(&format!("{name} {}", std::process::id()), 4, 8);
        member.spread = Some(Spread {
            first: 4,
            here: 3,
            way: Way::Pmix,
            ends_all: true,
        });
        member
    };
    let come = gathered_by(&member("consecutive"), LONG, |place| {
        Comer::new(place)
            .comes_as(4, 8)
            .refused_for("job rank 4 has been taken by process");
        [6, 5]
            .map(|rank| Comer::new(place).comes_as(rank, 8))
            .into()
    });
    assert_eq!(come.unwrap(), 2);
    for stranger in [3, 7] {
        let error = gathered_by(&member("apart"), LONG, |place| {
            let comer = Comer::new(place).comes_as(stranger, 8);
            vec![comer]
        });
        let error = error.unwrap_err().to_string();
        let says = format!(
            "rank {stranger} is one of the 3 ranks of this host, the first of which is rank 4"
        );
        assert!(error.contains(&says), "{error}");
    }
}

#[test]
fn silent_connections_take_a_bounded_number_of_places() {
    let come = gathered("silent", LONG, |place| {
        let all = 4 * SPARE_CONNECTIONS;
        let mut comers: Vec<Comer> = (0..all).map(|_| Comer::new(place)).collect();
        // The oldest has been closed.
        let mut bytes = [0; MAX_BYTES];
        while !matches!(receive(&comers[0].socket, &mut bytes), Received::End) {
            thread::yield_now();
        }
        comers.push(Comer::new(place).comes_as(2, 3));
        comers.push(Comer::new(place).comes_as(1, 3));
        comers
    });
    assert_eq!(come.unwrap(), 2);
}

#[test]
fn a_rank_that_has_come_and_ended_ends_the_wait() {
    let error = gathered("ended", LONG, |place| {
        drop(Comer::new(place).comes_as(2, 3));
        Vec::new()
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("rank 2 (pid "), "{error}");
    assert!(
        error.contains(") ended before all ranks had come"),
        "{error}"
    );
}

#[test]
fn a_flood_of_connections_does_not_keep_rank_0_beyond_its_time() {
    let stop = AtomicBool::new(false);
    let member = member_of_test(&format!("flood {}", std::process::id()), 0, 3);
    let place = Place::of(&member);
    let error = thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // None listens before and after.
                    let _ = place.connect();
                }
            });
        }
        let begun = Instant::now();
        let error = gathered("flood", Duration::from_millis(200), |_| Vec::new());
        stop.store(true, Ordering::Relaxed);
        assert!(begun.elapsed() < LONG / 2, "rank 0 is kept");
        error.unwrap_err().to_string()
    });
    assert!(error.contains("for ranks 1, 2"), "{error}");
}

#[test]
fn ranks_that_do_not_come_in_time_are_named() {
    let error = gathered("late", Duration::from_secs(2), |place| {
        vec![Comer::new(place).comes_as(1, 3)]
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("for rank 2; do all processes"), "{error}");
}
