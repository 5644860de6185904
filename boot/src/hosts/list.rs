//! Lists of hosts, and which ranks run where.

use crate::page::{MAX_JOB_RANKS, MAX_LOCAL_RANKS};

/// A host and its ranks, which are consecutive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) first: u32,
    pub(crate) ranks: u32,
}

impl Host {
    /// The host and its ranks, for people.
    pub(crate) fn in_words(&self) -> String {
        match self.ranks {
            1 => format!("host {} (rank {})", self.name, self.first),
            n => format!(
                "host {} (ranks {}-{})",
                self.name,
                self.first,
                self.first + n - 1
            ),
        }
    }
}

/// Error of a list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostListError {
    /// There is no host in it.
    #[error("it names no host")]
    Empty,
    /// A word that is no host.
    #[error("\"{word}\" is no host; write name, name:ranks or [address]:ranks")]
    BadHost {
        /// The word.
        word: String,
    },
    /// A line of a file that is more than a host.
    #[error(
        "\"{line}\" is no line of a file of hosts; write one host a line: name, name:ranks, name ranks or name slots=ranks"
    )]
    BadLine {
        /// The line.
        line: String,
    },
    /// A file that is no list.
    #[error("it has {bytes} bytes, and at most {most} are read; is it a list of hosts?")]
    TooLong {
        /// Its length, as far as it is known.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// A number of ranks that cannot be.
    #[error("\"{word}\" gives a host {given} ranks; a host runs 1 to {MAX_LOCAL_RANKS}")]
    BadCount {
        /// The word.
        word: String,
        /// The number.
        given: String,
    },
    /// Fewer places than ranks.
    #[error(
        "it has room for {room} ranks on {hosts} hosts, and {ranks} were asked for; name more hosts, raise the numbers after \
         their names, or start fewer ranks"
    )]
    TooShort {
        /// Number of ranks that fit.
        room: u64,
        /// Number of hosts.
        hosts: usize,
        /// Number of ranks of the job.
        ranks: u32,
    },
}

/// A host of a list, before ranks are placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    name: String,
    /// Number of ranks that it takes, if the list has one.
    room: Option<u32>,
}

/// Whether this can be the name or address of a host: in particular, no option of a remote shell.
pub(crate) fn is_host_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_:%@".contains(c);
    !name.is_empty() && name.len() <= 255 && !name.starts_with('-') && name.chars().all(allowed)
}

/// The hosts of `host1:2,host2:2`; blanks separate, too.
pub(crate) fn parse_list(text: &str) -> Result<Vec<Entry>, HostListError> {
    text.split([',', ' ', '\t', '\n'])
        .filter(|word| !word.is_empty())
        .map(parse_word)
        .collect()
}

