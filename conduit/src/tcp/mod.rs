//! TCP as rails: sockets between ranks on different hosts, over ordinary networks.
//!
//! A [`Socket`] carries the stream of a [`channel`](crate::channel) to one peer. [`Sockets`] are
//! those of a rank: they say which have something (`readiness`), and let a thread wait at them
//! (`watch`). A [`Connector`] makes connections and proves ranks; a job's connector is in [`join`].

mod connector;
mod descriptor;
pub mod join;
mod readiness;
mod socket;
mod sockets;
mod watch;

pub use connector::Connector;
pub use descriptor::DESCRIPTOR;
pub use socket::Socket;
pub use sockets::Sockets;

use crate::channel::{AnyRails, Channel, ChannelConfig, Erased};
use argonet_settings::TCP_ROW;
use std::io;
use std::sync::Arc;

/// Name as in `--conduit`.
const NAME: &str = TCP_ROW.name;

/// The channel over TCP: the one for rails of any kind.
pub type Tcp = Channel<AnyRails>;

/// How a [`Tcp`] is set up.
pub struct TcpConfig {
    /// The channel.
    pub channel: ChannelConfig,
    /// Where connections come from.
    pub connector: Arc<dyn Connector>,
    /// Whether a thread serves puts, gets and connections while this rank makes no call.
    ///
    /// It runs no handlers. It wants a core that no rank uses: see
    /// [`progress_by_default`](crate::channel::progress_by_default).
    pub progress: bool,
}

impl Tcp {
    /// A rank without connections; they come from the connector.
    ///
    /// # Errors
    /// As [`Channel::over`].
    pub fn over_connections(config: TcpConfig) -> io::Result<Self> {
        let sockets = Sockets::new(config.connector, config.progress)?;
        Self::over(Box::new(Erased::new(sockets)), config.channel)
    }
}
