//! Numbers and types of GASNet's interface, from one table, `gasnet.tsv`.
//!
//! The headers in `include/` and the Rust code behind them have the same constants. The table
//! states each once: [`number`] reads it when the code is compiled, and `cargo xtask numbers`
//! writes the constants of the headers.

/// The table.
///
/// Its first lines say what its rows mean.
pub const TABLE: &str = include_str!("../gasnet.tsv");

/// The value that argonet has for a constant, which must be in the table: in a `const`, any other
/// name does not compile.
///
/// # Panics
/// If there is no such constant.
#[must_use]
pub const fn number(name: &str) -> u64 {
    let (table, name) = (TABLE.as_bytes(), name.as_bytes());
    let mut start = 0;
    while start < table.len() {
        let end = find(table, start, table.len(), b'\n');
        if let Some(value) = value_in(table, start, end, name) {
            return value;
        }
        start = end + 1;
    }
    panic!("gasnet.tsv has no constant of this name")
}

/// The same, for flags and others of 32 bits.
///
/// # Panics
/// If there is no such constant, or it has more bits.
#[must_use]
pub const fn number32(name: &str) -> u32 {
    let value = number(name);
    assert!(
        value <= u32::MAX as u64,
        "the constant has more than 32 bits"
    );
    value as u32
}

/// The place of `byte` from `start` on, or `end`.
const fn find(table: &[u8], start: usize, end: usize, byte: u8) -> usize {
    let mut at = start;
    while at < end && table[at] != byte {
        at += 1;
    }
    at
}

/// Whether these bytes stand at a place that is before `end`.
const fn stands(table: &[u8], at: usize, end: usize, bytes: &[u8]) -> bool {
    if end < at || end - at < bytes.len() {
        return false;
    }
    let mut step = 0;
    while step < bytes.len() {
        if table[at + step] != bytes[step] {
            return false;
        }
        step += 1;
    }
    true
}

/// The value of the constant `name`, if this line is its row.
const fn value_in(table: &[u8], start: usize, end: usize, name: &[u8]) -> Option<u64> {
    let is_row = stands(table, start, end, b"constant\t") || stands(table, start, end, b"own\t");
    if !is_row {
        return None;
    }
    let at = find(table, start, end, b'\t') + 1;
    let after = at + name.len();
    if !stands(table, at, end, name) || after >= end || table[after] != b'\t' {
        return None;
    }
    let shape_end = find(table, after + 1, end, b'\t');
    let mut field = shape_end + 1;
    let mut value = decimal(table, field, end);
    // The value that argonet has on purpose comes after the release's.
    while field < end {
        if stands(table, field, end, b"ours=") {
            value = decimal(table, field + b"ours=".len(), end);
        }
        field = find(table, field, end, b'\t') + 1;
    }
    Some(value)
}

const fn decimal(table: &[u8], start: usize, end: usize) -> u64 {
    let mut value = 0;
    let mut at = start;
    while at < end && table[at].is_ascii_digit() {
        value = value * 10 + (table[at] - b'0') as u64;
        at += 1;
    }
    assert!(at > start, "the row of a constant has no number");
    value
}

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row<'a> {
    /// `constant`, `own`, `type`, `field` or `ignored`.
    pub kind: &'a str,
    /// The name in C; of a field, with that of its struct.
    pub name: &'a str,
    /// The type of a constant or field, or the sort of a type.
    pub shape: &'a str,
    /// The value, or the size.
    pub value: &'a str,
    /// The value of the conduit udp, where that differs.
    pub udp: Option<&'a str>,
    /// The value that argonet has on purpose.
    pub ours: Option<&'a str>,
    /// Why it does.
    pub why: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split('\t');
        let kind = fields.next()?;
        let name = fields.next()?;
        let mut row = Row {
            kind,
            name,
            shape: "",
            value: "",
            udp: None,
            ours: None,
            why: None,
        };
        let mut plain = 0;
        for field in fields {
            match field.split_once('=') {
                Some(("udp", value)) => row.udp = Some(value),
                Some(("ours", value)) => row.ours = Some(value),
                Some(("why", value)) => row.why = Some(value),
                _ if plain == 0 => (row.shape, plain) = (field, 1),
                _ if plain == 1 => (row.value, plain) = (field, 2),
                _ => return None,
            }
        }
        ["constant", "own", "type", "field", "ignored"]
            .contains(&kind)
            .then_some(row)
    }

    /// The value that argonet has; `None` if it does not have the name.
    #[must_use]
    pub fn own_value(&self) -> Option<&'a str> {
        match self.ours {
            Some("absent") => None,
            Some(ours) => Some(ours),
            None => Some(self.value),
        }
    }

    /// The row as a line of the table, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = [self.kind, self.name, self.shape, self.value].join("\t");
        line.truncate(line.trim_end_matches('\t').len());
        for (key, value) in [("udp", self.udp), ("ours", self.ours), ("why", self.why)] {
            if let Some(value) = value {
                line += &format!("\t{key}={value}");
            }
        }
        line
    }
}

/// A line of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// The following constants go to this part of `include/`, or to none (`compared`).
    Part(&'a str),
    /// A comment of that part.
    Comment(&'a str),
    /// A row.
    Row(Row<'a>),
    /// A line for readers of the table alone, or one that the parser does not know.
    Other(&'a str),
}

/// The lines of a table, which need not be [`TABLE`].
pub fn lines(table: &str) -> impl Iterator<Item = Line<'_>> {
    table.lines().map(|line| {
        if let Some(part) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            Line::Part(part)
        } else if let Some(comment) = line.strip_prefix("* ") {
            Line::Comment(comment)
        } else {
            Row::parse(line).map_or(Line::Other(line), Line::Row)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> impl Iterator<Item = Row<'static>> {
        lines(TABLE).filter_map(|line| match line {
            Line::Row(row) => Some(row),
            _ => None,
        })
    }

    #[test]
    fn every_constant_is_found_with_the_value_of_its_row() {
        let mut count = 0;
        for row in rows().filter(|row| matches!(row.kind, "constant" | "own")) {
            let Some(value) = row.own_value() else {
                continue;
            };
            count += 1;
            // Negative values are for C alone.
            if let Ok(value) = value.parse::<u64>() {
                assert_eq!(number(row.name), value, "{}", row.name);
            }
        }
        assert!(count > 150, "{count}");
    }

    #[test]
    fn names_are_whole_and_known() {
        const OK: u64 = number("GASNET_OK");
        assert_eq!(OK, 0);
        for wrong in ["GASNET_O", "GASNET_OKAY", "", "GASNET_COLL_AMSAFE\t"] {
            assert!(
                std::panic::catch_unwind(|| number(wrong)).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn no_line_is_lost_and_every_difference_has_a_reason() {
        let mut names = std::collections::BTreeSet::new();
        for line in lines(TABLE) {
            match line {
                Line::Other(text) => assert!(
                    text.is_empty() || text.starts_with('#'),
                    "no line of the table: {text}"
                ),
                Line::Row(row) => {
                    assert!(names.insert(row.name), "{} stands there twice", row.name);
                    let differs = row.ours.is_some() || matches!(row.kind, "own" | "ignored");
                    assert!(!differs || row.why.is_some(), "{}: no reason", row.name);
                }
                Line::Part(_) | Line::Comment(_) => {}
            }
        }
        let written: Vec<String> = rows().map(|row| row.line()).collect();
        let read: Vec<&str> = TABLE
            .lines()
            .filter(|line| matches!(lines(line).next(), Some(Line::Row(_))))
            .collect();
        assert_eq!(written, read);
    }
}
