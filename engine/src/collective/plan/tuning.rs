//! Lengths at which another algorithm is taken, and how they are written to files.

use argonet_base::size::parse_size;
use core::fmt;

/// Lengths at which another algorithm is taken.
///
/// All members of a team have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// Bytes that are sent without asking whether the receiver has come to them, at most.
    pub eager_bytes: usize,
    /// The radix of k-nomial trees, at least 2.
    pub radix: u32,
    /// Bytes of a piece of data that goes down or up a tree in pieces.
    pub segment_bytes: usize,
    /// Scratch of an operation at a member; a reduction takes four elements in any case.
    pub scratch_bytes: usize,
    /// Bytes of a block up to which gather and scatter go by a tree.
    pub tree_block_bytes: usize,
    /// Bytes of a block up to which gather-all goes by dissemination.
    pub gather_all_dissemination_bytes: usize,
    /// Bytes of a block up to which exchange goes by dissemination.
    pub exchange_dissemination_bytes: usize,
}

/// A value and the name by which settings and files call it.
type Entry<'t> = (&'static str, &'t mut usize);

/// The setting that says the radix, in words.
const TREE: &str = "GASNET_COLL_ROOTED_GEOM";

impl Tuning {
    /// The values where nothing is set.
    pub const DEFAULT: Self = Self {
        eager_bytes: 32 << 10,
        radix: 2,
        segment_bytes: 32 << 10,
        scratch_bytes: 2 << 20,
        tree_block_bytes: 1024,
        gather_all_dissemination_bytes: 1024,
        exchange_dissemination_bytes: 1024,
    };

    fn entries(&mut self) -> [Entry<'_>; 6] {
        [
            ("ARGONET_COLL_EAGER_SIZE", &mut self.eager_bytes),
            ("GASNET_COLL_PIPE_SEG_SIZE", &mut self.segment_bytes),
            ("GASNET_COLL_SCRATCH_SIZE", &mut self.scratch_bytes),
            ("ARGONET_COLL_TREE_LIMIT", &mut self.tree_block_bytes),
            (
                "GASNET_COLL_GATHER_ALL_DISSEM_LIMIT_PER_THREAD",
                &mut self.gather_all_dissemination_bytes,
            ),
            (
                "GASNET_COLL_EXCHANGE_DISSEM_LIMIT_PER_THREAD",
                &mut self.exchange_dissemination_bytes,
            ),
        ]
    }

    /// All values, with the names of their settings, for comparison between ranks.
    pub fn values(mut self) -> impl Iterator<Item = (&'static str, u64)> {
        let radix = (TREE, u64::from(self.radix));
        let others = self.entries().map(|(name, value)| (name, *value as u64));
        core::iter::once(radix).chain(others)
    }

    /// The value of a setting, as it is written; empty for other names.
    #[must_use]
    pub fn text_of(&self, name: &str) -> String {
        let text = self.to_string();
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(known, _)| *known == name);
        found.map_or(String::new(), |(_, value)| value.to_owned())
    }

    /// Takes the values of settings that `which` chooses from another.
    pub fn take(&mut self, other: &Self, which: impl Fn(&str) -> bool) {
        if which(TREE) {
            self.radix = other.radix;
        }
        let mut other = *other;
        let pairs = self.entries().into_iter().zip(other.entries());
        for ((name, value), (_, theirs)) in pairs {
            if which(name) {
                *value = *theirs;
            }
        }
    }

    /// Reads the text that [`Display`](fmt::Display) writes: `NAME=VALUE`, a line each, sizes as in
    /// settings.
    ///
    /// Lines that begin with `#` and empty ones count for nothing; a value that no line names stays
    /// as it is.
    ///
    /// # Errors
    /// The first line of another form, or with a name that an earlier line has, with its number.
    pub fn read(&mut self, text: &str) -> Result<(), String> {
        let mut named = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |cause: String| format!("line {number}, \"{line}\": {cause}");
            let name = self.read_line(line).map_err(wrong)?;
            if named.contains(&name) {
                return Err(wrong(format!("{name} stands in a line before")));
            }
            named.push(name);
        }
        Ok(())
    }

    /// The name of the setting.
    fn read_line(&mut self, line: &str) -> Result<&'static str, String> {
        let Some((name, value)) = line.split_once('=') else {
            return Err("it must be NAME=VALUE".into());
        };
        let (name, value) = (name.trim(), value.trim());
        if name == TREE {
            self.radix = radix_of(value).ok_or(TREES)?;
            return Ok(TREE);
        }
        let mut entries = self.entries();
        let Some((name, place)) = entries.iter_mut().find(|(known, _)| *known == name) else {
            let names: Vec<_> = entries.iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "this is no setting of collective operations; there are {TREE}, {}",
                names.join(", ")
            ));
        };
        let bytes = parse_size(value).ok();
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        **place = bytes.ok_or("the value must be a size, such as 8192 or 64 KB")?;
        Ok(*name)
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TREE}={}", tree_of(self.radix))?;
        let mut values = *self;
        values
            .entries()
            .into_iter()
            .try_for_each(|(name, value)| writeln!(f, "{name}={value}"))
    }
}

