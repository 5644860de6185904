//! `./program N arguments`: a program that starts its ranks by the conduit tcp itself.

use argonet::World;

use crate::network::Network;
use crate::support::{Done, Job, Program, Test};

pub(crate) const TESTS: &[Test] = &[("spread_by_the_program_itself", here)];

pub(crate) const OVER_HOSTS: &[Test] = &[("spread_over_hosts_by_the_program_itself", over_hosts)];

pub(crate) const PROGRAMS: &[Program] = &[("spread", spread)];

/// Arguments of the ranks.
const ARGUMENTS: [&str; 2] = ["an argument", "--another=*"];

fn spread() -> Done {
    let world = World::init()?;
    let given: Vec<String> = std::env::args().skip(1).collect();
    assert_eq!(given, ARGUMENTS, "rank {}", world.rank());
    assert_eq!(world.size(), 3);
    world.barrier()?;
    let squared = world.rpc(world.rank_offset(1), &square, (u64::from(world.rank().0),))?;
    assert_eq!(squared.wait()?, u64::from(world.rank().0).pow(2));
    Ok(world.finalize()?)
}

argonet::rpc! {
    fn square(x: u64) -> u64 { x * x }
}

fn here() {
    let job = Job::spreading(3, &["3", ARGUMENTS[0], ARGUMENTS[1]], "spread");
    job.env("ARGONET_CONDUIT", "tcp").run().well();
    let job = Job::spreading(3, &["3", ARGUMENTS[0], ARGUMENTS[1]], "spread");
    let job = job.env("ARGONET_CONDUIT", "tcp");
    job.env("GASNET_SUPERNODE_MAXSIZE", "1").run().well();
    for (arguments, found) in [(&[][..], "missing"), (&["three"], "\"three\"")] {
        let job = Job::spreading(0, arguments, "spread").env("ARGONET_CONDUIT", "tcp");
        job.run().failed(&["number of ranks", found, "ARGUMENTS"]);
    }
}

fn over_hosts() {
    let network = Network::new(&["a", "b"]);
    let job = Job::spreading(3, &["3", ARGUMENTS[0], ARGUMENTS[1]], "spread");
    let job = job
        .env("GASNET_SPAWNFN", "C")
        .env("GASNET_SSH_SERVERS", "a b");
    job.env("GASNET_CSPAWN_CMD", &network.template())
        .run()
        .well();
}
