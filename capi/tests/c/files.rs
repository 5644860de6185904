//! The files that programs are made of.

use std::path::{Path, PathBuf};

use crate::compiler::root;

/// One of this directory's programs.
pub(crate) fn source(name: &str) -> PathBuf {
    root().join(format!("capi/tests/c/programs/{name}.c"))
}

/// One of the project's headers.
pub(crate) fn header(name: &str) -> PathBuf {
    root().join("include").join(name)
}

/// Sources of gasnett_run_diagnostics: parts of the library of each thread mode.
pub(crate) fn diagnostics() -> Vec<PathBuf> {
    let directory = root().join("capi/variant/diagnostics");
    let files = std::fs::read_dir(directory).into_iter().flatten();
    let paths = files.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .collect()
}

/// The library that a program is linked with.
#[derive(Clone, Copy)]
pub(crate) enum Library {
    Static,
    Shared,
}

impl Library {
    /// Arguments of the linker.
    ///
    /// The libraries are built with the test program and lie beside it.
    pub(crate) fn words(self) -> Vec<String> {
        let program = std::env::current_exe().unwrap_or_default();
        let directory = program.parent().unwrap_or(Path::new(".")).display();
        match self {
            Self::Static => vec![
                format!("{directory}/libargonet_capi.a"),
                "-Wl,--gc-sections,--strip-debug".into(),
                "-lpthread".into(),
                "-ldl".into(),
                "-lm".into(),
            ],
            Self::Shared => vec![
                format!("{directory}/libargonet_capi.so"),
                "-lpthread".into(),
            ],
        }
    }
}
