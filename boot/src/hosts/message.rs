//! Messages between launcher and agents.

use std::ops::Range;

use argonet_base::JobRank;
use num_enum::{IntoPrimitive, TryFromPrimitive};
use static_assertions::const_assert;

use crate::exit::{ProcessEnd, SmallStack};
use crate::hosts::description::Description;
use crate::hosts::frame::Garbled;
use crate::hosts::hello::Hello;
use crate::hosts::words::{Reader, put_text, put_u32};
use crate::judgment::Obstacle;
use crate::outcome::Fate;
use crate::output::{MAX_LINE_BYTES, To};
use crate::page::{ExitWord, RankState, UNDECLARED};
use crate::secret::{SECRET_BYTES, Secret};
use crate::tally::Tally;

/// The most bytes of output, input or values in a message.
pub(crate) const BULK_BYTES: usize = 128 << 10;
const_assert!(BULK_BYTES > MAX_LINE_BYTES + 64);

/// The longest text of a [`Trouble`].
const MAX_TEXT_BYTES: usize = 4 << 10;

/// The kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
pub(crate) enum Kind {
    Hello = 1,
    Job = 2,
    Key = 3,
    Beat = 4,
    Pause = 5,
    Taken = 6,
    Values = 7,
    Waits = 8,
    Arrived = 9,
    Done = 10,
    Exit = 11,
    Gone = 12,
    Ended = 13,
    Over = 14,
    Trouble = 15,
    Output = 16,
    Deaf = 17,
    Input = 18,
    InputEnd = 19,
    Signal = 20,
    Report = 21,
    Ask = 22,
    Answer = 23,
    Tally = 24,
    Lost = 25,
    Agreed = 26,
    Accusation = 27,
    Kill = 28,
    LostHosts = 29,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// Up, first: the version of this agent.
    Hello(Hello),
    /// Down, first: the job.
    Job(Box<Description>),
    /// Down, second: the job's key.
    Key(Secret),
    /// Both ways, where there is nothing else to say.
    Beat,
    /// Down: nothing more may come for a long time, since the launcher is being stopped; until the
    /// next message.
    Pause,
    /// Both ways: this many bytes of output (down) or input (up) have been passed on.
    Taken(u32),
    /// Both ways: published values ([`crate::hosts::values`]).
    Values(Vec<u8>),
    /// Up: ranks wait at this fence.
    Waits(u32),
    /// Up: all ranks of the subtree have entered this fence, and their values have been sent.
    Arrived(u32),
    /// Down: all ranks have entered this fence, and the values of the others have been sent.
    Done(u32),
    /// Both ways: the job ends.
    Exit(ExitWord),
    /// Up: this rank enters no fence after this many.
    ///
    /// Down: a rank waits for it at a later one.
    Gone(Gone),
    /// Up: the process of a rank has ended.
    Ended(Ended),
    /// Up, last: all ranks of the subtree have ended, and all of their output has been sent.
    Over,
    /// Up: this host cannot go on.
    Trouble(Trouble),
    /// Up: whole lines.
    Output(To, Vec<u8>),
    /// Down: the launcher takes no more of this output.
    Deaf(To),
    /// Down, toward rank 0: standard input.
    Input(Vec<u8>),
    /// Down, toward rank 0: the end of standard input.
    InputEnd,
    /// Down: a signal for all ranks.
    Signal(u8),
    /// Down: a request for a report of the waits of all ranks.
    Report,
    /// Down, to an agent that only looks at its host: a question.
    Ask(Vec<u8>),
    /// Up: its answer.
    ///
    /// They come in the order of the questions.
    Answer(Vec<u8>),
    /// Up: the tally of the subtree.
    ///
    /// Down: that of the job.
    Tally(Tally),
    /// Down: this rank is lost, and its place in the order of losses.
    Lost(JobRank, u32),
    /// Down: the result of a round of agreement.
    Agreed { round: u32, losses: u32 },
    /// Up: the first rank cannot reach the second one, and waits for its loss.
    Accusation(JobRank, JobRank),
    /// Down: two ranks that cannot reach each other; the second one is to be killed.
    Kill(JobRank, JobRank),
    /// Up: hosts that do not answer any more.
    LostHosts(LostHosts),
}

/// A host whose agent has ended or does not answer, with those whose agents that one has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostHosts {
    /// Of the first of them.
    pub(crate) trouble: Trouble,
    /// Number of their ranks, from the first of the host on.
    pub(crate) count: u32,
}

impl LostHosts {
    /// Their ranks.
    pub(crate) fn ranks(&self) -> Range<u32> {
        let first = self.trouble.rank.0;
        first..first.saturating_add(self.count)
    }
}

/// The end of a rank's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) rank: JobRank,
    /// `lost` is [`UNDECLARED`] where the rank is lost: the root numbers it.
    pub(crate) fate: Fate,
    /// What keeps the job from going on, if the rank is not lost and the job was to go on.
    pub(crate) obstacle: Option<Obstacle>,
}

