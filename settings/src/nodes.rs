//! Sets of ranks as users write them: `0,2-4,6`.

use std::fmt;

/// Some ranks, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSet {
    /// Every rank: `*`.
    All,
    /// The ranks in these ranges, both ends included.
    Some(Vec<(u32, u32)>),
}

impl NodeSet {
    /// Reads `*`, or numbers and ranges separated by commas; `None` if it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if matches!(text.trim(), "*" | "") {
            return Some(Self::All);
        }
        let number = |text: &str| {
            let text = text.trim();
            let plain = text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<u32>().ok().filter(|_| plain)
        };
        let range = |item: &str| match item.split_once('-') {
            None => number(item).map(|n| (n, n)),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some((first, last))
            }
        };
        text.split(',')
            .map(range)
            .collect::<Option<_>>()
            .map(Self::Some)
    }

    /// Whether `rank` is one of them.
    #[must_use]
    pub fn contains(&self, rank: u32) -> bool {
        match self {
            Self::All => true,
            Self::Some(ranges) => ranges.iter().any(|&(a, b)| (a..=b).contains(&rank)),
        }
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Some(ranges) = self else {
            return f.write_str("*");
        };
        for (i, (first, last)) in ranges.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{first}")?;
            if first != last {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::NodeSet;

    #[test]
    fn lists_and_ranges() {
        let set = NodeSet::parse(" 0, 2-4 ,6").unwrap();
        let held: Vec<u32> = (0..10).filter(|&rank| set.contains(rank)).collect();
        assert_eq!(held, [0, 2, 3, 4, 6]);
        assert_eq!(set.to_string(), "0,2-4,6");
        for all in ["", "*", " * "] {
            assert!(NodeSet::parse(all).unwrap().contains(u32::MAX), "{all}");
        }
        for bad in [
            "a",
            "1,",
            ",",
            "3-1",
            "1-",
            "-1",
            "+1",
            "1-2-3",
            "4294967296",
            "1 2",
        ] {
            assert_eq!(NodeSet::parse(bad), None, "{bad}");
        }
    }
}
