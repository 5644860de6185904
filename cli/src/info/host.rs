//! Resources that a job of some ranks would find and take on this host, and its wait mode.

use std::fmt::{self, Display};

use argonet_base::size::HumanSize;
use argonet_engine::{WaitMode, WaitPolicy};
use argonet_start::Plan;

use super::Facts;

/// The host, and a job of `ranks` ranks on it.
pub(super) fn facts(ranks: u32) -> argonet_start::Result<[(&'static str, Facts); 3]> {
    let plan = Plan::for_ranks(ranks)?;
    Ok([
        ("host", host(&plan)),
        ("memory of the job", memory(&plan)),
        ("waiting", waiting(&plan)),
    ])
}

fn host(plan: &Plan) -> Facts {
    let processors = match plan.quota {
        None => format!("{}, by affinity", plan.processors),
        Some(quota) => format!(
            "{} by affinity, but a control group allows the time of {quota}",
            plan.processors
        ),
    };
    vec![
        ("processors", processors),
        ("memory", HumanSize(plan.host.total_bytes()).to_string()),
        (
            "memory available",
            format!(
                "{}, limited by {}",
                HumanSize(plan.host.available_bytes()),
                plan.host.limited_by()
            ),
        ),
        (
            "devices",
            "none is used: ranks of one host share memory".into(),
        ),
    ]
}

fn memory(plan: &Plan) -> Facts {
    let all = plan.segment_bytes.saturating_mul(plan.ranks.into());
    let admitted = match &plan.admitted {
        Ok(()) => "yes: all segments fit into the memory available".into(),
        Err(error) => format!("no: {error}"),
    };
    vec![
        ("ranks", plan.ranks.to_string()),
        (
            "segment of a rank at start",
            format!(
                "{} (ARGONET_SEGMENT), {} in all; pages take memory when they are touched",
                HumanSize(plan.segment_bytes),
                HumanSize(all)
            ),
        ),
        (
            "segment may grow to",
            format!(
                "{} (GASNET_MAX_SEGSIZE)",
                HumanSize(plan.segment_limit_bytes)
            ),
        ),
        (
            "pages of segments",
            match plan.huge_page_bytes {
                Some(bytes) => format!("{} (ARGONET_HUGEPAGES)", HumanSize(bytes)),
                None => "the system's, transparent huge pages where it has them".into(),
            },
        ),
        (
            "message rings",
            format!(
                "at most {} in all, if every pair of ranks fills its rings",
                HumanSize(plan.rings_most_bytes)
            ),
        ),
        (
            "memory that reductions pass through",
            format!(
                "at most {} in all, if there are teams for all slots",
                HumanSize(plan.pools_most_bytes)
            ),
        ),
        ("control memory", HumanSize(plan.control_bytes).to_string()),
        ("starts", admitted),
    ]
}

fn waiting(plan: &Plan) -> Facts {
    let processors = plan.quota.unwrap_or(plan.processors);
    let mode = match plan.wait {
        WaitMode::Auto if plan.ranks <= processors => format!(
            "auto: {} ranks have a processor each of {processors}, so they spin before they sleep",
            plan.ranks
        ),
        WaitMode::Auto => format!(
            "auto: {} ranks share {processors} processors, so they give way at once",
            plan.ranks
        ),
        WaitMode::Spin => "spin (ARGONET_WAIT): ranks never give their processor away".into(),
        WaitMode::Yield => "yield (ARGONET_WAIT): ranks give way but never sleep".into(),
        WaitMode::Sleep => "sleep (ARGONET_WAIT): ranks sleep almost at once".into(),
    };
    let WaitPolicy { spins, yields, .. } = plan.policy;
    vec![
        ("mode", mode),
        (
            "empty polls before the first yield",
            Count(spins).to_string(),
        ),
        ("yields before the first sleep", Count(yields).to_string()),
    ]
}

/// A number of a policy.
struct Count(u32);

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            WaitPolicy::ENDLESS => f.write_str("without end"),
            number => write!(f, "{number}"),
        }
    }
}
