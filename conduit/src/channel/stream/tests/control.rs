//! Control frames: what is reported beside the frames of a stream, and when.

use super::*;
use argonet_am::system_queue;

/// A stream whose control frames are looked at.
struct Reports {
    stream: SendStream,
}

impl Reports {
    fn new() -> Self {
        Self {
            stream: SendStream::new(),
        }
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        written(&mut self.stream, most)
    }

    /// Writes all that is due; its frames.
    fn frames(&mut self) -> Vec<(Kind, Fields)> {
        let frames = frames_of(&self.bytes(usize::MAX));
        frames.iter().map(|f| (f.kind, f.fields)).collect()
    }

    fn short(&mut self) {
        let head = HeadBytes::new(Kind::ShortRequest, 0, &[], 0, &Fields::default());
        self.stream.push(head, Body::Empty, false);
    }
}

/// The control frame that reports bytes taken and requests handled, and credits lent and wanted.
fn control(taken: u64, handled: u64, lent: u32, wanted: u32) -> (Kind, Fields) {
    let fields = Fields {
        offset: taken,
        rest: handled,
        op: lent,
        wanted,
        ..Fields::default()
    };
    (Kind::Control, fields)
}

fn alone(kind: Kind) -> (Kind, Fields) {
    (kind, Fields::default())
}

fn word(offset: u64) -> (Kind, Fields) {
    let fields = Fields {
        offset,
        ..Fields::default()
    };
    (Kind::System, fields)
}

#[test]
fn an_acknowledgement_goes_with_other_bytes_or_at_once() {
    let mut end = Reports::new();
    assert_eq!(end.frames(), []);
    end.stream.set_ack(100, 7);
    assert_eq!(end.stream.ack_due(), 100);
    assert!(!end.stream.wants_to_write() && !end.stream.rests());
    end.short();
    assert!(end.stream.wants_to_write());
    assert_eq!(
        end.frames(),
        [control(100, 7, 0, 0), alone(Kind::ShortRequest)]
    );
    assert_eq!(end.stream.ack_due(), 0);

    // Handled requests are reported as well.
    end.stream.set_ack(110, 30);
    assert_eq!(end.stream.ack_due(), 23);
    end.stream.ack_now();
    assert!(end.stream.wants_to_write());
    assert_eq!(end.frames(), [control(110, 30, 0, 0)]);
    // There is no more.
    end.stream.ack_now();
    assert!(!end.stream.wants_to_write());
    assert_eq!(end.stream.positions(), (end.stream.head(), 110));
}

#[test]
fn a_probe_has_no_news_and_the_end_of_rails_is_a_frame() {
    let mut end = Reports::new();
    end.stream.probe();
    assert!(end.stream.wants_to_write());
    assert_eq!(end.frames(), [control(0, 0, 0, 0)]);
    assert_eq!(end.frames(), []);
    for (has_agreed, kind) in [(false, Kind::Close), (true, Kind::Closed)] {
        end.stream.close(has_agreed);
        assert!(end.stream.wants_to_write());
        assert_eq!(end.frames(), [control(0, 0, 0, 0), alone(kind)]);
        assert_eq!(end.frames(), []);
    }
}

/// A frame that is refused is not acknowledged before the peer has its refusal.
#[test]
fn what_is_refused_is_acknowledged_behind_the_refusal() {
    let mut end = Reports::new();
    for position in [60, 80] {
        end.short();
        end.stream.hold(position);
    }
    let refusals = end.stream.head();
    end.stream.set_ack(100, 0);
    let frames = end.frames();
    assert_eq!(frames[0], control(60, 0, 0, 0));
    assert_eq!(end.stream.ack_due(), 40);
    end.stream.acknowledge(refusals - 1).unwrap();
    end.stream.ack_now();
    assert_eq!(end.frames(), []);
    end.stream.acknowledge(refusals).unwrap();
    end.stream.ack_now();
    assert_eq!(end.frames(), [control(100, 0, 0, 0)]);
    assert_eq!(end.stream.ack_due(), 0);
}

