//! A tree that is made aside and then put where it belongs, file by file.
//!
//! All that can fail for reasons of the outside, building first of all, happens in a directory
//! within the prefix. Until [`Tree::put`] begins to rename, the prefix is as it was. From then on
//! the manifest says that it is unfinished, and `gasnet_config.h` is missing, without which nothing
//! compiles, so that no client uses a mixture.

use super::at;
use super::manifest::{MANIFEST, Manifest, fingerprint};
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Beginning of the name of the directory in which files lie until all are there.
///
/// The process's number follows: a compiler whose installation was killed may still write.
const ASIDE: &str = ".argonet-install-";

/// The file that is put last and taken first.
pub(super) const LAST: &str = "include/gasnet_config.h";

/// Keeps others from changing a tree at the same time; nothing needs to be cleaned up after it.
pub(super) fn lock(prefix: &Path) -> Result<File, String> {
    let directory = at(prefix, File::open(prefix))?;
    match directory.try_lock() {
        Ok(()) => Ok(directory),
        Err(TryLockError::WouldBlock) => Err(format!(
            "--prefix: {}: another process is changing it; try again when that has ended",
            prefix.display()
        )),
        Err(TryLockError::Error(error)) => Err(format!("{}: {error}", prefix.display())),
    }
}

/// Removes what installations that were killed have left aside.
pub(super) fn remove_aside(prefix: &Path) {
    for entry in std::fs::read_dir(prefix).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(ASIDE) {
            // If it stays, it does no harm.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The files that will be in the prefix.
pub(super) struct Tree {
    prefix: PathBuf,
    aside: PathBuf,
    names: BTreeSet<String>,
    /// Directories that this has made, outer ones first.
    made: Vec<PathBuf>,
    _lock: File,
}

impl Tree {
    pub(super) fn begin(prefix: &Path) -> Result<Self, String> {
        let mut made = Vec::new();
        let begun = directory(prefix, &mut made)
            .map_err(|error| format!("--prefix: {error}"))
            .and_then(|()| lock(prefix));
        let lock = match begun {
            Ok(lock) => lock,
            Err(error) => {
                remove_empty(&made);
                return Err(error);
            }
        };
        // From here on, dropping it cleans up.
        let tree = Self {
            prefix: prefix.to_path_buf(),
            aside: prefix.join(format!("{ASIDE}{}", std::process::id())),
            names: BTreeSet::new(),
            made,
            _lock: lock,
        };
        remove_aside(prefix);
        std::fs::create_dir(&tree.aside).map_err(|error| {
            format!("--prefix: {} cannot be made: {error}", tree.aside.display())
        })?;
        Ok(tree)
    }

    /// Where a file lies for now; its directory exists.
    pub(super) fn path(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.aside.join(name);
        let parent = path.parent().unwrap_or(&self.aside);
        at(parent, std::fs::create_dir_all(parent))?;
        Ok(path)
    }

    /// Says that a file is complete, and part of the installation.
    pub(super) fn add(&mut self, name: &str) -> Result<(), String> {
        self.mode(name, 0o644)
    }

    fn mode(&mut self, name: &str, mode: u32) -> Result<(), String> {
        let path = self.aside.join(name);
        let mode = std::fs::Permissions::from_mode(mode);
        at(&path, std::fs::set_permissions(&path, mode))?;
        self.names.insert(name.to_owned());
        Ok(())
    }

    pub(super) fn write(&mut self, name: &str, text: &str) -> Result<(), String> {
        let path = self.path(name)?;
        at(&path, std::fs::write(&path, text))?;
        self.add(name)
    }

    /// A script.
    pub(super) fn program(&mut self, name: &str, text: &str) -> Result<(), String> {
        self.write(name, text)?;
        self.mode(name, 0o755)
    }

    pub(super) fn copy(&mut self, from: &Path, name: &str) -> Result<(), String> {
        let path = self.path(name)?;
        at(from, std::fs::copy(from, &path))?;
        self.add(name)
    }

    /// A symbolic link; `target` is as seen from its directory.
    pub(super) fn link(&mut self, name: &str, target: &str) -> Result<(), String> {
        let path = self.path(name)?;
        at(&path, std::os::unix::fs::symlink(target, &path))?;
        self.names.insert(name.to_owned());
        Ok(())
    }

    /// Puts all files into the prefix, in place of what an earlier installation has put there.
    pub(super) fn put(mut self, build: &str) -> Result<(), String> {
        let old = Manifest::read(&self.prefix)?.unwrap_or_default();
        self.refuse_others(&old)?;
        let mut new = Manifest {
            complete: true,
            build: build.to_owned(),
            ..Manifest::default()
        };
        for name in &self.names {
            new.add(name, &fingerprint(&self.aside.join(name))?);
        }
        self.make_room()?;
        new.directories.clone_from(&old.directories);
        for made in &self.made {
            new.directories.insert(name_in(&self.prefix, made));
        }
        let mut both = new.clone();
        both.complete = false;
        for (name, prints) in &old.files {
            prints.iter().for_each(|print| both.add(name, print));
        }
        self.save(&both)?;
        // The manifest knows them now; they are no longer this run's to remove.
        self.made.clear();
        self.exchange(&old, &new).map_err(|error| {
            let prefix = self.prefix.display();
            format!(
                "{error}\n{prefix} is unfinished and cannot be used: install again, or uninstall"
            )
        })
    }

    /// Refuses to replace files in the prefix that are not as `old` has them.
    fn refuse_others(&self, old: &Manifest) -> Result<(), String> {
        let mut others = Vec::new();
        for name in &self.names {
            let path = self.prefix.join(name);
            if path.symlink_metadata().is_ok() && !old.has(&self.prefix, name)? {
                others.push(path);
            }
        }
        let Some(first) = others.first() else {
            return Ok(());
        };
        let more = match others.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        Err(format!(
            "--prefix: {}{more}: not as this installation would have left it, so it is not replaced; choose another \
             directory, or remove it",
            first.display()
        ))
    }

    /// Makes the directories and tries whether files can be put there, before anything is changed.
    fn make_room(&mut self) -> Result<(), String> {
        let names = self.names.iter().map(String::as_str);
        let parents: BTreeSet<PathBuf> = names
            .chain([MANIFEST])
            .filter_map(|name| Some(self.prefix.join(name).parent()?.to_path_buf()))
            .collect();
        for parent in parents {
            directory(&parent, &mut self.made).map_err(|error| format!("--prefix: {error}"))?;
            let trial = parent.join(ASIDE.to_owned() + "trial");
            std::fs::write(&trial, "")
                .and_then(|()| std::fs::remove_file(&trial))
                .map_err(|error| {
                    format!("--prefix: {} cannot be written: {error}", parent.display())
                })?;
        }
        Ok(())
    }

    fn exchange(&self, old: &Manifest, new: &Manifest) -> Result<(), String> {
        let last = self.prefix.join(LAST);
        if last.symlink_metadata().is_ok() {
            at(&last, std::fs::remove_file(&last))?;
        }
        for name in self.names.iter().filter(|name| *name != LAST) {
            self.put_one(name)?;
        }
        for name in old.files.keys().filter(|name| !self.names.contains(*name)) {
            let path = self.prefix.join(name);
            if path.symlink_metadata().is_err() {
                continue;
            }
            if old.has(&self.prefix, name)? {
                at(&path, std::fs::remove_file(&path))?;
            } else {
                println!("kept, as it has been changed: {}", path.display());
            }
        }
        if self.names.contains(LAST) {
            self.put_one(LAST)?;
        }
        // Where nothing of the new installation lies and nothing of others, either.
        let mut new = new.clone();
        for name in old.directories.iter().rev() {
            if std::fs::remove_dir(self.prefix.join(name)).is_ok() {
                new.directories.remove(name);
            }
        }
        self.save(&new)
    }

    fn put_one(&self, name: &str) -> Result<(), String> {
        let (from, to) = (self.aside.join(name), self.prefix.join(name));
        at(&to, rename(&from, &to))
    }

    fn save(&self, manifest: &Manifest) -> Result<(), String> {
        let own = self.path(MANIFEST)?;
        at(&own, std::fs::write(&own, manifest.text()))?;
        let to = self.prefix.join(MANIFEST);
        at(&to, rename(&own, &to))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.aside);
        remove_empty(&self.made);
    }
}

/// Renames, also where a directory of the prefix lies in another file system: then the last step is
/// a renaming, too.
fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            let mut near = to.as_os_str().to_owned();
            near.push(ASIDE);
            let data = from.symlink_metadata()?;
            if data.is_symlink() {
                std::os::unix::fs::symlink(from.read_link()?, &near)?;
            } else {
                std::fs::copy(from, &near)?;
            }
            std::fs::rename(&near, to)
        }
        other => other,
    }
}

/// Makes a directory and those around it, and notes which.
fn directory(path: &Path, made: &mut Vec<PathBuf>) -> Result<(), String> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|ancestor| !ancestor.is_dir())
        .collect();
    for path in missing.into_iter().rev() {
        std::fs::create_dir(path)
            .map_err(|error| format!("{} cannot be made: {error}", path.display()))?;
        made.push(path.to_path_buf());
    }
    Ok(())
}

fn remove_empty(made: &[PathBuf]) {
    for path in made.iter().rev() {
        let _ = std::fs::remove_dir(path);
    }
}

/// The name of a directory for the manifest.
///
/// Directories around the prefix have none.
fn name_in(prefix: &Path, path: &Path) -> String {
    match path.strip_prefix(prefix) {
        Ok(rest) if rest != Path::new("") => rest.to_string_lossy().into_owned(),
        _ => ".".to_owned(),
    }
}
