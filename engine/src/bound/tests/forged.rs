//! Messages that no engine sends.
//!
//! Each must end the job with a clear message, and change nothing.

use super::super::wire::Args;
use super::rig::{ENDPOINT, FORGE, NOTE, Rig, bytes, context, get, put};
use crate::{Engine, Injection, internal};
use argonet_am::{Message, Payload};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::smp::Smp;
use argonet_segment::SharedBytes;

const LEN: usize = 1000;

/// Sends a request as it is.
fn send(engine: &Engine<Smp>, handler: HandlerIndex, args: &[u32], payload: &[u8]) {
    let message = Message {
        handler,
        args,
        payload: Payload::Medium(SharedBytes::from_slice(payload)),
    };
    let sent = engine.request(&context(), JobRank(1), &message, Injection::Blocking);
    sent.unwrap();
}

/// Has rank 1 reply to rank 0 with a message as it is.
fn reply(engine: &Engine<Smp>, handler: HandlerIndex, args: &[u32], payload: &[u8]) {
    let args = [&[u32::from(handler.0)], args].concat();
    send(engine, FORGE, &args, payload);
}

fn is_untouched(rig: &Rig) -> bool {
    (0..2).all(|rank| rig.memory[rank].read(0, LEN) == [0xee; LEN])
}

/// The job ends because `at` got a broken message from the other.
fn is_broken(rig: &Rig, at: u32, case: &str) -> String {
    let message = rig.settle().unwrap_or_else(|| panic!("{case} is accepted"));
    let said = format!("rank {at} got a broken message from rank {}", 1 - at);
    assert!(message.contains(&said), "{case}: {message}");
    assert_eq!(
        rig.ranks[at as usize].notes.aborts.lock().first(),
        Some(&message)
    );
    assert!(is_untouched(rig), "{case}");
    message
}

#[test]
fn any_other_number_of_arguments_is_refused() {
    // The right counts, in numbers of two arguments.
    for (handler, right) in [
        (internal::BOUND_PUT, 5),
        (internal::BOUND_GET, 6),
        (internal::BOUND_QUERY, 2),
    ] {
        for count in (0..=16).filter(|count| *count != right * 2) {
            let rig = Rig::pair(LEN);
            send(&rig.ranks[0].engine, handler, &vec![0; count], &[1]);
            is_broken(
                &rig,
                1,
                &format!("handler {handler} with {count} arguments"),
            );
        }
    }
    for (handler, right) in [
        (internal::BOUND_PUT_DONE, 1),
        (internal::BOUND_GET_DATA, 2),
        (internal::BOUND_ANSWER, 3),
        (internal::BOUND_REFUSED, 6),
    ] {
        for count in (0..=15).filter(|count| *count != right * 2) {
            let rig = Rig::pair(LEN);
            reply(&rig.ranks[0].engine, handler, &vec![0; count], &[1]);
            is_broken(
                &rig,
                0,
                &format!("handler {handler} with {count} arguments"),
            );
        }
    }
}

#[test]
fn classes_are_not_mixed_up() {
    for handler in [
        internal::BOUND_PUT_DONE,
        internal::BOUND_GET_DATA,
        internal::BOUND_ANSWER,
        internal::BOUND_REFUSED,
    ] {
        let rig = Rig::pair(LEN);
        send(&rig.ranks[0].engine, handler, &[], &[]);
        let message = is_broken(&rig, 1, &format!("handler {handler}"));
        assert!(message.contains("wrong class"), "{message}");
    }
    for handler in [
        internal::BOUND_PUT,
        internal::BOUND_GET,
        internal::BOUND_QUERY,
        internal::BOUND_LONG_PART,
    ] {
        let rig = Rig::pair(LEN);
        reply(&rig.ranks[0].engine, handler, &[], &[]);
        let message = is_broken(&rig, 0, &format!("handler {handler}"));
        assert!(message.contains("wrong class"), "{message}");
    }
}

