//! A directory that goes away, and the installation in it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// A directory for the work of a test.
///
/// Names have blanks, as users' have.
pub(crate) struct Place {
    own: PathBuf,
    prefix: PathBuf,
}

/// The trees that tests share, without and with `--debug`, and a library that is quickly installed.
static TREES: [OnceLock<Result<Place, String>>; 3] =
    [OnceLock::new(), OnceLock::new(), OnceLock::new()];

impl Place {
    /// An empty one.
    pub(crate) fn empty(name: &str) -> Result<Self, String> {
        let unique = format!("install {} {name}", std::process::id());
        let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
        std::fs::create_dir_all(&own).map_err(|error| error.to_string())?;
        let prefix = own.join("the tree");
        Ok(Self { own, prefix })
    }

    /// One that uses an installed tree, which it must leave as it is.
    pub(crate) fn installed(name: &str, debug: bool) -> Result<Self, String> {
        let tree = TREES[usize::from(debug)].get_or_init(|| {
            let place = Self::empty(if debug { "with checks" } else { "without" })?;
            let options: &[&str] = if debug { &["--debug"] } else { &[] };
            succeeded(&run(command(&library()?, &place.prefix).args(options))?)?;
            Ok(place)
        });
        let prefix = tree.as_ref().map_err(Clone::clone)?.prefix.clone();
        let mut place = Self::empty(name)?;
        place.prefix = prefix;
        Ok(place)
    }

    pub(crate) fn prefix(&self) -> PathBuf {
        self.prefix.clone()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.own.join(name)
    }

    /// The text of an installed file.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        let path = self.prefix().join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The content of the tree: files with a hash of their bytes, links of their targets,
    /// directories of nothing.
    pub(crate) fn content(&self) -> Result<BTreeMap<PathBuf, u64>, String> {
        let mut all = BTreeMap::new();
        let mut left = vec![self.prefix()];
        while let Some(path) = left.pop() {
            let about = |error: std::io::Error| format!("{}: {error}", path.display());
            let data = path.symlink_metadata().map_err(about)?;
            let bytes = if data.is_symlink() {
                let target = path.read_link().map_err(about)?;
                target.into_os_string().into_encoded_bytes()
            } else if data.is_dir() {
                for entry in path.read_dir().map_err(about)? {
                    left.push(entry.map_err(about)?.path());
                }
                Vec::new()
            } else {
                std::fs::read(&path).map_err(about)?
            };
            let mut hash = DefaultHasher::new();
            bytes.hash(&mut hash);
            all.insert(path, hash.finish());
        }
        Ok(all)
    }
}

/// Removes what tests have shared; when all have ended.
pub(crate) fn clean() {
    for place in TREES.iter().filter_map(OnceLock::get).flatten() {
        let _ = std::fs::remove_dir_all(&place.own);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.own);
    }
}

fn command(library: &Path, prefix: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args([OsStr::new("install"), OsStr::new("--library")]);
    command.arg(library).arg("--prefix").arg(prefix);
    command
}

/// The library for C, as cargo has built it for these tests.
pub(crate) fn library() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(own.with_file_name("libargonet_capi.a"))
}

/// An object and an archive that have every function of the library, all but one empty: for tests
/// of how files are put and of what links, not of what runs.
fn small() -> Result<&'static Place, String> {
    let place = TREES[2].get_or_init(|| {
        let place = Place::empty("small library")?;
        let (object, archive) = (place.file("stand_in.o"), place.file("small.a"));
        let mut nm = Command::new("nm");
        nm.args(["--extern-only", "--defined-only", "--format=just-symbols"]);
        let names = succeeded(&run(nm.arg(library()?).stderr(Stdio::null()))?)?;
        let ours = |name: &&str| {
            ["argonet", "gasnet", "gex_"]
                .iter()
                .any(|own| name.starts_with(own))
        };
        let mut text = format!("#include \"{}\"\n", source("stand_in.c").display());
        for name in names
            .lines()
            .filter(ours)
            .filter(|&name| name != "argonet_client_init")
        {
            text += &format!("void argonet_no_{name}(void) __asm__(\"{name}\");\n");
            text += &format!("__attribute__((__weak__)) void argonet_no_{name}(void) {{}}\n");
        }
        let code = place.file("small.c");
        std::fs::write(&code, text).map_err(|error| error.to_string())?;
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
        let mut cc = Command::new("cc");
        cc.arg("-fPIC").arg("-I").arg(include).arg("-c");
        succeeded(&run(cc.arg(code).arg("-o").arg(&object))?)?;
        succeeded(&run(Command::new("ar").arg("rcs").args([archive, object]))?)?;
        Ok(place)
    });
    place.as_ref().map_err(Clone::clone)
}

/// Stands in for the library where a program is linked without it.
pub(crate) fn stand_in() -> Result<PathBuf, String> {
    Ok(small()?.file("stand_in.o"))
}

/// `cargo xtask install` with a small library for one conduit, ready for options.
pub(crate) fn installing(prefix: &Path) -> Result<Command, String> {
    installing_for("smp", prefix)
}

/// The same for other conduits.
pub(crate) fn installing_for(conduits: &str, prefix: &Path) -> Result<Command, String> {
    let mut command = command(&small()?.file("small.a"), prefix);
    command.args(["--conduits", conduits]);
    Ok(command)
}

/// The same, which must succeed.
pub(crate) fn install(prefix: &Path, options: &[&str]) -> Result<String, String> {
    succeeded(&run(installing(prefix)?.args(options))?)
}

/// `cargo xtask uninstall`.
pub(crate) fn uninstall(prefix: &Path) -> Result<Output, String> {
    uninstall_with(prefix, &[])
}

/// The same with options.
pub(crate) fn uninstall_with(prefix: &Path, options: &[&OsStr]) -> Result<Output, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["uninstall", "--prefix"]).arg(prefix);
    run(command.args(options))
}

pub(crate) fn run(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|error| format!("{name}: {error}"))
}

/// The output of a program that must have succeeded.
pub(crate) fn succeeded(output: &Output) -> Result<String, String> {
    match output.status.success() {
        true => Ok(said(output)),
        false => Err(format!("{}: {}", output.status, said(output))),
    }
}

/// The output of a program that must have failed.
pub(crate) fn failed(output: &Output) -> Result<String, String> {
    match output.status.code() {
        Some(1..) => Ok(said(output)),
        _ => Err(format!("{}: {}", output.status, said(output))),
    }
}

/// Whether a program can be run here.
pub(crate) fn runs(program: &str) -> bool {
    run(Command::new(program).arg("--version")).is_ok_and(|output| output.status.success())
}

/// Both outputs of a program.
pub(crate) fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// One of the programs beside this file.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/install/programs")
        .join(name)
}
