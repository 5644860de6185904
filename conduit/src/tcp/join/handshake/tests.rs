//! Handshakes that go well, and all that must not.

use super::*;
use proptest::prelude::*;

const KEY: [u8; 32] = [7; 32];

fn key() -> JobKey {
    JobKey::from_bytes(KEY)
}

fn me() -> Hello {
    Hello {
        rank: JobRank(3),
        connection: 2,
        incarnation: 41,
        received: 1_000_001,
    }
}

/// Every connection has its own.
fn nonce(n: u8) -> [u8; NONCE_BYTES] {
    [n; NONCE_BYTES]
}

fn connector(n: u8) -> Handshake {
    Handshake::connect(&key(), me(), JobRank(5), nonce(n))
}

fn acceptor(n: u8) -> Handshake {
    Handshake::accept(&key(), JobRank(5), 8, nonce(n))
}

/// Carries the bytes of one end to the other, in pieces of `piece` bytes.
fn carry(from: &mut Handshake, to: &mut Handshake, piece: usize) -> Result<Progress, Refused> {
    while !from.to_send().is_empty() {
        let bytes = from.to_send();
        let bytes = bytes[..bytes.len().min(piece)].to_vec();
        from.sent(bytes.len());
        let (used, _) = to.take(&bytes)?;
        assert_eq!(used, bytes.len());
    }
    to.take(&[]).map(|(_, progress)| progress)
}

/// Takes the bytes that an end sends.
fn said(end: &mut Handshake) -> Vec<u8> {
    let bytes = end.to_send().to_vec();
    end.sent(bytes.len());
    bytes
}

/// A whole handshake: its four messages.
fn genuine(n: u8) -> [Vec<u8>; 4] {
    let (mut c, mut a) = (connector(n), acceptor(n + 1));
    let open = said(&mut c);
    a.take(&open).unwrap();
    let challenge = said(&mut a);
    c.take(&challenge).unwrap();
    let proof = said(&mut c);
    a.take(&proof).unwrap();
    a.answer(9);
    let verdict = said(&mut a);
    assert!(matches!(c.take(&verdict), Ok((_, Progress::Done(_)))));
    [open, challenge, proof, verdict]
}

#[test]
fn both_ends_know_the_other_in_pieces_of_every_size() {
    for piece in 1..=HANDSHAKE_BYTES {
        let (mut c, mut a) = (connector(1), acceptor(2));
        assert_eq!(carry(&mut c, &mut a, piece), Ok(Progress::More));
        assert_eq!(carry(&mut a, &mut c, piece), Ok(Progress::More));
        assert_eq!(carry(&mut c, &mut a, piece), Ok(Progress::Peer(me())));
        a.answer(77);
        assert_eq!(a.take(&[]), Ok((0, Progress::Done(me()))));
        let other = Hello {
            rank: JobRank(5),
            received: 77,
            ..me()
        };
        assert_eq!(carry(&mut a, &mut c, piece), Ok(Progress::Done(other)));
    }
}

#[test]
fn the_acceptor_may_raise_the_incarnation() {
    let (mut c, mut a) = (connector(1), acceptor(2));
    carry(&mut c, &mut a, 999).unwrap();
    carry(&mut a, &mut c, 999).unwrap();
    carry(&mut c, &mut a, 999).unwrap();
    a.answer_as(50, 0);
    let done = carry(&mut a, &mut c, 999);
    assert!(matches!(done, Ok(Progress::Done(hello)) if hello.incarnation == 50));
    let done = a.take(&[]);
    assert!(matches!(done, Ok((0, Progress::Done(hello))) if hello.incarnation == 50));
}

#[test]
fn a_refusal_arrives_with_its_reason() {
    for verdict in [Verdict::Crossing, Verdict::Stale, Verdict::Limit] {
        let (mut c, mut a) = (connector(1), acceptor(2));
        carry(&mut c, &mut a, 999).unwrap();
        carry(&mut a, &mut c, 999).unwrap();
        carry(&mut c, &mut a, 999).unwrap();
        a.refuse(verdict, 60);
        let refused = Refused::ByPeer {
            verdict,
            incarnation: 60,
        };
        assert_eq!(carry(&mut a, &mut c, 999), Err(refused));
        assert_eq!(a.take(b"more"), Ok((0, Progress::More)));
    }
}

