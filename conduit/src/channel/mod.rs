//! Active messages, puts and gets between ranks that share no memory, over rails.
//!
//! Each rank of a pair has a stream to the other (`stream`), made of frames (`frame`). Bytes that a
//! peer has not taken are kept, so that any rail can carry them again. Puts and gets are frames,
//! and the table of `operations` says which of them are pending. [`ChannelCredits`] says how much
//! of a rank's receive space each peer may use. All of this is without I/O and clock. [`Channel`]
//! drives it (`driver`) over what implements [`Rails`](rail::Rails).

mod any_rails;
mod credits;
pub(crate) mod driver;
pub(crate) mod frame;
pub(crate) mod operations;
pub mod rail;
pub(crate) mod stream;

pub use any_rails::{AnyRail, AnyRails, Erased};
pub use credits::ChannelCredits;
pub(crate) use credits::{CREDIT_BYTES, credits, receive_space};
pub use driver::{Channel, ChannelConfig, ChannelSizeError, ChannelSizes, progress_by_default};
pub use stream::{Piece, Pieces};

use argonet_am::record::RecordError;
use stream::{Next, ReceiveStream};

/// Longest payload that [`frames_in`] takes.
const LONGEST_BYTES: usize = 1 << 30;

/// How many whole frames the bytes of a stream hold, from its beginning on, if payloads go nowhere
/// and at most `read_bytes` (at least 1) are read at a time.
///
/// For fuzzing and tests: everything that a peer sends goes through the same code first.
///
/// # Errors
/// The frame cannot be used.
pub fn frames_in(bytes: &[u8], read_bytes: usize) -> Result<usize, RecordError> {
    let mut receive_stream = ReceiveStream::new(LONGEST_BYTES);
    let mut count = 0;
    for mut rest in bytes.chunks(read_bytes.max(1)) {
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
    }
    Ok(count)
}
