//! Programs and libraries that tests want beside the Rust toolchain, and the Debian packages that
//! have them.
//!
//! This is the one place for that list; the tests themselves look for them, and count as skipped
//! where one is missing.

use crate::command::exists;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program or a library, and the tests that are skipped without it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tool {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
    pub(crate) runs: &'static str,
}

const fn tool(program: &'static str, package: &'static str, runs: &'static str) -> Tool {
    Tool {
        program,
        package,
        runs,
    }
}

const TOOLS: [Tool; 21] = [
    tool("c++", "g++", "headers and programs in C++, libFuzzer"),
    tool(
        "clang",
        "clang",
        "headers and programs in C and C++ with another compiler",
    ),
    tool(
        "clang-19",
        "clang-19",
        "headers in the newest versions of C and C++",
    ),
    tool("make", "make", "clients built with an installation"),
    tool("cmake", "cmake", "clients built with an installation"),
    tool(
        "pkg-config",
        "pkg-config",
        "clients built with an installation",
    ),
    tool("python3", "python3", "the recipe for Spack"),
    tool(
        "nm",
        "binutils",
        "names that the libraries and the headers define",
    ),
    tool("objdump", "binutils", "instructions of the headers"),
    tool(
        "valgrind",
        "valgrind",
        "instructions of fast paths (`cargo xtask counts`)",
    ),
    tool(
        "ip",
        "iproute2",
        "jobs over hosts, which are network namespaces",
    ),
    tool(
        "tc",
        "iproute2",
        "jobs over hosts, which are network namespaces",
    ),
    tool("nft", "nftables", "networks that fail"),
    tool("mpiexec.hydra", "mpich", "jobs that MPICH's hydra starts"),
    tool(
        "mpirun.openmpi",
        "openmpi-bin",
        "jobs that Open MPI's mpirun starts",
    ),
    tool(
        "libpmix.so.2",
        "libpmix2",
        "jobs over hosts that Open MPI's mpirun or Slurm starts",
    ),
    tool("munged", "munge", "jobs that Slurm starts"),
    tool("slurmctld", "slurmctld", "jobs that Slurm starts"),
    tool("slurmd", "slurmd", "jobs that Slurm starts"),
    tool("srun", "slurm-client", "jobs that Slurm starts"),
    tool(
        "libfabric.so.1",
        "libfabric1",
        "datagrams and messages through libfabric's providers",
    ),
];

/// Whether a program is in one of these directories, as a shell looks for it.
fn is_in(path: &str, program: &str) -> bool {
    let is_there = |directory: &str| Path::new(directory).join(program).is_file();
    path.split(':').any(is_there)
}

/// Where daemons are, which the path of some users leaves out.
const OF_DAEMONS: &str = "/usr/sbin";

/// Whether the loader finds a library, by the list of those that it knows (`ldconfig -p`).
fn loads(list: &str, library: &str) -> bool {
    let mut names = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names.any(|name| name == library)
}

/// The tools that are not there.
fn missing_where(is_there: impl Fn(&str) -> bool) -> Vec<Tool> {
    let missing = |tool: &&Tool| !is_there(tool.program);
    TOOLS.iter().filter(missing).copied().collect()
}

fn missing() -> Vec<Tool> {
    let path = std::env::var("PATH").unwrap_or_default();
    let list = Command::new("/sbin/ldconfig").arg("-p").output();
    let list = list.map(|output| output.stdout).unwrap_or_default();
    let list = String::from_utf8_lossy(&list);
    missing_where(|program| {
        is_in(&path, program) || is_in(OF_DAEMONS, program) || loads(&list, program)
    })
}

/// The packages of these tools, each once.
fn packages(tools: &[Tool]) -> Vec<&'static str> {
    let mut packages = Vec::new();
    for tool in tools {
        if !packages.contains(&tool.package) {
            packages.push(tool.package);
        }
    }
    packages
}

