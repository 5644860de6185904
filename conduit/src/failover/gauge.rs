//! Counts of what has happened to rails of several members, where other processes of the same user
//! can read them while the job runs.
//!
//! A memory file like that of the credits; `argonet info --rails` reads it. Words of 64 bits:
//!
//! ```text
//! 0 magic   1 rank, ranks   then of each member:   0 .. 7 its name   8 .. 12 counts
//! ```

use crate::channel::rail::MOST_RAILS;
use crate::words::{self, Words, two};
use argonet_base::JobRank;
use core::fmt;
use parking_lot::Mutex;
use std::io;

/// The name of the memory file.
pub const RAILS_FILE_NAME: &str = "argonet-rails";

const MAGIC: u64 = u64::from_le_bytes(*b"argorail");
const HEAD: usize = 2;

/// Words of a name, of which the rest is left out.
const NAME: usize = 8;
const COUNTS: usize = 5;

/// Why a member's rail to a peer was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loss {
    /// It has ended, or failed with an error.
    Ended,
    /// The peer's host did not answer.
    Silent,
    /// This host's address does not work any more.
    Address,
}

impl Loss {
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Ended => "it was closed or reset",
            Self::Silent => "nothing was acknowledged in time",
            Self::Address => "this host's interface is down or has lost the address",
        }
    }
}

/// What has happened to a member, with all peers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemberCounts {
    /// As the user names it.
    pub name: String,
    /// Peers to which it carries messages.
    pub carries: u64,
    /// How often it began to carry them, for any peer.
    pub begun: u64,
    /// Rails to peers that have ended or failed.
    pub ended: u64,
    /// Those whose peers' hosts did not answer.
    pub silent: u64,
    /// Those given up because an address of this host stopped working.
    pub address: u64,
}

impl MemberCounts {
    fn counts(&self) -> [u64; COUNTS] {
        let Self {
            name: _,
            carries,
            begun,
            ended,
            silent,
            address,
        } = *self;
        [carries, begun, ended, silent, address]
    }
}

/// The counts, and the memory file that shows them.
pub(super) struct RailGauge {
    rank: JobRank,
    ranks: u32,
    counts: Mutex<Box<[MemberCounts]>>,
    words: Words,
}

/// The first word of a member.
fn place(member: usize) -> usize {
    HEAD + member * (NAME + COUNTS)
}

impl RailGauge {
    pub(super) fn new(rank: JobRank, ranks: u32, names: &[String]) -> io::Result<Self> {
        let words = Words::new(RAILS_FILE_NAME, place(names.len()))?;
        words.set(1, two(rank.0, ranks));
        for (member, name) in names.iter().enumerate() {
            let mut bytes = [0; NAME * 8];
            let len = name.floor_char_boundary(bytes.len());
            bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
            for (at, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
                words.set(place(member) + at, u64::from_ne_bytes(*word));
            }
        }
        words.set(0, MAGIC);
        let counts = names.iter().map(|name| MemberCounts {
            name: name.clone(),
            ..MemberCounts::default()
        });
        Ok(Self {
            rank,
            ranks,
            counts: Mutex::new(counts.collect()),
            words,
        })
    }

    fn change(&self, member: usize, change: impl FnOnce(&mut MemberCounts)) {
        let mut all = self.counts.lock();
        change(&mut all[member]);
        for (at, count) in all[member].counts().into_iter().enumerate() {
            self.words.set(place(member) + NAME + at, count);
        }
    }

    /// A member carries messages to one more peer from now on.
    pub(super) fn begins(&self, member: usize) {
        self.change(member, |counts| {
            counts.carries += 1;
            counts.begun += 1;
        });
    }

    /// And to one fewer.
    pub(super) fn stops(&self, member: usize) {
        self.change(member, |counts| counts.carries -= 1);
    }

    /// A member has lost its rail to a peer.
    pub(super) fn lost(&self, member: usize, loss: Loss) {
        self.change(member, |counts| match loss {
            Loss::Ended => counts.ended += 1,
            Loss::Silent => counts.silent += 1,
            Loss::Address => counts.address += 1,
        });
    }

    /// All of them.
    pub(super) fn report(&self) -> RailReport {
        RailReport {
            rank: self.rank.0,
            ranks: self.ranks,
            members: self.counts.lock().to_vec(),
        }
    }
}

