//! Mistakes of C that debug builds find.

use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_base::gasnet::number32;
use argonet_engine::{OpError, Target, ThreadCtx};

use crate::context::done;
use crate::flags::{IMMEDIATE, PEER_OFFSET, RANK_IS_JOBRANK, SELF_OFFSET};
use crate::job::{Job, Team, fatal};
use crate::ratomic::operation::{ACQUIRE, Operation, RELEASE};

/// `GEX_FLAG_AD_MY_RANK`, `GEX_FLAG_AD_MY_NBRHD`.
const MY_RANK: u32 = number32("GEX_FLAG_AD_MY_RANK");
const MY_NEIGHBORS: u32 = number32("GEX_FLAG_AD_MY_NBRHD");
const HINTS: u32 = MY_RANK | MY_NEIGHBORS;
const ALL: u32 =
    IMMEDIATE | SELF_OFFSET | PEER_OFFSET | HINTS | ACQUIRE | RELEASE | RANK_IS_JOBRANK;

/// `GEX_FLAG_AD_FAVOR_MY_RANK`, `_MY_NBRHD`, `_REMOTE`.
const FAVOR: u32 = number32("GEX_FLAG_AD_FAVOR_MY_RANK")
    | number32("GEX_FLAG_AD_FAVOR_MY_NBRHD")
    | number32("GEX_FLAG_AD_FAVOR_REMOTE");

/// Unknown flags, and hints that are not true of a rank of the team.
pub(super) fn flags(operation: &Operation<'_>, job: &Job, rank: u32) {
    let (flags, team) = (operation.flags, operation.domain.team());
    let wrong = |why: &str| fatal(operation.function, &format!("flags are {flags:#x}: {why}"));
    if flags & !ALL != 0 {
        wrong("not all of them are for remote atomic operations");
    }
    if flags & HINTS == HINTS {
        wrong("GEX_FLAG_AD_MY_RANK and GEX_FLAG_AD_MY_NBRHD exclude each other");
    }
    let there = team.job_rank(rank);
    if flags & MY_RANK != 0 && rank != team.rank() {
        wrong(&format!(
            "rank {rank} of the team, which is rank {there} of the job, is not this one, against GEX_FLAG_AD_MY_RANK"
        ));
    }
    if flags & MY_NEIGHBORS != 0 && !job.neighbors.contains(&there) {
        wrong(&format!(
            "rank {rank} of the team, which is rank {there} of the job, is no neighbor, against GEX_FLAG_AD_MY_NBRHD"
        ));
    }
}

/// A result that lies over the word.
pub(super) fn result(
    operation: &Operation<'_>,
    job: &Job,
    target: Target,
    result: usize,
    bytes: usize,
) {
    let word = job.joined.engine.address_here(target, bytes);
    if word.is_some_and(|word| word.abs_diff(result) < bytes) {
        fatal(
            operation.function,
            &format!(
                "result_p is {result:#x}, which lies over the word that the operation changes; fetch into other memory"
            ),
        );
    }
}

/// Hints that contradict each other, and arguments that members of the team do not agree on: type,
/// operations, flags.
///
/// Collective.
pub(super) fn creation(
    job: &Job,
    ctx: &ThreadCtx,
    team: &Team,
    arguments: [u32; 3],
    function: &str,
) {
    let [_, _, flags] = arguments;
    if (flags & FAVOR).count_ones() > 1 {
        fatal(
            function,
            &format!("flags are {flags:#x}: GEX_FLAG_AD_FAVOR_* exclude each other"),
        );
    }
    let own: Vec<u8> = arguments
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let mut all = vec![0; own.len() * team.size() as usize];
    let engine = &job.joined.engine;
    let of_engine = team.of_engine(job);
    match engine.gather_all(ctx, of_engine, &own, &mut all) {
        // The team is broken, and the comparison was cut short.
        Err(OpError::Am(AmError::PeerLost { .. })) => return,
        outcome => done(function, outcome),
    }
    let differs = all.chunks_exact(own.len()).position(|theirs| theirs != own);
    if let Some(rank) = differs {
        let theirs: Vec<u32> = all[rank * own.len()..][..own.len()]
            .as_chunks()
            .0
            .iter()
            .map(|word| u32::from_ne_bytes(*word))
            .collect();
        let there = JobRank(team.job_rank(rank as u32));
        fatal(
            function,
            &format!(
                "{} here and {} on rank {there} of the job; pass the same on all ranks of the team",
                listed(&arguments),
                listed(&theirs)
            ),
        );
    }
}

/// The three arguments, in one line.
fn listed(arguments: &[u32]) -> String {
    let names = ["dt", "ops", "flags"].into_iter().zip(arguments);
    let parts: Vec<_> = names
        .map(|(name, value)| format!("{name} {value:#x}"))
        .collect();
    parts.join(", ")
}
