//! Numbers, bytes and texts in bodies of messages; and words for shells.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Takes a body apart, from the front.
///
/// Every method gives nothing if the body has not got so much.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// Bytes after their number, at most `most`.
    pub(crate) fn bytes(&mut self, most: usize) -> Option<&'a [u8]> {
        let len = usize::try_from(self.u32()?).ok().filter(|&n| n <= most)?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A text in UTF-8 of at most `most` bytes.
    pub(crate) fn text(&mut self, most: usize) -> Option<String> {
        String::from_utf8(self.bytes(most)?.to_vec()).ok()
    }

    /// A string of the operating system.
    pub(crate) fn os(&mut self) -> Option<OsString> {
        let bytes = self.bytes(usize::MAX)?;
        // The system could not be given one with a zero.
        (!bytes.contains(&0)).then(|| OsString::from_vec(bytes.to_vec()))
    }

    /// A list after its length, of what `item` reads.
    pub(crate) fn list<T>(
        &mut self,
        most: u32,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let len = self.u32().filter(|&n| n <= most)?;
        // Not reserved: the length may promise more than there is.
        (0..len).map(|_| item(self)).collect()
    }
}

pub(crate) fn put_u32(to: &mut Vec<u8>, number: u32) {
    to.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(to, bytes.len() as u32);
    to.extend_from_slice(bytes);
}

pub(crate) fn put_text(to: &mut Vec<u8>, text: &str) {
    put_bytes(to, text.as_bytes());
}

pub(crate) fn put_os(to: &mut Vec<u8>, text: &OsStr) {
    put_bytes(to, text.as_bytes());
}

/// A word as a shell reads it back, with any bytes in it.
pub(crate) fn quoted(word: &OsStr) -> OsString {
    let mut quoted = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    OsString::from_vec(quoted)
}

/// The words of a line as a shell would cut it: blanks separate, quotes and backslashes keep
/// together.
///
/// Nothing is substituted. `None` if a quote is not closed.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => match rest.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_cut_as_a_shell_cuts_them() {
        let cut = |line| split(line).unwrap();
        assert_eq!(cut("  -p 22\t-i key "), ["-p", "22", "-i", "key"]);
        assert_eq!(
            cut(r#"-o "Proxy Command=a \"b\"" x\ y '' 'it'"s""#),
            ["-o", "Proxy Command=a \"b\"", "x y", "", "its"]
        );
        assert_eq!(cut(""), Vec::<String>::new());
        for open in ["'a", "\"a", "a\\", "\"a\\"] {
            assert_eq!(split(open), None, "{open}");
        }
    }

    proptest! {
        #[test]
        fn quoted_words_are_read_back(words in prop::collection::vec("[^\\x00]{0,20}", 0..6)) {
            let line: Vec<String> = words
                .iter()
                .map(|w| quoted(OsStr::new(w)).into_string().unwrap())
                .collect();
            prop_assert_eq!(split(&line.join(" ")).unwrap(), words);
        }

        #[test]
        fn no_line_panics(line in "\\PC{0,40}") {
            let _ = split(&line);
        }
    }

    #[test]
    fn a_reader_never_reads_beyond_the_end() {
        let mut body = Vec::new();
        put_text(&mut body, "ab");
        put_u32(&mut body, 3);
        let read = |most| Reader::new(&body).text(most);
        assert_eq!((read(2), read(1)), (Some("ab".into()), None));
        for len in 0..6 {
            assert_eq!(Reader::new(&body[..len]).text(9), None);
        }
        let mut reader = Reader::new(&body);
        reader.text(2);
        assert_eq!(reader.list(9, |r| r.u8()), None);
        assert_eq!(Reader::new(&[255; 8]).bytes(usize::MAX), None);
        assert_eq!(Reader::new(&[255, 0, 0, 0, 1]).list(256, |r| r.u8()), None);
        assert_eq!(Reader::new(&[1, 0, 0, 0, 0]).os(), None);
    }
}
