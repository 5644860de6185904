//! Mistakes of C that debug builds look for.
//!
//! Totals, and ranges outside of segments, are found in all builds.

use argonet_engine::{Direction, Piece, Pieces, Shape, VisTransfer};

use crate::flags::IMMEDIATE;
use crate::job::fatal;
use crate::vis::call::{Call, ENABLE_LEAF_LC, Form};

/// Unknown flags, and those that are not for such a call.
pub(super) fn flags(call: &Call, form: Form) {
    let Call {
        function, flags, ..
    } = *call;
    let wrong = |why: &str| fatal(function, &format!("flags are {flags:#x}: {why}"));
    if flags & !(IMMEDIATE | ENABLE_LEAF_LC) != 0 {
        wrong("GEX_FLAG_IMMEDIATE and GEX_FLAG_ENABLE_LEAF_LC are all that is allowed");
    }
    let has_leaf = call.direction == Direction::Put && form != Form::Blocking;
    if flags & ENABLE_LEAF_LC != 0 && !has_leaf {
        wrong("GEX_FLAG_ENABLE_LEAF_LC is for puts with NB or NBI alone");
    }
}

/// Ends the job if an operation that may not be started is to be reported to its peer.
pub(super) fn peer_completion(call: &Call) {
    if call.flags & IMMEDIATE != 0 {
        fatal(
            call.function,
            "flags have GEX_FLAG_IMMEDIATE, which gex_VIS_SetPeerCompletionHandler excludes",
        );
    }
}

/// Null addresses of bytes, and destinations that lie over each other.
pub(super) fn shape(call: &Call, transfer: &VisTransfer<'_>) {
    match transfer.shape {
        Shape::Strided(shape) => {
            for (name, address) in [("dstaddr", shape.to), ("srcaddr", shape.from)] {
                if address == 0 {
                    fatal(call.function, &format!("{name} is null"));
                }
            }
            let dims = shape.counts.iter().zip(shape.to_strides).enumerate();
            for (dim, (&count, &stride)) in dims {
                if count > 1 && stride.unsigned_abs() < shape.element {
                    fatal(
                        call.function,
                        &format!(
                            "dststrides[{dim}] is {stride}: elements of {} bytes overlap at the destination",
                            shape.element
                        ),
                    );
                }
            }
        }
        Shape::Pieces { to, from } => {
            let lists = [("dstlist", pieces(to)), ("srclist", pieces(from))];
            for (name, list) in &lists {
                let null = |piece: &Piece| piece.address == 0 && piece.len > 0;
                if let Some(entry) = list.iter().position(null) {
                    let len = list[entry].len;
                    fatal(
                        call.function,
                        &format!("{name}[{entry}] is null, and has {len} bytes"),
                    );
                }
            }
            let [(_, to), _] = lists;
            overlap(call, to);
        }
    }
}

fn pieces(list: Pieces<'_>) -> Vec<Piece> {
    match list {
        Pieces::Vector(list) => list.to_vec(),
        Pieces::Indexed { addresses, len } => {
            let piece = |&address: &usize| Piece { address, len };
            addresses.iter().map(piece).collect()
        }
    }
}

fn overlap(call: &Call, mut list: Vec<Piece>) {
    list.retain(|piece| piece.len > 0);
    list.sort_unstable_by_key(|piece| piece.address);
    let over = |pair: &&[Piece]| pair[1].address - pair[0].address < pair[0].len;
    if let Some([first, second]) = list.windows(2).find(over) {
        fatal(
            call.function,
            &format!(
                "entries of dstlist overlap: {} bytes at {:#x} and {} bytes at {:#x}",
                first.len, first.address, second.len, second.address
            ),
        );
    }
}
