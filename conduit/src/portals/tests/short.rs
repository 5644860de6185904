//! Interfaces whose messages are short: payloads go in parts.

use super::super::config::LARGE_BYTES;
use super::super::wire::{Piece, operation};
use super::super::{
    Buffers, Portals, PortalsConfig, PortalsError, PortalsSizes, SHORTEST_MESSAGE, portals4_config,
    roles, software_config,
};
use super::{NOTE, SEGMENT};
use crate::conduit::{Completion, Conduit, Injected, OpToken, SendError, Sink};
use crate::threads::ThreadMode;
use argonet_am::record::RecordError;
use argonet_am::{
    AmError, Delivery, HandlerTable, MAX_ARGS, MAX_CARRIED, MAX_MEDIUM, Message, Payload,
};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_nic::portals as nic;
use argonet_nic::portals::portals4::Narrow;
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_nic::portals::{Ack, Descriptor, PortalIndex, Portals as _, Target};
use argonet_segment::{Directory, OwnSegment, PageKind, Resolver, SegmentFile, SharedBytes};
use core::ptr::NonNull;
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;

/// Its payload goes back.
const ECHO: HandlerIndex = HandlerIndex(129);

/// Polls in which all that is under way arrives.
const MANY: usize = 1_000_000;

struct Rank {
    portals: Portals<Narrow>,
    _segment: OwnSegment,
}

/// Source, arguments and payload of a message that has come.
#[derive(Default)]
struct Log {
    came: Vec<(u32, Vec<u32>, Vec<u8>)>,
    completed: usize,
    broken: Vec<AmError>,
}

impl Sink for Log {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        let (args, bytes) = (delivery.args(), delivery.payload().to_vec());
        if delivery.handler() == ECHO {
            let echo = medium(NOTE, &args[..args.len().min(MAX_ARGS)], &bytes);
            delivery.reply(&echo).unwrap();
        }
        self.came.push((delivery.source().0, args.to_vec(), bytes));
    }

    fn completed(&mut self, _op: OpToken, _part: Completion) {
        self.completed += 1;
    }

    fn on_error(&mut self, error: AmError) {
        self.broken.push(error);
    }
}

fn medium<'a>(handler: HandlerIndex, args: &'a [u32], bytes: &'a [u8]) -> Message<'a> {
    Message {
        handler,
        args,
        payload: Payload::Medium(SharedBytes::from_slice(bytes)),
    }
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 7 + at / 251 + seed) as u8)
        .collect()
}

