use super::*;
use crate::limits::CLIENT_BASE;
use crate::message::Payload;
use crate::table::HandlerTable;
use core::cell::RefCell;

const SOURCE: JobRank = JobRank(2);
const HERE: JobRank = JobRank(5);
const HANDLER: HandlerIndex = HandlerIndex(140);
const ANSWER: HandlerIndex = HandlerIndex(130);
/// One that is not registered.
const STRANGER: HandlerIndex = HandlerIndex(131);
const ENDS: Endpoints = Endpoints { from: 3, to: 31 };
const OFFSET: SegmentOffset = SegmentOffset(64);
/// Outside of any segment; it has the bits of every mark.
const ADDRESS: u64 = 0xff00;

/// A reply as the port got it: to whom, by which handler, with which arguments and bytes.
type Reply = (JobRank, HandlerIndex, Vec<u32>, Vec<u8>);

/// Keeps what is sent, unless it has no room.
struct Port {
    sent: RefCell<Vec<Reply>>,
    registered: Registered,
    full: bool,
}

impl Port {
    fn new() -> Self {
        let mut table = HandlerTable::default();
        let nothing = Box::new(|_: &mut Delivery<'_>| {});
        table.register_at(ANSWER, "answer", nothing).unwrap();
        Self {
            sent: RefCell::default(),
            registered: table.registered(),
            full: false,
        }
    }

    fn sent(&self) -> Vec<Reply> {
        self.sent.borrow().clone()
    }
}

impl ReplyPort for Port {
    fn reply(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError> {
        if self.full {
            return Err(AmError::PeerLost { at: HERE, peer: to });
        }
        let bytes = match message.payload {
            Payload::None => Vec::new(),
            Payload::Medium(bytes) | Payload::Long(bytes, _) => bytes.to_vec(),
        };
        let reply = (to, message.handler, message.args.to_vec(), bytes);
        self.sent.borrow_mut().push(reply);
        Ok(())
    }

    fn rank(&self) -> JobRank {
        HERE
    }

    fn registered(&self) -> &Registered {
        &self.registered
    }
}

fn delivery<'a>(
    class: MessageClass,
    category: Category,
    payload: Option<&'a mut [u8]>,
    port: &'a Port,
) -> Delivery<'a> {
    let payload = payload.map(SharedBytesMut::from_slice);
    let args = &[11, 12, 13];
    Delivery::new(
        SOURCE, class, category, HANDLER, args, payload, OFFSET, port,
    )
}

fn short(port: &Port) -> Delivery<'_> {
    delivery(MessageClass::Request, Category::Short, None, port)
}

fn answer(args: &[u32]) -> Message<'_> {
    Message {
        handler: ANSWER,
        args,
        payload: Payload::None,
    }
}

#[test]
fn a_handler_sees_the_message_as_it_came() {
    let (port, mut bytes) = (Port::new(), *b"abc");
    let at = bytes.as_ptr().addr() as u64;
    let mut medium = delivery(
        MessageClass::Reply,
        Category::Medium,
        Some(&mut bytes),
        &port,
    );
    assert_eq!((medium.source(), medium.rank()), (SOURCE, HERE));
    assert_eq!(medium.class(), MessageClass::Reply);
    assert_eq!(medium.category(), Category::Medium);
    assert_eq!(
        (medium.handler(), medium.args()),
        (HANDLER, &[11, 12, 13][..])
    );
    assert_eq!([0, 2, 3, usize::MAX].map(|i| medium.arg(i)), [11, 13, 0, 0]);
    assert_eq!(medium.payload().to_vec(), b"abc");
    assert_eq!((medium.offset(), medium.address()), (OFFSET, Some(at)));
    assert_eq!(medium.endpoints(), Endpoints::PRIMORDIAL);
    assert!(!medium.came_inside() && !medium.has_replied());
    let payload = medium.payload_mut().unwrap();
    payload.copy_from(1, b"x").unwrap();
    assert_eq!(medium.payload().to_vec(), b"axc");
}

