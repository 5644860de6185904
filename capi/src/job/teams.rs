//! The teams that C has made.

use std::collections::{HashMap, VecDeque};

use argonet_engine::TeamKey;
use parking_lot::Mutex;

use crate::job::{Placed, Team};
use crate::tools::warn;

/// How many destroyed teams a debug build keeps, to report a later use of one.
const KEPT: usize = 64;

/// The teams of a process, by what messages call them and the rank that the process has there.
#[derive(Default)]
pub(crate) struct Teams(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    live: HashMap<(TeamKey, u32), Placed>,
    /// Lately destroyed, in debug builds.
    gone: VecDeque<Placed>,
    /// Whether the client was warned.
    warned: bool,
    /// Distances of the job's ranks, each added to an address of the rank's process; empty as long
    /// as no segment is attached.
    deltas: Box<[Option<isize>]>,
}

/// Its place among the others.
fn place(team: &Team) -> Option<(TeamKey, u32)> {
    let made = team.as_made()?;
    Some((made.team.key, made.team.rank))
}

impl Teams {
    /// Gives the handle of a team.
    ///
    /// Where several threads make one team together, they all get the handle of the first.
    pub(crate) fn add(&self, team: Team) -> *const Team {
        let mut inner = self.0.lock();
        let inner = &mut *inner;
        let Some(place) = place(&team) else {
            return core::ptr::null();
        };
        let deltas = &inner.deltas;
        let placed = inner.live.entry(place).or_insert_with(|| {
            let placed = Placed::new(team);
            placed.set_deltas(&placed.deltas(deltas));
            placed
        });
        placed.handle()
    }

    /// Ends the life of a handle.
    ///
    /// Where `keep` says so its memory stays for a while, so that a later use of it is reported.
    pub(crate) fn remove(&self, place: (TeamKey, u32), keep: bool) {
        let mut inner = self.0.lock();
        let Some(placed) = inner.live.remove(&place) else {
            return;
        };
        if keep {
            placed.set_destroyed();
            inner.gone.push_back(placed);
            if inner.gone.len() > KEPT {
                inner.gone.pop_front();
            }
        }
    }

    /// Warns the user of `what`, the first time; the program goes on.
    pub(crate) fn warn_once(&self, what: &str) {
        let warned = core::mem::replace(&mut self.0.lock().warned, true);
        if !warned {
            warn(what);
        }
    }

    /// Records where segments are attached, for all teams and those to come.
    pub(crate) fn set_deltas(&self, deltas: Box<[Option<isize>]>) {
        let mut inner = self.0.lock();
        for placed in inner.live.values() {
            placed.set_deltas(&placed.deltas(&deltas));
        }
        inner.deltas = deltas;
    }
}
