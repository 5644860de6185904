//! Datagrams that no peer should have sent.

use super::wire::World;
use super::{INCARNATIONS, endpoint};
use crate::reliable::datagram::{Header, Kind, Numbers, Protection};
use crate::reliable::seq::Seq;
use crate::reliable::{Channel, Counts, Endpoint, HEADER_BYTES, ReliableConfig, SEAL_BYTES, Seal};
use argonet_base::JobRank;
use core::time::Duration;
use proptest::prelude::*;

const NOW: Duration = Duration::from_secs(1);

/// A datagram as the rank writes it that its header names.
fn datagram(header: &Header, record: &[u8], seal: Option<&Seal>) -> Vec<u8> {
    let end = HEADER_BYTES + record.len();
    let mut bytes = vec![0; end + SEAL_BYTES];
    bytes[HEADER_BYTES..end].copy_from_slice(record);
    let Some(seal) = seal else {
        header.write(&mut bytes, record.len());
        bytes.truncate(end);
        return bytes;
    };
    let sealed = Header {
        protection: seal.protection(),
        ..*header
    };
    sealed.write(&mut bytes, record.len());
    let ranks = [header.from, header.to];
    let mut keys = seal.keys([0, 1].map(|end| (ranks[end], header.incarnations[end])));
    let mut room = vec![0; bytes.len()];
    keys.seal(header.number, &mut bytes, end, &mut room)
        .unwrap()
        .to_vec()
}

/// The first numbers between rank 0 and rank 1, on both channels.
const FIRST: Numbers = Numbers {
    seq: Seq::first_of(INCARNATIONS[0]),
    ack: Seq::first_of(INCARNATIONS[1]),
};

/// The same header with other numbers of its channel.
fn with(header: Header, f: impl FnOnce(&mut Numbers)) -> Header {
    let mut header = header;
    f(&mut header.numbers[header.channel.index()]);
    header
}

/// A good header whose record is so far from the first one, on the data channel.
fn ahead(by: u32) -> Header {
    with(good(), |numbers| numbers.seq = numbers.seq.plus(by))
}

fn good() -> Header {
    Header {
        kind: Kind::Data,
        channel: Channel::Data,
        from: JobRank(0),
        to: JobRank(1),
        incarnations: [INCARNATIONS[0], INCARNATIONS[1]],
        numbers: [FIRST; 2],
        selective: 0,
        partial: [false; 2],
        protection: Protection::Open,
        number: 1,
    }
}

fn target() -> Endpoint {
    endpoint(ReliableConfig::default(), 1, 3, None)
}

