//! Messages between endpoints, over the smp conduit.
#![allow(unsafe_code)]

use crate::bound::tests::rig::{ENDPOINT, FORGE, NOTE, Rig, bytes, context};
use crate::{BoundPlace, Injection, Long, OpError, PeerAddress, Target, internal};
use argonet_am::{
    AmError, CLIENT_BASE, Category, Delivery, Endpoints, HandlerTable, Message, MessageClass,
    Payload,
};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_conduit::PrepareRequest;
use argonet_segment::SharedBytes;
use parking_lot::Mutex;
use proptest::prelude::*;
use std::sync::Arc;

/// Records the message that it gets, a request or a reply.
const WRITE: HandlerIndex = HandlerIndex(140);
/// The same, and answers in the category of the request, with its arguments and payload.
const ANSWER: HandlerIndex = HandlerIndex(141);
/// Answers with a long of as many bytes as argument 0 says, into memory that the sender has bound.
const FAR: HandlerIndex = HandlerIndex(142);

/// Where longs go in attached segments.
const AT: u64 = 128;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    rank: u32,
    source: u32,
    ends: Endpoints,
    class: MessageClass,
    category: Category,
    handler: HandlerIndex,
    args: Vec<u32>,
    payload: Vec<u8>,
}

type Log = Arc<Mutex<Vec<Seen>>>;

fn write(log: &Log, delivery: &Delivery<'_>) {
    assert!(delivery.came_inside());
    log.lock().push(Seen {
        rank: delivery.rank().0,
        source: delivery.source().0,
        ends: delivery.endpoints(),
        class: delivery.class(),
        category: delivery.category(),
        handler: delivery.handler(),
        args: delivery.args().to_vec(),
        payload: delivery.payload().to_vec(),
    });
}

fn payload<'a>(category: Category, bytes: &'a [u8]) -> Payload<'a> {
    let bytes = SharedBytes::from_slice(bytes);
    match category {
        Category::Short => Payload::None,
        Category::Medium => Payload::Medium(bytes),
        Category::Long => Payload::Long(bytes, SegmentOffset(AT)),
    }
}

fn answer(delivery: &mut Delivery<'_>) {
    let (args, bytes) = (delivery.args().to_vec(), delivery.payload().to_vec());
    let reply = Message {
        handler: WRITE,
        args: &args,
        payload: payload(delivery.category(), &bytes),
    };
    assert_eq!(delivery.reply(&reply), Ok(()));
    assert!(matches!(
        delivery.reply(&reply),
        Err(AmError::RepliedTwice { .. })
    ));
}

/// Two ranks with endpoints 0, 3 and [`ENDPOINT`]; each has the same handlers at its further ones.
struct Ends {
    rig: Rig,
    log: Log,
}

fn client_long<'a>(handler: HandlerIndex, args: &'a [u32], bytes: &'a [u8]) -> Long<'a> {
    Long {
        handler,
        args,
        bytes: SharedBytes::from_slice(bytes),
    }
}

const OPEN: [u8; 2] = [3, ENDPOINT as u8];

