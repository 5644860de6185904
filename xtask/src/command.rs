//! Running a program: its output is passed on and counted, and it is ended when it takes too long.

use crate::tally::Tally;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The directory of the workspace.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// The target directory that this run uses.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => root().join(dir),
        _ => root().join("target"),
    }
}

/// `cargo` with these arguments, without the variables that `cargo run` has set for this program
/// and that would make build scripts run again.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") {
            command.env_remove(name);
        }
    }
    command
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("CARGO_MANIFEST_PATH")
        .env("CARGO_TERM_COLOR", "never")
        .stdin(Stdio::null());
    command
}

/// Whether a program can be run here.
pub(crate) fn exists(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Processor time of all programs that have been run and have ended.
///
/// A stage that took long and used little was kept waiting by something else.
pub(crate) fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    // proc_pid_stat(5): cutime and cstime are fields 16 and 17, and `state` after the name is 3.
    let ticks = |field: usize| -> u64 {
        let text = fields.split_whitespace().nth(field - 3);
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    // A hundred ticks a second on every Linux that Rust runs on.
    Duration::from_millis((ticks(16) + ticks(17)) * 10)
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// With code 0.
    Well,
    /// With another code, by a signal, or it could not be started.
    Badly,
    /// It was killed because its time was over.
    TooLate,
}

/// Runs a command to its end, passes its output on and counts the tests that it reports.
pub(crate) fn run(command: &mut Command, until: Instant, tally: &mut Tally) -> End {
    println!("    $ {}", display(command));
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            eprintln!("    cannot be started: {error}");
            return End::Badly;
        }
    };
    let (send, lines) = channel();
    if let Some(out) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut out = BufReader::new(out);
            let mut line = Vec::new();
            while matches!(out.read_until(b'\n', &mut line), Ok(1..)) {
                if send
                    .send(String::from_utf8_lossy(&line).into_owned())
                    .is_err()
                {
                    return;
                }
                line.clear();
            }
        });
    }
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) => {
                tally.line(&line);
                let _ = std::io::stdout().write_all(line.as_bytes());
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                eprintln!("    took too long and is ended");
                kill_tree(&mut child);
                return End::TooLate;
            }
        }
    }
    match wait(&mut child, until) {
        Some(true) => End::Well,
        Some(false) => End::Badly,
        None => {
            kill_tree(&mut child);
            End::TooLate
        }
    }
}

/// Runs a program and returns what it wrote to standard output, if it ended well in time.
pub(crate) fn output(command: &mut Command, until: Instant) -> Option<String> {
    println!("    $ {}", display(command));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let out = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = BufReader::new(out).read_to_end(&mut text);
        text
    });
    let ended = wait(&mut child, until);
    if ended.is_none() {
        kill_tree(&mut child);
    }
    let text = reader.join().ok()?;
    (ended == Some(true)).then(|| String::from_utf8_lossy(&text).into_owned())
}

/// Whether the child ended well; nothing if the time is over.
fn wait(child: &mut Child, until: Instant) -> Option<bool> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => return None,
            Err(_) => return Some(false),
        }
    }
}

/// Kills a process and all that it has started, children last, so that none is started anew.
fn kill_tree(child: &mut Child) {
    let tree = descendants(child.id());
    let _ = child.kill();
    let _ = child.wait();
    for pid in tree {
        let _ = Command::new("kill")
            .args(["-KILL", &pid.to_string()])
            .status();
    }
}

fn descendants(of: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // "pid (name) state parent ...", and the name may hold anything.
        let parent: Option<u32> = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        if let Some(parent) = parent {
            parents.push((pid, parent));
        }
    }
    let mut found: Vec<u32> = vec![of];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|p| p.1 == parent).map(|p| p.0));
        at += 1;
    }
    found.split_off(1)
}

fn display(command: &Command) -> String {
    let mut text = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value
            && name != "CARGO_TERM_COLOR"
        {
            text += &format!("{}={:?} ", name.to_string_lossy(), value);
        }
    }
    let program = Path::new(command.get_program());
    text += &program.file_name().unwrap_or_default().to_string_lossy();
    for arg in command.get_args() {
        text += " ";
        text += &arg.to_string_lossy();
    }
    text
}
