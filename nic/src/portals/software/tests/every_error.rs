//! Each call returns each of the errors that its text names: the list is compared with the text of
//! the trait.

use super::documented::documented;
use super::{ARENA, END, Pair, bind, drain, exactly, memory, part};
use crate::portals::software::{FaultRules, Software};
use crate::portals::{
    Ack, AtomicKind, AtomicOp, Count, Counter, Descriptor, DescriptorHandle, Entry, EntryHandle,
    Matching, NicError, PortalIndex, PortalOptions, Portals, Position, Queue, Target,
};
use argonet_base::JobRank;
use core::time::Duration;
use std::collections::BTreeSet;

/// Errors that this interface has no reason for: it has all features, and a whole descriptor is
/// never outside of itself.
const NEVER: [(&str, &str); 4] = [
    ("attach", "Unsupported"),
    ("bind", "Unsupported"),
    ("get", "OutOfRange"),
    ("put", "OutOfRange"),
];

/// Errors of operations for other hosts alone; `tests/portals4/away.rs` has both.
const AWAY: [&str; 2] = ["NoSpace", "Unreachable"];
const OPERATIONS: [&str; 6] = [
    "atomic",
    "fetch_atomic",
    "get",
    "get_region",
    "put",
    "put_region",
];

/// Errors that calls have returned.
#[derive(Default)]
struct Seen(BTreeSet<(String, String)>);

impl Seen {
    /// Records the error that a call was refused with.
    fn refused<T>(&mut self, call: &str, answer: Result<T, NicError>) {
        let Err(error) = answer else {
            panic!("{call} was not refused");
        };
        let text = error.to_string();
        assert!(text.contains("rank"), "{call}: {text} does not say whose");
        let debug = format!("{error:?}");
        let name: String = debug.chars().take_while(|c| c.is_alphanumeric()).collect();
        self.0.insert((call.to_owned(), name));
    }
}

#[test]
fn every_call_has_returned_each_of_its_errors() {
    let mut seen = Seen::default();
    queues(&mut seen);
    counters(&mut seen);
    portals(&mut seen);
    entries(&mut seen);
    descriptors(&mut seen);
    operations(&mut seen);
    atomics(&mut seen);
    let due: BTreeSet<(String, String)> = documented()
        .into_iter()
        .flat_map(|(call, errors)| errors.into_iter().map(move |error| (call.clone(), error)))
        .collect();
    assert!(
        due.len() > 60,
        "the text of the trait was not understood: {due:?}"
    );
    let away = OPERATIONS
        .into_iter()
        .flat_map(|call| AWAY.map(|error| (call, error)));
    let never: BTreeSet<_> = NEVER
        .into_iter()
        .chain(away)
        .map(|(call, error)| (call.to_owned(), error.to_owned()))
        .collect();
    assert!(
        never.iter().all(|pair| due.contains(pair)),
        "the text does not name {never:?}"
    );
    let due: BTreeSet<_> = due.difference(&never).cloned().collect();
    let missing: Vec<_> = due.difference(&seen.0).collect();
    assert!(missing.is_empty(), "never returned: {missing:?}");
    let unknown: Vec<_> = seen.0.difference(&due).collect();
    assert!(unknown.is_empty(), "the text does not name {unknown:?}");
}

const NO_QUEUE: u64 = u64::MAX;