#[test]
fn pieces_outside_of_their_range_are_refused() {
    let endpoint = u64::from(ENDPOINT);
    let len = LEN as u64;
    for (offset, bytes) in [
        (0, LEN + 1),
        (0, 0),
        (len, 1),
        (len - 1, 2),
        (u64::MAX, 1),
        (u64::MAX, 2),
        (0u64.wrapping_sub(8), 8),
        (1 << 63, 8),
    ] {
        let case = format!("{bytes} bytes at offset {offset}");
        let rig = Rig::pair(LEN);
        let base = rig.memory[1].address();
        let args = Args::pack([endpoint, base, len, offset, 0]);
        send(
            &rig.ranks[0].engine,
            internal::BOUND_PUT,
            args.words(),
            &vec![1; bytes],
        );
        is_broken(&rig, 1, &case);
        let rig = Rig::pair(LEN);
        let base = rig.memory[1].address();
        let args = Args::pack([endpoint, base, len, offset, 0, bytes as u64]);
        send(&rig.ranks[0].engine, internal::BOUND_GET, args.words(), &[]);
        is_broken(&rig, 1, &case);
    }
    // An endpoint that does not fit, and a piece that no reply can carry.
    let rig = Rig::pair(LEN);
    let args = Args::pack([endpoint | 1 << 32, rig.memory[1].address(), 1, 0, 0]);
    send(
        &rig.ranks[0].engine,
        internal::BOUND_PUT,
        args.words(),
        &[1],
    );
    is_broken(&rig, 1, "an endpoint beyond 32 bits");
    let rig = Rig::pair(1 << 20);
    let args = Args::pack([endpoint, rig.memory[1].address(), 1 << 20, 0, 0, 1 << 17]);
    send(&rig.ranks[0].engine, internal::BOUND_GET, args.words(), &[]);
    is_broken(&rig, 1, "a piece of 128 KiB");
}

#[test]
fn answers_to_nothing_are_refused() {
    for op in [0, 1, 1 << 32, u64::MAX] {
        for (handler, args) in [
            (internal::BOUND_PUT_DONE, Args::pack([op])),
            (internal::BOUND_GET_DATA, Args::pack([op, 0])),
            (internal::BOUND_ANSWER, Args::pack([op, 1, 2])),
        ] {
            let rig = Rig::pair(LEN);
            reply(&rig.ranks[0].engine, handler, args.words(), &[1]);
            is_broken(&rig, 0, &format!("handler {handler}, operation {op}"));
        }
    }
}

/// The forged answer comes while a get of 100 bytes is under way, before the true one.
///
/// The first operation of an engine has the number 0.
fn during_a_get(handler: HandlerIndex, args: &[u32], payload: &[u8]) {
    let rig = Rig::pair(LEN);
    let engine = &rig.ranks[0].engine;
    let mut target = vec![0x55; 300];
    reply(engine, handler, args, payload);
    get(engine, &context(), rig.place(1, 0), &mut target[100..200]);
    is_broken(&rig, 0, &format!("{args:?} with {} bytes", payload.len()));
    assert_eq!(target, [0x55; 300]);
}

#[test]
fn answers_unfit_for_their_operation_are_refused() {
    for (offset, len) in [
        (0, 0),
        (0, 99),
        (0, 101),
        (1, 99),
        (100, 1),
        (1, 100),
        (200, 100),
    ] {
        let args = Args::pack([0, offset]);
        during_a_get(internal::BOUND_GET_DATA, args.words(), &bytes(1, len));
    }
    for offset in [u64::MAX, 0u64.wrapping_sub(100), 1 << 63] {
        let args = Args::pack([0, offset]);
        during_a_get(internal::BOUND_GET_DATA, args.words(), &bytes(1, 100));
    }
    during_a_get(internal::BOUND_PUT_DONE, Args::pack([0]).words(), &[]);
    during_a_get(internal::BOUND_ANSWER, Args::pack([0, 1, 2]).words(), &[]);
}

#[test]
fn an_answer_too_many_is_refused() {
    let rig = Rig::pair(LEN);
    let engine = &rig.ranks[0].engine;
    reply(
        engine,
        internal::BOUND_PUT_DONE,
        Args::pack([0]).words(),
        &[],
    );
    put(engine, &context(), rig.place(1, 0), &[0xee; 8]);
    is_broken(&rig, 0, "the second acknowledgement");
    // Bytes for a put.
    let rig = Rig::pair(LEN);
    let engine = &rig.ranks[0].engine;
    reply(
        engine,
        internal::BOUND_GET_DATA,
        Args::pack([0, 0]).words(),
        &[1],
    );
    put(engine, &context(), rig.place(1, 0), &[0xee; 8]);
    is_broken(&rig, 0, "bytes for a put");
}

#[test]
fn an_answer_of_another_rank_is_refused() {
    let rig = Rig::new(3, argonet_conduit::ThreadMode::Seq, LEN);
    let engine = &rig.ranks[0].engine;
    reply(
        engine,
        internal::BOUND_PUT_DONE,
        Args::pack([0]).words(),
        &[],
    );
    put(engine, &context(), rig.place(2, 0), &[0xee; 8]);
    // Rank 1 answers first.
    rig.ranks[1].engine.poll(&context()).unwrap();
    is_broken(&rig, 0, "the answer of rank 1");
}

fn envelope(address: u64, len: u64, endpoint: u32, handler: u32) -> Vec<u8> {
    let numbers = [address.to_le_bytes(), len.to_le_bytes()].concat();
    [
        numbers,
        [endpoint.to_le_bytes(), handler.to_le_bytes()].concat(),
    ]
    .concat()
}