impl Ends {
    fn new() -> Self {
        let (rig, log) = (Rig::pair(1 << 20), Log::default());
        for rank in &rig.ranks {
            for endpoint in OPEN {
                let mut table = HandlerTable::default();
                let (into, other, third) = (log.clone(), log.clone(), log.clone());
                let engine = Arc::downgrade(&rank.engine);
                let far = move |delivery: &mut Delivery<'_>| {
                    write(&third, delivery);
                    let (len, args) = (delivery.arg(0) as usize, delivery.args().to_vec());
                    let at = PeerAddress {
                        rank: delivery.source(),
                        endpoint: delivery.endpoints().from.into(),
                        address: 9,
                        is_offset: true,
                    };
                    let bytes = bytes(5, len);
                    let long = client_long(WRITE, &args, &bytes);
                    let engine = engine.upgrade().unwrap();
                    let sent = engine.reply_long(delivery, at, &long);
                    assert_eq!(sent, Ok(()));
                    let again = engine.reply_long(delivery, at, &long);
                    assert!(matches!(again, Err(AmError::RepliedTwice { .. })));
                };
                let write_only = move |delivery: &mut Delivery<'_>| write(&into, delivery);
                let both = move |delivery: &mut Delivery<'_>| {
                    write(&other, delivery);
                    answer(delivery);
                };
                table
                    .register_at(WRITE, "write", Box::new(write_only))
                    .unwrap();
                table.register_at(ANSWER, "answer", Box::new(both)).unwrap();
                table.register_at(FAR, "far", Box::new(far)).unwrap();
                rank.engine.open_endpoint(endpoint.into(), table).unwrap();
            }
        }
        Self { rig, log }
    }

    /// Polls until so many messages have come: rings from which something was just taken are left
    /// alone for a while.
    ///
    /// The rig's watchdog ends a test that waits in vain.
    fn await_seen(&self, count: usize) -> Vec<Seen> {
        while self.log.lock().len() < count {
            assert_eq!(self.rig.settle(), None);
        }
        assert_eq!(self.rig.settle(), None);
        self.seen()
    }

    fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.log.lock())
    }

    fn send(&self, to: u32, ends: Endpoints, message: &Message<'_>) -> Result<(), AmError> {
        let engine = &self.rig.ranks[0].engine;
        engine.request_endpoint(&context(), JobRank(to), ends, message, Injection::Blocking)
    }

    /// Sends a request to [`ANSWER`], and compares the messages at both sides with the request.
    fn there_and_back(
        &self,
        to: u32,
        ends: Endpoints,
        category: Category,
        args: &[u32],
        len: usize,
    ) {
        let bytes = match category {
            Category::Short => Vec::new(),
            _ => bytes(args.len(), len),
        };
        let message = Message {
            handler: ANSWER,
            args,
            payload: payload(category, &bytes),
        };
        assert_eq!(self.send(to, ends, &message), Ok(()));
        let request = Seen {
            rank: to,
            source: 0,
            ends,
            class: MessageClass::Request,
            category,
            handler: ANSWER,
            args: args.to_vec(),
            payload: bytes,
        };
        let reply = Seen {
            rank: 0,
            source: to,
            ends: ends.reversed(),
            class: MessageClass::Reply,
            handler: WRITE,
            ..request.clone()
        };
        assert!(
            self.await_seen(2) == [request, reply],
            "{ends:?}, {category:?}, {} arguments",
            args.len()
        );
    }
}

