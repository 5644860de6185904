//! The `argonet` command, whose package is another one: cargo builds it when the first launched job
//! wants it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::compiler::root;
use crate::network::Network;
use crate::running::Run;

/// Tests the reason for the launched ways: a segment lies at one address in its rank and at another
/// here, so that no difference between them is 0.
pub(crate) fn trials() -> Vec<Trial> {
    let forked = Trial::test("segments of forked ranks are at the same addresses", || {
        have_addresses(Way::RELEASE, "0 of 4 segments are elsewhere")
    });
    let launched = Trial::test("segments of launched ranks are at other addresses", || {
        have_addresses(Way::LAUNCHED, "3 of 4 segments are elsewhere")
    });
    // The user may have turned random addresses off, in `personality(2)` too.
    let persona = std::fs::read_to_string("/proc/self/personality").unwrap_or_default();
    let persona = u32::from_str_radix(persona.trim(), 16).unwrap_or(0);
    let random = std::fs::read_to_string("/proc/sys/kernel/randomize_va_space");
    let same = random.is_ok_and(|value| value.trim() == "0") || persona & NO_RANDOM_ADDRESSES != 0;
    vec![forked, launched.with_ignored_flag(same)]
}

/// `ADDR_NO_RANDOMIZE`.
const NO_RANDOM_ADDRESSES: u32 = 0x4_0000;

fn have_addresses(way: Way, line: &str) -> Result<(), Failed> {
    let program = Program::new(way, "addresses");
    let run = Run::with(&program, 4, &[], 120, &[Network::NEIGHBORS])?;
    if run.code() == 0 && run.out().lines().any(|said| said == line) {
        return Ok(());
    }
    Err(format!("not \"{line}\": {}", run.said()).into())
}

/// Where the command is, built like this test.
pub(crate) fn launcher() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(build) {
        Ok(path) => Ok(path),
        Err(why) => Err(why.clone()),
    }
}

fn build() -> Result<PathBuf, String> {
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    // TARGET/PROFILE/deps/conformance-HASH
    let place = test.ancestors().nth(2);
    let target = place.and_then(Path::parent);
    let (Some(place), Some(target)) = (place, target) else {
        return Err(format!("{} is in no target directory", test.display()));
    };
    let profile = match place.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "argonet-cli"])
        .args(["--bin", "argonet", "--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", env!("CARGO")))?;
    if output.status.success() {
        return Ok(place.join("argonet"));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("the launcher cannot be built:\n{said}"))
}
