//! Payloads that are written where the conduit says: prepare, then commit or cancel.

use super::{Case, always, lengths};
use crate::bench::{Bench, Want};
use crate::log::NOTE;
use crate::mail::Mail;
use crate::rig::Rig;
use argonet_am::MessageClass;
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::{Conduit, PrepareRequest, Prepared, SendError};

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    vec![
        always(
            "prepared_mediums_of_every_length",
            prepared_mediums_of_every_length,
        ),
        always(
            "prepared_longs_of_every_length",
            prepared_longs_of_every_length,
        ),
        always("a_commit_may_be_smaller", a_commit_may_be_smaller),
        always("canceling_gives_room_back", canceling_gives_room_back),
        always("several_prepared_at_once", several_prepared_at_once),
        always("prepared_in_a_flood", prepared_in_a_flood),
    ]
}

/// The payload that is asked for.
#[derive(Clone, Copy)]
struct Shape {
    nargs: usize,
    least: usize,
    most: usize,
    offset: Option<u64>,
}

impl Shape {
    fn medium(nargs: usize, least: usize, most: usize) -> Self {
        Self {
            nargs,
            least,
            most,
            offset: None,
        }
    }

    fn want(&self, to: u32) -> PrepareRequest {
        PrepareRequest {
            to: JobRank(to),
            class: MessageClass::Request,
            nargs: self.nargs,
            least: self.least,
            most: self.most,
            offset: self.offset.map(SegmentOffset),
        }
    }
}

/// Tries once, and looks at the prepared payload.
fn try_prepare<R: Rig>(bench: &mut Bench<R>, to: u32, shape: Shape) -> Option<Prepared> {
    match bench.at(0).prepare(&shape.want(to)) {
        Ok(prepared) => {
            let range = shape.least..=shape.most;
            assert!(
                range.contains(&prepared.capacity()),
                "{} of {range:?}",
                prepared.capacity()
            );
            assert_eq!(
                (prepared.to(), prepared.nargs()),
                (JobRank(to), shape.nargs)
            );
            Some(prepared)
        }
        Err(SendError::Full) => None,
        Err(error) => bench.fail(&error.to_string()),
    }
}

fn prepare<R: Rig>(bench: &mut Bench<R>, to: u32, shape: Shape) -> Prepared {
    let mut prepared = None;
    bench.until("room to prepare", |bench| {
        prepared = try_prepare(bench, to, shape);
        prepared.is_some()
    });
    prepared.unwrap_or_else(|| bench.fail("nothing was prepared"))
}

/// Writes the payload of a message into its place and sends it from rank 0.
fn commit<R: Rig>(bench: &mut Bench<R>, mut prepared: Prepared, mail: Mail) {
    let (to, bytes) = (prepared.to().0, mail.payload());
    // SAFETY: the bench keeps the conduit.
    let mut buffer = unsafe { prepared.buffer() };
    let written = buffer.copy_from(0, &bytes);
    assert!(
        written.is_ok(),
        "{} bytes into {}",
        bytes.len(),
        buffer.len()
    );
    bench
        .at(0)
        .commit(prepared, NOTE, &mail.arguments(), bytes.len());
    bench.owe(0, to, mail);
}

fn prepared_mediums_of_every_length<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let max = bench.at(0).limits().medium_request;
    for (tag, len) in lengths(&bench.promises, max).into_iter().enumerate() {
        for nargs in [1, 2, 3, 16] {
            for (least, most) in [(len, len), (0, len), (len, max), (0, max)] {
                let prepared = prepare(&mut bench, 1, Shape::medium(nargs, least, most));
                let len = len.min(prepared.capacity());
                commit(
                    &mut bench,
                    prepared,
                    Mail::note(tag as u32).args(nargs).medium(len),
                );
            }
        }
    }
    bench.account();
}

