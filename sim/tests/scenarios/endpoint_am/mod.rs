//! Messages between endpoints of several indices over a wire that loses, repeats, delays and
//! damages frames: requests and replies of all categories and numbers of arguments.
//!
//! Each comes once, to the handler that its endpoint has under that index, and names the endpoint
//! that it comes from.
#![allow(unsafe_code)]

mod plan;

use crate::harness;

use argonet_am::{
    AmError, Category, Delivery, Endpoints, HandlerTable, MAX_ARGS, Message, MessageClass, Payload,
};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_boot::{Key, WaitFor, Waiting};
use argonet_conduit::{Conduit, PrepareRequest};
use argonet_engine::{BarrierKind, BoundPlace, Engine, Injection, Long, PeerAddress, Target};
use argonet_segment::SharedBytes;
use argonet_sim::{ChannelNode, JobConfig, Outcome, Rank, StartError};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use parking_lot::Mutex;
use plan::{Content, ENDPOINTS, PLACE, Plan, Scene, Way};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The first and the last index of clients, at every endpoint.
const ASKED: HandlerIndex = HandlerIndex(255);
const ANSWERED: HandlerIndex = HandlerIndex(128);
const RANKS: u32 = 3;
/// Rounds of each rank, and its requests in one, which are all answered before the next.
const ROUNDS: u32 = 6;
const BATCH: u32 = 12;

/// Messages of one kind that look alike: those with an argument have a number, others do not.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Name {
    is_reply: bool,
    source: u32,
    ends: (u8, u8),
    number: Option<u32>,
}

/// State that a rank's handlers and its program share.
#[derive(Default)]
struct Shared {
    /// Set before others know that this rank is there.
    scene: OnceLock<Scene>,
    /// Addresses that ranks have bound at each endpoint.
    bound: OnceLock<Vec<Vec<u64>>>,
    /// Good while the program runs.
    engine: AtomicPtr<Engine<ChannelNode>>,
    /// How often each message has come.
    seen: Mutex<HashMap<Name, u32>>,
    answers: Mutex<u32>,
}

/// Where the payload of a request goes, or that of its answer.
fn place(of: u32, number: u32, answer: bool) -> u64 {
    let slot = number % BATCH + BATCH * if answer { RANKS } else { of };
    u64::from(slot) * PLACE as u64
}

fn view(content: &Content) -> SharedBytes<'_> {
    SharedBytes::from_slice(&content.payload)
}

impl Shared {
    fn note(&self, delivery: &Delivery<'_>) {
        let Endpoints { from, to } = delivery.endpoints();
        let name = Name {
            is_reply: delivery.class() == MessageClass::Reply,
            source: delivery.source().0,
            ends: (from, to),
            number: delivery.args().first().copied(),
        };
        *self.seen.lock().entry(name).or_default() += 1;
    }

    /// A message that has come to a table's handler; its plan if it has a number.
    fn check(&self, delivery: &Delivery<'_>, mine: u8, class: MessageClass) -> Option<Plan> {
        let (scene, here) = (self.scene.get().unwrap(), delivery.rank().0);
        self.note(delivery);
        assert_eq!((delivery.class(), delivery.endpoints().to), (class, mine));
        let number = *delivery.args().first()?;
        let (asker, answerer) = match class {
            MessageClass::Request => (delivery.source().0, here),
            MessageClass::Reply => (here, delivery.source().0),
        };
        let plan = Plan::of(scene, asker, number);
        let (ends, content) = match class {
            MessageClass::Request => (plan.ends, &plan.request),
            MessageClass::Reply => (plan.ends.reversed(), &plan.reply),
        };
        assert_eq!((plan.to, ends), (answerer, delivery.endpoints()));
        assert_eq!(delivery.args(), content.args);
        assert_eq!(delivery.category(), content.category);
        assert!(delivery.payload().to_vec() == content.payload);
        if content.category == Category::Long && !content.payload.is_empty() {
            let at = place(asker, number, class == MessageClass::Reply);
            match mine {
                0 => assert_eq!(delivery.offset(), SegmentOffset(at)),
                _ => assert_eq!(delivery.address(), Some(self.address(here, mine) + at)),
            }
        }
        Some(plan)
    }

