//! Entries that the members of a team exchange, one each, when teams are made of it.

use super::error::TeamError;
use crate::collective::Offer;
use argonet_am::ENDPOINTS;
use argonet_base::JobRank;

/// Terms that must be the same at all members of a new team.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Terms {
    /// Bytes of scratch memory.
    pub scratch: u64,
    /// Other properties that its maker wants to be the same, as bits.
    pub flags: u32,
}

/// Where a member of the parent wants to go in a split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Members with the same color are a team.
    pub color: u32,
    /// Ranks in the team are in this order, then in that of the parent.
    pub key: i32,
}

/// Which call it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Call {
    Split,
    Create,
}

/// The request of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// It is there because all must be.
    Nothing,
    /// To join the members with the same color.
    Join(Choice),
    /// To make the team of a list.
    List(Digest),
    /// Something that cannot be; its own call reports that.
    Wrong,
}

/// The summary of a list for the other members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Digest {
    pub(super) hash: u64,
    /// Endpoints of the own process that it names, as bits.
    pub(super) own: u32,
    /// How many it names.
    pub(super) count: u32,
}

impl Digest {
    /// Of a list that was checked, as `rank` has it.
    pub(super) fn of(list: &[(JobRank, u32)], rank: JobRank) -> Self {
        let words = list
            .iter()
            .flat_map(|&(process, endpoint)| [process.0, endpoint]);
        // FNV-1a: all ranks compute the same hash, and lists that differ by a mistake hardly have
        // the same one.
        let hash = words
            .flat_map(u32::to_le_bytes)
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let own = list.iter().filter(|&&(process, _)| process == rank);
        Self {
            hash,
            own: own.fold(0, |bits, &(_, endpoint)| bits | 1 << endpoint),
            count: list.len() as u32,
        }
    }
}

/// Checks a list, as far as its caller can.
pub(super) fn check_list(list: &[(JobRank, u32)], size: u32) -> Result<(), TeamError> {
    for &(process, endpoint) in list {
        if process.0 >= size {
            return Err(TeamError::NoSuchProcess { process, size });
        }
        if endpoint >= ENDPOINTS {
            return Err(TeamError::NoSuchEndpoint { process, endpoint });
        }
    }
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(&[(process, endpoint), _]) => Err(TeamError::Twice { process, endpoint }),
        _ => Ok(()),
    }
}

/// One member's part.
///
/// ```text
/// 0        4          6          8              12          16     24        32          36    40
/// | number | call u16 | part u16 | color / own | key/count | hash | scratch | flags u32 | 0   |
/// 40      48      56
/// | slots | first |
/// ```
///
/// Little-endian. Fields that a part does not have are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// The number in the team's key, if the member leads a team.
    pub(super) number: u32,
    pub(super) call: Call,
    pub(super) part: Part,
    pub(super) terms: Terms,
    /// Slots that it can give.
    pub(super) offer: Offer,
}

/// Bytes of an entry.
pub(super) const ENTRY_BYTES: usize = 56;

impl Entry {
    pub(super) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let call: u16 = match self.call {
            Call::Split => 1,
            Call::Create => 2,
        };
        let (part, own, count, hash): (u16, u32, u32, u64) = match self.part {
            Part::Nothing => (0, 0, 0, 0),
            Part::Join(choice) => (1, choice.color, choice.key.cast_unsigned(), 0),
            Part::List(digest) => (2, digest.own, digest.count, digest.hash),
            Part::Wrong => (3, 0, 0, 0),
        };
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0..4].copy_from_slice(&self.number.to_le_bytes());
        bytes[4..6].copy_from_slice(&call.to_le_bytes());
        bytes[6..8].copy_from_slice(&part.to_le_bytes());
        bytes[8..12].copy_from_slice(&own.to_le_bytes());
        bytes[12..16].copy_from_slice(&count.to_le_bytes());
        bytes[16..24].copy_from_slice(&hash.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.terms.scratch.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.terms.flags.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.offer.slots.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.offer.first.to_le_bytes());
        bytes
    }

    /// `None` for bytes that no member of this version writes.
    pub(super) fn read(bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let kinds = word(4);
        let (own, count, hash) = (word(8), word(12), long(16));
        Some(Self {
            number: word(0),
            call: match kinds & 0xffff {
                1 => Call::Split,
                2 => Call::Create,
                _ => return None,
            },
            part: match kinds >> 16 {
                0 => Part::Nothing,
                1 => Part::Join(Choice {
                    color: own,
                    key: count.cast_signed(),
                }),
                2 => Part::List(Digest { hash, own, count }),
                3 => Part::Wrong,
                _ => return None,
            },
            terms: Terms {
                scratch: long(24),
                flags: word(32),
            },
            offer: Offer {
                slots: long(40),
                first: long(48),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part() -> impl Strategy<Value = Part> {
        prop_oneof![
            Just(Part::Nothing),
            Just(Part::Wrong),
            (any::<u32>(), any::<i32>()).prop_map(|(color, key)| Part::Join(Choice { color, key })),
            (any::<u64>(), any::<u32>(), any::<u32>())
                .prop_map(|(hash, own, count)| Part::List(Digest { hash, own, count })),
        ]
    }

    proptest! {
        #[test]
        fn written_entries_are_read_back(
            part in part(),
            split in any::<bool>(),
            (number, scratch, flags) in any::<(u32, u64, u32)>(),
            (slots, first) in any::<(u64, u64)>(),
        ) {
            let offer = Offer { slots, first };
            let call = if split { Call::Split } else { Call::Create };
            let terms = Terms { scratch, flags };
            let entry = Entry { number, call, part, terms, offer };
            prop_assert_eq!(Entry::read(&entry.to_bytes()), Some(entry));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in any::<[u8; ENTRY_BYTES]>()) {
            if let Some(entry) = Entry::read(&bytes) {
                prop_assert!(bytes[4] == 1 || bytes[4] == 2);
                prop_assert_eq!(Entry::read(&entry.to_bytes()), Some(entry));
            }
        }
    }

    #[test]
    fn impossible_lists_are_refused() {
        let list = |list: &[(u32, u32)]| -> Vec<_> {
            list.iter().map(|&(rank, at)| (JobRank(rank), at)).collect()
        };
        assert_eq!(check_list(&list(&[(2, 0), (2, 31), (0, 0)]), 3), Ok(()));
        let process = JobRank(2);
        assert_eq!(
            check_list(&list(&[(2, 1), (0, 0), (2, 1)]), 3),
            Err(TeamError::Twice {
                process,
                endpoint: 1
            })
        );
        assert_eq!(
            check_list(&list(&[(2, 0)]), 2),
            Err(TeamError::NoSuchProcess { process, size: 2 })
        );
        assert_eq!(
            check_list(&list(&[(2, 32)]), 3),
            Err(TeamError::NoSuchEndpoint {
                process,
                endpoint: 32
            })
        );
    }
}
