//! What a rank and the process that calls the library for it say to each other.
//!
//! ```text
//! request: length of the call (u8), of the key (u8) | number (u32, little-endian) | call | key | value
//! answer:  0, bytes of a value | 1 (there is no value) | 2, reason of the failure | 3 (of an abort)
//! ```

/// The longest value that is put or taken.
pub(super) const MAX_VALUE_BYTES: usize = 1 << 15;

/// The longest message; what is left of a longer reason is its beginning.
pub(super) const MAX_BYTES: usize = MAX_VALUE_BYTES + 1024;

// Calls have the library's names. The first one is without a request.
pub(super) const INIT: &str = "PMIx_Init";
pub(super) const PUT: &str = "PMIx_Put";
pub(super) const FENCE: &str = "PMIx_Fence";
pub(super) const GET: &str = "PMIx_Get";
pub(super) const ABORT: &str = "PMIx_Abort";
pub(super) const FINISH: &str = "PMIx_Finalize";

/// A call, a number (owner of a value, code of an abort), key and value.
pub(super) type Request<'a> = (&'a str, u32, &'a str, &'a [u8]);

/// Its bytes; `None` if the key or the value is too long.
pub(super) fn encode((call, number, key, value): Request<'_>) -> Option<Vec<u8>> {
    let length = |text: &str| u8::try_from(text.len()).ok();
    let head = [length(call)?, length(key)?];
    let [call, key] = [call, key].map(str::as_bytes);
    let fits = value.len() <= MAX_VALUE_BYTES;
    fits.then(|| [&head, &number.to_le_bytes()[..], call, key, value].concat())
}

/// The same from its bytes; `None` if they are none.
pub(super) fn decode(bytes: &[u8]) -> Option<Request<'_>> {
    let (&[call, key, ref number @ ..], rest) = bytes.split_first_chunk::<6>()?;
    let (call, rest) = rest.split_at_checked(call.into())?;
    let (key, value) = rest.split_at_checked(key.into())?;
    let text = |bytes| std::str::from_utf8(bytes).ok();
    Some((text(call)?, u32::from_le_bytes(*number), text(key)?, value))
}

/// What a call gives; else why it has failed.
pub(super) type Answer = Result<Option<Vec<u8>>, String>;

/// The bytes of an answer.
pub(super) fn encode_answer(answer: &Answer) -> Vec<u8> {
    match answer {
        Ok(Some(value)) => [&[0], value.as_slice()].concat(),
        Ok(None) => vec![1],
        Err(reason) => [&[2], reason.as_bytes()].concat(),
    }
}

/// The answer to an abort, which that to the call before it may precede.
pub(super) const ABORTED: [u8; 1] = [3];

/// An answer from its bytes.
pub(super) fn decode_answer(bytes: &[u8]) -> Answer {
    match bytes {
        [0, value @ ..] => Ok(Some(value.to_vec())),
        [1] => Ok(None),
        _ if *bytes == ABORTED => Ok(None),
        [2, reason @ ..] => Err(String::from_utf8_lossy(reason).into_owned()),
        _ => Err("its answer is none".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn requests_and_answers_are_read_back(
            call in "[a-zA-Z_]{0,20}",
            key in "[a-z0-9-]{0,40}",
            value in proptest::collection::vec(any::<u8>(), 0..300),
            number in any::<u32>(),
        ) {
            let request = (call.as_str(), number, key.as_str(), value.as_slice());
            let bytes = encode(request).unwrap();
            prop_assert_eq!(decode(&bytes), Some(request));
            for answer in [Ok(Some(value)), Ok(None), Err(key)] {
                prop_assert_eq!(decode_answer(&encode_answer(&answer)), answer);
            }
        }

        #[test]
        fn no_bytes_do_harm(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(request) = decode(&bytes) {
                prop_assert_eq!(encode(request), Some(bytes.clone()));
            }
            let _ = decode_answer(&bytes);
        }
    }

    #[test]
    fn what_is_too_long_is_no_request() {
        let key = "k".repeat(256);
        let value = vec![0; MAX_VALUE_BYTES + 1];
        assert_eq!(encode((PUT, 0, &key, b"")), None);
        assert_eq!(encode((PUT, 0, "", &value)), None);
        let longest = encode((&key[1..], 0, &key[1..], &value[1..]));
        assert!(longest.is_some_and(|bytes| bytes.len() <= MAX_BYTES));
    }
}