fn prepared_longs_of_every_length<R: Rig>(rig: &R) {
    const PLACE: u64 = 65;
    let mut bench = Bench::new(rig, Want::ranks(2));
    let max = bench.at(0).limits().long.min(200_000);
    for (tag, len) in lengths(&bench.promises, max).into_iter().enumerate() {
        let around = vec![0xa5; len + 128];
        bench.write(1, PLACE - 64, &around);
        let shape = Shape {
            nargs: 3,
            least: len,
            most: len,
            offset: Some(PLACE),
        };
        let prepared = prepare(&mut bench, 1, shape);
        assert_eq!(prepared.offset(), Some(SegmentOffset(PLACE)));
        let mail = Mail::note(tag as u32).args(3).long(len, PLACE);
        commit(&mut bench, prepared, mail);
        bench.until("it is here", |bench| bench.all_here());
        bench.compare();
        bench.forget();
        let now = bench.read(1, PLACE - 64, around.len());
        assert!(
            now[..64] == around[..64] && now[64 + len..] == around[..64],
            "{len} bytes"
        );
        assert!(now[64..64 + len] == mail.payload(), "{len} bytes");
    }
    bench.account();
}

/// A commit has fewer bytes than were prepared, down to none.
fn a_commit_may_be_smaller<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let max = bench.at(0).limits().medium_request;
    let mut tag = 0;
    for most in [1, 15, 16, 17, 500, max] {
        for len in [0, 1, most / 2, most - 1] {
            for offset in [None, Some(1000)] {
                tag += 1;
                let shape = Shape {
                    nargs: 1,
                    least: most.min(1),
                    most,
                    offset,
                };
                let prepared = prepare(&mut bench, 1, shape);
                let len = len.min(prepared.capacity());
                let mail = Mail::note(tag);
                let mail = match offset {
                    None => mail.medium(len),
                    Some(offset) => mail.long(len, offset),
                };
                commit(&mut bench, prepared, mail);
                // A long is read where it lies, before the next one goes there.
                bench.until("it is here", |bench| bench.all_here());
                bench.send(0, 1, Mail::note(tag).args(5));
            }
        }
    }
    bench.account();
}

/// Far more is canceled than there can be room for; nothing of it arrives, all else does.
fn canceling_gives_room_back<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2).cramped());
    let max = bench.at(0).limits().medium_request;
    for round in 0..400 {
        for shape in [
            Shape::medium(16, max, max),
            Shape::medium(0, 0, round),
            Shape {
                nargs: 2,
                least: 64,
                most: 64,
                offset: Some(8),
            },
        ] {
            let prepared = prepare(&mut bench, 1, shape);
            bench.at(0).cancel(prepared);
        }
        if round % 7 == 0 {
            bench.send(0, 1, Mail::note(round as u32).medium(round).echo());
        }
    }
    bench.account();
    bench.send(0, 1, Mail::note(1).medium(max));
    bench.account();
}

/// As threads do: several are open at once, and are committed and canceled in another order.
fn several_prepared_at_once<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(3));
    // Their order among each other and with other messages is the conduit's affair.
    bench.promises.ordered = false;
    for round in 0..50 {
        let mut open = Vec::new();
        for (n, to) in [1, 2, 1, 1, 2].into_iter().enumerate() {
            let tag = 8 * round + n as u32;
            let offset = (n == 2).then_some(64 * u64::from(tag));
            let shape = Shape {
                nargs: 1,
                least: 40,
                most: 50,
                offset,
            };
            open.extend(try_prepare(&mut bench, to, shape).map(|prepared| (prepared, tag, offset)));
        }
        // Others still send, and their messages arrive once those before them are there.
        let _ = bench.try_send(0, 1, Mail::note(8 * round + 7));
        let at = round as usize % open.len().max(1);
        open.rotate_left(at);
        for (i, (prepared, tag, offset)) in open.into_iter().enumerate() {
            if i == 3 {
                bench.at(0).cancel(prepared);
                continue;
            }
            let mail = Mail::note(tag);
            let mail = offset.map_or(mail.medium(40), |offset| mail.long(40, offset));
            commit(&mut bench, prepared, mail);
        }
        bench.until("all of a round are here", |bench| bench.all_here());
    }
    bench.account();
}

/// Prepares until there is no room, among other messages; least is given where most is not.
fn prepared_in_a_flood<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2).cramped());
    let max = bench.at(0).limits().medium_request;
    for round in 0..20 {
        let mut tag = 0;
        bench.fill(0, 1, |n| Mail::note(n).medium(max / 2));
        let shape = Shape::medium(1, 16 + round, max);
        while let Some(prepared) = try_prepare(&mut bench, 1, shape) {
            let len = prepared.capacity().min(100);
            commit(&mut bench, prepared, Mail::note(tag).medium(len));
            tag += 1;
        }
        bench.account();
        bench.forget();
    }
}
