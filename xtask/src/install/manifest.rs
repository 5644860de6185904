//! The list of what an installation has put into a tree, by which it is replaced and removed.

use super::at;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::Hasher;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

/// Where it lies in the tree.
pub(super) const MANIFEST: &str = "share/argonet/manifest";

/// The first line.
const FORMAT: &str = "argonet installation 1";

/// The content of a tree.
///
/// Names are paths from its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// False from before the first change until after the last: files may be of either
    /// installation, or missing.
    pub(super) complete: bool,
    /// The build that the files are of.
    pub(super) build: String,
    /// Files, with the fingerprints that they may have.
    pub(super) files: BTreeMap<String, BTreeSet<String>>,
    /// Directories that were made for them; `.` is the root.
    pub(super) directories: BTreeSet<String>,
}

impl Manifest {
    /// Reads the manifest of a tree, if it has one.
    pub(super) fn read(prefix: &Path) -> Result<Option<Self>, String> {
        let path = prefix.join(MANIFEST);
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text)
                .map(Some)
                .map_err(|line| format!("{}: cannot be understood: {line}", path.display())),
            // A file in the place of a directory is none, either.
            Err(_) if path.symlink_metadata().is_err() => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// The error is the line that is wrong.
    fn parse(text: &str) -> Result<Self, String> {
        let mut own = Self::default();
        let mut lines = text.lines();
        match lines.next() {
            Some(FORMAT) => {}
            other => return Err(other.unwrap_or("it is empty").to_owned()),
        }
        for line in lines {
            let (key, value) = line.split_once(' ').ok_or(line)?;
            match (key, value) {
                ("state", "complete") => own.complete = true,
                ("state", "unfinished") => own.complete = false,
                ("build", build) => build.clone_into(&mut own.build),
                ("directory", name) if inside(name) => {
                    own.directories.insert(name.to_owned());
                }
                ("file", entry) => match entry.split_once(' ') {
                    Some((print, name)) if inside(name) => own.add(name, print),
                    _ => return Err(line.to_owned()),
                },
                _ => return Err(line.to_owned()),
            }
        }
        Ok(own)
    }

    pub(super) fn text(&self) -> String {
        let state = if self.complete {
            "complete"
        } else {
            "unfinished"
        };
        let mut text = format!("{FORMAT}\nstate {state}\nbuild {}\n", self.build);
        for (name, prints) in &self.files {
            for print in prints {
                let _ = writeln!(text, "file {print} {name}");
            }
        }
        for name in &self.directories {
            let _ = writeln!(text, "directory {name}");
        }
        text
    }

    pub(super) fn add(&mut self, name: &str, print: &str) {
        let prints = self.files.entry(name.to_owned()).or_default();
        prints.insert(print.to_owned());
    }

    /// Whether a file of the tree is what the installation put there.
    pub(super) fn has(&self, prefix: &Path, name: &str) -> Result<bool, String> {
        let Some(prints) = self.files.get(name) else {
            return Ok(false);
        };
        Ok(prints.contains(&fingerprint(&prefix.join(name))?))
    }
}

/// A path that does not lead out of the tree.
fn inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    name == "." || !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// FNV-1a over words of eight bytes: finds changes by accident, and is quick enough for large
/// libraries.
struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            // The multiplication carries upwards only, so the upper half is folded in before the
            // next.
            self.0 = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01b3);
            self.0 ^= self.0 >> 32;
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Identifies a file or a symbolic link by its content, not its name.
pub(super) fn fingerprint(path: &Path) -> Result<String, String> {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    let data = at(path, path.symlink_metadata())?;
    if data.is_symlink() {
        let target = at(path, path.read_link())?;
        hash.write(target.as_os_str().as_bytes());
        return Ok(format!("link-{:016x}", hash.finish()));
    }
    let mut file = at(path, std::fs::File::open(path))?;
    let mut buffer = vec![0; 1 << 20];
    let mut filled = 0;
    loop {
        let (_, free) = buffer.split_at_mut(filled);
        let count = at(path, file.read(free))?;
        filled += count;
        // Whole buffers, so that the words are the same however much a read brings.
        if count == 0 || filled == buffer.len() {
            hash.write(buffer.split_at(filled).0);
            filled = 0;
        }
        if count == 0 {
            hash.write_u64(data.len());
            return Ok(format!("{:016x}", hash.finish()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_manifest_is_read_back() {
        let mut own = Manifest {
            build: "argonet-1-abc".to_owned(),
            complete: true,
            ..Manifest::default()
        };
        own.add("lib/a b.a", "0123456789abcdef");
        own.add("lib/a b.a", "link-0");
        own.directories.extend([".".to_owned(), "lib".to_owned()]);
        assert_eq!(Manifest::parse(&own.text()), Ok(own.clone()));
        own.complete = false;
        assert_eq!(Manifest::parse(&own.text()), Ok(own));
    }

    #[test]
    fn nothing_outside_of_the_tree_is_named() {
        for line in [
            "file 0 ../x",
            "file 0 /etc/passwd",
            "file 0 a/../../x",
            "file 0",
            "directory /",
            "directory ",
            "state done",
            "something else",
            "",
        ] {
            let text = format!("{FORMAT}\n{line}\n");
            assert_eq!(Manifest::parse(&text), Err(line.to_owned()));
        }
        assert!(Manifest::parse("argonet installation 2\n").is_err());
        assert!(Manifest::parse("").is_err());
    }

    #[test]
    fn different_files_have_different_fingerprints() {
        let path = std::env::temp_dir().join(format!("fingerprint-{}", std::process::id()));
        let of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            fingerprint(&path).unwrap()
        };
        let mut large = vec![7; (1 << 20) + 9];
        let prints = [of(b""), of(b"\0"), of(b"a"), of(b"a\0"), of(&large)];
        let print = of(&large);
        assert_eq!(print, prints[4]);
        large[1 << 20] = 8;
        assert_ne!(of(&large), print);
        let distinct: BTreeSet<&String> = prints.iter().collect();
        assert_eq!(distinct.len(), prints.len());
        std::fs::remove_file(&path).unwrap();
    }
}
