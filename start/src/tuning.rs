//! How collective operations go, as settings say.

use crate::error::{Result, StartError};
use argonet_base::{JobRank, Rank};
use argonet_boot::{Bootstrap, Key};
use argonet_engine::{TREES, Tuning, radix_of};
use argonet_settings::{
    Bytes, COLL_EAGER_SIZE, COLL_EXCHANGE_LIMIT, COLL_GATHER_ALL_LIMIT, COLL_PIPE_SEG_SIZE,
    COLL_ROOTED_GEOM, COLL_SCRATCH_SIZE, COLL_TREE_LIMIT, COLL_TUNING_FILE, Index, Settings,
};

fn usize_of(Bytes(bytes): Bytes) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The tuning from the settings and the file that they name; a setting that the user gave by itself
/// counts more than the file.
///
/// All ranks have the same settings; a file is each rank's own, so [`compare`] follows.
pub(crate) fn tuning(settings: &Settings, rank: Rank) -> Result<Tuning> {
    let wrong = |setting, value: String, cause: String| StartError::Tuning {
        rank,
        setting,
        value,
        cause,
    };
    let tree = settings.get(&COLL_ROOTED_GEOM);
    let Some(radix) = radix_of(&tree) else {
        return Err(wrong("GASNET_COLL_ROOTED_GEOM", tree, TREES.into()));
    };
    let said = Tuning {
        eager_bytes: usize_of(settings.get(&COLL_EAGER_SIZE)),
        radix,
        segment_bytes: usize_of(settings.get(&COLL_PIPE_SEG_SIZE)),
        scratch_bytes: usize_of(settings.get(&COLL_SCRATCH_SIZE)),
        tree_block_bytes: usize_of(settings.get(&COLL_TREE_LIMIT)),
        gather_all_dissemination_bytes: usize_of(settings.get(&COLL_GATHER_ALL_LIMIT)),
        exchange_dissemination_bytes: usize_of(settings.get(&COLL_EXCHANGE_LIMIT)),
    };
    let Some(path) = settings.get(&COLL_TUNING_FILE) else {
        return Ok(said);
    };
    let mut tuning = said;
    let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    read.and_then(|text| tuning.read(&text))
        .map_err(|cause| wrong("GASNET_COLL_TUNING_FILE", path.display().to_string(), cause))?;
    let rows = Index::new();
    let is_given = |name: &str| {
        let row = rows.find(name);
        row.is_some_and(|row| settings.given_text(row).is_some())
    };
    tuning.take(&said, is_given);
    Ok(tuning)
}

/// Publishes the tuning for [`compare`], which follows after the next fence.
pub(crate) fn publish(boot: &dyn Bootstrap, tuning: &Tuning) -> Result<()> {
    let words = tuning.values().flat_map(|(_, value)| value.to_ne_bytes());
    Ok(boot.publish(Key::Tuning, &words.collect::<Vec<_>>())?)
}

/// Messages of collective operations find each other only where all ranks choose alike: the values
/// here are those of rank 0.
pub(crate) fn compare(boot: &dyn Bootstrap, settings: &Settings, tuning: &Tuning) -> Result<()> {
    let first = JobRank(0);
    let published = boot.lookup(first, Key::Tuning)?;
    for ((name, own), theirs) in tuning.values().zip(published.chunks(8)) {
        if own.to_ne_bytes() == *theirs {
            continue;
        }
        let theirs = theirs.try_into().map_or(0, u64::from_ne_bytes);
        let file = match settings.get(&COLL_TUNING_FILE) {
            Some(path) => format!(" by the file {}", path.display()),
            None => String::new(),
        };
        return Err(StartError::DifferentSettings {
            rank: Rank(boot.rank().0),
            name,
            own: format!("{own}{file}"),
            other: Rank(first.0),
            theirs: theirs.to_string(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_defaults() {
        let tuning = tuning(&Settings::default(), Rank(0)).unwrap();
        assert_eq!(tuning, Tuning::DEFAULT);
    }
}
