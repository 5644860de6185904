//! The teams that are open, and the messages that have come for teams that are not open yet.

use super::call::Kind;
use super::label::Label;
use super::mailbox::{Count, Mailbox};
use super::plan::{Hoods, Tuning};
use super::pull::CrossMemory;
use super::scratch::Spare;
use super::slots::Slots;
use super::started::Started;
use super::wire::Header;
use crate::background::Background;
use crate::core::Engine;
use crate::limits::internal;
use crate::{Members, Team, TeamKey};
use argonet_am::{AmError, Delivery, HandlerTable};
use argonet_base::JobRank;
use argonet_conduit::Conduit;
use argonet_segment::SharedBytes;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Teams that messages may name and that this process has not opened, at most.
const MOST_UNOPENED: usize = 1024;

/// Bytes that messages for such teams take, at most, all together.
const MOST_UNOPENED_BYTES: usize = 256 << 20;

/// A team's member, and the state of its calls.
pub(super) struct Member {
    pub(super) team: Arc<Team>,
    pub(super) hoods: Hoods,
    tuning: Mutex<Tuning>,
    pub(super) spare: Spare,
    /// Taken for moments.
    pub(super) mailbox: Arc<Mutex<Mailbox>>,
    /// Set once, by the thread that closes the team; Relaxed, as locks follow.
    closed: AtomicBool,
}

impl Member {
    pub(super) fn tuning(&self) -> Tuning {
        *self.tuning.lock()
    }

    /// Bytes that are sent without asking, where a medium has at most `medium`.
    pub(super) fn eager_bytes(&self, medium: usize) -> usize {
        self.tuning().eager_bytes.min(medium)
    }
}

/// Where the collective operations of teams find their state.
#[derive(Default)]
struct Registry {
    /// By key, and rank of the member: a process may be member several times.
    mailboxes: HashMap<(TeamKey, u32), Arc<Mutex<Mailbox>>>,
    members: HashMap<(TeamKey, u32), Arc<Member>>,
    unopened: usize,
}

/// Returns the neighborhood of a rank.
pub type HoodOf = Box<dyn Fn(JobRank) -> u32 + Send + Sync>;

/// State of the collective operations.
#[derive(Default)]
pub(crate) struct Collectives {
    registry: Mutex<Registry>,
    /// Bytes of messages for teams that are not open.
    ///
    /// Changed under the lock of the mailbox that they are in; Relaxed, as it is a sum that nothing
    /// else depends on.
    early_bytes: AtomicUsize,
    world: OnceLock<(Arc<Team>, Arc<Member>)>,
    hood_of: OnceLock<HoodOf>,
    tuning: OnceLock<Tuning>,
    pub(super) cross_memory: CrossMemory,
    /// Calls that are not complete, those of each team in their order.
    ///
    /// Taken for moments.
    pub(super) started: Mutex<Vec<Arc<Started>>>,
    pub(crate) slots: Slots,
    pub(crate) stuck: AtomicBool,
}

pub(crate) fn register(
    background: &Arc<Background>,
    handlers: &mut HandlerTable,
) -> Result<(), AmError> {
    let this = Arc::clone(background);
    let run = move |delivery: &mut Delivery<'_>| {
        if let Err(message) = this.collectives.arrive(delivery) {
            this.complain(message);
        }
    };
    handlers.register_internal(internal::COLLECTIVE, "argonet::collective", Box::new(run))
}

impl Collectives {
    /// A message comes.
    fn arrive(&self, delivery: &Delivery<'_>) -> Result<(), String> {
        let source = delivery.source();
        let Some(header) = Header::read(delivery) else {
            return Err(format!(
                "rank {source} sent a malformed message of a collective operation"
            ));
        };
        self.take(source, &header, delivery.payload())
    }

    fn take(
        &self,
        source: JobRank,
        header: &Header,
        payload: SharedBytes<'_>,
    ) -> Result<(), String> {
        let mailbox = self.mailbox(header, source)?;
        let mut mailbox = mailbox.lock();
        if let Some(bytes) = mailbox.early(header.form, payload.len()) {
            let before = self.early_bytes.fetch_add(bytes, Ordering::Relaxed);
            if before + bytes > MOST_UNOPENED_BYTES {
                return Err(format!(
                    "rank {source} sent a message of team {:#x}, which this rank has not opened, and messages of such teams \
                     take more than {MOST_UNOPENED_BYTES} bytes; make teams at about the same time on all ranks, or set \
                     ARGONET_COLL_EAGER_SIZE to less",
                    header.key.0
                ));
            }
        }
        mailbox.arrive(source, header, payload)
    }