/// Counts of a datagram that must be dropped without an answer.
fn dropped(header: Header) -> Counts {
    let mut end = target();
    let mut bytes = datagram(&header, b"record", None);
    assert_eq!(
        end.handle_recv(NOW, &mut bytes, |_, _| panic!("it is accepted")),
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
        with(good(), |numbers| numbers.ack = numbers.ack.plus(1)),
        with(good(), |numbers| numbers.ack = numbers.ack.plus(1 << 30)),
        // Of the other channel, with which the datagram has nothing else to do.
        Header {
            numbers: [
                with(good(), |numbers| numbers.ack = numbers.ack.plus(1)).numbers[1],
                FIRST,
            ],
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
fn what_names_more_is_believed_no_further_than_records_were_sent() {
    let ack = Header {
        kind: Kind::Ack,
        ..good()
    };
    let mut end = target();
    for more in [&[1][..], &[0, 128], &[255; 496]] {
        let mut bytes = datagram(&ack, more, None);
        assert_eq!(end.handle_recv(NOW, &mut bytes, |_, _| true), None);
    }
    assert_eq!(end.counts().impossible, 3);
    let mut nothing = datagram(&ack, &[0; 496], None);
    assert!(end.handle_recv(NOW, &mut nothing, |_, _| true).is_some());
    let mut longer = datagram(&ack, &[0; 497], None);
    assert_eq!(end.handle_recv(NOW, &mut longer, |_, _| true), None);
    assert_eq!(end.counts().malformed, 1);
}

#[test]
fn numbers_that_are_not_due_deliver_nothing() {
    let mut end = target();
    for ahead in [4096, 1 << 20, i32::MAX as u32] {
        let far = self::ahead(ahead);
        let arrived = end.handle_recv(NOW, &mut datagram(&far, b"far", None), |_, _| true);
        assert_eq!(arrived.expect("good").record, None);
    }
    assert_eq!(end.counts().impossible, 3);
    let mut first = datagram(&good(), b"first", None);
    let arrived = end.handle_recv(NOW, &mut first, |_, _| true).expect("good");
    assert_eq!(&first[arrived.record.expect("a record")], b"first");
    for behind in [0, 1, 1 << 30] {
        let old = ahead(0_u32.wrapping_sub(behind));
        let arrived = end.handle_recv(NOW, &mut datagram(&old, b"old", None), |_, _| true);
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
    for n in 1..128 {
        let early = ahead(n);
        end.handle_recv(NOW, &mut datagram(&early, &[0; 1000], None), |_, _| true)
            .expect("good");
    }
    assert_eq!(end.counts().no_room, 127 - 4);
    // A kept record takes its room once.
    for _ in 0..100 {
        let early = ahead(1);
        end.handle_recv(NOW, &mut datagram(&early, &[1; 1000], None), |_, _| true)
            .expect("good");
    }
    assert_eq!(end.counts().repeated, 100);
    assert!(end.take(NOW, JobRank(0), Channel::Data).is_none());
    end.handle_recv(NOW, &mut datagram(&good(), b"", None), |_, _| true)
        .expect("good");
    let taken = std::iter::from_fn(|| end.take(NOW, JobRank(0), Channel::Data)).count();
    assert_eq!(taken, 4);
    let more = ahead(6);
    end.handle_recv(NOW, &mut datagram(&more, &[0; 1000], None), |_, _| true)
        .expect("good");
    assert_eq!(end.counts().no_room, 127 - 4, "room is given back");
}

/// Both kinds of seals.
fn seals() -> [Seal; 2] {
    [Seal::from_secret(b"secret"), Seal::encrypting(b"secret")]
}

/// Counts of an end with that seal that must drop all of these datagrams.
fn refused(seal: &Seal, datagrams: Vec<Vec<u8>>) -> Counts {
    let mut end = endpoint(ReliableConfig::default(), 1, 3, Some(seal));
    for mut bytes in datagrams {
        let arrived = end.handle_recv(NOW, &mut bytes, |_, _| panic!("it is accepted"));
        assert_eq!((arrived, end.poll_transmit(NOW)), (None, None));
    }
    end.counts()
}

#[test]
fn without_the_secret_nothing_is_believed() {
    for seal in seals() {
        // Of another job, of the other protection, of none.
        let others = [Seal::from_secret(b"guess"), Seal::encrypting(b"guess")];
        let wrong = seals()
            .into_iter()
            .filter(|other| other.protection() != seal.protection());
        let wrong = others.into_iter().chain(wrong).map(Some).chain([None]);
        let datagrams = wrong
            .map(|seal| datagram(&good(), b"record", seal.as_ref()))
            .collect();
        let forged = Counts {
            forged: 4,
            ..Counts::default()
        };
        assert_eq!(refused(&seal, datagrams), forged);
        let mut end = endpoint(ReliableConfig::default(), 1, 2, Some(&seal));
        let mut bytes = datagram(&good(), b"record", Some(&seal));
        let arrived = end.handle_recv(NOW, &mut bytes, |_, _| true).expect("good");
        assert_eq!(&bytes[arrived.record.expect("a record")], b"record");
        assert!(
            !format!("{end:?}").contains("115, 101"),
            "the secret is printed"
        );
    }
}

#[test]
fn a_sealed_datagram_with_any_bit_changed_is_none() {
    for seal in seals() {
        let bytes = datagram(&good(), b"record", Some(&seal));
        let bits = bytes.len() * 8;
        let changed = (0..bits).map(|bit| {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            other
        });
        let counts = refused(&seal, changed.collect());
        let dropped = counts.malformed + counts.forged + counts.strangers + counts.replayed;
        assert_eq!(dropped, bits as u64, "{counts:?}");
        // Records, codes, numbers and acknowledgements.
        assert!(counts.forged > 8 * (6 + 16 + 8 + 32 - 1), "{counts:?}");
        let shorter = (0..bytes.len()).map(|len| bytes[..len].to_vec()).collect();
        assert_eq!(refused(&seal, shorter).malformed, bytes.len() as u64);
    }
}

#[test]
fn a_replayed_datagram_is_dropped_and_answered_nothing() {
    for seal in seals() {
        let mut end = endpoint(ReliableConfig::default(), 1, 3, Some(&seal));
        let numbered = |number| Header {
            number,
            ..ahead(number as u32 - 1)
        };
        for number in [2, 1, 1200] {
            let mut bytes = datagram(&numbered(number), b"record", Some(&seal));
            assert!(end.handle_recv(NOW, &mut bytes, |_, _| true).is_some());
        }
        while end.poll_transmit(NOW).is_some() {}
        let heard = end.counts();
        // The same ones, one that was never here but may have been, and one as a new rank has.
        for number in [2, 1, 1200, 3] {
            let mut bytes = datagram(&numbered(number), b"record", Some(&seal));
            assert_eq!(end.handle_recv(NOW, &mut bytes, |_, _| true), None);
            assert_eq!(end.poll_transmit(NOW), None);
        }
        let replayed = Counts {
            replayed: 4,
            ..heard
        };
        assert_eq!(end.counts(), replayed);
        let mut fresh = datagram(&numbered(1199), b"record", Some(&seal));
        assert!(end.handle_recv(NOW, &mut fresh, |_, _| true).is_some());
    }
}

/// The header of a datagram is changed to that of another pair, direction or process, which all
/// ends know.
#[test]
fn a_datagram_of_one_pair_is_none_of_another() {
    for seal in seals() {
        let header = |from: usize, to: usize| Header {
            from: JobRank(from as u32),
            to: JobRank(to as u32),
            incarnations: [INCARNATIONS[from], INCARNATIONS[to]],
            ..good()
        };
        let moved = |from, to| {
            let mut bytes = datagram(&header(from, to), b"record", Some(&seal));
            let target = Header {
                protection: seal.protection(),
                ..good()
            };
            target.write(&mut bytes, 6);
            bytes
        };
        let datagrams = vec![moved(2, 1), moved(0, 2), moved(1, 0), moved(2, 0)];
        assert_eq!(refused(&seal, datagrams).forged, 4);
        let restarted = Header {
            incarnations: [INCARNATIONS[0] + 1, INCARNATIONS[1]],
            ..good()
        };
        let earlier = vec![datagram(&restarted, b"record", Some(&seal))];
        assert_eq!(refused(&seal, earlier).strangers, 1);
    }
}

/// A lost peer stays lost, also when it sends again.
#[test]
fn a_lost_peer_does_not_come_back() {
    let config = ReliableConfig::default();
    let mut world = World::new(config, 2, None, 0);
    let hello = |place: &mut [u8]| place.fill(1);
    world.ends[1]
        .submit(Duration::ZERO, JobRank(0), Channel::Data, 5, hello)
        .unwrap();
    world.dead[0] = true;
    world.run(config.give_up_after * 2);
    assert!(world.ends[1].lost(JobRank(0)).is_some());
    let mut bytes = datagram(&good(), b"again", None);
    let again = world.ends[1].handle_recv(world.now, &mut bytes, |_, _| true);
    assert_eq!(again, None);
    assert_eq!(world.ends[1].counts().strangers, 1);
}

proptest! {
    /// No bytes make an endpoint panic or deliver a record that is none.
    #[test]
    fn any_bytes_are_survived(
        mut datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20)
    ) {
        let mut end = target();
        for bytes in &mut datagrams {
            prop_assert_eq!(end.handle_recv(NOW, bytes, |_, _| true), None);
        }
        prop_assert_eq!(end.counts().malformed, datagrams.len() as u64);
    }

    /// Nor do headers of the right job with any numbers, before and behind good traffic.
    #[test]
    fn any_numbers_are_survived(
        headers in prop::collection::vec(
            (1_u8..=4, 0_usize..8, any::<u32>(), -300_i32..300, -300_i32..300, any::<u128>(), 0_usize..200),
            1..60,
        ),
        near: bool,
        records in 0_u64..40,
    ) {
        let mut end = target();
        for n in 0..records {
            let channel = Channel::BOTH[(n % 2) as usize];
            if end.room(JobRank(0), channel) {
                end.submit(NOW, JobRank(0), channel, 300, |_| {}).unwrap();
            }
        }
        let mut now = NOW;
        let mut delivered = 0;
        for (kind, flags, wild, seq, ack, selective, len) in headers {
            let kind = Kind::try_from(kind).unwrap();
            let wild = if near { 0 } else { wild };
            let numbers = Numbers {
                seq: FIRST.seq.plus(seq as u32).plus(wild),
                ack: FIRST.ack.plus(ack as u32).plus(wild),
            };
            let other = Numbers {
                seq: FIRST.seq.plus(ack as u32),
                ack: FIRST.ack.plus(seq.rem_euclid(3) as u32),
            };
            let channel = Channel::BOTH[flags & 1];
            let mut header = Header {
                kind,
                channel,
                numbers: [other; 2],
                partial: [flags & 2 != 0, flags & 4 != 0],
                selective: if near { selective & 0xff } else { selective },
                ..good()
            };
            header.numbers[channel.index()] = numbers;
            let named = [0, 1, 255][ack.rem_euclid(3) as usize];
            let record = vec![if kind == Kind::Data { 0 } else { named }; len];
            let mut bytes = datagram(&header, &record, None);
            if let Some(arrived) = end.handle_recv(now, &mut bytes, |_, _| seq % 3 != 0)
                && let Some(range) = arrived.record
            {
                prop_assert_eq!((arrived.channel, range.len()), (channel, len));
                delivered += 1;
            }
            for channel in Channel::BOTH {
                while let Some(record) = end.take(now, JobRank(0), channel) {
                    end.recycle(record);
                    delivered += 1;
                }
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
