//! Questions, answers and the end of a job, over a network that loses, repeats and delays.

use super::*;
use crate::credit::{Return, Revoke};
use core::time::Duration;
use proptest::prelude::*;

const RESEND: Duration = Duration::from_millis(1);
const NOW: Duration = Duration::ZERO;

fn revoke(wanted: u16) -> Question {
    Question::Revoke(Revoke {
        epoch: false,
        wanted,
    })
}

fn give(count: u16) -> Answer {
    Answer::Return(Return { epoch: true, count })
}

// spec P12: one question a peer at a time, each answered.
#[test]
fn a_second_question_waits_for_the_first_answer() {
    let (mut asker, mut other) = (SystemQueue::new(RESEND), SystemQueue::new(RESEND));
    let (mut slot, mut there) = (Slot::default(), Slot::default());
    let asked = asker.ask(NOW, 1, &mut slot, revoke(7)).unwrap();
    assert!(slot.is_busy());
    assert_eq!(asker.ask(NOW, 1, &mut slot, revoke(9)), None);
    assert!(!slot.has_exit_waiting());
    assert_eq!(asker.ask(NOW, 1, &mut slot, Question::Exit(4)), None);
    // The code that was given last counts.
    assert_eq!(asker.ask(NOW, 1, &mut slot, Question::Exit(3)), None);
    assert!(slot.has_exit_waiting());
    let heard = other.handle_recv(NOW, 0, &mut there, asked).unwrap();
    assert_eq!(heard, Heard::Question(revoke(7)));
    let answer = SystemQueue::answer(&mut there, give(5));
    // The exit that had waited follows; the second revoke does not.
    let next = asker.handle_recv(NOW, 1, &mut slot, answer).unwrap();
    let Heard::AnsweredAndNext(got, exit) = next else {
        panic!("{next:?}")
    };
    assert_eq!(got, give(5));
    assert_eq!(
        other.handle_recv(NOW, 0, &mut there, exit),
        Ok(Heard::Question(Question::Exit(3)))
    );
    assert!(there.knows_of_exit() && !slot.knows_of_exit());
    assert!(!slot.has_exit_waiting() && slot.is_busy());
    let answer = SystemQueue::answer(&mut there, Answer::Exiting);
    assert_eq!(
        asker.handle_recv(NOW, 1, &mut slot, answer),
        Ok(Heard::Answered(Answer::Exiting))
    );
    assert!(slot.knows_of_exit() && !slot.is_busy());
    assert_eq!((asker.open(), other.open()), (0, 0));
}

#[test]
fn repeated_questions_are_carried_out_once_and_answered_again() {
    let (mut asker, mut other) = (SystemQueue::new(RESEND), SystemQueue::new(RESEND));
    let (mut slot, mut there) = (Slot::default(), Slot::default());
    let asked = asker.ask(NOW, 1, &mut slot, revoke(7)).unwrap();
    assert_eq!(asker.poll_timeout(), Some(RESEND));
    let mut sent = Vec::new();
    asker.handle_timeout(RESEND / 2, |_, frame| sent.push(frame));
    assert_eq!((sent.len(), asker.resent()), (0, 0));
    asker.handle_timeout(RESEND, |peer, frame| {
        sent.push(Frame(frame.0 + u64::from(peer) - 1))
    });
    assert_eq!((sent, asker.resent()), (vec![asked], 1));
    other.handle_recv(NOW, 0, &mut there, asked).unwrap();
    let stale = other.handle_recv(NOW, 0, &mut there, asked).unwrap();
    assert_eq!(stale, Heard::Stale, "it is being carried out");
    let answer = SystemQueue::answer(&mut there, give(5));
    assert_eq!(
        other.handle_recv(NOW, 0, &mut there, asked),
        Ok(Heard::Repeated(answer))
    );
    asker.handle_recv(NOW, 1, &mut slot, answer).unwrap();
    assert_eq!(
        asker.handle_recv(NOW, 1, &mut slot, answer),
        Ok(Heard::Stale)
    );
    assert_eq!(asker.poll_timeout(), None);
    asker.ask(NOW, 1, &mut slot, revoke(1)).unwrap();
    asker.forget(1, &mut slot);
    assert!(asker.poll_timeout().is_none() && !slot.is_busy());
}