fn job(ranks: u32, sizes: PortalsSizes, message_bytes: u64) -> Result<Vec<Rank>, PortalsError> {
    let segments = SegmentFile::create(ranks, SEGMENT, PageKind::Normal).unwrap();
    let segments = segments.into_fd();
    let interfaces = memfd_create("interfaces", MemfdFlags::CLOEXEC).unwrap();
    let software = SoftwareConfig {
        queue_events: portals4_config(&sizes, ranks).unwrap().queue_events,
        ..software_config(&sizes, JobRank(0), ranks).unwrap()
    };
    let mut table = HandlerTable::default();
    for (handler, name) in [(NOTE, "note"), (ECHO, "echo")] {
        let handled = Box::new(|_: &mut Delivery<'_>| {});
        table.register_at(handler, name, handled).unwrap();
    }
    let start = |rank| {
        let fd = segments.try_clone().unwrap();
        let file = SegmentFile::from_fd(fd, ranks, SEGMENT, PageKind::Normal).unwrap();
        let directory = Directory::new(file, rank).unwrap();
        let segment = OwnSegment::attach(&directory, SEGMENT).unwrap();
        let resolver = Resolver::new(Arc::clone(&directory));
        let (file, faults) = (interfaces.as_fd(), FaultRules::default());
        let nic = Software::new(file, software, rank, Some(resolver), faults).unwrap();
        let (start, len_bytes) = nic.buffers();
        let config = PortalsConfig {
            rank,
            ranks,
            mode: ThreadMode::Seq,
            sizes,
            reached: Arc::clone(&directory),
            directory,
            registered: table.registered(),
            segment_len: Arc::new(|_| SEGMENT),
        };
        let nic = Narrow::new(nic, message_bytes);
        // SAFETY: the buffers are mapped as long as the interface, which the conduit owns, and no
        // other code uses them.
        let portals = unsafe { Portals::new(nic, Buffers { start, len_bytes }, config) }?;
        Ok(Rank {
            portals,
            _segment: segment,
        })
    };
    (0..ranks).map(JobRank).map(start).collect()
}

/// Polls everybody until something is so.
fn poll_until(ranks: &[Rank], logs: &mut [Log], so: impl Fn(&[Log]) -> bool) {
    for _ in 0..MANY {
        if so(logs) {
            return;
        }
        for (rank, log) in ranks.iter().zip(&mut *logs) {
            rank.portals.poll_with(log);
        }
    }
    panic!("it never comes to this");
}

fn logs(ranks: &[Rank]) -> Vec<Log> {
    ranks.iter().map(|_| Log::default()).collect()
}

#[test]
fn an_interface_with_shorter_messages_than_arguments_need_is_refused() {
    let refused = job(2, PortalsSizes::default(), SHORTEST_MESSAGE - 1);
    let Err(error @ PortalsError::Messages { .. }) = refused.map(drop) else {
        panic!("it is refused");
    };
    let text = error.to_string();
    for part in ["rank 0", "511 bytes", "512", "ARGONET_PORTALS_MESSAGE"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn mediums_of_all_lengths_and_their_replies_go_in_the_shortest_messages() {
    // The second has parts that end within a line.
    for message_bytes in [SHORTEST_MESSAGE, SHORTEST_MESSAGE + 33] {
        let ranks = job(2, PortalsSizes::smallest(), message_bytes).unwrap();
        let mut logs = logs(&ranks);
        let args: Vec<u32> = (0..MAX_CARRIED as u32).collect();
        let lens = [
            0, 1, 428, 500, 512, 545, 1000, 1024, 1025, 4096, 65_000, MAX_MEDIUM,
        ];
        for (seed, len) in lens.into_iter().enumerate() {
            let bytes = bytes(len, seed);
            for args in [&args[..], &args[..1]] {
                let message = medium(ECHO, args, &bytes);
                let sent = ranks[0].portals.request(JobRank(1), &message);
                assert_eq!(sent, Ok(()), "all before was answered");
                poll_until(&ranks, &mut logs, |logs| !logs[0].came.is_empty());
                poll_until(&ranks, &mut logs, |_| {
                    ranks.iter().all(|rank| rank.portals.in_use().is_nothing())
                });
                let answer = &args[..args.len().min(MAX_ARGS)];
                for (log, (from, args)) in logs.iter_mut().zip([(1, answer), (0, args)]) {
                    assert_eq!(log.broken, []);
                    let came = core::mem::take(&mut log.came);
                    assert!(
                        came == [(from, args.to_vec(), bytes.clone())],
                        "{len} bytes"
                    );
                }
            }
        }
    }
}

/// Each part has an event, and no credit pays for one.
#[test]
fn parts_for_a_target_that_does_not_poll_lose_no_event() {
    let sizes = PortalsSizes::smallest();
    let ranks = job(5, sizes, SHORTEST_MESSAGE).unwrap();
    let mut logs = logs(&ranks);
    let bytes = bytes(MAX_MEDIUM, 1);
    for rank in &ranks[1..] {
        let sent = rank.portals.request(JobRank(0), &medium(NOTE, &[], &bytes));
        assert_eq!(sent, Ok(()));
    }
    // Until no part finds room.
    for _ in 0..10_000 {
        for (rank, log) in ranks.iter().zip(&mut logs).skip(1) {
            rank.portals.poll_with(log);
        }
    }
    let matched = |rank: &Rank| rank.portals.nic.status(nic::Register::Matched);
    let matched: u64 = ranks[1..].iter().map(matched).sum();
    let parts = LARGE_BYTES as u64 / SHORTEST_MESSAGE;
    assert!(matched > 2 * parts, "{matched} matched");
    poll_until(&ranks, &mut logs, |logs| logs[0].came.len() == 4);
    for log in &logs {
        assert_eq!(log.broken, []);
    }
    for (_, _, came) in &logs[0].came {
        assert!(*came == bytes);
    }
}

/// Chunks are held until requests are answered, also by a peer that does not poll.
#[test]
fn small_puts_and_gets_need_no_chunk() {
    const PUTS: usize = 4;
    let smallest = PortalsSizes::smallest();
    let sizes = PortalsSizes {
        messages: smallest.messages + PUTS as u32 + 1,
        temporaries: 2 * PUTS as u32,
        ..smallest
    };
    let ranks = job(3, sizes, SHORTEST_MESSAGE).unwrap();
    let [here, _, there] = [0, 1, 2].map(|rank| &ranks[rank].portals);
    let held: Vec<u32> = core::iter::from_fn(|| here.send_chunks.free.take()).collect();
    let mut log = Log::default();
    let mut source = [0; 8];
    let (own, target) = (here.own(0, 8).unwrap(), there.own(0, 8 * PUTS).unwrap());
    for n in 0..PUTS as u8 {
        source.fill(n + 1);
        let at = SegmentOffset(8 * u64::from(n));
        // SAFETY: the bytes outlive the call, and a small put reads them only during it.
        let put = unsafe { here.put(JobRank(2), at, source.as_ptr(), 8, super::TOKEN) };
        assert_eq!(put, Ok(Injected::Local), "put {n}");
        source.fill(0xee);
    }
    // SAFETY: the segment outlives the operation, which ends before this test does.
    let get = unsafe { here.get(JobRank(2), SegmentOffset(8), own.as_ptr(), 8, super::TOKEN) };
    assert_eq!(get, Ok(Injected::Pending));
    for _ in 0..MANY {
        here.poll_with(&mut log);
        if log.completed == PUTS + 1 {
            break;
        }
    }
    assert_eq!((log.completed, log.broken), (PUTS + 1, vec![]));
    // SAFETY: no rank writes there any more.
    let seen = unsafe { std::slice::from_raw_parts(target.as_ptr(), 8 * PUTS) };
    let whole: Vec<u8> = (1..=PUTS as u8).flat_map(|n| [n; 8]).collect();
    assert_eq!(seen, whole);
    for chunk in held {
        here.send_chunks.free.give(chunk);
    }
    assert!(here.in_use().is_nothing());
}

#[test]
fn parts_that_a_peer_makes_up_are_reported_and_the_next_payload_is_whole() {
    let ranks = job(2, PortalsSizes::default(), SHORTEST_MESSAGE).unwrap();
    let mut logs = logs(&ranks);
    let bad = bytes(128, 3);
    let interface = &ranks[1].portals.nic;
    // SAFETY: the bytes outlive the job, and are only read.
    let bound = unsafe {
        let start = NonNull::from(&bad[..]).cast();
        interface.bind(start, 128, Descriptor::SILENT).unwrap()
    };
    let piece = |total, offset| Piece { total, offset }.header();
    let headers = [
        piece(0, 0),
        piece(100, 0),
        piece(LARGE_BYTES + 1, 0),
        piece(1024, 512),
        piece(1024, 1000),
        u64::MAX,
    ];
    for portal in [roles::LARGE_REQUESTS, roles::LARGE_REPLIES] {
        for header in headers {
            let part = nic::Part {
                offset_bytes: 0,
                len_bytes: 128,
            };
            let target = Target {
                rank: JobRank(0),
                portal: PortalIndex(portal.0),
                bits: operation(0, 5),
                offset_bytes: 0,
            };
            let put = interface.put_region(bound, part, Ack::None, target, header);
            put.unwrap();
            poll_until(&ranks, &mut logs, |logs| !logs[0].broken.is_empty());
            let reported = core::mem::take(&mut logs[0].broken);
            let [AmError::Broken { at, from, cause }] = &reported[..] else {
                panic!("{header:#x}: {reported:?}");
            };
            assert_eq!((*at, *from), (JobRank(0), JobRank(1)));
            let is_of_a_part = matches!(
                cause,
                RecordError::Payload { .. } | RecordError::Account { .. }
            );
            assert!(is_of_a_part, "{header:#x}: {cause:?}");
        }
    }
    let bytes = bytes(MAX_MEDIUM, 9);
    let send = || {
        ranks[1]
            .portals
            .request(JobRank(0), &medium(ECHO, &[], &bytes))
    };
    assert_ne!(send(), Err(SendError::Full));
    poll_until(&ranks, &mut logs, |logs| logs[1].came.len() == 1);
    assert!(logs[0].came == [(1, vec![], bytes.clone())]);
    assert!(logs[1].came == [(0, vec![], bytes.clone())]);
    assert_eq!(ranks[0].portals.in_use().received, 0);
}
