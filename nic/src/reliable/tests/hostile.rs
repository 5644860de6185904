//! Datagrams that no peer should have sent.

use super::wire::World;
use super::{INCARNATIONS, endpoint};
use crate::reliable::datagram::{Header, Kind};
use crate::reliable::seq::Seq;
use crate::reliable::{Counts, Endpoint, HEADER_BYTES, ReliableConfig, SEAL_BYTES, Seal};
use argonet_base::JobRank;
use core::time::Duration;
use proptest::prelude::*;

const NOW: Duration = Duration::from_secs(1);

/// A datagram for rank 1 as rank 0 writes it.
fn datagram(header: &Header, record: &[u8], seal: Option<&Seal>) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES + record.len() + SEAL_BYTES];
    bytes[HEADER_BYTES..][..record.len()].copy_from_slice(record);
    let len = header.write(&mut bytes, record.len(), seal);
    bytes.truncate(len);
    bytes
}

fn good() -> Header {
    Header {
        kind: Kind::Data,
        from: JobRank(0),
        to: JobRank(1),
        incarnations: [INCARNATIONS[0], INCARNATIONS[1]],
        seq: Seq::first_of(INCARNATIONS[0]),
        ack: Seq::first_of(INCARNATIONS[1]),
        selective: 0,
    }
}

fn target() -> Endpoint {
    endpoint(ReliableConfig::default(), 1, 3, None)
}

/// Counts of a datagram that must be dropped without an answer.
fn dropped(header: Header) -> Counts {
    let mut end = target();
    let bytes = datagram(&header, b"record", None);
    assert_eq!(
        end.handle_recv(NOW, &bytes, |_| panic!("it is accepted")),
        None
    );
    assert_eq!(end.poll_transmit(NOW), None);
    end.counts()
}

#[test]
fn datagrams_of_others_are_dropped_and_counted() {
    let strangers = [
        Header {
            to: JobRank(2),
            ..good()
        },
        Header {
            from: JobRank(2),
            ..good()
        },
        Header {
            from: JobRank(3),
            ..good()
        },
        Header {
            from: JobRank(u32::MAX),
            ..good()
        },
        Header {
            incarnations: [1, INCARNATIONS[1]],
            ..good()
        },
        Header {
            incarnations: [INCARNATIONS[0], 1],
            ..good()
        },
        Header {
            incarnations: [0, 0],
            ..good()
        },
    ];
    for header in strangers {
        assert_eq!(
            dropped(header),
            Counts {
                strangers: 1,
                ..Counts::default()
            },
            "{header:?}"
        );
    }
    let unsent = [
        Header {
            ack: good().ack.plus(1),
            ..good()
        },
        Header {
            ack: good().ack.plus(1 << 30),
            ..good()
        },
        Header {
            selective: 1,
            ..good()
        },
        Header {
            selective: 1 << 127,
            ..good()
        },
    ];
    for header in unsent {
        assert_eq!(
            dropped(header),
            Counts {
                impossible: 1,
                ..Counts::default()
            },
            "{header:?}"
        );
    }
}

#[test]
fn numbers_that_are_not_due_deliver_nothing() {
    let mut end = target();
    for ahead in [128, 1 << 20, i32::MAX as u32] {
        let far = Header {
            seq: good().seq.plus(ahead),
            ..good()
        };
        let arrived = end.handle_recv(NOW, &datagram(&far, b"far", None), |_| true);
        assert_eq!(arrived.expect("good").record, None);
    }
    assert_eq!(end.counts().impossible, 3);
    let first = datagram(&good(), b"first", None);
    let arrived = end.handle_recv(NOW, &first, |_| true).expect("good");
    assert_eq!(&first[arrived.record.expect("a record")], b"first");
    for behind in [0, 1, 1 << 30] {
        let old = Header {
            seq: Seq(good().seq.0.wrapping_sub(behind)),
            ..good()
        };
        let arrived = end.handle_recv(NOW, &datagram(&old, b"old", None), |_| true);
        assert_eq!(arrived.expect("good").record, None);
    }
    assert_eq!(end.counts().repeated, 3);
}

