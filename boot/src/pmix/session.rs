//! The process that calls the library for a rank.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;

use argonet_base::JobRank;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::library::Library;
use super::message::{ABORT, ABORTED, Answer, FENCE, GET, MAX_BYTES, PUT, decode, encode_answer};
use crate::secret::wipe;

/// Connects to the launcher's server, says so, and then does what comes over `socket`, until the
/// rank at its other end needs it no more.
///
/// The launcher must know this process as `rank` of `size`. All signals are blocked, so that
/// nothing interrupts.
pub(super) fn serve(path: Option<&Path>, rank: JobRank, size: u32, socket: &OwnedFd) {
    let library = match start(path, rank, size) {
        Ok(library) => library,
        Err(reason) => return say(socket, &Err(reason)),
    };
    say(socket, &Ok(None));
    let mut bytes = vec![0; MAX_BYTES];
    thread::scope(|scope| {
        loop {
            // Nothing is the end.
            let taken = recv(socket, &mut bytes[..], RecvFlags::empty());
            let taken = taken.map_or(0, |(taken, _)| taken);
            let Some((call, number, key, value)) = decode(&bytes[..taken]) else {
                return;
            };
            match call {
                // The rank may want to end the job while others do not come.
                FENCE => drop(scope.spawn(|| say(socket, &library.fence()))),
                PUT => say(socket, &library.put(key, value)),
                GET => say(socket, &library.get(number, key)),
                ABORT => {
                    // Where it fails there is nothing to end.
                    let _ = library.abort(number);
                    let _ = send(socket, &ABORTED, SendFlags::NOSIGNAL);
                }
                _ => return say(socket, &library.finish()),
            }
            wipe(&mut bytes[..taken]);
        }
    });
}

fn start(path: Option<&Path>, rank: JobRank, size: u32) -> Result<Library, String> {
    let mut library = Library::open(path)?;
    library.init()?;
    match library.place()? {
        place if place == (rank.0, size) => Ok(library),
        (other, of) => Err(format!(
            "the launcher's server takes this process for rank {other} of {of}, not for rank {rank} of {size}; was it started by \
             another launcher in between?"
        )),
    }
}

/// A rank that has gone needs no answer.
fn say(socket: &OwnedFd, answer: &Answer) {
    let mut bytes = encode_answer(answer);
    let _ = send(socket, &bytes, SendFlags::NOSIGNAL);
    wipe(&mut bytes);
}