/// Makes a message from the address of the target's memory and the index of [`NOTE`].
type Envelope = fn(u64, u32) -> Vec<u8>;

#[test]
fn envelopes_are_checked() {
    let note = u32::from(NOTE.0);
    let cases: [(&str, Envelope); 6] = [
        ("nothing", |_, _| Vec::new()),
        ("a cut prefix", |base, note| {
            envelope(base, 0, ENDPOINT, note)[..23].to_vec()
        }),
        ("a byte too many", |base, note| {
            [envelope(base, 3, ENDPOINT, note), vec![1; 4]].concat()
        }),
        ("a byte too few", |base, note| {
            [envelope(base, 3, ENDPOINT, note), vec![1; 2]].concat()
        }),
        ("an unknown flag", |base, note| {
            envelope(base, 0, ENDPOINT, note | 1 << 9)
        }),
        ("an envelope in an envelope", |base, _| {
            let inner = u32::from(internal::BOUND_LONG.0);
            [envelope(base, 24, ENDPOINT, inner), vec![1; 24]].concat()
        }),
    ];
    for (case, payload) in cases {
        let rig = Rig::pair(LEN);
        let payload = payload(rig.memory[1].address(), note);
        send(&rig.ranks[0].engine, internal::BOUND_LONG, &[1], &payload);
        is_broken(&rig, 1, case);
        assert!(rig.seen(1).is_empty(), "{case}");
    }
    // A client's handler that does not exist there.
    let rig = Rig::pair(LEN);
    let payload = envelope(0, 0, ENDPOINT, 200);
    send(&rig.ranks[0].engine, internal::BOUND_LONG, &[], &payload);
    let message = rig.settle().unwrap();
    assert!(
        message.contains("handler index 200 is not registered"),
        "{message}"
    );
}

/// A part of a reply of [`LEN`] bytes.
fn part(range: Vec<u8>, reply: u64, offset: u64, bytes: usize) -> Vec<u8> {
    let numbers = [reply.to_le_bytes(), offset.to_le_bytes()].concat();
    [range, numbers, vec![0xee; bytes]].concat()
}

#[test]
fn parts_of_replies_are_checked() {
    let note = u32::from(NOTE.0);
    let len = LEN as u64;
    for (case, cut, offset, bytes) in [
        ("nothing", 40, 0, 0),
        ("a cut prefix", 17, 0, 0),
        ("a cut header", 1, 0, 0),
        ("no bytes", 0, 0, 0),
        ("a byte too many", 0, 0, LEN + 1),
        ("a byte beyond", 0, len - 1, 2),
        ("an offset beyond", 0, len, 1),
        ("an offset that wraps", 0, u64::MAX, 2),
    ] {
        let rig = Rig::pair(LEN);
        let range = envelope(rig.memory[1].address(), len, ENDPOINT, note);
        let part = part(range, 0, offset, bytes);
        let part = &part[..part.len() - cut];
        send(&rig.ranks[0].engine, internal::BOUND_LONG_PART, &[], part);
        is_broken(&rig, 1, case);
    }
    for (case, handler) in [
        ("an unknown flag", note | 1 << 9),
        ("an endpoint that cannot exist", note | 32 << 16),
        ("the library's own", u32::from(internal::BOUND_LONG.0)),
    ] {
        let rig = Rig::pair(LEN);
        let range = envelope(rig.memory[1].address(), len, ENDPOINT, handler);
        let part = part(range, 0, 0, LEN);
        send(&rig.ranks[0].engine, internal::BOUND_LONG_PART, &[], &part);
        is_broken(&rig, 1, case);
        assert!(rig.seen(1).is_empty(), "{case}");
    }
    // More parts than the reply has.
    let rig = Rig::pair(LEN);
    let range = envelope(rig.memory[1].address(), len, ENDPOINT, note);
    let half = part(range, 7, 0, LEN / 2 + 1);
    send(&rig.ranks[0].engine, internal::BOUND_LONG_PART, &[], &half);
    send(&rig.ranks[0].engine, internal::BOUND_LONG_PART, &[], &half);
    is_broken(&rig, 1, "a part too many");
    assert!(rig.seen(1).is_empty());
    // Memory that is not bound there is refused, as an address and as an offset.
    for (address, flags) in [(1, 0), (1, 1 << 8)] {
        let rig = Rig::pair(LEN);
        let range = envelope(address, len, ENDPOINT, note | flags);
        let part = part(range, 0, 0, LEN);
        send(&rig.ranks[0].engine, internal::BOUND_LONG_PART, &[], &part);
        let message = rig.settle().unwrap();
        assert!(
            message.contains("a long active message of 1000 bytes"),
            "{message}"
        );
        assert!(is_untouched(&rig) && rig.seen(1).is_empty());
    }
}
