//! The wire format of a datagram.
//!
//! ```text
//!  0        4     5     6      8     12    16           24           32    36    40           56
//!  | "aRd1" | kind|flags| len  | from | to | incarnation of          | seq | ack | selective  | record | code
//!  |        | u8  | u8  | u16  | u32  | u32| sender u64 | target u64 | u32 | u32 | u128       | len    | 16, sealed only
//! ```
//!
//! All numbers little-endian. `seq` is the number of the record; in kinds without one, of the next.
//! `ack` is the next number that the sender wants; bit n of `selective` says that it has number
//! `ack` + n and keeps it until its turn.

use super::config::SPAN;
use super::seal::Seal;
use super::seq::Seq;
use argonet_base::JobRank;
use num_enum::{IntoPrimitive, TryFromPrimitive};

/// Bytes before the record.
pub const HEADER_BYTES: usize = 56;

/// Bytes behind it where datagrams are sealed.
pub const SEAL_BYTES: usize = 16;

const MARK: [u8; 4] = *b"aRd1";
const SEALED: u8 = 1;

static_assertions::const_assert!(SPAN == u128::BITS);

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
}

/// Everything but the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) from: JobRank,
    pub(super) to: JobRank,
    /// The sender's incarnation and the target's.
    pub(super) incarnations: [u64; 2],
    pub(super) seq: Seq,
    pub(super) ack: Seq,
    pub(super) selective: u128,
}

/// Why a datagram is dropped before its peer is looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bad {
    Malformed,
    Forged,
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

impl Header {
    /// Writes header and code around the record of `len` bytes that lies behind the header's place.
    ///
    /// How long the datagram is.
    pub(super) fn write(&self, datagram: &mut [u8], len: usize, seal: Option<&Seal>) -> usize {
        let flags = if seal.is_some() { SEALED } else { 0 };
        let end = HEADER_BYTES + len;
        let mut put = |at: usize, bytes: &[u8]| {
            datagram[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(0, &MARK);
        put(4, &[self.kind.into(), flags]);
        // Datagrams have less than 2^16 bytes (`ReliableConfig::objection`).
        put(6, &(len as u16).to_le_bytes());
        put(8, &self.from.0.to_le_bytes());
        put(12, &self.to.0.to_le_bytes());
        put(16, &self.incarnations[0].to_le_bytes());
        put(24, &self.incarnations[1].to_le_bytes());
        put(32, &self.seq.0.to_le_bytes());
        put(36, &self.ack.0.to_le_bytes());
        put(40, &self.selective.to_le_bytes());
        let Some(seal) = seal else { return end };
        let code = seal.code(&datagram[..end]);
        datagram[end..end + SEAL_BYTES].copy_from_slice(&code);
        end + SEAL_BYTES
    }

    /// Reads a datagram; the header, and how long the record behind it is.
    pub(super) fn read(datagram: &[u8], seal: Option<&Seal>) -> Result<(Self, usize), Bad> {
        let (header, flags, len) = Self::parse(datagram).ok_or(Bad::Malformed)?;
        let end = HEADER_BYTES + len;
        let tail = datagram.get(end..).ok_or(Bad::Malformed)?;
        match (seal, flags) {
            (None, 0) if tail.is_empty() => Ok((header, len)),
            (Some(seal), SEALED) if seal.is_of(tail, &datagram[..end]) => Ok((header, len)),
            (None, SEALED) | (Some(_), 0 | SEALED) => Err(Bad::Forged),
            _ => Err(Bad::Malformed),
        }
    }

    fn parse(datagram: &[u8]) -> Option<(Self, u8, usize)> {
        if field(datagram, 0)? != MARK {
            return None;
        }
        let [kind, flags] = field(datagram, 4)?;
        let header = Self {
            kind: Kind::try_from(kind).ok()?,
            from: JobRank(u32::from_le_bytes(field(datagram, 8)?)),
            to: JobRank(u32::from_le_bytes(field(datagram, 12)?)),
            incarnations: [
                u64::from_le_bytes(field(datagram, 16)?),
                u64::from_le_bytes(field(datagram, 24)?),
            ],
            seq: Seq(u32::from_le_bytes(field(datagram, 32)?)),
            ack: Seq(u32::from_le_bytes(field(datagram, 36)?)),
            selective: u128::from_le_bytes(field(datagram, 40)?),
        };
        let len = usize::from(u16::from_le_bytes(field(datagram, 6)?));
        let has_record = header.kind == Kind::Data;
        (has_record || len == 0).then_some((header, flags, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        kind: Kind::Data,
        from: JobRank(3),
        to: JobRank(0x0102_0304),
        incarnations: [5, u64::MAX],
        seq: Seq(6),
        ack: Seq(u32::MAX),
        selective: 1 << 127 | 5,
    };

    fn written(header: &Header, record: &[u8], seal: Option<&Seal>) -> Vec<u8> {
        let mut datagram = vec![0; HEADER_BYTES + record.len() + SEAL_BYTES];
        datagram[HEADER_BYTES..][..record.len()].copy_from_slice(record);
        let len = header.write(&mut datagram, record.len(), seal);
        datagram.truncate(len);
        datagram
    }

    #[test]
    fn written_headers_are_read_back() {
        let seal = Seal::from_secret(b"secret");
        for seal in [None, Some(&seal)] {
            let datagram = written(&HEADER, b"record", seal);
            assert_eq!(Header::read(&datagram, seal), Ok((HEADER, 6)));
            let ack = Header {
                kind: Kind::Ack,
                ..HEADER
            };
            assert_eq!(Header::read(&written(&ack, b"", seal), seal), Ok((ack, 0)));
            // A kind without a record carries none.
            let both = written(&ack, b"x", seal);
            assert_eq!(Header::read(&both, seal), Err(Bad::Malformed));
        }
    }

    #[test]
    fn a_sealed_datagram_with_any_bit_changed_is_none() {
        let seal = Seal::from_secret(b"secret");
        let datagram = written(&HEADER, b"record", Some(&seal));
        for bit in 0..datagram.len() * 8 {
            let mut other = datagram.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::read(&other, Some(&seal)).is_err(), "bit {bit}");
        }
        for len in 0..datagram.len() {
            assert!(Header::read(&datagram[..len], Some(&seal)).is_err());
        }
        let other = Seal::from_secret(b"Secret");
        assert_eq!(Header::read(&datagram, Some(&other)), Err(Bad::Forged));
        assert_eq!(Header::read(&datagram, None), Err(Bad::Forged));
        let open = written(&HEADER, b"record", None);
        assert_eq!(Header::read(&open, Some(&seal)), Err(Bad::Forged));
    }

    #[test]
    fn an_open_datagram_has_the_length_that_it_says() {
        let datagram = written(&HEADER, b"record", None);
        for len in 0..datagram.len() {
            assert_eq!(Header::read(&datagram[..len], None), Err(Bad::Malformed));
        }
        let longer = [&datagram[..], b"x"].concat();
        assert_eq!(Header::read(&longer, None), Err(Bad::Malformed));
    }
}
