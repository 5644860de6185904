//! Code that rigs over sockets have in common.

use rustix::fd::AsFd;

/// Lets the process have as many descriptors as it may: cases run side by side, each with two for
/// each socket.
pub(crate) fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, most).expect("as many descriptors as may be");
}

/// Heads of frames that are wrong: kind, handler, arguments, flags, length, position.
pub(crate) const GARBAGE: [[u8; 12]; 8] = [
    [0xff; 12],
    [0; 12],
    // More arguments than can be carried.
    [
        2,
        128,
        argonet_am::MAX_CARRIED as u8 + 1,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ],
    // A short with a payload.
    [2, 128, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
    // A medium that is too long.
    [3, 128, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0],
    // A flag that does not exist.
    [2, 128, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0],
    // Not the beginning of the stream.
    [2, 128, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
    // A put of a handler.
    [8, 128, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
];

/// Sends a rank garbage over a socket to it.
pub(crate) fn send_garbage(socket: impl AsFd, kind: usize) {
    let mut bytes = GARBAGE[kind].to_vec();
    bytes.resize(200, 0xff);
    let written = rustix::io::write(socket, &bytes).expect("the socket takes it");
    assert_eq!(written, bytes.len());
}
