//! The greeting of an agent, by which versions that do not fit are found.

use crate::hosts::words::{Reader, put_text, put_u32};

/// The number of the language on control connections.
///
/// The frame of a greeting and the begin of its body stay as they are when this changes, so that
/// every version recognizes every other.
const PROTOCOL: u32 = 4;

/// The longest version that is read.
const MAX_VERSION_BYTES: usize = 256;

/// Version of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    protocol: u32,
    version: String,
}

impl Hello {
    /// This program.
    pub(crate) fn own() -> Self {
        Self {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        put_u32(to, self.protocol);
        put_text(to, &self.version);
    }

    pub(crate) fn decode(body: &mut Reader<'_>) -> Option<Self> {
        let (protocol, version) = (body.u32()?, body.text(MAX_VERSION_BYTES)?);
        // Fields of later versions.
        body.rest();
        Some(Self { protocol, version })
    }

    /// Whether this program can work with the agent; otherwise how they differ.
    pub(crate) fn check(&self) -> Result<(), String> {
        let own = Self::own();
        match *self == own {
            true => Ok(()),
            false => Err(format!(
                "argonet there is version {} (control protocol {}), and here version {} ({})",
                self.version, self.protocol, own.version, own.protocol
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_are_read_and_reported() {
        let mut body = Vec::new();
        put_u32(&mut body, 77);
        put_text(&mut body, "9.8.7");
        body.extend_from_slice(b"what version 77 adds");
        let hello = Hello::decode(&mut Reader::new(&body)).unwrap();
        let why = hello.check().unwrap_err();
        assert!(why.starts_with("argonet there is version 9.8.7 (control protocol 77)"));
        assert!(Hello::own().check().is_ok());
    }
}