/// The form of a tree's description.
pub const TREES: &str =
    "the tree must be FLAT_TREE, or KNOMIAL_TREE, a comma and a radix of 2 or more";

/// How a tree of this radix is described.
#[must_use]
pub fn tree_of(radix: u32) -> String {
    match radix {
        u32::MAX => "FLAT_TREE".into(),
        radix => format!("KNOMIAL_TREE,{radix}"),
    }
}

/// The radix of a tree's description: `KNOMIAL_TREE,radix` with a radix of 2 or more, or
/// `FLAT_TREE`, whose root sends to every other member.
#[must_use]
pub fn radix_of(text: &str) -> Option<u32> {
    match text.trim().split_once(',') {
        None if text.trim() == "FLAT_TREE" => Some(u32::MAX),
        Some(("KNOMIAL_TREE", radix)) => radix.trim().parse().ok().filter(|radix| *radix >= 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_tunings_are_read_back() {
        let mut odd = Tuning::DEFAULT;
        odd.radix = 5;
        for (at, (_, value)) in odd.entries().into_iter().enumerate() {
            *value = 1000 + at;
        }
        let mut read = Tuning::DEFAULT;
        read.read(&format!("# a comment\n\n{odd}")).unwrap();
        assert_eq!(read, odd);
        odd.radix = u32::MAX;
        read.read(&odd.to_string()).unwrap();
        assert_eq!(read, odd);
        read.read("  GASNET_COLL_PIPE_SEG_SIZE = 64 KB ").unwrap();
        assert_eq!(read.segment_bytes, 64 << 10);
        assert_eq!(
            (radix_of("KNOMIAL_TREE, 4"), radix_of("FLAT_TREE")),
            (Some(4), Some(u32::MAX))
        );
    }
    #[test]
    fn errors_name_the_line_and_its_number() {
        for (wrong, part) in [
            ("nothing", "NAME=VALUE"),
            (
                "GASNET_COLL_PIPE_SEG=1",
                "ARGONET_COLL_EAGER_SIZE, GASNET_COLL_PIPE_SEG_SIZE",
            ),
            ("GASNET_COLL_PIPE_SEG_SIZE=many", "64 KB"),
            (
                "GASNET_COLL_ROOTED_GEOM=KNOMIAL_TREE,1",
                "a radix of 2 or more",
            ),
            ("ARGONET_COLL_EAGER_SIZE=2", "stands in a line before"),
        ] {
            let text = format!("# a comment\nARGONET_COLL_EAGER_SIZE=1\n\n{wrong}\n");
            let mut tuning = Tuning::DEFAULT;
            let error = tuning.read(&text).unwrap_err();
            for part in ["line 4", wrong, part] {
                assert!(error.contains(part), "{error}");
            }
        }
    }

    #[test]
    fn ranks_compare_everything() {
        let mut odd = Tuning::DEFAULT;
        odd.radix = 5;
        for (at, (_, value)) in odd.entries().into_iter().enumerate() {
            *value = 1000 + at;
        }
        let values: Vec<_> = odd.values().map(|(_, value)| value).collect();
        assert_eq!(values, [5, 1000, 1001, 1002, 1003, 1004, 1005]);
    }
}
