//! Several rails between hosts, of which one carries the messages to a peer at a time.

use super::addresses::{Wish, publish_host, working_addresses};
use super::channel::{GATHER_TIMES, sizes};
use super::silence::{PathLimits, warner};
use super::{
    Cause, Connected, Connecting, Opened, OpenedRail, PublishedOf, RAIL_OPENERS, RailOpener,
};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob, MAX_VALUE_BYTES};
use argonet_conduit::channel::rail::MOST_RAILS;
use argonet_conduit::channel::{AnyRails, Channel, ChannelConfig, ChannelSizes};
use argonet_conduit::failover::{FailoverConfig, FailoverRails, MemberConfig};
use argonet_conduit::selector;
use argonet_settings::{
    CONDUIT, ConduitRow, Letter, RAILS, Settings, TCP_PROGRESS, TCP_SILENCE_TIMEOUT,
};
use core::time::Duration;
use std::sync::Arc;

/// The most rails in one list.
const MOST: usize = 8;

/// How long a host may acknowledge nothing before messages go over another rail, if no setting
/// says: so long at least, and as long as it takes until the rail has sent again twice.
const SILENT: (Duration, u32) = (Duration::from_millis(200), 3);

/// A list that cannot be.
#[derive(Debug, thiserror::Error)]
enum RailsError {
    #[error("ARGONET_RAILS={list:?}: {item:?} is not a rail: write {kinds}, or KIND:INTERFACE")]
    Kind {
        list: String,
        item: String,
        kinds: String,
    },
    #[error("ARGONET_RAILS={list:?} names {count} rails: leave out {}, as {MOST} are the most", .count - MOST)]
    Many { list: String, count: usize },
    #[error(
        "ARGONET_RAILS is for ARGONET_CONDUIT={kinds}, not for {conduit}: give one of them, or no rails"
    )]
    Conduit {
        kinds: String,
        conduit: &'static str,
    },
    #[error(
        "ARGONET_TCP_PROGRESS=1 cannot be with ARGONET_RAILS, over which no thread serves others while a rank computes: leave one of them out"
    )]
    Progress,
    #[error(
        "the addresses of {count} rails take {bytes} bytes, of {MAX_VALUE_BYTES} that a rank can publish: name an interface for each rail in ARGONET_RAILS"
    )]
    Addresses { count: usize, bytes: usize },
    #[error(
        "rank {peer} has the rails {theirs}, and rank {rank} {own}: give all ranks the same kinds in the same order in ARGONET_RAILS"
    )]
    Differ {
        rank: JobRank,
        own: String,
        peer: JobRank,
        theirs: String,
    },
}

/// The kinds of rails, in words.
fn kinds() -> String {
    RAIL_OPENERS.map(|(row, _)| row.name).join(" or ")
}

/// A rail of the list.
struct Item {
    row: &'static ConduitRow,
    open: RailOpener,
    /// As the user has written it.
    name: String,
    wish: Option<Wish>,
}

/// Reads the list.
fn read(list: &str) -> Result<Vec<Item>, Cause> {
    let items: Vec<&str> = list.split(',').map(str::trim).collect();
    if items.len() > MOST {
        return Err(Cause::from(RailsError::Many {
            list: list.to_owned(),
            count: items.len(),
        }));
    }
    let item = |text: &str| {
        let (kind, interface) = match text.split_once(':') {
            Some((kind, interface)) => (kind, Some(interface)),
            None => (text, None),
        };
        let opener = RAIL_OPENERS.iter().find(|(row, _)| row.name == kind);
        let Some((row, open)) = opener.filter(|_| interface != Some("")) else {
            return Err(Cause::from(RailsError::Kind {
                list: list.to_owned(),
                item: text.to_owned(),
                kinds: kinds(),
            }));
        };
        let wish = interface.map(|interface| Wish::parse(RAILS.name(), interface, 0));
        Ok(Item {
            row,
            open: *open,
            name: text.to_owned(),
            wish: wish.transpose()?,
        })
    };
    items.into_iter().map(item).collect()
}

