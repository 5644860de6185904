//! A directory that goes away, and what is installed in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// A directory for the work of a test. Names have blanks, as users' have.
pub(crate) struct Place {
    own: PathBuf,
    prefix: PathBuf,
}

/// The trees that tests share, without and with `--debug`.
static TREES: [OnceLock<Result<Place, String>>; 2] = [OnceLock::new(), OnceLock::new()];

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
            let output = install(&place.prefix(), options)?;
            match output.status.success() {
                true => Ok(place),
                false => Err(said(&output)),
            }
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
}

/// Removes the trees that tests have shared; when all have ended.
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

/// `cargo xtask install` with the library that lies beside this test.
pub(crate) fn install(prefix: &Path, options: &[&str]) -> Result<Output, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let library = own.with_file_name("libargonet_capi.a");
    let args = [
        OsStr::new("install"),
        OsStr::new("--library"),
        library.as_os_str(),
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(args).arg("--prefix").arg(prefix).args(options);
    run(&mut command)
}

pub(crate) fn run(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|error| format!("{name}: {error}"))
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