    fn address(&self, rank: u32, endpoint: u8) -> u64 {
        let at = ENDPOINTS.iter().position(|index| *index == endpoint);
        self.bound.get().unwrap()[rank as usize][at.unwrap()]
    }

    fn asked(&self, delivery: &mut Delivery<'_>, mine: u8) {
        let Some(plan) = self.check(delivery, mine, MessageClass::Request) else {
            let plain = Message {
                handler: ANSWERED,
                args: &[],
                payload: Payload::None,
            };
            return assert_eq!(delivery.reply(&plain), Ok(()));
        };
        let number = delivery.arg(0);
        let (content, to, source) = (&plan.reply, plan.ends.from, delivery.source().0);
        let at = place(source, number, true);
        let payload = match content.category {
            Category::Short => Payload::None,
            Category::Medium => Payload::Medium(view(content)),
            Category::Long if to == 0 => Payload::Long(view(content), SegmentOffset(at)),
            Category::Long => {
                let base = if plan.by_offset {
                    0
                } else {
                    self.address(source, to)
                };
                let at = PeerAddress {
                    rank: delivery.source(),
                    endpoint: to.into(),
                    address: base + at,
                    is_offset: plan.by_offset,
                };
                // SAFETY: handlers run while the program does, or after it, when no request is
                // under way.
                let engine = unsafe { &*self.engine.load(Ordering::Acquire) };
                let long = Long {
                    handler: ANSWERED,
                    args: &content.args,
                    bytes: view(content),
                };
                return assert_eq!(engine.reply_long(delivery, at, &long), Ok(()));
            }
        };
        let reply = Message {
            handler: ANSWERED,
            args: &content.args,
            payload,
        };
        assert_eq!(delivery.reply(&reply), Ok(()));
    }

    fn answered(&self, delivery: &Delivery<'_>, mine: u8) {
        self.check(delivery, mine, MessageClass::Reply);
        *self.answers.lock() += 1;
    }

    /// The handlers of one endpoint, which know which it is.
    fn table(self: &Arc<Self>, mine: u8, table: &mut HandlerTable) -> Result<(), AmError> {
        let (asked, answered) = (Arc::clone(self), Arc::clone(self));
        let ask = move |delivery: &mut Delivery<'_>| asked.asked(delivery, mine);
        let answer = move |delivery: &mut Delivery<'_>| answered.answered(delivery, mine);
        table.register_at(ASKED, "asked", Box::new(ask))?;
        table.register_at(ANSWERED, "answered", Box::new(answer))
    }

    /// Each message that this rank was to get has come, as often as there are such.
    fn check_all(&self, me: u32) {
        let scene = self.scene.get().unwrap();
        let mut due = HashMap::new();
        let mut expect = |is_reply, source, ends: Endpoints, args: &[u32]| {
            let name = Name {
                is_reply,
                source,
                ends: (ends.from, ends.to),
                number: args.first().copied(),
            };
            *due.entry(name).or_insert(0) += 1;
        };
        for source in 0..RANKS {
            for number in 0..ROUNDS * BATCH {
                let plan = Plan::of(scene, source, number);
                let numbered = !plan.request.args.is_empty();
                if plan.to == me {
                    expect(false, source, plan.ends, &plan.request.args);
                }
                if source == me {
                    let args = if numbered { &plan.reply.args[..] } else { &[] };
                    expect(true, plan.to, plan.ends.reversed(), args);
                }
            }
        }
        assert_eq!(*self.seen.lock(), due);
    }
}

