//! `cargo xtask install`: the tree in which C runtimes look for GASNet.

mod build;
mod flags;
mod words;

use build::{Sources, Tools};
use flags::{Variant, make_file, package_file};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What the command line says.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Directory to install into; made where it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) prefix: PathBuf,
    /// Variants for clients that are compiled with GASNET_DEBUG
    #[arg(long)]
    pub(crate) debug: bool,
    /// What of a process's memory others reach: GASNET_SEGMENT_FAST, LARGE or EVERYTHING
    #[arg(long, value_enum, default_value_t)]
    pub(crate) segment: Segment,
    /// Install this static library of argonet-capi instead of building one
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
}

/// The segment configuration of an installation.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Segment {
    /// The segment that it attaches, as long as a network can register
    #[default]
    Fast,
    /// The same, as long as memory allows
    Large,
    /// All of it
    Everything,
}

impl Segment {
    /// As the command line has it.
    const fn word(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Large => "large",
            Self::Everything => "everything",
        }
    }
}

/// Installs; whether that worked.
pub(crate) fn install(options: &Options) -> bool {
    match Installation::new(options).and_then(|it| it.run(options.library.as_deref())) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("cargo xtask install: {error}");
            false
        }
    }
}

/// A file system's error, with the path that it is about.
fn at<T>(path: &Path, result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    at(path, std::fs::write(path, text))
}

struct Installation {
    prefix: PathBuf,
    /// The same as text, for files that name it.
    text: String,
    debug: bool,
    segment: Segment,
    tools: Tools,
}

impl Installation {
    fn new(options: &Options) -> Result<Self, String> {
        let prefix = at(&options.prefix, std::path::absolute(&options.prefix))?;
        let text = prefix.to_str().filter(|t| !t.contains(['\n', '\r']));
        let Some(text) = text.map(str::to_owned) else {
            return Err(format!(
                "--prefix {prefix:?}: make cannot name such a directory"
            ));
        };
        Ok(Self {
            prefix,
            text,
            debug: options.debug,
            segment: options.segment,
            tools: Tools::find()?,
        })
    }

    fn run(&self, library: Option<&Path>) -> Result<(), String> {
        // First of all, so that nobody waits for a build that has nowhere to go.
        let conduit = self.directory("include/smp-conduit")?;
        let packages = self.directory("lib/pkgconfig")?;
        let programs = self.directory("bin")?;
        let library = match library {
            Some(library) => library.to_path_buf(),
            None => build::library()?,
        };
        let system = self.tools.system_libraries()?;
        let to = self.prefix.join("lib/libargonet.a");
        at(&library, std::fs::copy(&library, &to))?;
        let sources = Sources::new();
        sources.headers(&self.prefix.join("include"))?;
        self.configuration(&sources)?;
        let core = "/* This conduit has nothing of its own: gasnetex.h has all there is. */\n";
        write(&conduit.join("gasnet_core.h"), core)?;
        for variant in Variant::all(self.debug) {
            self.tools.variant(&sources, &variant, &self.prefix)?;
            let variables = variant.variables(&self.text, &self.tools, &system);
            let file = conduit.join(format!("{}.mak", variant.name()));
            write(&file, &make_file(&variant, &variables))?;
            let file = packages.join(format!("{}.pc", variant.library()));
            write(
                &file,
                &package_file(&variant, &variables, &sources.version()?),
            )?;
        }
        let launcher = programs.join("gasnetrun_smp");
        write(&launcher, include_str!("gasnetrun_smp.sh"))?;
        let mode = std::fs::Permissions::from_mode(0o755);
        at(&launcher, std::fs::set_permissions(&launcher, mode))?;
        println!("installed in {}", self.text);
        Ok(())
    }

    fn directory(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.prefix.join(name);
        let made = std::fs::create_dir_all(&path);
        made.map_err(|error| format!("--prefix: {} cannot be made: {error}", path.display()))?;
        Ok(path)
    }

    /// Puts what is known only now into the installed `gasnet_config.h`.
    fn configuration(&self, sources: &Sources) -> Result<(), String> {
        let path = self.prefix.join("include/gasnet_config.h");
        let mut text = at(&path, std::fs::read_to_string(&path))?;
        let debug = if self.debug { " --debug" } else { "" };
        let segment = match self.segment {
            Segment::Fast => String::new(),
            other => format!(" --segment={}", other.word()),
        };
        for (name, value) in [
            ("GASNETI_BUILD_ID", words::c_string(&sources.build_id())),
            (
                "GASNETI_CONFIGURE_ARGS",
                words::c_string(&format!("--prefix={}{debug}{segment}", self.text)),
            ),
            // The number that config.h compares with.
            ("GASNETI_SEGMENT_DEFAULT", (self.segment as u32).to_string()),
        ] {
            let start = format!("#define {name} ");
            let mut found = 0;
            let lines: Vec<String> = text
                .lines()
                .map(|line| match line.starts_with(&start) {
                    true => {
                        found += 1;
                        format!("{start}{value}")
                    }
                    false => line.to_owned(),
                })
                .collect();
            if found != 1 {
                return Err(format!("{}: {found} lines define {name}", path.display()));
            }
            text = lines.join("\n") + "\n";
        }
        write(&path, &text)
    }
}
