//! The variants of the library, and the options of compilers that select one.

use super::build::Found;
use super::words::shell;

/// A conduit, as its clients see it.
pub(super) struct Conduit {
    /// As files and options name it.
    pub(super) name: &'static str,
    /// As `ARGONET_CONDUIT` names what its programs run over where nothing else is said.
    pub(super) word: &'static str,
    /// The script that starts its programs, `gasnetrun_NAME`; [`Conduit::launcher`] has it with the
    /// conduit filled in.
    script: &'static str,
    /// Whether releases of GASNet have one of this name, so that build systems of clients know it.
    pub(super) is_gasnets: bool,
    /// Whether the name is within another that build systems of clients know, as `portals` is
    /// within `portals4`.
    ///
    /// Such a system collects `include/*-conduit/*.mak`, keeps of its own list what matches a name
    /// that it found, and then asks for a conduit that does not exist. So the files of make lie
    /// where it does not look.
    is_within_another: bool,
}

/// All that exist, with `portals` named as older releases of GASNet had it, and `udp`.
///
/// Clients that know the networks of GASNet alone ask for udp if they want the one for Ethernet;
/// here it is tcp by that name.
pub(super) const CONDUITS: [Conduit; 5] = [
    Conduit {
        name: "smp",
        word: "smp",
        script: include_str!("gasnetrun_smp.sh"),
        is_gasnets: true,
        is_within_another: false,
    },
    Conduit {
        name: "tcp",
        word: "tcp",
        script: AMUDPRUN,
        is_gasnets: false,
        is_within_another: false,
    },
    Conduit {
        name: "udp",
        word: "tcp",
        script: AMUDPRUN,
        is_gasnets: true,
        is_within_another: false,
    },
    Conduit {
        name: "portals",
        word: "portals",
        script: AMUDPRUN,
        is_gasnets: false,
        is_within_another: true,
    },
    Conduit {
        name: "usnic",
        word: "usnic",
        script: AMUDPRUN,
        is_gasnets: false,
        is_within_another: false,
    },
];

/// Starts programs whose first argument is their number of ranks.
const AMUDPRUN: &str = include_str!("amudprun.sh");

impl Conduit {
    /// The script that starts its programs.
    pub(super) fn launcher(&self) -> String {
        launcher(self.script, self.word)
    }
}

/// `amudprun`: the launcher of tcp.
pub(super) fn amudprun() -> String {
    launcher(AMUDPRUN, "tcp")
}

/// A script for a conduit.
fn launcher(script: &str, word: &str) -> String {
    script.replace("@CONDUIT@", word)
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
    is_within_another: bool,
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

/// The conduits and modes of an installation.
pub(super) struct Chosen {
    pub(super) conduits: Vec<&'static Conduit>,
    pub(super) debug: bool,
}

impl Chosen {
    /// Conduits by their names; all if there are none.
    pub(super) fn new(names: &[String], debug: bool) -> Self {
        let conduits = CONDUITS.iter();
        let conduits = conduits
            .filter(|conduit| names.is_empty() || names.iter().any(|name| name == conduit.name));
        Self {
            conduits: conduits.collect(),
            debug,
        }
    }

    pub(super) fn variants(&self) -> impl Iterator<Item = Variant> + '_ {
        self.conduits.iter().flat_map(|conduit| {
            MODES.into_iter().map(|mode| Variant {
                conduit: conduit.name,
                word: conduit.word,
                mode,
                debug: self.debug,
                is_within_another: conduit.is_within_another,
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
            Linking::Static if self.is_within_another => "static/",
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
    pub(super) fn variables(&self, linking: Linking, found: &Found) -> Vec<(&'static str, String)> {
        let prefix = &found.prefix;
        let (cc, cxx) = (found.tools.cc.words(), found.tools.cxx.words());
        let option = |start: &str, directory: &str| shell(&format!("{start}{prefix}{directory}"));
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
            ("PREFIX", shell(prefix)),
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
