//! The familiar form: a line for each record.
//!
//! ```text
//! 1(2f03) 0.001532s> [app.c:42] (P) PUT_NB: sz =      8,  node = 0,  time = 0.031 us
//! |  |    |           |          |  |       |
//! |  |    |           |          |  |       bytes come first: summarizing tools take the first number
//! |  |    |           |          |  name
//! |  |    |           |          letter
//! |  |    |           the client's source, if it is recorded
//! |  |    seconds since the job began
//! |  thread
//! rank
//! ```

use core::fmt::{self, Write};

use argonet_settings::Letter;

use crate::event::{Event, What};
use crate::form::{Micros, Seconds, Who};
use crate::kind::Unit;

/// Everything before the letter.
fn who(to: &mut impl Write, who: &Who<'_>, at_ns: u64) -> fmt::Result {
    let time = Seconds(who.time(at_ns));
    write!(to, "{}({:x}) {time}s>", who.rank, who.thread)?;
    match who.source {
        Some((file, line)) => write!(to, " [{file}:{line}]"),
        None => Ok(()),
    }
}

fn head(to: &mut impl Write, by: &Who<'_>, at_ns: u64, letter: Letter) -> fmt::Result {
    who(to, by, at_ns)?;
    write!(to, " ({}) ", letter.letter())
}

pub(crate) fn event(
    to: &mut impl Write,
    by: &Who<'_>,
    event: &Event<'_>,
    details: bool,
) -> fmt::Result {
    let (kind, end) = (event.kind, event.end_ns);
    let took = Micros(end.saturating_sub(event.begin_ns));
    head(to, by, end, kind.letter())?;
    let name = kind.name();
    match event.what {
        What::Time => write!(to, "{name}: time = {took} us")?,
        What::Value(value) if kind.unit() == Unit::Success => {
            write!(to, "{name}: success = {value},  time = {took} us")?;
        }
        What::Value(value) => write!(to, "{name}: count = {value},  time = {took} us")?,
        What::Bytes(bytes) => write!(to, "{name}: sz = {bytes:6},  time = {took} us")?,
        What::Transfer { peer, bytes, .. } => {
            let local = if peer.is_self { "_LOCAL" } else { "" };
            let rank = peer.rank;
            write!(
                to,
                "{name}{local}: sz = {bytes:6},  node = {rank},  time = {took} us"
            )?;
        }
        What::Message {
            peer,
            handler,
            bytes,
            args,
            ..
        } => {
            write!(to, "{name}: node = {peer},  handler = {handler}")?;
            if let Some(bytes) = bytes {
                write!(to, ",  sz = {bytes}")?;
            }
            if end > event.begin_ns {
                write!(to, ",  time = {took} us")?;
            }
            to.write_str(",  args:")?;
            for arg in args {
                write!(to, " {arg:#010x}")?;
            }
        }
    }
    to.write_char('\n')?;
    if details {
        detail(to, by, event)?;
    }
    Ok(())
}

/// Addresses, on a line of their own.
fn detail(to: &mut impl Write, by: &Who<'_>, event: &Event<'_>) -> fmt::Result {
    let name = event.kind.name();
    match event.what {
        What::Transfer {
            peer,
            bytes,
            here,
            there,
        } => {
            let arrow = if event.kind.letter() == Letter::Get {
                "<-"
            } else {
                "->"
            };
            head(to, by, event.end_ns, Letter::Detail)?;
            let rank = peer.rank;
            writeln!(
                to,
                "{name}: {here:#x} {arrow} (node {rank}, at {there:#x}), {bytes} bytes"
            )
        }
        What::Message {
            payload,
            bytes: Some(bytes),
            ..
        } => {
            head(to, by, event.end_ns, Letter::Detail)?;
            writeln!(to, "{name}: payload at {payload:#x}, {bytes} bytes")
        }
        _ => Ok(()),
    }
}

pub(crate) fn note(
    to: &mut impl Write,
    by: &Who<'_>,
    at_ns: u64,
    letter: Letter,
    message: &str,
) -> fmt::Result {
    // Each line names its writer.
    for line in message.trim_end_matches('\n').split('\n') {
        head(to, by, at_ns, letter)?;
        writeln!(to, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Peer;
    use crate::kind::Kind;

    const BY: Who<'_> = Who {
        rank: 1,
        thread: 0x2f03,
        epoch_ns: 1_000_000,
        source: Some(("app.c", 42)),
    };

    fn written(kind: Kind, what: What<'_>, details: bool) -> String {
        let mut to = String::new();
        let one = Event {
            kind,
            begin_ns: 2_500_969,
            end_ns: 2_532_000,
            what,
            flow: None,
        };
        event(&mut to, &BY, &one, details).unwrap();
        to
    }

    #[test]
    fn transfers() {
        let what = What::Transfer {
            peer: Peer {
                rank: 0,
                is_self: false,
            },
            bytes: 8,
            here: 0x1000,
            there: 0x20,
        };
        assert_eq!(
            written(Kind::PutNb, what, true),
            "1(2f03) 0.001532s> [app.c:42] (P) PUT_NB: sz =      8,  node = 0,  time = 31.031 us\n\
             1(2f03) 0.001532s> [app.c:42] (D) PUT_NB: 0x1000 -> (node 0, at 0x20), 8 bytes\n"
        );
        let text = written(Kind::Get, what, true);
        assert!(text.contains("(D) GET: 0x1000 <- (node 0, "), "{text}");
        assert_eq!(written(Kind::Get, what, false).lines().count(), 1);
    }

    #[test]
    fn messages_and_others() {
        let what = What::Message {
            peer: 3,
            handler: 200,
            bytes: Some(100),
            payload: 0x77,
            args: &[1, 0xffff_ffff],
        };
        let text = written(Kind::RequestMedium, what, true);
        assert_eq!(
            text,
            "1(2f03) 0.001532s> [app.c:42] (A) AMREQUEST_MEDIUM: node = 3,  handler = 200,  sz = 100,  time = 31.031 us,  args: 0x00000001 0xffffffff\n\
             1(2f03) 0.001532s> [app.c:42] (D) AMREQUEST_MEDIUM: payload at 0x77, 100 bytes\n"
        );
        let text = written(Kind::BarrierWait, What::Time, true);
        assert!(
            text.ends_with("(B) BARRIER_WAIT: time = 31.031 us\n"),
            "{text}"
        );
        let text = written(Kind::TestSync, What::Value(1), true);
        assert!(
            text.ends_with("(S) TEST_SYNC: success = 1,  time = 31.031 us\n"),
            "{text}"
        );
    }

    #[test]
    fn each_line_of_a_note_names_rank_and_thread() {
        let mut to = String::new();
        let by = Who { source: None, ..BY };
        note(&mut to, &by, 500, Letter::Client, "one\ntwo\n").unwrap();
        assert_eq!(
            to,
            "1(2f03) 0.000000s> (H) one\n1(2f03) 0.000000s> (H) two\n"
        );
    }
}
