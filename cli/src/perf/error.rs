//! Errors.

use argonet::{Error, Rank};
use std::path::PathBuf;

/// An error while measuring.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PerfError {
    #[error(transparent)]
    Job(#[from] Error),
    #[error("starting a job to measure: {0}")]
    Start(#[from] std::io::Error),
    #[error("pinning rank {rank} to core {core}: {cause}")]
    Pin {
        rank: Rank,
        core: usize,
        cause: rustix::io::Errno,
    },
    #[error(
        "there is no metric {name:?}; --list shows all of them, and a name ending in '*' stands for all that begin so"
    )]
    NoSuchMetric { name: String },
    #[error("perf makes a job of its own: start it without `argonet run`")]
    Launched,
    #[error("nothing that was chosen has a curve by size, so there is nothing to plot")]
    NothingToPlot,
    #[error("drawing the plot: {0}")]
    Plot(String),
    #[error("writing {path}: {cause}", path = path.display())]
    Write {
        path: PathBuf,
        cause: std::io::Error,
    },
}
