//! Trace events in JSON, as viewers such as Perfetto open them (Trace Event Format, JSON array):
//! ranks are processes, threads threads, operations and waits complete events (`X`), handlers pairs
//! of begin and end (`B`, `E`), messages flows from `s` to `f`, notes instants (`i`).
//!
//! Times are microseconds. Every element but the first begins with a comma, so that a file whose
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
    // From the rounded begin to the rounded end, so that the next event does not seem to overlap.
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
                write!(to, ",\"here\":\"{here:#x}\",\"there\":\"{there:#x}\"")?;
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
    // Viewers show the name, and the rest where an event is opened.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Way;
    use crate::form::Form;
    use crate::kind::Kind;
    use proptest::prelude::*;
    use serde_json::Value;

    /// The events that `write` adds to an empty file, without the first, which every file has.
    fn parsed(write: impl FnOnce(&mut String)) -> Vec<Value> {
        let mut text = String::from_utf8(Form::Json.opening().to_vec()).unwrap();
        write(&mut text);
        text.push_str(core::str::from_utf8(Form::Json.closing()).unwrap());
        let mut events: Vec<Value> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        events.remove(0);
        events
    }

    fn who(source: Option<(&str, u32)>) -> Who<'_> {
        Who {
            rank: 2,
            thread: 77,
            epoch_ns: 1000,
            source,
        }
    }

    #[test]
    fn a_message_and_its_handler() {
        let sent = Event {
            kind: Kind::RequestMedium,
            begin_ns: 3_000,
            end_ns: 4_501,
            what: What::Message {
                peer: 5,
                handler: 200,
                bytes: Some(100),
                payload: 0x77,
                args: &[1, u32::MAX],
            },
            flow: Some(Flow {
                from: 2,
                to: 5,
                way: Way::Request,
                number: 9,
            }),
        };
        let events = parsed(|to| {
            event(to, &who(Some(("a\"b.c", 3))), &sent, true).unwrap();
            begins(to, &who(None), &sent, false).unwrap();
            ends(to, &who(None), &sent).unwrap();
        });
        let phases: Vec<_> = events
            .iter()
            .map(|event| event["ph"].as_str().unwrap())
            .collect();
        assert_eq!(phases, ["X", "s", "B", "f", "E"]);
        let (whole, args) = (&events[0], &events[0]["args"]);
        assert_eq!((&whole["pid"], &whole["tid"]), (&2.into(), &77.into()));
        assert_eq!((&whole["ts"], &whole["dur"]), (&2.0.into(), &1.501.into()));
        assert_eq!(args["source"], "a\"b.c:3");
        assert_eq!(args["payload"], "0x77");
        assert_eq!(args["args"], Value::from(vec![1, u32::MAX]));
        assert_eq!(events[1]["id"], events[3]["id"]);
        assert!(events[2]["args"]["payload"].is_null());
        assert_eq!(events[4]["ts"], 3.501);
    }

    #[test]
    fn names_of_processes() {
        let events = parsed(|to| named(to, &who(None), "process_name", "rank 2").unwrap());
        assert_eq!(events[0]["ph"], "M");
        assert_eq!(events[0]["args"]["name"], "rank 2");
    }

    proptest! {
        #[test]
        fn any_text_comes_back(message in "\\PC*|(.|\n|\u{0}|\u{1f}){0,200}", file in "\\PC*") {
            let events = parsed(|to| {
                note(to, &who(Some((&file, 1))), 5_000, Letter::Client, &message).unwrap();
            });
            prop_assert_eq!(events.len(), 1);
            let args = &events[0]["args"];
            prop_assert_eq!(args["text"].as_str().unwrap(), message.trim_end_matches('\n'));
            prop_assert_eq!(args["source"].as_str().unwrap(), format!("{file}:1"));
        }
    }
}
