//! C and C++ compilers, and a place for their output.
//!
//! The test `layout` uses this file too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// A language in one version.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    /// As `-std=` takes it.
    pub(crate) standard: &'static str,
    pub(crate) cpp: bool,
}

impl Dialect {
    pub(crate) const C99: Self = Self::new("c99", false);
    pub(crate) const C11: Self = Self::new("c11", false);
    pub(crate) const CPP17: Self = Self::new("c++17", true);
    pub(crate) const ALL: [Self; 8] = [
        Self::C99,
        Self::C11,
        Self::new("c17", false),
        // C23, by the name that older compilers know too.
        Self::new("c2x", false),
        Self::new("c++11", true),
        Self::new("c++14", true),
        Self::CPP17,
        Self::new("c++20", true),
    ];
    /// For compilers that know the last version of C by its own name.
    pub(crate) const NEWEST: [Self; 4] = [
        Self::C99,
        Self::new("c17", false),
        Self::new("c23", false),
        Self::new("c++20", true),
    ];

    const fn new(standard: &'static str, cpp: bool) -> Self {
        Self { standard, cpp }
    }
}

/// Compilers by the names of their C and C++ programs.
#[derive(Clone, Copy)]
pub(crate) struct Compiler {
    pub(crate) c: &'static str,
    cpp: &'static str,
}

impl Compiler {
    /// The system's; Rust links with it, so that it is there.
    pub(crate) const OWN: Self = Self {
        c: "cc",
        cpp: "c++",
    };
    pub(crate) const CLANG: Self = Self {
        c: "clang",
        cpp: "clang++",
    };
    /// As Debian names it where it is not the system's `clang`.
    pub(crate) const CLANG_19: Self = Self {
        c: "clang-19",
        cpp: "clang++-19",
    };

    pub(crate) fn exists(self) -> bool {
        self.speaks(false) && self.speaks(true)
    }

    /// Whether its program for C, or for C++, is there.
    ///
    /// The system's for C is, as Rust links with it.
    pub(crate) fn speaks(self, cpp: bool) -> bool {
        static FOUND: Mutex<BTreeMap<&str, bool>> = Mutex::new(BTreeMap::new());
        let name = if cpp { self.cpp } else { self.c };
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        *found
            .entry(name)
            .or_insert_with(|| name == Self::OWN.c || runs(name))
    }

    /// Runs the compiler for `files`, with all warnings as errors; `after` comes last, for the
    /// linker.
    pub(crate) fn compile(
        self,
        dialect: Dialect,
        options: &[&str],
        files: &[PathBuf],
        after: &[&str],
    ) -> Result<(), String> {
        let (program, language) = if dialect.cpp {
            (self.cpp, "c++")
        } else {
            (self.c, "c")
        };
        // Objects and libraries have no language. Clang warns of saying so where there are none.
        let more = after.first().is_some_and(|word| *word != "-o");
        let no_language = ["-x", "none"].iter().filter(|_| more);
        let output = Command::new(program)
            .arg(format!("-std={}", dialect.standard))
            .args(["-Wall", "-Wextra", "-Werror"])
            .args(options)
            .arg("-I")
            .arg(root().join("include"))
            .args(["-x", language])
            .args(files)
            .args(no_language)
            .args(after)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{program}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("{program} {options:?} {files:?}\n{said}"))
    }
}

/// The repository, whichever of its crates this belongs to.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .find(|above| above.join("include").is_dir())
        .unwrap_or(here)
}

/// Whether a program can be run here.
pub(crate) fn runs(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A directory that goes away with its value.
pub(crate) struct Workplace(PathBuf);

impl Workplace {
    pub(crate) fn new() -> std::io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("c-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
