//! Two ranks: threads with the software interface, its narrow form, or the networked interface;
//! processes with the latter or a library of Portals 4.

use super::group::{MEMORY, Member};
use super::{away, cases, errors, hosts, leaving};
use argonet_base::JobRank;
use argonet_nic::portals::Portals;
use argonet_nic::portals::portals4::{Library, Narrow, Opening, Portals4Config, ProcessId};
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_settings::{PORTALS_MESSAGE, Settings};
use core::ptr::NonNull;
use libtest_mimic::Failed;
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, Barrier};

/// Interfaces of ranks that are processes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Over a library of Portals 4.
    Portals4,
    /// Between hosts.
    Hosts,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Portals4 => "portals4",
            Self::Hosts => "hosts",
        }
    }
}

/// The first word to a process that is a rank.
pub(crate) const FLAG: &str = "--rank-of-a-test";
/// Seconds after which a rank ends that hangs.
const TOO_LONG: u32 = 60;

/// Runs `rank` as each of `ranks` ranks, a thread each, which wait for each other by the function
/// that `rank` is given.
pub(crate) fn threads(
    ranks: u32,
    rank: impl Fn(u32, Box<dyn FnMut()>) + Send + Sync + 'static,
) -> Result<(), Failed> {
    let barrier = Arc::new(Barrier::new(ranks as usize));
    let run = Arc::new(rank);
    let threads: Vec<_> = (0..ranks)
        .map(|rank| {
            let (barrier, run) = (barrier.clone(), run.clone());
            let wait = move || {
                barrier.wait();
            };
            std::thread::spawn(move || run(rank, Box::new(wait)))
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a rank panicked")?;
    }
    Ok(())
}

/// Two threads with the software interface.
pub(crate) fn software(name: &'static str) -> Result<(), Failed> {
    near(name, |nic| nic)
}

/// Two threads with it as narrow as a library of Portals 4.
pub(crate) fn narrow(name: &'static str) -> Result<(), Failed> {
    near(name, |nic| Narrow::new(nic, MEMORY))
}

/// Two threads with an interface over the software interface.
fn near<N: Portals + 'static>(
    name: &'static str,
    over: impl Fn(Software) -> N + Send + Sync + 'static,
) -> Result<(), Failed> {
    let file = memfd_create("interfaces", MemfdFlags::CLOEXEC)?;
    let config = SoftwareConfig {
        arena_bytes: MEMORY,
        ..SoftwareConfig::default()
    };
    threads(2, move |rank, barrier| {
        let rules = FaultRules::default();
        let nic = Software::new(file.as_fd(), config, JobRank(rank), None, rules);
        let nic = nic.expect("interface");
        let memory = nic.buffers().0;
        let member = Member {
            nic: over(nic),
            memory,
            barrier,
        };
        run(name, member);
    })
}

/// Runs a case as this rank, of those of all interfaces or of the binding.
fn run<N: Portals>(name: &str, mut member: Member<N>) {
    if errors::NAMES.contains(&name) {
        errors::run(name, &member);
        (member.barrier)();
    } else {
        cases::run(name, member);
    }
}

/// A rank in a process of its own, seen from outside.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(kind: Kind, rank: u32, name: &str) -> Result<Self, Failed> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([FLAG, &rank.to_string(), kind.word(), name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self {
            child,
            input,
            output,
        })
    }

    /// The next line that it says; empty when it has ended.
    pub(crate) fn line(&mut self) -> Result<String, Failed> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }

    pub(crate) fn say(&mut self, line: &str) -> Result<(), Failed> {
        writeln!(self.input, "{}", line.trim_end())?;
        Ok(())
    }

    pub(crate) fn kill(mut self) -> Result<(), Failed> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Result<ExitStatus, Failed> {
        drop(self.input);
        Ok(self.child.wait()?)
    }
}

/// Starts both ranks, and gives each the lines of both, line by line, until they end.
pub(crate) fn processes(kind: Kind, name: &str) -> Result<(), Failed> {
    let start = |rank| Process::start(kind, rank, name);
    let mut both = [start(0)?, start(1)?];
    loop {
        let mut lines = Vec::new();
        for process in &mut both {
            lines.push(process.line()?);
        }
        if lines.iter().any(String::is_empty) {
            break;
        }
        for process in &mut both {
            for line in &lines {
                process.say(line)?;
            }
        }
    }
    let mut bad = Vec::new();
    for (rank, process) in both.into_iter().enumerate() {
        let status = process.end()?;
        if !status.success() {
            bad.push(format!("rank {rank}: {status}"));
        }
    }
    if bad.is_empty() {
        return Ok(());
    }
    Err(bad.join(", ").into())
}

/// Prints a line, and reads the lines of both.
pub(crate) fn gather(line: &str) -> [String; 2] {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").expect("output");
    out.flush().expect("output");
    let mut lines = [String::new(), String::new()];
    for line in &mut lines {
        let read = std::io::stdin().lock().read_line(line).expect("input");
        assert!(read != 0, "the other rank has ended");
    }
    lines.map(|line| line.trim().to_owned())
}

/// A rank in a process of its own.
pub(crate) fn child(rank: &str, kind: &str, case: &str) -> ExitCode {
    // SAFETY: a call by value; the signal's action is to end the process.
    unsafe { libc::alarm(TOO_LONG) };
    let rank = JobRank(rank.parse().expect("rank"));
    let barrier = Box::new(|| drop(gather(".")));
    if kind == Kind::Hosts.word() {
        let mut member = hosts::process(rank, barrier);
        match case {
            away::COMPUTING => {
                away::computing(&mut member);
                (member.barrier)();
            }
            away::KILLED => away::be_killed(&mut member),
            leaving::LEAVES => leaving::leave(&mut member),
            _ => cases::run(case, member),
        }
    } else {
        portals4(rank, case, barrier);
    }
    ExitCode::SUCCESS
}

fn portals4(rank: JobRank, case: &str, barrier: Box<dyn FnMut()>) {
    let settings = Settings::from_environment().expect("settings");
    let library = Library::of_settings(&settings).expect("library");
    let usual = Portals4Config::default();
    let asked = settings.get(&PORTALS_MESSAGE);
    let config = Portals4Config {
        message_bytes: asked.map_or(usual.message_bytes, |bytes| bytes.0),
        ..usual
    };
    let opening = Opening::new(&library, rank, config).expect("interface");
    let ids = gather(&opening.id().to_bits().to_string());
    let ids = ids.map(|id| ProcessId::from_bits(id.parse().expect("address")));
    let nic = opening.map(&ids).expect("map");
    let memory = vec![0_u64; MEMORY as usize / 8].leak();
    let memory = NonNull::from(memory).cast();
    let member = Member {
        nic,
        memory,
        barrier,
    };
    run(case, member);
}
