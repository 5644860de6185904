//! Starting the process of one rank for a launcher.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use argonet_base::JobRank;
use argonet_settings::{CONDUIT, environment};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, set_parent_process_death_signal, setrlimit,
};
use rustix::termios::isatty;
use rustix::thread::sched_setaffinity;
use std::os::unix::process::CommandExt;

use crate::attach::{BOOT_VARIABLE, boot_value};
use crate::binding::mask_of;
use crate::error::BootError;
use crate::files::SharedFiles;
use crate::foreign::{JOINED, describes_process};
use crate::guardian;
use crate::launch::NO_CONDUIT;
use crate::line;
use crate::page::Control;
use crate::secret::Secret;
use crate::selfspawn::no_process;
use crate::sys::{self, SignalSet};

/// Parameters that are the same for all ranks of a launch.
pub(crate) struct Spawner<'a> {
    pub(crate) program: &'a OsString,
    pub(crate) args: &'a [OsString],
    pub(crate) environment: Environment<'a>,
    /// The cores to pin ranks to; `None` leaves them alone.
    pub(crate) cores: Option<Vec<usize>>,
    pub(crate) control: &'a Control,
    /// Those of the neighborhood whose ranks are being started.
    pub(crate) files: SharedFiles,
    /// Whether all neighborhoods of the host have their segments in one file.
    pub(crate) reaches_segments: bool,
    /// The socket on which a rank's process announces itself to the guardian.
    pub(crate) link: BorrowedFd<'a>,
    pub(crate) key: &'a Secret,
    /// The standard input of rank 0, where it is not the launcher's own.
    pub(crate) input: Option<OwnedFd>,
    /// Signal mask and file limit: the launcher has changed both, and ranks get them back.
    pub(crate) mask: SignalSet,
    pub(crate) file_limit: Rlimit,
}

/// Environment of the ranks.
pub(crate) enum Environment<'a> {
    /// The launcher's environment without another launcher's description of it, and the conduit.
    Own { conduit: &'a str },
    /// Exactly this.
    Given(&'a [(OsString, OsString)]),
}

impl Environment<'_> {
    fn give(&self, command: &mut Command) {
        match self {
            Self::Own { conduit } => {
                for (name, _) in environment::variables() {
                    if describes_process(&name) {
                        command.env_remove(name);
                    }
                }
                command.env_remove(JOINED);
                match *conduit {
                    NO_CONDUIT => command.env_remove(CONDUIT.name()),
                    conduit => command.env(CONDUIT.name(), conduit),
                };
            }
            Self::Given(pairs) => {
                let pairs = pairs.iter().map(|(name, value)| (name, value));
                command.env_clear().envs(pairs);
            }
        }
    }
}

impl Spawner<'_> {
    /// Starts `rank`, the one after that which was started last; returns once its program has been
    /// executed, with its process id and this end of its line.
    pub(crate) fn start(
        &mut self,
        rank: JobRank,
        output: Option<[OwnedFd; 2]>,
    ) -> Result<(Pid, OwnedFd), BootError> {
        let part = self.control.part();
        if part.around(rank).start == rank.0 && rank.0 != part.first {
            self.files = self.files.of_other_neighborhood(self.reaches_segments)?;
        }
        let SharedFiles {
            control,
            rings,
            segments,
            interfaces,
            ..
        } = &self.files;
        let [our_line, line] = line::make(self.key)?;
        let (memory, sockets) = (
            [control, rings, segments, interfaces],
            [self.link, line.as_fd()],
        );
        let [control, rings, segments, interfaces] = memory.map(AsRawFd::as_raw_fd);
        let [link, line_fd] = sockets.map(|fd| fd.as_raw_fd());
        let fds = [control, rings, segments, interfaces, link, line_fd];
        let mut command = Command::new(self.program);
        command.args(self.args);
        self.environment.give(&mut command);
        command.env(BOOT_VARIABLE, boot_value(self.control, rank, fds));
        command.process_group(0);
        command.stdin(match (rank, self.input.take()) {
            (JobRank(0), Some(input)) => Stdio::from(input),
            (JobRank(0), None) => input_of_rank_0(),
            _ => Stdio::null(),
        });
        if let Some([out, err]) = output {
            command.stdout(out).stderr(err);
        }
        let affinity = self
            .cores
            .as_deref()
            .map(|cores| mask_of(JobRank(rank.0 - part.first), cores));
        let (mask, file_limit, launcher) = (self.mask, self.file_limit, getpid());
        sys::before_exec(&mut command, move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(launcher) {
                // The launcher died before the signal was armed.
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            // From here on the guardian knows the process, and its descendants, even if the
            // launcher dies.
            guardian::announce(sys::inherited_fd(link), rank);
            if let Some(affinity) = &affinity {
                sched_setaffinity(None, affinity)?;
            }
            setrlimit(Resource::Nofile, file_limit)?;
            mask.restore();
            fds.into_iter().try_for_each(sys::keep_over_exec)
        });
        let child = command.spawn().map_err(|e| self.why_not(rank, e))?;
        // A process id of a living child is a positive number.
        Ok((Pid::from_child(&child), our_line))
    }

    fn why_not(&self, rank: JobRank, source: io::Error) -> BootError {
        let program = self.program.to_string_lossy().into_owned();
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR) => {
                let hint = match program.contains('/') {
                    true => " (or, if it is a script, its interpreter is missing)",
                    false => " in PATH; a program in this directory is named ./program",
                };
                BootError::NoSuchProgram { program, hint }
            }
            Some(Errno::ACCESS | Errno::NOEXEC | Errno::ISDIR | Errno::TXTBSY) => {
                BootError::NotExecutable { program, source }
            }
            _ => no_process(rank, self.control.size(), source),
        }
    }
}

/// Standard input for rank 0: the launcher's, except that a terminal is read by the launcher and
/// passed on through a pipe, because rank 0 is not in the terminal's foreground process group and
/// would be stopped for reading from it.
fn input_of_rank_0() -> Stdio {
    if !isatty(rustix::stdio::stdin()) {
        return Stdio::inherit();
    }
    match pipe_with(PipeFlags::CLOEXEC) {
        Ok((theirs, ours)) => match thread::Builder::new()
            .name("stdin".into())
            .spawn(move || pass_on_stdin(ours))
        {
            Ok(_) => Stdio::from(theirs),
            Err(_) => Stdio::null(),
        },
        Err(_) => Stdio::null(),
    }
}

/// Interval at which a launcher in the background looks whether it may read its terminal again.
const BACKGROUND_PAUSE: Duration = Duration::from_millis(250);

/// Copies the terminal to `pipe` until the user ends the input, the reader goes away or the
/// launcher exits.
fn pass_on_stdin(pipe: OwnedFd) {
    // Blocked, a launcher in the background gets an error instead of being stopped.
    SignalSet::of(&[libc::SIGTTIN]).block();
    let mut pipe = File::from(pipe);
    let mut buffer = [0; 4096];
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer[..]) {
            Err(Errno::INTR) => {}
            Err(Errno::IO) => thread::sleep(BACKGROUND_PAUSE),
            Ok(0) | Err(_) => return,
            Ok(n) => {
                if io::Write::write_all(&mut pipe, &buffer[..n]).is_err() {
                    return;
                }
            }
        }
    }
}
