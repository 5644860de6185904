//! Round trips of shorts between two ranks of one process, over a loopback connection or interfaces
//! in software.
//!
//! Messages are here when they were sent, so that each rank polls once for each, and the
//! instructions are always the same.

#[path = "../../conduit/benches/support/pairs.rs"]
#[allow(dead_code, reason = "benches of conduits use the rest")]
mod pairs;

use argonet_am::record::Short;
use argonet_am::{AmError, Delivery, HandlerTable, Message, MessageClass, Payload, Registered};
use argonet_base::{HandlerIndex, JobRank};

use argonet_conduit::channel::rail::{Made, NewRail, RailId};
use argonet_conduit::channel::{ChannelConfig, ChannelCredits, ChannelSizes};
use argonet_conduit::tcp::{Connector, Tcp, TcpConfig};
use argonet_conduit::{Completion, Conduit, OpToken, Sink, ThreadMode};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

const NOTE: HandlerIndex = HandlerIndex(128);

/// Gives out one connection.
struct One(Mutex<Option<Made<OwnedFd>>>);

impl Connector for One {
    fn want(&self, _: JobRank, _: u16) {}
    fn next(&self, _: &dyn Fn(RailId) -> u64) -> Option<Made<OwnedFd>> {
        self.0.lock().ok()?.take()
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[derive(Default)]
/// Messages that were taken; requests are answered.
struct Echo(u64);

impl Sink for Echo {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        self.0 += 1;
        if delivery.class() == MessageClass::Request {
            let reply = Message {
                handler: NOTE,
                args: &[1],
                payload: Payload::None,
            };
            delivery.reply(&reply).expect("a reply");
        }
    }
    fn completed(&mut self, _: OpToken, _: Completion) {}
    fn on_error(&mut self, error: AmError) {
        panic!("a connection over loopback is broken: {error}");
    }
}

fn registered() -> Registered {
    let mut table = HandlerTable::default();
    table
        .register_at(NOTE, "note", Box::new(|_| {}))
        .expect("an index");
    table.registered()
}

/// A rank and its segment, which it must not outlive.
fn rank(rank: u32, socket: TcpStream, credits: Option<ChannelCredits>) -> (Tcp, OwnSegment) {
    let file = SegmentFile::create(1, 1 << 16, PageKind::Normal).expect("a file");
    let directory = Directory::new(file, JobRank(0)).expect("a directory");
    let segment = OwnSegment::attach(&directory, 1 << 16).expect("a segment");
    let made = Made::Rail(NewRail {
        id: RailId {
            peer: JobRank(1 - rank),
            number: 0,
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
            sizes: ChannelSizes {
                credits,
                ..ChannelSizes::default()
            },
            directory,
            registered: registered(),
            segment_len: Arc::new(|_| 0),
        },
        connector: Arc::new(One(Mutex::new(Some(made)))),
        progress: false,
    };
    (Tcp::over_connections(config).expect("a conduit"), segment)
}

/// So many round trips over a connection, with credits or without flow control.
pub(crate) fn over_tcp(times: u64, credits: Option<ChannelCredits>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let here = TcpStream::connect(listener.local_addr().expect("an address")).expect("loopback");
    let (there, _) = listener.accept().expect("loopback");
    let (asker, _its_segment) = rank(0, here, credits);
    let (answerer, _and_its) = rank(1, there, credits);
    run(times, [&asker, &answerer], |tcp, i| {
        let short = Short::pack(NOTE, &[i]).expect("a short");
        tcp.request_short(JobRank(1), short)
    });
}

/// So many round trips over interfaces in software.
pub(crate) fn over_portals(times: u64) {
    let pair = pairs::over_portals(registered());
    let [asker, answerer] = &pair.ends;
    run(times, [asker, answerer], |portals, i| {
        let message = Message {
            handler: NOTE,
            args: &[i],
            payload: Payload::None,
        };
        portals.request(JobRank(1), &message).is_ok()
    });
}

/// `ask` sends the request of such a number, if there is room.
fn run<C: Conduit>(times: u64, [asker, answerer]: [&C; 2], ask: impl Fn(&C, u32) -> bool) {
    let (mut answers, mut requests) = (Echo::default(), Echo::default());
    for i in 0..times {
        // Before the first, connections are taken.
        while !ask(asker, i as u32) {
            asker.poll_with(&mut answers);
            answerer.poll_with(&mut requests);
        }
        while requests.0 <= i {
            answerer.poll_with(&mut requests);
        }
        while answers.0 <= i {
            asker.poll_with(&mut answers);
        }
    }
}
