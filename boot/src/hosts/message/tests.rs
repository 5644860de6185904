//! Every kind of message is read back as it was written, and nothing else is.

use super::*;
use crate::hosts::description::tests::descriptions;
use crate::page::ExitKind;
use proptest::collection::vec;
use proptest::prelude::*;

/// One of each kind.
pub(crate) fn samples() -> Vec<Message> {
    let rank = JobRank(3);
    let ended = |end, lost, obstacle| {
        let fate = Fate {
            small_stack: SmallStack::of_kib(512),
            pid: 4711,
            end,
            state: RankState::Finalized,
            lost,
        };
        Message::Ended(Ended {
            rank,
            fate,
            obstacle,
        })
    };
    let kind = ExitKind::Lost;
    vec![
        Message::Hello(Hello::own()),
        Message::Job(Box::default()),
        Message::Key(Secret::from_bytes([7; SECRET_BYTES])),
        Message::Beat,
        Message::Pause,
        Message::Taken(u32::MAX),
        Message::Values(vec![1; 300]),
        Message::Waits(1),
        Message::Arrived(2),
        Message::Done(3),
        Message::Exit(ExitWord {
            kind,
            rank,
            code: 1,
        }),
        Message::Gone(Gone {
            rank,
            state: RankState::Ended,
            fences: 9,
        }),
        ended(ProcessEnd::Code(255), None, Some(Obstacle::NoHandler(rank))),
        ended(ProcessEnd::Signal(9), Some(UNDECLARED), None),
        ended(ProcessEnd::Signal(9), None, Some(Obstacle::Starting)),
        ended(ProcessEnd::Unknown, None, Some(Obstacle::Elsewhere)),
        Message::Tally(Tally {
            accepts: true,
            entered: 4,
            acknowledged: 5,
            furthest: (6, rank),
        }),
        Message::Lost(rank, 2),
        Message::Agreed {
            round: 8,
            losses: 2,
        },
        Message::Accusation(rank, JobRank(4)),
        Message::Kill(JobRank(5), rank),
        Message::LostHosts(LostHosts {
            trouble: Trouble {
                rank,
                code: 1,
                text: "gone".into(),
            },
            count: 4,
        }),
        Message::Over,
        Message::Trouble(Trouble {
            rank,
            code: 127,
            text: "no such \u{1f980}".into(),
        }),
        Message::Output(To::Err, b"[3] line\n".to_vec()),
        Message::Deaf(To::Out),
        Message::Input(vec![0; BULK_BYTES]),
        Message::InputEnd,
        Message::Signal(15),
        Message::Report,
        Message::Ask(b"how are you".to_vec()),
        Message::Answer(vec![b'x'; 2 * BULK_BYTES]),
    ]
}

/// Any message.
pub(crate) fn messages() -> impl Strategy<Value = Message> {
    let bulk = || vec(any::<u8>(), 1..500);
    prop_oneof![
        prop::sample::select(samples()),
        descriptions().prop_map(|job| Message::Job(Box::new(job))),
        bulk().prop_map(Message::Values),
        bulk().prop_map(Message::Input),
        (any::<bool>(), bulk()).prop_map(|(out, bytes)| {
            Message::Output(if out { To::Out } else { To::Err }, bytes)
        }),
        any::<u32>().prop_map(Message::Arrived),
        ("\\PC{0,80}", any::<u32>(), any::<u8>()).prop_map(|(text, rank, code)| {
            let rank = JobRank(rank);
            Message::Trouble(Trouble { rank, code, text })
        }),
    ]
}

#[test]
fn every_kind_has_a_sample() {
    let kinds: Vec<u8> = samples().iter().map(|m| m.kind().into()).collect();
    let known: Vec<u8> = (0..=255).filter(|&k| Kind::try_from(k).is_ok()).collect();
    assert!(known.iter().all(|k| kinds.contains(k)), "{kinds:?}");
}

#[test]
fn bodies_that_are_too_short_or_too_long_are_refused() {
    for message in samples() {
        let mut body = Vec::new();
        message.encode(&mut body);
        let kind = message.kind().into();
        assert_eq!(decode(kind, &body).unwrap(), message);
        // A greeting may have more in another version.
        let of_any_length = ["Values", "Input", "Output", "Hello", "Ask", "Answer"];
        if of_any_length.contains(&format!("{:?}", message.kind()).as_str()) {
            continue;
        }
        body.push(0);
        assert!(decode(kind, &body).is_err(), "{message:?}");
        body.truncate(body.len().saturating_sub(2));
        let refused = decode(kind, &body).is_err();
        assert!(refused || body.is_empty(), "{message:?}");
    }
    assert!(decode(Kind::Input.into(), &[]).is_err());
    assert!(decode(Kind::Input.into(), &[0; BULK_BYTES + 1]).is_err());
    assert!(decode(Kind::Signal.into(), &[0]).is_err());
    assert!(decode(Kind::Exit.into(), &u64::MAX.to_le_bytes()).is_err());
}

#[test]
fn long_texts_are_cut_between_characters() {
    let text = "\u{1f980}".repeat(MAX_TEXT_BYTES);
    let rank = JobRank(0);
    let mut body = Vec::new();
    Message::Trouble(Trouble {
        rank,
        code: 1,
        text,
    })
    .encode(&mut body);
    assert!(matches!(
        decode(Kind::Trouble.into(), &body),
        Ok(Message::Trouble(t)) if t.text.len() == MAX_TEXT_BYTES
    ));
}
