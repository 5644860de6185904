//! The process's end of the socket to a launcher that speaks PMI-1.

use std::os::fd::OwnedFd;

use argonet_base::JobRank;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::pieces::{MIN_PIECE_BYTES, cut, first, joined};
use super::wire::{Answer, Command, Lines, MAX_LINE_BYTES};
use crate::error::BootError;
use crate::foreign::printable;
use crate::store::{Client, OVER, Patience, Store, Watched};

/// Room in a line for a command's name and those of its fields.
const LINE_HEAD_BYTES: usize = 64;

/// The longest key with the number of a piece.
const MAX_KEY_BYTES: usize = 32;

/// What errors call this store.
const NAME: &str = "PMI-1, at PMI_FD";

/// A process that has greeted the launcher.
pub(crate) struct Pmi<'a> {
    client: Client,
    socket: OwnedFd,
    patience: Patience<'a>,
    lines: Lines,
    /// The name of the store.
    space: String,
    /// The longest text that the store takes as a value.
    piece_bytes: usize,
}

impl<'a> Pmi<'a> {
    /// Greets the launcher behind `socket`, and asks it for its limits.
    ///
    /// The limit of `client` begins now.
    pub(crate) fn new(
        client: Client,
        socket: OwnedFd,
        watched: Watched<'a>,
    ) -> Result<Self, BootError> {
        let mut this = Self {
            client,
            socket,
            patience: Patience::new(client.limit, watched),
            lines: Lines::default(),
            space: String::new(),
            piece_bytes: 0,
        };
        match this.greet() {
            Ok(()) => Ok(this),
            Err(error) => {
                if client.aborts {
                    this.abort(error.exit_code());
                }
                Err(error)
            }
        }
    }

    fn greet(&mut self) -> Result<(), BootError> {
        self.ask(Command::Init, |answer| {
            match (answer.is_success(), answer.number("pmi_version")?) {
                (true, 1) => Ok(()),
                (_, version) => Err(format!("it speaks version {version} of PMI, not 1")),
            }
        })?;
        let limits = self.ask(Command::GetLimits, |answer| {
            let limit = |name| answer.number(name);
            Ok([
                limit("kvsname_max")?,
                limit("keylen_max")?,
                limit("vallen_max")?,
            ])
        })?;
        let [most_space, most_key, most_value] = limits;
        let space = self.ask(Command::GetSpace, |answer| {
            let space = answer.needed("kvsname")?;
            match space.len() <= most_space {
                true => Ok(space.to_owned()),
                false => Err("the name is longer than its own limit".into()),
            }
        })?;
        // The limits count a zero at the end.
        let of_line = MAX_LINE_BYTES.saturating_sub(LINE_HEAD_BYTES + MAX_KEY_BYTES + space.len());
        self.piece_bytes = of_line.min(most_value.saturating_sub(1));
        if most_key <= MAX_KEY_BYTES || self.piece_bytes < MIN_PIECE_BYTES {
            return Err(self.failed(
                Command::GetLimits,
                format!(
                    "its limits are {most_key} bytes of a key and {most_value} of a value, and more than {MAX_KEY_BYTES} and \
                     {MIN_PIECE_BYTES} are needed"
                ),
            ));
        }
        self.space = space;
        Ok(())
    }

    fn failed(&self, command: Command<'_>, reason: impl Into<String>) -> BootError {
        self.client.failed(NAME, command.name(), reason)
    }