#[test]
fn a_repeated_question_gets_the_answer_that_was_given() {
    let plain = Answer::Return(Return {
        epoch: false,
        count: 0x8001,
    });
    let mut asker = SystemQueue::new(NOW);
    for (question, answer) in [
        (revoke(7), give(u16::MAX)),
        (revoke(7), plain),
        (Question::Exit(3), Answer::Exiting),
    ] {
        let mut other = SystemQueue::new(NOW);
        let (mut slot, mut there) = (Slot::default(), Slot::default());
        let asked = asker.ask(NOW, 1, &mut slot, question).unwrap();
        // This side has a question of its own, behind which an exit waits.
        let own = other.ask(NOW, 0, &mut there, revoke(1)).unwrap();
        assert_eq!(other.ask(NOW, 0, &mut there, Question::Exit(0xab)), None);
        other.handle_recv(NOW, 0, &mut there, asked).unwrap();
        let first = SystemQueue::answer(&mut there, answer);
        let again = other.handle_recv(NOW, 0, &mut there, asked);
        assert_eq!(again, Ok(Heard::Repeated(first)));
        assert_eq!(
            asker.handle_recv(NOW, 1, &mut slot, first),
            Ok(Heard::Answered(answer))
        );
        asker.handle_recv(NOW, 1, &mut slot, own).unwrap();
        let returned = SystemQueue::answer(&mut slot, give(1));
        let next = other.handle_recv(NOW, 0, &mut there, returned);
        let Ok(Heard::AnsweredAndNext(_, exit)) = next else {
            panic!("{next:?}")
        };
        assert_eq!(
            asker.handle_recv(NOW, 1, &mut slot, exit),
            Ok(Heard::Question(Question::Exit(0xab))),
            "its code has survived the answers"
        );
    }
}

#[test]
fn the_first_question_has_the_first_number() {
    let (mut asker, mut slot) = (SystemQueue::new(NOW), Slot::default());
    let asked = asker.ask(NOW, 1, &mut slot, revoke(7)).unwrap();
    for sequence in [0, 2, 255] {
        let (mut other, mut there) = (SystemQueue::new(NOW), Slot::default());
        let frame = Frame(asked.0 & !(0xff << 48) | sequence << 48);
        let heard = other.handle_recv(NOW, 0, &mut there, frame);
        assert_eq!(heard, Ok(Heard::Stale), "{sequence}");
        let heard = other.handle_recv(NOW, 0, &mut there, asked);
        assert_eq!(heard, Ok(Heard::Question(revoke(7))));
    }
}

#[test]
fn malformed_frames_are_refused() {
    let (mut queue, mut slot) = (SystemQueue::new(NOW), Slot::default());
    for word in [
        0,
        3 << 56,
        1 << 56 | 2 << 40,
        1 << 56 | 1 << 32,
        1 << 56 | 0x1_0000,
        2 << 56 | 256,
        2 << 56 | 1 << 40,
        0x82 << 56 | 1,
    ] {
        let refused = queue.handle_recv(NOW, 1, &mut slot, Frame(word));
        let error = refused.unwrap_err();
        let unknown = matches!(word >> 56, 0 | 3);
        assert_eq!(error.what == "unknown kind", unknown, "{word:#x}: {error}");
    }
    let asked = queue.ask(NOW, 1, &mut slot, revoke(7)).unwrap();
    let wrong = Frame(asked.0 & (0xff << 48) | 0x82 << 56);
    let refused = queue.handle_recv(NOW, 1, &mut slot, wrong).unwrap_err();
    assert!(refused.to_string().contains("another kind"), "{refused}");
    assert!(slot.is_busy());
}

#[test]
fn sequences_begin_again_after_255() {
    let (mut asker, mut other) = (SystemQueue::new(NOW), SystemQueue::new(NOW));
    let (mut slot, mut there) = (Slot::default(), Slot::default());
    for n in 0..1000 {
        let asked = asker.ask(NOW, 1, &mut slot, revoke(n)).unwrap();
        let heard = other.handle_recv(NOW, 0, &mut there, asked);
        assert_eq!(heard, Ok(Heard::Question(revoke(n))));
        let answer = SystemQueue::answer(&mut there, give(n));
        let heard = asker.handle_recv(NOW, 1, &mut slot, answer);
        assert_eq!(heard, Ok(Heard::Answered(give(n))));
    }
}

/// Ranks that end, over a network that the test plays.
struct Job {
    queues: Vec<SystemQueue>,
    slots: Vec<Vec<Slot>>,
    ends: Vec<Shutdown>,
    /// From, to, frame.
    wire: Vec<(usize, usize, Frame)>,
    carried_out: Vec<Vec<u16>>,
    most_open: usize,
}

