//! Says hello from every rank, in order.

use argonet::{Reduction, Result};

fn main() {
    argonet::run(|world| -> Result<()> {
        for rank in world.ranks() {
            if rank == world.rank() {
                println!("hello from rank {rank} of {}", world.size());
            }
            world.barrier()?;
        }
        let mut sum = [u64::from(world.rank().0)];
        world.reduce_all(Reduction::Sum, &mut sum)?;
        assert_eq!(
            sum[0],
            u64::from(world.size()) * u64::from(world.size() - 1) / 2
        );
        Ok(())
    });
}
