//! Large puts over two networks, of the same rate or of different ones: over each alone, and over
//! both.
//!
//! Prints the bytes that they carry; the times are no test's matter.

use std::time::Instant;

use argonet::{Rank, SharedArray, World};

use super::over;
use super::rails::come;
use crate::network::Network;
use crate::support::{Done, Pattern};

/// Bytes of a put.
const BYTES: usize = 4 << 20;

/// Puts that are timed together, and how often.
const PUTS: u64 = 8;
const CHUNKS: u64 = 9;

/// Rank 0 makes puts, each of which is complete before the next begins, and prints the median rate
/// of the chunks.
pub(super) fn links() -> Done {
    let world = World::init()?;
    let part = SharedArray::<u8>::alloc(&world, BYTES)?;
    let pattern = Pattern::new();
    let content = |number: u64| {
        let piece = pattern.piece(number, Pattern::LONGEST);
        piece.repeat(BYTES / Pattern::LONGEST)
    };
    world.barrier()?;
    let mut rates = Vec::new();
    // The first chunk, in which further connections are made, is not counted.
    for chunk in 0..=CHUNKS {
        if world.rank() == Rank(0) {
            let source = content(chunk);
            let begun = Instant::now();
            for _ in 0..PUTS {
                world.put_from(part.on(Rank(1)), &source)?;
            }
            let bytes = BYTES as f64 * PUTS as f64;
            rates.push(bytes / begun.elapsed().as_secs_f64() / 1e6);
        }
        world.barrier()?;
        if world.rank() == Rank(1) {
            let here = world.get(part.on(Rank(1)))?.wait()?;
            assert!(*here == *content(chunk), "chunk {chunk}");
        }
        world.barrier()?;
    }
    if world.rank() == Rank(0) {
        rates.remove(0);
        rates.sort_by(f64::total_cmp);
        eprintln!("rate {:.1}", rates[rates.len() / 2]);
    }
    Ok(world.finalize()?)
}

pub(super) fn of_one_rate() {
    each_and_both(["1gbit", "1gbit"]);
}

pub(super) fn of_two_rates() {
    each_and_both(["1gbit", "4gbit"]);
}

fn each_and_both(of_cards: [&str; 2]) {
    let network = Network::of(&["a", "b"], 2);
    for (card, rate) in ["eth0", "eth1"].into_iter().zip(of_cards) {
        network.limit("a", card, rate);
        network.limit("b", card, rate);
    }
    let all = BYTES as u64 * PUTS * (CHUNKS + 1);
    let mut rates = Vec::new();
    let cards = ["eth0", "eth1", "eth0,eth1"].map(|cards| ("ARGONET_TCP_INTERFACES", cards));
    let rails = ("ARGONET_RAILS", "tcp:eth0,tcp:eth1");
    for (setting, cards) in cards.into_iter().chain([rails]) {
        let of = |card: &str| come(&network, "b", card);
        let before = ["eth0", "eth1"].map(of);
        let job = over(&network, 2, "a,b", "links").env(setting, cards);
        let mut rate = String::new();
        let outcome = job.run_with(|talk| rate = talk.line_with("rate "));
        outcome.ended_well();
        let came = [0, 1].map(|i| of(["eth0", "eth1"][i]) - before[i]);
        let rate: f64 = rate["rate ".len()..].parse().expect("a rate");
        println!("puts of 4 MiB over {cards} of {of_cards:?}: {rate} MB/s; bytes {came:?}");
        assert!(came.iter().sum::<u64>() >= all, "{cards}: {came:?}");
        for (card, came) in ["eth0", "eth1"].into_iter().zip(came) {
            // One alone has all of it. The shares of two depend on their speeds, and on the
            // machine's load.
            let least = if cards == card { all } else { 0 };
            assert!(came >= least, "{card} of {cards}: {came} of {all} bytes");
            assert!(
                cards.contains(card) || came < 1 << 20,
                "{card} of {cards}: {came}"
            );
        }
        rates.push(rate);
    }
    let better = rates[0].max(rates[1]);
    for (both, rate) in ["both", "rails of both"].into_iter().zip(&rates[2..]) {
        let sum = rates[0] + rates[1];
        println!(
            "{both} are {:.2} times the better one, {:.2} of the sum",
            rate / better,
            rate / sum
        );
    }
}
