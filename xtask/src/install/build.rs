//! Building what is installed: the one library, its variants by the C compiler, and the shared form
//! of both.

use super::archive;
use super::sources::Sources;
use super::tools::{Tools, all_said, program};
use super::tree::Tree;
use super::variant::Variant;
use super::words;
use std::path::{Path, PathBuf};

/// Tools and libraries of the system for the installation.
pub(super) struct Found {
    /// Where everything will lie.
    pub(super) prefix: String,
    /// The release whose interface this is.
    pub(super) version: String,
    pub(super) tools: Tools,
    /// Options.
    pub(super) system_libraries: Vec<String>,
    /// Of the compilers, for C and for C++.
    pub(super) families: [[&'static str; 2]; 2],
    /// Only clients want it.
    pub(super) perl: String,
}

impl Found {
    pub(super) fn new(
        prefix: &str,
        tools: Tools,
        sources: &Sources,
        tree: &Tree,
    ) -> Result<Self, String> {
        let perl = program("perl".as_ref()).unwrap_or_else(|| "perl".into());
        Ok(Self {
            prefix: prefix.to_owned(),
            version: sources.version()?,
            system_libraries: Tools::system_libraries(&tree.path("empty.a")?)?,
            families: tools.families(),
            tools,
            perl: perl.display().to_string(),
        })
    }
}

/// The number of the shared libraries' interface.
///
/// Clients are compiled for a release and refuse others by their symbols.
const NUMBER: &str = "0";

/// Puts the library and its shared form into the tree.
pub(super) fn library(tree: &mut Tree, from: &Path, found: &Found) -> Result<(), String> {
    // Before a linker complains of it in its own words.
    super::at(from, std::fs::File::open(from))?;
    let exported = tree.path("exported")?;
    super::at(
        &exported,
        std::fs::write(&exported, archive::version_script()),
    )?;
    let mut script = std::ffi::OsString::from("-Wl,--version-script=");
    script.push(&exported);
    let mut words: Vec<std::ffi::OsString> = vec![
        script,
        "-Wl,--gc-sections".into(),
        "-Wl,--whole-archive".into(),
        from.into(),
        "-Wl,--no-whole-archive".into(),
    ];
    words.extend(found.system_libraries.iter().map(Into::into));
    let shared = shared(tree, "argonet", words, found)?;
    archive::write(tree, from, &shared, found)
}

/// Puts the library of a variant into the tree.
pub(super) fn variant(
    tree: &mut Tree,
    variant: &Variant,
    sources: &Sources,
    found: &Found,
) -> Result<(), String> {
    let name = variant.library();
    let include = tree.path("include/.")?;
    let word = words::c_string(variant.word);
    let (mut commands, mut objects) = (Vec::new(), Vec::new());
    for source in sources.variant()? {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let object = tree.path(&format!("{name}-{stem}.o"))?;
        let mut command = found.tools.cc.command();
        command
            .args(["-std=c99", "-Wall", "-Wextra", "-fPIC"])
            .arg(variant.optimization())
            .args(variant.defines().iter().map(|define| format!("-D{define}")))
            .arg(format!("-DARGONET_CONDUIT_WORD={word}"));
        for (name, value) in sources.idents() {
            command.arg(format!("-D{name}={}", words::c_string(&value)));
        }
        command.arg("-I").arg(&include);
        command.arg("-c").arg(source).arg("-o").arg(&object);
        commands.push(command);
        objects.push(object);
    }
    all_said(commands)?;
    let archive = format!("lib/lib{name}.a");
    let to = tree.path(&archive)?;
    found.tools.archive(&objects, &to)?;
    tree.add(&archive)?;
    let mut directory = std::ffi::OsString::from("-L");
    directory.push(tree.path("lib/shared/.")?);
    // The loader finds libargonet beside this library, in any program.
    let mut words: Vec<std::ffi::OsString> = objects.into_iter().map(Into::into).collect();
    words.extend([directory, "-largonet".into(), "-Wl,-rpath,$ORIGIN".into()]);
    shared(tree, &name, words, found).map(drop)
}

/// A shared library in the tree, and the link by which linkers find it; where the library is for
/// now.
fn shared<I>(tree: &mut Tree, library: &str, words: I, found: &Found) -> Result<PathBuf, String>
where
    I: IntoIterator<Item: AsRef<std::ffi::OsStr>>,
{
    let name = format!("lib{library}.so.{NUMBER}");
    let file = format!("lib/shared/{name}");
    let to = tree.path(&file)?;
    found.tools.shared(&name, words, &to)?;
    tree.add(&file)?;
    tree.link(&format!("lib/shared/lib{library}.so"), &name)?;
    Ok(to)
}
