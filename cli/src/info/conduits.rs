//! The conduits of this program, and what each can do here.

use argonet_am::MAX_ARGS;
use argonet_base::JobRank;
use argonet_base::size::HumanSize;
use argonet_conduit::Limits;
use argonet_conduit::channel::ChannelCredits;
use argonet_conduit::channel::ChannelSizes;
use argonet_conduit::portals::{self, PortalsSizes};
use argonet_conduit::smp::{Barrier, Smp};
use argonet_conduit::tcp::Tcp;
use argonet_conduit::tcp::join::{from_settings, interfaces};
use argonet_conduit::usnic;
use argonet_settings::{CONDUIT, CONDUIT_NAMES, Settings, TCP_CONNECTIONS};

use super::Facts;

/// Each conduit by name.
pub(super) fn facts(settings: &Settings, ranks: u32) -> Vec<(&'static str, Facts)> {
    vec![
        (Smp::NAME, smp(settings)),
        (Tcp::NAME, tcp(settings, ranks)),
        (portals::NAME, over_portals(settings, ranks)),
        (usnic::NAME, over_datagrams(settings, ranks)),
    ]
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

fn tcp(settings: &Settings, ranks: u32) -> Facts {
    let limits = ChannelSizes::default().limits();
    vec![
        ("reaches", "ranks of other hosts, and of other neighborhoods of a host, over connections; neighbors through smp".into()),
        ("chosen", chosen(Tcp::NAME, settings).into()),
        ("listens on", listens(settings)),
        ("arguments of a message", format!("at most {MAX_ARGS}")),
        ("payload of a medium", medium(limits)),
        ("payload of a long", format!("at most {}", HumanSize(limits.long as u64))),
        (
            "connections of two ranks",
            format!("made on demand, at most {}", settings.get(&TCP_CONNECTIONS)),
        ),
        ("requests that wait", receive_space(settings, ranks)),
        (
            "without the target's help",
            "nothing, but a thread of the target's may serve puts and gets (ARGONET_TCP_PROGRESS)".into(),
        ),
    ]
}

fn over_datagrams(settings: &Settings, ranks: u32) -> Facts {
    let limits = ChannelSizes::default().limits();
    vec![
        ("reaches", "ranks of other hosts, and of other neighborhoods of a host, by datagrams over UDP, sealed and sent again where they are lost; neighbors through smp".into()),
        ("chosen", chosen(usnic::NAME, settings).into()),
        ("listens on", listens(settings)),
        ("arguments of a message", format!("at most {MAX_ARGS}")),
        ("payload of a medium", medium(limits)),
        ("payload of a long", format!("at most {}", HumanSize(limits.long as u64))),
        ("requests that wait", receive_space(settings, ranks)),
        ("without the target's help", "nothing".into()),
    ]
}

fn over_portals(settings: &Settings, ranks: u32) -> Facts {
    let can = portals::CAPABILITIES;
    let does = [
        (can.put, "put"),
        (can.get, "get"),
        (can.atomics, "atomic operations"),
    ];
    let does: Vec<_> = does.iter().filter(|d| d.0).map(|d| d.1).collect();
    let refused = |why: String| format!("no job can start: {why}");
    let sizes = PortalsSizes::from_settings(settings).map_err(|error| error.to_string());
    let plan = sizes.clone().and_then(|sizes| {
        let plan = sizes.plan(ranks).map_err(|error| error.to_string())?;
        Ok(match sizes.flow_control {
            true => plan.to_string(),
            false => format!(
                "{} bytes of a rank; a request without room is sent again: there are no credits (ARGONET_CREDITS)",
                plan.space().bytes()
            ),
        })
    });
    let memory = sizes.and_then(|sizes| {
        let config = portals::software_config(&sizes, JobRank(0), ranks);
        let own = config.map_err(|error| error.to_string())?.arena_bytes;
        Ok(format!(
            "{} of a rank, {} of {ranks} ranks of one host; untouched pages take no memory",
            HumanSize(own),
            HumanSize(own * u64::from(ranks))
        ))
    });
    vec![
        ("reaches", "ranks of other neighborhoods of a host, by interfaces in software; neighbors through smp".into()),
        ("chosen", chosen(portals::NAME, settings).into()),
        ("arguments of a message", format!("at most {MAX_ARGS}")),
        ("payload of a medium", medium(portals::LIMITS)),
        ("payload of a long", "up to the whole segment".into()),
        ("requests that wait", plan.unwrap_or_else(refused)),
        ("buffers", memory.unwrap_or_else(refused)),
        ("without the target's help", does.join(", ")),
    ]
}

/// Division of the receive space of a rank, or the error.
fn receive_space(settings: &Settings, ranks: u32) -> String {
    match ChannelCredits::from_settings(settings).map(|credits| credits.plan(ranks)) {
        None => {
            let window = HumanSize(ChannelSizes::default().window_bytes as u64);
            format!("at most {window} of each peer: there are no credits (ARGONET_CREDITS)")
        }
        Some(Ok(plan)) => plan.to_string(),
        Some(Err(error)) => format!("no job can start: {error} (ARGONET_CREDITS_*)"),
    }
}

/// The interfaces of a job over several hosts.
fn listens(settings: &Settings) -> String {
    let host = "this host";
    let chosen = from_settings(settings)
        .map_err(|error| error.to_string())
        .and_then(|(_, wish)| {
            let all = interfaces::list(host).map_err(|error| error.to_string())?;
            interfaces::choose(&all, &wish, false, host).map_err(|error| error.to_string())
        });
    match chosen {
        Ok(chosen) => {
            let names = chosen.iter().map(|i| format!("{} ({})", i.address, i.name));
            names.collect::<Vec<_>>().join(", ")
        }
        Err(why) => format!("nothing: {why}"),
    }
}

fn smp(settings: &Settings) -> Facts {
    let (limits, can) = (Smp::LIMITS, Smp::CAPABILITIES);
    let wake = match Smp::register_barrier() {
        Barrier::Sleeper => "sleepers execute the barrier: the system has expedited membarriers",
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
    vec![
        ("reaches", "the ranks of one host, by shared memory".into()),
        ("chosen", chosen(Smp::NAME, settings).into()),
        ("arguments of a message", format!("at most {MAX_ARGS}")),
        ("payload of a medium", medium(limits)),
        ("payload of a long", "up to the whole segment".into()),
        (
            "without the target's help",
            format!("{}; all are complete when they return", does.join(", ")),
        ),
        ("wake-ups", wake.into()),
    ]
}