/// What a rank publishes: the kind and the address of each rail, each behind its length.
fn write(parts: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let each = parts
        .iter()
        .flat_map(|(kind, value)| [kind.as_bytes(), value]);
    each.flat_map(|bytes| [&[bytes.len() as u8], bytes].concat())
        .collect()
}

/// The kinds and addresses in bytes that [`write`] has written, up to the first invalid byte.
fn parts(published: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut rest = published;
    let mut next = || {
        let (len, behind) = rest.split_first()?;
        let (bytes, behind) = behind.split_at_checked(usize::from(*len))?;
        rest = behind;
        Some(bytes.to_vec())
    };
    let mut all = Vec::new();
    while let Some(kind) = next()
        && let Some(value) = next()
    {
        all.push((String::from_utf8_lossy(&kind).into_owned(), value));
    }
    all
}

/// Rails that this rank has opened.
struct Open {
    rails: Vec<(Item, Box<dyn OpenedRail>)>,
    conduit: &'static str,
    sizes: ChannelSizes,
    /// How long rails of datagrams may be silent until a peer is given up.
    limit: Duration,
    warn: fn(&str),
}

/// Opens all rails of the list, and publishes their addresses.
pub(super) fn open(boot: &LocalJob, settings: &Settings) -> Result<Box<dyn Opened>, Cause> {
    let conduit = settings.get(&CONDUIT);
    if !RAIL_OPENERS.iter().any(|(row, _)| row.name == conduit) {
        let kinds = kinds();
        return Err(Cause::from(RailsError::Conduit { kinds, conduit }));
    }
    if settings.get(&TCP_PROGRESS) == Some(true) {
        return Err(Cause::from(RailsError::Progress));
    }
    let items = read(&settings.get(&RAILS).unwrap_or_default())?;
    let (mut published, mut rails) = (Vec::new(), Vec::new());
    for item in items {
        let opened = (item.open)(boot, settings, item.wish.as_ref());
        let (rail, value) = opened.map_err(|cause| format!("rail {}: {cause}", item.name))?;
        published.push((item.row.name, value));
        rails.push((item, rail));
    }
    let published = write(&published);
    if published.len() > MAX_VALUE_BYTES {
        let (count, bytes) = (rails.len(), published.len());
        return Err(Cause::from(RailsError::Addresses { count, bytes }));
    }
    boot.publish(Key::Address, &published)?;
    publish_host(boot)?;
    let usual = sizes(settings);
    let (silent_time, silent_tries) = match settings.given(&TCP_SILENCE_TIMEOUT) {
        Some(_) => (usual.silent_time, usual.silent_tries),
        None => SILENT,
    };
    Ok(Box::new(Open {
        rails,
        conduit,
        sizes: ChannelSizes {
            silent_time,
            silent_tries,
            // A rail that is closed as nothing passes would look as one that has failed.
            idle_rails: Duration::ZERO,
            ..usual
        },
        limit: PathLimits::of(settings).stopped,
        warn: warner(settings),
    }))
}

/// Checks that a rank has the same kinds of rails.
fn compare(boot: &LocalJob, peer: JobRank, own: &[&str]) -> Result<(), Cause> {
    let published = parts(&boot.lookup(peer, Key::Address)?);
    let theirs: Vec<&str> = published.iter().map(|(kind, _)| kind.as_str()).collect();
    if theirs == own {
        return Ok(());
    }
    let theirs = match theirs.is_empty() {
        true => "none".to_owned(),
        // It may be any bytes, from a rank without the setting.
        false => theirs.join(",").escape_debug().to_string(),
    };
    let (rank, own) = (boot.rank(), own.join(","));
    Err(Cause::from(RailsError::Differ {
        rank,
        own,
        peer,
        theirs,
    }))
}

