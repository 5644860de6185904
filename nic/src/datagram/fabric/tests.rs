//! Demands and faults of providers that no machine without hardware has.

use super::*;
use crate::fabric::tests::fake::{Answer, DESCRIPTOR, PROVIDER, Provider, deliver, fake, library};
use rustix::event::{PollFd, PollFlags, poll};

fn port(provider: Provider) -> Result<FabricPort, FabricError> {
    FabricPort::open(&library(&[provider])?, None, None)
}

/// A queue of a rank that is its own peer.
fn queue(provider: Provider) -> Fabric {
    let port = port(provider).unwrap();
    let own = port.address().clone();
    Fabric::new(port, &[own]).unwrap()
}

fn came(queue: &Fabric, taken: &mut Taken) -> Vec<Vec<u8>> {
    let mut came = Vec::new();
    while queue
        .receive(taken, &mut |datagram| came.push(datagram.to_vec()))
        .full
    {}
    came
}

/// Sends and takes datagrams of all lengths.
fn all_lengths(queue: &Fabric) {
    lengths(queue, 100);
}

/// The same up to the longest that an endpoint takes.
fn lengths(queue: &Fabric, longest: u8) {
    let mut taken = queue.receive_buffers();
    for len in 0..=longest {
        let sent: Vec<u8> = (0..len).map(|at| at ^ len).collect();
        queue.send(0, &sent);
        deliver();
        assert_eq!(came(queue, &mut taken), [sent], "{len} bytes");
    }
    assert_eq!((queue.refused(), queue.trouble()), (0, None));
    // Those of up to ten bytes.
    assert_eq!(fake(|fake| fake.injected), 11);
}

/// What one queue has taken are no buffers of another, which would post them twice.
#[test]
fn buffers_of_another_queue_are_not_posted() {
    let one = queue(PROVIDER);
    let mut taken = one.receive_buffers();
    one.send(0, b"here");
    deliver();
    assert!(one.receive(&mut taken, &mut |_| ()).any);
    let other = queue(PROVIDER);
    let posted = fake(|fake| fake.posted.len());
    let batch = other.receive(&mut taken, &mut |_| panic!("it took one"));
    assert!(!batch.any && !batch.full);
    assert_eq!(fake(|fake| fake.posted.len()), posted);
}

// spec U8: usNIC hardware wants room before each datagram.
#[test]
fn a_prefix_is_left_free_where_the_provider_wants_it() {
    let prefix = abi::MSG_PREFIX;
    for modes in [
        [prefix, 0, 0],
        [prefix, 0, prefix],
        [prefix; 3],
        [0, prefix, 0],
    ] {
        fake(|fake| fake.injected = 0);
        let queue = queue(Provider {
            modes,
            prefix: 40,
            ..PROVIDER
        });
        // usnic counts the prefix of a send as part of the longest message.
        let sends_have_it = modes[0] & prefix != 0 || modes[1] & prefix != 0;
        lengths(&queue, if sends_have_it { 60 } else { 100 });
    }
}

#[test]
fn buffers_are_registered_where_the_provider_wants_it() {
    let queue = queue(Provider {
        mr_mode: abi::MR_LOCAL,
        modes: [abi::CONTEXT2; 3],
        ..PROVIDER
    });
    all_lengths(&queue);
    queue.send(0, &[1; 50]);
    fake(|fake| {
        let (begin, bytes) = fake.region;
        for one in fake.posted.iter().chain(&fake.sends) {
            assert_eq!(one.descriptor.addr(), DESCRIPTOR);
            for (at, len) in [(one.at.addr(), one.bytes), (one.context.addr(), 64)] {
                assert!(at >= begin && at + len <= begin + bytes);
            }
        }
        // Each has a context of its own, which no buffer overlaps.
        let mut places: Vec<(usize, usize)> = Vec::new();
        for one in fake.posted.iter().chain(&fake.sends) {
            places.push((one.context.addr(), 64));
            places.push((one.at.addr(), one.bytes));
        }
        places.sort_unstable();
        assert!(
            places
                .windows(2)
                .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
        );
        assert_eq!(fake.posted.len() + fake.sends.len(), 33);
    });
}