/// The hosts of a file: a host a line, as in a list, or followed by `slots=2` (and `max_slots=`,
/// which counts for nothing) or by a number, after which a queue and its processors may be named as
/// Grid Engine does.
///
/// `#` begins a comment.
pub(crate) fn parse_file(text: &str) -> Result<Vec<Entry>, HostListError> {
    let mut entries = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (first, count) = match words[..] {
            [] => continue,
            [first] => (first, None),
            [first, count] => (first, Some(count)),
            [first, count, most] if count.starts_with("slots=") && is_most(most) => {
                (first, Some(count))
            }
            [first, count, _, processors] if is_number(count) && are_processors(processors) => {
                (first, Some(count))
            }
            _ => return Err(HostListError::BadLine { line: line.into() }),
        };
        let mut entry = parse_word(first)?;
        if let Some(count) = count {
            let number = count.strip_prefix("slots=");
            if number.is_none() && !is_number(count) {
                return Err(HostListError::BadLine { line: line.into() });
            }
            entry.room = Some(parse_count(line, number.unwrap_or(count))?);
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn is_most(word: &str) -> bool {
    let count = word
        .strip_prefix("max_slots=")
        .or(word.strip_prefix("max-slots="));
    count.is_some_and(is_number)
}

/// Whether Grid Engine writes this behind the name of a queue: no processors, or pairs of socket
/// and core.
fn are_processors(word: &str) -> bool {
    let is_pair = |pair: &str| match pair.split_once(',') {
        Some((socket, core)) => is_number(socket) && is_number(core),
        None => false,
    };
    matches!(word, "UNDEFINED" | "<NULL>" | "NULL" | "NONE") || word.split(':').all(is_pair)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn parse_count(word: &str, count: &str) -> Result<u32, HostListError> {
    let number = count.parse().ok().filter(|_| is_number(count));
    number
        .filter(|n| (1..=MAX_LOCAL_RANKS).contains(n))
        .ok_or_else(|| HostListError::BadCount {
            word: word.into(),
            given: count.into(),
        })
}

fn parse_word(word: &str) -> Result<Entry, HostListError> {
    let bad = || HostListError::BadHost { word: word.into() };
    let (name, count) = match word.strip_prefix('[') {
        // An address with colons of its own.
        Some(rest) => {
            let (name, rest) = rest.split_once(']').ok_or_else(bad)?;
            match rest {
                "" => (name, None),
                rest => (name, Some(rest.strip_prefix(':').ok_or_else(bad)?)),
            }
        }
        None if word.matches(':').count() > 1 => (word, None),
        None => match word.split_once(':') {
            Some((name, count)) => (name, Some(count)),
            None => (word, None),
        },
    };
    if !is_host_name(name) {
        return Err(bad());
    }
    let room = count.map(|count| parse_count(word, count)).transpose()?;
    let name = name.into();
    Ok(Entry { name, room })
}

/// Number of ranks that a list has room for: the sum of its numbers, with one for each mention
/// without a number.
pub(crate) fn room(entries: &[Entry]) -> u64 {
    let rooms = entries.iter().map(|entry| entry.room.unwrap_or(1));
    rooms.map(u64::from).sum()
}

/// Places `ranks` ranks in blocks.
///
/// If the list says nowhere how many ranks a host takes, hosts that are named twice count once and
/// the ranks are spread evenly, the first hosts having one more where they do not divide; otherwise
/// hosts are filled in the order of the list, with one rank for each mention without a number.
/// Hosts that get none are left out.
///
/// # Errors
/// Ranks that have no place.
pub(crate) fn place(entries: &[Entry], ranks: u32) -> Result<Vec<Host>, HostListError> {
    let counted = entries.iter().any(|entry| entry.room.is_some());
    let mut rooms: Vec<(&str, u64)> = Vec::new();
    for entry in entries {
        let room = u64::from(entry.room.unwrap_or(1));
        match rooms.iter_mut().find(|(name, _)| *name == entry.name) {
            Some((_, before)) => *before += room,
            None => rooms.push((&entry.name, room)),
        }
    }
    let hosts = rooms.len();
    if hosts == 0 {
        return Err(HostListError::Empty);
    }
    if !counted {
        let (least, more) = (ranks as usize / hosts, ranks as usize % hosts);
        for (i, (_, room)) in rooms.iter_mut().enumerate() {
            *room = (least + usize::from(i < more)) as u64;
        }
    }
    let most = u64::from(MAX_LOCAL_RANKS);
    let room: u64 = rooms.iter().map(|(_, room)| (*room).min(most)).sum();
    if room.min(MAX_JOB_RANKS.into()) < u64::from(ranks) {
        return Err(HostListError::TooShort { room, hosts, ranks });
    }
    let mut first = 0;
    let mut placed = Vec::new();
    for (name, room) in rooms {
        let here = (room.min(most) as u32).min(ranks - first);
        if here > 0 {
            placed.push(Host {
                name: name.into(),
                first,
                ranks: here,
            });
            first += here;
        }
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn placed(list: &str, ranks: u32) -> Result<Vec<(String, u32, u32)>, HostListError> {
        let hosts = place(&parse_list(list)?, ranks)?;
        Ok(hosts
            .into_iter()
            .map(|h| (h.name, h.first, h.ranks))
            .collect())
    }

    fn triples(hosts: &[(&str, u32, u32)]) -> Vec<(String, u32, u32)> {
        hosts.iter().map(|&(n, f, r)| (n.into(), f, r)).collect()
    }

    #[test]
    fn hosts_are_filled_in_their_order_or_evenly() {
        let is = |list, ranks, hosts: &[_]| {
            assert_eq!(placed(list, ranks).unwrap(), triples(hosts), "{list}");
        };
        is("a:2,b:2", 4, &[("a", 0, 2), ("b", 2, 2)]);
        is("a:2,b:2", 3, &[("a", 0, 2), ("b", 2, 1)]);
        is("a:2,b:2", 1, &[("a", 0, 1)]);
        is("a:1,b,a:2", 4, &[("a", 0, 3), ("b", 3, 1)]);
        is("a b\tc", 7, &[("a", 0, 3), ("b", 3, 2), ("c", 5, 2)]);
        is("a,a,b,b", 6, &[("a", 0, 3), ("b", 3, 3)]);
        is("a,b,c", 2, &[("a", 0, 1), ("b", 1, 1)]);
        is(
            "[::1]:2,fe80::1%eth0,u@h:1",
            4,
            &[("::1", 0, 2), ("fe80::1%eth0", 2, 1), ("u@h", 3, 1)],
        );
    }

    #[test]
    fn files_may_have_slots_numbers_and_comments() {
        let text = "# two hosts\na slots=2 max_slots=4\n\nb 3 all.q UNDEFINED # big\nc:1\nd\n";
        let hosts = place(&parse_file(text).unwrap(), 7).unwrap();
        let ranks: Vec<u32> = hosts.iter().map(|h| h.ranks).collect();
        assert_eq!(ranks, [2, 3, 1, 1]);
        assert_eq!(hosts[1].in_words(), "host b (ranks 2-4)");
        assert_eq!(hosts[3].in_words(), "host d (rank 6)");
        assert!(parse_file("a slots=x").is_err() && parse_file("-F 2").is_err());
    }

    #[test]
    fn bad_lists_are_refused_with_the_reason() {
        for (list, ranks, why) in [
            ("", 1, "it names no host"),
            (" , ,", 1, "it names no host"),
            (
                "a:2,b:2",
                5,
                "room for 4 ranks on 2 hosts, and 5 were asked for",
            ),
            ("a", 1025, "room for 1024 ranks on 1 hosts"),
            ("a:0", 1, "\"a:0\" gives a host 0 ranks"),
            ("a:1025", 1, "1025 ranks; a host runs 1 to 1024"),
            ("a:+1", 1, "\"a:+1\""),
            ("a:", 1, "gives a host  ranks"),
            ("-oProxyCommand=x", 1, "is no host"),
            ("a;rm", 1, "\"a;rm\" is no host"),
            ("[::1", 1, "is no host"),
            ("[::1]2", 1, "is no host"),
            (":2", 1, "is no host"),
        ] {
            let error = placed(list, ranks).unwrap_err().to_string();
            assert!(error.contains(why), "{list}: {error}");
        }
    }

    #[test]
    fn lines_of_a_file_are_a_host_and_its_ranks() {
        let good = "a\nb 2 # two\n\nc slots=3\nd slots=4 max_slots=8\ne:5\nf 6 all.q@f UNDEFINED\n\
                    g 7 all.q@g <NULL>\nh 8 all.q@h 0,0:0,1\n";
        let rooms: Vec<_> = parse_file(good).unwrap().iter().map(|e| e.room).collect();
        assert_eq!(rooms[0], None);
        assert_eq!(rooms[1..], [2, 3, 4, 5, 6, 7, 8].map(Some));
        for bad in [
            "a b",
            "a 2 b 2",
            "a 2 b",
            "a slots=2 b",
            "a b slots=2",
            "a slots=2 slots=3",
            "a 2 nodeB nodeC",
            "a 2 b.q c.q",
        ] {
            let error = parse_file(bad).unwrap_err().to_string();
            assert!(
                error.contains(bad) && error.contains("one host a line"),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_rank_has_one_place(
            list in prop::collection::vec(("[a-e]", prop::option::of(1u32..6)), 1..12),
            ranks in 1u32..40,
        ) {
            let words: Vec<String> = list
                .iter()
                .map(|(name, room)| room.map_or(name.clone(), |n| format!("{name}:{n}")))
                .collect();
            let Ok(hosts) = place(&parse_list(&words.join(",")).unwrap(), ranks) else {
                // Only where numbers limit it.
                prop_assert!(list.iter().any(|(_, room)| room.is_some()));
                return Ok(());
            };
            let all: Vec<u32> = hosts.iter().flat_map(|h| h.first..h.first + h.ranks).collect();
            prop_assert_eq!(all, (0..ranks).collect::<Vec<_>>());
            let mut names: Vec<&String> = hosts.iter().map(|h| &h.name).collect();
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(names.len(), hosts.len());
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = parse_list(&text).and_then(|entries| place(&entries, 3));
            let _ = parse_file(&text).and_then(|entries| place(&entries, 3));
        }
    }
}
