//! Lines of PMI-1, without I/O.

/// The longest line that is read or written, with its end; Slurm reads no longer ones.
pub(super) const MAX_LINE_BYTES: usize = 1024;

/// A command, and the answer that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command<'a> {
    Init,
    GetLimits,
    GetSpace,
    Put {
        space: &'a str,
        key: &'a str,
        value: &'a str,
    },
    Barrier,
    Get {
        space: &'a str,
        key: &'a str,
    },
    Finalize,
    Abort {
        code: u8,
    },
}

impl Command<'_> {
    /// Its name on the wire, and that of its answer.
    const fn names(&self) -> [&'static str; 2] {
        match self {
            Self::Init => ["init", "response_to_init"],
            Self::GetLimits => ["get_maxes", "maxes"],
            Self::GetSpace => ["get_my_kvsname", "my_kvsname"],
            Self::Put { .. } => ["put", "put_result"],
            Self::Barrier => ["barrier_in", "barrier_out"],
            Self::Get { .. } => ["get", "get_result"],
            Self::Finalize => ["finalize", "finalize_ack"],
            Self::Abort { .. } => ["abort", ""],
        }
    }

    /// Its name on the wire.
    pub(super) const fn name(&self) -> &'static str {
        self.names()[0]
    }

    pub(super) fn line(&self) -> String {
        let name = self.name();
        match self {
            Self::Init => format!("cmd={name} pmi_version=1 pmi_subversion=1\n"),
            Self::Put { space, key, value } => {
                format!("cmd={name} kvsname={space} key={key} value={value}\n")
            }
            Self::Get { space, key } => format!("cmd={name} kvsname={space} key={key}\n"),
            Self::Abort { code } => format!("cmd={name} exitcode={code}\n"),
            _ => format!("cmd={name}\n"),
        }
    }
}

/// An answer: fields with a name and a value each.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Answer<'a> {
    /// The fields of a line without its end; else why it is no answer.
    pub(super) fn parse(line: &'a str) -> Result<Self, String> {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some(("", _)) => {
                    return Err("it has a field without a name".into());
                }
                Some((name, _)) if fields.iter().any(|(known, _)| *known == name) => {
                    return Err(format!("it has two fields {name}"));
                }
                Some(field) => fields.push(field),
                // Messages for people may have spaces.
                None if fields.last().is_some_and(|(name, _)| *name == "msg") => {}
                None => return Err(format!("it has a word \"{word}\" that is no field")),
            }
        }
        Ok(Self { fields })
    }

    pub(super) fn field(&self, name: &str) -> Option<&'a str> {
        let found = self.fields.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| *value)
    }

    /// A field that has to be there.
    pub(super) fn needed(&self, name: &str) -> Result<&'a str, String> {
        let found = self.field(name).filter(|value| !value.is_empty());
        found.ok_or_else(|| format!("it has no field {name}"))
    }

    /// A field that is a number.
    pub(super) fn number(&self, name: &str) -> Result<usize, String> {
        let text = self.needed(name)?;
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| plain);
        number.ok_or_else(|| format!("its field {name} is \"{text}\", which is no number"))
    }

    /// Whether the command has been carried out: the field rc is 0, or there is none.
    pub(super) fn is_success(&self) -> bool {
        self.field("rc").is_none_or(|code| code == "0")
    }

    /// Whether this is the answer to `command`.
    pub(super) fn belongs_to(&self, command: &Command<'_>) -> Result<(), String> {
        let [_, expected] = command.names();
        match self.needed("cmd")? {
            name if name == expected => Ok(()),
            other => Err(format!("it is the answer {other}, not {expected}")),
        }
    }
}

