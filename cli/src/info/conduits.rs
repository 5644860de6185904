//! The conduits of this program, and what each can do here.

use argonet_am::MAX_ARGS;
use argonet_base::size::HumanSize;
use argonet_conduit::{Capabilities, DESCRIPTORS, Descriptor, Limits};
use argonet_settings::{CONDUIT, CONDUIT_NAMES, Settings};

use super::Facts;

/// Each conduit by name.
pub(super) fn facts(settings: &Settings, ranks: u32) -> Vec<(&'static str, Facts)> {
    let of = |one: &&Descriptor| (one.row.name, of(one, settings, ranks));
    DESCRIPTORS.iter().map(of).collect()
}

fn of(one: &Descriptor, settings: &Settings, ranks: u32) -> Facts {
    let limits = (one.limits)();
    let mut facts: Facts = vec![
        ("reaches", one.row.about.into()),
        ("chosen", chosen(one.row.name, settings).into()),
        ("arguments of a message", format!("at most {MAX_ARGS}")),
        ("payload of a medium", medium(limits)),
        ("payload of a long", long(limits)),
        ("without the target's help", without_help(one.capabilities)),
    ];
    facts.extend((one.facts)(settings, ranks));
    facts
}

/// Whether a job is started with it.
fn chosen(name: &str, settings: &Settings) -> &'static str {
    match settings.given(&CONDUIT) {
        Some(given) if given == name => "yes: ARGONET_CONDUIT says so",
        None if CONDUIT_NAMES[0] == name => "yes: the default",
        _ => "by --conduit or ARGONET_CONDUIT",
    }
}

fn medium(limits: Limits) -> String {
    format!(
        "at most {} (request), {} (reply)",
        HumanSize(limits.medium_request as u64),
        HumanSize(limits.medium_reply as u64)
    )
}

fn long(limits: Limits) -> String {
    match limits.long >= usize::MAX / 2 {
        true => "up to the whole segment".into(),
        false => format!("at most {}", HumanSize(limits.long as u64)),
    }
}

fn without_help(can: Capabilities) -> String {
    let does = [
        (can.put, "put"),
        (can.get, "get"),
        (can.atomics, "atomic operations"),
    ];
    let does: Vec<_> = does.iter().filter(|d| d.0).map(|d| d.1).collect();
    match (does.is_empty(), can.completes_at_injection) {
        (true, _) => "nothing".into(),
        (false, false) => does.join(", "),
        (false, true) => format!("{}; all are complete when they return", does.join(", ")),
    }
}
