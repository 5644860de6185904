//! Handlers and remote procedures, with what decodes, encodes and drops their values.

use std::sync::atomic::{AtomicU32, Ordering};

use argonet::{Error, Rank, World};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{REFUSED, allowed, ends_by_panic, ends_well, goes_on_after, lend, refused, take_back};
use crate::support::{Done, Program, Test};

pub(super) const TESTS: &[Test] = &[
    ("client_a_handler_that_panics_is_named", || {
        let parts = ["rank 1", "remote::fall`", "from rank 0", "handler of 7"];
        ends_by_panic(2, "handler-falls", &parts);
    }),
    ("client_a_remote_procedure_that_panics_is_named", || {
        let parts = [
            "rank 1",
            "remote::fall_far`",
            "called by rank 0",
            "procedure of 8",
        ];
        ends_by_panic(2, "rpc-falls", &parts);
    }),
    ("client_values_of_remote_procedures_that_panic", || {
        for (program, what, panic) in [
            ("rpc-falls-decoding", "arguments of `", DECODES),
            ("rpc-falls-encoding", "result of `", ENCODES),
            ("rpc-falls-dropping", "result of `", DROPS),
            // The second panic would abort the process if the first one dropped the value.
            ("rpc-falls-twice", "encoding the result of `", ENCODES),
        ] {
            let parts = ["rank 1", "called by rank 0", what, panic];
            ends_by_panic(2, program, &parts);
        }
    }),
    ("client_values_that_panic_in_their_own_call", || {
        ends_well(2, "rpc-falls-here");
    }),
    ("client_handlers_and_values_may_not_call", || {
        for ranks in [1, 2] {
            ends_well(ranks, "remote-calls");
            ends_well(ranks, "remote-calls-par");
        }
    }),
    ("client_destructors_of_handlers_run_at_the_end", || {
        ends_well(2, "handler-dropped");
    }),
    ("client_messages_beyond_the_limits_are_refused", || {
        for ranks in [1, 2] {
            ends_well(ranks, "rpc-limits");
        }
    }),
];

pub(super) const PROGRAMS: &[Program] = &[
    ("handler-falls", || {
        falls(|world| world.send(Rank(1), &fall, 7))
    }),
    ("rpc-falls", || {
        falls(|world| world.rpc(Rank(1), &fall_far, (8,))?.wait().map(drop))
    }),
    ("rpc-falls-decoding", || {
        let value = || Touchy(FALLS_DECODING);
        falls(|world| world.rpc(Rank(1), &take, (value(),))?.wait().map(drop))
    }),
    ("rpc-falls-encoding", || {
        falls(|world| {
            world
                .rpc(Rank(1), &make, (FALLS_ENCODING,))?
                .wait()
                .map(drop)
        })
    }),
    ("rpc-falls-dropping", || {
        falls(|world| {
            world
                .rpc(Rank(1), &make, (FALLS_DROPPING,))?
                .wait()
                .map(drop)
        })
    }),
    ("rpc-falls-twice", || {
        falls(|world| world.rpc(Rank(1), &make, (FALLS_TWICE,))?.wait().map(drop))
    }),
    ("rpc-falls-here", falls_here),
    ("remote-calls", || calls(World::init()?)),
    ("remote-calls-par", || calls(World::builder().build_par()?)),
    ("handler-dropped", handler_dropped),
    ("rpc-limits", limits),
];

const FALLS_ENCODING: u8 = 1;
const FALLS_DECODING: u8 = 2;
const FALLS_DROPPING: u8 = 3;
/// When it is encoded, and when it is dropped.
const FALLS_TWICE: u8 = 4;
const CALLS_ENCODING: u8 = 11;
const CALLS_DECODING: u8 = 12;
const CALLS_DROPPING: u8 = 13;
/// As those, where that is allowed.
const WORKS_ENCODING: u8 = 21;
const WORKS_DECODING: u8 = 22;
const WORKS_DROPPING: u8 = 23;

const ENCODES: &str = "the client's encoder panics";
const DECODES: &str = "the client's decoder panics";
const DROPS: &str = "the client's destructor panics";

