//! All kinds of traffic at once, round after round, while the network fails.

use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use argonet::{Rank, Reduction, SharedArray, World};

use super::over;
use crate::network::Network;
use crate::support::{Done, Pattern, Talk};

/// Messages of a rank to each other one in a round.
const MESSAGES: u64 = 10;

/// Bytes that a rank puts to each other one in a round.
const BYTES: usize = 30_000;

/// Number of messages from each rank, and the sum of their values: a lost or doubled message
/// changes it.
static TAKEN: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

fn content(from: u64, n: u64) -> u64 {
    (n * 1_000 + from).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Whether the standard input of rank 0 has ended, as rank 0 sees it; the others never do.
pub(super) fn until_input_ends(world: &World) -> impl Fn() -> bool + use<> {
    static ENDS: AtomicBool = AtomicBool::new(false);
    if world.rank() == Rank(0) {
        std::thread::spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            ENDS.store(true, Ordering::Relaxed);
        });
    }
    || ENDS.load(Ordering::Relaxed)
}

/// Whether there is another round, as rank 0 says.
///
/// Collective.
pub(super) fn goes_on(world: &World, ends: &impl Fn() -> bool) -> argonet::Result<bool> {
    let mut over = [u8::from(ends())];
    world.broadcast(Rank(0), &mut over)?;
    Ok(over[0] == 0)
}

/// Rounds until rank 0's standard input ends.
///
/// Rank 0 reports every round, and how long it took.
pub(super) fn storm() -> Done {
    let mut builder = World::builder();
    let take = builder.am("take", |ctx, [n, word]: [u64; 2]| {
        let from = ctx.source();
        let mut taken = TAKEN.lock().expect("a lock");
        let (count, sum) = &mut taken[from.index()];
        assert_eq!(
            word,
            content(from.0.into(), n),
            "message {n} of rank {from}"
        );
        *count += 1;
        *sum = sum.wrapping_add(word);
    });
    TAKEN.lock()?.resize(64, (0, 0));
    let world = builder.build()?;
    let me = u64::from(world.rank().0);
    let size = world.size() as usize;
    let input_ends = until_input_ends(&world);
    let pattern = Pattern::new();
    let parts = SharedArray::<u8>::alloc(&world, BYTES * size)?;
    world.barrier()?;
    let mut sums = vec![0u64; size];
    for round in 0u64.. {
        let begun = Instant::now();
        let mut ends = [u8::from(input_ends())];
        world.broadcast(Rank(0), &mut ends)?;
        if ends[0] != 0 {
            break;
        }
        for n in round * MESSAGES..(round + 1) * MESSAGES {
            for to in world.ranks() {
                world.send(to, &take, [n, content(me, n)])?;
            }
        }
        for to in world.ranks() {
            let first = me as usize * BYTES;
            let place = parts.on(to).part(first..first + BYTES);
            let mut source = pattern.piece(round * 100 + me, BYTES).to_vec();
            world.put_from(place, &source)?;
            // It is this program's again.
            source.fill(0xee);
            let back = world.get(place)?.wait()?;
            assert!(
                *back == *pattern.piece(round * 100 + me, BYTES),
                "round {round}, rank {to}"
            );
        }
        let mut sum = [round, me, 1];
        world.reduce_all(Reduction::Sum, &mut sum)?;
        let n = size as u64;
        assert_eq!(sum, [round * n, n * (n - 1) / 2, n]);
        world.drain()?;
        world.barrier()?;
        for (from, sum) in sums.iter_mut().enumerate() {
            for n in round * MESSAGES..(round + 1) * MESSAGES {
                *sum = sum.wrapping_add(content(from as u64, n));
            }
            let taken = TAKEN.lock()?[from];
            assert_eq!(
                taken,
                ((round + 1) * MESSAGES, *sum),
                "from rank {from} in round {round}"
            );
        }
        world.barrier()?;
        if me == 0 {
            eprintln!("round {round} took {} us", begun.elapsed().as_micros());
        }
    }
    Ok(world.finalize()?)
}

/// Reads of so many rounds; the longest.
pub(super) fn rounds(talk: &mut Talk<'_>, count: usize) -> Duration {
    let time = |line: String| {
        let took = line
            .split_whitespace()
            .nth(3)
            .and_then(|us| us.parse().ok());
        Duration::from_micros(took.expect(&line))
    };
    let times = (0..count).map(|_| time(talk.line_with("round ")));
    times.max().expect("a round")
}

/// Breaks the network in some way, again and again, until so many packets were hit each time.
fn under(name: &str, strike: fn(&Network, &str), packets: u64, times: usize) {
    let network = Network::new(&["a", "b", "c"]);
    let job = over(&network, 3, "a,b,c", "storm-over-hosts");
    let outcome = job.run_with(|talk| {
        rounds(talk, 5);
        for host in ["b", "a", "c"].into_iter().cycle().take(times) {
            strike(&network, host);
            // At least so long: the command itself may take a while before or after it breaks it.
            let begun = Instant::now();
            network.wait_until_struck(host, packets);
            let broken = begun.elapsed();
            network.heal(host);
            // Rounds that were reported before, the one that was hit, and some after it.
            let mut longest = Duration::ZERO;
            while longest < broken / 2 {
                longest = longest.max(rounds(talk, 1));
            }
            rounds(talk, 3);
            eprintln!(
                "{name}: host {host} broken for {broken:?}, resumed {:?} after that",
                longest.saturating_sub(broken)
            );
        }
    });
    outcome.ended_well();
}

pub(super) fn cut() {
    under("cut", Network::cut, 4, 3);
}

pub(super) fn swallowed() {
    under("swallowed", Network::swallow, 8, 2);
}