impl Job {
    fn new(ranks: usize, window: u32) -> Self {
        Self {
            queues: (0..ranks).map(|_| SystemQueue::new(RESEND)).collect(),
            slots: vec![vec![Slot::default(); ranks]; ranks],
            ends: (0..ranks as u32)
                .map(|me| Shutdown::new(me, ranks as u32, window))
                .collect(),
            wire: Vec::new(),
            carried_out: vec![Vec::new(); ranks],
            most_open: 0,
        }
    }

    fn report(&mut self, me: usize, now: Duration) {
        let (slots, wire) = (&mut self.slots[me], &mut self.wire);
        self.ends[me].poll_transmit(now, &mut self.queues[me], |rank, ask| {
            if let Some(frame) = ask(&mut slots[rank as usize]) {
                wire.push((me, rank as usize, frame));
            }
        });
        self.most_open = self.most_open.max(self.queues[me].open());
    }

    fn deliver(&mut self, now: Duration, (from, to, frame): (usize, usize, Frame)) {
        let slot = &mut self.slots[to][from];
        let heard = self.queues[to]
            .handle_recv(now, from as u32, slot, frame)
            .unwrap();
        match heard {
            Heard::Question(Question::Revoke(Revoke { wanted, .. })) => {
                self.carried_out[to].push(wanted);
                let answer = SystemQueue::answer(slot, give(wanted));
                self.wire.push((to, from, answer));
            }
            Heard::Repeated(answer) => self.wire.push((to, from, answer)),
            Heard::AnsweredAndNext(_, next) => self.wire.push((to, from, next)),
            _ => {}
        }
        if let Some(answer) = self.ends[to].heard(from as u32, heard) {
            let answer = SystemQueue::answer(&mut self.slots[to][from], answer);
            self.wire.push((to, from, answer));
        }
        self.report(to, now);
    }
}

// spec P13: one rank ends and reports to all, within a window.
#[test]
fn all_confirm_an_exit() {
    let mut job = Job::new(40, 8);
    job.ends[3].begin(NOW, 17, RESEND * 100);
    job.report(3, NOW);
    while let Some(frame) = job.wire.pop() {
        job.deliver(NOW, frame);
    }
    for (rank, end) in job.ends.iter().enumerate() {
        assert_eq!(end.state(), ShutdownState::Clean(17), "rank {rank}");
    }
    assert!((2..=8).contains(&job.most_open), "{}", job.most_open);
    let mut alone = Shutdown::new(0, 1, 1);
    alone.begin(NOW, 4, RESEND);
    assert_eq!(alone.state(), ShutdownState::Clean(4));
}

// spec P13: the wait is bounded.
#[test]
fn unconfirmed_reports_are_counted_at_the_deadline() {
    let mut job = Job::new(5, 2);
    job.ends[0].begin(NOW, 1, RESEND * 3);
    job.report(0, NOW);
    // Ranks 2 and 4 are deaf.
    while let Some(frame) = job.wire.pop() {
        if frame.1.is_multiple_of(2) && frame.1 != 0 {
            continue;
        }
        job.deliver(NOW, frame);
    }
    assert_eq!(job.ends[0].poll_timeout(), Some(RESEND * 3));
    job.ends[0].handle_timeout(RESEND * 2);
    assert_eq!(job.ends[0].state(), ShutdownState::Reporting);
    job.ends[0].handle_timeout(RESEND * 3);
    let ShutdownState::Forced { code: 1, silent } = job.ends[0].state() else {
        panic!()
    };
    // Both deaf ones are in the window, and the last got no report.
    assert_eq!(silent, 2);
    assert_eq!(job.ends[0].poll_timeout(), None);
}

// spec P13: one at a time, and a deaf one does not keep the next from hearing.
#[test]
fn a_silent_rank_delays_others_for_a_part_of_the_time_only() {
    let mut job = Job::new(4, 1);
    let limit = RESEND * 16;
    job.ends[0].begin(NOW, 9, limit);
    job.report(0, NOW);
    let reported = |job: &Job| job.wire.iter().map(|frame| frame.1).collect::<Vec<_>>();
    assert_eq!(reported(&job), [1]);
    job.report(0, RESEND - Duration::from_nanos(1));
    assert_eq!(reported(&job), [1]);
    job.report(0, RESEND);
    assert_eq!(reported(&job), [1, 2]);
    // Rank 2 confirms, so rank 3 gets its report at once.
    let question = job.wire.remove(1);
    job.deliver(RESEND, question);
    let answer = job.wire.remove(1);
    job.deliver(RESEND, answer);
    assert_eq!(reported(&job), [1, 3]);
    assert_eq!(job.ends[0].reported(), (3, 1));
    assert_eq!(Vec::from_iter(job.ends[0].open()), [1, 3]);
    job.ends[0].handle_timeout(limit);
    let forced = ShutdownState::Forced { code: 9, silent: 2 };
    assert_eq!(job.ends[0].state(), forced);
}

