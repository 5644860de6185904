//! The ranks of an agent's host, and the state that the agent forwards between them and the other
//! hosts.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use argonet_base::JobRank;

use crate::bootstrap::KEYS;
use crate::error::BootError;
use crate::guardian::{self, Link};
use crate::hosts::frame::Garbled;
use crate::hosts::message::{Gone, Message};
use crate::hosts::values::{self, Value};
use crate::output::Streams;
use crate::page::{Control, ExitWord, RankState};
use crate::ranks::HostRanks;
use crate::spawn::Spawner;
use crate::tally::Tally;
use crate::{fence, judgment, losses};

/// State of a rank that has been reported to the other hosts.
#[derive(Debug, Clone, Copy, Default)]
struct Reported {
    /// Published keys, one bit each.
    keys: u16,
    /// Whether the other hosts know that it enters no more fences.
    gone: bool,
}

pub(crate) struct Here<'a> {
    pub(crate) control: &'a Control,
    link: &'a Link,
    pub(crate) ranks: HostRanks<'a>,
    reported: Vec<Reported>,
    /// The last fence of all ranks here that has been reported.
    arrived: u32,
    /// Whether the other hosts know that the job ends.
    reported_exit: bool,
    /// The tally of the ranks here that has been reported.
    tally: Tally,
}

impl<'a> Here<'a> {
    pub(crate) fn new(control: &'a Control, link: &'a Link) -> Self {
        Self {
            control,
            link,
            ranks: HostRanks::new(control, link),
            reported: vec![Reported::default(); control.part().ranks as usize],
            arrived: 0,
            reported_exit: false,
            tally: Tally::UNKNOWN,
        }
    }

    /// Starts all ranks; calls `started` with each and its process id.
    pub(crate) fn start(
        &mut self,
        spawner: &mut Spawner<'_>,
        streams: &mut Streams,
        tagged: bool,
        mut started: impl FnMut(JobRank, u32),
    ) -> Result<(), BootError> {
        for rank in self.control.host_ranks() {
            let output = streams
                .add_rank(rank, tagged)
                .map_err(|e| BootError::system("making a pipe for a rank's output", e))?;
            let pid = self.ranks.start(spawner, Some(output))?;
            started(rank, pid.as_raw_nonzero().get() as u32);
        }
        Ok(())
    }

    /// Why the job ends, if the other hosts do not know it.
    pub(crate) fn exit_to_report(&mut self) -> Option<ExitWord> {
        let word = self.control.job().exit_word()?;
        (!std::mem::replace(&mut self.reported_exit, true)).then_some(word)
    }

    /// The other hosts report that the job ends.
    pub(crate) fn end(&mut self, word: ExitWord) {
        self.reported_exit = true;
        self.control.job().set_exit_word(word);
        // The time that the ranks have counts from now.
        guardian::report_exit(self.link.as_fd());
        if !word.kind.leaves_time() {
            self.ranks.kill_all();
        }
    }

    /// The fence that all ranks here have entered and that has not been reported, and the values
    /// that they have published since the one before.
    pub(crate) fn fence_to_report(&mut self) -> Option<(Vec<u8>, u32)> {
        let number = self
            .control
            .job()
            .fence
            .host_arrived
            .load(Ordering::Acquire);
        if number == self.arrived {
            return None;
        }
        self.arrived = number;
        let mut published = Vec::new();
        for (rank, reported) in self.control.host_ranks().zip(&mut self.reported) {
            for key in 0..KEYS {
                if reported.keys & 1 << key == 0
                    && let Some(bytes) = self.control.key_slot(rank, key).read()
                {
                    reported.keys |= 1 << key;
                    let bytes = &bytes;
                    Value { rank, key, bytes }.encode(&mut published);
                }
            }
        }
        Some((published, number))
    }

    /// All hosts have entered the fence; `published` holds the values of the ranks of the others.
    pub(crate) fn pass_fence(&self, published: &[u8], number: u32) -> Result<(), Garbled> {
        for Value { rank, key, bytes } in values::parse(published)? {
            self.control.key_slot(rank, key).fill(bytes);
        }
        fence::complete(&self.control.job().fence, number);
        Ok(())
    }

