//! One-way calls as they lie in one message, one behind another:
//!
//! ```text
//! function, object (postcard) | bytes of the arguments (u16, little-endian) | the arguments
//! ```

use serde::Serialize;

/// A call as its message names it.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct OneCall<'b> {
    pub(super) function: u32,
    /// 0 for none.
    pub(super) object: u64,
    pub(super) arguments: &'b [u8],
}

/// Writes a call; its length, or none if there is no room for it.
pub(super) fn write<A: Serialize>(
    room: &mut [u8],
    function: u32,
    object: u64,
    args: &A,
) -> Result<Option<usize>, postcard::Error> {
    let Some(head) = encode(room, &(function, object))? else {
        return Ok(None);
    };
    let Some((length, room)) = room[head..].split_first_chunk_mut::<2>() else {
        return Ok(None);
    };
    let most = room.len().min(usize::from(u16::MAX));
    let Some(len) = encode(&mut room[..most], args)? else {
        return Ok(None);
    };
    *length = (len as u16).to_le_bytes();
    Ok(Some(head + length.len() + len))
}

/// The length of an encoded value, or none if there is no room for it.
fn encode(room: &mut [u8], value: &impl Serialize) -> Result<Option<usize>, postcard::Error> {
    match postcard::to_slice(value, room) {
        Ok(encoded) => Ok(Some(encoded.len())),
        Err(postcard::Error::SerializeBufferFull) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first call of a message, and what is behind it; none if it is not whole.
pub(super) fn read(bytes: &[u8]) -> Option<(OneCall<'_>, &[u8])> {
    let ((function, object), bytes) = postcard::take_from_bytes::<(u32, u64)>(bytes).ok()?;
    let (length, bytes) = bytes.split_first_chunk::<2>()?;
    let (arguments, bytes) = bytes.split_at_checked(u16::from_le_bytes(*length).into())?;
    let call = OneCall {
        function,
        object,
        arguments,
    };
    Some((call, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn calls_are_read_as_they_are_written(
            calls in prop::collection::vec((any::<u32>(), any::<u64>(), any::<Vec<u8>>()), 0..20),
            room in 0usize..3000,
        ) {
            let mut message = vec![0; room];
            let mut used = 0;
            let mut written = Vec::new();
            for (function, object, args) in &calls {
                let Some(len) = write(&mut message[used..], *function, *object, args).unwrap()
                else {
                    continue;
                };
                used += len;
                written.push((*function, *object, postcard::to_stdvec(args).unwrap()));
            }
            let mut rest = &message[..used];
            for (function, object, arguments) in &written {
                let (call, behind) = read(rest).unwrap();
                let expected = OneCall { function: *function, object: *object, arguments };
                prop_assert_eq!(call, expected);
                rest = behind;
            }
            prop_assert!(rest.is_empty());
            // Those that were left out have more bytes than there was room.
            let len = |(f, o, a): &(u32, u64, Vec<u8>)| {
                postcard::to_stdvec(&(f, o, a)).unwrap().len() + 2
            };
            if written.len() < calls.len() {
                prop_assert!(calls.iter().map(len).sum::<usize>() > room);
            }
        }

        #[test]
        fn any_bytes_are_refused_or_calls(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while let Some((call, behind)) = read(rest) {
                prop_assert!(behind.len() + call.arguments.len() < rest.len());
                rest = behind;
            }
        }
    }

    #[test]
    fn a_call_that_is_cut_short_is_none() {
        let mut message = [0; 100];
        let len = write(&mut message, 300, 7, &(1u8, "text"))
            .unwrap()
            .unwrap();
        assert_eq!(len, 2 + 1 + 2 + 6);
        assert!(read(&message[..len]).is_some());
        assert!((0..len).all(|len| read(&message[..len]).is_none()));
    }

    #[test]
    fn arguments_that_serde_refuses_are_an_error() {
        /// A sequence that does not say its length, which the encoding needs.
        struct Endless;
        impl Serialize for Endless {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_seq(None)?;
                Err(serde::ser::Error::custom("it has no end"))
            }
        }
        assert!(write(&mut [0; 100], 1, 0, &Endless).is_err());
    }
}
