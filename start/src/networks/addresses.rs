//! The interfaces of this host by which the ranks of others reach it, and its name.

use super::Cause;
use argonet_base::JobRank;
use argonet_boot::{BootError, Bootstrap, Key, LocalJob, MAX_VALUE_BYTES};
use argonet_conduit::tcp::join::from_settings;
use argonet_conduit::tcp::join::interfaces;
pub(crate) use argonet_conduit::tcp::join::interfaces::Wish;
pub(crate) use argonet_conduit::tcp::join::{read_addresses, write_addresses};
use argonet_settings::Settings;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use std::collections::BTreeSet;
use std::io;

/// Interfaces of this host that the settings choose to reach others by; `one_host`: the job has no
/// other.
pub(super) fn addresses(
    settings: &Settings,
    one_host: bool,
) -> Result<Vec<interfaces::Interface>, Cause> {
    wished(&from_settings(settings)?.1, one_host)
}

/// The same for one of several rails, which has a wish of its own or none.
pub(super) fn addresses_of_rail(
    boot: &LocalJob,
    settings: &Settings,
    wish: Option<&Wish>,
) -> Result<Vec<interfaces::Interface>, Cause> {
    match wish {
        Some(wish) => wished(wish, is_one_host(boot)),
        None => addresses(settings, is_one_host(boot)),
    }
}

/// Interfaces of this host that a wish chooses, as far as they are there now.
///
/// Where it names none, those of these names.
pub(super) fn wished_now(
    wish: &Wish,
    one_host: bool,
    names: &[String],
) -> Result<Vec<interfaces::Interface>, Cause> {
    let mut all = interfaces::list(&host_name())?;
    if wish.items.is_empty() {
        all.retain(|interface| names.contains(&interface.name));
    }
    Ok(interfaces::present(&all, wish, one_host))
}

fn wished(wish: &Wish, one_host: bool) -> Result<Vec<interfaces::Interface>, Cause> {
    let host = host_name();
    let all = interfaces::list(&host)?;
    Ok(interfaces::choose(&all, wish, one_host, &host)?)
}

/// Those of interfaces that are up and have a link.
pub(super) fn working_addresses() -> io::Result<BTreeSet<IpAddr>> {
    let all = interfaces::list(&host_name()).map_err(io::Error::other)?;
    let working = all.into_iter().filter(|interface| interface.up);
    Ok(working.map(|interface| interface.address).collect())
}

/// The ports that the settings let ranks take.
pub(super) fn ports(settings: &Settings) -> Result<RangeInclusive<u16>, Cause> {
    Ok(from_settings(settings)?.0.ports)
}

/// Whether the job has no other host.
pub(super) fn is_one_host(boot: &LocalJob) -> bool {
    boot.host_ranks().len() == boot.size() as usize
}

/// The first of these addresses.
pub(super) fn own_address(boot: &LocalJob, settings: &Settings) -> Result<IpAddr, Cause> {
    own_address_of_rail(boot, settings, None)
}

/// The same for one of several rails.
pub(super) fn own_address_of_rail(
    boot: &LocalJob,
    settings: &Settings,
    wish: Option<&Wish>,
) -> Result<IpAddr, Cause> {
    let chosen = addresses_of_rail(boot, settings, wish)?;
    let first = chosen
        .first()
        .ok_or("there is no address of this host to be reached at")?;
    Ok(first.address)
}

/// The name of this host, for messages.
fn host_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// Publishes the name of this host, which errors of other ranks name.
pub(super) fn publish_host(boot: &LocalJob) -> Result<(), BootError> {
    let name = host_name();
    let name = name.as_bytes();
    boot.publish(Key::Host, &name[..name.len().min(MAX_VALUE_BYTES)])
}

/// The name of a rank's host, as it has published it; empty if it has not.
pub(super) fn host_of(boot: &LocalJob, peer: JobRank) -> String {
    let name = boot.lookup(peer, Key::Host).unwrap_or_default();
    String::from_utf8_lossy(&name).into_owned()
}