/// Advice where tests were skipped: the Debian packages that would run some of them.
fn advice_for(missing: &[Tool]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for package in packages(missing) {
        let of_package = || missing.iter().filter(|tool| tool.package == package);
        let programs: Vec<&str> = of_package().map(|tool| tool.program).collect();
        let mut runs: Vec<&str> = of_package().map(|tool| tool.runs).collect();
        runs.dedup();
        let (programs, runs) = (programs.join(", "), runs.join("; "));
        let _ = writeln!(
            text,
            "not installed: {programs} (Debian package {package}): {runs}"
        );
    }
    if !missing.is_empty() {
        text += "`cargo xtask setup` installs these packages, as root\n";
    }
    text
}

/// The same for this machine.
pub(crate) fn advice() -> String {
    advice_for(&missing())
}

/// The command line that installs a package.
fn install(package: &str) -> [&str; 4] {
    ["install", "--yes", "--no-install-recommends", package]
}

/// Installs the packages of the tools that are missing, by apt-get; whether all tools are there
/// then.
///
/// A package that cannot be installed keeps no other from it.
pub(crate) fn setup(dry_run: bool) -> bool {
    let wanted = missing();
    if wanted.is_empty() {
        println!("all programs that tests want are installed");
        return true;
    }
    print!("{}", advice_for(&wanted));
    let packages = packages(&wanted);
    let by_hand = format!(
        "apt-get {} {}",
        install("")[..3].join(" "),
        packages.join(" ")
    );
    if dry_run {
        println!("would run: {by_hand}");
        return true;
    }
    if !exists("apt-get", &["--version"]) {
        eprintln!(
            "there is no apt-get; install the equivalents of these Debian packages: {}",
            packages.join(" ")
        );
        return false;
    }
    let user = Command::new("id").arg("-u").output();
    if !user.is_ok_and(|output| output.stdout.trim_ascii() == b"0") {
        eprintln!("only root may install packages: sudo {by_hand}");
        return false;
    }
    let apt = |args: &[&str]| {
        println!("    $ apt-get {}", args.join(" "));
        let _ = std::io::stdout().flush();
        let mut command = Command::new("apt-get");
        command.args(args).stdin(Stdio::null());
        let status = command.env("DEBIAN_FRONTEND", "noninteractive").status();
        status.is_ok_and(|status| status.success())
    };
    // Old lists may do.
    apt(&["update"]);
    for package in &packages {
        if !apt(&install(package)) {
            eprintln!("{package} could not be installed; its tests will count as skipped");
        }
    }
    missing().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_listed_once_a_package() {
        let all = advice_for(&missing_where(|_| false));
        for tool in TOOLS {
            let begin = format!("(Debian package {})", tool.package);
            assert_eq!(all.matches(&begin).count(), 1, "{all}");
        }
        assert!(
            all.contains("not installed: ip, tc (Debian package iproute2): jobs over hosts, which are network namespaces\n"),
            "{all}"
        );
        assert!(all.contains("cargo xtask setup"), "{all}");
        let one = advice_for(&missing_where(|program| program != "clang-19"));
        assert_eq!(one.lines().count(), 2, "{one}");
        assert!(one.starts_with("not installed: clang-19 (Debian package clang-19)"));
        assert_eq!(advice_for(&missing_where(|_| true)), "");
    }

    #[test]
    fn a_program_is_looked_for_as_a_shell_does() {
        assert!(is_in("/nowhere:/bin", "sh"));
        assert!(!is_in("/nowhere:/bin", "no-such-program") && !is_in("", "sh"));
    }

    #[test]
    fn a_library_is_looked_for_in_the_loaders_list() {
        let list = "2 libs found in cache `/etc/ld.so.cache'\n\tliba.so.1 (libc6,x86-64) => /lib/liba.so.1\n";
        assert!(loads(list, "liba.so.1"));
        assert!(!loads(list, "liba.so") && !loads(list, "libb.so.1") && !loads("", "liba.so.1"));
    }
}
