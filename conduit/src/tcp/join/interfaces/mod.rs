//! Which of a host's network interfaces a job uses.
//!
//! Without a wish all that are up, apart from loopback and those of containers and virtual
//! machines; a job of one host uses loopback. A wish ([`Wish::parse`]) names interfaces, or subnets
//! that they have addresses in, and may limit their number. A named interface of any kind is used,
//! as long as it is up.

mod choose;
mod list;
mod wish;

pub use choose::{InterfaceError, choose, in_order_of_reach, present, source_for};
pub use list::list;
pub use wish::{Item, Subnet, Wish};

use core::fmt;
use core::net::IpAddr;

/// A network interface with one of its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// The address, and the subnet that it is in.
    pub address: IpAddr,
    /// Bits of the subnet's prefix.
    pub prefix: u8,
    /// Whether it is up and has a carrier.
    pub up: bool,
    /// Its kind.
    pub kind: InterfaceKind,
}

/// Kinds of interfaces, as far as they matter here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterfaceKind {
    /// It leads to other hosts.
    Network,
    /// It leads back to this host.
    Loopback,
    /// It leads to containers or virtual machines of this host, and often has the same address on
    /// every host.
    Bridge,
}

impl Interface {
    /// Its subnet.
    #[must_use]
    pub const fn subnet(&self) -> Subnet {
        Subnet {
            address: self.address,
            prefix: self.prefix,
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            address,
            prefix,
            ..
        } = self;
        let what = match self.kind {
            InterfaceKind::Network => "",
            InterfaceKind::Loopback => ", loopback",
            InterfaceKind::Bridge => ", of containers or virtual machines",
        };
        let down = if self.up { "" } else { ", down" };
        write!(f, "{name} ({address}/{prefix}{what}{down})")
    }
}
