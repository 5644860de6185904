//! Active messages.

mod arguments;
mod call;
mod ctypes;
mod endpoints;
mod entry;
mod handlers;
mod limits;
mod local;
mod negotiated;
mod place;
mod register;
mod reply;
mod request;
mod source_descriptor;
mod token;

pub(crate) use arguments::{What, failed};
pub(crate) use endpoints::check_exists;
pub(crate) use entry::Entry;
pub(crate) use handlers::{Handlers, Refusal};
pub(crate) use local::Local;
pub(crate) use reply::{Reply, packed_reply};
pub(crate) use request::{Request, packed};
pub(crate) use source_descriptor::thread_ends;
pub(crate) use token::{Token, delivery};

use argonet_am::record::{Head, Short};
use argonet_base::HandlerIndex;

use crate::Prototype;

/// All functions that `argonet/am.h` calls.
pub(crate) fn prototypes() -> Vec<Prototype> {
    [
        limits::PROTOTYPES,
        negotiated::PROTOTYPES,
        register::PROTOTYPES,
        reply::PROTOTYPES,
        request::PROTOTYPES,
        token::PROTOTYPES,
    ]
    .concat()
}

/// Sizes, places and packed words that C has too, as C would ask for them.
pub(crate) fn layouts() -> Vec<(&'static str, usize)> {
    let words = [0x1234_5678, 0x9abc_def0, 0x0fed_cba9];
    let packed = |count| Short::pack(HandlerIndex(0xab), &words[..count]);
    let head = |count| packed(count).map_or(Head(0), |short| short.head).0 as usize;
    let rest = |count| packed(count).map_or(0, |short| short.rest) as usize;
    let packed = [
        ("ARGONET_SHORT_HEAD(0xab, 0, 0)", head(0)),
        ("ARGONET_SHORT_HEAD(0xab, 1, 0x12345678)", head(1)),
        ("ARGONET_SHORT_HEAD(0xab, 2, 0x12345678)", head(2)),
        ("ARGONET_SHORT_HEAD(0xab, 3, 0x12345678)", head(3)),
        ("ARGONET_SHORT_REST(0x9abcdef0, 0)", rest(2)),
        ("ARGONET_SHORT_REST(0x9abcdef0, 0x0fedcba9)", rest(3)),
        (
            "ARGONET_AM_WHAT(0xab, 16)",
            arguments::What::new(0xab, 16).bits() as usize,
        ),
    ];
    [&packed, entry::LAYOUT, token::LAYOUT].concat()
}