#[test]
fn a_short_has_neither_bytes_nor_an_address() {
    let port = Port::new();
    let mut short = short(&port);
    assert!(short.payload().is_empty() && short.payload_mut().is_none());
    assert_eq!(short.address(), None);
}

#[test]
fn a_request_is_replied_to_once() {
    let port = Port::new();
    let mut request = short(&port);
    request.reply(&answer(&[1])).unwrap();
    assert!(request.has_replied());
    let again = request.reply(&answer(&[2])).unwrap_err();
    let twice = AmError::RepliedTwice {
        rank: HERE,
        to: SOURCE,
    };
    assert_eq!(again, twice);
    assert_eq!(request.echo(ANSWER, &[]), Err(twice.clone()));
    assert_eq!(request.reply_by_other_means(ANSWER, &[]), Err(twice));
    assert_eq!(port.sent(), [(SOURCE, ANSWER, vec![1], vec![])]);
}

#[test]
fn a_reply_by_other_means_uses_up_the_right_to_reply() {
    let port = Port::new();
    let mut request = short(&port);
    assert!(matches!(
        request.reply_by_other_means(STRANGER, &[]),
        Err(AmError::Unregistered { .. })
    ));
    assert!(!request.has_replied());
    request.reply_by_other_means(ANSWER, &[]).unwrap();
    assert!(request.has_replied());
    assert!(port.sent().is_empty());
}

#[test]
fn an_echo_replies_with_the_bytes_that_came() {
    let (port, mut bytes) = (Port::new(), *b"abc");
    let mut request = delivery(
        MessageClass::Request,
        Category::Medium,
        Some(&mut bytes),
        &port,
    );
    request.echo(ANSWER, &[4]).unwrap();
    assert!(request.has_replied());
    assert_eq!(port.sent(), [(SOURCE, ANSWER, vec![4], b"abc".to_vec())]);
}

#[test]
fn a_reply_that_was_refused_may_be_tried_again() {
    let mut port = Port::new();
    port.full = true;
    let mut request = short(&port);
    let lost = AmError::PeerLost {
        at: HERE,
        peer: SOURCE,
    };
    assert_eq!(request.reply(&answer(&[])), Err(lost.clone()));
    assert_eq!(request.echo(ANSWER, &[]), Err(lost));
    assert!(!request.has_replied());
}

#[test]
fn replies_that_cannot_be_sent_are_refused_with_the_cause() {
    let port = Port::new();
    let (from, to) = (HERE, SOURCE);
    let refused = |message: &Message<'_>| {
        let mut request = short(&port);
        let error = request.reply(message).unwrap_err();
        assert!(!request.has_replied());
        error
    };
    let mut reply = delivery(MessageClass::Reply, Category::Short, None, &port);
    let to_reply = AmError::ReplyToReply { rank: from, to };
    assert_eq!(reply.reply(&answer(&[])), Err(to_reply));

    let args = [0; MAX_ARGS + 1];
    let count = args.len();
    let expected = AmError::TooManyArgs { count, from, to };
    assert_eq!(refused(&answer(&args)), expected);
    short(&port).reply(&answer(&args[1..])).unwrap();

    let index = STRANGER;
    let stranger = Message {
        handler: index,
        ..answer(&[])
    };
    let expected = AmError::Unregistered { index, from, to };
    assert_eq!(refused(&stranger), expected);
    let all = Message {
        args: &args[1..],
        ..stranger
    };
    assert_eq!(refused(&all), expected);

    let bytes = vec![7; MAX_MEDIUM + 1];
    let medium = |bytes| Message {
        payload: Payload::Medium(SharedBytes::from_slice(bytes)),
        ..answer(&[])
    };
    let expected = AmError::TooLong {
        category: Category::Medium,
        len: bytes.len(),
        max: MAX_MEDIUM,
        from,
        to,
    };
    assert_eq!(refused(&medium(&bytes)), expected);
    // A medium of the greatest length goes, and a long has no limit here.
    short(&port).reply(&medium(&bytes[1..])).unwrap();
    let long = Message {
        payload: Payload::Long(SharedBytes::from_slice(&bytes), OFFSET),
        ..answer(&[])
    };
    short(&port).reply(&long).unwrap();
    let lengths: Vec<_> = port.sent().iter().map(|(.., bytes)| bytes.len()).collect();
    assert_eq!(lengths, [0, MAX_MEDIUM, bytes.len()]);
}

