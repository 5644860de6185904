//! One-way calls as they lie in one message, one behind another:
//!
//! ```text
//! function, object (postcard) | bytes of the arguments (u16, little-endian) | the arguments
//! ```

/// A call as its message names it.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct OneCall<'b> {
    pub(super) function: u32,
    /// 0 for none.
    pub(super) object: u64,
    pub(super) arguments: &'b [u8],
}

/// Writes a call; its length, or none if there is no room for it.
pub(super) fn write(room: &mut [u8], call: &OneCall<'_>) -> Option<usize> {
    let head = postcard::to_slice(&(call.function, call.object), room).ok()?;
    let head = head.len();
    let (length, room) = room[head..].split_first_chunk_mut::<2>()?;
    let arguments = call.arguments;
    let to = room.get_mut(..arguments.len())?;
    *length = u16::try_from(arguments.len()).ok()?.to_le_bytes();
    to.copy_from_slice(arguments);
    Some(head + length.len() + arguments.len())
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
            let calls = calls.iter().map(|(function, object, arguments)| OneCall {
                function: *function,
                object: *object,
                arguments,
            });
            let (mut used, mut written) = (0, Vec::new());
            for call in calls {
                match write(&mut message[used..], &call) {
                    Some(len) => {
                        used += len;
                        written.push(call);
                    }
                    // It has more bytes than there is room.
                    None => prop_assert!(call.arguments.len() + 2 + 15 > room - used),
                }
            }
            let mut rest = &message[..used];
            for expected in written {
                let (call, behind) = read(rest).unwrap();
                prop_assert_eq!(call, expected);
                rest = behind;
            }
            prop_assert!(rest.is_empty());
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
        let call = OneCall {
            function: 300,
            object: 7,
            arguments: b"text",
        };
        let len = write(&mut message, &call).unwrap();
        assert_eq!(len, 2 + 1 + 2 + 4);
        assert!(read(&message[..len]).is_some());
        assert!((0..len).all(|len| read(&message[..len]).is_none()));
        // And there is no room for it in less.
        assert!((0..len).all(|len| write(&mut message[..len], &call).is_none()));
    }

    #[test]
    fn arguments_longer_than_their_length_can_say_have_no_room() {
        let mut message = vec![0; 1 << 17];
        let arguments = &vec![7; 1 << 16];
        let [long, longer] = [&arguments[1..], arguments].map(|arguments| OneCall {
            function: 1,
            object: 0,
            arguments,
        });
        assert!(write(&mut message, &long).is_some());
        assert_eq!(write(&mut message, &longer), None);
    }
}
