//! Losses of a job over several hosts, at the root.

use std::time::{Duration, Instant};

use argonet_base::JobRank;

use super::Root;
use crate::error::Missing;
use crate::exit::ProcessEnd;
use crate::hosts::frame::Garbled;
use crate::hosts::here::out_of_reach;
use crate::hosts::message::{Ended, LostHosts, Message};
use crate::outcome::{Fate, in_words, loss_in_words};
use crate::page::{ExitKind, RankState};

/// Time in which ranks that cannot reach others say so before the first of them is killed: the more
/// are heard, the better it is seen whose network is broken.
const HEARING: Duration = Duration::from_millis(500);

impl Root<'_> {
    /// The process of a rank has ended.
    pub(super) fn rank_ended(&mut self, ended: &Ended) -> Result<(), Garbled> {
        let Ended { rank, fate, .. } = *ended;
        if self.fates[rank.index()].is_some() {
            return Err(Garbled(format!("the end of rank {rank} twice")));
        }
        if self.word.is_some_and(|word| word.rank == rank) {
            self.obstacle = ended.obstacle;
        }
        if fate.lost.is_some() {
            if !self.goes_on {
                let why = format!("the loss of rank {rank}, which ends the job");
                return Err(Garbled(why));
            }
            self.declare(rank, fate);
            if self.word.is_none() {
                let others_left = self.fates.iter().any(Option::is_none);
                self.note(&loss_in_words(rank, &fate, others_left));
            }
            return Ok(());
        }
        self.fates[rank.index()] = Some(fate);
        if fate.is_late_failure() {
            self.late_failure.get_or_insert(rank);
        }
        if self.verbose {
            self.note(&in_words(rank, &fate));
        }
        if let Some(accuser) = self.accusations.ended_unlost(rank) {
            self.wait_in_vain(accuser, rank);
        }
        Ok(())
    }

    /// Numbers the loss of a rank that has ended so, and sends that to all hosts.
    fn declare(&mut self, rank: JobRank, fate: Fate) {
        let order = self.register.lose();
        self.accusations.lost(rank);
        let lost = Some(order);
        self.fates[rank.index()] = Some(Fate { lost, ..fate });
        self.children.send_all(&Message::Lost(rank, order));
    }

    /// Hosts do not answer any more: their ranks are lost, or the job ends.
    pub(super) fn lose_hosts(&mut self, hosts: &LostHosts) {
        let is_open = self.word.is_none() && self.canceled.is_none();
        if !(self.goes_on && self.register.all_accept() && is_open) {
            let mut trouble = hosts.trouble.clone();
            let are_others = hosts.ranks().len() < self.fates.len();
            if self.goes_on && is_open && are_others {
                trouble.text += "; the job ends, as a rank was still starting, or has no handler for lost ranks \
                                 (Builder::on_peer_lost or argonet_SetPeerLostHandler, on all ranks)";
            }
            return self.trouble(trouble);
        }
        let ranks = || hosts.ranks().map(JobRank);
        let fates = &self.fates;
        let lost: Vec<JobRank> = ranks().filter(|r| fates[r.index()].is_none()).collect();
        let came_to_end = |r: &JobRank| fates[r.index()].is_some_and(|fate| fate.lost.is_none());
        let ended: Vec<JobRank> = ranks().filter(came_to_end).collect();
        let fate = Fate {
            pid: 0,
            end: ProcessEnd::Unknown,
            state: RankState::Running,
            small_stack: None,
            lost: None,
        };
        lost.iter().for_each(|&rank| self.declare(rank, fate));
        let mut line = hosts.trouble.text.clone();
        let others_left = self.fates.iter().any(Option::is_none);
        // It may end with a question.
        let then = if line.ends_with('?') { " So" } else { ";" };
        line += &match (lost.is_empty(), others_left) {
            (true, _) => format!("{then} its ranks had ended"),
            (_, true) => format!("{then} the job goes on without {}", Missing(lost)),
            (_, false) => format!("{then} no rank is left"),
        };
        if !ended.is_empty() {
            self.output_lost = true;
            line += &format!("; output of {} may be lost", Missing(ended));
        }
        self.note(&line);
    }

    /// `accuser` cannot reach `accused`, and waits for its loss: hears what other ranks say, unless
    /// that one has ended.
    pub(super) fn hear_accusation(&mut self, accuser: JobRank, accused: JobRank) {
        if self.fates[accuser.index()].is_some() {
            return;
        }
        match self.fates[accused.index()] {
            Some(fate) if fate.lost.is_some() => {}
            Some(_) => self.wait_in_vain(accuser, accused),
            None => {
                if self.accusations.add(accuser, accused) && self.hearing_ends.is_none() {
                    self.hearing_ends = Instant::now().checked_add(HEARING);
                }
            }
        }
    }

    /// Ends the job, unless it does so already: `accuser` waits for the loss of a rank that has
    /// ended and is not lost.
    fn wait_in_vain(&mut self, accuser: JobRank, accused: JobRank) {
        if self.word.is_none() {
            let why = out_of_reach(accuser, accused);
            self.cancel(1, why, ExitKind::Canceled);
        }
    }

    /// Has the chosen ones killed of ranks that cannot reach each other, at the end of a hearing.
    pub(super) fn end_hearing(&mut self) {
        if self.hearing_ends.is_none_or(|at| Instant::now() < at) {
            return;
        }
        self.hearing_ends = None;
        if self.word.is_some() {
            return;
        }
        for (rank, other) in self.accusations.choose_victims() {
            let (low, high) = (rank.min(other), rank.max(other));
            self.note(&format!(
                "ranks {low} and {high} cannot reach each other over any network; rank {rank} is killed"
            ));
            self.children.send_all(&Message::Kill(other, rank));
        }
    }
}
