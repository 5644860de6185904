//! The secret of a job, and the keys that are made from it.

use argonet_base::random;
use core::fmt;
use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags};
use std::path::Path;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a job's key.
pub const KEY_BYTES: usize = 32;

/// Bytes of a job's identity.
pub(super) const IDENTITY_BYTES: usize = 16;

/// The secret that the ranks of a job share, 256 bits, made by its launcher.
///
/// A process that has it belongs to the job.
///
/// It is never printed, and overwritten when its last copy is dropped; copies share one place, so
/// that moving one leaves nothing behind. It is no argument of a program and in no environment: it
/// comes through a pipe ([`read`](Self::read)), else from a file that only its owner may read
/// ([`from_file`](Self::from_file)).
#[derive(Clone)]
pub struct JobKey(Arc<Zeroizing<[u8; KEY_BYTES]>>);

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobKey(secret)")
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The system says so.
    #[error("the job's key cannot be read from {from}: {cause}")]
    Read {
        /// The pipe or the file.
        from: String,
        /// The system's error.
        cause: rustix::io::Errno,
    },
    /// Too few bytes or too many.
    #[error("the job's key from {from} has {found} bytes, not {KEY_BYTES}; start the job again")]
    Length {
        /// The pipe or the file.
        from: String,
        /// How many there are; one more than a key has stands for all longer ones.
        found: usize,
    },
    /// Others could have read or written the file.
    #[error(
        "the job's key is not read from {path}: {why}; it must be a file of this user's that no other user may read or \
         write (mode 0600)"
    )]
    Exposed {
        /// The file.
        path: String,
        /// The fault.
        why: String,
    },
    /// The system has no random numbers.
    #[error("no key for the job: the system gives no random numbers: {0}")]
    Random(rustix::io::Errno),
}

impl JobKey {
    /// The key that these bytes are.
    ///
    /// The caller overwrites its own copy.
    #[must_use]
    pub fn from_bytes(mut bytes: [u8; KEY_BYTES]) -> Self {
        let key = Self::filled(|place| place.copy_from_slice(&bytes));
        bytes.zeroize();
        key
    }

    /// A key that is written where it stays.
    fn filled(fill: impl FnOnce(&mut [u8; KEY_BYTES])) -> Self {
        let mut place = Arc::new(Zeroizing::new([0; KEY_BYTES]));
        if let Some(place) = Arc::get_mut(&mut place) {
            fill(place);
        }
        Self(place)
    }

    /// A new key, from the system's random numbers; for the launcher.
    ///
    /// # Errors
    /// [`KeyError::Random`].
    pub fn random() -> Result<Self, KeyError> {
        let mut filled = Ok(());
        let key = Self::filled(|place| filled = random::fill(place));
        filled.map(|()| key).map_err(KeyError::Random)
    }

    /// Reads a key from a pipe, up to its end; blocks until the writer has closed it.
    ///
    /// `from` names the pipe in errors.
    ///
    /// # Errors
    /// [`KeyError::Read`], [`KeyError::Length`].
    pub fn read(pipe: impl AsFd, from: &str) -> Result<Self, KeyError> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES + 1]);
        let mut found = 0;
        while found < bytes.len() {
            match rustix::io::read(&pipe, &mut bytes[found..]) {
                Ok(0) => break,
                Ok(count) => found += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(cause) => {
                    return Err(KeyError::Read {
                        from: from.into(),
                        cause,
                    });
                }
            }
        }
        if found != KEY_BYTES {
            return Err(KeyError::Length {
                from: from.into(),
                found,
            });
        }
        Ok(Self::filled(|place| {
            place.copy_from_slice(&bytes[..KEY_BYTES])
        }))
    }

    /// Reads a key from a file, which must be a regular one (no link), this user's, and closed to
    /// all others.
    ///
    /// # Errors
    /// [`KeyError`]; the message names the file.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let name = path.display().to_string();
        let read = |cause| KeyError::Read {
            from: name.clone(),
            cause,
        };
        // The open does not wait, so a pipe of another user cannot hold the rank up.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(read)?;
        let about = rustix::fs::fstat(&file).map_err(read)?;
        let exposed = |why: String| KeyError::Exposed {
            path: name.clone(),
            why,
        };
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(exposed("it is no regular file".into()));
        }
        let me = rustix::process::geteuid().as_raw();
        if about.st_uid != me {
            let owner = about.st_uid;
            return Err(exposed(format!("its owner is user {owner}, not user {me}")));
        }
        let mode = about.st_mode & 0o7777;
        if mode & 0o077 != 0 {
            return Err(exposed(format!("its mode is {mode:04o}")));
        }
        Self::read(&file, &name)
    }

    /// The bytes, for a caller that hands the key over.
    #[must_use]
    pub fn expose(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// The key for one purpose.
    ///
    /// Keys of different purposes say nothing about each other.
    pub(super) fn derive(&self, purpose: &str) -> PurposeKey {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(&self.0[..]);
        let mut hash = hasher.finalize();
        hasher.zeroize();
        let key = PurposeKey(Zeroizing::new(*hash.as_bytes()));
        hash.zeroize();
        key
    }

    /// Distinguishes this job from others.
    ///
    /// It is no secret, and does not lead to the key.
    pub(super) fn identity(&self) -> [u8; IDENTITY_BYTES] {
        let key = self.derive("argonet tcp 1: identity of the job");
        let mut identity = [0; IDENTITY_BYTES];
        identity.copy_from_slice(&key.0[..IDENTITY_BYTES]);
        identity
    }
}

