//! Ranks that end while others go on.

use super::{Case, always};
use crate::bench::{Bench, Want};
use crate::mail::Mail;
use crate::rig::Rig;
use argonet_base::JobRank;
use argonet_conduit::SendError;

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    vec![
        always("ranks_end_in_any_order", ranks_end_in_any_order),
        always("sends_to_an_ended_rank_fail", sends_to_an_ended_rank_fail),
        Case {
            name: "messages_sent_before_the_end_arrive",
            applies: |promises| promises.outlives_sender,
            run: messages_sent_before_the_end_arrive,
        },
    ]
}

/// Sends without an entry in the account; full or refused is all the same.
fn drop_into<R: Rig>(bench: &Bench<R>, from: u32, to: u32, mail: Mail) -> bool {
    mail.try_send(bench.at(from), JobRank(to)).is_ok()
}

/// Ranks end with messages and replies under way in all directions; the ranks left go on.
fn ranks_end_in_any_order<R: Rig>(rig: &R) {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut bench = Bench::new(rig, Want::ranks(3));
        for tag in 0..50 {
            for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2), (1, 1)] {
                drop_into(&bench, from, to, Mail::note(tag).medium(200).asks_short());
            }
            if tag % 16 == 7 {
                bench.poll(tag % 3);
            }
        }
        let mut left = vec![0, 1, 2];
        for rank in order {
            bench.end(rank);
            left.retain(|&other| other != rank);
            // The ranks left still send to themselves, to each other, and to the one that has
            // ended.
            let old: usize = left
                .iter()
                .map(|&rank| bench.logs[rank as usize].count())
                .sum();
            for tag in 0..20 {
                for &from in &left {
                    drop_into(&bench, from, rank, Mail::note(tag).asks_short());
                    let to = left[tag as usize % left.len()];
                    bench.until_among(&left, "the remaining ranks have room", |bench| {
                        drop_into(bench, from, to, Mail::note(1000 + tag))
                    });
                }
            }
            let due = 20 * left.len();
            bench.until_among(&left, "the remaining ranks hear each other", |bench| {
                let logs = left.iter().map(|&rank| &bench.logs[rank as usize]);
                let entries = logs.flat_map(|log| log.requests.iter().flatten());
                entries.filter(|entry| entry.tag >= 1000).count() >= due
            });
            let now: usize = left
                .iter()
                .map(|&rank| bench.logs[rank as usize].count())
                .sum();
            assert!(now >= old + due, "{now} after {old}");
            for &rank in &left {
                bench.logs[rank as usize]
                    .requests
                    .iter_mut()
                    .for_each(Vec::clear);
            }
        }
    }
}

/// Sends to an ended rank end with no room or an error, and the third rank does not suffer.
fn sends_to_an_ended_rank_fail<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(3).cramped());
    bench.end(1);
    let mut tag = 0;
    loop {
        match Mail::note(tag).medium(64).try_send(bench.at(0), JobRank(1)) {
            Ok(()) => tag += 1,
            Err(SendError::Full | SendError::Message(_)) => break,
            Err(error) => bench.fail(&error.to_string()),
        }
        bench.poll(0);
        assert!(tag < 1 << 20, "an ended rank takes messages without end");
    }
    for tag in 0..100 {
        bench.send(0, 2, Mail::note(tag).medium(300).echo());
        bench.send(2, 0, Mail::note(tag).asks_short());
    }
    bench.until_among(&[0, 2], "the others hear each other", |bench| {
        bench.all_here()
    });
    bench.compare();
}

/// The ended rank's messages are handled; replies to it go nowhere.
fn messages_sent_before_the_end_arrive<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2).calm());
    for tag in 0..100 {
        bench.send(0, 1, Mail::note(tag).medium(tag as usize));
        bench.send(0, 1, Mail::note(tag).args(9));
    }
    let due = bench.logs[1].requests[0].len();
    assert!(due <= 200);
    bench.end(0);
    bench.until_among(&[1], "all that it had sent", |bench| bench.all_here());
    bench.compare();
    assert_eq!(bench.logs[1].requests[0].len(), 200);
}