/// A rank that enters no more fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) rank: JobRank,
    pub(crate) state: RankState,
    /// Number of fences that it has entered.
    pub(crate) fences: u32,
}

/// Why a host cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// The first rank of the host.
    pub(crate) rank: JobRank,
    /// The exit code for it.
    pub(crate) code: u8,
    /// For the user.
    pub(crate) text: String,
}

impl Message {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Job(_) => Kind::Job,
            Self::Key(_) => Kind::Key,
            Self::Beat => Kind::Beat,
            Self::Pause => Kind::Pause,
            Self::Taken(_) => Kind::Taken,
            Self::Values(_) => Kind::Values,
            Self::Waits(_) => Kind::Waits,
            Self::Arrived(_) => Kind::Arrived,
            Self::Done(_) => Kind::Done,
            Self::Exit(_) => Kind::Exit,
            Self::Gone(_) => Kind::Gone,
            Self::Ended(_) => Kind::Ended,
            Self::Over => Kind::Over,
            Self::Trouble(_) => Kind::Trouble,
            Self::Output(..) => Kind::Output,
            Self::Deaf(_) => Kind::Deaf,
            Self::Input(_) => Kind::Input,
            Self::InputEnd => Kind::InputEnd,
            Self::Signal(_) => Kind::Signal,
            Self::Report => Kind::Report,
            Self::Ask(_) => Kind::Ask,
            Self::Answer(_) => Kind::Answer,
            Self::Tally(_) => Kind::Tally,
            Self::Lost(..) => Kind::Lost,
            Self::Agreed { .. } => Kind::Agreed,
            Self::Accusation(..) => Kind::Accusation,
            Self::Kill(..) => Kind::Kill,
            Self::LostHosts(_) => Kind::LostHosts,
        }
    }

    /// Appends the body.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => hello.encode(to),
            Self::Job(job) => job.encode(to),
            Self::Key(key) => to.extend_from_slice(key.bytes()),
            Self::Taken(n) | Self::Waits(n) | Self::Arrived(n) | Self::Done(n) => {
                to.extend_from_slice(&n.to_le_bytes());
            }
            Self::Values(bytes) | Self::Input(bytes) | Self::Ask(bytes) | Self::Answer(bytes) => {
                to.extend_from_slice(bytes);
            }
            Self::Exit(word) => to.extend_from_slice(&word.pack().to_le_bytes()),
            Self::Gone(gone) => {
                to.extend_from_slice(&gone.rank.0.to_le_bytes());
                to.extend_from_slice(&u32::from(gone.state).to_le_bytes());
                to.extend_from_slice(&gone.fences.to_le_bytes());
            }
            Self::Ended(ended) => ended.encode(to),
            Self::Tally(tally) => {
                let (most, rank) = tally.furthest;
                to.push(tally.accepts.into());
                for word in [tally.entered, tally.acknowledged, most, rank.0] {
                    put_u32(to, word);
                }
            }
            Self::Lost(JobRank(first), second)
            | Self::Agreed {
                round: first,
                losses: second,
            }
            | Self::Accusation(JobRank(first), JobRank(second))
            | Self::Kill(JobRank(first), JobRank(second)) => {
                put_u32(to, *first);
                put_u32(to, *second);
            }
            Self::Trouble(trouble) => trouble.encode(to),
            Self::LostHosts(lost) => {
                put_u32(to, lost.count);
                lost.trouble.encode(to);
            }
            Self::Output(stream, lines) => {
                to.push((*stream).into());
                to.extend_from_slice(lines);
            }
            Self::Deaf(stream) => to.push((*stream).into()),
            Self::Signal(number) => to.push(*number),
            Self::Beat | Self::Pause | Self::Over | Self::InputEnd | Self::Report => {}
        }
    }

    /// Bytes that count against the receiver's window.
    pub(crate) fn bulk_bytes(&self) -> usize {
        match self {
            Self::Output(_, bytes) | Self::Input(bytes) => bytes.len(),
            _ => 0,
        }
    }
}

/// Reads a body.
pub(crate) fn decode(kind: u8, body: &[u8]) -> Result<Message, Garbled> {
    let kind = Kind::try_from(kind).map_err(|_| Garbled(format!("kind {kind} is unknown")))?;
    let mut reader = Reader::new(body);
    parse(kind, &mut reader)
        .filter(|_| reader.is_empty())
        .ok_or_else(|| Garbled(format!("a {kind:?} of {} bytes that is none", body.len())))
}

