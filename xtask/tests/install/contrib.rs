//! What `contrib/` says to makers of packages.

use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{installing, run, runs, source, succeeded};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("the recipe for Spack compiles", recipe).with_ignored_flag(!runs("python3")),
        Trial::test(
            "a staged tree names where it will lie, and may be moved",
            staged,
        )
        .with_ignored_flag(!runs("pkg-config")),
    ]
}

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../contrib")
        .join(name)
}

fn recipe() -> Result<(), Failed> {
    let recipe = contrib("spack/spack_repo/argonet/packages/argonet/package.py");
    let mut python = Command::new("python3");
    // Beside the sources it would leave a directory.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    python.env("PYTHONPYCACHEPREFIX", cache);
    succeeded(&run(python.args(["-m", "py_compile"]).arg(recipe))?)?;
    Ok(())
}

/// A directory without a blank in its name, as the commands of the page want it.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The commands of the page, word for word, with a small library.
fn staged() -> Result<(), Failed> {
    let page = fs::read_to_string(contrib("README.md"))?;
    let block = page.split("```sh\n").nth(1);
    let block = block.and_then(|rest| rest.split("```").next());
    let block = block.ok_or("the page has no commands")?;
    let name = format!("staged-{}", std::process::id());
    let staging = Staging(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    let tree = staging.0.join("usr");
    // In place of cargo, the words of the test's own installation, then those of the page.
    let small = installing(&tree)?;
    let cargo =
        "cargo() { shift 2; \"$XTASK\" install --library \"$LIBRARY\" \"$@\" --conduits smp; }";
    let library = small.get_args().nth(2).ok_or("no library")?;
    let mut shell = Command::new("sh");
    shell
        .args(["-euc", &format!("{cargo}\n{block}")])
        .env("XTASK", small.get_program())
        .env("LIBRARY", library)
        .env("DESTDIR", &staging.0)
        .env("PREFIX", "/usr");
    succeeded(&run(&mut shell)?)?;
    let makes = fs::read_to_string(tree.join("include/smp-conduit/smp-par.mak"))?;
    assert!(makes.contains("-I/usr/include "), "{makes}");
    assert!(!tree.join("share/argonet/manifest").exists());
    let own = staging.0.to_str().ok_or("a path that is no text")?;
    for file in files(&tree)? {
        let bytes = fs::read(&file)?;
        let mut parts = bytes.windows(own.len());
        let is_named = parts.any(|part| part == own.as_bytes());
        assert!(!is_named, "{} names {own}", file.display());
    }
    // Clients build with it wherever it lies.
    let moved = staging.0.join("moved away/from usr");
    fs::create_dir_all(moved.parent().unwrap_or(&moved))?;
    fs::rename(&tree, &moved)?;
    for package in ["gasnet-smp-par", "gasnet-smp-par-shared"] {
        let program = staging.0.join(package);
        client(&moved.join("lib/pkgconfig"), package, &program)?;
        assert!(program.exists());
    }
    Ok(())
}

/// Builds a program with the words of pkg-config.
fn client(packages: &Path, package: &str, program: &Path) -> Result<(), Failed> {
    let script =
        "words=$(pkg-config --cflags --libs \"$2\") && eval \"cc -Werror '$1' -o '$3' $words\"";
    let mut shell = Command::new("sh");
    shell.args(["-euc", script, "sh"]);
    shell.arg(source("hello.c")).arg(package).arg(program);
    succeeded(&run(shell.env("PKG_CONFIG_PATH", packages))?)?;
    Ok(())
}

/// All files, without links.
fn files(directory: &Path) -> Result<Vec<PathBuf>, Failed> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
