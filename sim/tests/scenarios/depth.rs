//! Depth of collective operations on short data among many hosts: by messages of every rank, and by
//! virtual time.
#![allow(unsafe_code)]

use argonet_base::JobRank;
use argonet_conduit::Conduit;
use argonet_engine::{Call, DataType, Folding, Kind, Operation};
use argonet_sim::{JobConfig, Rank, SimConfig};
use core::time::Duration;
use parking_lot::Mutex;
use std::sync::Arc;

/// Most bytes of a grant that a message takes: a head, arguments and eight bytes.
const MESSAGE_BYTES: u64 = 64;

const KINDS: [Kind; 3] = [Kind::Barrier, Kind::Broadcast, Kind::ReduceAll];

/// One operation, by all ranks.
#[derive(Clone, Copy)]
struct Seen {
    /// Bytes of requests of all ranks, and of the one that sent most.
    sent: u64,
    most: u64,
    /// From when the first rank called until the last was done.
    began: Duration,
    ended: Duration,
}

impl Seen {
    const NOTHING: Self = Self {
        sent: 0,
        most: 0,
        began: Duration::MAX,
        ended: Duration::ZERO,
    };

    fn took(&self) -> Duration {
        self.ended - self.began
    }
}

type Shared = Arc<Mutex<[Seen; KINDS.len()]>>;

/// Bytes of the requests that a rank has sent, each of which carries a part of an operation.
fn sent(rank: &Rank) -> u64 {
    let peers = (0..rank.engine.size()).map(JobRank);
    let ledgers = peers.filter_map(|peer| rank.engine.conduit().ledger(peer));
    ledgers.map(|ledger| ledger.requests.sent).sum()
}

/// Eight bytes from rank 0, or the sum of all ranks' numbers.
fn operate(rank: &Rank, kind: Kind) {
    let (team, me) = (rank.engine.world_team(), u64::from(rank.engine.rank().0));
    let (value, mut result) = (me + 7, 0u64);
    let bytes = match kind {
        Kind::Barrier => Call::of(kind),
        _ => Call {
            unit: 8,
            count: 1,
            src: (&raw const value).cast(),
            dst: (&raw mut result).cast(),
            folding: (kind == Kind::ReduceAll)
                .then(|| Folding::built_in(Operation::Add, DataType::U64)),
            ..Call::of(kind)
        },
    };
    // SAFETY: both numbers are there until this returns.
    unsafe { rank.engine.collective_wait(&rank.ctx, team, bytes) }.unwrap();
    let size = u64::from(rank.engine.size());
    let due = match kind {
        Kind::Barrier => 0,
        Kind::Broadcast => 7,
        _ => size * (size - 1) / 2 + 7 * size,
    };
    assert_eq!(result, due, "{kind:?}");
}

fn program(rank: &Rank, shared: Shared) {
    for (at, kind) in KINDS.into_iter().enumerate() {
        // Work of the first call alone is done.
        operate(rank, kind);
        operate(rank, Kind::Barrier);
        let (before, began) = (sent(rank), rank.now());
        operate(rank, kind);
        let (sent, ended) = (sent(rank) - before, rank.now());
        {
            let seen = &mut shared.lock()[at];
            seen.sent += sent;
            seen.most = seen.most.max(sent);
            seen.began = seen.began.min(began);
            seen.ended = seen.ended.max(ended);
        }
        operate(rank, Kind::Barrier);
    }
}

fn seen(ranks: u32) -> [Seen; KINDS.len()] {
    let mut sim = SimConfig::new(ranks, 1);
    sim.segment_bytes = 4096;
    let shared: Shared = Arc::new(Mutex::new([Seen::NOTHING; KINDS.len()]));
    let of_ranks = Arc::clone(&shared);
    let register = move |_, _: &mut _| Ok(Arc::clone(&of_ranks));
    let outcome = argonet_sim::run(&JobConfig::new(sim), None, register, program).unwrap();
    assert_eq!((&outcome.failure, &outcome.abort), (&None, &None));
    *shared.lock()
}

/// From 32 hosts to 1,024, twice as many rounds; with messages in a row it would be 32 times as
/// long.
#[test]
fn rounds_grow_as_the_logarithm_of_hosts() {
    const MANY: u64 = 1024;
    let [few, many] = [32, MANY as u32].map(seen);
    for (at, kind) in KINDS.into_iter().enumerate() {
        let (few, many) = (few[at], many[at]);
        let said = format!(
            "{kind:?}: {} bytes, {} of one rank, {:?}; with few {:?}",
            many.sent,
            many.most,
            many.took(),
            few.took()
        );
        println!("{said}");
        let messages = match kind {
            Kind::Broadcast => [MANY - 1, 10],
            _ => [MANY * 10, 2 * 10],
        };
        let most = messages.map(|count| count * MESSAGE_BYTES);
        assert!(many.sent <= most[0] && many.most <= most[1], "{said}");
        assert!(many.sent >= (MANY - 1) * MESSAGE_BYTES / 2, "{said}");
        assert!(many.took() <= 3 * few.took(), "{said}");
    }
}