/// Bytes that have come, and are given as lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    /// Takes bytes; else why they can be no lines of this protocol.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.bytes.extend_from_slice(bytes);
        let printable = |byte: &u8| *byte == b'\n' || byte.is_ascii_graphic() || *byte == b' ';
        if let Some(byte) = bytes.iter().find(|byte| !printable(byte)) {
            return Err(format!("it has a byte {byte:#04x}"));
        }
        let mut lines = self.bytes.split(|byte| *byte == b'\n');
        match lines.any(|line| line.len() > 4 * MAX_LINE_BYTES) {
            true => Err(format!("it has more than {} bytes", 4 * MAX_LINE_BYTES)),
            false => Ok(()),
        }
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        // Taken bytes are ASCII.
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Takes bytes as the client does, in pieces of `piece` bytes: how many answers they hold, or why
/// they are refused.
///
/// For tests of hostile bytes.
#[doc(hidden)]
pub fn check(bytes: &[u8], piece: usize) -> Result<usize, String> {
    let (mut lines, mut count) = (Lines::default(), 0);
    for piece in bytes.chunks(piece.max(1)) {
        lines.take(piece)?;
        while let Some(line) = lines.next() {
            let answer = Answer::parse(&line)?;
            let _ = (answer.number("rc"), answer.is_success());
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_lines_that_servers_know() {
        let (space, key, value) = ("kvs_1", "argonet-root-0", "1-ff");
        for (command, line) in [
            (Command::Init, "cmd=init pmi_version=1 pmi_subversion=1\n"),
            (Command::GetLimits, "cmd=get_maxes\n"),
            (Command::GetSpace, "cmd=get_my_kvsname\n"),
            (
                Command::Put { space, key, value },
                "cmd=put kvsname=kvs_1 key=argonet-root-0 value=1-ff\n",
            ),
            (Command::Barrier, "cmd=barrier_in\n"),
            (
                Command::Get { space, key },
                "cmd=get kvsname=kvs_1 key=argonet-root-0\n",
            ),
            (Command::Finalize, "cmd=finalize\n"),
            (Command::Abort { code: 7 }, "cmd=abort exitcode=7\n"),
        ] {
            assert_eq!(command.line(), line);
        }
    }

    #[test]
    fn answers_of_hydra_and_slurm_are_read() {
        let answer = Answer::parse("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024");
        let answer = answer.unwrap();
        assert_eq!(answer.belongs_to(&Command::GetLimits), Ok(()));
        assert_eq!(answer.number("vallen_max"), Ok(1024));
        assert!(answer.is_success(), "hydra gives no code");
        let absent = "cmd=get_result rc=-1 msg=key_k_not_found value=unknown";
        assert!(!Answer::parse(absent).unwrap().is_success());
        assert!(!Answer::parse("cmd=get_result rc=1").unwrap().is_success());
        let said = Answer::parse("cmd=put_result rc=0 msg=all is well").unwrap();
        assert!(said.is_success());
        assert_eq!(said.field("msg"), Some("all"));
    }

    #[test]
    fn hostile_answers_are_refused_with_the_reason() {
        for (line, reason) in [
            ("cmd=a cmd=b", "two fields cmd"),
            ("=b", "without a name"),
            ("cmd=a b", "a word \"b\""),
            ("cmd=a value=1 2", "a word \"2\""),
        ] {
            let error = Answer::parse(line).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
        let limits = |text: &str| {
            let line = format!("cmd=maxes vallen_max={text}");
            Answer::parse(&line).unwrap().number("vallen_max")
        };
        for text in ["", "-1", "+1", "0x10", "99999999999999999999999", "1e3"] {
            assert!(limits(text).is_err(), "{text}");
        }
        assert_eq!(limits("1024"), Ok(1024));
        let other = Answer::parse("cmd=get_result rc=0").unwrap();
        let error = other.belongs_to(&Command::Barrier).unwrap_err();
        assert!(
            error.contains("answer get_result, not barrier_out"),
            "{error}"
        );
        let none = Answer::parse("rc=0").unwrap();
        assert!(none.belongs_to(&Command::Init).is_err());
    }

    #[test]
    fn lines_come_in_any_pieces_and_have_a_limit() {
        let mut lines = Lines::default();
        for byte in b"cmd=a\ncmd=b" {
            lines.take(&[*byte]).unwrap();
        }
        assert_eq!(lines.next().as_deref(), Some("cmd=a"));
        assert_eq!(lines.next(), None);
        assert!(!lines.is_empty());
        lines.take(b"c\n").unwrap();
        assert_eq!(lines.next().as_deref(), Some("cmd=bc"));
        assert!(lines.is_empty());
        let error = lines.take(b"cmd=\x1b[2J").unwrap_err();
        assert!(error.contains("0x1b"), "{error}");
        let mut lines = Lines::default();
        lines.take(&[b'x'; 4 * MAX_LINE_BYTES]).unwrap();
        assert!(lines.take(b"x").is_err(), "no line is as long");
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            text in "[ -~\n]{0,200}",
            piece in 1usize..50,
        ) {
            let _ = check(&bytes, piece);
            // Pieces make no difference.
            prop_assert_eq!(check(text.as_bytes(), piece), check(text.as_bytes(), 1000));
        }
    }
}
