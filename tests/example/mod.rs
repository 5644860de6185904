//! Running examples and programs as jobs: the common part of their tests.
#![allow(dead_code, reason = "each test uses some of it")]

#[path = "../built/mod.rs"]
pub(crate) mod built;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Numbers of ranks that a job is run on.
pub(crate) const RANKS: [u32; 4] = [1, 2, 4, 7];
/// And over portals.
pub(crate) const PORTALS_RANKS: [u32; 3] = [2, 4, 8];
/// Time limit of a job.
///
/// It normally takes a fraction of a second; this is for the slowest machine.
const LIMIT: Duration = Duration::from_secs(120);
/// In the environment of every process of a job.
const MARK: &str = "ARGONET_TEST_MARK";

/// The launcher of a program of so many ranks, whose messages all go over the portals conduit.
pub(crate) fn over_portals(ranks: u32, program: &Path) -> Command {
    let mut command = Command::new(built::command());
    command
        .args(["run", "--conduit", "portals", "-n", &ranks.to_string()])
        .arg(program)
        .env_remove("GASNET_PSHM_NODES")
        .env("GASNET_SUPERNODE_MAXSIZE", "1");
    command
}

/// Runs a job to its end, and checks that nothing is left of it.
pub(crate) fn finish(mut command: Command) -> Output {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mark = format!(
        "{MARK}=example.{}.{}.",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let (name, value) = mark.split_once('=').expect("name=value");
    command
        .env(name, value)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("start");
    let (send, receive) = channel();
    thread::spawn(move || send.send(child.wait_with_output()));
    let deadline = Instant::now() + LIMIT;
    let Ok(output) = receive.recv_timeout(LIMIT) else {
        panic!(
            "{command:?} took over {LIMIT:?}; its processes, now killed:\n{}",
            kill(&mark).join("\n")
        );
    };
    // Its output has ended and its code is known, so remaining processes can only be about to go.
    while !live(&mark).is_empty() {
        if Instant::now() > deadline {
            panic!("{command:?} left processes:\n{}", kill(&mark).join("\n"));
        }
        thread::yield_now();
    }
    output.expect("wait")
}

/// Processes with this entry in their environment.
///
/// A zombie has none left.
fn live(mark: &str) -> Vec<PathBuf> {
    let has_mark = |process: &PathBuf| {
        fs::read(process.join("environ")).is_ok_and(|environ| {
            environ
                .split(|&b| b == 0)
                .any(|entry| entry == mark.as_bytes())
        })
    };
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .map(|entry| entry.path())
        .filter(has_mark)
        .collect()
}

/// Kills the remaining processes of a job, and returns their states.
fn kill(mark: &str) -> Vec<String> {
    let describe = |process: PathBuf| {
        let read = |file| fs::read_to_string(process.join(file)).unwrap_or_default();
        let text = format!("{} in {}", read("stat").trim(), read("wchan"));
        if let Some(pid) = process.file_name() {
            let _ = Command::new("kill").arg("-KILL").arg(pid).status();
        }
        text
    };
    live(mark).into_iter().map(describe).collect()
}

/// Output as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A path as an argument.
pub(crate) fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A directory of its own, removed at the end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// Makes the directory.
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("argonet-test-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file into it.
    pub(crate) fn file(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