/// All of a message but its payload and marks, which each way inside another treats differently.
fn assert_same_sender(inner: &Delivery<'_>) {
    assert_eq!((inner.source(), inner.rank()), (SOURCE, HERE));
    assert!(inner.came_inside());
}

#[test]
fn a_long_inside_a_message_lies_where_its_sender_said() {
    for replied in [false, true] {
        for replies in [false, true] {
            let (port, mut bytes) = (Port::new(), *b"abc");
            let mut outer = short(&port);
            if replied {
                outer.reply(&answer(&[])).unwrap();
            }
            let payload = SharedBytesMut::from_slice(&mut bytes);
            let mut ran = false;
            let class = MessageClass::Request;
            outer.unwrap_long(class, ANSWER, Some(payload), ADDRESS, |inner| {
                ran = true;
                assert_same_sender(inner);
                assert_eq!((inner.class(), inner.category()), (class, Category::Long));
                assert_eq!((inner.handler(), inner.args()), (ANSWER, &[11, 12, 13][..]));
                assert_eq!(inner.payload().to_vec(), b"abc");
                assert_eq!(inner.offset(), SegmentOffset(0));
                assert_eq!(inner.address(), Some(ADDRESS));
                assert_eq!(inner.endpoints(), Endpoints::PRIMORDIAL);
                assert_eq!(inner.has_replied(), replied);
                if replies {
                    assert_eq!(inner.reply(&answer(&[])).is_err(), replied);
                }
            });
            assert!(ran);
            assert_eq!(outer.has_replied(), replied || replies);
            // The outer message is still a plain one.
            assert!(!outer.came_inside());
            assert_eq!(outer.offset(), OFFSET);
        }
    }
}

#[test]
fn a_long_inside_a_message_between_endpoints_keeps_them() {
    let port = Port::new();
    let mut outer = short(&port);
    outer.unwrap_endpoint_am(ENDS, HANDLER, 0, ANSWER, |between| {
        between.unwrap_long(MessageClass::Request, HANDLER, None, ADDRESS, |inner| {
            assert_eq!(inner.endpoints(), ENDS);
            assert_eq!(inner.address(), Some(ADDRESS));
        });
    });
}

#[test]
fn messages_inside_each_other_keep_what_they_are() {
    let port = Port::new();
    let mut outer = short(&port);
    outer.unwrap_long(MessageClass::Request, HANDLER, None, 7, |first| {
        first.unwrap_long(MessageClass::Request, HANDLER, None, ADDRESS, |second| {
            assert_eq!(second.address(), Some(ADDRESS));
            assert!(second.came_inside());
        });
    });
    let between = Endpoints { from: 1, to: 2 };
    outer.unwrap_endpoint_am(ENDS, HANDLER, 0, ANSWER, |first| {
        first.unwrap_endpoint_am(between, HANDLER, 0, ANSWER, |second| {
            assert_eq!(second.endpoints(), between);
            assert!(second.came_inside());
        });
    });
}

#[test]
fn a_medium_inside_a_message_cannot_be_replied_to() {
    for ends in [Endpoints::PRIMORDIAL, ENDS] {
        let (port, mut bytes) = (Port::new(), *b"abc");
        let (class, category) = (MessageClass::Request, Category::Long);
        let mut outer = delivery(class, category, Some(&mut bytes), &port);
        let mut ran = false;
        outer.unwrap_medium(MessageClass::Request, ends, ANSWER, |inner| {
            ran = true;
            assert_same_sender(inner);
            assert_eq!(inner.category(), Category::Medium);
            assert_eq!((inner.handler(), inner.args()), (ANSWER, &[][..]));
            assert_eq!(inner.payload().to_vec(), b"abc");
            assert_eq!(inner.offset(), SegmentOffset(0));
            assert_eq!(inner.endpoints(), ends);
            assert!(inner.reply(&answer(&[])).is_err());
        });
        assert!(ran);
        // That right stays with the outer one.
        outer.reply(&answer(&[])).unwrap();
        assert_eq!(port.sent().len(), 1);
    }
}

