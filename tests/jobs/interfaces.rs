//! The interfaces that the portals conduit runs over, and the errors if it cannot.
//!
//! Whole jobs over a library of Portals 4 are these tests with `ARGONET_TEST_PATH="portals4 1"`.

use crate::support::{Job, Test};

pub(crate) const TESTS: &[Test] = &[
    (
        "interfaces_without_a_library_of_portals_4_the_job_says_so",
        no_library,
    ),
    (
        "interfaces_in_software_are_between_hosts",
        software_between_hosts,
    ),
    (
        "interfaces_over_udp_join_neighbors_of_one_host",
        udp_on_one_host,
    ),
    (
        "interfaces_of_portals_4_are_between_hosts",
        four_between_hosts,
    ),
    ("interfaces_that_do_not_exist_are_named", unknown),
];

const NOWHERE: &str = "/nowhere/libportals.so.4";

fn over(job: Job, interface: &str) -> Job {
    job.env("ARGONET_CONDUIT", "portals")
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .env("ARGONET_PORTALS_INTERFACE", interface)
}

/// Two ranks whose agents are both on this host, as if it were two.
fn on_two_hosts(interface: &str) -> Job {
    let job = Job::over_conduit("portals", 2, "a,b", "replies").env("GASNET_SPAWNFN", "L");
    over(job, interface)
}

fn no_library() {
    let job = over(Job::launched(2, "replies"), "portals4").env("ARGONET_PORTALS_LIBRARY", NOWHERE);
    job.run().failed(&[
        "rank 0: the conduit portals cannot be set up",
        NOWHERE,
        "ARGONET_PORTALS_LIBRARY",
    ]);
}

/// Two ranks a host: some reach each other in shared memory, some over UDP.
fn software_between_hosts() {
    for ranks in [2, 4] {
        let job = Job::over_conduit("portals", ranks, "a,b", "replies").env("GASNET_SPAWNFN", "L");
        over(job, "software").run().well();
    }
}

fn udp_on_one_host() {
    over(Job::launched(3, "replies"), "udp").run().well();
}

/// The launcher starts the ranks; only the library is missing.
fn four_between_hosts() {
    let job = on_two_hosts("portals4").env("ARGONET_PORTALS_LIBRARY", NOWHERE);
    job.run()
        .failed(&["the conduit portals cannot be set up", NOWHERE]);
}

fn unknown() {
    over(Job::launched(2, "replies"), "portals3")
        .run()
        .failed(&[
            "ARGONET_PORTALS_INTERFACE",
            "portals3",
            "software",
            "portals4",
        ]);
}