/// A key that is used for one kind of message in one direction.
pub(super) struct PurposeKey(Zeroizing<[u8; 32]>);

impl PurposeKey {
    /// The authentication code of `bytes`.
    pub(super) fn code(&self, bytes: &[u8]) -> [u8; 32] {
        *self.hash(bytes).as_bytes()
    }

    /// Whether `code` is that of `bytes`; takes as long for every wrong code.
    pub(super) fn verifies(&self, bytes: &[u8], code: &[u8; 32]) -> bool {
        // `blake3::Hash` compares in constant time.
        self.hash(bytes) == *code
    }

    fn hash(&self, bytes: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(bytes);
        let hash = hasher.finalize();
        hasher.zeroize();
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::OwnedFd;
    use rustix::pipe::pipe;
    use std::os::unix::fs::PermissionsExt;

    fn pipe_with(bytes: &[u8]) -> OwnedFd {
        let (reader, writer) = pipe().unwrap();
        assert_eq!(rustix::io::write(&writer, bytes), Ok(bytes.len()));
        reader
    }

    #[test]
    fn a_key_comes_through_a_pipe_whole_or_not_at_all() {
        let key = JobKey::random().unwrap();
        let read = JobKey::read(pipe_with(key.expose()), "the pipe").unwrap();
        assert_eq!(read.expose(), key.expose());
        assert_ne!(JobKey::random().unwrap().expose(), key.expose());
        for (length, found) in [(0, 0), (31, 31), (33, 33), (100, 33)] {
            let error = JobKey::read(pipe_with(&vec![7; length]), "the pipe").unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains(&format!("from the pipe has {found} bytes, not 32")),
                "{text}"
            );
        }
    }

    #[test]
    fn a_key_is_never_printed() {
        let key = JobKey::from_bytes([0xab; 32]);
        assert_eq!(format!("{key:?}"), "JobKey(secret)");
        assert_eq!(format!("{key:#?}"), "JobKey(secret)");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, [9; 32]).unwrap();
        for (mode, good) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o620, false),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            match JobKey::from_file(&path) {
                Ok(key) => assert!(good && key.expose() == &[9; 32], "{mode:o}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(!good && text.contains(&format!("{mode:04o}")), "{text}");
                }
            }
        }
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(
            JobKey::from_file(&link),
            Err(KeyError::Read { .. })
        ));
        let text = JobKey::from_file(directory.path()).unwrap_err().to_string();
        assert!(text.contains("no regular file"), "{text}");
        let text = JobKey::from_file(&directory.path().join("none")).unwrap_err();
        assert!(text.to_string().contains("none"), "{text}");
    }

    #[test]
    fn purposes_have_nothing_in_common() {
        let key = JobKey::from_bytes([1; 32]);
        let (a, b) = (key.derive("a"), key.derive("b"));
        assert_ne!(a.code(b"x"), b.code(b"x"));
        assert!(a.verifies(b"x", &a.code(b"x")) && !a.verifies(b"x", &b.code(b"x")));
        assert_ne!(key.identity(), JobKey::from_bytes([2; 32]).identity());
    }
}
