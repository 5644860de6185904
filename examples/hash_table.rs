//! Counts random numbers in a hash table that lies on all ranks.
//!
//! ```sh
//! argonet run -n 2 target/release/examples/hash_table 1000000     # numbers of each rank
//! ```
//!
//! The table is a [`DistObject`]: a number belongs to one rank, which a remote procedure asks.

use argonet::{DistObject, Rank, Reduction, Result, World};
use fastrand::Rng;
use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;

/// The numbers of a rank, with those that it looks up first.
pub(crate) fn numbers(rank: u32, count: usize) -> impl Iterator<Item = u64> {
    let mut random = Rng::with_seed(rank.into());
    std::iter::repeat_with(move || random.u64(..count as u64)).take(count)
}

type Counts = RefCell<HashMap<u64, u64>>;

argonet::rpc! {
    fn add(counts: &Counts, numbers: Vec<u64>) {
        let mut counts = counts.borrow_mut();
        numbers.into_iter().for_each(|number| *counts.entry(number).or_default() += 1);
    }

    fn look_up(counts: &Counts, number: u64) -> u64 {
        counts.borrow().get(&number).copied().unwrap_or(0)
    }
}

fn run(world: &World, each: usize) -> Result<()> {
    let owner = |number: u64| Rank((number % u64::from(world.size())) as u32);
    let table = DistObject::new(world, Counts::default())?;
    // One call for each owner has all the numbers that belong there.
    let mut by_owner = vec![Vec::new(); world.size() as usize];
    numbers(world.rank().0, each).for_each(|n| by_owner[owner(n).0 as usize].push(n));
    for (to, numbers) in world.ranks().zip(by_owner) {
        table.rpc_one_way(world, to, &add, (numbers,))?;
    }
    world.drain()?;
    let distinct = table.borrow().len() as u64;
    let distinct = world
        .collectives()
        .reduce_all_value(Reduction::Sum, distinct)?;
    for number in numbers(world.rank().0, each).take(3) {
        let times = table
            .rpc(world, owner(number), &look_up, (number,))?
            .wait()?;
        println!("rank {}: {number} is there {times} times", world.rank());
    }
    if world.rank() == Rank(0) {
        println!("{distinct} different numbers");
    }
    // Other ranks may still look up.
    world.barrier()
}

fn main() {
    let each = std::env::args()
        .nth(1)
        .map_or(Ok(1_000_000), |arg| arg.parse());
    argonet::run(|world| -> Result<(), Box<dyn Error>> { Ok(run(world, each.clone()?)?) });
}
