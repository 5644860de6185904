//! Messages that no engine sends.
//!
//! Each must end the job with a clear message, and change nothing.

use crate::bound::Args;
use crate::bound::tests::rig::{ENDPOINT, FORGE, Rig, context};
use crate::vis::{Direction, PeerMemory, Shape, Strided, VisTransfer};
use crate::{Engine, Injection, internal};
use argonet_am::{Message, Payload};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::smp::Smp;
use argonet_segment::SharedBytes;

const LEN: usize = 1000;

fn send(engine: &Engine<Smp>, handler: HandlerIndex, args: &[u32], payload: &[u8]) {
    let message = Message {
        handler,
        args,
        payload: Payload::Medium(SharedBytes::from_slice(payload)),
    };
    engine
        .request(&context(), JobRank(1), &message, Injection::Blocking)
        .unwrap();
}

/// Has rank 1 reply to rank 0.
fn reply(engine: &Engine<Smp>, handler: HandlerIndex, args: &[u32], payload: &[u8]) {
    let args = [&[u32::from(handler.0)], args].concat();
    send(engine, FORGE, &args, payload);
}

fn is_broken(rig: &Rig, at: u32, case: &str) -> String {
    let message = rig.settle().unwrap_or_else(|| panic!("{case} is accepted"));
    let said = format!("rank {at} got a broken message from rank {}", 1 - at);
    assert!(message.contains(&said), "{case}: {message}");
    assert!(
        (0..2).all(|rank| rig.memory[rank].read(0, LEN) == [0xee; LEN]),
        "{case}"
    );
    message
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// A group of addresses, as messages have it.
fn group(len: u32, addresses: &[u64]) -> Vec<u8> {
    [
        words(&[u64::from(len) | (addresses.len() as u64) << 32]),
        words(addresses),
    ]
    .concat()
}

#[test]
fn arguments_and_classes() {
    for (handler, right) in [
        (internal::VIS_PUT, 3),
        (internal::VIS_GET, 4),
        (internal::VIS_NOTICE, 0),
    ] {
        for count in (0..=16).filter(|count| *count != right * 2 && (right > 0 || *count != 1)) {
            let rig = Rig::pair(LEN);
            send(&rig.ranks[0].engine, handler, &vec![0; count], &[1]);
            is_broken(
                &rig,
                1,
                &format!("handler {handler} with {count} arguments"),
            );
        }
        let rig = Rig::pair(LEN);
        reply(&rig.ranks[0].engine, handler, &[], &[]);
        is_broken(&rig, 0, &format!("handler {handler} as a reply"));
    }
    for count in (0..=15).filter(|count| *count != 4) {
        let rig = Rig::pair(LEN);
        reply(
            &rig.ranks[0].engine,
            internal::VIS_GET_DATA,
            &vec![0; count],
            &[1],
        );
        is_broken(&rig, 0, &format!("data with {count} arguments"));
    }
    let rig = Rig::pair(LEN);
    send(&rig.ranks[0].engine, internal::VIS_GET_DATA, &[0; 4], &[]);
    is_broken(&rig, 1, "data as a request");
    // No handler of a client, an endpoint of either side that cannot be, and bits that mean
    // nothing.
    let own = u32::from(internal::VIS_NOTICE.0);
    for word in [
        0,
        own,
        127,
        256,
        128 | 32 << 8,
        128 | 32 << 16,
        128 | 1 << 24,
    ] {
        let rig = Rig::pair(LEN);
        send(&rig.ranks[0].engine, internal::VIS_NOTICE, &[word], &[]);
        is_broken(&rig, 1, &format!("a notice for {word:#x}"));
    }
}

/// Makes a name from the address of the target's memory.
type Name = fn(u64) -> Vec<u8>;

#[test]
fn contradictory_names_are_broken_messages() {
    let endpoint = u64::from(ENDPOINT);
    let lattice = endpoint | 1 << 32;
    let names: [(&str, u64, Name); 17] = [
        ("nothing for a byte", endpoint, |_| Vec::new()),
        ("a cut header", endpoint, |base| {
            group(1, &[base])[..7].to_vec()
        }),
        ("a cut address", endpoint, |base| {
            group(1, &[base])[..15].to_vec()
        }),
        ("more addresses than there are", endpoint, |base| {
            words(&[1 | 2 << 32, base])
        }),
        ("no addresses", endpoint, |_| group(1, &[])),
        ("no bytes", endpoint, |base| {
            [group(0, &[base]), group(1, &[base])].concat()
        }),
        ("a byte too many", endpoint, |base| group(2, &[base])),
        ("twice the bytes", endpoint, |base| {
            group(1, &[base, base + 1])
        }),
        ("an address at the end", endpoint, |_| group(1, &[u64::MAX])),
        ("a cut lattice", lattice, |base| words(&[base, 1, 0])),
        ("half an axis", lattice, |base| words(&[base, 1, 0, 0, 4])),
        ("an axis of one", lattice, |base| {
            words(&[base, 1, 0, 0, 1, 8])
        }),
        ("a run of nothing", lattice, |base| {
            words(&[base, 0, 0, 0, 4, 8])
        }),
        ("a place behind the end", lattice, |base| {
            words(&[base, 1, 4, 0, 4, 8])
        }),
        ("a place behind a run", lattice, |base| {
            words(&[base, 2, 0, 2, 4, 8])
        }),
        (
            "an axis that goes on where the one before ends",
            lattice,
            |base| words(&[base, 1, 0, 0, 4, 8, 4, 32]),
        ),
        ("more than all memory", lattice, |base| {
            words(&[base, 1, 0, 0, 1 << 40, 0, 1 << 40, 1])
        }),
    ];
    for (case, space, name) in names {
        let rig = Rig::pair(LEN);
        let name = name(rig.memory[1].address());
        let args = Args::pack([0, space, name.len() as u64]);
        let payload = [name.as_slice(), &[7]].concat();
        send(
            &rig.ranks[0].engine,
            internal::VIS_PUT,
            args.words(),
            &payload,
        );
        is_broken(&rig, 1, &format!("put: {case}"));
        let rig = Rig::pair(LEN);
        let args = Args::pack([0, 0, space, 1]);
        send(&rig.ranks[0].engine, internal::VIS_GET, args.words(), &name);
        is_broken(&rig, 1, &format!("get: {case}"));
    }
}

#[test]
fn impossible_lengths_and_spaces_are_broken_messages() {
    let endpoint = u64::from(ENDPOINT);
    for (case, space, name_len) in [
        ("a name beyond the message", endpoint, 18),
        ("a name beyond all messages", endpoint, u64::MAX),
        ("a third naming", endpoint | 2 << 32, 16),
        ("a name of 16 bytes as a lattice", endpoint | 1 << 32, 16),
    ] {
        let rig = Rig::pair(LEN);
        let payload = [group(1, &[rig.memory[1].address()]), vec![7]].concat();
        let args = Args::pack([0, space, name_len]);
        send(
            &rig.ranks[0].engine,
            internal::VIS_PUT,
            args.words(),
            &payload,
        );
        is_broken(&rig, 1, case);
    }
    for bytes in [0, (64 << 10) + 1, u64::MAX] {
        let rig = Rig::pair(1 << 20);
        let name = group(bytes as u32, &[rig.memory[1].address()]);
        let args = Args::pack([0, 0, endpoint, bytes]);
        send(&rig.ranks[0].engine, internal::VIS_GET, args.words(), &name);
        is_broken(&rig, 1, &format!("{bytes} bytes at once"));
    }
    // Memory that is not bound, and an endpoint without any, are refused.
    for (case, space, at) in [
        ("beyond", endpoint, LEN as u64),
        ("nothing bound", 77, 0),
        ("outside of the segment", u64::from(u32::MAX), 1 << 30),
    ] {
        let rig = Rig::pair(LEN);
        let name = group(1, &[rig.memory[1].address() + at]);
        let args = Args::pack([0, space, name.len() as u64]);
        let payload = [name.as_slice(), &[7]].concat();
        send(
            &rig.ranks[0].engine,
            internal::VIS_PUT,
            args.words(),
            &payload,
        );
        let message = rig.settle().unwrap();
        assert!(
            message.contains("outside of its segment"),
            "{case}: {message}"
        );
        assert_eq!(rig.memory[1].read(0, LEN), [0xee; LEN]);
    }
}

/// Data comes for a get of 100 elements of 2 bytes in four messages, before the true ones.
///
/// The first operation of an engine has the number 0.
#[test]
fn unrequested_data_is_a_broken_message() {
    for (case, args, len) in [
        ("another operation", [1, 0], 50),
        ("a piece too many", [0, 4], 50),
        ("a piece far beyond", [0, u64::MAX], 50),
        ("a byte too few", [0, 0], 49),
        ("a byte too many", [0, 0], 51),
        ("nothing", [0, 0], 0),
    ] {
        let rig = Rig::pair(LEN);
        let engine = &rig.ranks[0].engine;
        let mut target = vec![0x55u8; 600];
        let args = Args::pack(args);
        reply(engine, internal::VIS_GET_DATA, args.words(), &vec![9; len]);
        get(&rig, &mut target);
        is_broken(&rig, 0, case);
        assert_eq!(target, [0x55; 600]);
    }
    // The same piece twice.
    let rig = Rig::pair(LEN);
    let engine = &rig.ranks[0].engine;
    let mut target = vec![0x55u8; 600];
    for _ in 0..2 {
        reply(
            engine,
            internal::VIS_GET_DATA,
            Args::pack([0, 1]).words(),
            &[0xee; 50],
        );
    }
    get(&rig, &mut target);
    let message = is_broken(&rig, 0, "the same piece twice");
    assert!(message.contains("its lengths contradict"), "{message}");
}

fn get(rig: &Rig, target: &mut [u8]) {
    let engine = &rig.ranks[0].engine;
    engine.limit_vis_chunk(Direction::Get, 50);
    let transfer = VisTransfer {
        direction: Direction::Get,
        rank: JobRank(1),
        memory: PeerMemory::Bound(ENDPOINT),
        shape: Shape::Strided(Strided {
            to: target.as_mut_ptr().expose_provenance(),
            to_strides: &[3],
            from: rig.memory[1].address() as usize,
            from_strides: &[4],
            element: 2,
            counts: &[100],
        }),
        notice: None,
    };
    // SAFETY: the callers keep the target to the end of the rig's use.
    unsafe { engine.vis_start(&context(), &transfer, Injection::Blocking) }.unwrap();
}