/// A value that does what its number says when it is encoded, decoded and dropped.
struct Touchy(u8);

impl Serialize for Touchy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            FALLS_ENCODING | FALLS_TWICE => panic!("{ENCODES}"),
            CALLS_ENCODING => refused(),
            WORKS_ENCODING => allowed(),
            _ => {}
        }
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Touchy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = u8::deserialize(deserializer)?;
        match value {
            FALLS_DECODING => panic!("{DECODES}"),
            CALLS_DECODING => refused(),
            WORKS_DECODING => allowed(),
            _ => {}
        }
        Ok(Self(value))
    }
}

impl Drop for Touchy {
    fn drop(&mut self) {
        match self.0 {
            FALLS_DROPPING | FALLS_TWICE => panic!("{DROPS}"),
            CALLS_DROPPING => refused(),
            WORKS_DROPPING => {
                allowed();
                DROPPED.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

argonet::rpc! {
    fn fall_far(x: u32) -> u32 { panic!("procedure of {x}") }
    fn call_far() -> () { refused() }
    fn take(value: Touchy) -> u8 { let number = value.0; std::mem::forget(value); number }
    fn make(number: u8) -> Touchy { Touchy(number) }
    fn count_of(nothings: Nothings) -> u64 { nothings.0 }
    fn len_of(chain: Chain) -> u32 { chain.0 }
    fn make_nothings(count: u64) -> Nothings { Nothings(count) }
    fn make_chain(len: u32) -> Chain { Chain(len) }
}

static CALLED: AtomicU32 = AtomicU32::new(0);
/// Values whose destructor has called into the library.
static DROPPED: AtomicU32 = AtomicU32::new(0);

argonet::am! {
    fn fall(_ctx, x: u32) { panic!("handler of {x}") }
    fn call(_ctx, _nothing: ()) { refused(); CALLED.fetch_add(1, Ordering::Relaxed); }
}

/// Rank 0 does something by which rank 1 falls.
fn falls(act: impl Fn(&World) -> Result<(), Error>) -> Done {
    let world = World::init()?;
    world.barrier()?;
    if world.rank() == Rank(0) {
        act(&world)?;
    }
    goes_on_after(|| world.barrier());
    Ok(world.finalize()?)
}

/// Arguments are encoded, and results decoded, in the client's own call: it may catch its panics
/// and go on.
fn falls_here() -> Done {
    fn caught<R>(f: impl FnOnce() -> R, text: &str) {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        std::panic::set_hook(hook);
        let payload = caught.err().expect("a panic");
        let found = payload.downcast_ref::<String>().expect("a text");
        assert_eq!(found, text);
    }
    let world = World::init()?;
    let to = world.rank_offset(1);
    for _ in 0..3 {
        caught(
            || drop(world.rpc(to, &take, (Touchy(FALLS_ENCODING),))),
            ENCODES,
        );
        let op = world.rpc(to, &make, (FALLS_DECODING,))?;
        caught(|| drop(op.wait()), DECODES);
        caught(
            || drop(world.rpc(to, &take, (Touchy(FALLS_DROPPING),))),
            DROPS,
        );
        assert_eq!(world.rpc(to, &take, (Touchy(5),))?.wait()?, 5);
        world.barrier()?;
    }
    Ok(world.finalize()?)
}

fn calls<M: argonet::Threading>(world: World<M>) -> Done {
    let world = lend(world);
    let to = world.rank_offset(1);
    world.barrier()?;
    world.send(to, &call, ())?;
    world.wait_until(|| CALLED.load(Ordering::Relaxed) == 1)?;
    world.rpc(to, &call_far, ())?.wait()?;
    let decoded = world.rpc(to, &take, (Touchy(CALLS_DECODING),))?.wait()?;
    assert_eq!(decoded, CALLS_DECODING);
    // At the caller they are decoded, and dropped, in its own call.
    let made = world.rpc(to, &make, (CALLS_ENCODING,))?.wait()?;
    assert_eq!(made.0, CALLS_ENCODING);
    let made = world.rpc(to, &make, (CALLS_DROPPING,))?.wait()?;
    assert_eq!(made.0, CALLS_DROPPING);
    std::mem::forget(made);
    world.barrier()?;
    assert_eq!(REFUSED.get(), 5);
    let taken = world.rpc(to, &take, (Touchy(WORKS_ENCODING),))?.wait()?;
    assert_eq!(taken, WORKS_ENCODING);
    // The arguments are dropped in the caller's own call.
    let taken = world.rpc(to, &take, (Touchy(WORKS_DROPPING),))?.wait()?;
    assert_eq!(
        (taken, DROPPED.load(Ordering::Relaxed)),
        (WORKS_DROPPING, 1)
    );
    let made = world.rpc(to, &make, (WORKS_DECODING,))?.wait()?;
    assert_eq!(made.0, WORKS_DECODING);
    world.barrier()?;
    Ok(take_back(world).finalize()?)
}

/// The world drops a handler's captures after the job has no more to do: their panic goes to the
/// caller of `finalize`, and their destructors cannot join another job.
fn handler_dropped() -> Done {
    struct Falls;
    impl Drop for Falls {
        fn drop(&mut self) {
            assert!(World::init().is_err());
            panic!("{DROPS}");
        }
    }
    let mut builder = World::builder();
    let falls = Falls;
    let am = builder.am("holds", move |_, _: u32| _ = &falls);
    let world = builder.build()?;
    world.send(world.rank_offset(1), &am, 0)?;
    std::panic::set_hook(Box::new(|_| {}));
    let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.finalize()));
    let _ = std::panic::take_hook();
    assert!(left.is_err(), "the destructor's panic is the client's own");
    Ok(())
}

/// So many elements without bytes: encoded as a `Vec<()>` is, without making one.
#[derive(Debug, PartialEq)]
struct Nothings(u64);

impl Serialize for Nothings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Nothings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let nothings = Vec::<()>::deserialize(deserializer)?;
        Ok(Self(nothings.len() as u64))
    }
}

