//! Datagrams between the hosts, as ranks of usnic would send them.

use core::net::IpAddr;
use core::ops::RangeInclusive;
use std::time::Duration;

use argonet_base::JobRank;
use argonet_conduit::usnic::{DatagramRails, DatagramRailsConfig};
use argonet_nic::datagram::{HostNames, Port, Udp};
use argonet_nic::reliable::{FIRST_DATAGRAM_BYTES, PathState, ReliableConfig, Seal};
use serde::{Deserialize, Serialize};

use super::connect::Attempts;
use super::facts::Mailbox;

/// What a host knows of the path to another one that is not good, by the place of its mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) mailbox: u32,
    heard: bool,
    answered: bool,
    full: bool,
}

impl Known {
    pub(super) fn new(mailbox: u32, state: PathState) -> Self {
        Self {
            mailbox,
            heard: state.heard,
            answered: state.answered,
            full: state.full,
        }
    }

    pub(super) fn state(self) -> PathState {
        PathState {
            heard: self.heard,
            answered: self.answered,
            full: self.full,
        }
    }
}

/// The part of an agent: its port, and then what answers there until the agent ends.
#[derive(Default)]
pub(super) struct Office {
    port: Option<Port>,
    rails: Option<DatagramRails<Udp>>,
}

impl Office {
    /// Takes a port as a rank would.
    pub(super) fn open(
        &mut self,
        address: IpAddr,
        ports: &RangeInclusive<u16>,
    ) -> Result<Mailbox, String> {
        let port = Port::bind_in(address, ports).map_err(|error| error.to_string())?;
        let whereabouts = port.whereabouts();
        self.port = Some(port);
        Ok(Mailbox {
            address: whereabouts.address,
            incarnation: whereabouts.incarnation,
        })
    }

    /// Asks all others whether datagrams pass, which ask it, too; the paths that are not good.
    pub(super) fn ask(&mut self, key: &[u8], attempts: &Attempts) -> Vec<Known> {
        let (Some(own), Some(port)) = (attempts.own_mailbox, self.port.take()) else {
            return Vec::new();
        };
        let mailboxes = &attempts.mailboxes;
        let others = (0..).zip(mailboxes).map(|(place, _)| JobRank(place));
        let others: Vec<JobRank> = others.filter(|place| place.0 != own).collect();
        let nothing = |place: &JobRank| Known::new(place.0, PathState::default());
        match rails(key, own, port, mailboxes) {
            Ok(rails) => {
                let check = rails.check(others, true);
                self.rails = Some(rails);
                let bad = check.finish(attempts.wait).into_iter();
                bad.map(|(place, state)| Known::new(place.0, state))
                    .collect()
            }
            // Nothing passes, as the others find out.
            Err(_) => others.iter().map(nothing).collect(),
        }
    }
}

fn rails(
    key: &[u8],
    own: u32,
    port: Port,
    mailboxes: &[Mailbox],
) -> std::io::Result<DatagramRails<Udp>> {
    let addresses = mailboxes.iter().map(|mailbox| mailbox.address).collect();
    DatagramRails::new(DatagramRailsConfig {
        rank: JobRank(own),
        queue: Udp::new(port.into_socket(), addresses)?,
        incarnations: mailboxes
            .iter()
            .map(|mailbox| mailbox.incarnation)
            .collect(),
        link: ReliableConfig {
            datagram_bytes: FIRST_DATAGRAM_BYTES,
            ..ReliableConfig::default()
        },
        seal: Some(Seal::from_secret(key)),
        hosts: HostNames::default(),
        warn: |_| {},
        exit_grace: Duration::ZERO,
    })
}