#[test]
fn every_category_and_count_goes_between_further_endpoints_and_back() {
    let ends = Ends::new();
    let all: Vec<u32> = (0..16).map(|i| u32::MAX - i).collect();
    for (from, to) in [(3, 3), (3, 5), (5, 3)] {
        let pair = Endpoints { from, to };
        for nargs in 0..=16 {
            for category in [Category::Short, Category::Medium, Category::Long] {
                for peer in [0, 1] {
                    ends.there_and_back(peer, pair, category, &all[..nargs], 100 + nargs);
                }
            }
        }
    }
    // As long as plain ones may be, and empty.
    for category in [Category::Medium, Category::Long] {
        for len in [0, argonet_am::MAX_MEDIUM - 200] {
            ends.there_and_back(1, Endpoints { from: 5, to: 3 }, category, &all, len);
        }
    }
    ends.there_and_back(
        1,
        Endpoints { from: 3, to: 5 },
        Category::Medium,
        &all,
        argonet_am::MAX_MEDIUM,
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn random_messages_go_between_further_endpoints_and_back(
        messages in proptest::collection::vec(
            (0..2u32, 0..2usize, 0..2usize, 0..3usize, proptest::collection::vec(any::<u32>(), 0..=16), 0..9000usize),
            1..20,
        ),
    ) {
        let ends = Ends::new();
        for (peer, from, to, category, args, len) in messages {
            let pair = Endpoints { from: OPEN[from], to: OPEN[to] };
            let category = [Category::Short, Category::Medium, Category::Long][category];
            ends.there_and_back(peer, pair, category, &args, len);
        }
    }
}

#[test]
fn the_first_endpoint_and_a_further_one_have_their_own_handlers() {
    let ends = Ends::new();
    // From the first one to a further one: the reply finds no handler there, as the tables differ.
    let message = |handler| Message {
        handler,
        args: &[7],
        payload: Payload::None,
    };
    assert_eq!(
        ends.send(1, Endpoints { from: 0, to: 3 }, &message(WRITE)),
        Ok(())
    );
    assert_eq!(ends.rig.settle(), None);
    assert_eq!(ends.seen().len(), 1);
    // From a further one to the first one, whose table has another handler.
    assert_eq!(
        ends.send(1, Endpoints { from: 3, to: 0 }, &message(NOTE)),
        Ok(())
    );
    assert_eq!(ends.rig.settle(), None);
    assert!(ends.seen().is_empty());
    assert_eq!(ends.rig.seen(1).len(), 1);
    // Its reply goes back to the further one.
    let forge = Message {
        handler: FORGE,
        args: &[WRITE.0.into(), 8],
        payload: Payload::Medium(SharedBytes::from_slice(b"back")),
    };
    assert_eq!(ends.send(1, Endpoints { from: 3, to: 0 }, &forge), Ok(()));
    assert_eq!(ends.rig.settle(), None);
    let seen = ends.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (seen[0].ends, &seen[0].payload[..]),
        (Endpoints { from: 0, to: 3 }, &b"back"[..])
    );
    // Between the first ones a message is a plain one.
    assert_eq!(ends.send(1, Endpoints::PRIMORDIAL, &message(NOTE)), Ok(()));
    assert_eq!(ends.rig.settle(), None);
    assert_eq!(ends.rig.seen(1).len(), 1);
    assert_eq!(
        ends.send(1, Endpoints { from: 0, to: 3 }, &message(ANSWER)),
        Ok(())
    );
    let message = ends.rig.settle().unwrap();
    assert!(
        message.contains("handler index 140 is not registered at endpoint 0 of rank 0"),
        "{message}"
    );
}

#[test]
fn longs_go_into_memory_bound_to_an_endpoint() {
    const KIB64: usize = 64 << 10;
    let ends = Ends::new();
    let engine = &ends.rig.ranks[0].engine;
    let pair = Endpoints {
        from: ENDPOINT as u8,
        to: ENDPOINT as u8,
    };
    for len in [0, 1, 5000, KIB64 - 24, KIB64 - 23, 200_000] {
        for back in [1, KIB64 - 24, KIB64 - 23, 300_000] {
            let (target, source) = (Target::Bound(ends.rig.place(1, 13)), bytes(len, len));
            let args = [back as u32, 2, 3];
            ends.rig.served(|engine, ctx| {
                let (long, wait) = (client_long(FAR, &args, &source), Injection::Blocking);
                engine.request_long(ctx, pair, target, &long, wait).unwrap();
            });
            let mut seen = ends.await_seen(2);
            assert_eq!(seen.len(), 2, "{len} there, {back} back");
            // Both in the same order as they ran: the reply comes last.
            let reply = seen.pop().unwrap();
            let request = seen.pop().unwrap();
            assert_eq!(
                (request.ends, request.class, request.args),
                (pair, MessageClass::Request, args.to_vec())
            );
            assert!(request.category == Category::Long && request.payload == source);
            assert_eq!(
                (reply.ends, reply.class, reply.args),
                (pair, MessageClass::Reply, args.to_vec())
            );
            assert!(reply.category == Category::Long && reply.payload == bytes(5, back));
            assert!(ends.rig.memory[0].read(9, back) == bytes(5, back));
            assert!(ends.rig.memory[1].read(13, len) == source);
        }
    }
    let beyond = BoundPlace {
        address: 1,
        ..ends.rig.place(1, 0)
    };
    let (ctx, wait) = (context(), Injection::Blocking);
    let (target, long) = (Target::Bound(beyond), client_long(WRITE, &[], &[1]));
    engine
        .request_long(&ctx, pair, target, &long, wait)
        .unwrap();
    let message = ends.rig.settle().unwrap();
    assert!(
        message.contains("endpoint 5, is outside of its segment"),
        "{message}"
    );
    assert!(ends.seen().is_empty());
}

