//! The bytes of a stream from a peer, cut into reads of any size.

use argonet_conduit::channel::frames_in;

pub(crate) fn run(data: &[u8]) {
    let Some((&read, bytes)) = data.split_first() else {
        return;
    };
    let whole = frames_in(bytes, usize::MAX);
    assert!(whole.as_ref().is_ok_and(|count| *count <= bytes.len()) || whole.is_err());
    assert_eq!(frames_in(bytes, 1 + usize::from(read)), whole);
}
