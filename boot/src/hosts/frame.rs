//! Frames of a control connection.
//!
//! ```text
//! once, at the beginning   "\nargonet-agent\0\1"       (upwards) what comes before it is noise of the way: shells greet
//!                          "\nargonet-above\0\1"       (downwards) another one, so that an echo is no agent
//! then, any number of
//!   0   4   body bytes, little-endian, at most MAX_BODY_BYTES
//!   4   1   kind
//!   5   3   zero
//!   8   .   body
//!   .  32   code, where the connection goes over a network of its own (`seal`); there is no begin then
//! ```

use core::mem::size_of;

use static_assertions::const_assert_eq;
use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::hosts::message::{Message, decode};
use crate::hosts::seal::{CODE_BYTES, Seal};
use crate::secret::wipe;

type Magic = [u8; 16];

/// The begin of what an agent sends upwards.
pub(crate) const AGENT: Magic = *b"\nargonet-agent\0\x01";

/// The begin of the bytes to an agent.
pub(crate) const ABOVE: Magic = *b"\nargonet-above\0\x01";

/// The longest body: environment and arguments of a program fit, since the system takes no more
/// than 2 MiB by default.
pub(crate) const MAX_BODY_BYTES: usize = 8 << 20;

/// The longest body of a frame with a code before the first right code: a greeting fits.
const MAX_FIRST_BODY_BYTES: usize = 1 << 10;

/// Bytes of noise that may come before the magic.
const MAX_NOISE_BYTES: usize = 64 << 10;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    body_bytes: U32,
    kind: u8,
    zero: [u8; 3],
}
const_assert_eq!(size_of::<Header>(), 8);

/// Error of bytes that came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its control connection holds no messages of this version of argonet ({0})")]
pub(crate) struct Garbled(pub(crate) String);

/// Appends a frame, and its code where there is a seal.
pub(crate) fn append(message: &Message, to: &mut Vec<u8>, seal: Option<&mut Seal>) {
    let begin = to.len();
    to.extend_from_slice(&[0; size_of::<Header>()]);
    message.encode(to);
    let body_bytes = to.len() - begin - size_of::<Header>();
    debug_assert!(body_bytes <= MAX_BODY_BYTES);
    let header = Header {
        body_bytes: U32::new(body_bytes as u32),
        kind: message.kind().into(),
        zero: [0; 3],
    };
    to[begin..begin + size_of::<Header>()].copy_from_slice(header.as_bytes());
    if let Some(seal) = seal {
        let code = seal.code(&to[begin..]);
        to.extend_from_slice(&code);
    }
}

/// Takes bytes as they come and gives messages.
#[derive(Debug)]
pub(crate) struct FrameReader {
    magic: Magic,
    bytes: Vec<u8>,
    /// Number of `bytes` that have been used.
    used: usize,
    /// Whether the magic has come.
    begun: bool,
    /// Codes of the frames, where they have such.
    seal: Option<Seal>,
    /// The longest body that is taken.
    max_body_bytes: usize,
}

impl FrameReader {
    /// For what begins with `magic`.
    pub(crate) const fn new(magic: Magic) -> Self {
        Self {
            magic,
            bytes: Vec::new(),
            used: 0,
            begun: false,
            seal: None,
            max_body_bytes: MAX_BODY_BYTES,
        }
    }

    /// For frames with codes.
    pub(crate) fn sealed(seal: Seal) -> Self {
        Self {
            begun: true,
            seal: Some(seal),
            max_body_bytes: MAX_FIRST_BODY_BYTES,
            ..Self::new(AGENT)
        }
    }

