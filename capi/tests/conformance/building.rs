//! Programs are built when the first trial wants them, once in each way.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::compiler::{Compiler, Dialect, Workplace, root};
use crate::files::Library;

/// How programs are built.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) compiler: Compiler,
    pub(crate) standard: &'static str,
    pub(crate) library: Library,
    /// As `GASNET_*` names the mode.
    pub(crate) threads: &'static str,
    pub(crate) debug: bool,
}

impl Way {
    pub(crate) const RELEASE: Self = Self {
        name: "C99",
        compiler: Compiler::OWN,
        standard: "c99",
        library: Library::Static,
        threads: "SEQ",
        debug: false,
    };
    pub(crate) const DEBUG: Self = Self {
        name: "C++11, debug",
        compiler: Compiler::OWN,
        standard: "c++11",
        library: Library::Static,
        threads: "SEQ",
        debug: true,
    };
    pub(crate) const CLANG: Self = Self {
        name: "C17 with clang, PARSYNC",
        compiler: Compiler::CLANG,
        standard: "c17",
        library: Library::Static,
        threads: "PARSYNC",
        debug: false,
    };

    pub(crate) const CPP20: Self = Self {
        name: "C++20, PAR",
        compiler: Compiler::OWN,
        standard: "c++20",
        library: Library::Static,
        threads: "PAR",
        debug: false,
    };
    /// Threads that exclude each other.
    pub(crate) const SERIAL: Self = Self {
        name: "C17, PARSYNC",
        compiler: Compiler::OWN,
        standard: "c17",
        library: Library::Static,
        threads: "PARSYNC",
        debug: false,
    };
    pub(crate) const SERIAL_DEBUG: Self = Self {
        name: "C11, PARSYNC, debug",
        compiler: Compiler::OWN,
        standard: "c11",
        library: Library::Static,
        threads: "PARSYNC",
        debug: true,
    };
    pub(crate) const C23_DEBUG: Self = Self {
        name: "C23, PAR, debug",
        compiler: Compiler::OWN,
        standard: "c2x",
        library: Library::Static,
        threads: "PAR",
        debug: true,
    };

    fn dialect(self) -> Result<Dialect, String> {
        let known = Dialect::ALL.into_iter();
        let mut same = known.filter(|dialect| dialect.standard == self.standard);
        same.next()
            .ok_or_else(|| format!("{} is not known", self.standard))
    }

    fn options(self) -> Vec<&'static str> {
        let mut options = vec!["-D_POSIX_C_SOURCE=200809L"];
        options.extend(self.mode());
        options
    }

    /// What a program and its library must have in common.
    fn mode(self) -> Vec<&'static str> {
        let threads: &[&str] = match self.threads {
            "PAR" => &["-DGASNET_PAR", "-D_REENTRANT"],
            "PARSYNC" => &["-DGASNET_PARSYNC", "-D_REENTRANT"],
            _ => &["-DGASNET_SEQ"],
        };
        let rest: &[&str] = if self.debug {
            &["-O0", "-g", "-DGASNET_DEBUG=1"]
        } else {
            &["-O2", "-DNDEBUG"]
        };
        [threads, rest].concat()
    }
}

/// A program and what it needs to be built.
pub(crate) struct Program {
    pub(crate) way: Way,
    sources: Vec<PathBuf>,
    built: OnceLock<Result<(Workplace, PathBuf), String>>,
}

impl Program {
    /// One of `tests/c/`, by its name, which may hold a directory.
    pub(crate) fn new(way: Way, name: &str) -> Self {
        let directory = root().join("tests/c");
        let mut sources = vec![directory.join(format!("{name}.c"))];
        let second = directory.join(format!("{name}_second.c"));
        sources.extend(second.is_file().then_some(second));
        Self {
            way,
            sources,
            built: OnceLock::new(),
        }
    }

    /// The program, built if it is not yet.
    pub(crate) fn path(&self) -> Result<&Path, String> {
        let built = self.built.get_or_init(|| self.build());
        match built {
            Ok((_, path)) => Ok(path),
            Err(said) => Err(said.clone()),
        }
    }

    fn build(&self) -> Result<(Workplace, PathBuf), String> {
        let place = Workplace::new().map_err(|error| error.to_string())?;
        let to = place.file("program");
        let variant = variant(self.way, &place)?;
        let mut after = vec![variant.display().to_string()];
        after.extend(self.way.library.words());
        after.extend(["-o".to_owned(), to.display().to_string()]);
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        let options = self.way.options();
        let dialect = self.way.dialect()?;
        self.way
            .compiler
            .compile(dialect, &options, &self.sources, &after)?;
        Ok((place, to))
    }
}

/// The object that makes the one library the one for this thread mode, debug or not.
fn variant(way: Way, place: &Workplace) -> Result<PathBuf, String> {
    let to = place.file("variant.o");
    let mut command = Command::new(way.compiler.c);
    command
        .args(["-std=c99", "-c", "-DARGONET_CONDUIT_WORD=\"smp\""])
        .args(way.mode())
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join("capi/variant/variant.c"))
        .arg("-o")
        .arg(&to)
        .stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(to);
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}