    /// The mailbox that keeps a member's messages.
    fn mailbox(&self, header: &Header, source: JobRank) -> Result<Arc<Mutex<Mailbox>>, String> {
        if header.key == TeamKey::WORLD
            && let Some((team, member)) = self.world.get()
            && team.rank == header.to
        {
            return Ok(Arc::clone(&member.mailbox));
        }
        let mut registry = self.registry.lock();
        if let Some(mailbox) = registry.mailboxes.get(&(header.key, header.to)) {
            return Ok(Arc::clone(mailbox));
        }
        if registry.unopened >= MOST_UNOPENED {
            return Err(format!(
                "rank {source} sent a message of team {:#x}, the {MOST_UNOPENED}th that this rank has not opened",
                header.key.0
            ));
        }
        registry.unopened += 1;
        let mailbox = Arc::<Mutex<Mailbox>>::default();
        let key = (header.key, header.to);
        registry.mailboxes.insert(key, Arc::clone(&mailbox));
        Ok(mailbox)
    }

    /// The state of a team that is open.
    pub(super) fn member(&self, team: &Team) -> Option<Arc<Member>> {
        if team.key == TeamKey::WORLD
            && let Some((_, member)) = self.world.get()
        {
            return Some(Arc::clone(member));
        }
        let registry = self.registry.lock();
        registry.members.get(&(team.key, team.rank)).map(Arc::clone)
    }

    /// The member of an open team in this process, if there is exactly one.
    fn only_member(&self, key: TeamKey) -> Option<Arc<Member>> {
        let registry = self.registry.lock();
        let mut members = registry.members.values().filter(|m| m.team.key == key);
        let first = members.next().map(Arc::clone);
        first.filter(|_| members.next().is_none())
    }

    fn open(&self, team: &Arc<Team>, hoods: Hoods) -> Arc<Member> {
        let key = (team.key, team.rank);
        let mut registry = self.registry.lock();
        let known = registry.mailboxes.remove(&key);
        registry.unopened -= usize::from(known.is_some());
        let mailbox = known.unwrap_or_default();
        let early = mailbox.lock().open(team);
        self.early_bytes.fetch_sub(early, Ordering::Relaxed);
        let member = Arc::new(Member {
            team: Arc::clone(team),
            hoods,
            tuning: Mutex::new(*self.tuning.get_or_init(|| Tuning::DEFAULT)),
            spare: Spare::default(),
            mailbox: Arc::clone(&mailbox),
            closed: AtomicBool::new(false),
        });
        registry.mailboxes.insert(key, mailbox);
        registry.members.insert(key, Arc::clone(&member));
        member
    }

    /// Forgets a team that has been closed, if nothing of it is under way any more.
    pub(super) fn forget(&self, member: &Member) {
        if !member.closed.load(Ordering::Relaxed) || !member.mailbox.lock().is_idle() {
            return;
        }
        let mut registry = self.registry.lock();
        registry
            .mailboxes
            .remove(&(member.team.key, member.team.rank));
    }

    /// A rank is lost: what comes for its teams goes nowhere from now on.
    pub(crate) fn lose(&self, rank: JobRank) {
        let world = self.world.get().map(|(_, member)| Arc::clone(member));
        let broken: Vec<Arc<Member>> = {
            let registry = self.registry.lock();
            let members = registry.members.values().chain(&world);
            let broken = members.filter(|m| m.team.members.rank_of(rank).is_some());
            broken.map(Arc::clone).collect()
        };
        for member in broken {
            member.mailbox.lock().give_up();
        }
    }

    /// Whether nothing is kept of any team but the world.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let registry = self.registry.lock();
        let others = registry.mailboxes.keys();
        others.filter(|(key, _)| *key != TeamKey::WORLD).count() == 0
    }

    /// Messages that are kept for the world.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.world
            .get()
            .map_or(0, |(_, member)| member.mailbox.lock().kept())
    }

    /// Questions about calls to come.
    #[cfg(test)]
    pub(crate) fn questions(&self) -> usize {
        self.registry
            .lock()
            .mailboxes
            .values()
            .map(|mailbox| mailbox.lock().questions())
            .sum()
    }

    /// Open teams that have a slot of cells, those included that this rank has begun to leave.
    pub(crate) fn with_slots(&self) -> Vec<Arc<Team>> {
        let registry = self.registry.lock();
        let teams = registry.members.values().map(|member| &member.team);
        let with_slots = teams.filter(|team| team.shared.get().is_some());
        with_slots.map(Arc::clone).collect()
    }

    /// How this rank chooses algorithms, if no team is open yet.
    pub(super) fn tune(&self, tuning: Tuning) -> bool {
        self.tuning.set(tuning).is_ok()
    }
}

impl<C: Conduit> Engine<C> {
    /// Sets which ranks are neighbors, before the first collective operation: those for which
    /// `hood_of` returns the same.
    ///
    /// All ranks set the same neighborhoods. Without it all are neighbors if the engine's directory
    /// has the segments of all, else none.
    pub fn set_neighborhoods(&self, hood_of: HoodOf) -> bool {
        self.background.collectives.hood_of.set(hood_of).is_ok()
    }

