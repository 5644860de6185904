//! The wire format of a datagram.
//!
//! ```text
//!  0        4     5     6     8      12   16           24           32          40          48          64       72
//!  | "aRd5" | kind|flags| len | from | to | incarnation of          | of commands | of data   | selective | number | record | code
//!  |        | u8  | u8  | u16 | u32  | u32| sender u64 | target u64 | seq, ack u32 each       | u128      | u64    | len    | 16, sealed only
//! ```
//!
//! All numbers little-endian. A datagram is of one channel, that of data with flag 16. For each
//! channel, `seq` is the number of the next record, but for the channel of a datagram with a record
//! that of the record; `ack` is the next number that the sender wants. Bit n of `selective` says
//! that the sender has number `ack` + n of the datagram's channel and keeps it until its turn. What
//! it keeps beyond these is named by more bits in place of a record. In place of a record, too, a
//! trial has zeros, its answer how long it was (u16), and a chunk its place (three u16: first byte,
//! bytes of the record, bytes of each chunk) and bytes of a record. Flag 4 says that the sender
//! keeps records of the command channel that the datagram does not name, flag 8 the same of data.
//! `number` is that of the sealed datagram, 0 in an open one. The code covers header and record;
//! where the record is encrypted, as it is sent.

use super::channel::Channel;
use super::config::SPAN;
use super::seq::Seq;
use argonet_base::JobRank;
use num_enum::{IntoPrimitive, TryFromPrimitive};

/// Bytes before the record.
pub const HEADER_BYTES: usize = 72;

/// Bytes behind it where datagrams are sealed.
pub const SEAL_BYTES: usize = 16;

/// Numbers that a header names.
pub(super) const NAMED: u32 = u128::BITS;

/// Bytes that name all others.
pub(super) const MORE_BYTES: usize = (SPAN - NAMED) as usize / 8;

/// The version of the format: endpoints of two versions take nothing of each other.
pub const FORMAT: u32 = 5;

/// The flags of a datagram that does not name all that its sender keeps, by channel.
const PARTIAL: [u8; 2] = [4, 8];

/// The flag of a datagram of the data channel.
const DATA: u8 = 16;

/// All flags but those of protection.
const NOT_PROTECTION: u8 = PARTIAL[0] | PARTIAL[1] | DATA;

const MARK: [u8; 4] = *b"aRd5";

/// The purpose of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
pub(super) enum Kind {
    /// It has a record.
    Data = 1,
    /// It acknowledges.
    Ack = 2,
    /// It wants an acknowledgement.
    Probe = 3,
    /// Its sender ends: it needs nothing more and takes nothing any more.
    Leave = 4,
    /// It is as long as it is to see whether such ones arrive.
    Trial = 5,
    /// It says how long a trial was that has come.
    Reached = 6,
    /// It has a chunk of a record that is too long for the path by now.
    Chunk = 7,
}

impl Kind {
    /// Whether its body names records that its sender keeps.
    pub(super) fn names_more(self) -> bool {
        matches!(self, Self::Ack | Self::Probe | Self::Leave)
    }
}

/// Chunks of a record, at most.
pub(super) const MOST_CHUNKS: usize = u64::BITS as usize;

/// Bytes of a chunk before those of the record.
pub(super) const CHUNK_BYTES: usize = 6;

// spec U1: a chunk is what a packet has of a longer record.
/// Where in its record a chunk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chunk {
    /// Its first byte.
    pub(super) from: u16,
    /// Bytes of the record.
    pub(super) of: u16,
    /// Bytes of each chunk; the last one may be shorter.
    pub(super) each: u16,
}

impl Chunk {
    pub(super) fn write(self, body: &mut [u8]) {
        for (to, field) in body
            .chunks_exact_mut(2)
            .zip([self.from, self.of, self.each])
        {
            to.copy_from_slice(&field.to_le_bytes());
        }
    }

