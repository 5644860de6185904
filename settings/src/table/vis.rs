//! Non-contiguous transfers.

use crate::kind::{Kind, MAX_SIZE};
use crate::row::{Preset, Row, Scope};
use crate::setting::settings;
use crate::value::Bytes;

const CHUNK: Kind = Kind::Size {
    min: 1,
    max: MAX_SIZE,
};
const BY_LENGTH: &str =
    "short pieces are always packed into messages, and long ones never, in any memory";

settings! {
    VIS_MAX_CHUNK: Option<Bytes> = "GASNET_VIS_MAXCHUNK", CHUNK, Preset::Words("the longest medium"), Scope::Rank,
        "The most bytes of a non-contiguous transfer that are packed into a message. Pieces of half as much are long, and go by themselves.";
    VIS_PUT_MAX_CHUNK: Option<Bytes> = "GASNET_VIS_PUT_MAXCHUNK", CHUNK, Preset::Words("GASNET_VIS_MAXCHUNK"), Scope::Rank,
        "The same for puts.";
    VIS_GET_MAX_CHUNK: Option<Bytes> = "GASNET_VIS_GET_MAXCHUNK", CHUNK, Preset::Words("GASNET_VIS_MAXCHUNK"), Scope::Rank,
        "The same for gets.";
}

const fn idle(name: &'static str, about: &'static str) -> Row {
    Row::idle(name, Kind::Boolean, "conduit", Scope::Job, about, BY_LENGTH)
}

pub(crate) const IDLE: &[Row] = &[
    idle(
        "GASNET_VIS_AMPIPE",
        "Sends pieces as messages that are packed.",
    ),
    idle("GASNET_VIS_REMOTECONTIG", "Unpacks pieces by the reader."),
];
