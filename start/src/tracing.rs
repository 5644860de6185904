//! Traces and statistics begin while a rank joins, and end with its process; see the crate
//! `argonet-trace`.

use crate::error::Result;
use crate::process;
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, before_the_end};
use argonet_settings::Settings;
use argonet_trace::Options;

/// Makes the files that ranks share, on rank 0, and publishes when the job began.
///
/// Before the first fence.
pub(crate) fn prepare(boot: &dyn Bootstrap, settings: &Settings) -> Result<Options> {
    let options = Options::of(settings, boot.rank().0, boot.size());
    let epoch_ns = argonet_trace::begin_epoch(&options)?;
    if options.rank == 0 {
        boot.publish(Key::Epoch, &epoch_ns.to_le_bytes())?;
    }
    Ok(options)
}

/// Starts tracing and counting, if this rank does.
///
/// After a fence.
pub(crate) fn start(boot: &dyn Bootstrap, options: Options) -> Result<()> {
    let epoch = boot.lookup(JobRank(0), Key::Epoch)?;
    let epoch_ns = epoch.try_into().map_or(0, u64::from_le_bytes);
    before_the_end(process::end);
    Ok(argonet_trace::start(options, epoch_ns, boot.job_id())?)
}
