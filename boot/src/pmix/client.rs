//! The rank's end of a store of PMIx.

use std::os::fd::OwnedFd;
use std::path::Path;

use argonet_base::JobRank;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::message::{
    ABORT, ABORTED, FENCE, FINISH, GET, INIT, MAX_BYTES, PUT, decode_answer, encode,
};
use super::session::serve;
use crate::detached::{Child, start_child};
use crate::error::BootError;
use crate::secret::wipe;
use crate::store::{Client, OVER, Patience, Store, Watched};

/// What errors call this store.
const NAME: &str = "PMIx, by libpmix";

/// What they call the process that speaks with it.
const PROCESS: &str = "the process that calls libpmix";

/// What a call gives.
type Taken = Result<Option<Vec<u8>>, BootError>;

/// A rank whose process for the library has connected to the launcher's server.
pub(crate) struct Pmix<'a> {
    client: Client,
    process: Child,
    socket: OwnedFd,
    patience: Patience<'a>,
}

impl<'a> Pmix<'a> {
    /// Starts a process that loads the library, from `path` if that is given, and connects to the
    /// server of the launcher.
    ///
    /// The limit of `client` begins now. This process must have one thread.
    pub(crate) fn new(
        client: Client,
        path: Option<&Path>,
        watched: Watched<'a>,
    ) -> Result<Self, BootError> {
        let run = |socket: &OwnedFd| serve(path, client.rank, client.size, socket);
        Self::over(client, start_child(PROCESS, c"argonet-pmix", run)?, watched)
    }

    /// Speaks with a process that has just been started, once it has connected.
    fn over(
        client: Client,
        (process, socket): (Child, OwnedFd),
        watched: Watched<'a>,
    ) -> Result<Self, BootError> {
        let mut this = Self {
            client,
            process,
            socket,
            patience: Patience::new(client.limit, watched),
        };
        match this.answer(INIT) {
            Ok(_) => Ok(this),
            Err(error) => {
                if this.client.aborts {
                    this.abort(error.exit_code());
                }
                Err(error)
            }
        }
    }

    fn ask(&mut self, call: &'static str, number: u32, key: &str, value: &[u8]) -> Taken {
        let Some(mut bytes) = encode((call, number, key, value)) else {
            let reason = "the key or the value is too long";
            return Err(self.client.failed(NAME, call, reason));
        };
        // Two at a time at most, for which there is room. Where the process has ended, that is the
        // reason.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = send(&self.socket, &bytes, flags);
        wipe(&mut bytes);
        self.answer(call)
    }

    /// The answer to a call.
    fn answer(&mut self, call: &'static str) -> Taken {
        let (at_fence, mut bytes) = (call == FENCE, vec![0; MAX_BYTES]);
        let answer = loop {
            match recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((taken @ 1.., _)) if call == ABORT && bytes[..taken] != ABORTED => {}
                Ok((1.., _)) if self.patience.is_over() => break Err(OVER.into()),
                Ok((taken @ 1.., _)) => break decode_answer(&bytes[..taken]),
                Err(Errno::AGAIN | Errno::INTR) => {
                    let waited = self.patience.wait(&self.socket, PollFlags::IN, at_fence);
                    if let Err(reason) = waited {
                        break Err(reason);
                    }
                }
                _ => break Err(format!("{PROCESS} {}", self.process.end())),
            }
        };
        wipe(&mut bytes);
        answer.map_err(|reason| self.client.failed(NAME, call, reason))
    }
}

impl Store for Pmix<'_> {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootError> {
        self.ask(PUT, 0, key, value).map(drop)
    }

    fn fence(&mut self) -> Result<(), BootError> {
        self.ask(FENCE, 0, "", b"")?;
        self.patience.fence_passed();
        Ok(())
    }

    fn get(&mut self, owner: JobRank, key: &str) -> Taken {
        self.ask(GET, owner.0, key, b"")
    }

    fn abort(&mut self, code: u8) {
        self.patience.for_last_answer();
        // Where the launcher has gone there is nothing to end.
        let _ = self.ask(ABORT, code.into(), "", b"");
    }

    fn finish(&mut self) -> Result<(), BootError> {
        self.ask(FINISH, 0, "", b"").map(drop)
    }
}

#[cfg(test)]
mod tests;
