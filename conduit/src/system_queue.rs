//! The system queue over a network that loses nothing, or repeats itself what it has lost: no
//! question is kept to be repeated.
//!
//! Credits called back and the end of the job ride on it.

use argonet_am::credit::{Return, Revoke};
use argonet_am::record::RecordError;
use argonet_am::system_queue::{Answer, Frame, Heard, Question, Slot, SystemQueue};
use argonet_base::JobRank;
use core::time::Duration;

/// A peer whose frames are taken; its lock is held.
pub(crate) trait Asker {
    /// What is kept of its questions and answers.
    fn slot(&mut self) -> &mut Slot;

    /// It asks for credits back; `None` without flow control.
    fn revoke(&mut self, revoke: Revoke) -> Option<Return>;

    /// It has given credits back.
    ///
    /// # Errors
    /// More than it could.
    fn returned(&mut self, back: Return) -> Result<(), RecordError>;

    /// It has answered the open question.
    fn answered(&mut self) {}

    /// Sends an answer to it.
    fn answer(&mut self, frame: Frame);

    /// Sends a question to it.
    fn ask(&mut self, frame: Frame);
}

/// Takes a frame of a peer; its meaning is for [`Exits::heard`](crate::exit::Exits::heard) when the
/// lock is free again.
///
/// # Errors
/// `unknown` if it is none, or cannot come now; or its count is impossible.
// spec P12
#[cold]
pub(crate) fn take(
    from: JobRank,
    word: u64,
    unknown: RecordError,
    peer: &mut impl Asker,
) -> Result<Heard, RecordError> {
    let mut queue = SystemQueue::new(Duration::ZERO);
    let heard = queue.handle_recv(Duration::ZERO, from.0, peer.slot(), Frame(word));
    let heard = heard.map_err(|_| unknown)?;
    let answer = match heard {
        Heard::Question(Question::Revoke(revoke)) => {
            Answer::Return(peer.revoke(revoke).ok_or(unknown)?)
        }
        Heard::Question(Question::Exit(_)) => Answer::Exiting,
        Heard::Repeated(answer) => {
            peer.answer(answer);
            return Ok(heard);
        }
        Heard::Answered(answer) | Heard::AnsweredAndNext(answer, _) => {
            peer.answered();
            if let Heard::AnsweredAndNext(_, next) = heard {
                peer.ask(next);
            }
            if let Answer::Return(back) = answer {
                peer.returned(back)?;
            }
            return Ok(heard);
        }
        Heard::Stale => return Ok(heard),
    };
    let answer = SystemQueue::answer(peer.slot(), answer);
    peer.answer(answer);
    Ok(heard)
}

/// The frame of a question to a peer; `None` while another is open.
pub(crate) fn question(to: JobRank, slot: &mut Slot, question: Question) -> Option<Frame> {
    SystemQueue::new(Duration::ZERO).ask(Duration::ZERO, to.0, slot, question)
}
