//! Errors of the credit machine.

use crate::record::RecordError;

/// A peer reports an impossible number, or a caller asks for one.
///
/// The conduit adds which peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreditError {
    /// A count of a message contradicts what was counted here.
    #[error("credits {what}: {got}, at most {most} can be")]
    Account {
        /// The count that is wrong, in words.
        what: &'static str,
        /// Its value.
        got: u32,
        /// Its limit.
        most: u32,
    },
    /// A request that no chunk holds.
    #[error(
        "a request of {args} arguments and {payload} bytes does not fit a chunk of {chunk_bytes} bytes: send it as header and data"
    )]
    LargerThanChunk {
        /// Arguments, 4 bytes each.
        args: usize,
        /// Payload in bytes.
        payload: usize,
        /// The chunk in bytes.
        chunk_bytes: u32,
    },
    /// A field of a message is not of its form.
    #[error("credit field {bits:#x} has more than the {width} bits of its form")]
    Form {
        /// The field.
        bits: u64,
        /// Bits of the form.
        width: u32,
    },
}

impl From<CreditError> for RecordError {
    fn from(error: CreditError) -> Self {
        match error {
            CreditError::Account { what, got, most } => RecordError::Account {
                what,
                got: got.into(),
                most: most.into(),
            },
            CreditError::LargerThanChunk {
                payload,
                chunk_bytes,
                ..
            } => RecordError::Payload {
                len: payload as u64,
                max: chunk_bytes.into(),
            },
            CreditError::Form { bits, width } => RecordError::Account {
                what: "a credit field has the bits",
                got: bits,
                most: u64::MAX >> (64 - width.clamp(1, 64)),
            },
        }
    }
}

/// Receive space and credits that do not fit each other, or rules that contradict themselves.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// More was wished for than the space holds.
    #[error(
        "{share} credits for each of {peers} peers and {bank} in the bank are {sum} credits, but the receive space of {bytes} bytes holds {holds}: \
         lower ARGONET_CREDITS_SHARE (or GASNET_PORTAL_CRED_PER_NODE) or ARGONET_CREDITS_BANK (or GASNET_PORTAL_BANKED_CREDITS), or raise \
         ARGONET_CREDITS_SPACE (or GASNET_PORTAL_AMRECV_SPACE) to at least {enough} bytes"
    )]
    TooMany {
        /// Credits a peer.
        share: u32,
        /// Other ranks.
        peers: u32,
        /// Credits in the bank.
        bank: u64,
        /// Their sum.
        sum: u64,
        /// The space.
        bytes: u64,
        /// Credits that it holds.
        holds: u64,
        /// A space that would do.
        enough: u64,
    },
    /// A share or the space is so small that a peer could never send the largest request.
    #[error(
        "{share} credits a peer are too few: a request costs up to {needed}, which every peer must hold; raise ARGONET_CREDITS_SHARE \
         (or GASNET_PORTAL_CRED_PER_NODE), or ARGONET_CREDITS_SPACE (or GASNET_PORTAL_AMRECV_SPACE)"
    )]
    TooFew {
        /// Credits a peer.
        share: u32,
        /// Its lower limit.
        needed: u32,
    },
    /// A value of the rules is out of its range.
    #[error("{what} is {got}, allowed are {from} to {to}")]
    Range {
        /// Which.
        what: &'static str,
        /// Its value.
        got: u64,
        /// The least.
        from: u64,
        /// The most.
        to: u64,
    },
}
