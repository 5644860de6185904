//! Why memory is not registered.

use argonet_base::size::HumanSize;
use thiserror::Error;

use super::{BadRange, PageRange};

/// Refusals of a registrar.
#[derive(Debug)]
pub enum Refused<E> {
    /// It has no room, and might have after something else has been deregistered.
    NoResources(E),
    /// This range cannot be registered, even if no other were.
    Failed(E),
}

/// Why memory cannot be used by an operation now.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistrationError<E: core::error::Error + 'static> {
    /// There are no such bytes.
    #[error(transparent)]
    Range(#[from] BadRange),
    /// More than may ever be registered.
    #[error(
        "the pages {wanted} have {} ({} bytes), and {} ({limit_bytes} bytes) may be registered at once; split the \
         operation",
        HumanSize(wanted.bytes() as u64), wanted.bytes(), HumanSize(*limit_bytes as u64)
    )]
    TooLarge {
        /// The pages that the operation needs.
        wanted: PageRange,
        /// The most that may be registered.
        limit_bytes: usize,
    },
    /// Operations under way use so much that there is no room; there will be when some are
    /// complete.
    #[error(
        "there is no room to register the {} bytes of {wanted}: operations under way use {used_bytes} bytes in {used_count} \
         registrations, of at most {limit_bytes} bytes in {limit_count}",
        wanted.bytes()
    )]
    InUse {
        /// The pages that the operation needs.
        wanted: PageRange,
        /// Bytes that are registered, all in use.
        used_bytes: usize,
        /// Registrations, all in use.
        used_count: usize,
        /// The limit in bytes.
        limit_bytes: usize,
        /// The limit in registrations.
        limit_count: usize,
    },
    /// The registrar has no room, and nothing unused is left that could be given back.
    #[error(
        "the {} bytes of {wanted} cannot be registered beside {used_bytes} bytes in {used_count} registrations that \
         operations use: {source}",
        wanted.bytes()
    )]
    NoResources {
        /// The pages that the operation needs.
        wanted: PageRange,
        /// Bytes that are registered, all in use.
        used_bytes: usize,
        /// Registrations, all in use.
        used_count: usize,
        /// The error of the registrar.
        source: E,
    },
    /// The registrar does not register this.
    #[error("{wanted} cannot be registered: {source}")]
    Failed {
        /// The pages that the operation needs.
        wanted: PageRange,
        /// The error of the registrar.
        source: E,
    },
}