    /// Reads the body of a chunk: where it is, which of the chunks, and its bytes.
    ///
    /// `None` unless it has the length that its place demands.
    pub(super) fn read(body: &[u8]) -> Option<(Self, u32, &[u8])> {
        let (place, bytes) = body.split_at_checked(CHUNK_BYTES)?;
        let number = |at| Some(u16::from_le_bytes(field(place, at)?));
        let chunk = Self {
            from: number(0)?,
            of: number(2)?,
            each: number(4)?,
        };
        let which = chunk.from.checked_div(chunk.each)?;
        let rest = chunk.of.checked_sub(chunk.from)?;
        let is_whole = chunk.from == which * chunk.each
            && bytes.len() == usize::from(rest.min(chunk.each))
            && rest > 0
            && chunk.count() <= MOST_CHUNKS;
        is_whole.then_some((chunk, u32::from(which), bytes))
    }

    /// Chunks of its record.
    pub(super) fn count(self) -> usize {
        usize::from(self.of.div_ceil(self.each))
    }
}

/// How a datagram is protected: its flags but [`NOT_PROTECTION`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
pub(super) enum Protection {
    /// Not at all.
    Open = 0,
    /// It has a code.
    Auth = 1,
    /// Its record is encrypted, too.
    Encrypted = 3,
}

impl Protection {
    /// Bytes behind the record.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Open => 0,
            Self::Auth | Self::Encrypted => SEAL_BYTES,
        }
    }
}

/// Places in the two directions of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Numbers {
    /// The number of the record, or of the next.
    pub(super) seq: Seq,
    /// The next number that the sender wants.
    pub(super) ack: Seq,
}

/// Everything but the record and its code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) channel: Channel,
    pub(super) from: JobRank,
    pub(super) to: JobRank,
    /// The sender's incarnation and the target's.
    pub(super) incarnations: [u64; 2],
    /// By channel.
    pub(super) numbers: [Numbers; 2],
    pub(super) selective: u128,
    /// The sender keeps more than this names, by channel.
    pub(super) partial: [bool; 2],
    pub(super) protection: Protection,
    /// Of the datagram; 0 in an open one.
    pub(super) number: u64,
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

