//! The table's constants as parts of the headers.

use argonet_base::gasnet::{Line, Row, lines};

/// Constants of this part are compared only.
const COMPARED: &str = "compared";

/// How the names of parts begin that have nothing else; other headers keep their lines, but for the
/// values of constants.
const WHOLE: &str = "argonet/numbers";

/// The part that has the digest of the table.
const FIRST: &str = "argonet/numbers.h";

/// All parts of `include/` that the table makes, with their texts.
///
/// `old` reads one that has other lines too.
pub(super) fn parts(
    table: &str,
    old: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<(String, String)>, String> {
    let mut parts = Vec::new();
    let mut current: Option<(&str, Vec<Line<'_>>)> = None;
    for line in lines(table).chain([Line::Part(COMPARED)]) {
        match (line, &mut current) {
            (Line::Part(name), _) => {
                if let Some((part, lines)) = current.replace((name, Vec::new())) {
                    parts.push((part, lines));
                }
            }
            (Line::Row(_) | Line::Comment(_), Some((_, lines))) => lines.push(line),
            _ => {}
        }
    }
    parts.retain(|(part, _)| *part != COMPARED);
    let text = |(part, lines): (&str, Vec<Line<'_>>)| {
        let text = match part.starts_with(WHOLE) {
            true => whole(part, &lines, &digest(table)),
            false => replaced(part, &old(part)?, &lines)?,
        };
        Ok((part.to_owned(), text))
    };
    parts.into_iter().map(text).collect()
}

/// A number that distinguishes layouts of types and constants: FNV-1a of the rows with argonet's
/// values.
pub(super) fn digest(table: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for line in lines(table) {
        let Line::Row(row) = line else { continue };
        let Some(value) = row.own_value().filter(|_| row.kind != "ignored") else {
            continue;
        };
        for field in [row.name, row.shape, value, row.udp.unwrap_or("")] {
            for byte in field.bytes().chain([b'\t']) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    format!("{hash:016x}")
}

fn whole(part: &str, lines: &[Line<'_>], digest: &str) -> String {
    let guard: String = part
        .chars()
        .map(|c| match c.is_ascii_alphanumeric() {
            true => c.to_ascii_uppercase(),
            false => '_',
        })
        .collect();
    // gasnet_fwd.h has names of one kind alone.
    let guard = match part {
        "argonet/numbers_fwd.h" => format!("_GEX_{guard}"),
        _ => guard,
    };
    let mut text = format!(
        "/* Made by `cargo xtask numbers` from base/gasnet.tsv. Not included by clients. */\n#ifndef {guard}\n#define {guard}\n"
    );
    if part == FIRST {
        text += "\n/* Changes with any number or type of the interface. */\n";
        text += &format!("#define ARGONET_NUMBERS_DIGEST {digest}\n");
    }
    for line in lines {
        match line {
            Line::Comment(comment) => text += &format!("\n/* {comment} */\n"),
            Line::Row(row) => text += &definition(row),
            Line::Part(_) | Line::Other(_) => {}
        }
    }
    text + "\n#endif\n"
}

/// The lines that define a constant.
fn definition(row: &Row<'_>) -> String {
    let define = |value: &str| format!("#define {} {}\n", row.name, literal(row.shape, value));
    match (row.own_value(), row.udp) {
        (None, _) => String::new(),
        (Some(value), None) => define(value),
        (Some(value), Some(udp)) => {
            let (udp, other) = (define(udp), define(value));
            format!("#if GASNET_CONDUIT_UDP\n{udp}#else\n{other}#endif\n")
        }
    }
}

/// A value as C writes it, so that it has the type. #if takes all but pointers.
fn literal(shape: &str, value: &str) -> String {
    let number: u64 = value.parse().unwrap_or(0);
    let hex = number > 9 && (number.is_power_of_two() || shape == "unsigned int");
    let digits = match hex {
        true => format!("{number:#x}"),
        false => value.to_owned(),
    };
    match shape {
        "int" => digits,
        "unsigned int" => digits + "U",
        "long" => digits + "L",
        "unsigned long" => digits + "UL",
        pointer => format!("(({pointer})(uintptr_t){digits})"),
    }
}

/// The text with the values of these constants, each of which one of its lines defines.
fn replaced(part: &str, text: &str, lines: &[Line<'_>]) -> Result<String, String> {
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in lines {
        let Line::Row(row) = line else { continue };
        let start = format!("#define {} ", row.name);
        let mut found = all.iter_mut().filter(|line| line.starts_with(&start));
        let (Some(line), None) = (found.next(), found.next()) else {
            return Err(format!(
                "{part}: there must be one line that defines {}",
                row.name
            ));
        };
        *line = format!(
            "{start}{}",
            literal(row.shape, row.own_value().unwrap_or("0"))
        );
    }
    Ok(all.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_their_type() {
        assert_eq!(literal("int", "10001"), "10001");
        assert_eq!(literal("int", "32768"), "0x8000");
        assert_eq!(literal("unsigned int", "6"), "6U");
        assert_eq!(literal("unsigned int", "4294967295"), "0xffffffffU");
        assert_eq!(literal("long", "20240418"), "20240418L");
        assert_eq!(literal("gex_TM_t", "0"), "((gex_TM_t)(uintptr_t)0)");
    }

    #[test]
    fn the_digest_depends_on_the_values_of_argonet_alone() {
        let table = "# a\n[f]\nconstant\tA\tint\t1\tours=2\twhy=b\ntype\tB\tstruct\t8/8\n";
        let same = "[g]\nconstant\tA\tint\t3\tours=2\twhy=c\ntype\tB\tstruct\t8/8\n";
        assert_eq!(digest(table), digest(same));
        for (old, new) in [
            ("ours=2", "ours=3"),
            ("int", "long"),
            ("8/8", "8/4"),
            ("why", "udp=1\twhy"),
        ] {
            assert_ne!(digest(table), digest(&table.replace(old, new)), "{new}");
        }
    }

    #[test]
    fn the_headers_of_the_repository_are_those_of_the_table() {
        let stale = super::super::stale(&crate::command::root()).unwrap();
        assert!(stale.is_empty(), "{stale:?}: run `cargo xtask numbers`");
    }
}