fn parse(kind: Kind, body: &mut Reader<'_>) -> Option<Message> {
    Some(match kind {
        Kind::Hello => Message::Hello(Hello::decode(body)?),
        Kind::Job => Message::Job(Box::new(Description::decode(body)?)),
        Kind::Key => Message::Key(Secret::from_bytes(body.array::<SECRET_BYTES>()?)),
        Kind::Beat => Message::Beat,
        Kind::Pause => Message::Pause,
        Kind::Taken => Message::Taken(body.u32()?),
        Kind::Values => Message::Values(bulk(body)?),
        Kind::Waits => Message::Waits(body.u32()?),
        Kind::Arrived => Message::Arrived(body.u32()?),
        Kind::Done => Message::Done(body.u32()?),
        Kind::Exit => Message::Exit(ExitWord::unpack(body.u64()?)?),
        Kind::Gone => Message::Gone(Gone {
            rank: JobRank(body.u32()?),
            state: RankState::try_from(body.u32()?).ok()?,
            fences: body.u32()?,
        }),
        Kind::Ended => Message::Ended(Ended::decode(body)?),
        Kind::Over => Message::Over,
        Kind::Trouble => Message::Trouble(Trouble::decode(body)?),
        Kind::LostHosts => Message::LostHosts(LostHosts {
            count: body.u32()?,
            trouble: Trouble::decode(body)?,
        }),
        Kind::Output => Message::Output(To::try_from(body.u8()?).ok()?, bulk(body)?),
        Kind::Deaf => Message::Deaf(To::try_from(body.u8()?).ok()?),
        Kind::Input => Message::Input(bulk(body)?),
        Kind::InputEnd => Message::InputEnd,
        Kind::Signal => Message::Signal(body.u8().filter(|n| (1..=64).contains(n))?),
        Kind::Report => Message::Report,
        Kind::Ask => Message::Ask(body.rest().to_vec()),
        Kind::Answer => Message::Answer(body.rest().to_vec()),
        Kind::Tally => Message::Tally(Tally {
            accepts: flag(body.u8()?)?,
            entered: body.u32()?,
            acknowledged: body.u32()?,
            furthest: (body.u32()?, JobRank(body.u32()?)),
        }),
        Kind::Lost => Message::Lost(JobRank(body.u32()?), body.u32()?),
        Kind::Agreed => Message::Agreed {
            round: body.u32()?,
            losses: body.u32()?,
        },
        Kind::Accusation => Message::Accusation(JobRank(body.u32()?), JobRank(body.u32()?)),
        Kind::Kill => Message::Kill(JobRank(body.u32()?), JobRank(body.u32()?)),
    })
}

impl Trouble {
    fn encode(&self, to: &mut Vec<u8>) {
        put_u32(to, self.rank.0);
        to.push(self.code);
        put_text(to, cut(&self.text, MAX_TEXT_BYTES));
    }

    fn decode(body: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            rank: JobRank(body.u32()?),
            code: body.u8()?,
            text: body.text(MAX_TEXT_BYTES)?,
        })
    }
}

impl Ended {
    fn encode(&self, to: &mut Vec<u8>) {
        let Self {
            rank,
            fate,
            obstacle,
        } = self;
        put_u32(to, rank.0);
        put_u32(to, fate.pid);
        let (how, number) = match fate.end {
            ProcessEnd::Code(code) => (1, code),
            ProcessEnd::Signal(signal) => (2, signal),
            ProcessEnd::Unknown => (3, 0),
        };
        to.extend_from_slice(&[how, number, fate.lost.is_some().into()]);
        put_u32(to, fate.state.into());
        put_u32(to, fate.small_stack.map_or(u32::MAX, SmallStack::kib));
        let (which, rank) = match *obstacle {
            None => (0, 0),
            Some(Obstacle::Starting) => (1, 0),
            Some(Obstacle::Elsewhere) => (2, 0),
            Some(Obstacle::NoHandler(rank)) => (3, rank.0),
        };
        to.push(which);
        put_u32(to, rank);
    }

    fn decode(body: &mut Reader<'_>) -> Option<Self> {
        let (rank, pid) = (JobRank(body.u32()?), body.u32()?);
        let [how, number, lost] = body.array()?;
        let end = match how {
            1 => ProcessEnd::Code(number),
            2 => ProcessEnd::Signal(number),
            3 if number == 0 => ProcessEnd::Unknown,
            _ => return None,
        };
        let fate = Fate {
            pid,
            end,
            state: RankState::try_from(body.u32()?).ok()?,
            small_stack: SmallStack::of_kib(body.u32()?),
            lost: flag(lost)?.then_some(UNDECLARED),
        };
        let obstacle = match (body.u8()?, body.u32()?) {
            (0, 0) => None,
            (1, 0) => Some(Obstacle::Starting),
            (2, 0) => Some(Obstacle::Elsewhere),
            (3, rank) => Some(Obstacle::NoHandler(JobRank(rank))),
            _ => return None,
        };
        Some(Self {
            rank,
            fate,
            obstacle,
        })
    }
}

fn bulk(body: &mut Reader<'_>) -> Option<Vec<u8>> {
    Some(body.rest().to_vec()).filter(|bytes| (1..=BULK_BYTES).contains(&bytes.len()))
}

/// A byte that is 0 or 1.
pub(crate) fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// The begin of a text, of at most `most` bytes.
fn cut(text: &str, most: usize) -> &str {
    match text.len() <= most {
        true => text,
        false => &text[..text.floor_char_boundary(most)],
    }
}

#[cfg(test)]
pub(crate) mod tests;