#[test]
fn a_negotiated_payload_goes_between_endpoints() {
    let ends = Ends::new();
    let (engine, ctx) = (&ends.rig.ranks[0].engine, context());
    for (from, to) in [(0, 3), (5, 3)] {
        let pair = Endpoints { from, to };
        for nargs in [0, 1, 16] {
            let args = vec![9; nargs];
            let want = PrepareRequest {
                to: JobRank(1),
                class: MessageClass::Request,
                nargs,
                least: 1000,
                most: argonet_am::MAX_MEDIUM,
                offset: None,
            };
            let mut prepared = engine
                .prepare_endpoint(&ctx, pair, &want, Injection::Blocking)
                .unwrap();
            assert!(prepared.capacity() >= 1000);
            // SAFETY: the conduit is this engine's.
            unsafe { prepared.buffer() }
                .copy_from(0, &bytes(3, 700))
                .unwrap();
            engine
                .commit_endpoint(&ctx, prepared, pair, WRITE, &args, 700)
                .unwrap();
            assert_eq!(ends.rig.settle(), None);
            let seen = ends.seen();
            assert_eq!((seen[0].ends, &seen[0].args), (pair, &args));
            assert!(seen[0].payload == bytes(3, 700) && seen.len() == 1);
        }
        let want = PrepareRequest {
            to: JobRank(1),
            class: MessageClass::Request,
            nargs: 17,
            least: 0,
            most: 1,
            offset: None,
        };
        assert!(matches!(
            engine.prepare_endpoint(&ctx, pair, &want, Injection::Blocking),
            Err(AmError::TooManyArgs { count: 17, .. })
        ));
        let want = PrepareRequest { nargs: 1, ..want };
        let prepared = engine
            .prepare_endpoint(&ctx, pair, &want, Injection::Blocking)
            .unwrap();
        let refused = engine.commit_endpoint(&ctx, prepared, pair, internal::BARRIER, &[1], 0);
        assert!(matches!(refused, Err(AmError::NotForClients { .. })));
        // It was canceled, so that the thread may go on.
        assert_eq!(engine.poll(&ctx), Ok(0));
    }
}

