//! `cargo xtask install`: the tree in which C runtimes look for GASNet; `uninstall` takes it away
//! again.

mod archive;
mod build;
mod directory;
mod manifest;
mod packages;
mod sources;
mod tools;
mod tree;
mod uninstall;
mod variant;
mod words;

pub(crate) use uninstall::{Options as UninstallOptions, uninstall};

use build::Found;
use sources::Sources;
use std::path::{Path, PathBuf};
use tools::Tools;
use tree::{LAST, Tree};
use variant::Chosen;

/// Options of the command line.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Directory to install into; made where it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) prefix: PathBuf,
    /// Put the tree below this directory, as DESTDIR of make does: the files name --prefix without
    /// it
    #[arg(long, value_name = "DIR")]
    pub(crate) destdir: Option<PathBuf>,
    /// Variants for clients that are compiled with GASNET_DEBUG
    #[arg(long)]
    pub(crate) debug: bool,
    /// Memory of a process that others reach: GASNET_SEGMENT_FAST, LARGE or EVERYTHING
    #[arg(long, value_enum, default_value_t)]
    pub(crate) segment: Segment,
    /// Variants for these conduits alone
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = conduits())]
    pub(crate) conduits: Vec<String>,
    /// Install this static library of argonet-capi instead of building one
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
}

/// Values of `--conduits`.
fn conduits() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(variant::conduits().map(|conduit| conduit.name()))
}

/// Manual pages that belong to no conduit.
const PAGES: [&str; 3] = ["amudprun.1", "argonet-c.7", "argonet-settings.7"];

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
    match run(options) {
        Ok(prefix) => {
            println!("installed in {prefix}");
            true
        }
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

/// Where the tree of an absolute prefix is put: there, or below the directory for staging.
fn place(prefix: &Path, destdir: Option<&Path>) -> Result<PathBuf, String> {
    let Some(destdir) = destdir else {
        return Ok(prefix.to_path_buf());
    };
    let below = prefix.strip_prefix("/").unwrap_or(prefix);
    Ok(at(destdir, std::path::absolute(destdir))?.join(below))
}

/// Where it is installed.
fn run(options: &Options) -> Result<String, String> {
    let prefix = at(&options.prefix, std::path::absolute(&options.prefix))?;
    let place = place(&prefix, options.destdir.as_deref())?;
    let text = prefix
        .to_str()
        .ok_or_else(|| format!("--prefix {prefix:?}: the files of make cannot name it"))?;
    if let Some(bad) = words::unspeakable(text) {
        return Err(format!(
            "--prefix {prefix:?}: the shell, make, pkg-config and CMake do not all take {bad:?} in a path; choose a \
             directory without it"
        ));
    }
    let tools = Tools::find()?;
    // First of all, so that no user waits for a build that has nowhere to go.
    let mut tree = Tree::begin(&place)?;
    let library = match &options.library {
        Some(library) => library.clone(),
        None => sources::library()?,
    };
    let sources = Sources::new();
    let found = Found::new(text, tools, &sources, &tree)?;
    fill(&mut tree, options, &library, &sources, &found)?;
    tree.put(&sources.build_id())?;
    Ok(place.display().to_string())
}

/// Makes all files.
fn fill(
    tree: &mut Tree,
    options: &Options,
    library: &Path,
    sources: &Sources,
    found: &Found,
) -> Result<(), String> {
    let chosen = Chosen::new(&options.conduits, options.debug);
    sources.headers(tree)?;
    configuration(tree, options, sources, &found.prefix)?;
    build::library(tree, library, found)?;
    for variant in chosen.variants() {
        build::variant(tree, &variant, sources, found)?;
    }
    for conduit in &chosen.conduits {
        let name = conduit.name();
        let core = "/* This conduit has nothing of its own: gasnetex.h has all there is. */\n";
        tree.write(&format!("include/{name}-conduit/gasnet_core.h"), core)?;
        let macro_name = format!("ARGONET_CONDUIT_{}", name.to_ascii_uppercase());
        let named = format!(
            "/* For gasnetex.h, where no option of the compiler names the conduit: the directory of one does. */\n#define {macro_name} 1\n"
        );
        tree.write(&format!("include/{name}-conduit/argonet_conduit.h"), &named)?;
        tree.program(&format!("bin/gasnetrun_{name}"), &conduit.launcher())?;
        sources.page(&format!("gasnetrun_{name}.1"), tree)?;
    }
    tree.program("bin/amudprun", &variant::amudprun())?;
    for page in PAGES {
        sources.page(page, tree)?;
    }
    packages::write(tree, &chosen, found)?;
    directory::write(tree, &chosen, found)
}

/// Puts what is known only now into the installed `gasnet_config.h`.
fn configuration(
    tree: &mut Tree,
    options: &Options,
    sources: &Sources,
    prefix: &str,
) -> Result<(), String> {
    let path = tree.path(LAST)?;
    let mut text = at(&path, std::fs::read_to_string(&path))?;
    let debug = if options.debug { " --debug" } else { "" };
    let segment = match options.segment {
        Segment::Fast => String::new(),
        other => format!(" --segment={}", other.word()),
    };
    let conduits = match options.conduits.as_slice() {
        [] => String::new(),
        some => format!(" --conduits={}", some.join(",")),
    };
    let arguments = format!("--prefix={prefix}{debug}{segment}{conduits}");
    for (name, value) in [
        ("GASNETI_BUILD_ID", words::c_string(&sources.build_id())),
        ("GASNETI_CONFIGURE_ARGS", words::c_string(&arguments)),
        // The number that config.h compares with.
        (
            "GASNETI_SEGMENT_DEFAULT",
            (options.segment as u32).to_string(),
        ),
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
    tree.write(LAST, &text)
}
