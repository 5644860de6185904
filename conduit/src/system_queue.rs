//! The system queue over a network that delivers every frame, so that no question needs a timer for
//! retries.
//!
//! Its questions call credits back and announce the end of the job.

use argonet_am::credit::{Return, Revoke};
use argonet_am::record::RecordError;
use argonet_am::system_queue::{Answer, Frame, Heard, Question, Slot, SystemQueue};
use argonet_base::JobRank;
use core::time::Duration;

/// What [`take`] does with a peer whose frame has come; the caller holds the peer's lock.
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

/// Takes a frame of a peer, and answers it.
///
/// The caller gives the result to [`Exits::heard`](crate::exit::Exits::heard) after it has unlocked
/// the peer.
///
/// # Errors
/// `unknown` if the word is no frame, or none that can come now; the error of an impossible count
/// of credits.
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