fn queues(seen: &mut Seen) {
    // Of so few events that some are dropped.
    let pair = Pair::with(FaultRules::default(), PortalOptions::default(), 4);
    let nic = &pair.b;
    let gone = Queue::from_bits(NO_QUEUE);
    seen.refused("queue_alloc", nic.queue_alloc(0));
    for _ in 1..4 {
        nic.queue_alloc(4).unwrap();
    }
    seen.refused("queue_alloc", nic.queue_alloc(4));
    seen.refused("queue_free", nic.queue_free(gone));
    seen.refused("queue_free", nic.queue_free(pair.target_queue));
    seen.refused("queue_get", nic.queue_get(gone));
    seen.refused("queue_poll", nic.queue_poll(&[gone]));
    seen.refused("queue_is_empty", nic.queue_is_empty(gone));
    let soon = Some(Duration::ZERO);
    seen.refused("queue_wait", nic.queue_wait(&[gone], soon, &|| false));
    let entry = Entry {
        events: END,
        queue: Some(pair.target_queue),
        ..Entry::OPEN
    };
    pair.attach(Position::Tail, exactly(1), 0, 256, entry);
    let mut lose = |call: &str, take: &dyn Fn() -> Result<(), NicError>| {
        for header in 0..100 {
            let (from, target) = (pair.from, pair.target(1, 0));
            let put = pair
                .a
                .put_region(from, part(0, 8), Ack::None, target, header);
            put.unwrap();
        }
        // Those that found room come first.
        let refused = (0..100).find_map(|_| take().err());
        seen.refused(call, refused.map_or(Ok(()), Err));
        while !matches!(nic.queue_get(pair.target_queue), Ok(None)) {}
    };
    lose("queue_get", &|| nic.queue_get(pair.target_queue).map(drop));
    lose("queue_poll", &|| {
        nic.queue_poll(&[pair.target_queue]).map(drop)
    });
}

fn counters(seen: &mut Seen) {
    let pair = Pair::new();
    let nic = &pair.b;
    let gone = Counter::from_bits(u64::MAX);
    seen.refused("counter_free", nic.counter_free(gone));
    seen.refused("counter_get", nic.counter_get(gone));
    seen.refused("counter_set", nic.counter_set(gone, 1, 1));
    let counter = nic.counter_alloc().unwrap();
    let count = Some(Count {
        counter,
        bytes: false,
    });
    let silent = Descriptor::SILENT;
    bind(nic, 0, 8, Descriptor { count, ..silent });
    seen.refused("counter_free", nic.counter_free(counter));
    for _ in 1..4 {
        nic.counter_alloc().unwrap();
    }
    seen.refused("counter_alloc", nic.counter_alloc());
}

fn portals(seen: &mut Seen) {
    let pair = Pair::new();
    let nic = &pair.b;
    let beyond = PortalIndex(4);
    let mut alloc = |flow_control, queue, wish| {
        let options = PortalOptions { flow_control };
        seen.refused("portal_alloc", nic.portal_alloc(options, queue, wish));
    };
    alloc(true, None, None);
    alloc(false, Some(Queue::from_bits(NO_QUEUE)), None);
    alloc(false, None, Some(beyond));
    alloc(false, None, Some(pair.portal));
    for _ in 1..4 {
        let plain = PortalOptions::default();
        nic.portal_alloc(plain, None, None).unwrap();
    }
    alloc(false, None, None);
    pair.attach(Position::Tail, exactly(1), 0, 8, Entry::OPEN);
    seen.refused("portal_free", nic.portal_free(pair.portal));
    seen.refused("portal_free", nic.portal_free(beyond));
    seen.refused("portal_enable", nic.portal_enable(beyond, true));
}