// spec P13: over connections an exit is reported to connected ranks; one that is gone is not waited
// for.
#[test]
fn ranks_passed_over_or_gone_are_not_waited_for() {
    let mut job = Job::new(4, 8);
    job.ends[1].begin(NOW, 9, RESEND * 100);
    let (slots, wire) = (&mut job.slots[1], &mut job.wire);
    job.ends[1].poll_transmit(NOW, &mut job.queues[1], |rank, ask| {
        if rank != 2
            && let Some(frame) = ask(&mut slots[rank as usize])
        {
            wire.push((1, rank as usize, frame));
        }
    });
    assert_eq!(job.wire.len(), 2);
    job.ends[1].forget(|rank| rank == 3);
    assert_eq!(job.ends[1].state(), ShutdownState::Reporting);
    // The ring of ranks is gone round from the next one on: 3, then 0.
    let question = job.wire.remove(1);
    job.deliver(NOW, question);
    let answer = job.wire.remove(1);
    job.deliver(NOW, answer);
    assert_eq!(job.ends[1].state(), ShutdownState::Clean(9));
    assert_eq!(job.ends[1].reported(), (2, 2));
}

/// Rank `first` ends with 0, all others that hear of it forward it, but the `deaf` ones hear
/// nothing.
///
/// Returns how many reports each has sent.
fn forwarded(ranks: usize, first: usize, neighborhood: usize, deaf: &[usize]) -> Vec<u32> {
    let mut job = Job::new(ranks, 64);
    let mut begun = vec![false; ranks];
    let mut ending = vec![first];
    while let Some(me) = ending.pop() {
        if !core::mem::replace(&mut begun[me], true) {
            job.ends[me].begin(NOW, 0, RESEND * 100);
            let (slots, wire) = (&mut job.slots[me], &mut job.wire);
            job.ends[me].poll_transmit(NOW, &mut job.queues[me], |rank, ask| {
                let is_near = rank as usize / neighborhood == me / neighborhood;
                if !is_near && let Some(frame) = ask(&mut slots[rank as usize]) {
                    wire.push((me, rank as usize, frame));
                }
            });
        }
        while let Some((from, to, frame)) = job.wire.pop() {
            if deaf.contains(&to) {
                continue;
            }
            let heard = job.ends[to].state() == ShutdownState::Running;
            job.deliver(NOW, (from, to, frame));
            if heard {
                ending.push(to);
            }
        }
    }
    for (rank, end) in job.ends.iter().enumerate() {
        // One of a neighborhood that hears is enough: its neighbors share memory with it.
        let mine = rank - rank % neighborhood;
        let mine = mine..(mine + neighborhood).min(ranks);
        let hears = mine
            .clone()
            .any(|rank| job.ends[rank].state() != ShutdownState::Running);
        assert!(
            hears || mine.clone().all(|rank| deaf.contains(&rank)),
            "{rank} of {ranks}: {end:?}"
        );
    }
    job.ends.iter().map(|end| end.reported().0).collect()
}

// spec P13: an end with 0 costs each rank a binary logarithm of messages, and all hear of it.
#[test]
fn an_end_with_0_is_forwarded_to_all() {
    for ranks in (1..20).chain([64, 100, 127]) {
        for first in [0, ranks / 2, ranks - 1] {
            let reported = forwarded(ranks, first, 1, &[]);
            let most = (ranks as u32).next_power_of_two().trailing_zeros();
            assert_eq!(reported[first], most, "{first} of {ranks}");
            assert_eq!(reported.iter().max(), Some(&most), "{ranks}: {reported:?}");
        }
        for neighborhood in [2, 3, 5, 16] {
            forwarded(ranks, ranks / 2, neighborhood, &[]);
        }
    }
    // Ranks that compute forward nothing. Other ranks report to them, or none does.
    forwarded(16, 0, 1, &[1, 2, 8]);
}

