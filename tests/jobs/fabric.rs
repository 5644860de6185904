//! Jobs whose datagrams go through a provider of libfabric, and the errors if they cannot.
//!
//! Whole jobs are all other tests with `ARGONET_TEST_PATH="fabric 1"`.

use crate::support::{Job, Test};
use std::process::Command;

/// Those that need no library.
pub(crate) const TESTS: &[Test] = &[
    (
        "fabric_without_a_library_the_job_says_so",
        without_a_library,
    ),
    ("fabric_of_another_library_is_refused", another_library),
];

/// Those that need one.
pub(crate) const OVER_FABRIC: &[Test] = &[
    ("fabric_carries_messages_puts_and_gets", carries),
    ("fabric_of_an_unknown_provider_names_it", unknown),
    ("fabric_and_sockets_do_not_mix", mixed),
];

const LIBRARY: &str = "libfabric.so.1";
const NOWHERE: &str = "/nowhere/libfabric.so.1";

/// Why the others are left out, if they are: the loader finds no library.
pub(crate) fn missing() -> Option<String> {
    let known = Command::new("/sbin/ldconfig").arg("-p").output();
    let is_there = known.is_ok_and(|known| {
        let known = String::from_utf8_lossy(&known.stdout).into_owned();
        known
            .lines()
            .any(|line| line.trim_start().starts_with(LIBRARY))
    });
    (!is_there).then(|| format!("there is no {LIBRARY} (Debian package libfabric1)"))
}

fn over(ranks: u32, program: &str) -> Job {
    Job::launched(ranks, program)
        .env("ARGONET_CONDUIT", "usnic")
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .env("ARGONET_USNIC_NIC", "fabric")
        .env("ARGONET_USNIC_PROVIDER", "udp")
}

fn without_a_library() {
    let job = over(2, "replies").env("ARGONET_FABRIC_LIBRARY", NOWHERE);
    job.run().failed(&[
        "rank 0: the conduit usnic cannot be set up",
        NOWHERE,
        "libfabric1",
        "ARGONET_FABRIC_LIBRARY",
    ]);
}

fn another_library() {
    let job = over(2, "replies").env("ARGONET_FABRIC_LIBRARY", "libc.so.6");
    job.run()
        .failed(&["libc.so.6 is no libfabric", "ARGONET_FABRIC_LIBRARY"]);
}

fn carries() {
    for program in ["replies", "model"] {
        over(3, program).run().well();
    }
}

fn unknown() {
    let job = over(2, "replies").env("ARGONET_USNIC_PROVIDER", "teleport");
    job.run().failed(&[
        "\"teleport\"",
        "datagram endpoints",
        "udp",
        "ARGONET_USNIC_PROVIDER",
    ]);
}

fn mixed() {
    let script = "case $ARGONET_BOOT in 2:1:*) export ARGONET_USNIC_NIC=fabric ARGONET_USNIC_PROVIDER=udp;; esac; exec \"$0\"";
    let job = Job::wrapped(2, script, "replies")
        .env("ARGONET_CONDUIT", "usnic")
        .env("GASNET_SUPERNODE_MAXSIZE", "1");
    job.run().failed(&[
        "which do not reach each other",
        "libfabric's provider udp at 127.0.0.1:",
        "a socket of the system at 127.0.0.1:",
        "ARGONET_USNIC_NIC and ARGONET_USNIC_PROVIDER",
    ]);
}
