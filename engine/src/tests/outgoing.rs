//! Answers in parts: when they are sent, and when nothing is left of them.

use super::post::{MEDIUM, job, until};
use super::*;
use crate::internal::RPC_RESULT_PART;
use crate::outgoing::{InParts, Outgoing};
use std::cell::RefCell;

thread_local! {
    /// The parts that ranks of this thread have got.
    static GOT: RefCell<Vec<(Vec<u32>, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what a handler of a part gets.
pub(super) fn got(delivery: &mut argonet_am::Delivery<'_>) {
    let part = (delivery.args().to_vec(), delivery.payload().to_vec());
    GOT.with_borrow_mut(|parts| parts.push(part));
}

/// The bytes of the answer with that first argument, put together by their offsets.
fn answer(first: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    GOT.with_borrow(|parts| {
        let mut own: Vec<_> = parts.iter().filter(|(args, _)| args[0] == first).collect();
        own.sort_by_key(|(args, _)| args[1]);
        for (args, part) in own {
            assert_eq!((args[1] as usize, args[2]), (bytes.len(), 0));
            bytes.extend_from_slice(part);
        }
    });
    bytes
}

#[test]
fn nothing_is_left_when_the_last_part_is_gone() {
    // A box has room for two parts, and is emptied by its owner alone.
    let ranks = job(2, 2, ThreadMode::Seq);
    let engine = &ranks[0].engine;
    let outgoing = Outgoing::new(&engine.background);
    let sent: Vec<u8> = (0..5 * MEDIUM + 7).map(|i| i as u8).collect();
    assert!(engine.nothing_is_left());
    outgoing.add(InParts::new(
        JobRank(1),
        RPC_RESULT_PART,
        &[9],
        sent.clone(),
    ));
    assert!(!engine.nothing_is_left());
    for left in (1..=2).rev() {
        assert_eq!(ranks[0].poll(), 2);
        // There is no room, so nothing is sent and the thread does not sleep for long.
        assert_eq!(ranks[0].poll(), 0);
        assert!(
            engine.background.is_stuck() && !engine.nothing_is_left(),
            "{left}"
        );
        while ranks[1].poll() > 0 {}
    }
    assert_eq!(ranks[0].poll(), 2);
    assert!(engine.nothing_is_left());
    assert_eq!(engine.background.pending(), 0);
    while ranks[1].poll() > 0 {}
    assert_eq!(answer(9), sent);
}

#[test]
fn no_rank_waits_for_the_answers_of_others() {
    let ranks = job(3, 100, ThreadMode::Seq);
    let outgoing = Outgoing::new(&ranks[0].engine.background);
    let long = vec![1; 400 * MEDIUM];
    outgoing.add(InParts::new(
        JobRank(1),
        RPC_RESULT_PART,
        &[1],
        long.clone(),
    ));
    outgoing.add(InParts::new(JobRank(1), RPC_RESULT_PART, &[2], vec![2; 3]));
    outgoing.add(InParts::new(JobRank(2), RPC_RESULT_PART, &[3], vec![3; 3]));
    // One poll sends a limited number, and the next begins with the next rank.
    assert_eq!([ranks[0].poll(), ranks[0].poll()], [16, 16]);
    assert_eq!(ranks[2].poll(), 1);
    assert_eq!(answer(3), [3; 3]);
    until(&ranks, || {
        ranks[0].engine.nothing_is_left() && answer(2) == [2; 3]
    });
    until(&ranks, || {
        ranks.iter().all(|rank| !rank.engine.conduit.has_work())
    });
    assert_eq!(answer(1), long);
}
