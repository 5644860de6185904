//! Bytes on the connection between launcher and agents.

/// The begin of a connection, which chance would hardly find.
const BEGIN: &[u8] = b"\nargonet-agent\0\x01";

pub(crate) fn run(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else {
        return;
    };
    for begin in [BEGIN, b""] {
        let bytes = [begin, bytes].concat();
        // The result is the same for any cuts of the bytes; a garbled connection may be found
        // sooner or later that way.
        let whole = argonet_boot::hosts::check_control_bytes(&bytes, bytes.len());
        let cut = argonet_boot::hosts::check_control_bytes(&bytes, piece.into());
        assert_eq!(whole, cut);
    }
}
