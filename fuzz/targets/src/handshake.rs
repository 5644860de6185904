//! The handshake of a TCP connection: bytes of strangers, and genuine messages that are changed on
//! the way.

use argonet_base::JobRank;
use argonet_conduit::tcp::join::{Handshake, Hello, JobKey, Progress};

const ME: Hello = Hello {
    rank: JobRank(3),
    connection: 1,
    incarnation: 7,
    received: 99,
};

fn connector() -> Handshake {
    Handshake::connect(&JobKey::from_bytes([7; 32]), ME, JobRank(5), [1; 32])
}

fn acceptor() -> Handshake {
    Handshake::accept(&JobKey::from_bytes([7; 32]), JobRank(5), 8, [2; 32])
}

/// The bytes of the connector in a good handshake, and those of the acceptor.
fn genuine() -> [Vec<u8>; 2] {
    let (mut connector, mut acceptor) = (connector(), acceptor());
    let mut said = [Vec::new(), Vec::new()];
    loop {
        let bytes = connector.to_send().to_vec();
        connector.sent(bytes.len());
        if let Ok((_, Progress::Peer(_))) = acceptor.take(&bytes) {
            acceptor.answer(5);
        }
        said[0].extend(bytes);
        let bytes = acceptor.to_send().to_vec();
        acceptor.sent(bytes.len());
        said[1].extend(&bytes);
        if let Ok((_, Progress::Done(_))) = connector.take(&bytes) {
            return said;
        }
    }
}

/// Which end is spoken to, how long the genuine beginning is, in which pieces the rest comes, and
/// the rest.
pub(crate) fn run(data: &[u8]) {
    let [end, keep, piece, rest @ ..] = data else {
        return;
    };
    let connects = end & 1 == 1;
    let expected = &genuine()[usize::from(connects)];
    let keep = usize::from(*keep).min(expected.len());
    let mut bytes = expected[..keep].to_vec();
    if end & 2 == 2 {
        // The rest is combined with genuine bytes.
        let changed = expected[keep..].iter().enumerate();
        bytes.extend(changed.map(|(i, byte)| byte ^ rest.get(i).copied().unwrap_or(0)));
    } else {
        bytes.extend_from_slice(rest);
    }
    let mut handshake = if connects { connector() } else { acceptor() };
    let mut taken = 0;
    let mut failed = None;
    for piece in bytes.chunks(usize::from(*piece).max(1)) {
        match handshake.take(piece) {
            Ok((used, progress)) => {
                assert!(failed.is_none(), "it recovered");
                assert!(used <= piece.len());
                assert!(
                    used == piece.len() || progress != Progress::More,
                    "bytes left over"
                );
                taken += used;
                if let Progress::Peer(hello) | Progress::Done(hello) = progress {
                    assert_eq!(&bytes[..taken], expected, "taken for a peer");
                    assert_eq!(hello.rank, if connects { JobRank(5) } else { ME.rank });
                    assert_eq!(handshake.wanted(), 0);
                    return;
                }
            }
            Err(why) => {
                assert!(failed.is_none_or(|before| before == why));
                failed = Some(why);
                assert!(handshake.to_send().is_empty() && handshake.wanted() == 0);
            }
        }
    }
    let whole = bytes.len() >= expected.len() && bytes[..expected.len()] == **expected;
    assert!(!whole, "a genuine handshake was refused");
}
