//! Making and ending teams.
#![allow(unsafe_code)]

use super::super::collective::{Offer, Offered};
use super::super::core::Engine;
use super::super::thread::ThreadCtx;
use super::super::{Call, Kind, OpError};
use super::entry::{self, Choice, Digest, ENTRY_BYTES, Entry, Part, Terms, check_list};
use super::error::TeamError;
use super::{Members, Team, TeamKey, form};
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::Conduit;
use argonet_event::Event;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// State of an engine for making and ending teams.
#[derive(Default)]
pub(crate) struct Making {
    /// The last number that this process has given, for the key of a team that it may lead.
    number: AtomicU32,
    /// Teams that several members of the parent in this process make together, until all have come
    /// for them.
    shared: Mutex<HashMap<TeamKey, Shared>>,
    /// Teams of [`OwnedTeam`]s that were dropped.
    dropped: Mutex<Vec<Arc<Team>>>,
    /// Teams that this process has left, and the barrier after which no message for them comes any
    /// more.
    left: Mutex<Vec<(Arc<Team>, Event)>>,
}

/// Teams that the first of several callers has opened.
struct Shared {
    teams: Vec<Arc<Team>>,
    /// Callers that are still to come for them.
    callers: u32,
}

/// A team that this process leaves when the value is dropped; see [`Engine::team_owned`].
///
/// No process leaves the world.
pub struct OwnedTeam {
    team: Arc<Team>,
    making: Arc<Making>,
}

impl core::ops::Deref for OwnedTeam {
    type Target = Arc<Team>;

    fn deref(&self) -> &Arc<Team> {
        &self.team
    }
}

