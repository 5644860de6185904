//! Libraries that are loaded at run time.

use crate::kind::Kind;
use crate::row::{Preset, Scope};
use crate::setting::settings;
use std::path::PathBuf;

settings! {
    FABRIC_LIBRARY: Option<PathBuf> = "ARGONET_FABRIC_LIBRARY", Kind::Path, Preset::Words("libfabric.so.1, as the loader finds it"), Scope::Rank,
        "The library libfabric, such as /opt/amazon/efa/lib/libfabric.so.1.";
    PMIX_LIBRARY: Option<PathBuf> = "ARGONET_PMIX_LIBRARY", Kind::Path, Preset::Words("libpmix.so.2, as the loader finds it"), Scope::Rank,
        "The library of PMIx, by which hosts of mpirun or srun find each other, such as /opt/pmix/lib/libpmix.so.2.";
    PORTALS_LIBRARY: Option<PathBuf> = "ARGONET_PORTALS_LIBRARY", Kind::Path, Preset::Words("libportals.so.4 or libportals.so, as the loader finds it"), Scope::Rank,
        "The library of Portals 4, such as /opt/portals4/lib/libportals.so.4.";
}