    /// Reports that rank `i` of this host enters no more fences, once.
    pub(crate) fn gone_to_report(&mut self, i: usize) -> Option<Message> {
        let rank = self.ranks.rank(i);
        let page = self.control.rank_page(rank);
        let state = page.state();
        let gone = matches!(state, RankState::Finalized | RankState::Ended);
        if !gone || std::mem::replace(&mut self.reported[i].gone, true) {
            return None;
        }
        let fences = page.fences_entered.load(Ordering::Relaxed);
        Some(Message::Gone(Gone {
            rank,
            state,
            fences,
        }))
    }

    /// The tally of the ranks here, if the others do not know it and need it.
    pub(crate) fn tally_to_report(&mut self) -> Option<Tally> {
        if !self.control.job().goes_on() || self.control.is_whole_job() {
            return None;
        }
        let first = self.control.part().first;
        let has_ended = |rank: JobRank| self.ranks.has_ended((rank.0 - first) as usize);
        let tally = Tally::of_host(self.control, has_ended);
        let is_news = tally != std::mem::replace(&mut self.tally, tally);
        is_news.then_some(tally)
    }

    /// The tally of the job has come.
    pub(crate) fn publish_tally(&self, tally: &Tally) {
        self.control.job().set_tally(tally);
    }

    /// The root has numbered a loss.
    pub(crate) fn declare_loss(&self, rank: JobRank, order: u32) -> Result<(), Garbled> {
        if self.control.is_whole_job() {
            return Ok(()); // The guardian has declared it.
        }
        let known = self.control.job().losses();
        if rank.0 >= self.control.size() || known.checked_add(1) != Some(order) {
            return Err(Garbled(format!(
                "loss {order}, of rank {rank}, after {known}"
            )));
        }
        losses::declare(self.control, rank);
        Ok(())
    }

    /// The root has decided a round of agreement.
    pub(crate) fn publish_agreement(&self, round: u32, losses: u32) -> Result<(), Garbled> {
        let known = self.control.job().losses();
        if losses > known {
            return Err(Garbled(format!(
                "an agreement on {losses} losses of {known}"
            )));
        }
        self.control.job().decide(round, losses);
        Ok(())
    }

    /// Kills `accused`, which `accuser` cannot reach, if it is a rank of this host; an error if
    /// it is not lost by that.
    pub(crate) fn kill_accused(&self, accuser: JobRank, accused: JobRank) -> Result<(), String> {
        let (control, part) = (self.control, self.control.part());
        if !part.all().contains(&accused.0) {
            return Ok(());
        }
        let i = (accused.0 - part.first) as usize;
        if control.rank_page(accused).lost().is_some() || control.job().is_ending() {
            return Ok(());
        }
        if self.ranks.has_ended(i) || !judgment::may_be_lost(control, accused) {
            return Err(out_of_reach(accuser, accused));
        }
        self.ranks.kill(i);
        Ok(())
    }

    /// The job is over here: sends the guardian away.
    pub(crate) fn farewell(&self) {
        self.link.farewell();
    }

    /// A rank of another host enters no more fences, and a rank waits for it.
    pub(crate) fn note_gone(&self, gone: Gone) {
        let Gone {
            rank,
            state,
            fences,
        } = gone;
        if self.control.part().all().contains(&rank.0) || rank.0 >= self.control.size() {
            return; // The ranks here see it themselves.
        }
        let page = self.control.rank_page(rank);
        page.fences_entered.store(fences, Ordering::Relaxed);
        page.advance(state);
        fence::wake_all(&self.control.job().fence);
    }
}

/// Why a job ends in which a rank waits for another that is not lost and cannot be.
pub(crate) fn out_of_reach(accuser: JobRank, accused: JobRank) -> String {
    format!("rank {accuser} cannot reach rank {accused}, which has left the job")
}

/// The standard input of rank 0, as far as it has not been taken.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) pipe: Option<OwnedFd>,
    pub(crate) waiting: Vec<u8>,
    pub(crate) ended: bool,
}
