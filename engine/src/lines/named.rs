//! The barrier with names by lines: the name that a rank gives travels in its line, and a rank that
//! waits or tries reads the lines of all.

use super::circle::Circle;
use crate::named::Agreed;
use argonet_conduit::{Entry, Lines};

/// A barrier that this rank has entered by its line.
pub(crate) struct Seat {
    call: u64,
    /// The member whose line is read next.
    at: usize,
    agreed: Agreed,
}

impl Seat {
    /// Enters the circle's next barrier.
    pub(crate) fn take(lines: Lines<'_>, circle: &Circle, name: Agreed) -> Self {
        let call = circle.next();
        // A rank that has left a barrier has seen that all have left the one before.
        debug_assert!(circle.has_room(call));
        let mut bytes = [[0; 4]; 2];
        for (bytes, arg) in bytes.iter_mut().zip(name.to_args()) {
            *bytes = arg.to_ne_bytes();
        }
        lines.enter(circle.slot, call, Entry::default(), bytes.as_flattened());
        lines.ring(circle.others());
        circle.entered(call);
        Self {
            call,
            at: 0,
            agreed: Agreed::Nothing,
        }
    }

    /// Reads the lines that have come; returns the combination of all ranks' names once all have
    /// come.
    pub(crate) fn look(&mut self, lines: Lines<'_>, circle: &Circle) -> Option<Agreed> {
        while let Some(&rank) = circle.members.get(self.at) {
            lines.look(circle.slot, rank, self.call)?;
            let mut bytes = [[0; 4]; 2];
            lines.read(circle.slot, rank, self.call, bytes.as_flattened_mut());
            let theirs = Agreed::from_args(bytes.map(u32::from_ne_bytes));
            self.agreed = self.agreed.with(theirs);
            self.at += 1;
        }
        circle.knows(self.call);
        lines.finish(circle.slot, self.call + 1);
        Some(self.agreed)
    }

    /// Whether the line that is read next has come.
    pub(crate) fn has_come(&self, lines: Lines<'_>, circle: &Circle) -> bool {
        let rank = circle.members.get(self.at);
        rank.is_none_or(|&rank| lines.look(circle.slot, rank, self.call).is_some())
    }
}
