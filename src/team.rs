//! Teams: some ranks of a job in an order of their own.

use crate::error::{Error, Result};
use crate::process;
use crate::world::{Threading, World};
use argonet_base::{JobRank, Rank};
use argonet_engine::{Choice, OwnedTeam, TeamError, Terms};

/// Some ranks of the job, numbered from 0 in an order of their own, for collective operations of
/// these ranks alone.
///
/// A team is a value of this rank, which belongs to it; operations on it take the [`World`], and
/// names of its ranks as arguments are ranks of the team. [`world_rank`](Self::world_rank) leads
/// from them to pointers and messages, which know ranks of the world.
///
/// Dropping a team sends nothing and waits for nothing, and each rank may do so when it likes. The
/// library gives the team's memory back when all its ranks have dropped it and make another team.
///
/// ```
/// # use argonet::{SharedArray, World};
/// # let world = World::init().unwrap();
/// // Ranks in rows of four, from the last to the first in each.
/// let (row, column) = (world.rank().0 / 4, world.rank().0 % 4);
/// let team = world.team().split(&world, Some(row), -i64::from(column) as i32).unwrap().unwrap();
/// assert!(team.size() <= 4 && team.rank().0 < team.size());
/// assert_eq!(team.world_rank(team.rank()), world.rank());
/// assert_eq!(team.rank_of(world.rank()), Some(team.rank()));
/// // The next rank of the row, around its end.
/// let v = SharedArray::<u32>::alloc(&world, 1).unwrap();
/// let next = team.world_rank(team.rank_offset(1));
/// world.put_value(v.ptr(next, 0), world.rank().0).unwrap();
/// team.barrier(&world).unwrap();
/// assert_eq!(v.read(&world, 0), team.world_rank(team.rank_offset(-1)).0);
/// ```
///
/// Source: GASNet-EX, `gex_TM_t`.
pub struct Team {
    team: OwnedTeam,
}

/// The result of a call on a parent team.
fn made<T>(rank: Rank, outcome: Result<T, TeamError>) -> Result<T> {
    outcome.map_err(|cause| match cause {
        TeamError::Op(error) => error.into(),
        cause => Error::Team { rank, cause },
    })
}

impl Team {
    pub(crate) fn of_engine(&self) -> &std::sync::Arc<argonet_engine::Team> {
        &self.team
    }

    /// This rank's number in the team.
    ///
    /// See the example of [`Team`].
    #[inline]
    #[must_use]
    pub fn rank(&self) -> Rank {
        Rank(self.team.rank)
    }