#[test]
fn early_datagrams_are_kept_up_to_the_window() {
    let config = ReliableConfig {
        window_bytes: 4000,
        ..ReliableConfig::default()
    };
    let mut end = endpoint(config, 1, 2, None);
    for ahead in 1..128 {
        let early = Header {
            seq: good().seq.plus(ahead),
            ..good()
        };
        end.handle_recv(NOW, &datagram(&early, &[0; 1000], None), |_| true)
            .expect("good");
    }
    assert_eq!(end.counts().no_room, 127 - 4);
    // A kept record takes its room once.
    for _ in 0..100 {
        let early = Header {
            seq: good().seq.plus(1),
            ..good()
        };
        end.handle_recv(NOW, &datagram(&early, &[1; 1000], None), |_| true)
            .expect("good");
    }
    assert_eq!(end.counts().repeated, 100);
    assert!(end.take(NOW, JobRank(0)).is_none());
    end.handle_recv(NOW, &datagram(&good(), b"", None), |_| true)
        .expect("good");
    let taken = std::iter::from_fn(|| end.take(NOW, JobRank(0))).count();
    assert_eq!(taken, 4);
    let more = Header {
        seq: good().seq.plus(6),
        ..good()
    };
    end.handle_recv(NOW, &datagram(&more, &[0; 1000], None), |_| true)
        .expect("good");
    assert_eq!(end.counts().no_room, 127 - 4, "room is given back");
}

#[test]
fn without_the_secret_nothing_is_believed() {
    let seal = Seal::from_secret(b"secret");
    let mut end = endpoint(ReliableConfig::default(), 1, 2, Some(&seal));
    let other = Seal::from_secret(b"guess");
    for seal in [None, Some(&other)] {
        let bytes = datagram(&good(), b"record", seal);
        assert_eq!(end.handle_recv(NOW, &bytes, |_| true), None);
    }
    assert_eq!(
        end.counts(),
        Counts {
            forged: 2,
            ..Counts::default()
        }
    );
    let bytes = datagram(&good(), b"record", Some(&seal));
    assert!(end.handle_recv(NOW, &bytes, |_| true).is_some());
    assert!(
        !format!("{end:?}").contains("115, 101"),
        "the secret is printed"
    );
}

/// A lost peer stays lost, also when it sends again.
#[test]
fn a_lost_peer_does_not_come_back() {
    let config = ReliableConfig::default();
    let mut world = World::new(config, 2, None, 0);
    let hello = |place: &mut [u8]| place.fill(1);
    world.ends[1]
        .submit(Duration::ZERO, JobRank(0), 5, hello)
        .unwrap();
    world.dead[0] = true;
    world.run(config.give_up_after * 2);
    assert!(world.ends[1].lost(JobRank(0)).is_some());
    let bytes = datagram(&good(), b"again", None);
    assert_eq!(world.ends[1].handle_recv(world.now, &bytes, |_| true), None);
    assert_eq!(world.ends[1].counts().strangers, 1);
}

proptest! {
    /// No bytes make an endpoint panic or deliver a record that is none.
    #[test]
    fn any_bytes_are_survived(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20)
    ) {
        let mut end = target();
        for bytes in &datagrams {
            prop_assert_eq!(end.handle_recv(NOW, bytes, |_| true), None);
        }
        prop_assert_eq!(end.counts().malformed, datagrams.len() as u64);
    }

    /// Nor do headers of the right job with any numbers, before and behind good traffic.
    #[test]
    fn any_numbers_are_survived(
        headers in prop::collection::vec(
            (1_u8..=4, any::<u32>(), -300_i32..300, -300_i32..300, any::<u128>(), 0_usize..200),
            1..60,
        ),
        near: bool,
        records in 0_u64..40,
    ) {
        let mut end = target();
        for _ in 0..records {
            if end.room(JobRank(0)) {
                end.submit(NOW, JobRank(0), 300, |_| {}).unwrap();
            }
        }
        let mut now = NOW;
        let mut delivered = 0;
        for (kind, wild, seq, ack, selective, len) in headers {
            let kind = Kind::try_from(kind).unwrap();
            let wild = if near { 0 } else { wild };
            let header = Header {
                kind,
                seq: good().seq.plus(seq as u32).plus(wild),
                ack: good().ack.plus(ack as u32).plus(wild),
                selective: if near { selective & 0xff } else { selective },
                ..good()
            };
            let record = vec![0; if kind == Kind::Data { len } else { 0 }];
            let bytes = datagram(&header, &record, None);
            if let Some(arrived) = end.handle_recv(now, &bytes, |_| seq % 3 != 0)
                && let Some(range) = arrived.record
            {
                prop_assert_eq!(range.len(), len);
                delivered += 1;
            }
            while let Some(record) = end.take(now, JobRank(0)) {
                end.recycle(record);
                delivered += 1;
            }
            now += Duration::from_millis(3);
            end.handle_timeout(now);
            while let Some(transmit) = end.poll_transmit(now) {
                prop_assert!(transmit.bytes.len() <= ReliableConfig::default().datagram_bytes);
            }
        }
        prop_assert!(delivered <= 60);
    }
}