/// Sends a request as its plan says, again as long as there is no room for one that may not wait.
fn send(rank: &Rank, shared: &Shared, plan: &Plan, number: u32) {
    let (engine, ctx, to) = (&rank.engine, &rank.ctx, JobRank(plan.to));
    let (content, ends) = (&plan.request, plan.ends);
    let (args, at) = (&content.args, place(engine.rank().0, number, false));
    let injection = match plan.way {
        Way::Immediate => Injection::Immediate,
        _ => Injection::Blocking,
    };
    if plan.way == Way::Negotiated {
        let want = PrepareRequest {
            to,
            class: MessageClass::Request,
            nargs: args.len(),
            least: content.payload.len(),
            most: shared.scene.get().unwrap().medium,
            offset: None,
        };
        let mut prepared = engine
            .prepare_endpoint(ctx, ends, &want, injection)
            .unwrap();
        // SAFETY: the conduit is this engine's.
        let mut buffer = unsafe { prepared.buffer() };
        buffer.copy_from(0, &content.payload).unwrap();
        let len = content.payload.len();
        return engine
            .commit_endpoint(ctx, prepared, ends, ASKED, args, len)
            .unwrap();
    }
    let payload = match content.category {
        Category::Short => Payload::None,
        Category::Medium => Payload::Medium(view(content)),
        Category::Long if ends.to == 0 => Payload::Long(view(content), SegmentOffset(at)),
        Category::Long => {
            let place = BoundPlace {
                rank: to,
                endpoint: ends.to.into(),
                address: shared.address(plan.to, ends.to) + at,
            };
            let (target, bytes) = (Target::Bound(place), view(content));
            let long = Long {
                handler: ASKED,
                args,
                bytes,
            };
            let sent = engine.request_long(ctx, ends, target, &long, injection);
            return sent.unwrap();
        }
    };
    let message = Message {
        handler: ASKED,
        args,
        payload,
    };
    loop {
        match engine.request_endpoint(ctx, to, ends, &message, injection) {
            Err(AmError::Full { .. }) if injection == Injection::Immediate => {
                engine.poll(ctx).unwrap();
            }
            sent => return sent.unwrap(),
        }
    }
}

/// Every rank sends to every rank, itself included.
fn program(rank: &Rank, shared: Arc<Shared>, seed: u64) {
    let (engine, ctx) = (&rank.engine, &rank.ctx);
    let (me, limits) = (engine.rank().0, engine.conduit().limits());
    assert_eq!((engine.size(), limits.args), (RANKS, MAX_ARGS + 1));
    shared
        .engine
        .store(std::ptr::from_ref(engine).cast_mut(), Ordering::Release);
    let scene = Scene {
        seed,
        ranks: RANKS,
        medium: limits.medium_request.min(limits.medium_reply),
        long: limits.long,
    };
    shared.scene.set(scene).unwrap();
    let mut own = Vec::new();
    for endpoint in ENDPOINTS.into_iter().filter(|index| *index > 0) {
        let mut table = HandlerTable::default();
        shared.table(endpoint, &mut table).unwrap();
        engine.open_endpoint(endpoint.into(), table).unwrap();
        let memory = vec![0u8; PLACE * (BATCH * (RANKS + 1)) as usize].leak();
        let base = memory.as_mut_ptr();
        // SAFETY: the memory is there to the end of the process, and nothing accesses it otherwise.
        unsafe { engine.regions().bind(endpoint.into(), base, memory.len()) }.unwrap();
        own.extend_from_slice(&(base.expose_provenance() as u64).to_le_bytes());
    }
    let boot = engine.boot();
    boot.publish(Key::User, &own).unwrap();
    boot.fence().unwrap();
    let addresses = |rank| {
        let published = boot.lookup(JobRank(rank), Key::User).unwrap();
        let each = published.chunks_exact(8);
        let addresses = each.map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        core::iter::once(0).chain(addresses).collect()
    };
    shared
        .bound
        .set((0..RANKS).map(addresses).collect())
        .unwrap();
    boot.fence().unwrap();
    for round in 0..ROUNDS {
        for number in round * BATCH..(round + 1) * BATCH {
            send(rank, &shared, &Plan::of(&scene, me, number), number);
        }
        let all = || *shared.answers.lock() >= (round + 1) * BATCH;
        engine
            .wait_until(ctx, Waiting::new(WaitFor::Condition), all)
            .unwrap();
    }
    engine.barrier(ctx, BarrierKind::Client).unwrap();
    shared.check_all(me);
    shared.engine.store(null_mut(), Ordering::Release);
}

fn job(config: &JobConfig) -> Result<Outcome, StartError> {
    let register = |_: JobRank, handlers: &mut HandlerTable| {
        let shared = Arc::new(Shared::default());
        shared.table(0, handlers)?;
        Ok(shared)
    };
    let seed = config.sim.seed;
    let run = move |rank: &Rank, shared| program(rank, shared, seed);
    argonet_sim::run(config, None, register, run)
}

#[test]
fn nothing_goes_wrong() {
    harness::nothing_goes_wrong(RANKS, &job);
}

#[test]
fn all_faults_at_once() {
    harness::all_faults_at_once(RANKS, &job);
}
