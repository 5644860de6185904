//! The variants of the library, and the options of compilers that select one.

use super::build::Found;
use super::words::shell;
use argonet_settings::{CONDUITS, ConduitRow, LinkName};

/// A conduit by one of the names that its clients know.
#[derive(Clone, Copy)]
pub(super) struct Conduit {
    row: &'static ConduitRow,
    link: &'static LinkName,
}

/// All that exist.
pub(super) fn conduits() -> impl Iterator<Item = Conduit> {
    let of = |row: &'static ConduitRow| row.links.iter().map(move |link| Conduit { row, link });
    CONDUITS.iter().copied().flat_map(of)
}

/// Starts programs of one host by its settings alone.
const OF_ONE_HOST: &str = include_str!("gasnetrun_smp.sh");

/// Starts programs whose first argument is their number of ranks.
const AMUDPRUN: &str = include_str!("amudprun.sh");

impl Conduit {
    /// As files and options name it.
    pub(super) const fn name(&self) -> &'static str {
        self.link.name
    }

    /// As `ARGONET_CONDUIT` names what its programs run over where nothing else is said.
    const fn word(&self) -> &'static str {
        self.row.name
    }

    /// Whether releases of GASNet have one of this name.
    pub(super) const fn is_gasnets(&self) -> bool {
        self.link.is_gasnets
    }

    /// The script that starts its programs, `gasnetrun_NAME`.
    pub(super) fn launcher(&self) -> String {
        let script = match self.row.leaves_neighborhoods {
            true => AMUDPRUN,
            false => OF_ONE_HOST,
        };
        script.replace("@CONDUIT@", self.word())
    }
}

/// `amudprun`: the launcher of clients of udp, whether that is installed or not.
pub(super) fn amudprun() -> String {
    let udp = conduits().find(|conduit| conduit.name() == "udp");
    udp.map(|udp| udp.launcher()).unwrap_or_default()
}

/// Thread modes.
const MODES: [&str; 3] = ["seq", "par", "parsync"];

/// A conduit in a thread mode, for clients with or without `GASNET_DEBUG`.
pub(super) struct Variant {
    pub(super) conduit: &'static str,
    /// As `ARGONET_CONDUIT` names the conduit.
    pub(super) word: &'static str,
    pub(super) mode: &'static str,
    debug: bool,
    is_apart: bool,
}

/// How a client is linked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Linking {
    Static,
    /// With the libraries in `lib/shared`, which programs find by a run path.
    Shared,
}

impl Linking {
    pub(super) const ALL: [Self; 2] = [Self::Static, Self::Shared];

    /// The end of its files' names.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Static => "",
            Self::Shared => "-shared",
        }
    }
}

/// How a file names the tree.
#[derive(Clone, Copy)]
pub(super) enum Root<'a> {
    /// By the path where the tree will lie.
    Path(&'a str),
    /// By a variable of pkg-config, whose value is a word for the shell.
    Variable,
}

impl Root<'_> {
    /// An option of a compiler with a directory of the tree, or the tree itself, as a word for the
    /// shell.
    fn word(self, option: &str, directory: &str) -> String {
        match self {
            Self::Path(prefix) => shell(&format!("{option}{prefix}{directory}")),
            Self::Variable => format!("{option}${{prefix}}{directory}"),
        }
    }
}

/// The conduits and modes of an installation.
pub(super) struct Chosen {
    pub(super) conduits: Vec<Conduit>,
    pub(super) debug: bool,
}

impl Chosen {
    /// Conduits by their names; all if there are none.
    pub(super) fn new(names: &[String], debug: bool) -> Self {
        let is_chosen =
            |one: &Conduit| names.is_empty() || names.iter().any(|name| name == one.name());
        Self {
            conduits: conduits().filter(is_chosen).collect(),
            debug,
        }
    }

