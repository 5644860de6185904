//! Programs are built when the first trial wants them, once in each way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace, root};
use crate::files::Library;
use crate::network::Network;

/// How programs are built, and how their jobs are started.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) compiler: Compiler,
    pub(crate) standard: &'static str,
    pub(crate) library: Library,
    pub(crate) debug: bool,
    /// Whether `argonet run` starts the ranks, so that each has addresses of its own; forked ones
    /// have the same.
    pub(crate) launched: bool,
    /// As `GASNET_*` names the mode.
    pub(crate) threads: &'static str,
    pub(crate) segment: Segment,
    /// The network of its jobs.
    pub(crate) network: Network,
}

/// Memory of a process that others reach.
#[derive(Clone, Copy)]
pub(crate) enum Segment {
    Fast,
    Large,
    Everything,
}

impl Way {
    /// A trial of a program that is built in this way; ignored where there is no compiler for that.
    pub(crate) fn trial(
        self,
        title: String,
        test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
    ) -> Trial {
        let is_there = self.compiler.speaks(self.standard.starts_with("c++"));
        Trial::test(title, test).with_ignored_flag(!is_there)
    }

    pub(crate) const RELEASE: Self = Self {
        name: "C99",
        compiler: Compiler::OWN,
        standard: "c99",
        library: Library::Static,
        debug: false,
        launched: false,
        threads: "SEQ",
        segment: Segment::Fast,
        network: Network::Memory,
    };
    pub(crate) const DEBUG: Self = Self {
        name: "C++11, debug",
        compiler: Compiler::OWN,
        standard: "c++11",
        library: Library::Shared,
        debug: true,
        launched: false,
        threads: "SEQ",
        segment: Segment::Fast,
        network: Network::Memory,
    };
    pub(crate) const CLANG: Self = Self {
        name: "C17 with clang, PARSYNC",
        compiler: Compiler::CLANG,
        standard: "c17",
        library: Library::Shared,
        debug: false,
        launched: false,
        threads: "PARSYNC",
        segment: Segment::Fast,
        network: Network::Memory,
    };

    pub(crate) const CPP20: Self = Self {
        name: "C++20, PAR",
        compiler: Compiler::OWN,
        standard: "c++20",
        library: Library::Static,
        debug: false,
        launched: false,
        threads: "PAR",
        segment: Segment::Fast,
        network: Network::Memory,
    };
    pub(crate) const C23_DEBUG: Self = Self {
        name: "C23, PAR, debug",
        compiler: Compiler::OWN,
        standard: "c2x",
        library: Library::Shared,
        debug: true,
        launched: false,
        threads: "PAR",
        segment: Segment::Fast,
        network: Network::Memory,
    };
    pub(crate) const LAUNCHED: Self = Self {
        name: "C11, launched",
        compiler: Compiler::OWN,
        standard: "c11",
        library: Library::Static,
        debug: false,
        launched: true,
        threads: "SEQ",
        segment: Segment::Fast,
        network: Network::Memory,
    };
    pub(crate) const LAUNCHED_DEBUG: Self = Self {
        name: "C++17, debug, launched",
        compiler: Compiler::OWN,
        standard: "c++17",
        library: Library::Shared,
        debug: true,
        launched: true,
        threads: "SEQ",
        segment: Segment::Fast,
        network: Network::Memory,
    };

    /// The same for several threads.
    pub(crate) fn threaded(self) -> Self {
        Self {
            threads: "PAR",
            ..self
        }
    }

    /// The same over a network.
    pub(crate) fn over(self, network: Network) -> Self {
        Self { network, ..self }
    }

    pub(crate) const TCP: Self = Self {
        name: "C99, tcp",
        network: Network::Wire,
        ..Self::RELEASE
    };
    pub(crate) const TCP_PAR_DEBUG: Self = Self {
        name: "C23, PAR, debug, tcp",
        network: Network::Wire,
        ..Self::C23_DEBUG
    };
    pub(crate) const TCP_PAIRS: Self = Self {
        name: "C++20, PAR, tcp between pairs",
        network: Network::Pairs,
        ..Self::CPP20
    };
    pub(crate) const TCP_PAIRS_LAUNCHED: Self = Self {
        name: "C++17, debug, launched, tcp between pairs",
        network: Network::Pairs,
        ..Self::LAUNCHED_DEBUG
    };
    pub(crate) const PORTALS: Self = Self {
        name: "C99, portals",
        library: Library::Shared,
        network: Network::Interfaces,
        ..Self::RELEASE
    };
    pub(crate) const PORTALS_PAR_DEBUG: Self = Self {
        name: "C23, PAR, debug, portals",
        network: Network::Interfaces,
        ..Self::C23_DEBUG
    };
    pub(crate) const PORTALS_PAIRS_LAUNCHED: Self = Self {
        name: "C++20, PAR, launched, portals between pairs",
        network: Network::InterfacesOfPairs,
        launched: true,
        ..Self::CPP20
    };
    pub(crate) const USNIC: Self = Self {
        name: "C99, usnic",
        network: Network::Datagrams,
        ..Self::RELEASE
    };
    pub(crate) const USNIC_PAR_DEBUG: Self = Self {
        name: "C23, PAR, debug, usnic",
        network: Network::Datagrams,
        ..Self::C23_DEBUG
    };

