//! Jobs whose datagrams, or reliable messages, go through a provider of libfabric, and the errors
//! if they cannot.
//!
//! Whole jobs are all other tests with `ARGONET_TEST_PATH="fabric 1"`, or `"ofi 1"`.

use crate::support::{Job, Test};
use std::process::Command;

/// Those that need no library.
pub(crate) const TESTS: &[Test] = &[
    (
        "fabric_without_a_library_the_job_says_so",
        without_a_library,
    ),
    ("fabric_of_another_library_is_refused", another_library),
    (
        "ofi_without_a_library_the_job_says_so",
        messages_without_a_library,
    ),
];

/// Those that need one.
pub(crate) const OVER_FABRIC: &[Test] = &[
    ("fabric_carries_messages_puts_and_gets", carries),
    ("fabric_of_an_unknown_provider_names_it", unknown),
    ("fabric_and_sockets_do_not_mix", mixed),
    ("ofi_carries_messages_puts_and_gets", carries_messages),
    ("ofi_of_an_unknown_provider_names_it", unknown_of_messages),
    ("ofi_of_two_providers_does_not_mix", mixed_messages),
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

/// Reliable messages over the provider that every libfabric of Debian has.
fn messages(ranks: u32, program: &str) -> Job {
    Job::launched(ranks, program)
        .env("ARGONET_CONDUIT", "ofi")
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .env("ARGONET_OFI_PROVIDER", "tcp;ofi_rxm")
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

fn messages_without_a_library() {
    let job = messages(2, "replies").env("ARGONET_FABRIC_LIBRARY", NOWHERE);
    job.run().failed(&[
        "rank 0: the conduit ofi cannot be set up",
        NOWHERE,
        "libfabric1",
        "ARGONET_FABRIC_LIBRARY",
    ]);
}

fn carries_messages() {
    for program in ["replies", "model"] {
        messages(3, program).run().well();
    }
}

fn unknown_of_messages() {
    let job = messages(2, "replies").env("ARGONET_OFI_PROVIDER", "teleport");
    job.run().failed(&[
        "\"teleport\"",
        "FI_EP_RDM",
        "tcp;ofi_rxm",
        "ARGONET_OFI_PROVIDER",
    ]);
}

fn mixed_messages() {
    let script =
        "case $ARGONET_BOOT in 2:1:*) export ARGONET_OFI_PROVIDER=sockets;; esac; exec \"$0\"";
    let job = Job::wrapped(2, script, "replies")
        .env("ARGONET_CONDUIT", "ofi")
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .env("ARGONET_OFI_PROVIDER", "tcp;ofi_rxm");
    job.run().failed(&[
        "which do not reach each other",
        "libfabric's provider tcp;ofi_rxm at 127.0.0.1:",
        "libfabric's provider sockets at 127.0.0.1:",
        "give all ranks the same ARGONET_OFI_PROVIDER",
    ]);
}
