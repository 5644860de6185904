//! What ranks say to each other at the rendezvous: one message each way, little-endian.
//!
//! ```text
//! hello            welcome          refusal
//!  0 magic          0 magic          0 magic
//!  4 1              4 2              4 3
//!  8 layout hash    8 job identity   8 text, at most 1024 bytes
//! 16 rank          16 key
//! 20 size          48
//! 24 program
//! 32
//! ```
//!
//! A hello comes with the pidfd of its sender. A welcome comes with control, rings, segments and
//! interfaces files, the way to the guardian, the pipe by which a rank sees that the guardian
//! lives, and, where there are several hosts, a line to the agent. The layout hash is that of the
//! control memory and stands for the version of the library. The program is a hash of the name of
//! the file that the process executes.

use std::os::fd::OwnedFd;

use crate::page::{LAYOUT_HASH, MAX_LOCAL_RANKS};
use crate::secret::{SECRET_BYTES, Secret, wipe};

const MAGIC: u32 = u32::from_le_bytes(*b"aRr3");
const HELLO: u32 = 1;
const WELCOME: u32 = 2;
const REFUSAL: u32 = 3;

pub(super) const HELLO_BYTES: usize = 32;
const WELCOME_BYTES: usize = 16 + SECRET_BYTES;
const MAX_REFUSAL_BYTES: usize = 1024;

/// The longest message.
pub(super) const MAX_BYTES: usize = 8 + MAX_REFUSAL_BYTES;

/// Descriptors that come with every welcome.
pub(super) const SHARED_FILES: usize = 6;

/// The most that come with one.
pub(super) const WELCOME_FILES: usize = SHARED_FILES + 1;

/// What a rank says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) program: u64,
}

/// What it is answered.
#[derive(Debug)]
pub(super) enum Answer {
    Welcome { job_id: u64, key: Secret },
    Refusal(String),
}

impl Hello {
    pub(super) fn encode(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        let numbers = word(self.rank, self.size);
        let words = [head(HELLO), LAYOUT_HASH, numbers, self.program];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The hello in `bytes`; else the reason why it is refused.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() != HELLO_BYTES {
            return Err(format!(
                "its message has {} bytes, not {HELLO_BYTES}",
                bytes.len()
            ));
        }
        let words = [0, 8, 16, 24].map(|at| word_at(bytes, at).unwrap_or(0));
        let [head, hash, numbers, program] = words;
        if head != self::head(HELLO) {
            return Err("its message is not that of a rank".into());
        }
        if hash != LAYOUT_HASH {
            return Err(
                "it was built from another version of argonet than rank 0; build both from the same one".into(),
            );
        }
        let (rank, size) = (numbers as u32, (numbers >> 32) as u32);
        match (1..=MAX_LOCAL_RANKS).contains(&size) && rank < size {
            true => Ok(Self {
                rank,
                size,
                program,
            }),
            false => Err(format!("it says that it is rank {rank} of {size}")),
        }
    }
}

impl Answer {
    /// Calls `send` with the bytes, of which no copy is left.
    pub(super) fn encoded<T>(&self, send: impl FnOnce(&[u8]) -> T) -> T {
        let mut bytes = [0; MAX_BYTES];
        let len = match self {
            Self::Welcome { job_id, key } => {
                bytes[..8].copy_from_slice(&head(WELCOME).to_le_bytes());
                bytes[8..16].copy_from_slice(&job_id.to_le_bytes());
                bytes[16..WELCOME_BYTES].copy_from_slice(key.bytes());
                WELCOME_BYTES
            }
            Self::Refusal(text) => {
                bytes[..8].copy_from_slice(&head(REFUSAL).to_le_bytes());
                let text = text.as_bytes();
                let len = text.len().min(MAX_REFUSAL_BYTES);
                bytes[8..8 + len].copy_from_slice(&text[..len]);
                8 + len
            }
        };
        let sent = send(&bytes[..len]);
        wipe(&mut bytes);
        sent
    }