    pub(crate) const RAILS: Self = Self {
        name: "C99, rails",
        network: Network::Rails,
        ..Self::RELEASE
    };
    pub(crate) const RAILS_PAR_DEBUG: Self = Self {
        name: "C23, PAR, debug, rails",
        network: Network::Rails,
        ..Self::C23_DEBUG
    };

    /// Debug in plain C.
    pub(crate) const C99_DEBUG: Self = Self {
        name: "C99, debug",
        library: Library::Shared,
        debug: true,
        ..Self::RELEASE
    };

    /// Threads that exclude each other.
    pub(crate) const SERIAL: Self = Self {
        name: "C17, PARSYNC",
        standard: "c17",
        threads: "PARSYNC",
        ..Self::RELEASE
    };
    pub(crate) const SERIAL_DEBUG: Self = Self {
        name: "C11, PARSYNC, debug",
        standard: "c11",
        threads: "PARSYNC",
        debug: true,
        ..Self::RELEASE
    };

    pub(crate) const EVERYTHING: Self = Self {
        name: "C99, everything",
        segment: Segment::Everything,
        ..Self::RELEASE
    };
    pub(crate) const EVERYTHING_DEBUG: Self = Self {
        name: "C++11, everything, debug",
        segment: Segment::Everything,
        ..Self::DEBUG
    };
    pub(crate) const LARGE: Self = Self {
        name: "C99, large",
        segment: Segment::Large,
        ..Self::RELEASE
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

    /// Options that a program and its library must have in common.
    fn mode(self) -> Vec<&'static str> {
        let threads: &[&str] = match self.threads {
            "PAR" => &["-DGASNET_PAR", "-D_REENTRANT"],
            "PARSYNC" => &["-DGASNET_PARSYNC", "-D_REENTRANT"],
            _ => &["-DGASNET_SEQ"],
        };
        let segment: &[&str] = match self.segment {
            Segment::Fast => &[],
            Segment::Large => &["-DGASNET_SEGMENT_LARGE"],
            Segment::Everything => &["-DGASNET_SEGMENT_EVERYTHING"],
        };
        let rest: &[&str] = if self.debug {
            &["-O0", "-g", "-DGASNET_DEBUG=1"]
        } else {
            &["-O2", "-DNDEBUG"]
        };
        [threads, segment, rest].concat()
    }
}

/// A program, with the sources and options of its build.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) way: Way,
    sources: Vec<PathBuf>,
    options: Vec<String>,
    /// The conduit that it is linked for.
    word: &'static str,
    built: Arc<OnceLock<Result<(Workplace, PathBuf), String>>>,
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
            options: Vec::new(),
            word: "smp",
            built: Arc::default(),
        }
    }

    /// The same, linked for another conduit.
    pub(crate) fn linked_for(self, word: &'static str) -> Self {
        Self {
            word,
            built: Arc::default(),
            ..self
        }
    }

    /// With other files and options, too.
    pub(crate) fn with(mut self, sources: Vec<PathBuf>, options: Vec<String>) -> Self {
        self.sources.extend(sources);
        self.options = options;
        self
    }

    /// The same, built once for all, for runs over a network.
    pub(crate) fn over(&self, network: Network) -> Arc<Self> {
        Arc::new(Self {
            way: self.way.over(network),
            ..self.clone()
        })
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
        let variant = variant(self.way, self.word)?;
        let mut after = vec![variant.display().to_string()];
        after.extend(self.way.library.words());
        after.extend(["-o".to_owned(), to.display().to_string()]);
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        let mut options = self.way.options();
        options.extend(self.options.iter().map(String::as_str));
        let dialect = self.way.dialect()?;
        self.way
            .compiler
            .compile(dialect, &options, &self.sources, &after)?;
        Ok((place, to))
    }
}

/// Objects that make the one library the one for a thread mode, debug or not: a workplace each.
static VARIANTS: Mutex<BTreeMap<String, Workplace>> = Mutex::new(BTreeMap::new());

/// Removes the files that programs share, after the last build.
pub(crate) fn end() {
    let mut variants = VARIANTS.lock().unwrap_or_else(PoisonError::into_inner);
    variants.clear();
}

/// The object of this way, compiled if no program of this mode was built before.
fn variant(way: Way, word: &str) -> Result<PathBuf, String> {
    const OBJECT: &str = "variant.o";
    let mut variants = VARIANTS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("{} {word} {:?}", way.compiler.c, way.mode());
    if let Some(place) = variants.get(&key) {
        return Ok(place.file(OBJECT));
    }
    let place = Workplace::new().map_err(|error| error.to_string())?;
    let to = place.file(OBJECT);
    let mut command = Command::new(way.compiler.c);
    command
        .args(["-std=c99", "-c"])
        .arg(format!("-DARGONET_CONDUIT_WORD=\"{word}\""))
        .args(way.mode())
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join("capi/variant/variant.c"))
        .arg("-o")
        .arg(&to)
        .stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        variants.insert(key, place);
        return Ok(to);
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}
