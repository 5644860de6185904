//! Directories for tests, removed at the end of each.

use std::fs;
use std::path::{Path, PathBuf};

/// A directory of its own for a test of this name.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory.
    pub fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("argonet-kmers-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it.
    pub fn file(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
