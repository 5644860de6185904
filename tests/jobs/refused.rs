//! A call that is not allowed gives an error that names rank and cause, and the job goes on.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use argonet::engine::{Injection, internal};
use argonet::{AmError, HandlerIndex, MAX_MEDIUM, Rank, SegmentOffset, SharedArray, World, raw};

use crate::support::{Done, Job, Program, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("refused_everything_but_a_reply_in_a_handler", || {
        each(&[1, 3], "in-handler");
    }),
    ("refused_block_on_in_a_handler", || {
        let outcome = Job::launched(2, "block-on-in-handler").run();
        outcome.failed(&[
            "inside an active-message handler",
            "the handler `wait` of a message from rank",
        ]);
    }),
    ("refused_second_reply_and_reply_to_a_reply", || {
        each(&[1, 3], "bad-replies");
    }),
    ("refused_messages_that_cannot_be_sent", || {
        each(&[1, 3], "bad-messages");
    }),
    ("refused_messages_by_the_names_of_the_librarys_own", || {
        each(&[1, 2], "library-names");
    }),
    ("refused_handlers_with_names_that_are_taken", || {
        for (program, name) in [
            ("taken-library-name", "argonet::barrier"),
            ("taken-library-name-at", "argonet::tree_up"),
            ("taken-name-at", "twice"),
            ("taken-names-at", "both"),
        ] {
            let outcome = Job::launched(2, program).run();
            outcome.failed(&[&format!("`{name}`")]);
        }
    }),
    ("refused_addresses_outside_the_segment", || {
        each(&[1, 3], "bad-addresses");
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("in-handler", in_handler),
    ("block-on-in-handler", block_on_in_handler),
    ("bad-replies", bad_replies),
    ("bad-messages", bad_messages),
    ("library-names", library_names),
    ("taken-library-name", || {
        taken(|builder| drop(builder.am("argonet::barrier", |_, _: [u32; 3]| ())))
    }),
    ("taken-library-name-at", || {
        taken(|builder| builder.handler_at(HandlerIndex(140), "argonet::tree_up", |_| {}))
    }),
    ("taken-name-at", || {
        taken(|builder| {
            builder.handler_at(HandlerIndex(140), "twice", |_| {});
            drop(builder.am("twice", |_, _: u32| ()));
        })
    }),
    ("taken-names-at", || {
        taken(|builder| {
            builder.handler_at(HandlerIndex(140), "both", |_| {});
            builder.handler_at(HandlerIndex(141), "both", |_| {});
        })
    }),
    ("bad-addresses", bad_addresses),
];

thread_local! {
    /// The way by which a handler gets hold of the world.
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

fn in_handler_world() -> Rc<World> {
    let held = WORLD.with_borrow(Clone::clone);
    held.expect("a world")
}

argonet::rpc! {
    fn one() -> u32 { 1 }
}

argonet::am! {
    fn nothing(_ctx, _n: u64) {}
}

#[track_caller]
fn says<T>(result: argonet::Result<T>, parts: &[&str]) {
    let Err(error) = result else {
        panic!("no error; expected one with {parts:?}");
    };
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "no \"{part}\" in \"{text}\"");
    }
}

fn in_handler() -> Done {
    let tried = Arc::new(AtomicU64::new(0));
    let mut builder = World::builder();
    let try_all = builder.am("try", {
        let tried = Arc::clone(&tried);
        move |ctx, place: GlobalPtrWords| {
            let world = in_handler_world();
            let p = raw::global_ptr::<u64>(Rank(place[0]), SegmentOffset(place[1].into()));
            let one_there = raw::global_slice(p, 1);
            let (to, me) = (ctx.source(), ctx.rank());
            let mut buffer = [1u64];
            let rank = format!("(rank {me})");
            let all = [
                world.put_value(p, 1),
                world.get_value(p).map(drop),
                world.put_from(one_there, &buffer),
                world.get_into(one_there, &mut buffer),
                world.put(one_there, Box::new([1])).map(drop),
                world.get(one_there).map(drop),
                world.scope(|s| s.put(one_there, &[1])),
                world.fetch_add(p, 1).map(drop),
                world.compare_exchange(p, 0, 1).map(drop),
                world.atomic_load(p).map(drop),
                world.send(to, &nothing, 1),
                world.send_medium(to, &nothing, 1, &[1u8]),
                world.send_long(one_there, &nothing, 1, &[1]),
                world.rpc(to, &one, ()).map(drop),
                world.poll().map(drop),
                world.wait_until(|| true),
                world.barrier(),
                world.drain(),
                world.broadcast(Rank(0), &mut buffer),
                world.reduce_all(argonet::Reduction::Sum, &mut buffer),
                SharedArray::<u64>::alloc(&world, 1).map(drop),
            ];
            for result in all {
                says(result, &["inside an active-message handler", &rank]);
            }
            assert_eq!(buffer, [1]);
            ctx.reply(&nothing, 1).expect("a reply is allowed");
            tried.fetch_add(1, Ordering::Relaxed);
        }
    });
    let world = Rc::new(builder.build()?);
    WORLD.set(Some(Rc::clone(&world)));
    let v = SharedArray::<u64>::alloc(&world, 1)?;
    for to in world.ranks() {
        let p = v.ptr(to, 0);
        let place = [p.rank().0, u32::try_from(p.offset().0)?];
        world.send(to, &try_all, place)?;
    }
    world.drain()?;
    assert_eq!(tried.load(Ordering::Relaxed), u64::from(world.size()));
    assert_eq!(v.read(&world, 0), 0, "nothing was written");
    world.barrier()?;
    // All is allowed again.
    world.put_value(v.ptr(world.rank_offset(1), 0), 5)?;
    world.barrier()?;
    assert_eq!(v.read(&world, 0), 5);
    finalize(world)
}

/// Rank and offset of a global pointer.
type GlobalPtrWords = [u32; 2];

fn finalize(world: Rc<World>) -> Done {
    WORLD.set(None);
    let world = Rc::into_inner(world).expect("the only one");
    Ok(world.finalize()?)
}

fn block_on_in_handler() -> Done {
    let mut builder = World::builder();
    let wait = builder.am("wait", |_, _: u32| {
        let mut polls = 0;
        in_handler_world().block_on(std::future::poll_fn(|_| {
            polls += 1;
            if polls > 3 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
    });
    let world = Rc::new(builder.build()?);
    WORLD.set(Some(Rc::clone(&world)));
    world.send(world.rank_offset(1), &wait, 1)?;
    world.drain()?;
    finalize(world)
}

fn bad_replies() -> Done {
    let seen: Arc<Mutex<Vec<AmError>>> = Arc::default();
    let keep = |seen: &Arc<Mutex<Vec<AmError>>>| {
        let seen = Arc::clone(seen);
        move |result: Result<(), AmError>| {
            seen.lock().expect("errors").push(result.unwrap_err());
        }
    };
    let mut builder = World::builder();
    let back = builder.am("back", {
        let keep = keep(&seen);
        move |ctx, n: u64| {
            keep(ctx.reply(&nothing, n));
            keep(ctx.reply_medium(&nothing, n, &[1]));
            keep(ctx.echo(&nothing, n));
        }
    });
    let there = builder.am("there", {
        let keep = keep(&seen);
        move |ctx, n: u64| {
            let long = vec![0; MAX_MEDIUM + 1];
            // A refused reply does not count as the reply.
            keep(ctx.reply_medium(&back, n, &long));
            ctx.reply(&back, n).expect("the first");
            keep(ctx.reply(&back, n));
            keep(ctx.reply_medium(&back, n, &[1]));
            keep(ctx.echo(&back, n));
        }
    });
    let world = builder.build()?;
    let (me, to) = (world.rank().0, world.rank_offset(1).0);
    let from = world.rank_offset(-1).0;
    world.send(world.rank_offset(1), &there, 1)?;
    world.drain()?;
    let mut texts: Vec<String> = seen
        .lock()
        .expect("errors")
        .iter()
        .map(ToString::to_string)
        .collect();
    texts.sort();
    let mut expected = vec![format!(
        "medium payload of 65537 bytes, at most 65536 are allowed (rank {me} to rank {from}); split it or use a put"
    )];
    for _ in 0..3 {
        expected.push(format!(
            "rank {me} replied twice to one request of rank {from}: a request handler may reply once"
        ));
        expected.push(format!(
            "rank {me} tried to reply to a reply of rank {to}: only request handlers may reply"
        ));
    }
    expected.sort();
    assert_eq!(texts, expected);
    Ok(world.finalize()?)
}

#[allow(unsafe_code)]
fn bad_messages() -> Done {
    // Made by a builder that never builds a world.
    let foreign = World::builder().am("foreign", |_, _: u32| {});
    let foreign_function = World::builder().rpc("foreign-function", |(x,): (u32,)| x);
    let world = World::init()?;
    let (me, size, to) = (world.rank(), world.size(), world.rank_offset(1));
    for absent in [size, size + 1, u32::MAX] {
        let why = &[
            &*format!("rank {absent} does not exist: the job has {size} ranks"),
            &*format!("seen by rank {me}"),
        ];
        let absent = Rank(absent);
        let p = raw::global_ptr::<u64>(absent, SegmentOffset(0));
        let there = |len| raw::global_slice(p, len);
        says(world.send(absent, &nothing, 1), why);
        says(world.send_medium(absent, &nothing, 1, &[1u8]), why);
        says(world.send_long(there(1), &nothing, 1, &[1]), why);
        says(world.send_long(there(0), &nothing, 1, &[]), why);
        says(world.rpc(absent, &one, ()).map(drop), why);
        says(world.put_value(p, 1), why);
        says(world.get_value(p), why);
        says(world.put_from(there(0), &[]), why);
        says(world.fetch_add(p, 1), why);
        says(world.broadcast(absent, &mut [1u8]), why);
    }
    says(
        world.send(to, &foreign, 1),
        &["registered under the name `foreign`"],
    );
    let unknown = world.rpc(to, &foreign_function, (1,)).map(drop);
    says(
        unknown,
        &["no function is registered under the name `foreign-function`"],
    );
    let long = vec![1u8; MAX_MEDIUM + 1];
    says(
        world.send_medium(to, &nothing, 1, &long),
        &[
            "medium payload of 65537 bytes",
            &format!("rank {me} to rank {to}"),
        ],
    );
    let raw = |index, args: &[u32]| {
        // SAFETY: no long is sent.
        unsafe {
            world
                .raw()
                .request(to, HandlerIndex(index), args, None, Injection::Blocking)
        }
    };
    let pair = format!("rank {me} to rank {to}");
    for free in [128, 129] {
        let index = format!("handler index {free} is not registered");
        says(raw(free, &[]), &[&index, &pair]);
    }
    // The library's own handlers are not for clients: no client can forge a barrier.
    for internal in [internal::BARRIER, internal::TREE_DOWN, internal::RPC_RESULT] {
        says(raw(internal.0, &[0; 3]), &["is the library's own", &pair]);
    }
    let index = world.raw().handler(nothing.name()).expect("registered");
    says(raw(index.0, &[0; 17]), &["17 arguments, at most 16", &pair]);
    // After all that everything works.
    assert_eq!(world.rpc(to, &one, ())?.wait()?, 1);
    world.drain()?;
    Ok(world.finalize()?)
}

fn bad_addresses() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 4)?;
    let segment = world.raw().segment_len();
    for to in world.ranks() {
        let me = world.rank();
        let segment_text = format!("rank {to}, which has {segment} bytes (seen by rank {me})");
        for offset in [
            segment,
            segment - 7,
            segment + 1,
            1 << 40,
            1 << 63,
            u64::MAX - 7,
            u64::MAX,
        ] {
            let p = raw::global_ptr::<u64>(to, SegmentOffset(offset));
            let there = |len| raw::global_slice(p, len);
            let why: &[&str] = &[
                &format!("8 bytes at offset {offset} do not lie"),
                &segment_text,
            ];
            let mut buffer = [7u64];
            says(world.put_value(p, 1), why);
            says(world.get_into(there(1), &mut buffer), why);
            assert_eq!(buffer, [7], "unchanged");
            says(world.put(there(1), Box::new([1])).map(drop), why);
            says(world.get(there(1)).map(drop), why);
            says(world.scope(|s| s.put(there(1), &[1])), why);
            says(world.send_long(there(1), &nothing, 1, &[1]), why);
            // The alignment is checked first.
            let why = match offset % 8 {
                0 => why,
                _ => &["is not aligned"],
            };
            says(world.fetch_add(p, 1), why);
            says(world.compare_exchange(p, 0, 1), why);
        }
        // Begins inside, ends outside.
        let last = raw::global_ptr::<u64>(to, SegmentOffset(segment - 8));
        let two = raw::global_slice(last, 2);
        world.get_value(last)?;
        let crossing = format!("16 bytes at offset {}", segment - 8);
        says(world.get(two).map(drop), &[&crossing]);
        // Lengths as a peer may forge them: no memory is taken for them.
        for len in [1 << 28, 1 << 60, 1 << 61, usize::MAX] {
            let forged = raw::global_slice(last, len);
            says(world.get(forged).map(drop), &["do not lie", &segment_text]);
            assert!(world.put_from(forged, &[1]).is_err());
        }
        says(world.put_from(two, &[1, 2]), &[&crossing]);
        // Pointer arithmetic saturates.
        says(
            world.get_value(raw::offset_by(last, usize::MAX)),
            &["do not lie"],
        );
        // No whole word.
        for shift in 1..8 {
            let odd = raw::global_ptr::<u64>(to, SegmentOffset(v.ptr(to, 1).offset().0 + shift));
            let place = format!(
                "8 bytes at {:#x} of rank {to} is not aligned",
                odd.offset().0
            );
            says(world.atomic_load(odd), &[&place]);
            if !shift.is_multiple_of(4) {
                let odd = raw::global_ptr::<u32>(to, odd.offset());
                says(world.fetch_add(odd, 1), &["is not aligned", "of 4"]);
            }
            world.get_value(odd)?;
        }
        world.barrier()?;
    }
    let here = (0..4).map(|i| v.read(&world, i)).collect::<Vec<_>>();
    assert_eq!(here, [0; 4], "nothing was written");
    world.drain()?;
    Ok(world.finalize()?)
}

#[allow(unsafe_code)]
/// No client can send to the library's own handlers: a barrier that no rank called would let a rank
/// out of a quiet phase.
fn library_names() -> Done {
    let world = World::init()?;
    let me = world.rank();
    for index in 0..argonet::CLIENT_BASE.0 {
        let raw = world.raw();
        // SAFETY: a short has no destination.
        let sent =
            unsafe { raw.request(me, HandlerIndex(index), &[0; 3], None, Injection::Blocking) };
        says(sent, &["is the library's own"]);
    }
    fn forged(_: &mut argonet::AmContext<'_, '_>, _: [u32; 3]) {}
    for name in [
        "argonet::barrier",
        "argonet::tree_up",
        "argonet::tree_down",
        "argonet::rpc_call",
        "argonet::rpc_result",
        "argonet::named",
        "argonet::collective",
        "argonet::endpoint_am",
        "argonet::bound_put",
        "argonet::bound_get",
        "argonet::bound_long",
    ] {
        let forged: argonet::Am<_> = argonet::Am::new(name, forged);
        let why = &["no active message is registered", name];
        says(world.send(me, &forged, [0, 0, 2]), why);
        says(world.send_medium(me, &forged, [0, 0, 2], b"bytes"), why);
        let v = SharedArray::<u8>::alloc(&world, 1)?;
        says(world.send_long(v.on(me), &forged, [0, 0, 2], b"b"), why);
        assert_eq!(world.raw().handler(name), None);
        world.barrier()?;
    }
    Ok(world.finalize()?)
}

fn taken(register: fn(&mut argonet::Builder)) -> Done {
    let mut builder = World::builder();
    register(&mut builder);
    Ok(builder.build()?.finalize()?)
}
