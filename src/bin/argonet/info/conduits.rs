//! The conduits of this program, and what each can do here.

use argonet_base::size::HumanSize;
use argonet_conduit::smp::{Barrier, Smp};
use argonet_settings::{CONDUITS, Settings};

use super::Facts;

/// Each conduit by name.
pub(super) fn facts(settings: &Settings) -> Vec<(&'static str, Facts)> {
    vec![(Smp::NAME, smp(settings))]
}

fn smp(settings: &Settings) -> Facts {
    let (limits, can) = (Smp::LIMITS, Smp::CAPABILITIES);
    let wake = match Smp::register_barrier() {
        Barrier::Sleeper => "who sleeps pays: the system has expedited membarriers",
        Barrier::Sender => {
            "each sender executes a fence: the system refuses expedited membarriers (a kernel before 4.16, or a \
             filter of system calls)"
        }
    };
    let does = [
        (can.put, "put"),
        (can.get, "get"),
        (can.atomics, "atomic operations"),
    ];
    let does: Vec<_> = does.iter().filter(|d| d.0).map(|d| d.1).collect();
    let chosen = if CONDUITS[0] == Smp::NAME {
        "yes: the default"
    } else {
        "by --conduit or ARGONET_CONDUIT"
    };
    let chosen = match settings.given(&argonet_settings::CONDUIT) {
        Some(name) if name == Smp::NAME => "yes: ARGONET_CONDUIT says so",
        _ => chosen,
    };
    vec![
        ("reaches", "the ranks of one host, by shared memory".into()),
        ("chosen", chosen.into()),
        ("arguments of a message", format!("at most {}", limits.args)),
        (
            "payload of a medium",
            format!(
                "at most {} (request), {} (reply)",
                HumanSize(limits.medium_request as u64),
                HumanSize(limits.medium_reply as u64)
            ),
        ),
        ("payload of a long", "up to the whole segment".into()),
        (
            "without the target's help",
            format!("{}; all are complete when they return", does.join(", ")),
        ),
        ("wake-ups", wake.into()),
    ]
}
