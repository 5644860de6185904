//! The program that a process executes, which distinguishes processes of two programs in a row of
//! one step.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use crate::error::BootError;
use crate::foreign::hash;

/// Added by the kernel to the name of a file that has been removed.
const REMOVED: &[u8] = b" (deleted)";

/// The name of a program's file.
///
/// Not its inode: ranks may see the same file in containers of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    name: String,
}

impl Program {
    pub(super) fn of_this_process() -> Result<Self, BootError> {
        let path = std::fs::read_link("/proc/self/exe")
            .map_err(|e| BootError::system("finding the name of this program", e))?;
        Ok(Self::named(path.file_name().unwrap_or_default().into()))
    }

    fn named(name: OsString) -> Self {
        let name = name.as_bytes();
        let name = name.strip_suffix(REMOVED).unwrap_or(name);
        Self {
            name: String::from_utf8_lossy(name).into_owned(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// As a message has it.
    pub(super) fn number(&self) -> u64 {
        hash(&[&self.name])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_the_same_after_its_file_has_been_replaced() {
        let program = |name: &str| Program::named(name.into());
        assert_eq!(program("solver (deleted)"), program("solver"));
        assert_ne!(program("solver").number(), program("solver2").number());
        let own = std::env::current_exe().unwrap();
        let found = Program::of_this_process().unwrap();
        assert_eq!(Some(found.name()), own.file_name().and_then(|n| n.to_str()));
    }
}
