//! The values of the table, from the headers of an installed release.

use super::probe::{Answer, Headers, Question};
use argonet_base::gasnet::{Line, Row, lines};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Conduits that are asked: the first has the values, the second where it differs.
const CONDUITS: [&str; 2] = ["smp", "udp"];

/// How names begin that programs use.
const PUBLIC: [&str; 3] = ["GEX_", "GASNET_", "GASNETT_"];

/// The table with the values of the release in `directory`, and at its end what the release has and
/// the table has not.
pub(super) fn refresh(table: &str, directory: &Path) -> Result<String, String> {
    let rows: Vec<Row<'_>> = lines(table)
        .filter_map(|line| match line {
            Line::Row(row) => Some(row),
            _ => None,
        })
        .collect();
    let mut answers = Vec::new();
    let mut found = BTreeSet::new();
    for conduit in CONDUITS {
        let headers = Headers::of(directory, conduit)?;
        let asked: Vec<Question<'_>> = rows
            .iter()
            .filter(|row| matches!(row.kind, "constant" | "type" | "field"))
            .map(|row| Question {
                kind: row.kind,
                name: row.name,
                shape: row.shape,
            })
            .collect();
        answers.push(headers.ask(&asked)?);
        if conduit == CONDUITS[0] {
            found = unknown(&headers, &rows)?;
        }
    }
    let [first, second] = answers.as_slice() else {
        return Err("two conduits must answer".into());
    };
    let mut out = String::new();
    for (text, line) in table.lines().zip(lines(table)) {
        match line {
            Line::Row(row) => out += &refreshed(row, first, second)?,
            _ => out += text,
        }
        out.push('\n');
    }
    for (name, Answer { shape, value }) in found {
        println!("{name} is new: give it a part, or a reason");
        out += &format!("constant\t{name}\t{shape}\t{value}\n");
    }
    Ok(out)
}

/// The line of a row with what two conduits have.
fn refreshed(
    row: Row<'_>,
    first: &BTreeMap<String, Answer>,
    second: &BTreeMap<String, Answer>,
) -> Result<String, String> {
    if !matches!(row.kind, "constant" | "type" | "field") {
        return Ok(row.line());
    }
    let answer = first
        .get(row.name)
        .ok_or_else(|| format!("the release does not have {}", row.name))?;
    let udp = second.get(row.name).filter(|udp| *udp != answer);
    let is_constant = row.kind == "constant";
    if let Some(udp) = udp.filter(|udp| !is_constant || udp.shape != answer.shape) {
        return Err(format!("{}: {answer:?}, but in udp {udp:?}", row.name));
    }
    let udp = udp.map(|udp| udp.value.as_str());
    let line = Row {
        shape: &answer.shape,
        value: &answer.value,
        // Deliberate values of argonet hold for all conduits.
        udp: udp.filter(|_| row.ours.is_none()),
        ..row
    };
    Ok(line.line())
}

/// Constants that programs may use and the table does not name.
fn unknown(headers: &Headers, rows: &[Row<'_>]) -> Result<BTreeSet<(String, Answer)>, String> {
    let known = |name: &str| {
        rows.iter().any(|row| match row.kind {
            "ignored" => name.starts_with(row.name),
            _ => name == row.name,
        })
    };
    let mut names = headers.constants()?;
    names.retain(|name| PUBLIC.iter().any(|start| name.starts_with(start)) && !known(name));
    let asked: Vec<Question<'_>> = names
        .iter()
        .map(|name| Question {
            kind: "constant",
            name,
            shape: "int",
        })
        .collect();
    Ok(headers.ask(&asked)?.into_iter().collect())
}