// spec U8: fabric, domain, endpoint, and what belongs to them.
#[test]
fn objects_are_closed_before_those_that_they_are_made_of() {
    drop(queue(Provider {
        mr_mode: abi::MR_LOCAL,
        ..PROVIDER
    }));
    let closed = fake(|fake| fake.closed.clone());
    let wanted = [
        "endpoint",
        "queue",
        "queue",
        "addresses",
        "region",
        "domain",
        "fabric",
    ];
    assert_eq!(closed, wanted);
}

#[test]
fn a_buffer_is_used_again_only_when_its_send_has_ended() {
    let queue = queue(PROVIDER);
    // As many as there are buffers.
    for n in 0..32 {
        queue.send(0, &[n; 50]);
    }
    let held = fake(|fake| fake.sends.clone());
    for (n, one) in (0..).zip(&held) {
        // SAFETY: the library has them.
        let bytes = unsafe { core::slice::from_raw_parts(one.at, one.bytes) };
        assert_eq!(bytes, [n; 50]);
    }
    // No buffer is free and none becomes so: the next counts as lost, after a while.
    queue.send(0, &[99; 50]);
    assert_eq!((queue.refused(), fake(|fake| fake.sends.len())), (1, 32));
    deliver();
    queue.send(0, &[100; 50]);
    assert_eq!((queue.refused(), fake(|fake| fake.sends.len())), (1, 1));
}

#[test]
fn a_send_waits_for_room() {
    let queue = queue(PROVIDER);
    fake(|fake| fake.full = 50);
    queue.send(0, &[1; 50]);
    let (full, sends) = fake(|fake| (fake.full, fake.sends.len()));
    assert_eq!(
        (queue.refused(), queue.trouble(), full, sends),
        (0, None, 0, 1)
    );
}

#[test]
fn errors_are_reported_in_the_providers_words() {
    let queue = queue(PROVIDER);
    let mut taken = queue.receive_buffers();
    // A posted buffer that failed is posted again.
    let first = fake(|fake| {
        let first = fake.posted.pop_front().unwrap();
        fake.came.push_back(Answer::Error(first.context));
        first.context
    });
    assert!(came(&queue, &mut taken).is_empty());
    assert_eq!(fake(|fake| fake.posted.back().unwrap().context), first);
    let words = "of fake, 1 operations failed, the first with a receive failed: \
                 the library's words (the cable is out, 77)";
    assert_eq!(queue.trouble().as_deref(), Some(words));
    // A send that failed has ended.
    for _ in 0..32 {
        queue.send(0, &[1; 50]);
    }
    fake(|fake| {
        let failed = fake.sends.pop().unwrap();
        fake.sent.push_back(Answer::Error(failed.context));
    });
    queue.send(0, &[2; 50]);
    assert_eq!(queue.refused(), 0);
    fake(|fake| fake.refuses = -5);
    queue.send(0, &[3; 50]);
    deliver();
    queue.send(0, &[3; 50]);
    let trouble = queue.trouble().unwrap();
    assert!(trouble.contains("3 operations failed"), "{trouble}");
    assert_eq!(queue.refused(), 2);
}

#[test]
fn completions_of_nothing_are_none() {
    let queue = queue(PROVIDER);
    let mut taken = queue.receive_buffers();
    queue.send(0, &[5; 50]);
    let (posted, sent) = fake(|fake| (fake.posted[0], fake.sends[0]));
    let inside = posted.context.wrapping_byte_add(8);
    let far = posted.context.wrapping_byte_sub(1 << 30);
    let behind = posted.context.wrapping_byte_add(1 << 30);
    for context in [core::ptr::null_mut(), inside, far, behind] {
        for answers in 0..2 {
            fake(|fake| {
                let queue = if answers == 0 {
                    &mut fake.came
                } else {
                    &mut fake.sent
                };
                queue.push_back(Answer::Done(context, 10));
                queue.push_back(Answer::Error(context));
            });
        }
        assert!(came(&queue, &mut taken).is_empty());
    }
    // The same twice: the second names no buffer that is lent.
    fake(|fake| {
        let context = fake.posted.pop_front().unwrap().context;
        fake.came.push_back(Answer::Done(context, 10_000));
        fake.came.push_back(Answer::Done(context, 10_000));
    });
    // More than the buffer has is what it has.
    assert_eq!(came(&queue, &mut taken), [vec![0; 100]]);
    assert!(
        queue
            .trouble()
            .unwrap()
            .contains("a completion of no buffer")
    );
    // Each at the other's queue.
    fake(|fake| fake.came.push_back(Answer::Done(sent.context, 10)));
    assert!(came(&queue, &mut taken).is_empty());
}

