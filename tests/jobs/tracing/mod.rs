//! Traces and statistics of whole jobs, compared with the operations of the jobs.

mod ends;
mod lines;
mod summary;
mod viewers;

use crate::support::{Done, Program, Test};
use argonet::{SharedArray, Threading, World};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const PROGRAMS: &[Program] = &[
    ("traced", traced),
    ("traced_threads", threads),
    ("traced_exit", exits),
    ("traced_crash", crashes),
    ("traced_kill", killed),
];

pub(crate) const TESTS: &[Test] = &[
    ("trace_has_each_operation_once", lines::each_once),
    ("trace_of_all_ranks_in_one_file", lines::shared),
    ("trace_masks_and_ranks", lines::masks),
    ("trace_without_the_rank_itself", lines::not_local),
    ("trace_on_standard_streams", lines::streams),
    ("trace_for_viewers", viewers::json),
    ("trace_for_viewers_of_one_rank", viewers::json_of_each),
    ("trace_of_threads", viewers::of_threads),
    ("trace_ends_with_exit", ends::with_exit),
    ("trace_ends_with_a_crash", ends::with_crash),
    ("trace_of_a_killed_rank", ends::with_kill),
    ("trace_file_that_cannot_be_opened", ends::no_file),
    ("trace_that_cannot_be_written", ends::full),
    ("trace_mask_that_is_none", ends::bad_mask),
    ("stats_add_up", summary::stats),
    ("stats_of_some_kinds_and_ranks", summary::some_stats),
];

static PINGS: AtomicU32 = AtomicU32::new(0);
static PONGS: AtomicU32 = AtomicU32::new(0);

argonet::am! {
    fn ping(ctx, n: u32) {
        PINGS.fetch_add(1, Ordering::Relaxed);
        if n == 7 {
            ctx.reply(&pong, n).expect("a reply");
        }
    }
    fn pong(_ctx, _n: u32) { PONGS.fetch_add(1, Ordering::Relaxed); }
}

/// Shorts that are sent by each rank; every one of them has one reply.
const SHORTS: u32 = 5;

/// Operations of every rank with the next one.
fn work<M: Threading>(world: &World<M>, v: &SharedArray<u64>) -> Done {
    let next = world.rank_offset(1);
    world.put_value(v.ptr(next, 0), 1)?;
    world.put_from(v.on(next).part(1..3), &[2, 3])?;
    world.put_value(v.ptr(world.rank(), 3), 4)?;
    let mut back = [0; 3];
    world.get_into(v.on(next).part(..3), &mut back)?;
    world.fetch_add(v.ptr(next, 4), 1)?;
    for _ in 0..SHORTS {
        world.send(next, &ping, 7)?;
    }
    world.send_medium(next, &ping, 0, &[5u8; 100])?;
    world.send_long(v.on(next).part(5..7), &ping, 0, &[6u64, 7])?;
    world.wait_until(|| {
        PINGS.load(Ordering::Relaxed) == SHORTS + 2 && PONGS.load(Ordering::Relaxed) == SHORTS
    })?;
    Ok(())
}

fn traced() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 16)?;
    world.barrier()?;
    work(&world, &v)?;
    world.barrier()?;
    world.broadcast(argonet::Rank(0), &mut [1u32; 4])?;
    Ok(world.finalize()?)
}

fn threads() -> Done {
    let world = World::builder().build_par()?;
    let v = SharedArray::<u64>::alloc(&world, 16)?;
    let next = world.rank_offset(1);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (world, v) = (&world, &v);
            scope.spawn(move || {
                for n in 0..1000 {
                    world.put_value(v.ptr(next, thread), n).expect("a put");
                }
                for _ in 0..100 {
                    world.send(next, &ping, 0).expect("a message");
                }
            });
        }
    });
    world.wait_until(|| PINGS.load(Ordering::Relaxed) == 400)?;
    Ok(world.finalize()?)
}

fn exits() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 16)?;
    world.put_value(v.ptr(world.rank_offset(1), 0), 1)?;
    println!("{}", crate::support::ENDED);
    argonet::exit(0)
}

fn crashes() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 16)?;
    world.barrier()?;
    if world.rank().0 == 1 {
        world.put_value(v.ptr(world.rank_offset(1), 0), 1)?;
        std::process::abort();
    }
    world.wait_until(|| false)?;
    Ok(())
}

fn killed() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 16)?;
    world.barrier()?;
    if world.rank().0 == 1 {
        for n in 0..2000 {
            world.put_value(v.ptr(world.rank_offset(1), 0), n)?;
        }
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
    }
    world.wait_until(|| false)?;
    Ok(())
}

/// A directory for one test, and a job that writes there.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().expect("a name").to_owned()
    }

    fn read(&self, name: &str) -> String {
        read(&self.path(name))
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Operations of each rank of `traced` with others, and their number.
fn expected(size: u32) -> Vec<(&'static str, usize)> {
    let shorts = SHORTS as usize;
    let (remote, local) = if size == 1 { (0, 1) } else { (1, 0) };
    vec![
        ("PUT", 2 * remote),
        ("PUT_LOCAL", 1 + 2 * local),
        ("GET", remote),
        ("GET_LOCAL", local),
        ("AMREQUEST_SHORT", shorts),
        ("AMREQUEST_MEDIUM", 1),
        ("AMREQUEST_LONG", 1),
        ("AMREPLY_SHORT", shorts),
        ("AMREQUEST_SHORT_HANDLER", shorts),
        ("AMREQUEST_MEDIUM_HANDLER", 1),
        ("AMREQUEST_LONG_HANDLER", 1),
        ("AMREPLY_SHORT_HANDLER", shorts),
        ("BARRIER_WAIT", 2),
    ]
}