#[test]
fn errors_are_reported_before_anything_is_sent() {
    let ends = Ends::new();
    let engine = &ends.rig.ranks[0].engine;
    let plain = Message {
        handler: WRITE,
        args: &[],
        payload: Payload::None,
    };
    let refused = |to, (from, there), message: &Message<'_>| {
        ends.send(to, Endpoints { from, to: there }, message)
            .unwrap_err()
    };
    let missing = |error, endpoint, rank| {
        let AmError::NoEndpoint {
            endpoint: e,
            rank: r,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((*e, *r), (endpoint, JobRank(rank)), "{error}");
        assert!(error.to_string().contains("GEX_EP_CAPABILITY_AM"));
    };
    missing(refused(1, (4, 3), &plain), 4, 0);
    missing(refused(1, (200, 3), &plain), 200, 0);
    missing(refused(0, (3, 4), &plain), 4, 0);
    missing(refused(1, (3, 32), &plain), 32, 1);
    assert!(matches!(
        refused(2, (3, 3), &plain),
        AmError::NoSuchRank { .. }
    ));
    let many = Message {
        args: &[0; 17],
        ..plain
    };
    assert!(matches!(
        refused(1, (3, 3), &many),
        AmError::TooManyArgs { count: 17, .. }
    ));
    for handler in [
        internal::ENDPOINT_AM,
        internal::BARRIER,
        HandlerIndex(CLIENT_BASE.0 - 1),
    ] {
        let own = Message { handler, ..plain };
        assert!(matches!(
            refused(1, (3, 3), &own),
            AmError::NotForClients { .. }
        ));
    }
    let big = vec![0; argonet_am::MAX_MEDIUM + 1];
    let long = Message {
        payload: payload(Category::Medium, &big),
        ..plain
    };
    assert!(matches!(refused(1, (3, 3), &long), AmError::TooLong { .. }));
    let outside = Message {
        payload: Payload::Long(SharedBytes::from_slice(&big), SegmentOffset(64 << 10)),
        ..plain
    };
    assert!(matches!(
        refused(1, (3, 0), &outside),
        AmError::OutsideSegment { .. }
    ));
    let (ctx, target) = (context(), Target::Bound(ends.rig.place(1, 0)));
    let (pair, wait) = (Endpoints { from: 4, to: 3 }, Injection::Blocking);
    let far = engine.request_long(&ctx, pair, target, &client_long(WRITE, &[], &[]), wait);
    assert!(
        matches!(
            far,
            Err(OpError::Am(AmError::NoEndpoint { endpoint: 4, .. }))
        ),
        "{far:?}"
    );
    for (index, why) in [
        (0, "from the start"),
        (3, "open already"),
        (32, "endpoints 0 to 31"),
    ] {
        let error = engine
            .open_endpoint(index, HandlerTable::default())
            .unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    assert_eq!(ends.rig.settle(), None);
    assert!(ends.seen().is_empty());
}

#[test]
fn peers_report_the_state_of_their_endpoints() {
    use crate::EndpointState::{Missing, Mute, Open};
    let ends = Ends::new();
    for rank in &ends.rig.ranks {
        rank.engine.mute_endpoint(7);
        rank.engine.mute_endpoint(99);
    }
    for (endpoint, due) in [
        (0, Open),
        (3, Open),
        (7, Mute),
        (31, Missing),
        (99, Missing),
    ] {
        for peer in [0, 1] {
            let asked = Mutex::new(None);
            ends.rig.served(|engine, ctx| {
                *asked.lock() = Some(engine.endpoint_state(ctx, JobRank(peer), endpoint));
            });
            let asked = asked.into_inner().unwrap();
            assert_eq!(asked, Ok(due), "endpoint {endpoint} of rank {peer}");
        }
    }
    let (engine, ctx) = (&ends.rig.ranks[0].engine, context());
    // An endpoint that may have messages is asked about once: no rank answers here.
    assert_eq!(engine.endpoint_state(&ctx, JobRank(1), 3), Ok(Open));
    assert!(matches!(
        engine.endpoint_state(&ctx, JobRank(2), 3),
        Err(OpError::Am(AmError::NoSuchRank { .. }))
    ));
}

#[test]
fn a_message_to_a_missing_endpoint_or_handler_ends_the_job() {
    let message_of = |to, handler| {
        let ends = Ends::new();
        let message = Message {
            handler,
            args: &[],
            payload: Payload::None,
        };
        assert_eq!(ends.send(1, Endpoints { from: 3, to }, &message), Ok(()));
        let message = ends.rig.settle().unwrap();
        assert!(ends.seen().is_empty());
        message
    };
    let no_endpoint = message_of(9, WRITE);
    assert!(
        no_endpoint.contains("rank 1 has no endpoint 9 for active messages")
            && no_endpoint.contains("endpoint 3 of rank 0"),
        "{no_endpoint}"
    );
    let no_handler = message_of(5, HandlerIndex(150));
    assert!(
        no_handler.contains("handler index 150 is not registered at endpoint 5 of rank 1")
            && no_handler.contains("endpoint 3 of rank 0"),
        "{no_handler}"
    );
}

#[test]
fn forged_endpoint_words_are_reported_as_broken_messages() {
    let good = Endpoints { from: 3, to: 3 }.word(WRITE);
    for args in [
        vec![],
        vec![good & 0xff],
        vec![good & !0x80],
        vec![good | 1 << 24],
        vec![good | 32 << 16],
    ] {
        let ends = Ends::new();
        let (engine, ctx) = (&ends.rig.ranks[0].engine, context());
        let message = Message {
            handler: internal::ENDPOINT_AM,
            args: &args,
            payload: Payload::None,
        };
        engine
            .request(&ctx, JobRank(1), &message, Injection::Blocking)
            .unwrap();
        let message = ends.rig.settle().unwrap();
        assert!(
            message.contains("it does not name the endpoints"),
            "{args:x?}: {message}"
        );
        assert!(ends.seen().is_empty());
    }
}
