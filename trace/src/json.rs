//! Trace events in JSON, as viewers such as Perfetto open them (Trace Event Format, JSON array): ranks are processes, threads
//! threads, operations and waits complete events (`X`), handlers pairs of begin and end (`B`, `E`), messages flows from `s` to
//! `f`, notes instants (`i`). Times are microseconds. Every element but the first begins with a comma, so that a file whose
//! writer was killed lacks the closing bracket alone, which the format leaves open.

use core::fmt::{self, Write};

use argonet_settings::Letter;

use crate::event::{Event, What};
use crate::flow::Flow;
use crate::form::{Micros, Who};
use crate::kind::Unit;

/// The inside of a JSON string.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c if (c as u32) < 0x20 => write!(f, "\\u{:04x}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// The beginning of an event up to its arguments.
fn open(
    to: &mut impl Write,
    who: &Who<'_>,
    name: &str,
    letter: Letter,
    phase: char,
    at_ns: u64,
) -> fmt::Result {
    let (rank, thread, letter) = (who.rank, who.thread, letter.letter());
    let time = Micros(who.time(at_ns));
    let name = Escaped(name);
    write!(
        to,
        ",\n{{\"name\":\"{name}\",\"cat\":\"{letter}\",\"ph\":\"{phase}\",\"pid\":{rank},\"tid\":{thread},\"ts\":{time}"
    )
}

pub(crate) fn event(
    to: &mut impl Write,
    who: &Who<'_>,
    event: &Event<'_>,
    details: bool,
) -> fmt::Result {
    let (kind, begin) = (event.kind, event.begin_ns);
    open(to, who, event.kind.name(), kind.letter(), 'X', begin)?;
    // From the rounded begin to the rounded end, so that what follows does not seem to overlap.
    let took = who.time(event.end_ns).saturating_sub(who.time(begin));
    write!(to, ",\"dur\":{}", Micros(took))?;
    arguments(to, who, event, details)?;
    to.write_char('}')?;
    match &event.flow {
        Some(flow) => {
            open(to, who, "message", kind.letter(), 's', begin)?;
            write!(to, ",\"id\":\"{:#x}\"}}", flow.id())
        }
        None => Ok(()),
    }
}

pub(crate) fn begins(
    to: &mut impl Write,
    who: &Who<'_>,
    event: &Event<'_>,
    details: bool,
) -> fmt::Result {
    let (kind, begin) = (event.kind, event.begin_ns);
    open(to, who, event.kind.name(), kind.letter(), 'B', begin)?;
    arguments(to, who, event, details)?;
    to.write_char('}')?;
    match &event.flow {
        Some(flow) => arrives(to, who, flow, kind.letter(), begin),
        None => Ok(()),
    }
}

fn arrives(
    to: &mut impl Write,
    who: &Who<'_>,
    flow: &Flow,
    letter: Letter,
    at_ns: u64,
) -> fmt::Result {
    open(to, who, "message", letter, 'f', at_ns)?;
    write!(to, ",\"bp\":\"e\",\"id\":\"{:#x}\"}}", flow.id())
}

pub(crate) fn ends(to: &mut impl Write, who: &Who<'_>, event: &Event<'_>) -> fmt::Result {
    open(
        to,
        who,
        event.kind.name(),
        event.kind.letter(),
        'E',
        event.end_ns,
    )?;
    to.write_char('}')
}

fn arguments(to: &mut impl Write, who: &Who<'_>, event: &Event<'_>, details: bool) -> fmt::Result {
    to.write_str(",\"args\":{")?;
    match event.what {
        What::Time => {}
        What::Value(value) if event.kind.unit() == Unit::Success => {
            write!(to, "\"success\":{}", value != 0)?;
        }
        What::Value(value) => write!(to, "\"count\":{value}")?,
        What::Bytes(bytes) => write!(to, "\"bytes\":{bytes}")?,
        What::Transfer {
            peer,
            bytes,
            here,
            there,
        } => {
            write!(to, "\"peer\":{},\"bytes\":{bytes}", peer.rank)?;
            if details {
                write!(to, ",\"address\":\"{here:#x}\",\"offset\":\"{there:#x}\"")?;
            }
        }
        What::Message {
            peer,
            handler,
            bytes,
            payload,
            args,
        } => {
            write!(to, "\"peer\":{peer},\"handler\":{handler}")?;
            if let Some(bytes) = bytes {
                write!(to, ",\"bytes\":{bytes}")?;
                if details {
                    write!(to, ",\"payload\":\"{payload:#x}\"")?;
                }
            }
            to.write_str(",\"args\":[")?;
            for (at, arg) in args.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                write!(to, "{comma}{arg}")?;
            }
            to.write_char(']')?;
        }
    }
    source(to, who, !matches!(event.what, What::Time))?;
    to.write_char('}')
}

fn source(to: &mut impl Write, who: &Who<'_>, follows: bool) -> fmt::Result {
    let Some((file, line)) = who.source else {
        return Ok(());
    };
    let comma = if follows { "," } else { "" };
    write!(to, "{comma}\"source\":\"{}:{line}\"", Escaped(file))
}

pub(crate) fn note(
    to: &mut impl Write,
    who: &Who<'_>,
    at_ns: u64,
    letter: Letter,
    message: &str,
) -> fmt::Result {
    let message = message.trim_end_matches('\n');
    // Viewers show the name; the rest is for whoever opens the event.
    let first = message.lines().next().unwrap_or_default();
    let short = first
        .char_indices()
        .nth(80)
        .map_or(first, |(end, _)| &first[..end]);
    open(to, who, short, letter, 'i', at_ns)?;
    write!(
        to,
        ",\"s\":\"t\",\"args\":{{\"text\":\"{}\"",
        Escaped(message)
    )?;
    source(to, who, true)?;
    to.write_str("}}")
}

/// Names a process or a thread.
pub(crate) fn named(to: &mut impl Write, who: &Who<'_>, what: &str, name: &str) -> fmt::Result {
    let (rank, thread) = (who.rank, who.thread);
    write!(
        to,
        ",\n{{\"name\":\"{what}\",\"ph\":\"M\",\"pid\":{rank},\"tid\":{thread},\"ts\":0,\"args\":{{\"name\":\"{}\"}}}}",
        Escaped(name)
    )
}