/// A chain of so many links, encoded as a [`Link`] is, without making one.
#[derive(Debug, PartialEq)]
struct Chain(u32);

#[derive(Deserialize)]
enum Link {
    End,
    Next(Box<Link>),
}

impl Serialize for Chain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut variants = serializer.serialize_tuple(self.0 as usize + 1)?;
        for _ in 0..self.0 {
            variants.serialize_element(&1u8)?;
        }
        variants.serialize_element(&0u8)?;
        variants.end()
    }
}

impl<'de> Deserialize<'de> for Chain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut link = Link::deserialize(deserializer)?;
        let mut len = 0;
        while let Link::Next(next) = link {
            (len, link) = (len + 1, *next);
        }
        Ok(Self(len))
    }
}

/// Bytes from a peer may claim any length: the limits hold at both sides.
fn limits() -> Done {
    // Elements, and levels.
    const MOST: u64 = 1 << 20;
    const DEEPEST: u32 = 128;
    let world = World::init()?;
    let to = world.rank_offset(1);
    let count = |count| world.rpc(to, &count_of, (Nothings(count),))?.wait();
    let made = |count| world.rpc(to, &make_nothings, (count,))?.wait();
    let len = |len| world.rpc(to, &len_of, (Chain(len),))?.wait();
    let chain = |len| world.rpc(to, &make_chain, (len,))?.wait();
    assert_eq!((count(1000)?, made(1000)?), (1000, Nothings(1000)));
    assert_eq!((len(100)?, chain(100)?), (100, Chain(100)));
    let refused = |error: Option<Error>, limit: String| {
        let error = error.expect("it is beyond a limit").to_string();
        assert!(error.contains(&limit), "{error}");
    };
    for much in [MOST + 1, u64::MAX] {
        refused(count(much).err(), MOST.to_string());
        refused(made(much).err(), MOST.to_string());
    }
    for deep in [DEEPEST + 1, 60_000] {
        refused(len(deep).err(), DEEPEST.to_string());
        refused(chain(deep).err(), DEEPEST.to_string());
    }
    assert_eq!((count(1)?, len(1)?), (1, 1));
    world.barrier()?;
    Ok(world.finalize()?)
}