fn entries(seen: &mut Seen) {
    let pair = Pair::new();
    let nic = &pair.b;
    let mut attach = |portal, matching: Matching, len, entry| {
        let at = memory(nic, 0);
        // SAFETY: memory that is not refused is in the buffers, which live as long as the
        // interface.
        let attached = unsafe { nic.attach(portal, Position::Tail, matching, at, len, entry) };
        seen.refused("attach", attached);
    };
    let open_entry = Entry::OPEN;
    attach(PortalIndex(9), exactly(1), 8, open_entry);
    let queue = Some(Queue::from_bits(NO_QUEUE));
    let of_no_queue = Entry {
        queue,
        ..open_entry
    };
    attach(pair.portal, exactly(1), 8, of_no_queue);
    let threshold = Some(0);
    let for_nothing = Entry {
        threshold,
        ..open_entry
    };
    attach(pair.portal, exactly(1), 8, for_nothing);
    let source = Some(JobRank(2));
    let of_no_rank = Matching {
        source,
        ..exactly(1)
    };
    attach(pair.portal, of_no_rank, 8, open_entry);
    attach(pair.portal, exactly(1), ARENA + 1, open_entry);
    let entry = pair.attach(Position::Tail, exactly(1), 0, 8, open_entry);
    for _ in 1..64 {
        pair.attach(Position::Tail, exactly(1), 0, 8, open_entry);
    }
    attach(pair.portal, exactly(1), 8, open_entry);
    // A peer has announced an operation, as `announcements` writes it.
    let place = pair.a.layout().slot(0, 3);
    let announced = 1 << 63 | 1 << 32 | entry.to_bits() & 0xffff;
    pair.a.poke(place, announced);
    seen.refused("unlink", nic.unlink(entry));
    pair.a.poke(place, 0);
    let gone = EntryHandle::from_bits(u64::MAX);
    seen.refused("unlink", nic.unlink(gone));
}

fn descriptors(seen: &mut Seen) {
    let delay = 1_000_000;
    let late = FaultRules {
        delay,
        late_calls: 8,
        ..FaultRules::default()
    };
    let pair = Pair::with(late, PortalOptions::default(), 256);
    let nic = &pair.a;
    let bound = |descriptor| {
        // SAFETY: the buffers live as long as the interface.
        unsafe { nic.bind(memory(nic, 0), 64, descriptor) }
    };
    let silent = Descriptor::SILENT;
    let threshold = Some(0);
    let for_nothing = Descriptor {
        threshold,
        ..silent
    };
    seen.refused("bind", bound(for_nothing));
    let queue = Some(Queue::from_bits(NO_QUEUE));
    seen.refused("bind", bound(Descriptor { queue, ..silent }));
    for _ in 1..8 {
        bound(silent).unwrap();
    }
    seen.refused("bind", bound(silent));
    let gone = DescriptorHandle::from_bits(u64::MAX);
    seen.refused("release", nic.release(gone));
    pair.attach(Position::Tail, exactly(1), 0, 8, Entry::OPEN);
    let put = nic.put_region(pair.from, part(0, 8), Ack::Event, pair.target(1, 0), 0);
    put.unwrap();
    seen.refused("release", nic.release(pair.from));
    // An operation that faults may hold back has no answer when the call returns.
    let target = pair.target(1, 0);
    let put = nic.put_answered(pair.from, part(0, 8), target, 0);
    seen.refused("put_answered", put);
    seen.refused(
        "get_answered",
        nic.get_answered(pair.from, part(0, 8), target),
    );
    while drain(nic, pair.queue).is_empty() {}
    nic.release(pair.from).unwrap();
}

/// An operation of so many bytes from a place of a descriptor, acknowledged or not.
type Call<'a> = &'a dyn Fn(DescriptorHandle, u64, u64, Ack, Target) -> Result<(), NicError>;

/// Errors of all operations: descriptors that are gone, parts outside of them, targets that are not
/// there, more operations than there may be.
fn refusals(seen: &mut Seen, name: &str, is_whole: bool, nic: &Software, call: Call<'_>) {
    let silent = Descriptor::SILENT;
    let plain = bind(nic, 0, 64, silent);
    let threshold = Some(1);
    let once = bind(
        nic,
        0,
        64,
        Descriptor {
            threshold,
            ..silent
        },
    );
    let target = Target {
        rank: JobRank(1),
        portal: PortalIndex(0),
        bits: 1,
        offset_bytes: 0,
    };
    let gone = DescriptorHandle::from_bits(u64::MAX);
    seen.refused(name, call(gone, 0, 8, Ack::None, target));
    if !is_whole {
        seen.refused(name, call(plain, 64, 8, Ack::None, target));
    }
    let (rank, portal) = (JobRank(2), PortalIndex(4));
    let stranger = Target { rank, ..target };
    seen.refused(name, call(plain, 0, 8, Ack::None, stranger));
    let beyond = Target { portal, ..target };
    seen.refused(name, call(plain, 0, 8, Ack::None, beyond));
    call(once, 0, 8, Ack::None, target).unwrap();
    seen.refused(name, call(once, 0, 8, Ack::None, target));
    // Neither is left as if an operation were under way.
    nic.release(plain).unwrap();
    nic.release(once).unwrap();
}

