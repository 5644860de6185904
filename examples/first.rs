//! The program that README.md shows.

use argonet::{Result, SharedArray};

argonet::rpc! {
    fn square(x: u64) -> u64 { x * x }
}

fn main() {
    // Where it returns an error, that rank prints it and ends the job.
    argonet::run(|world| -> Result<()> {
        let next = world.rank_offset(1);
        // Four numbers on every rank, which every rank can read and write.
        let numbers = SharedArray::<u64>::alloc(world, 4)?;
        // Write into the next rank's part, which makes no call for that.
        world.put_value(numbers.ptr(next, 2), u64::from(world.rank().0))?;
        world.barrier()?;
        let found = numbers.read(world, 2);
        // Run a function on the next rank and wait for its result.
        let squared = world.rpc(next, &square, (found,))?.wait()?;
        println!(
            "rank {} of {}: found {found}, squared {squared}",
            world.rank(),
            world.size()
        );
        Ok(())
    });
}