    /// Takes bytes.
    ///
    /// No more than a frame and the bytes given last are kept, if [`next`](Self::next) is called
    /// until it has none.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if self.used > 0 {
            let left = self.bytes.len() - self.used;
            self.bytes.copy_within(self.used.., 0);
            // Keys go through here.
            wipe(&mut self.bytes[left..]);
            self.bytes.truncate(left);
            self.used = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, if all of it has come.
    ///
    /// # Errors
    /// The connection cannot be used any more.
    pub(crate) fn next(&mut self) -> Result<Option<Message>, Garbled> {
        if !self.begun && !self.find_magic()? {
            return Ok(None);
        }
        let Ok((header, rest)) = Header::ref_from_prefix(&self.bytes[self.used..]) else {
            return Ok(None);
        };
        let (body_bytes, kind) = (header.body_bytes.get() as usize, header.kind);
        if body_bytes > self.max_body_bytes || header.zero != [0; 3] {
            let reason = format!("a frame of kind {kind} with {body_bytes} bytes");
            return Err(Garbled(reason));
        }
        let Some(body) = rest.get(..body_bytes) else {
            return Ok(None);
        };
        let code_at = self.used + size_of::<Header>() + body_bytes;
        let end = match &mut self.seal {
            None => code_at,
            Some(seal) => {
                let Some(code) = rest.get(body_bytes..body_bytes + CODE_BYTES) else {
                    return Ok(None);
                };
                if !seal.check(&self.bytes[self.used..code_at], code) {
                    return Err(Garbled("a frame that the other end has not sent".into()));
                }
                self.max_body_bytes = MAX_BODY_BYTES;
                code_at + CODE_BYTES
            }
        };
        let message = decode(kind, body)?;
        wipe(&mut self.bytes[self.used..end]);
        self.used = end;
        Ok(Some(message))
    }

    /// Bytes that have come before the magic.
    pub(crate) fn noise(&self) -> &[u8] {
        match self.begun {
            true => &[],
            false => &self.bytes[self.used..],
        }
    }

    fn find_magic(&mut self) -> Result<bool, Garbled> {
        let found = self
            .bytes
            .windows(self.magic.len())
            .position(|part| part == self.magic);
        match found.filter(|at| *at <= MAX_NOISE_BYTES) {
            Some(at) => {
                self.used = at + self.magic.len();
                self.begun = true;
                Ok(true)
            }
            None if self.bytes.len() > MAX_NOISE_BYTES => {
                let reason = format!("{MAX_NOISE_BYTES} bytes came, and no agent's greeting");
                Err(Garbled(reason))
            }
            None => Ok(false),
        }
    }
}