// spec P13: only the code 0 is forwarded, and once.
#[test]
fn exit_is_forwarded_at_most_once() {
    for code in [0, 7] {
        let mut job = Job::new(8, 64);
        job.ends[0].begin(NOW, code, RESEND);
        job.report(0, NOW);
        let first = job.wire.remove(0);
        assert_eq!((first.0, first.1), (0, 1));
        job.wire.clear();
        job.deliver(NOW, first);
        job.wire.clear();
        for again in [0, 7, 0] {
            job.ends[1].begin(NOW, again, RESEND);
            job.report(1, NOW);
        }
        let to: Vec<usize> = job.wire.iter().map(|frame| frame.1).collect();
        let due: &[usize] = if code == 0 { &[2, 3, 5] } else { &[] };
        assert_eq!(to, due, "{code}");
        // Nor when all have confirmed.
        while let Some(frame) = job.wire.pop() {
            job.deliver(NOW, frame);
        }
        assert_eq!(job.ends[1].state(), ShutdownState::Clean(code));
        job.ends[1].begin(NOW, 0, RESEND);
        job.report(1, NOW);
        assert_eq!(job.ends[1].reported().0, due.len() as u32, "{code}");
    }
}

// spec P13: both have reported to each other and neither answers.
#[test]
fn a_question_counts_as_a_confirmation() {
    let mut job = Job::new(2, 8);
    for me in [0, 1] {
        job.ends[me].begin(NOW, 7 + me as u8, RESEND * 100);
        job.report(me, NOW);
    }
    for question in core::mem::take(&mut job.wire) {
        job.deliver(NOW, question);
    }
    assert_eq!(job.ends[0].state(), ShutdownState::Clean(7));
    assert_eq!(job.ends[1].state(), ShutdownState::Clean(8));
    // The answers come late.
    while let Some(answer) = job.wire.pop() {
        job.deliver(NOW, answer);
    }
    assert_eq!(job.ends[0].reported(), (1, 1));
}

proptest! {
    // spec P12: exactly once, for any faults of the network.
    #[test]
    fn questions_are_carried_out_once_and_the_job_ends(
        draws in prop::collection::vec(any::<u32>(), 50..400),
        ranks in 2usize..5,
        enders in 1usize..3,
    ) {
        let mut job = Job::new(ranks, 3);
        let mut now = NOW;
        let mut asked = vec![Vec::new(); ranks];
        for (n, draw) in draws.iter().enumerate() {
            let draw = *draw as usize;
            let (me, to) = (draw % ranks, (draw % ranks + 1 + draw / 7 % (ranks - 1)) % ranks);
            match draw / 64 % 8 {
                0 | 1 => {
                    let question = revoke(n as u16);
                    if let Some(frame) = job.queues[me].ask(now, to as u32, &mut job.slots[me][to], question) {
                        asked[to].push(n as u16);
                        job.wire.push((me, to, frame));
                    }
                }
                2 if !job.wire.is_empty() => { job.wire.swap_remove(draw % job.wire.len()); }
                3 if !job.wire.is_empty() && job.wire.len() < 50 => job.wire.push(job.wire[draw % job.wire.len()]),
                4 => {
                    now += RESEND / 2;
                    let wire = &mut job.wire;
                    job.queues[me].handle_timeout(now, |to, frame| wire.push((me, to as usize, frame)));
                }
                _ if !job.wire.is_empty() => {
                    let frame = job.wire.swap_remove(draw % job.wire.len());
                    job.deliver(now, frame);
                }
                _ => {}
            }
        }
        // Faults stop; some ranks end.
        for me in 0..enders.min(ranks) {
            job.ends[me].begin(now, me as u8 + 1, RESEND * 1000);
            job.report(me, now);
        }
        for _ in 0..200 {
            while let Some(frame) = job.wire.pop() {
                job.deliver(now, frame);
            }
            now += RESEND;
            for me in 0..ranks {
                let wire = &mut job.wire;
                job.queues[me].handle_timeout(now, |to, frame| wire.push((me, to as usize, frame)));
            }
        }
        for (me, asked) in asked.iter_mut().enumerate() {
            prop_assert!(matches!(job.ends[me].state(), ShutdownState::Clean(_)), "{:?}", job.ends[me]);
            prop_assert_eq!(job.queues[me].open(), 0);
            asked.sort_unstable();
            job.carried_out[me].sort_unstable();
            prop_assert_eq!(&*asked, &job.carried_out[me]);
        }
    }
}