#[test]
fn news_of_credits_are_written_once() {
    let mut end = Reports::new();
    end.stream.report_credits(|credits| credits.lend(3));
    end.stream.report_credits(|credits| credits.want(2));
    assert!(end.stream.wants_to_write() && !end.stream.rests());
    assert_eq!(end.frames(), [control(0, 0, 3, 2)]);
    assert!(end.stream.rests());
    end.stream.report_credits(|credits| credits.want(4));
    assert!(end.stream.wants_to_write() && !end.stream.rests());
    assert_eq!(end.frames(), [control(0, 0, 3, 4)]);
    // None are no news.
    end.stream.report_credits(|credits| credits.lend(0));
    end.stream.report_credits(|credits| credits.want(0));
    assert!(!end.stream.wants_to_write() && end.stream.rests());
    // The count goes on, and what was wanted is not wanted again.
    end.stream.report_credits(|credits| credits.lend(2));
    assert_eq!(end.frames(), [control(0, 0, 5, 0)]);
}

#[test]
fn the_end_of_an_epoch_goes_with_the_next_control_frame() {
    let mut end = Reports::new();
    let has_ended = |end: &mut Reports| -> Vec<bool> {
        let frames = frames_of(&end.bytes(usize::MAX));
        frames.iter().map(|frame| frame.epoch).collect()
    };
    end.stream.report_credits(|credits| credits.end_epoch());
    assert!(!end.stream.wants_to_write());
    for expected in [true, false] {
        end.stream.probe();
        assert_eq!(has_ended(&mut end), [expected]);
    }
}

#[test]
fn questions_and_answers_are_frames_of_their_own() {
    let mut end = Reports::new();
    let (question, answer) = (system_queue::Frame(0x51), system_queue::Frame(0x52));
    end.stream.report_credits(|credits| credits.ask(question));
    assert_eq!(end.frames(), [word(0x51)]);
    assert!(!end.stream.rests(), "the question is open");
    end.stream.report_credits(|credits| credits.answer(answer));
    assert_eq!(end.frames(), [word(0x52)]);
    assert!(!end.stream.rests(), "the question is open");
    end.stream.report_credits(|credits| credits.answered());
    assert!(end.stream.rests() && !end.stream.wants_to_write());

    // All at once.
    end.stream.report_credits(|credits| credits.answer(answer));
    end.stream.report_credits(|credits| credits.ask(question));
    end.stream.report_credits(|credits| credits.lend(1));
    end.stream.close(false);
    let all = [
        control(0, 0, 1, 0),
        word(0x51),
        word(0x52),
        alone(Kind::Close),
    ];
    assert_eq!(end.frames(), all);
}

/// They may be lost with the rail.
#[test]
fn what_was_reported_is_reported_again_over_another_rail() {
    let mut end = Reports::new();
    end.stream.set_ack(100, 7);
    let (question, answer) = (system_queue::Frame(0x51), system_queue::Frame(0x52));
    end.stream.report_credits(|credits| credits.lend(3));
    end.stream.report_credits(|credits| credits.want(2));
    end.stream.report_credits(|credits| credits.ask(question));
    end.stream.report_credits(|credits| credits.answer(answer));
    let all = [control(100, 7, 3, 2), word(0x51), word(0x52)];
    assert_eq!(end.frames(), all);
    end.stream.resume(0).unwrap();
    assert!(end.stream.wants_to_write());
    assert_eq!(end.frames(), [control(100, 7, 3, 0), word(0x51)]);
    end.stream.report_credits(|credits| credits.answered());
    end.stream.resume(0).unwrap();
    assert_eq!(end.frames(), [control(100, 7, 3, 0)]);
}

/// A rail that breaks in the middle of a frame takes its rest with it.
#[test]
fn no_rest_of_a_frame_is_written_to_another_rail() {
    let mut end = Reports::new();
    end.stream.set_ack(100, 0);
    end.stream.close(false);
    let mut pieces = Pieces::new();
    end.stream.next_burst(&mut pieces);
    end.stream.wrote(5);
    assert!(end.stream.is_writing_control());
    end.stream.resume(0).unwrap();
    assert!(!end.stream.is_writing_control());
    assert_eq!(end.frames(), [control(100, 0, 0, 0)]);
}

/// However few bytes a rail takes at a time, frames are whole and in order.
#[test]
fn control_frames_lie_between_frames() {
    for most in 1..60 {
        let mut end = Reports::new();
        (0..3).for_each(|_| end.short());
        end.stream.set_ack(9, 1);
        end.stream.close(true);
        let kinds: Vec<Kind> = frames_of(&end.bytes(most)).iter().map(|f| f.kind).collect();
        let shorts = [Kind::ShortRequest; 3];
        let expected: Vec<Kind> = [Kind::Control, Kind::Closed]
            .into_iter()
            .chain(shorts)
            .collect();
        assert_eq!(kinds, expected, "{most}");
    }
}
