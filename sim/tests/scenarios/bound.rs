//! Bound memory over a wire that loses, repeats, delays and damages frames.
#![allow(unsafe_code)]

use crate::harness;

use argonet_am::{Category, Delivery, Endpoints, HandlerTable};
use argonet_base::{HandlerIndex, JobRank};
use argonet_boot::{Key, WaitFor, Waiting};
use argonet_engine::{
    BoundMemory, BoundPlace, Injection, LocalCompletion, Long, Side, Target, Transfer,
};
use argonet_event::{CategoryMask, Event};
use argonet_segment::{SharedBytes, bulk};
use argonet_sim::{JobConfig, Outcome, Rank, StartError};
use parking_lot::Mutex;
use std::sync::Arc;

const NOTE: HandlerIndex = HandlerIndex(140);
const ENDPOINT: u32 = 3;
/// Bytes that each rank has for every rank, and their puts.
const EACH: usize = 40_000;

/// Address and payload of longs that have arrived, by source.
type Longs = Arc<Mutex<Vec<(u32, u64, Vec<u8>)>>>;

fn bytes(seed: u32, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (seed as usize * 41 + i + i / 251) as u8)
        .collect()
}

fn register(_: JobRank, handlers: &mut HandlerTable) -> Result<Longs, argonet_am::AmError> {
    let longs = Longs::default();
    let into = Arc::clone(&longs);
    let note = move |delivery: &mut Delivery<'_>| {
        assert_eq!(delivery.category(), Category::Long);
        assert_eq!(delivery.args(), [7, delivery.source().0]);
        let payload = delivery.payload().to_vec();
        let address = delivery.address().unwrap();
        into.lock().push((delivery.source().0, address, payload));
    };
    handlers.register_at(NOTE, "note", Box::new(note))?;
    Ok(longs)
}

/// Every rank puts to, gets from, and sends longs to every rank.
fn program(rank: &Rank, longs: Longs) {
    let (engine, ctx) = (&rank.engine, &rank.ctx);
    let (me, size) = (engine.rank().0, engine.size());
    let memory: &'static mut [u8] = vec![0; EACH * size as usize].leak();
    let base = memory.as_mut_ptr();
    // SAFETY: the memory is there to the end of the process, and accessed through `base` alone.
    unsafe { engine.regions().bind(ENDPOINT, base, memory.len()) }.unwrap();
    let boot = engine.boot();
    boot.publish(Key::User, &[1]).unwrap();
    boot.fence().unwrap();
    let others = || (0..size).filter(|other| *other != me).map(JobRank);
    let mut places = Vec::new();
    for other in others() {
        let mut bound = BoundMemory::default();
        // SAFETY: the answer is there until the event is complete.
        let asked = unsafe {
            engine.bound_query(ctx, other, ENDPOINT, &raw mut bound, Injection::Blocking)
        };
        engine.wait(ctx, asked.unwrap()).unwrap();
        assert_eq!(bound.len, (EACH * size as usize) as u64);
        places.push(BoundPlace {
            rank: other,
            endpoint: ENDPOINT,
            address: bound.address + (EACH * me as usize) as u64,
        });
    }
    for len in [1, 63, 511, 5000, EACH - 1] {
        let source = bytes(me, len);
        let len = source.len();
        let mut events: Vec<Event> = Vec::new();
        for (i, place) in places.iter().enumerate() {
            let put = Transfer {
                target: Target::Bound(*place),
                side: Side::Put(source.as_ptr()),
                len,
            };
            // SAFETY: the source is readable.
            unsafe {
                if i % 2 == 0 {
                    events.push(engine.start(ctx, put, Injection::Blocking).unwrap());
                } else {
                    let put = engine.start_implicit(ctx, put, Injection::Blocking);
                    assert_eq!(put.unwrap(), LocalCompletion::Done);
                }
            }
        }
        engine.wait_all(ctx, &mut events).unwrap();
        engine.wait_implicit(ctx, CategoryMask::ALL).unwrap();
        for place in &places {
            let mut back = vec![0; len];
            let get = Transfer {
                target: Target::Bound(*place),
                side: Side::Get(back.as_mut_ptr()),
                len,
            };
            // SAFETY: the destination is there until the event is complete.
            let event = unsafe { engine.start(ctx, get, Injection::Blocking) };
            engine.wait(ctx, event.unwrap()).unwrap();
            assert!(back == source, "{len} bytes of rank {}", place.rank);
        }
        let source = bytes(me + 100, len);
        for place in &places {
            let args = [7, me];
            let long = Long {
                handler: NOTE,
                args: &args,
                bytes: SharedBytes::from_slice(&source),
            };
            let (ends, target) = (Endpoints::PRIMORDIAL, Target::Bound(*place));
            let sent = engine.request_long(ctx, ends, target, &long, Injection::Blocking);
            sent.unwrap();
        }
        let what = Waiting::new(WaitFor::Condition);
        let all = || longs.lock().len() == size as usize - 1;
        engine.wait_until(ctx, what, all).unwrap();
        for (source, address, payload) in core::mem::take(&mut *longs.lock()) {
            let at = EACH * source as usize;
            assert_eq!(address, (base.addr() + at) as u64);
            let expected = bytes(source + 100, len);
            assert!(payload == expected, "{len} bytes of rank {source}");
            let mut there = vec![0; len];
            // SAFETY: the bytes lie inside of the memory.
            unsafe { bulk::copy(there.as_mut_ptr(), base.add(at), len) };
            assert!(there == expected);
        }
        engine
            .barrier(ctx, argonet_engine::BarrierKind::Client)
            .unwrap();
    }
}

fn job(config: &JobConfig) -> Result<Outcome, StartError> {
    argonet_sim::run(config, None, register, program)
}

#[test]
fn nothing_goes_wrong() {
    harness::nothing_goes_wrong(3, &job);
}

#[test]
fn all_faults_at_once() {
    harness::all_faults_at_once(3, &job);
}
