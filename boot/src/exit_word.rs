//! Why a job ends, in one word that fits an atomic.

use core::fmt;

use argonet_base::JobRank;
use num_enum::{IntoPrimitive, TryFromPrimitive};

/// Progress of the guardian with ending a job whose ranks may take the exit time-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoPrimitive, TryFromPrimitive)]
#[repr(u32)]
pub(crate) enum ExitStage {
    /// Nothing, or ranks may still come to their end by themselves.
    Open = 0,
    /// The ranks that have not are signaled.
    Notice = 1,
    /// They are killed, rank 0 of a job that started itself is asked first.
    Kill = 2,
}

/// Why a job ends other than by all ranks having finalized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
#[non_exhaustive]
pub enum ExitKind {
    /// A rank gave up ([`Bootstrap::abort`](crate::Bootstrap::abort)).
    Abort = 1,
    /// A rank ended before it finalized; the process that stored this does not know the code.
    Died = 2,
    /// A rank ended with a code other than 0.
    Failed = 3,
    /// The launcher ended the job: time-out or a repeated signal.
    ///
    /// No rank is to blame.
    Canceled = 4,
    /// A rank called [`exit`](crate::exit).
    Exit = 5,
    /// A rank called the C library's exit or returned from main, and had not finalized.
    Left = 6,
    /// A rank got a signal that asks it to end; the code is the signal's number.
    Signal = 7,
    /// The guardian of a job that started itself was killed.
    ///
    /// No rank is to blame.
    Unguarded = 8,
    /// A rank crashes; the code is the signal's number.
    Crashed = 9,
    /// The host of the rank was lost: its agent ended or does not answer.
    ///
    /// No rank is to blame.
    Lost = 10,
}

impl ExitKind {
    /// Whether the other ranks have the exit time-out to come to their end by themselves.
    pub(crate) const fn leaves_time(self) -> bool {
        matches!(self, Self::Exit | Self::Left | Self::Signal)
    }

    /// Whether a rank has died, so that the job might have gone on without it.
    pub(crate) const fn is_death(self) -> bool {
        matches!(self, Self::Died | Self::Crashed)
    }
}

/// The rank that ended a job, and the reason, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitWord {
    /// Reason of the end.
    pub kind: ExitKind,
    /// The rank that it happened to; the first rank of the host for [`ExitKind::Lost`], meaningless
    /// for [`ExitKind::Canceled`] and [`ExitKind::Unguarded`].
    pub rank: JobRank,
    /// The exit code of the job, as far as it was known when this was stored; the number of a
    /// signal for [`ExitKind::Signal`] and [`ExitKind::Crashed`].
    pub code: u8,
}

impl ExitWord {
    /// The code with which a rank ends that ends because of this.
    pub(crate) const fn process_code(self) -> u8 {
        match self.kind {
            ExitKind::Exit | ExitKind::Left => self.code,
            ExitKind::Signal | ExitKind::Crashed => 128 + (self.code & 0x7f),
            _ if self.code == 0 => 1,
            _ => self.code,
        }
    }

    pub(crate) const fn pack(self) -> u64 {
        (self.kind as u64) << 56 | (self.code as u64) << 32 | self.rank.0 as u64
    }

    pub(crate) fn unpack(word: u64) -> Option<Self> {
        let kind = ExitKind::try_from((word >> 56) as u8).ok()?;
        Some(Self {
            kind,
            rank: JobRank(word as u32),
            code: (word >> 32) as u8,
        })
    }
}

impl fmt::Display for ExitWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, rank, code } = *self;
        match kind {
            ExitKind::Abort => write!(f, "rank {rank} aborted it with code {code}"),
            ExitKind::Died => write!(f, "rank {rank} ended before it finalized"),
            ExitKind::Failed => write!(f, "rank {rank} ended with code {code}"),
            ExitKind::Canceled => f.write_str("its launcher ended it"),
            ExitKind::Exit => write!(f, "rank {rank} called exit({code})"),
            ExitKind::Left => write!(f, "rank {rank} exited with code {code} without finalizing"),
            ExitKind::Signal => write!(f, "rank {rank} got signal {code}"),
            ExitKind::Crashed => write!(f, "rank {rank} crashed by signal {code}"),
            ExitKind::Unguarded => f.write_str("its guardian process was killed"),
            ExitKind::Lost => write!(f, "the host of rank {rank} was lost"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::make_job;
    use argonet_settings::Settings;

    #[test]
    fn exit_words_survive_packing_and_the_first_one_stays() {
        let first = ExitWord {
            kind: ExitKind::Failed,
            rank: JobRank(1023),
            code: 255,
        };
        assert_eq!(ExitWord::unpack(first.pack()), Some(first));
        assert_eq!(ExitWord::unpack(0), None);
        assert_eq!(ExitWord::unpack(u64::MAX), None);
        let (_files, control) = make_job(1, &Settings::default()).unwrap();
        assert_eq!(control.job().set_exit_word(first), first);
        let second = ExitWord {
            kind: ExitKind::Died,
            rank: JobRank(0),
            code: 1,
        };
        assert_eq!(control.job().set_exit_word(second), first);
    }
}
