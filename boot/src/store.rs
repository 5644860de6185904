//! The key-value store that another launcher offers to the processes that it has started.

use crate::error::BootError;

/// A store that all processes of a job see: what is put before a fence can be read after it.
///
/// The processes that exchange nothing take part in the fence all the same, as launchers count
/// them. Each call ends in time, or is an error.
pub(crate) trait Store {
    /// Puts a value, whose key no process has put before.
    ///
    /// A key has small letters, digits and hyphens.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootError>;

    /// Waits until all processes of the job have called this.
    fn fence(&mut self) -> Result<(), BootError>;

    /// The value that a process has put before the fence; `None` if none has.
    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, BootError>;

    /// Has the launcher end all processes of the job, with this code.
    fn abort(&mut self, code: u8);

    /// This process needs the store no more.
    fn finish(&mut self) -> Result<(), BootError>;
}