    /// The answer in `bytes`; else why it is none.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let is = |kind| word_at(bytes, 0) == Some(head(kind));
        let key = bytes
            .get(16..)
            .and_then(|key| <[u8; SECRET_BYTES]>::try_from(key).ok());
        match (word_at(bytes, 8), key) {
            (Some(job_id), Some(mut bytes)) if is(WELCOME) => {
                let key = Secret::from_bytes(bytes);
                wipe(&mut bytes);
                Ok(Self::Welcome { job_id, key })
            }
            _ if is(REFUSAL) && bytes.len() <= MAX_BYTES => {
                let text = String::from_utf8_lossy(&bytes[8..]);
                // It goes to a terminal.
                let text = text.chars().filter(|c| !c.is_control()).collect();
                Ok(Self::Refusal(text))
            }
            _ => Err(format!(
                "the first rank of the host answers by {} bytes that are no answer",
                bytes.len()
            )),
        }
    }
}

/// The descriptors of a welcome: those that all ranks share, and the line, if it comes with one.
pub(super) fn files_of_welcome(
    mut files: Vec<OwnedFd>,
    has_line: bool,
) -> Result<([OwnedFd; SHARED_FILES], Option<OwnedFd>), String> {
    let number = files.len();
    let line = files.pop_if(|_| has_line);
    let files = <[OwnedFd; SHARED_FILES]>::try_from(files);
    let expected = SHARED_FILES + usize::from(has_line);
    match files {
        Ok(files) => Ok((files, line)),
        Err(_) => Err(format!(
            "{number} descriptors have been sent, not {expected}"
        )),
    }
}

/// Whether the next message, which is only looked at, says that there will be no job.
pub(super) fn is_refusal(bytes: &[u8]) -> bool {
    word_at(bytes, 0) == Some(head(REFUSAL))
}

const fn head(kind: u32) -> u64 {
    word(MAGIC, kind)
}

const fn word(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|word| u64::from_le_bytes(*word))
}

/// Whether a message of either kind can be understood; otherwise the reason.
///
/// For tests of hostile bytes.
#[doc(hidden)]
pub fn check(bytes: &[u8]) -> Result<(), String> {
    match (Hello::parse(bytes), Answer::parse(bytes)) {
        (Ok(hello), _) if hello.encode() != *bytes => Err("a hello is not read back".into()),
        (Ok(_), _) | (_, Ok(_)) => Ok(()),
        (Err(reason), Err(other)) => Err(format!("{reason}; {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hello_is_read_back_and_a_changed_one_is_refused() {
        let program = u64::MAX - 5;
        let hello = Hello {
            rank: 3,
            size: 9,
            program,
        };
        let bytes = hello.encode();
        assert_eq!(Hello::parse(&bytes), Ok(hello));
        for (at, reason) in [
            (0, "not that of"),
            (4, "not that of"),
            (9, "version"),
            (17, "rank"),
        ] {
            let mut changed = bytes;
            changed[at] ^= 0x80;
            let error = Hello::parse(&changed).unwrap_err();
            assert!(error.contains(reason), "{at}: {error}");
        }
        for (rank, size) in [(9, 9), (0, 0), (0, MAX_LOCAL_RANKS + 1)] {
            let hello = Hello {
                rank,
                size,
                program,
            };
            let error = Hello::parse(&hello.encode()).unwrap_err();
            assert!(error.contains(&format!("rank {rank} of {size}")), "{error}");
        }
        assert!(Hello::parse(&bytes[..31]).unwrap_err().contains("31 bytes"));
    }

    #[test]
    fn answers_are_read_back() {
        let key = Secret::from_bytes([7; SECRET_BYTES]);
        let welcome = Answer::Welcome { job_id: 5, key };
        let read = welcome.encoded(Answer::parse).unwrap();
        assert!(matches!(read, Answer::Welcome { job_id: 5, key } if key.bytes() == &[7; 32]));
        let long = format!("because\x1b[2J{}", "\u{fc}".repeat(MAX_REFUSAL_BYTES));
        let read = Answer::Refusal(long).encoded(Answer::parse).unwrap();
        let Answer::Refusal(text) = read else {
            panic!("{read:?}")
        };
        assert!(text.starts_with("because[2J\u{fc}") && text.len() <= MAX_REFUSAL_BYTES + 3);
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in proptest::collection::vec(any::<u8>(), 0..64), kind in 0u32..5) {
            let _ = check(&bytes);
            let begun = [&head(kind).to_le_bytes()[..], &bytes].concat();
            let _ = check(&begun);
        }
    }
}
