//! Active messages with none, one and several arguments.

use std::sync::atomic::{AtomicU64, Ordering};

use argonet::{Am, OneValue, Result, SeveralValues, SharedArray, World};

static PAIRS: AtomicU64 = AtomicU64::new(0);
static ANSWERS: AtomicU64 = AtomicU64::new(0);
static REST: AtomicU64 = AtomicU64::new(0);

argonet::am! {
    /// Of different sizes, so that the second one does not lie where it is aligned.
    fn pair(ctx, small: u8, large: u64) {
        PAIRS.fetch_add(large + u64::from(small), Ordering::Relaxed);
        ctx.reply_medium(&triple, (large, [1, 2, 3], -0.5), &[small]).unwrap();
    }

    fn triple(ctx, large: u64, three: [u16; 3], half: f32) {
        assert_eq!((three, half), ([1, 2, 3], -0.5));
        let small = ctx.payload().to_vec::<u8>();
        ANSWERS.fetch_add(large + u64::from(small[0]), Ordering::Relaxed);
    }

    /// As many bytes as a message has for arguments.
    fn most(ctx, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64,) {
        assert_eq!([a, b, c, d, e, f, g, h], [1, 2, 3, 4, 5, 6, 7, u64::MAX]);
        let values: Vec<u64> = ctx.payload().to_vec();
        REST.fetch_add(values.iter().sum(), Ordering::Relaxed);
        ctx.echo(&none, ()).unwrap();
    }

    fn none(ctx) { REST.fetch_add(ctx.payload().len() as u64, Ordering::Relaxed); }

    fn one(_ctx, value: [u32; 2]) { REST.fetch_add(u64::from(value[1]), Ordering::Relaxed); }
}

#[argonet::test(ranks = [1, 2, 3], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn all_come_as_they_were_sent(world: &mut World) -> Result<()> {
    let _: [&Am<[u32; 2], OneValue>; 1] = [&one];
    let _: [&Am<(u8, u64), SeveralValues>; 1] = [&pair];
    let array = SharedArray::<u64>::alloc(world, 3)?;
    let eight = (1, 2, 3, 4, 5, 6, 7, u64::MAX);
    for to in world.ranks() {
        for small in 0..=255 {
            world.send(to, &pair, (small, 1 << 20))?;
        }
        world.send(to, &none, ())?;
        world.send(to, &one, [0, 1000])?;
        world.send_medium(to, &most, eight, &[10u64, 20])?;
    }
    world.barrier()?;
    world.send_long(array.on(world.rank_offset(1)), &most, eight, &[1u64, 2, 3])?;
    world.drain()?;
    let size = u64::from(world.size());
    let sum = size * ((256 << 20) + 255 * 128);
    assert_eq!(PAIRS.load(Ordering::Relaxed), sum);
    assert_eq!(ANSWERS.load(Ordering::Relaxed), sum);
    // What mediums and the long carried, and the echoes of their bytes.
    let rest = size * (1000 + 30 + 16) + 6 + 24;
    assert_eq!(REST.load(Ordering::Relaxed), rest);
    Ok(())
}
