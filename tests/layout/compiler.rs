//! C and C++ compilers, and a place for what they make.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A language in one version.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    /// As `-std=` takes it.
    pub(crate) standard: &'static str,
    cpp: bool,
}

impl Dialect {
    pub(crate) const C99: Self = Self::new("c99", false);
    pub(crate) const ALL: [Self; 4] = [
        Self::C99,
        Self::new("c11", false),
        Self::new("c++11", true),
        Self::new("c++17", true),
    ];

    const fn new(standard: &'static str, cpp: bool) -> Self {
        Self { standard, cpp }
    }
}

/// A compiler by its name.
pub(crate) struct Compiler {
    pub(crate) program: &'static str,
}

impl Compiler {
    /// The system's C compiler; Rust links with it, so that it is there.
    pub(crate) const fn cc() -> Self {
        Self { program: "cc" }
    }

    /// The compilers to try for a dialect: the system's own, whose absence counts as a skipped test, and
    /// clang where it is installed.
    pub(crate) fn candidates(dialect: Dialect) -> Vec<Self> {
        let (own, clang) = if dialect.cpp {
            ("c++", "clang++")
        } else {
            ("cc", "clang")
        };
        let own = Self { program: own };
        let clang = Self { program: clang };
        let mut all = vec![own];
        all.extend(Some(clang).filter(Self::exists));
        all
    }

    pub(crate) fn exists(&self) -> bool {
        runs(self.program)
    }

    /// Compiles `near.c` into `to`, with all warnings as errors.
    pub(crate) fn compile(&self, dialect: Dialect, how: &[&str], to: &Path) -> Result<(), String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let language = if dialect.cpp { "c++" } else { "c" };
        let output = Command::new(self.program)
            .arg(format!("-std={}", dialect.standard))
            .args(["-Wall", "-Wextra", "-Werror", "-pedantic"])
            .args(how)
            .arg("-I")
            .arg(root.join("include"))
            .args(["-x", language])
            .arg(root.join("tests/layout/near.c"))
            .arg("-o")
            .arg(to)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.program))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
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
        // Names of threads are not unique, addresses of live values are.
        let unique = Box::new(0u8);
        let name = format!("layout-{}-{:p}", std::process::id(), &raw const *unique);
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