/// Takes bytes as a control connection does, in pieces of `piece` bytes: how many messages they
/// hold, or why they are refused.
///
/// For tests with hostile bytes.
#[doc(hidden)]
pub fn check_control_bytes(bytes: &[u8], piece: usize) -> Result<usize, String> {
    let mut reader = FrameReader::new(AGENT);
    let mut count = 0;
    for piece in bytes.chunks(piece.max(1)) {
        reader.take(piece);
        while let Some(message) = reader.next().map_err(|garbled| garbled.to_string())? {
            let mut again = Vec::new();
            append(&message, &mut again, None);
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::message::tests::{messages, samples};
    use crate::hosts::seal::Nonce;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Everything that comes out when `bytes` come in pieces of these lengths, over and over.
    fn received(bytes: &[u8], pieces: &[usize]) -> Result<Vec<Message>, Garbled> {
        let (mut reader, mut all, mut rest) = (FrameReader::new(AGENT), Vec::new(), bytes);
        for len in pieces.iter().cycle() {
            let (now, later) = rest.split_at((*len).min(rest.len()));
            reader.take(now);
            while let Some(message) = reader.next()? {
                all.push(message);
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        Ok(all)
    }

    fn wire(messages: &[Message]) -> Vec<u8> {
        let mut bytes = b"Welcome to this host!\n".to_vec();
        bytes.extend_from_slice(&AGENT);
        messages.iter().for_each(|m| append(m, &mut bytes, None));
        bytes
    }

    #[test]
    fn messages_arrive_whole_for_any_cut_of_the_bytes() {
        let samples = samples();
        let bytes = wire(&samples);
        for piece in 1..=64 {
            assert_eq!(received(&bytes, &[piece]).unwrap(), samples, "{piece}");
        }
        // All but the last byte: all but the last message.
        let short = received(&bytes[..bytes.len() - 1], &[bytes.len()]).unwrap();
        assert_eq!(short, samples[..samples.len() - 1]);
    }

    proptest! {
        #[test]
        fn any_messages_arrive_in_any_pieces(
            messages in vec(messages(), 0..20),
            pieces in vec(1usize..200, 1..20),
        ) {
            prop_assert_eq!(received(&wire(&messages), &pieces).unwrap(), messages);
        }

        #[test]
        fn one_changed_byte_never_panics_and_never_changes_earlier_messages(
            messages in vec(messages(), 1..8),
            at in any::<prop::sample::Index>(),
            to in any::<u8>(),
        ) {
            let clean = wire(&messages);
            let mut bytes = clean.clone();
            let at = at.index(bytes.len());
            bytes[at] = to;
            let before = received(&clean[..at], &[clean.len()]).unwrap();
            let mut reader = FrameReader::new(AGENT);
            reader.take(&bytes);
            for message in before {
                prop_assert_eq!(reader.next().unwrap(), Some(message));
            }
            while let Ok(Some(_)) = reader.next() {}
        }

        #[test]
        fn random_bytes_are_refused_or_wait_for_more(bytes in vec(any::<u8>(), 0..4096)) {
            let mut begun = AGENT.to_vec();
            begun.extend_from_slice(&bytes);
            let _ = received(&begun, &[begun.len()]);
        }
    }

    fn seals() -> [Seal; 2] {
        let secret = crate::secret::Secret::from_bytes([7; 32]);
        let hears = [&b"\nargonet-hears\0\x01"[..], &[1; 32]].concat();
        let nonce = Nonce::of_root(&hears.try_into().unwrap()).unwrap();
        Seal::pair(&secret, 0, &nonce, &nonce)
    }

    #[test]
    fn long_frames_are_taken_only_after_a_right_code() {
        let long = Message::Values(vec![7; MAX_FIRST_BODY_BYTES + 1]);
        let next_of = |messages: &[&Message], len: usize| {
            let [mut up, _] = seals();
            let mut bytes = Vec::new();
            messages
                .iter()
                .for_each(|m| append(m, &mut bytes, Some(&mut up)));
            let [up, _] = seals();
            let mut reader = FrameReader::sealed(up);
            reader.take(&bytes[..len.min(bytes.len())]);
            messages.iter().try_fold(None, |_, _| reader.next())
        };
        // Refused by its length, before the rest comes.
        assert!(next_of(&[&long], size_of::<Header>()).is_err());
        let taken = next_of(&[&Message::Beat, &long], usize::MAX).unwrap();
        assert_eq!(taken, Some(long));
    }

    #[test]
    fn sealed_frames_arrive_and_none_that_was_changed() {
        let [mut up, _] = seals();
        let samples = samples();
        let mut bytes = Vec::new();
        samples
            .iter()
            .for_each(|m| append(m, &mut bytes, Some(&mut up)));
        let received = |bytes: &[u8], piece: usize| {
            let [up, _] = seals();
            let (mut reader, mut all) = (FrameReader::sealed(up), Vec::new());
            for piece in bytes.chunks(piece) {
                reader.take(piece);
                while let Some(message) = reader.next()? {
                    all.push(message);
                }
            }
            Ok::<_, Garbled>(all)
        };
        for piece in [1, 7, bytes.len()] {
            assert_eq!(received(&bytes, piece).unwrap(), samples, "{piece}");
        }
        for at in 0..200 {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            // A longer frame may still be awaited.
            let got = received(&changed, bytes.len());
            assert!(got.is_err() || got.unwrap().is_empty(), "byte {at}");
        }
        let mut first = Vec::new();
        append(&samples[0], &mut first, None);
        let one = &bytes[..first.len() + CODE_BYTES];
        assert!(received(&[one, one].concat(), 1).is_err(), "said again");
    }

    #[test]
    fn used_bytes_are_overwritten_and_noise_has_a_limit() {
        let mut reader = FrameReader::new(AGENT);
        let key = crate::secret::Secret::from_bytes([0xa5; 32]);
        reader.take(&wire(&[Message::Key(key)]));
        assert!(matches!(reader.next(), Ok(Some(Message::Key(_)))));
        assert!(!reader.bytes.contains(&0xa5));

        let mut reader = FrameReader::new(AGENT);
        reader.take(b"no such command\n");
        assert_eq!(
            (reader.next(), reader.noise()),
            (Ok(None), &b"no such command\n"[..])
        );
        let echo = [&ABOVE[..], &[0; 8]].concat();
        reader.take(&echo);
        assert_eq!(reader.next(), Ok(None));
        reader.take(&[&vec![b'x'; MAX_NOISE_BYTES], &AGENT[..]].concat());
        assert!(
            reader
                .next()
                .unwrap_err()
                .to_string()
                .contains("no agent's greeting")
        );
    }

    #[test]
    fn bad_lengths_and_kinds_are_refused() {
        for header in [
            [0xff, 0xff, 0xff, 0x7f, 1, 0, 0, 0],
            [1, 0, 0x80, 0, 1, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 200, 0, 0, 0],
            [0, 0, 0, 0, 1, 0, 0, 1],
        ] {
            let bytes = [&AGENT[..], &header].concat();
            assert!(received(&bytes, &[1]).is_err(), "{header:?}");
        }
    }
}