/// Any bytes after the handshake are left where they are, in both directions.
#[test]
fn nothing_beyond_the_handshake_is_taken() {
    let [open, challenge, proof, verdict] = genuine(1);
    let mut a = acceptor(2);
    let mut bytes = open.clone();
    bytes.extend_from_slice(&proof);
    bytes.extend_from_slice(b"frames");
    assert_eq!(a.wanted(), open.len());
    let used = open.len() + proof.len();
    assert_eq!(a.take(&bytes), Ok((used, Progress::Peer(me()))));
    assert_eq!(
        (a.wanted(), a.take(b"frames")),
        (0, Ok((0, Progress::Peer(me()))))
    );
    a.answer(0);
    assert_eq!(a.take(b"frames"), Ok((0, Progress::Done(me()))));
    let mut c = connector(1);
    let mut bytes = challenge.clone();
    bytes.extend_from_slice(&verdict);
    bytes.extend_from_slice(&[0xff; 1000]);
    let (used, progress) = c.take(&bytes).unwrap();
    assert_eq!(used, challenge.len() + verdict.len());
    assert!(matches!(progress, Progress::Done(_)));
}

/// Gives an acceptor with this nonce these bytes.
fn give_acceptor(n: u8, bytes: &[u8]) -> Result<Progress, Refused> {
    acceptor(n).take(bytes).map(|(_, progress)| progress)
}

#[test]
fn no_bit_of_any_message_may_change() {
    let [open, challenge, proof, verdict] = genuine(1);
    let flipped = |bytes: &[u8], bit: usize| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    };
    for bit in 0..open.len() * 8 {
        assert!(
            give_acceptor(2, &flipped(&open, bit)).is_err(),
            "open {bit}"
        );
    }
    for bit in 0..challenge.len() * 8 {
        let refused = connector(1).take(&flipped(&challenge, bit));
        assert_eq!(refused, Err(Refused::Proof), "challenge {bit}");
    }
    for bit in 0..proof.len() * 8 {
        let bytes = [open.clone(), flipped(&proof, bit)].concat();
        assert_eq!(give_acceptor(2, &bytes), Err(Refused::Proof), "proof {bit}");
    }
    for bit in 0..verdict.len() * 8 {
        let bytes = [challenge.clone(), flipped(&verdict, bit)].concat();
        assert_eq!(
            connector(1).take(&bytes),
            Err(Refused::Proof),
            "verdict {bit}"
        );
    }
}

#[test]
fn a_recorded_handshake_is_worth_nothing() {
    let [open, challenge, proof, verdict] = genuine(1);
    // To another connection of the same acceptor: a challenge, and no more.
    assert_eq!(give_acceptor(3, &open), Ok(Progress::More));
    let bytes = [open.clone(), proof].concat();
    assert_eq!(give_acceptor(3, &bytes), Err(Refused::Proof));
    // To another connection of the same connector.
    assert_eq!(connector(4).take(&challenge), Err(Refused::Proof));
    // A new challenge and the old verdict.
    let (mut c, mut a) = (connector(4), acceptor(5));
    carry(&mut c, &mut a, 999).unwrap();
    carry(&mut a, &mut c, 999).unwrap();
    assert_eq!(c.take(&verdict), Err(Refused::Proof));
}

#[test]
fn an_end_refuses_its_own_messages() {
    let (mut c, mut a) = (connector(1), acceptor(2));
    let open = said(&mut c);
    assert_eq!(connector(1).take(&open), Err(Refused::Proof));
    a.take(&open).unwrap();
    let challenge = said(&mut a);
    assert_eq!(a.take(&challenge), Err(Refused::Proof));
    c.take(&challenge).unwrap();
    let proof = said(&mut c);
    assert_eq!(
        c.take(&[proof.clone(), proof].concat()),
        Err(Refused::Proof)
    );
    // Rank 3's message does not open a connection to rank 3, not even by itself.
    let mut own = Handshake::accept(&key(), JobRank(3), 8, nonce(9));
    assert_eq!(own.take(&open), Err(Refused::Acceptor(5)));
}

#[test]
fn a_wrong_key_gets_no_answer_and_gives_none() {
    let other = JobKey::from_bytes([8; 32]);
    // A stranger that knows the job's identity: from listening, say.
    let mut forged = Handshake::connect(&other, me(), JobRank(5), nonce(1));
    forged.transcript[VERSION_END..JOB_END].copy_from_slice(&key().identity());
    let mut a = acceptor(2);
    assert_eq!(carry(&mut forged, &mut a, 999), Err(Refused::Proof));
    assert!(a.to_send().is_empty());
    // And one that answers a connector.
    let mut c = connector(1);
    let open = said(&mut c);
    let mut a = Handshake::accept(&other, JobRank(5), 8, nonce(2));
    assert_eq!(a.take(&open), Err(Refused::Job));
    assert_eq!(c.take(&[0; 64]), Err(Refused::Proof));
    assert!(c.to_send().is_empty(), "nothing for a stranger to keep");
}