#[test]
fn a_provider_that_wakes_no_thread_is_looked_at_by_a_timer() {
    fake(|fake| fake.wakes = false);
    let queue = queue(PROVIDER);
    let mut taken = queue.receive_buffers();
    for _ in 0..12 {
        assert!(queue.arm());
        assert_eq!(poll(&mut [PollFd::new(&queue, PollFlags::IN)], None), Ok(1));
    }
    queue.send(0, b"x");
    assert_eq!(came(&queue, &mut taken), [b"x"]);
    assert_eq!(queue.sleep.naps(), Some(0));
}

#[test]
fn a_thread_sleeps_only_where_the_provider_lets_it() {
    let queue = queue(PROVIDER);
    assert!(queue.arm());
    fake(|fake| fake.may_sleep = false);
    assert!(!queue.arm());
}

#[test]
fn a_provider_that_needs_polls_gets_them() {
    let queue = queue(Provider {
        progress: abi::PROGRESS_MANUAL,
        ..PROVIDER
    });
    queue.send(0, &[1; 50]);
    deliver();
    came(&queue, &mut queue.receive_buffers());
    assert!(fake(|fake| fake.sent.is_empty()));
}

#[test]
fn providers_with_other_demands_are_refused() {
    let of = |provider| port(provider).err().unwrap().to_string();
    for (provider, words) in [
        (
            Provider {
                modes: [1 << 57, 0, 0],
                ..PROVIDER
            },
            "demands what is unknown here: modes 0x200000000000000, memory 0x0",
        ),
        (
            Provider {
                mr_mode: 1 << 9,
                ..PROVIDER
            },
            "modes 0x0, memory 0x200",
        ),
        (
            Provider {
                prefix: 4096,
                ..PROVIDER
            },
            "wants 4096 bytes before each message",
        ),
    ] {
        let text = of(provider);
        let wanted = [
            "provider fake of libfabric 1.11",
            words,
            "ARGONET_USNIC_PROVIDER",
        ];
        assert!(wanted.iter().all(|word| text.contains(word)), "{text}");
    }
    fake(|fake| fake.is_whole = false);
    let text = of(PROVIDER);
    assert!(
        text.contains("fi_inject of libfabric's provider fake failed"),
        "{text}"
    );
}

#[test]
fn a_provider_that_takes_fewer_buffers_gets_them_later() {
    let queue = queue(Provider {
        size: 20,
        ..PROVIDER
    });
    fake(|fake| fake.providers[0].size = 19);
    let mut taken = queue.receive_buffers();
    queue.send(0, &[1; 50]);
    deliver();
    assert_eq!(came(&queue, &mut taken), [[1; 50]]);
    assert_eq!(
        (fake(|fake| fake.posted.len()), queue.trouble()),
        (19, None)
    );
    fake(|fake| fake.providers[0].size = 20);
    came(&queue, &mut taken);
    assert_eq!(fake(|fake| fake.posted.len()), 20);
}

#[test]
fn a_peer_of_another_kind_is_named() {
    let mut peer = port(PROVIDER).unwrap().address().clone();
    let own = peer.clone();
    let text = |peer| Fabric::new(port(PROVIDER).unwrap(), &[own.clone(), peer]).err();
    assert!(text(peer.clone()).is_none());
    peer = FabricAddress::new("other", 99, 100, vec![7]);
    let error = text(peer).unwrap().to_string();
    assert!(
        error.contains("does not reach libfabric's provider other at 07"),
        "{error}"
    );
    // The library refuses this one.
    let refused = FabricAddress::new("fake", 99, 100, vec![0xff]);
    let error = text(refused).unwrap().to_string();
    assert!(
        error.contains("fi_av_insert of libfabric's provider fake failed"),
        "{error}"
    );
}
