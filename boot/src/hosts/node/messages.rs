//! Messages that an agent forwards between its ranks, the agents below, and its parent.

use argonet_base::JobRank;
use rustix::process::Signal;

use crate::exit::LostGuardian;
use crate::guardian::News;
use crate::hosts::exchange::Action;
use crate::hosts::frame::Garbled;
use crate::hosts::message::{Ended, LostHosts, Message};
use crate::hosts::node::Node;
use crate::hosts::values::pieces;
use crate::judgment;
use crate::ranks::RankEvent;
use crate::tally::Tally;

impl Node<'_> {
    pub(super) fn take_from_above(&mut self, message: Message) -> Result<(), Garbled> {
        match message {
            Message::Values(values) => return self.exchange.above(&values),
            Message::Done(fence) => {
                let actions = self.exchange.done(fence)?;
                return self.act(actions);
            }
            Message::Input(bytes) => self.input.waiting.extend_from_slice(&bytes),
            Message::InputEnd => self.input.ended = true,
            Message::Exit(word) => {
                if let Some(here) = &mut self.here {
                    here.end(word);
                }
                self.children.send_all(&message);
            }
            Message::Gone(gone) => {
                if let Some(here) = &self.here {
                    here.note_gone(gone);
                }
                self.children.send_all(&message);
            }
            Message::Signal(number) => {
                if let (Some(here), Some(signal)) =
                    (&self.here, Signal::from_named_raw(number.into()))
                {
                    here.ranks.signal(signal);
                }
                self.children.send_all(&message);
            }
            Message::Report => {
                self.report();
                self.children.send_all(&message);
            }
            Message::Tally(_) | Message::Lost(..) | Message::Agreed { .. } | Message::Kill(..)
                if self.job.goes_on =>
            {
                self.note_losses(&message)?;
                self.children.send_all(&message);
            }
            Message::Deaf(to) => {
                self.deaf.push(to);
                self.streams.close_all(to);
                self.children.send_all(&message);
            }
            other => return Err(Garbled(format!("a {:?} from above", other.kind()))),
        }
        self.pour_input();
        Ok(())
    }

    pub(super) fn take_from_below(
        &mut self,
        child: usize,
        message: Message,
    ) -> Result<(), Garbled> {
        match message {
            Message::Values(values) => self.exchange.values(child, &values)?,
            Message::Waits(fence) => {
                let actions = self.exchange.waits(fence)?;
                self.act(actions)?;
            }
            Message::Arrived(fence) => {
                let actions = self.exchange.arrived(child, fence)?;
                self.act(actions)?;
            }
            Message::Output(to, lines) => self.lines.to(to).extend_from_slice(&lines),
            Message::Gone(_) | Message::Exit(_) | Message::Ended(_) | Message::Trouble(_) => {
                self.send(&message);
            }
            Message::Tally(tally) if self.job.goes_on => {
                self.report_tally(child, tally)?;
            }
            Message::Accusation(..) | Message::LostHosts(_) if self.job.goes_on => {
                self.send(&message)
            }
            other => return Err(Garbled(format!("a {:?} from below", other.kind()))),
        }
        Ok(())
    }

    /// A child is lost, with its subtree.
    pub(super) fn lose_hosts(&mut self, child: usize, lost: LostHosts) -> Result<(), Garbled> {
        if !self.job.goes_on {
            self.send(&Message::Trouble(lost.trouble));
            return Ok(());
        }
        // The losses are known above before the tally without these ranks.
        self.send(&Message::LostHosts(lost));
        self.report_tally(child, Tally::OF_NO_RANKS)
    }

    /// Sends the tally of the subtree up if that of a source has changed it.
    fn report_tally(&mut self, source: usize, tally: Tally) -> Result<(), Garbled> {
        let all = self.tallies.take(source, tally)?;
        all.iter().for_each(|all| self.send(&Message::Tally(*all)));
        Ok(())
    }

    /// What the root says of losses.
    fn note_losses(&mut self, message: &Message) -> Result<(), Garbled> {
        let Some(here) = &self.here else {
            return Ok(());
        };
        match *message {
            Message::Tally(tally) => here.publish_tally(&tally),
            Message::Lost(rank, order) => here.declare_loss(rank, order)?,
            Message::Agreed { round, losses } => here.publish_agreement(round, losses)?,
            Message::Kill(accuser, accused) => {
                if let Err(why) = here.kill_accused(accuser, accused) {
                    self.trouble(1, &why);
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn act(&mut self, actions: Vec<Action>) -> Result<(), Garbled> {
        for action in actions {
            match action {
                Action::Waits(fence) => self.send(&Message::Waits(fence)),
                Action::Up { values, fence } => {
                    for piece in pieces(&values) {
                        self.send(&Message::Values(piece.to_vec()));
                    }
                    self.send(&Message::Arrived(fence));
                }
                Action::Down {
                    source,
                    values,
                    fence,
                } if source < self.children.len() => {
                    for piece in pieces(&values) {
                        self.children.send(source, &Message::Values(piece.to_vec()));
                    }
                    self.children.send(source, &Message::Done(fence));
                }
                Action::Down { values, fence, .. } => {
                    if let Some(here) = &self.here {
                        here.pass_fence(&values, fence)?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn look_at_rank(&mut self, event: RankEvent) {
        let Some(here) = &mut self.here else { return };
        match event {
            RankEvent::Guardian => self.take_news(),
            RankEvent::Rung(i) => {
                here.ranks.answer(i);
                self.look_around(i);
            }
            RankEvent::Ended(i) => {
                let rank = here.ranks.rank(i);
                let fate = here.ranks.rank_ended(i);
                let obstacle = judgment::obstacle(here.control);
                let obstacle = obstacle.filter(|_| fate.lost.is_none());
                if rank == JobRank(0) {
                    // It has no reader any more.
                    self.input.pipe = None;
                    self.pour_input();
                }
                let ended = Message::Ended(Ended {
                    rank,
                    fate,
                    obstacle,
                });
                // A loss is known above before the tally without the rank, and an end of the job
                // before the end of the rank.
                if fate.lost.is_some() {
                    self.send(&ended);
                    self.look_around(i);
                } else {
                    self.look_around(i);
                    self.send(&ended);
                }
            }
        }
    }

    /// Takes the news of the guardian.
    fn take_news(&mut self) {
        while let Some(here) = &mut self.here {
            match here.ranks.news() {
                // That of ranks which another launcher has started ends with the last of them.
                Some(News::Gone(pid, end)) if !here.ranks.have_ended() => {
                    let warning = LostGuardian(pid, end).warning();
                    return self.note(&warning);
                }
                Some(News::Gone(..)) | None => return,
                Some(News::Accusation(accuser, accused)) => {
                    self.send(&Message::Accusation(accuser, accused));
                }
            }
        }
    }

    /// Reports to the other hosts the changes of the ranks here; rank `i` has rung, or ended.
    pub(super) fn look_around(&mut self, i: usize) {
        let Some(here) = &mut self.here else { return };
        let word = here.exit_to_report().map(Message::Exit);
        let gone = here.gone_to_report(i);
        let fence = here.fence_to_report();
        // Read after the fence and sent before it: it has what ranks accepted before they entered.
        let tally = here.tally_to_report();
        word.iter()
            .chain(&gone)
            .for_each(|message| self.send(message));
        let source = self.children.len();
        let reported = tally.map(|tally| self.report_tally(source, tally));
        if let Some(Err(garbled)) = reported {
            self.garbled_here(&garbled);
        }
        if let Some((published, number)) = fence {
            let taken = self.exchange.values(source, &published);
            let actions = taken.and_then(|()| self.exchange.arrived(source, number));
            if let Err(garbled) = actions.and_then(|actions| self.act(actions)) {
                self.garbled_here(&garbled);
            }
        }
    }

    fn garbled_here(&mut self, garbled: &Garbled) {
        self.trouble(
            1,
            &format!("ranks have written where they must not ({garbled})"),
        );
    }
}
