//! How collective operations go, as settings say.

use crate::engine::{Tuning, radix_of};
use crate::error::{Error, Result};
use argonet_base::Rank;
use argonet_settings::{
    Bytes, COLL_EAGER_SIZE, COLL_EXCHANGE_LIMIT, COLL_GATHER_ALL_LIMIT, COLL_PIPE_SEG_SIZE,
    COLL_ROOTED_GEOM, COLL_SCRATCH_SIZE, COLL_TREE_LIMIT, COLL_TUNING_FILE, Settings,
};

fn usize_of(Bytes(bytes): Bytes) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// What the settings, and the file that they name, say. All ranks have the same settings; a file is each rank's own, and is to be
/// the same.
pub(crate) fn tuning(settings: &Settings, rank: Rank) -> Result<Tuning> {
    let wrong = |setting, value: String, cause: String| Error::Tuning {
        rank,
        setting,
        value,
        cause,
    };
    let tree = settings.get(&COLL_ROOTED_GEOM);
    let Some(radix) = radix_of(&tree) else {
        let cause = "it must be FLAT_TREE, or KNOMIAL_TREE, a comma and a radix of 2 or more";
        return Err(wrong("GASNET_COLL_ROOTED_GEOM", tree, cause.into()));
    };
    let mut tuning = Tuning {
        eager_bytes: usize_of(settings.get(&COLL_EAGER_SIZE)),
        radix,
        segment_bytes: usize_of(settings.get(&COLL_PIPE_SEG_SIZE)),
        scratch_bytes: usize_of(settings.get(&COLL_SCRATCH_SIZE)),
        tree_block_bytes: usize_of(settings.get(&COLL_TREE_LIMIT)),
        gather_all_dissemination_bytes: usize_of(settings.get(&COLL_GATHER_ALL_LIMIT)),
        exchange_dissemination_bytes: usize_of(settings.get(&COLL_EXCHANGE_LIMIT)),
    };
    if let Some(path) = settings.get(&COLL_TUNING_FILE) {
        let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        read.and_then(|text| tuning.read(&text))
            .map_err(|cause| wrong("GASNET_COLL_TUNING_FILE", path.display().to_string(), cause))?;
    }
    Ok(tuning)
}