    /// How many ranks it has.
    ///
    /// See the example of [`Team`].
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        self.team.size()
    }

    /// All its ranks.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let team = world.team();
    /// let ranks: Vec<_> = team.ranks().map(|rank| team.world_rank(rank)).collect();
    /// assert!(ranks.into_iter().eq(world.ranks()));
    /// ```
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = Rank> + Clone + use<> {
        (0..self.size()).map(Rank)
    }

    /// The rank of the team `distance` further on, around the end.
    ///
    /// See the example of [`Team`].
    #[must_use]
    pub fn rank_offset(&self, distance: i64) -> Rank {
        let size = i64::from(self.size());
        let place = i64::from(self.rank().0) + distance.rem_euclid(size);
        Rank((place % size) as u32)
    }

    /// The rank in the world of a rank of the team.
    ///
    /// See the example of [`Team`].
    ///
    /// # Panics
    /// If the team has no such rank.
    #[inline]
    #[must_use]
    pub fn world_rank(&self, rank: Rank) -> Rank {
        let size = self.size();
        assert!(
            rank.0 < size,
            "rank {rank} does not exist: the team has {size} ranks"
        );
        Rank(self.team.job_rank(rank.0).0)
    }

    /// The rank in the team of a rank of the world, if it belongs to the team.
    ///
    /// See the example of [`Team`].
    #[inline]
    #[must_use]
    pub fn rank_of(&self, world_rank: Rank) -> Option<Rank> {
        let rank = self.team.members.rank_of(JobRank(world_rank.0))?;
        Some(Rank(rank))
    }

    /// Splits the team: ranks that give the same color become a team, in the order of their keys,
    /// then of their ranks here.
    ///
    /// A rank without a color takes part and joins none. Collective over the team, and a barrier of
    /// it: it blocks, polling.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let odd = world.rank().0 % 2 == 1;
    /// let odds = world.team().split(&world, odd.then_some(0), 0).unwrap();
    /// assert_eq!(odds.is_some(), odd);
    /// ```
    ///
    /// # Errors
    /// [`Error::Team`] on all ranks of the team if they do not all call this;
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler.
    ///
    /// Source: GASNet-EX, `gex_TM_Split`.
    pub fn split<M: Threading>(
        &self,
        world: &World<M>,
        color: Option<u32>,
        key: i32,
    ) -> Result<Option<Team>> {
        let choice = color.map(|color| Choice { color, key });
        let engine = world.engine();
        let outcome =
            process::with(|ctx| engine.team_split(ctx, &self.team, choice, Terms::default()));
        let team = made(world.rank(), outcome)?;
        Ok(team.map(|team| Team {
            team: engine.team_owned(team),
        }))
    }

    /// Creates a team of a list of ranks of this team, which is the order of their ranks in the new
    /// one.
    ///
    /// Collective over this team, and a barrier of it: ranks that are to belong to one team give
    /// the same list, which names each once, and others an empty one. So one call can make several
    /// teams that have no rank in common.
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let mut all: Vec<Rank> = world.ranks().collect();
    /// all.reverse();
    /// let team = world.team().create(&world, &all).unwrap().unwrap();
    /// assert_eq!(team.rank().0, world.size() - 1 - world.rank().0);
    /// assert!(world.team().create(&world, &[]).unwrap().is_none());
    /// ```
    ///
    /// # Errors
    /// [`Error::Team`] for a list that names a rank twice or one that does not exist, or that
    /// differs from the list of a rank that it names. A rank whose own list is valid gets the error
    /// of another's where that names it, or its own names that rank.
    ///
    /// Source: GASNet-EX, `gex_TM_Create`.
    pub fn create<M: Threading>(&self, world: &World<M>, ranks: &[Rank]) -> Result<Option<Team>> {
        // A rank outside of this team becomes one outside of the job, so that others get the error.
        let missing = ranks.iter().find(|rank| rank.0 >= self.size());
        let place = |rank: &Rank| match missing {
            None => (self.team.job_rank(rank.0), 0),
            Some(_) => (JobRank(u32::MAX), 0),
        };
        let list: Vec<_> = ranks.iter().map(place).collect();
        let engine = world.engine();
        let outcome =
            process::with(|ctx| engine.team_create(ctx, &self.team, &list, Terms::default()));
        let outcome = outcome.map_err(|error| match (error, missing) {
            (TeamError::NoSuchProcess { .. }, Some(rank)) => TeamError::NoSuchProcess {
                process: JobRank(rank.0),
                size: self.size(),
            },
            (error, _) => error,
        });
        let teams = made(world.rank(), outcome)?;
        Ok(teams.into_iter().next().map(|team| Team {
            team: engine.team_owned(team),
        }))
    }

    /// Waits until every rank of the team has entered the barrier.
    ///
    /// Collective over the team; polls.
    ///
    /// See the example of [`Team`].
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler.
    pub fn barrier<M: Threading>(&self, world: &World<M>) -> Result<()> {
        Ok(process::with(|ctx| {
            world.engine().team_barrier(ctx, &self.team)
        })?)
    }
}

impl<M: Threading> World<M> {
    /// The team of all ranks, in which they have the numbers that they have here.
    ///
    /// See the example of [`Team`].
    #[must_use]
    pub fn team(&self) -> Team {
        let engine = self.engine();
        let team = engine.world_team().clone();
        Team {
            team: engine.team_owned(team),
        }
    }

    /// The team of the ranks that are not lost, in their order here.
    ///
    /// All survivors get the same team, also where ranks are lost during the call; without a loss
    /// it has all ranks. Collective over the survivors; blocks, polling. Each of them calls it
    /// equally often, by one thread at a time; if one finalizes meanwhile, the job ends. A rank
    /// that is lost later breaks the team: its calls fail with
    /// [`AmError::PeerLost`](crate::AmError::PeerLost), and the survivors make another.
    ///
    /// See the example of [`Builder::on_peer_lost`](crate::Builder::on_peer_lost).
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler.
    pub fn survivors(&self) -> Result<Team> {
        let engine = self.engine();
        let team = process::with(|ctx| engine.survivors(ctx))?;
        Ok(Team {
            team: engine.team_owned(team),
        })
    }

    /// The team of the ranks that share memory with this one, in their order here.
    ///
    /// Collective over the world, and a barrier.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let neighbors = world.neighborhood_team().unwrap();
    /// let host = world.host_team().unwrap();
    /// assert!(neighbors.size() <= host.size() && host.size() <= world.size());
    /// assert!(neighbors.ranks().all(|rank| host.rank_of(neighbors.world_rank(rank)).is_some()));
    /// ```
    ///
    /// # Errors
    /// As [`Team::split`].
    pub fn neighborhood_team(&self) -> Result<Team> {
        let engine = self.engine();
        self.team_of(engine.neighborhood_of(engine.rank()))
    }

    /// The team of the ranks on this host, in their order here.
    ///
    /// Collective over the world, and a barrier.
    ///
    /// See the example of [`neighborhood_team`](Self::neighborhood_team).
    ///
    /// # Errors
    /// As [`Team::split`].
    pub fn host_team(&self) -> Result<Team> {
        self.team_of(self.inner.placement.host(self.engine().rank()))
    }

    /// The team of the ranks with the same `place`.
    fn team_of(&self, place: u32) -> Result<Team> {
        let team = self.team().split(self, Some(place), 0)?;
        match team {
            Some(team) => Ok(team),
            None => unreachable!("a rank with a color joins a team"),
        }
    }
}
