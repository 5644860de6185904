//! TCP: how ranks on different hosts reach each other over ordinary networks.
//!
//! Two ranks that use each other have a connection, over which each sends a stream of frames (`frame`). What a peer has not
//! taken is kept and written again when another connection had to be made (`stream`), so that every message is handled
//! once. Taking a put completes it; a get is a request that the target's poll answers. Nothing is read
//! or written outside of calls of the rank itself, but for what was gathered in a burst, which a thread sends when no call
//! comes (`helper`), and what another thread serves, where there is one, while the rank computes (`progress`).
//!
//! Who makes connections and proves ranks is behind [`Connector`].

mod bits;
mod conduit;
mod config;
mod connections;
mod connector;
mod core;
mod credits;
mod flush;
mod frame;
mod helper;
pub mod join;
mod loans;
mod operations;
mod peer;
mod poll;
mod progress;
mod quick;
mod rails;
mod send;
mod serve;
mod silence;
mod stream;
mod striping;
mod system;
#[cfg(test)]
mod tests;
mod visit;
mod vitals;
mod wait;
mod wire;

pub use conduit::Tcp;
pub use config::{TcpConfig, TcpSizeError, TcpSizes};
pub use connections::{CONNECTIONS_FILE_NAME, Connections};
pub use connector::{Connection, Connector, Made};
pub use credits::TcpCredits;
pub use progress::progress_by_default;

/// How many frames the bytes of a stream hold, from its beginning on, if payloads go nowhere. For tools and tests:
/// everything that a peer sends goes through the same code first.
///
/// # Errors
/// What cannot be used.
pub fn frames_in(bytes: &[u8]) -> Result<usize, argonet_am::record::RecordError> {
    use stream::{Next, ReceiveStream};
    let mut receive_stream = ReceiveStream::new(TcpSizes::default().long_bytes);
    let (mut rest, mut count) = (bytes, 0);
    while !rest.is_empty() {
        rest = &rest[receive_stream.feed(rest)..];
        loop {
            match receive_stream.next()? {
                Next::More => break,
                Next::Whole(frame) => {
                    count += 1;
                    receive_stream.pass(&frame);
                }
                Next::Begun(frame) => receive_stream.skip(frame),
                Next::Placed(_) | Next::Skipped(_) => {
                    count += 1;
                    receive_stream.pass_behind();
                }
            }
        }
    }
    Ok(count)
}