    /// Sends a command, and takes what `read` finds in its answer.
    fn ask<T>(
        &mut self,
        command: Command<'_>,
        read: impl FnOnce(&Answer<'_>) -> Result<T, String>,
    ) -> Result<T, BootError> {
        if !self.lines.is_empty() {
            return Err(self.failed(command, "it has sent more than it was asked for"));
        }
        self.send(command)?;
        let line = self.line(command)?;
        if self.patience.is_over() {
            return Err(self.failed(command, OVER));
        }
        let taken = Answer::parse(&line).and_then(|answer| {
            answer.belongs_to(&command)?;
            read(&answer)
        });
        let wrong = |reason| {
            // A value may be a key of the job.
            let begin = line.split_once("value=").map_or(&*line, |(begin, _)| begin);
            format!(
                "its answer \"{}\" cannot be used: {reason}",
                printable(begin)
            )
        };
        taken.map_err(|reason| self.failed(command, wrong(reason)))
    }

    fn send(&mut self, command: Command<'_>) -> Result<(), BootError> {
        let line = command.line();
        let mut rest = line.as_bytes();
        if rest.len() > MAX_LINE_BYTES {
            return Err(self.failed(command, "the command is longer than a line may be"));
        }
        while !rest.is_empty() {
            match send(
                &self.socket,
                rest,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Ok(bytes) => rest = &rest[bytes..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(command, PollFlags::OUT)?,
                Err(error) => return Err(self.lost(command, error)),
            }
        }
        Ok(())
    }

    /// The next line that comes.
    fn line(&mut self, command: Command<'_>) -> Result<String, BootError> {
        let mut bytes = [0; MAX_LINE_BYTES];
        loop {
            if let Some(line) = self.lines.next() {
                return Ok(line);
            }
            match recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(self.failed(command, "it has closed the connection")),
                Ok((taken, _)) => self.lines.take(&bytes[..taken]).map_err(|reason| {
                    let begin = String::from_utf8_lossy(&bytes[..taken]);
                    let begin = printable(&begin);
                    self.failed(
                        command,
                        format!("it sends \"{begin}\", which is no line: {reason}"),
                    )
                })?,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(command, PollFlags::IN)?,
                Err(error) => return Err(self.lost(command, error)),
            }
        }
    }

    fn lost(&self, command: Command<'_>, error: Errno) -> BootError {
        let error = std::io::Error::from(error);
        self.failed(command, format!("the connection is broken: {error}"))
    }

    /// Waits until the socket is ready.
    fn wait(&mut self, command: Command<'_>, events: PollFlags) -> Result<(), BootError> {
        let at_fence = command == Command::Barrier;
        let waited = self.patience.wait(&self.socket, events, at_fence);
        waited.map_err(|reason| self.failed(command, reason))
    }

    fn get_text(&mut self, key: &str) -> Result<Option<String>, BootError> {
        let space = self.space.clone();
        let command = Command::Get { space: &space, key };
        self.ask(command, |answer| match answer.is_success() {
            true => answer.needed("value").map(|text| Some(text.to_owned())),
            false => Ok(None),
        })
    }
}

/// The key of a piece of a value.
fn key_of(key: &str, piece: usize) -> String {
    format!("argonet-{key}-{piece}")
}

impl Store for Pmi<'_> {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootError> {
        let space = self.space.clone();
        let pieces = cut(value, self.piece_bytes);
        let Some(pieces) = pieces.filter(|pieces| key_of(key, pieces.len()).len() < MAX_KEY_BYTES)
        else {
            let value = "";
            let command = Command::Put {
                space: &space,
                key,
                value,
            };
            return Err(self.failed(command, "the value has too many pieces for its limits"));
        };
        for (i, value) in pieces.iter().enumerate() {
            let key = key_of(key, i);
            let command = Command::Put {
                space: &space,
                key: &key,
                value,
            };
            self.ask(command, |answer| match answer.is_success() {
                true => Ok(()),
                false => Err(format!("it refuses the key {key}")),
            })?;
        }
        Ok(())
    }

    fn fence(&mut self) -> Result<(), BootError> {
        self.ask(Command::Barrier, |answer| match answer.is_success() {
            true => Ok(()),
            false => Err("it has failed".into()),
        })?;
        self.patience.fence_passed();
        Ok(())
    }

    fn get(&mut self, _owner: JobRank, key: &str) -> Result<Option<Vec<u8>>, BootError> {
        let Some(text) = self.get_text(&key_of(key, 0))? else {
            return Ok(None);
        };
        let value = first(&text).and_then(|(count, begin)| {
            let mut digits = begin.to_owned();
            for i in 1..count {
                let key = key_of(key, i);
                let piece = self.get_text(&key).map_err(|error| error.to_string())?;
                digits += &piece.ok_or_else(|| format!("there is no {key}"))?;
            }
            joined(&digits)
        });
        value.map(Some).map_err(|reason| {
            let command = Command::Get { space: "", key };
            self.failed(
                command,
                format!("the value of {key} cannot be used: {reason}"),
            )
        })
    }

    fn abort(&mut self, code: u8) {
        // Where the launcher has gone there is nothing to end.
        let _ = self.send(Command::Abort { code });
    }

    fn finish(&mut self) -> Result<(), BootError> {
        self.ask(Command::Finalize, |_| Ok(()))
    }
}

#[cfg(test)]
mod tests;
