//! Hosts that are none: each agent is a process of this machine.

use crate::support::{Job, Running, pid, until};

/// The way to hosts that are none: each agent is a process of this host, below a shell.
pub(super) const TEMPLATE: (&str, &str) = ("GASNET_CSPAWN_CMD", "HOST_OF_TEST=%M exec %C");

pub(super) fn spread(ranks: u32, hosts: &str, program: &[&str]) -> Job {
    spread_with(ranks, hosts, &[], program)
}

pub(super) fn spread_with(ranks: u32, hosts: &str, options: &[&str], program: &[&str]) -> Job {
    let hosts = format!("hosts={hosts}");
    let options = [&["conduit=none", &hosts], options].concat();
    clean(Job::launched(ranks, &options, program)).env(TEMPLATE.0, TEMPLATE.1)
}

pub(super) fn clean(job: Job) -> Job {
    job.env("GASNET_SPAWNFN", "")
}

/// A file that this test makes, and that goes with it.
pub(super) struct TestFile(std::path::PathBuf);

impl TestFile {
    pub(super) fn new(name: &str, text: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("argonet-test-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("write");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("mode");
        Self(path)
    }

    pub(super) fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A pipe with a name, at which the ways to hosts wait for the test.
pub(super) struct TestFifo {
    name: TestFile,
    /// Both ends, so that no `open` waits for the other end.
    pipe: std::fs::File,
}

impl TestFifo {
    pub(super) fn new(name: &str) -> Self {
        let name = TestFile::new(name, "");
        std::fs::remove_file(name.path()).expect("a file");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, name.path(), kind, mode, 0).expect("a fifo");
        let options = &mut std::fs::File::options();
        let pipe = options.read(true).write(true).open(name.path());
        let pipe = pipe.expect("a fifo");
        Self { name, pipe }
    }

    pub(super) fn path(&self) -> &str {
        self.name.path()
    }

    /// Gives as many readers a line each.
    pub(super) fn let_go(&mut self, readers: usize) {
        let lines = "go\n".repeat(readers);
        std::io::Write::write_all(&mut self.pipe, lines.as_bytes()).expect("written");
    }
}

/// A job of waiting ranks with a child each, two on every host; all processes are there.
pub(super) fn waiting(hosts: &[&str], degree: &str, change: impl FnOnce(Job) -> Job) -> Running {
    waiting_for(hosts, 0, |job| {
        change(job.env("GASNET_SSH_OUT_DEGREE", degree))
    })
}

/// The same with `more` processes on the way to each host.
pub(super) fn waiting_for(hosts: &[&str], more: usize, change: impl FnOnce(Job) -> Job) -> Running {
    let count = hosts.len();
    let list: Vec<String> = hosts.iter().map(|host| format!("{host}:2")).collect();
    let job = spread(2 * count as u32, &list.join(","), &["wait", "children"]);
    let mut job = change(job.env("GASNET_SPAWN_VERBOSE", "1")).start();
    let mut pids = 0;
    while pids < 2 * count {
        job.read_until("pid ");
        pids += 1;
    }
    // The launcher; of each host an agent, a guardian, two ranks and their children.
    until(|| job.processes().len() == 1 + (6 + more) * count);
    job
}

/// The agent of `host` and its guardian.
pub(super) fn agent_of(job: &Running, host: &str) -> [rustix::process::Pid; 2] {
    let text = job.wait_for_error(&format!("host {host}: the agent is process "));
    let mut numbers = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|n| !n.is_empty());
    [(); 2].map(|()| {
        pid(numbers
            .next()
            .and_then(|n| n.parse().ok())
            .expect("a process id"))
    })
}
