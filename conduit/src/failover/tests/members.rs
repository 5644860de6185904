//! What members are asked for: the peer that is read first, and to end.

use super::super::{FailoverRails, Member, MemberConfig};
use super::pair::failover;
use super::pipe::Pipe;
use crate::channel::Erased;
use crate::channel::rail::{Look, Made, RailId, Rails, Ready, Vital};
use argonet_base::JobRank;
use core::net::IpAddr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use core::time::Duration;
use parking_lot::Mutex;
use rustix::fd::BorrowedFd;
use std::io;
use std::sync::Arc;

/// What a member is asked for.
#[derive(Default)]
struct Asked {
    has_first: AtomicBool,
    arms: AtomicU32,
    looks: AtomicU32,
}

struct Fake {
    asked: Arc<Asked>,
    /// What all members have, where it is about the end.
    ends: Option<Arc<Ends>>,
}

/// Members that have begun to end, and how many had when each was dropped.
#[derive(Default)]
struct Ends {
    begun: AtomicU32,
    dropped: Mutex<Vec<u32>>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        if let Some(ends) = &self.ends {
            let begun = ends.begun.load(Relaxed);
            ends.dropped.lock().push(begun);
        }
    }
}

const PEER: JobRank = JobRank(1);

impl Rails for Fake {
    type Rail = Pipe;

    fn name(&self) -> &'static str {
        "fake"
    }

    fn want(&self, _id: RailId) {}

    fn next(&self, _received: &dyn Fn(RailId) -> u64) -> Option<Made<Pipe>> {
        None
    }

    fn open(&self, _id: RailId, _rail: &Pipe) -> io::Result<()> {
        Ok(())
    }

    fn close(&self, _id: RailId, _rail: &Pipe) {}

    fn begin_poll(&self, _alone: bool) -> Look {
        self.asked.looks.fetch_add(1, Relaxed);
        Look {
            first: self.asked.has_first.load(Relaxed).then_some(PEER),
            all: false,
        }
    }

    fn polls(&self) -> u32 {
        0
    }

    fn ready(&self, _found: &mut Ready) {}

    fn has_ready(&self) -> bool {
        false
    }

    fn arm(&self) {
        self.asked.arms.fetch_add(1, Relaxed);
    }

    fn wait_for_room(&self, _id: RailId, _rail: &Pipe, _waits: bool) {}

    fn sleep(&self, _timeout: Option<Duration>) {}

    fn wake(&self) {}

    fn forget_wakeups(&self) {}
}

impl Member for Fake {
    fn lasts(&self) -> bool {
        false
    }

    fn begin_sleep<'a>(&'a self, _wakes: &mut Vec<BorrowedFd<'a>>) -> bool {
        true
    }

    fn end_sleep(&self) {}

    fn begin_to_end(&self) {
        if let Some(ends) = &self.ends {
            ends.begun.fetch_add(1, Relaxed);
        }
    }

    fn address(&self, _rail: &Pipe) -> Option<IpAddr> {
        None
    }

    fn silence(&self, _peer: JobRank, _rail: &Pipe) -> Option<Vital> {
        None
    }
}

/// As many polls as include a look at all members.
const ENOUGH: u32 = 64;

/// Rails over these.
fn rails_over(fakes: impl IntoIterator<Item = Fake>) -> FailoverRails {
    let members = fakes.into_iter().enumerate();
    let members = members.map(|(number, fake)| MemberConfig {
        name: format!("m{number}"),
        rails: Box::new(Erased::new(fake)),
        further: 0,
    });
    failover(0, members)
}

/// One that waits for acknowledgements takes no time from the next.
#[test]
fn all_members_begin_to_end_before_any_is_waited_for() {
    let ends = Arc::new(Ends::default());
    let fakes = [(); 3].map(|()| Fake {
        asked: Arc::default(),
        ends: Some(Arc::clone(&ends)),
    });
    drop(rails_over(fakes));
    assert_eq!(*ends.dropped.lock(), [3; 3]);
}

#[test]
fn a_member_whose_peer_is_not_read_first_any_more_is_armed() {
    let asked: [Arc<Asked>; 3] = Default::default();
    let rails = rails_over(asked.iter().map(|asked| Fake {
        asked: Arc::clone(asked),
        ends: None,
    }));
    let arms = || asked.each_ref().map(|asked| asked.arms.load(Relaxed));
    let looks = || asked.each_ref().map(|asked| asked.looks.load(Relaxed));
    let polls = || {
        let each = (0..ENOUGH).map(|_| rails.begin_poll(false).first);
        each.fold(None, |_, first| first)
    };
    let set = |member: usize, has_first| asked[member].has_first.store(has_first, Relaxed);
    assert_eq!((polls(), arms()), (None, [0; 3]));
    set(2, true);
    assert_eq!((polls(), arms()), (Some(PEER), [1, 0, 0]));
    set(1, true);
    assert_eq!((polls(), arms()), (Some(PEER), [1, 0, 1]));
    // It is looked at in each poll, and the others now and then.
    let before = looks();
    polls();
    let each = [0, 1, 2].map(|member| looks()[member] - before[member]);
    assert!(
        each[1] == ENOUGH && (1..ENOUGH / 2).contains(&each[2]),
        "{each:?}"
    );
    assert!((1..ENOUGH / 2).contains(&each[0]), "{each:?}");
    // Where it has none any more, another one is found in the same poll.
    set(1, false);
    assert_eq!(rails.begin_poll(false).first, Some(PEER));
    assert_eq!(arms(), [1, 1, 1]);
}
