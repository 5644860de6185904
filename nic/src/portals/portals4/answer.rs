//! Answers of the library's calls as errors.

use super::abi;
use crate::portals::NicError;
use argonet_base::JobRank;
use core::ffi::c_int;

/// The error of an answer that no call should give here.
#[cold]
pub(super) fn unexpected(rank: JobRank, call: &'static str, code: c_int) -> NicError {
    let known = usize::try_from(code)
        .ok()
        .and_then(|n| abi::ANSWERS.get(n).copied());
    NicError::Library {
        rank,
        call,
        answer: known.map_or_else(|| format!("number {code}"), str::to_owned),
        advice: advice(code),
    }
}

fn advice(code: c_int) -> &'static str {
    match code {
        abi::NO_SPACE => {
            "the library is out of memory or at one of its limits; raise PTL_LIM_MAX_* or the limit of locked memory (ulimit -l)"
        }
        abi::ARG_INVALID => {
            "the library refused an argument that the specification permits; it may keep to another version of it"
        }
        _ => {
            "look at the library's own messages (PTL_LOG_LEVEL=3 with the reference implementation) and at the state of its network"
        }
    }
}

/// `OK`, or an error.
pub(super) fn check(rank: JobRank, call: &'static str, code: c_int) -> Result<(), NicError> {
    if code == abi::OK {
        return Ok(());
    }
    Err(unexpected(rank, call, code))
}

/// As [`check`], of a call that makes something of which there are `limit`.
pub(super) fn made(
    rank: JobRank,
    call: &'static str,
    code: c_int,
    what: &'static str,
    limit: u64,
) -> Result<(), NicError> {
    if matches!(code, abi::NO_SPACE | abi::LIST_TOO_LONG | abi::PT_FULL) {
        return Err(NicError::NoSpace { rank, what, limit });
    }
    check(rank, call, code)
}
