//! What passes over a member's rail besides the stream: offers, and, over rails that last, the
//! heads of runs of the stream.
//!
//! ```text
//!   0       1             4        8
//!   | kind  | generation  | length |  bytes, so many as `length` says
//! ```
//!
//! A rail that does not last carries one offer each way and then the stream itself, as it ends with
//! its generation. One that lasts still brings what was written in generations before: so each run
//! of the stream has a head with the low bits of its generation, and those of other generations are
//! thrown away. A probe is a head alone, whose acknowledgement shows that such a rail works.

// spec B6: 8 bytes a run of the stream, over rails that last alone.
/// Bytes of a head.
pub(super) const HEAD: usize = 8;

/// Bytes of an offer, with its head: the generation, and up to where the peer's stream was taken.
pub(super) const OFFER: usize = HEAD + 16;

/// Longest run of the stream: of each that a rail does not take whole, the rest is copied.
pub(super) const LONGEST_RUN: usize = 16 << 10;

/// The last generation: there are always more numbers than any job needs.
const LAST_GENERATION: u64 = 1 << 62;

const RUN_KIND: u8 = 1;
const OFFER_KIND: u8 = 2;
const PROBE_KIND: u8 = 3;

/// The bits of a generation that heads have.
const GENERATION_BITS: u64 = 0xff_ffff;

/// A head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Head {
    /// So many bytes of the stream in the generation with these low bits.
    Run { low: u32, len: usize },
    /// An offer.
    Offer,
    /// Nothing: the rail is to acknowledge it.
    Probe,
}

/// The low bits of a generation.
pub(super) fn low(generation: u64) -> u32 {
    (generation & GENERATION_BITS) as u32
}

fn head(kind: u8, low: u32, len: usize) -> [u8; HEAD] {
    let [a, b, c, _] = low.to_le_bytes();
    let [d, e, f, g] = (len as u32).to_le_bytes();
    [kind, a, b, c, d, e, f, g]
}

/// The head of a run of at most [`LONGEST_RUN`] bytes.
pub(super) fn run(low: u32, len: usize) -> [u8; HEAD] {
    head(RUN_KIND, low, len)
}

/// A probe.
pub(super) fn probe() -> [u8; HEAD] {
    head(PROBE_KIND, 0, 0)
}

/// An offer.
pub(super) fn offer(generation: u64, received: u64) -> [u8; OFFER] {
    let mut bytes = [0; OFFER];
    bytes[..HEAD].copy_from_slice(&head(OFFER_KIND, low(generation), OFFER - HEAD));
    bytes[HEAD..HEAD + 8].copy_from_slice(&generation.to_le_bytes());
    bytes[HEAD + 8..].copy_from_slice(&received.to_le_bytes());
    bytes
}

/// Reads a head; `None` if it is none.
pub(super) fn read_head(bytes: &[u8; HEAD]) -> Option<Head> {
    let [kind, a, b, c, d, e, f, g] = *bytes;
    let low = u32::from_le_bytes([a, b, c, 0]);
    let len = u32::from_le_bytes([d, e, f, g]) as usize;
    match kind {
        RUN_KIND if (1..=LONGEST_RUN).contains(&len) => Some(Head::Run { low, len }),
        OFFER_KIND if len == OFFER - HEAD => Some(Head::Offer),
        PROBE_KIND if len == 0 => Some(Head::Probe),
        _ => None,
    }
}

/// The generation of an offer, and up to where the stream was taken; `None` if it is none.
pub(super) fn read_offer(bytes: &[u8; OFFER]) -> Option<(u64, u64)> {
    let (head, body) = bytes.split_first_chunk::<HEAD>()?;
    let (generation, received) = body.split_first_chunk::<8>()?;
    let generation = u64::from_le_bytes(*generation);
    let received = u64::from_le_bytes(received.try_into().ok()?);
    let [_, a, b, c, ..] = *head;
    let is_whole =
        read_head(head) == Some(Head::Offer) && (1..=LAST_GENERATION).contains(&generation);
    let is_alike = u32::from_le_bytes([a, b, c, 0]) == low(generation);
    (is_whole && is_alike).then_some((generation, received))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // spec B6
        #[test]
        fn what_is_written_is_read(generation in 1..=LAST_GENERATION, received: u64, len in 1..=LONGEST_RUN) {
            prop_assert_eq!(read_offer(&offer(generation, received)), Some((generation, received)));
            let low = low(generation);
            prop_assert_eq!(read_head(&run(low, len)), Some(Head::Run { low, len }));
        }

        #[test]
        fn any_bytes_are_borne(bytes: [u8; OFFER]) {
            if let Some((generation, received)) = read_offer(&bytes) {
                prop_assert_eq!(offer(generation, received), bytes);
            }
        }
    }

    #[test]
    fn other_heads_are_refused() {
        for (kind, len) in [
            (0, 1),
            (3, 16),
            (4, 0),
            (1, 0),
            (1, LONGEST_RUN + 1),
            (2, 15),
            (2, 17),
        ] {
            assert_eq!(read_head(&head(kind, 7, len)), None, "{kind} {len}");
        }
        assert_eq!(read_head(&probe()), Some(Head::Probe));
        let mut other = offer(7, 9);
        other[1] = 8;
        assert_eq!(read_offer(&other), None);
        assert_eq!(read_offer(&offer(0, 9)), None);
        assert_eq!(read_offer(&offer(LAST_GENERATION + 1, 9)), None);
    }
}