/// What has happened to the rails of a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RailReport {
    /// The rank.
    pub rank: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// By member, in the order of `ARGONET_RAILS`.
    pub members: Vec<MemberCounts>,
}

impl RailReport {
    /// Out of the bytes of the memory file; `None` if they are none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let words = words::read(bytes)?;
        let (&[magic, ranks], members) = words.split_first_chunk::<HEAD>()?;
        let (members, rest) = members.as_chunks::<{ NAME + COUNTS }>();
        let member = |words: &[u64; NAME + COUNTS]| {
            let (name, counts) = words.split_at(NAME);
            let name: Vec<u8> = name.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let name = String::from_utf8_lossy(&name);
            let &[carries, begun, ended, silent, address] = counts else {
                unreachable!("the rest is {COUNTS} words");
            };
            MemberCounts {
                name: name.trim_end_matches('\0').to_owned(),
                carries,
                begun,
                ended,
                silent,
                address,
            }
        };
        let is_report = magic == MAGIC && rest.is_empty();
        (is_report && members.len() <= MOST_RAILS.into()).then(|| Self {
            rank: ranks as u32,
            ranks: (ranks >> 32) as u32,
            members: members.iter().map(member).collect(),
        })
    }
}

impl fmt::Display for RailReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rank,
            ranks,
            members,
        } = self;
        write!(f, "rank {rank} of {ranks}: ")?;
        for (at, counts) in members.iter().enumerate() {
            let MemberCounts {
                name,
                carries,
                begun,
                ended,
                silent,
                address,
            } = counts;
            let name = name.escape_debug();
            let behind = if at == 0 { "" } else { "; " };
            let [peers, times] = [(*carries, "peer"), (*begun, "time")].map(|(count, of)| {
                let plural = if count == 1 { "" } else { "s" };
                format!("{count} {of}{plural}")
            });
            write!(
                f,
                "{behind}{name} carries messages to {peers} (began {times}), \
                 rails lost: {ended} closed or reset, {silent} silent, \
                 {address} with an address of this host that went down"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read() {
        let long =
            "usnic:a-name-that-is-longer-than-there-is-room-for-\u{e9}-in-all-of-these-words";
        let names = ["tcp:eth0".to_owned(), long.to_owned()];
        let gauge = RailGauge::new(JobRank(3), 7, &names).unwrap();
        gauge.begins(0);
        gauge.begins(0);
        gauge.lost(0, Loss::Ended);
        gauge.stops(0);
        gauge.begins(1);
        gauge.lost(1, Loss::Silent);
        gauge.lost(1, Loss::Address);
        gauge.lost(1, Loss::Address);
        let bytes = gauge.words.bytes();
        let read = RailReport::read(&bytes).unwrap();
        let mut wanted = gauge.report();
        assert!(long.starts_with(&read.members[1].name) && read.members[1].name.len() > 60);
        wanted.members[1].name.clone_from(&read.members[1].name);
        assert_eq!(read, wanted);
        assert_eq!(
            read.to_string().split("; ").next(),
            Some(
                "rank 3 of 7: tcp:eth0 carries messages to 1 peer (began 2 times), rails lost: 1 closed or reset, 0 silent, 0 with an address of this host that went down"
            )
        );
        let counts = read.members[1].counts();
        assert_eq!(counts, [1, 1, 0, 1, 2]);
    }

    #[test]
    fn other_bytes_are_no_report() {
        let gauge = RailGauge::new(JobRank(0), 2, &["tcp".to_owned()]).unwrap();
        let bytes = gauge.words.bytes();
        assert!(RailReport::read(&bytes).is_some());
        assert_eq!(RailReport::read(&bytes[..bytes.len() - 8]), None);
        assert_eq!(RailReport::read(&bytes[..9]), None);
        assert_eq!(RailReport::read(&[]), None);
        let mut other = bytes.clone();
        other[0] ^= 1;
        assert_eq!(RailReport::read(&other), None);
        // More members than a rank can have.
        let member = bytes[HEAD * 8..].to_vec();
        let mut most = bytes;
        most.extend(member.repeat(usize::from(MOST_RAILS) - 1));
        assert!(RailReport::read(&most).is_some());
        most.extend(member);
        assert_eq!(RailReport::read(&most), None);
    }
}