    pub(super) fn variants(&self) -> impl Iterator<Item = Variant> + '_ {
        self.conduits.iter().flat_map(|conduit| {
            MODES.into_iter().map(|mode| Variant {
                conduit: conduit.name(),
                word: conduit.word(),
                mode,
                debug: self.debug,
                is_apart: conduit.link.is_apart,
            })
        })
    }
}

impl Variant {
    /// As in the name of its file for make.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.conduit, self.mode)
    }

    /// Its file for make, below the root of the tree.
    ///
    /// Clients take every file of the conduit's directory for a conduit and a mode with one hyphen
    /// between, so shared libraries have theirs apart.
    pub(super) fn fragment(&self, linking: Linking) -> String {
        let place = match linking {
            Linking::Static if self.is_apart => "static/",
            Linking::Static => "",
            Linking::Shared => "shared/",
        };
        let (conduit, name, suffix) = (self.conduit, self.name(), linking.suffix());
        format!("include/{conduit}-conduit/{place}{name}{suffix}.mak")
    }

    /// As `-l` takes it.
    pub(super) fn library(&self) -> String {
        format!("gasnet-{}", self.name())
    }

    /// Macros that choose the variant in the headers, without `-D`.
    pub(super) fn defines(&self) -> Vec<String> {
        let mut all = vec!["_GNU_SOURCE=1".to_owned()];
        if self.mode != "seq" {
            all.push("_REENTRANT".to_owned());
        }
        all.push(format!("GASNET_{}", self.mode.to_uppercase()));
        all.push(format!("ARGONET_CONDUIT_{}=1", self.conduit.to_uppercase()));
        if self.debug {
            all.push("GASNET_DEBUG=1".to_owned());
        }
        all
    }

    /// How its own code is compiled, and its clients' may be.
    pub(super) const fn optimization(&self) -> &'static str {
        if self.debug { "-g" } else { "-O2" }
    }

    /// All variables, without their common `GASNET_`.
    ///
    /// No value refers to another: not only make reads them.
    pub(super) fn variables(
        &self,
        linking: Linking,
        found: &Found,
        root: Root<'_>,
    ) -> Vec<(&'static str, String)> {
        let (cc, cxx) = (found.tools.cc.words(), found.tools.cxx.words());
        let option = |start: &str, directory: &str| root.word(start, directory);
        let conduit = format!("/include/{}-conduit", self.conduit);
        let includes = [option("-I", "/include"), option("-I", &conduit)].join(" ");
        let defines: Vec<String> = self.defines().iter().map(|d| format!("-D{d}")).collect();
        let defines = defines.join(" ");
        let preprocessor = format!("{defines} {includes}");
        // Some users keep the words of -L and -l only, and the first must be this directory.
        let own = [format!("-l{}", self.library()), "-largonet".to_owned()];
        let mut libraries = Vec::new();
        match linking {
            Linking::Static => {
                libraries.push(option("-L", "/lib"));
                libraries.extend(own);
                libraries.extend_from_slice(&found.system_libraries);
            }
            Linking::Shared => {
                libraries.push(option("-L", "/lib/shared"));
                libraries.push(option("-Wl,-rpath,", "/lib/shared"));
                libraries.extend(own);
            }
        }
        let optimization = self.optimization().to_owned();
        vec![
            ("PREFIX", root.word("", "")),
            ("CC", cc.clone()),
            ("OPT_CFLAGS", optimization.clone()),
            ("MISC_CFLAGS", String::new()),
            ("CFLAGS", optimization.clone()),
            ("MISC_CPPFLAGS", String::new()),
            ("CPPFLAGS", preprocessor.clone()),
            ("CXX", cxx),
            ("OPT_CXXFLAGS", optimization.clone()),
            ("MISC_CXXFLAGS", String::new()),
            ("CXXFLAGS", optimization),
            ("MISC_CXXCPPFLAGS", String::new()),
            ("CXXCPPFLAGS", preprocessor),
            ("DEFINES", defines),
            ("INCLUDES", includes),
            ("LD", cc),
            ("LDFLAGS", String::new()),
            ("LIBS", libraries.join(" ")),
        ]
    }
}
