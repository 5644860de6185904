//! Lengths at which another algorithm is taken, and how they are written to files.

use core::fmt;

/// Lengths at which another algorithm is taken. All members of a team have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// Bytes that are sent without asking whether the receiver has come to them, at most.
    pub eager_bytes: usize,
    /// The radix of k-nomial trees, at least 2.
    pub radix: u32,
    /// Bytes of a piece of what goes down or up a tree in pieces.
    pub segment_bytes: usize,
    /// Scratch of a reduction, where it can be done in pieces.
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

impl Tuning {
    /// What is taken where nothing is set.
    pub const DEFAULT: Self = Self {
        eager_bytes: 8 << 10,
        radix: 2,
        segment_bytes: 64 << 10,
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

    /// Reads what [`Display`](fmt::Display) writes: `NAME=VALUE`, a line each. Lines that begin with `#` and empty ones count for
    /// nothing; what no line names stays as it is.
    ///
    /// # Errors
    /// The first line that says something else.
    pub fn read(&mut self, text: &str) -> Result<(), String> {
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            self.read_line(line)
                .ok_or_else(|| format!("\"{line}\" is no setting of collective operations"))?;
        }
        Ok(())
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        let (name, value) = line.split_once('=')?;
        if name == "GASNET_COLL_ROOTED_GEOM" {
            self.radix = radix_of(value)?;
            return Some(());
        }
        let mut entries = self.entries().into_iter();
        let (_, place) = entries.find(|(known, _)| *known == name)?;
        *place = value.parse().ok()?;
        Some(())
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "GASNET_COLL_ROOTED_GEOM=KNOMIAL_TREE,{}", self.radix)?;
        let mut values = *self;
        values
            .entries()
            .into_iter()
            .try_for_each(|(name, value)| writeln!(f, "{name}={value}"))
    }
}

/// The radix of a tree's description: `KNOMIAL_TREE,radix` with a radix of 2 or more, or `FLAT_TREE`, whose root tells everybody.
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
    fn what_is_written_is_read() {
        let mut odd = Tuning::DEFAULT;
        odd.radix = 5;
        for (at, (_, value)) in odd.entries().into_iter().enumerate() {
            *value = 1000 + at;
        }
        let mut read = Tuning::DEFAULT;
        read.read(&format!("# a comment\n\n{odd}")).unwrap();
        assert_eq!(read, odd);
        for wrong in [
            "nothing",
            "GASNET_COLL_PIPE_SEG_SIZE=many",
            "GASNET_COLL_ROOTED_GEOM=KNOMIAL_TREE,1",
        ] {
            let error = read.read(wrong).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
        assert_eq!(
            (radix_of("KNOMIAL_TREE, 4"), radix_of("FLAT_TREE")),
            (Some(4), Some(u32::MAX))
        );
    }
}
