//! Two ranks in one process, over the loopback interface, and measurements beside a limit.
#![allow(dead_code, reason = "each bench uses some of it")]

pub(crate) mod compare;
pub(crate) mod pairs;

use argonet_am::{Delivery, HandlerTable, Message, Payload, Registered};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::channel::rail::{Made, NewRail, RailId};
use argonet_conduit::channel::{ChannelConfig, ChannelSizes};
use argonet_conduit::tcp::{Connector, Tcp, TcpConfig};
use argonet_conduit::{Completion, OpToken, Sink, ThreadMode};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) const ASK: HandlerIndex = HandlerIndex(128);
pub(crate) const NOTE: HandlerIndex = HandlerIndex(129);
const SEGMENT_BYTES: u64 = 8 << 20;

/// Connections that were made before.
struct Ready(Mutex<VecDeque<NewRail<OwnedFd>>>);

impl Connector for Ready {
    fn want(&self, _peer: JobRank, _connection: u16) {}

    fn next(&self, _received: &dyn Fn(RailId) -> u64) -> Option<Made<OwnedFd>> {
        let connection = self.0.lock().expect("no thread has failed").pop_front();
        connection.map(Made::Rail)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

pub(crate) fn pair() -> [TcpStream; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let here = TcpStream::connect(listener.local_addr().expect("an address")).expect("loopback");
    let (there, _) = listener.accept().expect("loopback");
    for socket in [&here, &there] {
        socket.set_nodelay(true).expect("a socket");
    }
    [here, there]
}

pub(crate) fn registered() -> Registered {
    let mut table = HandlerTable::default();
    for (index, name) in [(ASK, "ask"), (NOTE, "note")] {
        let placed = table.register_at(index, name, Box::new(|_| {}));
        placed.expect("clients' indices");
    }
    table.registered()
}

/// One of two ranks, with its segment and its ends of the connections to the other.
pub(crate) fn rank(rank: u32, sizes: ChannelSizes, sockets: Vec<TcpStream>) -> (Tcp, OwnSegment) {
    let file = SegmentFile::create(1, SEGMENT_BYTES, PageKind::Normal).expect("segment");
    let directory = Directory::new(file, JobRank(0)).expect("directory");
    let segment = OwnSegment::attach(&directory, SEGMENT_BYTES).expect("segment");
    let made = (0..).zip(sockets).map(|(number, socket)| NewRail {
        id: RailId {
            peer: JobRank(1 - rank),
            number,
        },
        rail: socket.into(),
        incarnation: 1,
        received: 0,
    });
    let config = TcpConfig {
        channel: ChannelConfig {
            rank: JobRank(rank),
            ranks: 2,
            mode: ThreadMode::Seq,
            sizes,
            directory,
            registered: registered(),
            segment_len: Arc::new(|_| 0),
        },
        progress: false,
        connector: Arc::new(Ready(Mutex::new(made.collect()))),
    };
    (Tcp::over_connections(config).expect("endpoint"), segment)
}

/// Two connected ranks with their segments.
pub(crate) fn ranks(sizes: ChannelSizes) -> ([Tcp; 2], [OwnSegment; 2]) {
    let [here, there] = pair();
    let (a, segment_a) = rank(0, sizes, vec![here]);
    let (b, segment_b) = rank(1, sizes, vec![there]);
    ([a, b], [segment_a, segment_b])
}

/// Counts messages, and answers those that ask.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) messages: u64,
    pub(crate) remote: u64,
    pub(crate) local: u64,
}

impl Sink for Count {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        self.messages += 1;
        if delivery.handler() == ASK {
            let answer = Message {
                handler: NOTE,
                args: &[],
                payload: Payload::None,
            };
            delivery.reply(&answer).expect("a reply");
        }
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        self.completed_all(op, completion, 1);
    }

    fn completed_all(&mut self, _op: OpToken, completion: Completion, count: u32) {
        match completion {
            Completion::Local => self.local += u64::from(count),
            Completion::Remote => self.remote += u64::from(count),
        }
    }

    fn on_error(&mut self, error: argonet_am::AmError) {
        panic!("{error}");
    }
}
