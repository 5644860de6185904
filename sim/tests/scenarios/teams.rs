//! Teams over a wire that loses, repeats, delays and damages frames: splits and lists that all
//! ranks can foretell, teams of teams, and their ends.

use crate::harness;

use argonet_am::{AmError, HandlerTable};
use argonet_base::JobRank;
use argonet_engine::{BarrierKind, Choice, Team, TeamError, Terms};
use argonet_sim::{JobConfig, Outcome, Rank, StartError};
use std::sync::Arc;

const RANKS: u32 = 5;
const ROUNDS: u64 = 6;

fn register(_: JobRank, _: &mut HandlerTable) -> Result<(), AmError> {
    Ok(())
}

/// The same numbers at all ranks.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % u64::from(end)) as u32
    }
}

/// All members are the right ranks, by their own messages.
fn meets(rank: &Rank, team: &Arc<Team>, members: &[u32]) {
    let (engine, ctx) = (&rank.engine, &rank.ctx);
    let me = engine.rank().0;
    assert_eq!(team.size() as usize, members.len());
    assert_eq!(members[team.rank as usize], me);
    let mut all = vec![0; members.len() * 4];
    engine
        .gather_all(ctx, team, &me.to_le_bytes(), &mut all)
        .unwrap();
    let said: Vec<_> = all
        .chunks(4)
        .map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    assert_eq!(said, members);
}

fn program(rank: &Rank, (): ()) {
    let (engine, ctx) = (&rank.engine, &rank.ctx);
    let me = engine.rank().0;
    let world = engine.world_team().clone();
    for round in 1..=ROUNDS {
        let mut numbers = Numbers(round);
        // (color, key) of each rank; color 0 joins nothing.
        let chosen: Vec<_> = (0..RANKS)
            .map(|_| (numbers.below(3), numbers.below(4) as i32 - 2))
            .collect();
        let of = |ranks: &[u32], color| {
            let mut those: Vec<_> = ranks
                .iter()
                .copied()
                .filter(|&rank| chosen[rank as usize].0 == color)
                .collect();
            those.sort_by_key(|&rank| chosen[rank as usize].1);
            those
        };
        let (color, key) = chosen[me as usize];
        rank.doing(format_args!("round {round}, color {color}"));
        let choice = (color > 0).then_some(Choice { color, key });
        let all: Vec<_> = (0..RANKS).collect();
        let made = engine
            .team_split(ctx, &world, choice, Terms::default())
            .unwrap();
        assert_eq!(made.is_some(), color > 0);
        if let Some(first) = made {
            let members = of(&all, color);
            meets(rank, &first, &members);
            // A team of this one in reverse order, by a list.
            let list: Vec<_> = members
                .iter()
                .rev()
                .map(|&rank| (JobRank(rank), 0))
                .collect();
            let mut made = engine
                .team_create(ctx, &first, &list, Terms::default())
                .unwrap();
            let second = made.pop().unwrap();
            assert!(made.is_empty());
            engine.team_leave(ctx, &first, false).unwrap();
            let turned: Vec<_> = members.iter().rev().copied().collect();
            meets(rank, &second, &turned);
            engine.team_leave(ctx, &second, false).unwrap();
        }
        // Ranks with nothing to contribute take part.
        let own = [(JobRank(me), 0)];
        let list: &[_] = if color == 1 { &own } else { &[] };
        let made = engine
            .team_create(ctx, &world, list, Terms::default())
            .unwrap();
        assert_eq!(made.len(), list.len());
        for alone in &made {
            meets(rank, alone, &[me]);
            engine.team_leave(ctx, alone, true).unwrap();
        }
        // An error at the last rank is reported to the ranks that name it, and the job goes on.
        let (last, first) = (JobRank(RANKS - 1), JobRank(0));
        let list = match me {
            0 => vec![(first, 0), (last, 0)],
            rank if rank == last.0 => vec![(last, 0), (first, 0), (last, 0)],
            _ => vec![],
        };
        let outcome = engine.team_create(ctx, &world, &list, Terms::default());
        match me {
            0 => assert_eq!(
                outcome.unwrap_err(),
                TeamError::WrongElsewhere { other: last.0 }
            ),
            rank if rank == last.0 => {
                let twice = TeamError::Twice {
                    process: last,
                    endpoint: 0,
                };
                assert_eq!(outcome.unwrap_err(), twice);
            }
            _ => assert!(outcome.unwrap().is_empty()),
        }
    }
    engine.barrier(ctx, BarrierKind::Client).unwrap();
}

fn job(config: &JobConfig) -> Result<Outcome, StartError> {
    argonet_sim::run(config, None, register, program)
}

#[test]
fn nothing_goes_wrong() {
    harness::nothing_goes_wrong(RANKS, &job);
}

#[test]
fn all_faults_at_once() {
    harness::all_faults_at_once(RANKS, &job);
}
