//! Errors of the library, and of what its providers offer.

use core::net::IpAddr;
use thiserror::Error;

/// Why a provider of libfabric cannot be used, or a call of it failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FabricError {
    /// There is no libfabric.
    #[error(
        "no libfabric could be loaded: {reason}; install it (Debian has it as libfabric1), and name libfabric.so.1 by ARGONET_FABRIC_LIBRARY or its directory by LD_LIBRARY_PATH where the loader does not find it"
    )]
    NoLibrary {
        /// The names that were tried, and the loader's errors.
        reason: String,
    },
    /// A library that is not libfabric.
    #[error(
        "{library} is no libfabric: it has no function {function}; name another one by ARGONET_FABRIC_LIBRARY"
    )]
    WrongLibrary {
        /// The name that it was loaded by.
        library: String,
        /// A function that it lacks.
        function: &'static str,
    },
    /// A libfabric whose API is too old.
    #[error(
        "{library} is libfabric {found}, and {least} or a later one is needed; install a newer one or name it by ARGONET_FABRIC_LIBRARY"
    )]
    TooOld {
        /// The name that it was loaded by.
        library: String,
        /// Its version.
        found: Version,
        /// The oldest that can be used.
        least: Version,
    },
    /// No provider has such endpoints.
    #[error(
        "libfabric {version} ({library}) has no provider with {endpoints} on this host; see what `fi_info` lists, and whether FI_PROVIDER excludes providers"
    )]
    NoProvider {
        /// The name that it was loaded by.
        library: String,
        /// Its version.
        version: Version,
        /// The kind of endpoints.
        endpoints: &'static str,
    },
    /// No provider of this name has such endpoints.
    #[error(
        "libfabric {version} ({library}) has no provider {wanted:?} with {endpoints} on this host, but {offered}; {setting} chooses, and FI_PROVIDER may exclude some"
    )]
    UnknownProvider {
        /// The name that it was loaded by.
        library: String,
        /// Its version.
        version: Version,
        /// The kind of endpoints.
        endpoints: &'static str,
        /// The name that was given.
        wanted: String,
        /// The providers that have such endpoints.
        offered: String,
        /// The setting that chooses.
        setting: &'static str,
    },
    /// The provider has no interface with an address.
    #[error(
        "provider {provider} of libfabric {version} does not reach others from {address}; choose another interface by ARGONET_TCP_INTERFACES"
    )]
    NoInterface {
        /// The provider.
        provider: String,
        /// The version of the library.
        version: Version,
        /// The address that was asked for.
        address: IpAddr,
    },
    /// A provider that demands something else, or offers too little.
    #[error("provider {provider} of libfabric {version} {what}; choose another one by {setting}")]
    Unfit {
        /// The provider.
        provider: String,
        /// The version of the library.
        version: Version,
        /// What it demands or lacks.
        what: String,
        /// The setting that chooses.
        setting: &'static str,
    },
    /// Of the providers of the library none can be used.
    #[error("no provider of libfabric can be used:{refusals}")]
    NoneFits {
        /// A line of its own for each.
        refusals: String,
    },
    /// A call failed.
    #[error(
        "{call} of libfabric's provider {provider} failed: {text} ({code}); see what it logs with FI_LOG_LEVEL=warn"
    )]
    Call {
        /// The function.
        call: &'static str,
        /// The provider.
        provider: String,
        /// The number of the error.
        code: i64,
        /// The library's words for it.
        text: String,
    },
    /// The system refused.
    #[error("cannot {action}: {source}")]
    Os {
        /// The action that failed.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl FabricError {
    /// The system gives no random numbers.
    pub(crate) fn no_random(source: std::io::Error) -> Self {
        Self::Os {
            action: "draw a random number",
            source,
        }
    }
}

/// A version of the library or of a provider.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version(pub(super) u32);

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.0 >> 16, self.0 & 0xffff)
    }
}
