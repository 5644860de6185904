//! Libraries and providers that cannot be used, and interfaces that do not fit.

use super::{HERE, PROVIDER};
use argonet_base::JobRank;
use argonet_nic::datagram::{FabricPort, NicPort, Port, fabric};
use argonet_nic::fabric::Library;
use libtest_mimic::{Failed, Trial};
use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("loader::a_library_that_is_not_there_is_named", not_there),
        Trial::test("loader::a_library_of_something_else_is_refused", other),
    ]
}

/// Those that take a library that works.
pub(crate) fn trials_of(library: &Library) -> Vec<Trial> {
    type Case = fn(&Library) -> Result<(), Failed>;
    let cases: [(&str, Case); 3] = [
        ("fabric::a_provider_that_is_not_there_is_named", no_provider),
        (
            "fabric::ranks_over_different_interfaces_are_both_named",
            mixed,
        ),
        ("fabric::it_is_described_in_words", described),
    ];
    let trial = |(name, case): (&str, Case)| {
        let library = library.clone();
        Trial::test(name, move || case(&library))
    };
    cases.into_iter().map(trial).collect()
}

fn says(what: impl Display, wanted: &[&str]) -> Result<(), Failed> {
    let text = what.to_string();
    match wanted.iter().find(|word| !text.contains(**word)) {
        Some(word) => Err(format!("no {word} in: {text}").into()),
        None => Ok(()),
    }
}

fn not_there() -> Result<(), Failed> {
    let error = Library::open(Some(Path::new("/nowhere/libfabric.so.1")));
    let error = error.expect_err("there is no such file");
    let wanted = [
        "/nowhere/libfabric.so.1",
        "libfabric1",
        "ARGONET_FABRIC_LIBRARY",
    ];
    says(error, &wanted)
}

fn other() -> Result<(), Failed> {
    let error = Library::open(Some(Path::new("libc.so.6")));
    let error = error.expect_err("the C library is none");
    says(
        error,
        &["libc.so.6", "fi_version", "ARGONET_FABRIC_LIBRARY"],
    )
}

fn open(library: &Library, provider: &str, address: IpAddr) -> Result<FabricPort, String> {
    let port = FabricPort::open(library, Some(provider), Some(address));
    port.map_err(|error| error.to_string())
}

fn no_provider(library: &Library) -> Result<(), Failed> {
    let error = open(library, "teleport", HERE).err();
    let wanted = [
        "\"teleport\"",
        PROVIDER,
        "FI_EP_DGRAM",
        "ARGONET_USNIC_PROVIDER",
        "FI_PROVIDER",
    ];
    says(error.unwrap_or_default(), &wanted)
}

fn mixed(library: &Library) -> Result<(), Failed> {
    let fabric = NicPort::Fabric(Box::new(open(library, PROVIDER, HERE)?));
    let socket = NicPort::Udp(Port::bind((HERE, 0).into())?);
    let addresses = [fabric.address(), socket.address()];
    let both = [(fabric, 0, 1), (socket, 1, 0)];
    for (port, rank, peer) in both {
        let error = port.open(JobRank(rank), &addresses).err();
        let error = error.ok_or("they reach each other")?;
        let (rank, peer) = (format!("rank {rank} sends"), format!("rank {peer} through"));
        let wanted = [
            &rank,
            &peer,
            "libfabric's provider udp at 127.0.0.1:",
            "a socket of the system at 127.0.0.1:",
            "ARGONET_USNIC_NIC",
        ];
        says(error, &wanted)?;
    }
    Ok(())
}

fn described(library: &Library) -> Result<(), Failed> {
    let text = fabric::describe(library, None, Some(HERE))?;
    let version = format!("of libfabric {} ({})", library.version(), library.name());
    says(text, &["provider ", &version, " bytes each"])
}