    /// Chooses how collective operations go, before the first of them; the same at all ranks.
    ///
    /// Says whether it was early enough.
    pub fn tune_collectives(&self, tuning: Tuning) -> bool {
        self.background.collectives.tune(tuning)
    }

    /// The neighborhood of a rank: ranks of which this is the same are neighbors.
    pub fn neighborhood_of(&self, rank: JobRank) -> u32 {
        match self.background.collectives.hood_of.get() {
            Some(hood_of) => hood_of(rank),
            None if self.directory().are_all_mapped(self.size) => 0,
            None => rank.0,
        }
    }

    /// The neighborhoods of some members.
    fn hoods_of(&self, members: &Members) -> Hoods {
        let size = members.size();
        match self.background.collectives.hood_of.get() {
            Some(hood_of) => Hoods::new(size, |rank| hood_of(members.job_rank(rank))),
            None if self.directory().are_all_mapped(self.size) => Hoods::one(size),
            None => Hoods::new(size, |rank| members.job_rank(rank).0),
        }
    }

    /// The team of all ranks.
    pub fn world_team(&self) -> &Arc<Team> {
        let collectives = &self.background.collectives;
        let (team, _) = collectives.world.get_or_init(|| {
            let team = Arc::new(Team::world(self.rank, self.size));
            self.give_world_slot(&team);
            let member = collectives.open(&team, self.hoods_of(&team.members));
            (team, member)
        });
        team
    }

    /// Opens a team: from now on this member may call collective operations of it.
    ///
    /// Others may have sent messages already. No other team of the same key is open anywhere.
    pub fn open_team(&self, key: TeamKey, members: Arc<Members>, rank: u32) -> Arc<Team> {
        let hoods = self.hoods_of(&members);
        let team = Arc::new(Team::new(key, members, rank));
        self.background.collectives.open(&team, hoods);
        team
    }

    /// How far this rank is in the team's sequence of calls; `None` if it is not open here.
    ///
    /// A shared team counts rounds and clients' calls by messages, another one all its calls.
    pub(crate) fn team_calls(&self, key: TeamKey) -> Option<u64> {
        if key == TeamKey::WORLD {
            self.world_team();
        }
        let member = self.background.collectives.only_member(key)?;
        Some(match member.team.shared.get() {
            Some(shared) => shared.calls(),
            None => member.mailbox.lock().next().into(),
        })
    }

    /// Whether a call of this rank in a team is not complete before a rank of the job has called
    /// it.
    pub(crate) fn team_needs(&self, key: TeamKey, label: &Label, rank: JobRank) -> bool {
        let member = self.background.collectives.only_member(key);
        let needs = |member: Arc<Member>| {
            let other = member.team.members.rank_of(rank)?;
            Some(label.waits_for(member.team.rank, other))
        };
        member.and_then(needs).unwrap_or(false)
    }

    /// How operations of a team go.
    pub fn tuning_of(&self, team: &Team) -> Tuning {
        let member = self.background.collectives.member(team);
        member.map_or(Tuning::DEFAULT, |member| member.tuning())
    }

    /// Chooses how operations of a team go from now on; all members choose the same, between the
    /// same calls.
    pub fn retune(&self, team: &Team, tuning: Tuning) {
        if let Some(member) = self.background.collectives.member(team) {
            *member.tuning.lock() = tuning;
        }
    }

    /// The calls that this member has made on a team, and the bytes of their blocks, by kind.
    pub fn collective_counts(&self, team: &Team) -> Vec<(Kind, Count)> {
        let member = self.background.collectives.member(team);
        member.map_or_else(Vec::new, |member| member.mailbox.lock().counts())
    }

    /// Collective operations that this member has started on a team and that are not complete.
    pub fn collectives_under_way(&self, team: &Team) -> usize {
        let started = self.background.collectives.started.lock();
        started.iter().filter(|call| call.is_of(team)).count()
    }

    /// Closes a team: this member calls nothing of it any more, and the events of all its calls are
    /// complete.
    ///
    /// Calls that other members still wait for go on. The slot and the mailbox of a team that has
    /// lost a member are not used again: another may not know of the loss, and call it once more.
    pub fn close_team(&self, team: &Arc<Team>) {
        let collectives = &self.background.collectives;
        let member = {
            let mut registry = collectives.registry.lock();
            registry.members.remove(&(team.key, team.rank))
        };
        let Some(member) = member else { return };
        member.closed.store(true, Ordering::Relaxed);
        if self.unless_broken(team).is_err() {
            return;
        }
        if let Some(shared) = team.shared.get() {
            collectives.slots.leave(Arc::clone(shared));
        }
        collectives.forget(&member);
    }
}

#[cfg(test)]
mod tests;