impl Header {
    /// Writes the header of a record of `len` bytes, or of so many that name more.
    pub(super) fn write(&self, datagram: &mut [u8], len: usize) {
        let mut put = |at: usize, bytes: &[u8]| {
            datagram[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(0, &MARK);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = u8::from(self.protection)
            | flag(self.partial[0], PARTIAL[0])
            | flag(self.partial[1], PARTIAL[1])
            | flag(self.channel == Channel::Data, DATA);
        put(4, &[self.kind.into(), flags]);
        // Datagrams have less than 2^16 bytes (`ReliableConfig::objection`).
        put(6, &(len as u16).to_le_bytes());
        put(8, &self.from.0.to_le_bytes());
        put(12, &self.to.0.to_le_bytes());
        put(16, &self.incarnations[0].to_le_bytes());
        put(24, &self.incarnations[1].to_le_bytes());
        for (at, Numbers { seq, ack }) in [32, 40].into_iter().zip(self.numbers) {
            put(at, &seq.0.to_le_bytes());
            put(at + 4, &ack.0.to_le_bytes());
        }
        put(48, &self.selective.to_le_bytes());
        put(64, &self.number.to_le_bytes());
    }

    /// Reads a datagram, whose code is not looked at; the header, and how long the record behind it
    /// is, or what names more.
    ///
    /// `None` for one of another form or length.
    pub(super) fn read(datagram: &[u8]) -> Option<(Self, usize)> {
        if field(datagram, 0)? != MARK {
            return None;
        }
        let [kind, flags] = field(datagram, 4)?;
        let seq = |at| Some(Seq(u32::from_le_bytes(field(datagram, at)?)));
        let numbers = |at| {
            Some(Numbers {
                seq: seq(at)?,
                ack: seq(at + 4)?,
            })
        };
        let header = Self {
            kind: Kind::try_from(kind).ok()?,
            channel: match flags & DATA {
                0 => Channel::Command,
                _ => Channel::Data,
            },
            from: JobRank(u32::from_le_bytes(field(datagram, 8)?)),
            to: JobRank(u32::from_le_bytes(field(datagram, 12)?)),
            incarnations: [
                u64::from_le_bytes(field(datagram, 16)?),
                u64::from_le_bytes(field(datagram, 24)?),
            ],
            numbers: [numbers(32)?, numbers(40)?],
            selective: u128::from_le_bytes(field(datagram, 48)?),
            partial: PARTIAL.map(|flag| flags & flag != 0),
            protection: Protection::try_from(flags & !NOT_PROTECTION).ok()?,
            number: u64::from_le_bytes(field(datagram, 64)?),
        };
        let len = usize::from(u16::from_le_bytes(field(datagram, 6)?));
        let most = match header.kind {
            kind if kind.names_more() => MORE_BYTES,
            Kind::Reached => 2,
            _ => usize::MAX,
        };
        let all = HEADER_BYTES + len + header.protection.bytes();
        (len <= most && datagram.len() == all).then_some((header, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        kind: Kind::Data,
        channel: Channel::Data,
        from: JobRank(3),
        to: JobRank(0x0102_0304),
        incarnations: [5, u64::MAX],
        numbers: [
            Numbers {
                seq: Seq(6),
                ack: Seq(u32::MAX),
            },
            Numbers {
                seq: Seq(7),
                ack: Seq(0x0403_0201),
            },
        ],
        selective: 1 << 127 | 5,
        partial: [false; 2],
        protection: Protection::Open,
        number: 0,
    };

    fn written(header: &Header, record: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0; HEADER_BYTES];
        header.write(&mut datagram, record.len());
        datagram.extend_from_slice(record);
        datagram.resize(datagram.len() + header.protection.bytes(), 0);
        datagram
    }

    #[test]
    fn written_headers_are_read_back() {
        let protections = [Protection::Open, Protection::Auth, Protection::Encrypted];
        for (protection, number) in protections.into_iter().zip([0, 1, u64::MAX - 1]) {
            let data = Header {
                channel: Channel::BOTH[usize::from(number == 1)],
                partial: [number == 1, number == 0],
                protection,
                number,
                ..HEADER
            };
            assert_eq!(Header::read(&written(&data, b"record")), Some((data, 6)));
            let ack = Header {
                kind: Kind::Ack,
                ..data
            };
            assert_eq!(Header::read(&written(&ack, b"")), Some((ack, 0)));
            // A kind without a record names what is kept, no more.
            let names = [1; MORE_BYTES + 1];
            assert_eq!(
                Header::read(&written(&ack, &names[1..])),
                Some((ack, MORE_BYTES))
            );
            assert_eq!(Header::read(&written(&ack, &names)), None);
        }
        let mut other = written(&HEADER, b"");
        for flags in [2, 32, 64, 128] {
            other[5] = flags;
            assert_eq!(Header::read(&other), None, "no such protection or flag");
        }
    }

    #[test]
    fn a_datagram_of_another_version_is_none() {
        let mut other = written(&HEADER, b"record");
        assert_eq!(FORMAT.to_string().as_bytes(), &other[3..4]);
        other[3] -= 1;
        assert_eq!(Header::read(&other), None);
    }

    #[test]
    fn a_datagram_has_the_length_that_it_says() {
        for protection in [Protection::Open, Protection::Auth] {
            let header = Header {
                protection,
                ..HEADER
            };
            let datagram = written(&header, b"record");
            for len in 0..datagram.len() {
                assert_eq!(Header::read(&datagram[..len]), None);
            }
            let longer = [&datagram[..], b"x"].concat();
            assert_eq!(Header::read(&longer), None);
        }
    }
}
