//! A value that serde refuses.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// 0 does not encode, and 1 does not decode.
pub(crate) struct Picky(pub(crate) u8);

impl Serialize for Picky {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            0 => Err(serde::ser::Error::custom("0 is refused")),
            number => number.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Picky {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        match u8::deserialize(from)? {
            1 => Err(serde::de::Error::custom("1 is refused")),
            number => Ok(Self(number)),
        }
    }
}
