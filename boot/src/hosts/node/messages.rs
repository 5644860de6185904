//! Messages that an agent forwards between its ranks, the agents below, and its parent.

use argonet_base::JobRank;
use rustix::process::Signal;

use crate::exit::LostGuardian;
use crate::hosts::exchange::Action;
use crate::hosts::frame::Garbled;
use crate::hosts::message::Message;
use crate::hosts::node::Node;
use crate::hosts::values::pieces;
use crate::ranks::RankEvent;

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
            Message::Gone(_) | Message::Exit(_) | Message::Ended(..) | Message::Trouble(_) => {
                self.send(&message);
            }
            other => return Err(Garbled(format!("a {:?} from below", other.kind()))),
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
            RankEvent::Guardian => {
                let (pid, end) = here.ranks.guardian_ended();
                // That of ranks which another launcher has started ends with the last of them.
                if !here.ranks.have_ended() {
                    let warning = LostGuardian(pid, end).warning();
                    self.note(&warning);
                }
            }
            RankEvent::Rung(i) => {
                here.ranks.answer(i);
                self.look_around(i);
            }
            RankEvent::Ended(i) => {
                let rank = here.ranks.rank(i);
                let fate = here.ranks.rank_ended(i);
                if rank == JobRank(0) {
                    // It has no reader any more.
                    self.input.pipe = None;
                    self.pour_input();
                }
                self.look_around(i);
                self.send(&Message::Ended(rank, fate, fate.is_late_failure()));
            }
        }
    }

    /// Reports to the other hosts the changes of the ranks here; rank `i` has rung, or ended.
    pub(super) fn look_around(&mut self, i: usize) {
        let Some(here) = &mut self.here else { return };
        let word = here.exit_to_report().map(Message::Exit);
        let gone = here.gone_to_report(i);
        let fence = here.fence_to_report();
        word.iter()
            .chain(&gone)
            .for_each(|message| self.send(message));
        if let Some((published, number)) = fence {
            let source = self.children.len();
            let taken = self.exchange.values(source, &published);
            let actions = taken.and_then(|()| self.exchange.arrived(source, number));
            if let Err(garbled) = actions.and_then(|actions| self.act(actions)) {
                self.trouble(
                    1,
                    &format!("ranks have written where they must not ({garbled})"),
                );
            }
        }
    }
}
