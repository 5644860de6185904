//! Building what is installed: the library by cargo, its variants by the C compiler.

use super::flags::Variant;
use super::{at, words};
use crate::command::{cargo, root, target};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds the static library for C; where it is.
pub(super) fn library() -> Result<PathBuf, String> {
    let mut command = cargo(&["build", "--release", "--package", "argonet-capi"]);
    let status = command
        .status()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !status.success() {
        return Err("argonet-capi cannot be built".to_owned());
    }
    Ok(target().join("release/libargonet_capi.a"))
}

/// Runs a program that ends soon; what it wrote to standard output and to standard error.
fn said(command: &mut Command) -> Result<(String, String), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name} cannot be started: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() {
        Ok((out, err))
    } else {
        Err(format!("{name}: {}\n{err}", output.status))
    }
}

/// The programs that are needed.
pub(super) struct Tools {
    pub(super) cc: PathBuf,
    pub(super) cxx: PathBuf,
    ar: PathBuf,
}

impl Tools {
    /// By `CC`, `CXX` and `AR`, or by their usual names.
    pub(super) fn find() -> Result<Self, String> {
        // Nothing here needs a compiler for C++: where there is none, the name must do.
        let cxx = found("CXX", "c++").unwrap_or_else(|_| "c++".into());
        Ok(Self {
            cc: found("CC", "cc")?,
            cxx,
            ar: found("AR", "ar")?,
        })
    }

    /// What a program must be linked with because Rust's standard library wants it, as options. What every compiler adds by
    /// itself is left out: other tools look for a file for each.
    pub(super) fn system_libraries(&self) -> Result<Vec<String>, String> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let to = target().join(format!("xtask-empty-{}.a", std::process::id()));
        let asked = said(
            Command::new(rustc)
                .args(["--crate-type", "staticlib", "--crate-name", "empty"])
                .args(["--print", "native-static-libs", "-o"])
                .arg(&to)
                .arg("/dev/null"),
        );
        let _ = std::fs::remove_file(&to);
        let (_, notes) = asked?;
        let list = notes
            .lines()
            .find_map(|line| line.split_once("native-static-libs:"));
        let Some((_, list)) = list else {
            return Err(format!(
                "rustc does not tell what its library needs:\n{notes}"
            ));
        };
        let mut words: Vec<String> = Vec::new();
        for word in list.split_whitespace() {
            if !["-lgcc_s", "-lc"].contains(&word) && words.iter().all(|other| other != word) {
                words.push(word.to_owned());
            }
        }
        Ok(words)
    }

    /// Compiles the library of a variant into `prefix`, with the headers that are there.
    pub(super) fn variant(
        &self,
        sources: &Sources,
        variant: &Variant,
        prefix: &Path,
    ) -> Result<(), String> {
        let archive = prefix.join(format!("lib/lib{}.a", variant.library()));
        let word = words::c_string(variant.conduit());
        let mut options = vec![format!("-DARGONET_CONDUIT_WORD={word}")];
        for (name, value) in sources.idents() {
            options.push(format!("-D{name}={}", words::c_string(&value)));
        }
        let mut objects = Vec::new();
        for source in sources.variant()? {
            let stem = source.file_stem().unwrap_or_default().to_string_lossy();
            let object = prefix.join(format!("lib/{}-{stem}.o", variant.library()));
            let mut command = Command::new(&self.cc);
            command
                .args(["-std=c99", "-Wall", "-Wextra", "-fPIC"])
                .arg(variant.optimisation())
                .args(variant.defines())
                .args(&options)
                .arg("-I")
                .arg(prefix.join("include"))
                .arg("-c")
                .arg(source)
                .arg("-o")
                .arg(&object);
            said(&mut command)?;
            objects.push(object);
        }
        if archive.exists() {
            at(&archive, std::fs::remove_file(&archive))?;
        }
        said(
            Command::new(&self.ar)
                .arg("rcs")
                .arg(&archive)
                .args(&objects),
        )?;
        for object in objects {
            at(&object, std::fs::remove_file(&object))?;
        }
        Ok(())
    }
}

/// The whole path of a program, so that it can be compared with others'.
fn found(variable: &str, name: &str) -> Result<PathBuf, String> {
    let wanted = std::env::var_os(variable).filter(|value| !value.is_empty());
    let wanted = wanted.as_deref().unwrap_or(OsStr::new(name));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path);
    // A path with a directory in it stays as it is.
    let mut files = places.map(|directory| directory.join(wanted));
    let found = match Path::new(wanted).components().count() {
        1 => files.find(|file| file.is_file()),
        _ => std::path::absolute(wanted)
            .ok()
            .filter(|file| file.is_file()),
    };
    found.ok_or_else(|| format!("{}: no such program ({variable})", wanted.display()))
}

/// What lies in the repository.
pub(super) struct Sources {
    root: PathBuf,
    /// The commit, where that is known.
    commit: Option<String>,
}

impl Sources {
    pub(super) fn new() -> Self {
        let root = root();
        let asked = said(
            Command::new("git")
                .args(["rev-parse", "--short=12", "HEAD"])
                .current_dir(&root),
        );
        let commit = asked.ok().map(|(out, _)| out.trim().to_owned());
        Self { root, commit }
    }

    pub(super) fn build_id(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("no-commit");
        format!("argonet-{}-{commit}", env!("CARGO_PKG_VERSION"))
    }

    /// What each variant is compiled from. Programs get the objects that they use.
    fn variant(&self) -> Result<Vec<PathBuf>, String> {
        let directory = self.root.join("capi/variant");
        let mut files = vec![directory.join("variant.c")];
        let diagnostics = directory.join("diagnostics");
        for entry in at(&diagnostics, std::fs::read_dir(&diagnostics))? {
            let path = at(&diagnostics, entry)?.path();
            files.extend((path.extension() == Some(OsStr::new("c"))).then_some(path));
        }
        files.sort();
        Ok(files)
    }

    /// Macros of `variant.c`.
    fn idents(&self) -> Vec<(&'static str, String)> {
        let system = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut all = vec![("ARGONET_SYSTEM_NAME", system.trim().to_owned())];
        if let Some(commit) = &self.commit {
            all.push(("ARGONET_GIT_HASH", commit.clone()));
        }
        all
    }

    /// Copies all headers.
    pub(super) fn headers(&self, to: &Path) -> Result<(), String> {
        copy_headers(&self.root.join("include"), to)
    }

    /// The release, as `gasnet_config.h` has it.
    pub(super) fn version(&self) -> Result<String, String> {
        let path = self.root.join("include/gasnet_config.h");
        let text = at(&path, std::fs::read_to_string(&path))?;
        let start = "#define GASNETI_RELEASE_VERSION ";
        let line = text.lines().find_map(|line| line.strip_prefix(start));
        let version = line.map(|value| value.trim_matches('"').to_owned());
        version.ok_or_else(|| format!("{}: GASNETI_RELEASE_VERSION is missing", path.display()))
    }
}

fn copy_headers(from: &Path, to: &Path) -> Result<(), String> {
    at(to, std::fs::create_dir_all(to))?;
    for entry in at(from, std::fs::read_dir(from))? {
        let path = at(from, entry)?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_headers(&path, &to)?;
        } else if path.extension() == Some(OsStr::new("h")) {
            at(&to, std::fs::copy(&path, &to))?;
        }
    }
    Ok(())
}
