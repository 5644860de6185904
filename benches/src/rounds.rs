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
use argonet_conduit::channel::{AnyRails, ChannelConfig, ChannelCredits, ChannelSizes, Erased};
use argonet_conduit::failover::{FailoverConfig, FailoverRails, MemberConfig};
use argonet_conduit::tcp::{Connector, Sockets, Tcp};
use argonet_conduit::{Completion, Conduit, OpToken, Sink, ThreadMode};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NOTE: HandlerIndex = HandlerIndex(128);

/// Gives out one connection.
struct One {
    made: Mutex<Option<Made<OwnedFd>>>,
    /// Readable until it has.
    has_made: OwnedFd,
}

impl Connector for One {
    fn want(&self, _: JobRank, _: u16) {}
    fn next(&self, _: &dyn Fn(RailId) -> u64) -> Option<Made<OwnedFd>> {
        let made = self.made.lock().ok()?.take()?;
        rustix::io::read(&self.has_made, &mut [0; 8]).ok()?;
        Some(made)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.has_made.as_fd())
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

/// The sockets of a rank: this one, or none.
fn sockets(made: Option<Made<OwnedFd>>) -> Box<Erased<Sockets>> {
    let connector = Arc::new(One {
        has_made: eventfd(u32::from(made.is_some()), EventfdFlags::NONBLOCK).expect("an eventfd"),
        made: Mutex::new(made),
    });
    Box::new(Erased::new(
        Sockets::new(connector, false).expect("sockets"),
    ))
}

/// Rails of a rank over so many members, of which the first has a connection.
fn failover(rank: u32, members: usize, made: Made<OwnedFd>) -> FailoverRails {
    let mut made = Some(made);
    let member = |number| MemberConfig {
        name: format!("tcp:{number}"),
        rails: sockets(made.take()),
        further: 0,
    };
    let config = FailoverConfig {
        rank: JobRank(rank),
        ranks: 2,
        name: "tcp",
        members: (0..members).map(member).collect(),
        limit: Duration::from_secs(60),
        addresses: || Ok(BTreeSet::new()),
        warn: |_| {},
        note: |_| {},
    };
    FailoverRails::new(config).expect("rails")
}

/// A rank and its segment, which it must not outlive; `members`: over so many that stand in for
/// each other, if any.
fn rank(
    rank: u32,
    socket: TcpStream,
    credits: Option<ChannelCredits>,
    members: usize,
) -> (Tcp, OwnSegment) {
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
    let rails: AnyRails = match members {
        0 => sockets(Some(made)),
        members => Box::new(failover(rank, members, made)),
    };
    let most = ChannelSizes::default().rails;
    let config = ChannelConfig {
        rank: JobRank(rank),
        ranks: 2,
        mode: ThreadMode::Seq,
        sizes: ChannelSizes {
            credits,
            rails: most.min(rails.most()),
            ..ChannelSizes::default()
        },
        directory,
        registered: registered(),
        segment_len: Arc::new(|_| 0),
    };
    (Tcp::over(rails, config).expect("a conduit"), segment)
}

/// So many round trips over a connection, with credits or without flow control, and of so many
/// members that stand in for each other, if any.
pub(crate) fn over_tcp(times: u64, credits: Option<ChannelCredits>, members: usize) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let here = TcpStream::connect(listener.local_addr().expect("an address")).expect("loopback");
    let (there, _) = listener.accept().expect("loopback");
    let (asker, _its_segment) = rank(0, here, credits, members);
    let (answerer, _and_its) = rank(1, there, credits, members);
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
            if i == 0 {
                // Both agree on a rail.
                asker.poll_with(&mut answers);
            }
        }
        while answers.0 <= i {
            asker.poll_with(&mut answers);
        }
    }
}
