//! Costs of messages.

use super::error::CreditError;

/// Costs of requests in credits.
///
/// Replies cost nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// Bytes of receive space that a credit stands for.
    pub granularity: u32,
    /// Bytes of the entry that the completion of a credit's request may take in an event queue; 0
    /// where there is none.
    pub event_bytes: u32,
    /// Bytes of a medium in the receive space besides arguments and payload.
    pub header_bytes: u32,
    /// Largest request in the receive space, in bytes: a chunk.
    pub chunk_bytes: u32,
    /// Whether the space is a chain of [buffers that come back as wholes](crate::recycling), for
    /// which some of it is slack.
    ///
    /// If not, all of it can be credited.
    pub recycles: bool,
}

impl Costs {
    /// Those of the Portals text: 256 bytes and an event of 128; the header travels in match bits
    /// and immediate data; chunks of 1 KiB.
    pub const OF_TEXT: Costs = Costs {
        granularity: 256,
        event_bytes: 128,
        header_bytes: 0,
        chunk_bytes: 1024,
        recycles: true,
    };

    /// A short: 1.
    #[inline]
    #[must_use]
    pub const fn short(&self) -> u16 {
        1
    }

    /// A long whose payload travels apart: one for the header, one for the event of the payload.
    #[inline]
    #[must_use]
    pub const fn long(&self) -> u16 {
        2
    }

    /// A medium, or a long packed with its payload, of that many arguments and bytes.
    ///
    /// # Errors
    /// [`CreditError::LargerThanChunk`].
    pub fn packed(&self, args: usize, payload: usize) -> Result<u16, CreditError> {
        let bytes = args
            .checked_mul(4)
            .and_then(|args| args.checked_add(payload))
            .and_then(|bytes| bytes.checked_add(self.header_bytes as usize));
        match bytes {
            Some(bytes) if bytes <= self.chunk_bytes as usize => {
                // At most `largest()`, which `Rules::check` keeps within 16 bits.
                Ok((bytes as u32).div_ceil(self.granularity).max(1) as u16)
            }
            _ => Err(CreditError::LargerThanChunk {
                args,
                payload,
                chunk_bytes: self.chunk_bytes,
            }),
        }
    }

    /// The dearest request, which every peer must always be able to send: a full chunk, or a long.
    #[must_use]
    pub const fn largest(&self) -> u32 {
        let chunk = self.chunk_bytes.div_ceil(self.granularity);
        if chunk > 2 { chunk } else { 2 }
    }
}