fn operations(seen: &mut Seen) {
    let pair = Pair::new();
    let nic = &pair.a;
    pair.attach(Position::Tail, exactly(1), 0, 64, Entry::OPEN);
    let put: Call<'_> = &|from, _, _, ack, target| nic.put(from, ack, target, 0);
    let put_region: Call<'_> =
        &|from, at, len, ack, target| nic.put_region(from, part(at, len), ack, target, 0);
    let get: Call<'_> = &|to, _, _, _, target| nic.get(to, target);
    let get_region: Call<'_> = &|to, at, len, _, target| nic.get_region(to, part(at, len), target);
    refusals(seen, "put", true, nic, put);
    refusals(seen, "put_region", false, nic, put_region);
    refusals(seen, "get", true, nic, get);
    refusals(seen, "get_region", false, nic, get_region);
    let put_answered: Call<'_> = &|from, at, len, _, target| {
        let answer = nic.put_answered(from, part(at, len), target, 0);
        answer.map(drop)
    };
    let get_answered: Call<'_> = &|to, at, len, _, target| {
        let answer = nic.get_answered(to, part(at, len), target);
        answer.map(drop)
    };
    refusals(seen, "put_answered", false, nic, put_answered);
    refusals(seen, "get_answered", false, nic, get_answered);
    // Acknowledgements for which the descriptor has no queue.
    let mute = bind(nic, 0, 64, Descriptor::SILENT);
    let target = pair.target(1, 0);
    for (name, call) in [("put", put), ("put_region", put_region)] {
        seen.refused(name, call(mute, 0, 8, Ack::Event, target));
    }
}

fn atomics(seen: &mut Seen) {
    let pair = Pair::new();
    let nic = &pair.a;
    pair.attach(Position::Tail, exactly(1), 0, 64, Entry::OPEN);
    let fetched = bind(nic, 64, 64, Descriptor::SILENT);
    let (sum, words) = (AtomicOp::Sum, AtomicKind::U64);
    let atomic: Call<'_> =
        &|from, at, len, ack, target| nic.atomic(from, part(at, len), ack, target, 0, sum, words);
    let fetch: Call<'_> = &|from, at, len, _, target| {
        nic.fetch_atomic(fetched, 0, from, part(at, len), target, 0, sum, words, 0)
    };
    refusals(seen, "atomic", false, nic, atomic);
    refusals(seen, "fetch_atomic", false, nic, fetch);
    let plain = bind(nic, 0, 64, Descriptor::SILENT);
    let target = pair.target(1, 0);
    for (name, call) in [("atomic", atomic), ("fetch_atomic", fetch)] {
        // A part of an element.
        seen.refused(name, call(plain, 0, 7, Ack::None, target));
    }
}

/// The text of the trait is read as it is written.
#[test]
fn the_text_of_the_trait_is_understood() {
    let all = documented();
    let of = |call: &str| all[call].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(of("queue_is_empty"), ["BadHandle"]);
    assert_eq!(of("queue_poll"), ["BadHandle", "EventsDropped"]);
    assert_eq!(of("get"), of("get_region"));
    let atomic = [
        "BadHandle",
        "BadPortal",
        "BadRank",
        "Exhausted",
        "Invalid",
        "NoSpace",
        "OutOfRange",
        "Unreachable",
    ];
    assert_eq!(of("atomic"), atomic);
    assert_eq!(of("fetch_atomic"), atomic);
    assert!(!all.contains_key("wake") && !all.contains_key("limits"));
}