#[test]
fn invalid_bytes_are_refused_as_early_as_possible() {
    let [open, ..] = genuine(1);
    let with = |at: usize, bytes: &[u8]| {
        let mut open = open.clone();
        open[at..at + bytes.len()].copy_from_slice(bytes);
        open
    };
    for (bytes, taken, why) in [
        (b"GET / HTTP/1.1\r\n".to_vec(), 8, Refused::Magic),
        (with(8, &[2, 1]), 10, Refused::Version(0x102)),
        (with(25, &[0]), 26, Refused::Job),
        (with(58, &[4]), 116, Refused::Proof),
    ] {
        for len in 0..taken {
            let mut a = acceptor(2);
            assert_eq!(a.take(&bytes[..len]), Ok((len, Progress::More)), "{why}");
        }
        let mut a = acceptor(2);
        assert_eq!(a.take(&bytes[..taken]), Err(why));
        assert_eq!(a.take(&bytes), Err(why), "it does not recover");
        assert!(a.to_send().is_empty() && a.wanted() == 0);
    }
}

#[test]
fn ranks_are_those_of_the_job() {
    let from = |rank: u32, to: u32| {
        let me = Hello {
            rank: JobRank(rank),
            ..me()
        };
        let mut c = Handshake::connect(&key(), me, JobRank(to), nonce(1));
        carry(&mut c, &mut acceptor(2), 999)
    };
    assert_eq!(from(3, 5), Ok(Progress::More));
    assert_eq!(from(3, 6), Err(Refused::Acceptor(6)));
    assert_eq!(from(8, 5), Err(Refused::Connector(8)));
    assert_eq!(from(u32::MAX, 5), Err(Refused::Connector(u32::MAX)));
    assert_eq!(from(5, 5), Err(Refused::Connector(5)));
}

#[test]
fn an_unknown_verdict_is_refused() {
    let (mut c, mut a) = (connector(1), acceptor(2));
    carry(&mut c, &mut a, 999).unwrap();
    carry(&mut a, &mut c, 999).unwrap();
    carry(&mut c, &mut a, 999).unwrap();
    a.answer(0);
    a.transcript[VERDICT.start] = 9;
    let code = a.keys.verdict.code(a.before_code(VERDICT));
    a.say(VERDICT, code);
    assert_eq!(carry(&mut a, &mut c, 999), Err(Refused::Verdict(9)));
}

#[test]
#[should_panic(expected = "a peer that has not proved anything")]
fn there_is_no_answer_before_the_proof() {
    let (mut c, mut a) = (connector(1), acceptor(2));
    carry(&mut c, &mut a, 999).unwrap();
    a.answer(1);
}

#[test]
fn no_key_is_printed() {
    let shown = format!("{:?}", connector(1));
    assert_eq!(shown, "Handshake { filled: 116, .. }");
}

/// 10 MB of random bytes, as connections of all lengths.
#[test]
fn ten_megabytes_of_noise_are_refused() {
    let mut state = 1u64;
    let mut noise = vec![0u8; 10 << 20];
    for byte in &mut noise {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
    let mut rest = noise.as_slice();
    let mut length = 1;
    while !rest.is_empty() {
        let (bytes, next) = rest.split_at(length.min(rest.len()));
        rest = next;
        // Strangers that know how it begins come further.
        let [open, challenge, ..] = genuine(1);
        for (genuine, keep) in [(&open, 0), (&open, 8), (&open, 26), (&open, 84)] {
            let mut all = genuine[..keep].to_vec();
            all.extend_from_slice(bytes);
            let mut a = acceptor(2);
            assert!(!matches!(
                a.take(&all),
                Ok((_, Progress::Peer(_) | Progress::Done(_)))
            ));
            assert!(a.to_send().is_empty());
        }
        let mut c = connector(1);
        let all = [&challenge[..length % 64], bytes].concat();
        assert!(!matches!(c.take(&all), Ok((_, Progress::Done(_)))));
        length = length * 3 / 2 % 9000 + 1;
    }
}

proptest! {
    /// Neither end takes the other for a peer after any bytes replace a part of any message.
    #[test]
    fn no_message_can_be_forged(
        which in 0usize..4,
        from in any::<proptest::sample::Index>(),
        bytes in proptest::collection::vec(any::<u8>(), 1..80),
        piece in 1usize..200,
    ) {
        let messages = genuine(1);
        let mut forged = messages.clone();
        let at = from.index(forged[which].len());
        let count = bytes.len().min(forged[which].len() - at);
        forged[which][at..at + count].copy_from_slice(&bytes[..count]);
        prop_assume!(forged[which] != messages[which]);
        let (mut end, script) = if which % 2 == 0 {
            (acceptor(2), [&forged[0], &forged[2]].map(Vec::clone).concat())
        } else {
            (connector(1), [&forged[1], &forged[3]].map(Vec::clone).concat())
        };
        let mut refused = false;
        for piece in script.chunks(piece) {
            match end.take(piece) {
                Ok((_, Progress::Peer(_) | Progress::Done(_))) => prop_assert!(false, "taken for a peer"),
                Ok(_) => prop_assert!(!refused),
                Err(_) => refused = true,
            }
        }
        prop_assert!(refused);
    }
}
