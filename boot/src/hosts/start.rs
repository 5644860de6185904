//! The command that starts an agent on a host.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use crate::error::BootError;
use crate::hosts::description::{Description, Way};
use crate::hosts::list::Host;
use crate::hosts::words::quoted;
use crate::sys::{self, SignalSet};

/// Placeholders of a command template, and their meaning.
const PLACES: &str = "%M or %H (the host), %C (the agent's command), %N (1, the number of agents), %D (the directory), \
                      %P (the program) and %% (%)";

/// An agent's process on this host, or the process that is the way to it, and its standard streams.
pub(crate) struct Started {
    pub(crate) process: Child,
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) notes: OwnedFd,
}

/// Starts the agent of `host`.
///
/// `mask` is what this process blocked before it began to collect signals.
pub(crate) fn start(job: &Description, host: &Host, mask: SignalSet) -> Result<Started, BootError> {
    let mut command = command(job, host)?;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The terminal's signals are for the launcher, which passes them on.
        .process_group(0);
    let parent = getpid();
    sys::before_exec(&mut command, move || {
        // A second net: a connection ends with either of its ends anyway.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        mask.restore();
        Ok(())
    });
    let mut process = command.spawn().map_err(|source| BootError::NoWay {
        host: host.name.clone(),
        command: command.get_program().to_string_lossy().into_owned(),
        source,
        remedy: match job.way {
            Way::Shell { .. } => {
                "install OpenSSH's client, or name another remote shell with GASNET_SSH_CMD"
            }
            Way::Template(_) => "is there /bin/sh?",
            Way::Local => "name the program that is the agent with ARGONET_AGENT",
        },
    })?;
    let (input, output, notes) = (
        process.stdin.take(),
        process.stdout.take(),
        process.stderr.take(),
    );
    match (input, output, notes) {
        (Some(input), Some(output), Some(notes)) => Ok(Started {
            process,
            input: input.into(),
            output: output.into(),
            notes: notes.into(),
        }),
        _ => {
            let _ = process.kill();
            let source = io::Error::other("it has no standard streams");
            Err(BootError::system("starting an agent", source))
        }
    }
}

fn command(job: &Description, host: &Host) -> Result<Command, BootError> {
    let (first, rest) = match job.agent.split_first() {
        Some(words) => words,
        None => {
            return Err(BootError::system(
                "starting an agent",
                io::Error::other("no command"),
            ));
        }
    };
    Ok(match &job.way {
        Way::Local => {
            let mut command = Command::new(first);
            command.args(rest);
            command
        }
        Way::Shell { command, options } => {
            let mut shell = Command::new(command);
            shell.args(options);
            if Path::new(command).file_name() == Some(OsStr::new("ssh")) {
                // The user could not answer a question: the agent has the standard input.
                shell.args(["-o", "BatchMode=yes"]);
            }
            // A shell of the host reads this.
            let mut exec = OsString::from("exec ");
            exec.push(agent_in_words(job));
            shell.arg(&host.name).arg(exec);
            shell
        }
        Way::Template(template) => {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(fill_in(template, job, host)?);
            shell
        }
    })
}

/// The agent's command, for a shell.
fn agent_in_words(job: &Description) -> OsString {
    let words: Vec<OsString> = job.agent.iter().map(|word| quoted(word)).collect();
    words.join(OsStr::new(" "))
}

/// A template with its places filled in.
fn fill_in(template: &str, job: &Description, host: &Host) -> Result<OsString, BootError> {
    let mut filled = Vec::new();
    let mut rest = template.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            filled.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let place = rest.next();
        let word: OsString = match place {
            Some('%') => "%".into(),
            Some('N') => "1".into(),
            Some('M' | 'H') => host.name.clone().into(),
            Some('C') => agent_in_words(job),
            Some('D') => quoted(&job.directory),
            Some('P') => quoted(&job.program),
            _ => {
                return Err(BootError::BadTemplate {
                    template: template.into(),
                    reason: format!(
                        "%{} stands for nothing; there are {PLACES}",
                        place.map_or(String::new(), String::from)
                    ),
                });
            }
        };
        filled.extend_from_slice(word.as_bytes());
    }
    Ok(OsString::from_vec(filled))
}

/// Checks a template before anything is started.
pub(crate) fn check_template(template: &str, hosts: usize) -> Result<(), BootError> {
    let bad = |reason: String| {
        Err(BootError::BadTemplate {
            template: template.into(),
            reason,
        })
    };
    let places = template.replace("%%", "");
    if !places.contains("%C") {
        return bad(format!(
            "it has no %C, so it would start no agent; there are {PLACES}"
        ));
    }
    if hosts > 1 && !places.contains("%M") && !places.contains("%H") {
        return bad(format!(
            "it is run once for each of {hosts} hosts and does not name the host; write %M where the host belongs, as in \
             `srun -n %N -w %M %C` or `mpirun -np %N -H %M %C`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host {
            name: "node7".into(),
            first: 0,
            ranks: 2,
        }
    }

    fn words(command: &Command) -> Vec<String> {
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        all.map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    fn job(way: Way) -> Description {
        Description {
            way,
            agent: vec!["/opt/my tools/argonet".into(), "agent".into()],
            directory: "/it's here".into(),
            ..Description::default()
        }
    }

    #[test]
    fn a_remote_shell_gets_options_host_and_one_quoted_command() {
        let options = vec!["-p".into(), "2222".into()];
        let shell = |command: &str| Way::Shell {
            command: command.into(),
            options: options.clone(),
        };
        let command_line = "exec '/opt/my tools/argonet' 'agent'";
        assert_eq!(
            words(&command(&job(shell("/usr/bin/ssh")), &host()).unwrap()),
            [
                "/usr/bin/ssh",
                "-p",
                "2222",
                "-o",
                "BatchMode=yes",
                "node7",
                command_line
            ]
        );
        assert_eq!(
            words(&command(&job(shell("rsh")), &host()).unwrap()),
            ["rsh", "-p", "2222", "node7", command_line]
        );
    }

    #[test]
    fn templates_are_filled_in_and_bad_ones_refused() {
        let template = "srun -n %N -w %M --chdir %D sh -c '%%' %P %C";
        let job = job(Way::Template(template.into()));
        let filled = fill_in(template, &job, &host()).unwrap();
        assert_eq!(
            filled.to_string_lossy(),
            "srun -n 1 -w node7 --chdir '/it'\\''s here' sh -c '%' 'prog' '/opt/my tools/argonet' 'agent'"
        );
        for bad in ["%x %C", "%C %"] {
            let error = fill_in(bad, &job, &host()).unwrap_err().to_string();
            assert!(error.contains("stands for nothing") && error.contains("GASNET_CSPAWN_CMD"));
        }
        let error = check_template("srun -n %N %C", 2).unwrap_err().to_string();
        assert!(error.contains("does not name the host"), "{error}");
        assert!(check_template("srun -n %N %C", 1).is_ok());
        let error = check_template("srun %%C %M", 1).unwrap_err().to_string();
        assert!(error.contains("no %C"), "{error}");
    }
}
