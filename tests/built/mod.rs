//! Programs that a test runs and cargo does not build for it: those of other packages, and examples
//! that have unit tests.
#![allow(dead_code, reason = "each test uses some of it")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `argonet` command, built as this test was when it is first asked for.
pub(crate) fn command() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| program("argonet-cli", "argonet"))
}

/// An example of the library, built as this test was.
pub(crate) fn example(name: &str) -> PathBuf {
    build("argonet", "--example", name)
}

/// A program of another package, built as this test was.
pub(crate) fn program(package: &str, name: &str) -> PathBuf {
    build(package, "--bin", name)
}

/// Set where the whole workspace has been built, with these programs.
///
/// Cargo would build one by itself with fewer features of its dependencies, and so those once more.
const BUILT: &str = "ARGONET_TEST_BUILT";

/// Has cargo build a program with the profile of this test, for the same target and into the same
/// directory.
fn build(package: &str, kind: &str, name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    // <target directory>/[<target>/]<profile>/deps/<test>-<hash>
    let profile_dir = test.ancestors().nth(2).expect("the profile's directory");
    let there = match kind {
        "--example" => profile_dir.join("examples").join(name),
        _ => profile_dir.join(name),
    };
    if std::env::var_os(BUILT).is_some() {
        assert!(
            there.exists(),
            "{BUILT} is set, and {} is missing",
            there.display()
        );
        return there;
    }
    let above = profile_dir.parent().expect("the target directory");
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--package", package, kind, name])
        .args(["--profile", profile])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    // Cargo marks the target directory itself, and not the directory in it for a `--target`.
    match (above.join("CACHEDIR.TAG").exists(), above.parent()) {
        (false, Some(directory)) => {
            let target = above.file_name().expect("the name of a target");
            cargo.arg("--target").arg(target);
            cargo.arg("--target-dir").arg(directory)
        }
        _ => cargo.arg("--target-dir").arg(above),
    };
    let built = cargo.status();
    let built = built.is_ok_and(|status| status.success());
    assert!(built, "{cargo:?} failed");
    there
}
