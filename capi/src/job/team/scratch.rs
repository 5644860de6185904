//! Scratch memory, which clients give teams.
//!
//! The collective operations of this library do not use it: they have memory of their own, so that
//! any size does. It is checked as if they did, kept, and given back.

use argonet_base::gasnet::number32;

use crate::job::{Endpoint, Job, fatal};

/// `GEX_FLAG_TM_SCRATCH_SIZE_MIN`, `GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED`.
const SIZE_MIN: u32 = number32("GEX_FLAG_TM_SCRATCH_SIZE_MIN");
const SIZE_RECOMMENDED: u32 = number32("GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED");
pub(super) const SIZES: u32 = SIZE_MIN | SIZE_RECOMMENDED;

/// `GEX_FLAG_TM_GLOBAL_SCRATCH` and its kin.
pub(super) const GLOBAL: u32 = number32("GEX_FLAG_TM_GLOBAL_SCRATCH");
pub(super) const LOCAL: u32 = number32("GEX_FLAG_TM_LOCAL_SCRATCH");
pub(super) const SYMMETRIC: u32 = number32("GEX_FLAG_TM_SYMMETRIC_SCRATCH");
pub(super) const NO_SCRATCH: u32 = number32("GEX_FLAG_TM_NO_SCRATCH");
pub(super) const KINDS: u32 = GLOBAL | LOCAL | SYMMETRIC | NO_SCRATCH;

/// `GEX_FLAG_SCRATCH_SEG_OFFSET`.
pub(super) const SEG_OFFSET: u32 = number32("GEX_FLAG_SCRATCH_SEG_OFFSET");

/// The size that is recommended to clients, in bytes: the least that has a line for itself.
const RECOMMENDED: usize = 64;
/// The least size, in bytes.
const LEAST: usize = 1;

/// The answer to a call that asks for a size, if it does.
///
/// `joins` says whether its caller would be a member of a team.
pub(super) fn size_asked_for(job: &Job, flags: u32, joins: bool, function: &str) -> Option<usize> {
    let asked = flags & SIZES;
    if asked == SIZES {
        fatal(
            function,
            &format!(
                "flags are {flags:#x}; GEX_FLAG_TM_SCRATCH_SIZE_MIN and GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED exclude each other"
            ),
        );
    }
    if asked == SIZE_MIN {
        job.teams.warn_once(&format!(
            "warning: {function}: GEX_FLAG_TM_SCRATCH_SIZE_MIN is deprecated; pass GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED"
        ));
    }
    let size = match asked {
        0 => return None,
        _ if !joins || flags & NO_SCRATCH != 0 => 0,
        SIZE_MIN => LEAST,
        _ => RECOMMENDED,
    };
    Some(size)
}

/// The scratch memory of a member of a team: address and bytes.
///
/// Ends the job if it is not in the segment of its endpoint. `given` is an offset there if the
/// flags say so.
pub(super) fn scratch(
    job: &Job,
    endpoint: &Endpoint,
    given: usize,
    bytes: usize,
    flags: u32,
    function: &str,
) -> (usize, usize) {
    let (base, length) = match endpoint.segment() {
        Some(segment) => (segment.base().addr(), segment.bytes()),
        None if job.is_everything() && endpoint.index() == 0 => (0, usize::MAX),
        None => fatal(
            function,
            "scratch_addr must be in the segment that is bound to the endpoint of the new team, and none is bound; bind one, or pass GEX_FLAG_TM_NO_SCRATCH",
        ),
    };
    let is_offset = flags & SEG_OFFSET != 0;
    let offset = if is_offset {
        given
    } else {
        given.wrapping_sub(base)
    };
    // Where all memory is bound, no memory is at address 0 yet.
    let nowhere = given == 0 && !is_offset;
    if nowhere || offset > length || bytes > length - offset {
        let what = if is_offset { "offset " } else { "" };
        fatal(
            function,
            &format!(
                "scratch_addr is {what}{given:#x}; {bytes} bytes there (scratch_size) are not in the segment of endpoint {}, which is {length} bytes at {base:#x}",
                endpoint.index()
            ),
        );
    }
    (base + offset, bytes)
}