impl Drop for OwnedTeam {
    fn drop(&mut self) {
        if self.team.key != TeamKey::WORLD {
            self.making.dropped.lock().push(Arc::clone(&self.team));
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// Splits a team: members that choose the same color become a team, in the order of their keys,
    /// then of their ranks in `parent`; a member without a color joins none.
    ///
    /// Collective over `parent`, and a barrier. Gives the team of this member, which can be used at
    /// once.
    ///
    /// # Errors
    /// [`TeamError::DifferentTerms`], which all members of the team get;
    /// [`TeamError::DifferentCalls`], which all members of `parent` get;
    /// [`AmError::Restricted`](argonet_am::AmError::Restricted) inside a handler.
    ///
    /// Source: GASNet-EX, `gex_TM_Split`.
    pub fn team_split(
        &self,
        ctx: &ThreadCtx,
        parent: &Arc<Team>,
        choice: Option<Choice>,
        terms: Terms,
    ) -> Result<Option<Arc<Team>>, TeamError> {
        let part = choice.map_or(Part::Nothing, Part::Join);
        let (entries, offered) = self.exchange(ctx, parent, entry::Call::Split, part, terms)?;
        let formed = form::split(&parent.members, &entries, parent.rank)?;
        Ok(formed.map(|formed| {
            let team = self.open_team(formed.key, Arc::new(formed.members), formed.rank);
            self.give_slot(&team, &offered, offers(parent, &entries));
            team
        }))
    }

    /// Creates teams from lists of endpoints, each list in the order of ranks.
    ///
    /// Collective over `parent`, which has a member of every process that is in a list, and a
    /// barrier; lists that members give are the same or have no endpoint in common, and every
    /// process in a list gives it. An empty list makes no team. Gives a team for each member that
    /// this process has, by rank.
    ///
    /// If members of `parent` in one process give the same list, they get the same teams.
    ///
    /// # Errors
    /// A list that cannot be; it is reported to other members of `parent`, and this call takes part
    /// nevertheless. [`TeamError::Overlap`] and [`TeamError::Absent`], of which the other ranks
    /// that give the list may learn nothing: their team waits for this member. As
    /// [`team_split`](Self::team_split).
    ///
    /// Source: GASNet-EX, `gex_TM_Create`.
    pub fn team_create(
        &self,
        ctx: &ThreadCtx,
        parent: &Arc<Team>,
        list: &[(JobRank, u32)],
        terms: Terms,
    ) -> Result<Vec<Arc<Team>>, TeamError> {
        let checked = check_list(list, self.size());
        let part = match (&checked, list) {
            (Err(_), _) => Part::Wrong,
            (Ok(()), []) => Part::Nothing,
            (Ok(()), list) => Part::List(Digest::of(list, self.rank())),
        };
        let (entries, offered) = self.exchange(ctx, parent, entry::Call::Create, part, terms)?;
        checked?;
        // A list that is not empty and names nothing twice has members.
        let Some(members) = Members::new(list) else {
            return Ok(Vec::new());
        };
        let listed = form::create(&parent.members, &entries, parent.rank, list)?;
        let open = || {
            let members = Arc::new(members);
            let own = (0..)
                .zip(list)
                .filter(|(_, (process, _))| *process == self.rank());
            own.map(|(rank, _)| self.open_team(listed.key, Arc::clone(&members), rank))
                .collect::<Vec<_>>()
        };
        if listed.callers == 1 {
            let teams = open();
            for team in &teams {
                self.give_slot(team, &offered, offers(parent, &entries));
            }
            return Ok(teams);
        }
        let mut shared = self.making.shared.lock();
        let entry = shared.entry(listed.key).or_insert_with(|| Shared {
            teams: open(),
            callers: listed.callers,
        });
        let teams = entry.teams.clone();
        entry.callers -= 1;
        if entry.callers == 0 {
            shared.remove(&listed.key);
        }
        Ok(teams)
    }

    /// Ends this member's part in a team, whose collective operations that this member started are
    /// complete.
    ///
    /// All members do so; the call waits for none. The engine releases its state of the team when
    /// all members have: in this call, or in a later one that makes or leaves a team. If `quiesced`
    /// says that all members' collective operations are complete, it releases the state at once. A
    /// team that has lost a member is closed at once, and what others may still use of it stays.
    ///
    /// # Errors
    /// [`AmError::Restricted`](argonet_am::AmError::Restricted) inside a handler.
    ///
    /// Source: GASNet-EX, `gex_TM_Destroy`.
    pub fn team_leave(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        quiesced: bool,
    ) -> Result<(), OpError> {
        ctx.permit_collective("leaving a team", self.rank())?;
        if quiesced {
            self.close_team(team);
        } else {
            self.leave_or_close(ctx, team)?;
        }
        self.forget_left(ctx)
    }

    /// Leaves a team, or closes it if it is broken: no member waits for this one.
    fn leave_or_close(&self, ctx: &ThreadCtx, team: &Arc<Team>) -> Result<(), OpError> {
        match self.start_leaving(ctx, team) {
            Err(OpError::Am(AmError::PeerLost { .. })) => {
                self.close_team(team);
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn start_leaving(&self, ctx: &ThreadCtx, team: &Arc<Team>) -> Result<(), OpError> {
        // Messages that others still send for the team come before this barrier is complete: none
        // follows it. SAFETY: a barrier touches no memory.
        let event = unsafe { self.collective_start(ctx, team, Call::of(Kind::Barrier)) }?;
        self.making.left.lock().push((Arc::clone(team), event));
        Ok(())
    }

    /// Leaves all teams that have a slot of cells, the world's included, and waits until their
    /// members have.
    ///
    /// The barrier by which a member leaves compares the history of calls with a root, so ranks
    /// that differ in those alone are found at the end of the job at the latest. Collective, after
    /// the last call of any rank.
    pub(crate) fn leave_teams_with_slots(&self, ctx: &ThreadCtx) -> Result<(), AmError> {
        if self.conduit.shared_cells().is_none() {
            return Ok(());
        }
        // Another rank may have called something of it where this one has not.
        self.world_team();
        let left: Vec<_> = {
            let left = self.making.left.lock();
            left.iter().map(|(team, _)| team.key).collect()
        };
        let with_slots = self.background.collectives.with_slots();
        for team in with_slots.iter().filter(|team| !left.contains(&team.key)) {
            match self.start_leaving(ctx, team) {
                Err(OpError::Am(error)) => return Err(error),
                Err(error) => self.fatal(&error.to_string()),
                Ok(()) => {}
            }
        }
        let shared = || with_slots.iter().filter_map(|team| team.shared.get());
        let what = Waiting::new(WaitFor::Finalize);
        let mut lost = Ok(());
        self.wait_until(ctx, what, || {
            // Others may leave otherwise, and enter no team's barrier any more.
            lost = self.unless_any_lost();
            lost.is_err() || shared().all(|shared| shared.is_idle())
        })?;
        lost
    }

    /// The team as a value that leaves it when it is dropped: any thread may drop it anywhere, as
    /// only the next call that makes or leaves a team sends anything.
    #[must_use]
    pub fn team_owned(&self, team: Arc<Team>) -> OwnedTeam {
        OwnedTeam {
            team,
            making: Arc::clone(&self.making),
        }
    }

    /// Leaves the teams that were dropped, and closes those that all members have left.
    fn forget_left(&self, ctx: &ThreadCtx) -> Result<(), OpError> {
        loop {
            let dropped = self.making.dropped.lock().pop();
            let Some(team) = dropped else { break };
            self.leave_or_close(ctx, &team)?;
        }
        let mut left = self.making.left.lock();
        let mut at = 0;
        while let Some((team, event)) = left.get(at) {
            if ctx.with_cache(&self.events, |cache| self.events.test(cache, *event))? {
                // A loss may have ended it, and no member calls anything more.
                let _ = self.unless_failed(event.raw());
                self.close_team(team);
                left.swap_remove(at);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// Exchanges entries with all members of a team; returns theirs, by rank.
    fn exchange(
        &self,
        ctx: &ThreadCtx,
        parent: &Arc<Team>,
        call: entry::Call,
        part: Part,
        terms: Terms,
    ) -> Result<(Vec<Entry>, Offered<'_>), TeamError> {
        ctx.permit_collective("making a team", self.rank())?;
        self.forget_left(ctx)?;
        let offered = self.offer_slots();
        let own = Entry {
            // From 1 on: 0 is the world's.
            number: self
                .making
                .number
                .fetch_add(1, Ordering::Relaxed)
                .wrapping_add(1),
            call,
            part,
            terms,
            offer: offered.offer,
        };
        let mut all = vec![0; ENTRY_BYTES * parent.size() as usize];
        self.gather_all(ctx, parent, &own.to_bytes(), &mut all)?;
        let (entries, _) = all.as_chunks::<ENTRY_BYTES>();
        let read = |(other, bytes)| Entry::read(bytes).ok_or(TeamError::Unreadable { other });
        let entries: Vec<_> = (0..).zip(entries).map(read).collect::<Result<_, _>>()?;
        form::same_call(&entries)?;
        Ok((entries, offered))
    }
}

/// The offers of the members of a parent, by process.
fn offers(parent: &Team, entries: &[Entry]) -> impl Iterator<Item = (JobRank, Offer)> {
    let offer = |(rank, entry): (u32, &Entry)| (parent.job_rank(rank), entry.offer);
    (0..).zip(entries).map(offer)
}