#[test]
fn a_message_between_endpoints_has_the_arguments_behind_the_word() {
    for (first_arg, args) in [(1, &[12, 13][..]), (3, &[]), (4, &[])] {
        let (port, mut bytes) = (Port::new(), *b"abc");
        let (class, category) = (MessageClass::Request, Category::Medium);
        let mut outer = delivery(class, category, Some(&mut bytes), &port);
        let mut ran = false;
        outer.unwrap_endpoint_am(ENDS, CLIENT_BASE, first_arg, ANSWER, |inner| {
            ran = true;
            assert_same_sender(inner);
            assert_eq!((inner.class(), inner.category()), (class, category));
            assert_eq!((inner.handler(), inner.args()), (CLIENT_BASE, args));
            assert_eq!(inner.payload().to_vec(), b"abc");
            assert_eq!((inner.offset(), inner.endpoints()), (OFFSET, ENDS));
            inner.reply(&answer(&[9])).unwrap();
        });
        assert!(ran && outer.has_replied() && !outer.came_inside());
        let word = ENDS.reversed().word(ANSWER);
        assert_eq!(port.sent(), [(SOURCE, ANSWER, vec![word, 9], vec![])]);
    }
}

#[test]
fn the_right_to_reply_that_is_used_up_stays_used_up_between_endpoints() {
    let port = Port::new();
    let mut outer = short(&port);
    outer.reply(&answer(&[])).unwrap();
    outer.unwrap_endpoint_am(ENDS, CLIENT_BASE, 0, ANSWER, |inner| {
        assert!(inner.has_replied() && inner.reply(&answer(&[])).is_err());
    });
    assert!(outer.has_replied());
}

#[test]
fn replies_go_through_a_port_that_is_put_around_the_other() {
    let (port, mut bytes) = (Port::new(), *b"abc");
    let (class, category) = (MessageClass::Request, Category::Medium);
    let mut outer = delivery(class, category, Some(&mut bytes), &port);
    let wrap = |port| Back {
        port,
        carrier: ANSWER,
        ends: ENDS,
    };
    let mut ran = false;
    outer.through(wrap, |inner| {
        ran = true;
        assert_eq!((inner.source(), inner.rank()), (SOURCE, HERE));
        assert_eq!((inner.class(), inner.category()), (class, category));
        assert_eq!(
            (inner.handler(), inner.args()),
            (HANDLER, &[11, 12, 13][..])
        );
        assert_eq!(inner.payload().to_vec(), b"abc");
        assert_eq!(inner.offset(), OFFSET);
        assert!(!inner.came_inside());
        // The port knows of others, but it is still a plain message.
        assert_eq!(inner.endpoints(), Endpoints::PRIMORDIAL);
        inner.reply(&answer(&[9])).unwrap();
    });
    assert!(ran && outer.has_replied());
    let word = ENDS.reversed().word(ANSWER);
    assert_eq!(port.sent(), [(SOURCE, ANSWER, vec![word, 9], vec![])]);
}

/// The library's own handlers have no word in front of their arguments.
#[test]
fn a_reply_by_a_handler_of_the_library_is_a_plain_one() {
    let port = Port::new();
    let mut outer = short(&port);
    for (index, plain) in [(CLIENT_BASE.0 - 1, true), (CLIENT_BASE.0, false)] {
        let handler = HandlerIndex(index);
        outer.unwrap_endpoint_am(ENDS, CLIENT_BASE, 0, ANSWER, |inner| {
            let message = Message {
                handler,
                ..answer(&[9])
            };
            inner.port.reply(inner.source, &message).unwrap();
        });
        let (_, by, args, _) = port.sent().pop().unwrap();
        match plain {
            true => assert_eq!((by, args), (handler, vec![9])),
            false => assert_eq!(args, [ENDS.reversed().word(handler), 9]),
        }
    }
}