impl Opened for Open {
    fn conduit(self: Box<Self>, with: Connecting<'_>) -> Result<Connected, Cause> {
        let boot = with.boot;
        let (rank, ranks) = (boot.rank(), boot.size());
        let own: Vec<&str> = self.rails.iter().map(|(item, _)| item.row.name).collect();
        for peer in (0..ranks).map(JobRank) {
            compare(boot, peer, &own)?;
        }
        // Those that carry payloads are at most so many of each member.
        let most = (MOST_RAILS - 1) / self.rails.len() as u16;
        let mut members = Vec::new();
        for (at, (item, rail)) in self.rails.into_iter().enumerate() {
            let job = Arc::clone(boot);
            let published: PublishedOf = Arc::new(move |peer| {
                let published = job.lookup(peer, Key::Address).unwrap_or_default();
                let part = parts(&published).into_iter().nth(at);
                part.map(|(_, value)| value).unwrap_or_default()
            });
            let (rails, further) = rail.rails(boot, published)?;
            // The first has the messages, and stripes with one rail less.
            let further = further.saturating_sub(u16::from(at == 0));
            members.push(MemberConfig {
                name: item.name,
                rails,
                further: further.min(most),
            });
        }
        let rails = FailoverRails::new(FailoverConfig {
            rank,
            ranks,
            name: self.conduit,
            members,
            limit: self.limit,
            addresses: working_addresses,
            warn: self.warn,
            note: |change| argonet_trace::note_with(Letter::Conduit, || change.to_owned()),
        })?;
        let config = ChannelConfig {
            rank,
            ranks,
            mode: with.mode,
            sizes: ChannelSizes {
                rails: rails.rails(),
                gather_time: GATHER_TIMES[usize::from(with.processor_to_spare)],
                ..self.sizes
            },
            directory: Arc::clone(with.directory),
            registered: with.registered,
            segment_len: Arc::clone(with.segment_len),
        };
        let network: selector::Network =
            Arc::new(Channel::<AnyRails>::over(Box::new(rails), config)?);
        Ok(network.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<(&'static str, bool)> {
        let items = read(list).unwrap();
        let each = items.iter();
        each.map(|item| (item.row.name, item.wish.is_some()))
            .collect()
    }

    #[test]
    fn a_list_has_kinds_and_interfaces() {
        let read = names("tcp:eth0, usnic:10.1.0.0/16,tcp,usnic:fe80::7");
        let wanted = [
            ("tcp", true),
            ("usnic", true),
            ("tcp", false),
            ("usnic", true),
        ];
        assert_eq!(read, wanted);
    }

    #[test]
    fn what_is_no_rail_is_refused_by_name() {
        for (list, part) in [
            ("tcp,smp", "\"smp\" is not a rail: write tcp or usnic"),
            ("tcp:,tcp", "\"tcp:\" is not a rail"),
            ("", "\"\" is not a rail"),
            ("tcp:eth0,,tcp", "\"\" is not a rail"),
            ("tcp:10.0.0.0/99", "ARGONET_RAILS"),
            (
                "tcp,tcp,tcp,tcp,tcp,tcp,tcp,tcp,tcp",
                "9 rails: leave out 1",
            ),
        ] {
            let error = read(list).err().unwrap().to_string();
            assert!(error.contains(part), "{list}: {error}");
        }
    }

    #[test]
    fn what_a_rank_publishes_is_read_part_by_part() {
        let published = write(&[("tcp", vec![4, 7]), ("usnic", Vec::new())]);
        let read = parts(&published);
        let wanted = [
            ("tcp".to_owned(), vec![4, 7]),
            ("usnic".to_owned(), Vec::new()),
        ];
        assert_eq!(read, wanted);
        for len in 0..published.len() {
            assert!(parts(&published[..len]).len() < 2, "{len}");
        }
        // What a rank without the setting publishes is none of these kinds.
        assert!(
            parts(b"127.0.0.1:7 8 9000 1")
                .iter()
                .all(|(kind, _)| kind != "tcp")
        );
    }
}
