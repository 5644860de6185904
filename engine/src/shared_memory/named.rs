//! The barrier with names by cells: the name that a rank gives travels in its cell, and a rank that
//! waits or tries reads the cells of all.

use super::group::Group;
use crate::named::Agreed;
use argonet_conduit::{Entry, SharedCells};

/// A barrier that this rank has entered by its cell.
pub(crate) struct NamedCall {
    call: u64,
    /// The member whose cell is read next.
    at: usize,
    agreed: Agreed,
}

impl NamedCall {
    /// Enters the group's next barrier.
    pub(crate) fn take(cells: SharedCells<'_>, group: &Group, name: Agreed) -> Self {
        let call = group.next();
        // A rank that has left a barrier has seen that all have left the one before.
        debug_assert!(group.has_room(call));
        let mut bytes = [[0; 4]; 2];
        for (bytes, arg) in bytes.iter_mut().zip(name.to_args()) {
            *bytes = arg.to_ne_bytes();
        }
        cells.enter(group.slot, call, Entry::default(), bytes.as_flattened());
        cells.wake(group.others());
        group.entered(call);
        Self {
            call,
            at: 0,
            agreed: Agreed::Nothing,
        }
    }

    /// Reads the cells that have come; returns the combination of all ranks' names once all have
    /// come.
    pub(crate) fn look(&mut self, cells: SharedCells<'_>, group: &Group) -> Option<Agreed> {
        while let Some(&rank) = group.members.get(self.at) {
            cells.look(group.slot, rank, self.call)?;
            let mut bytes = [[0; 4]; 2];
            cells.read(group.slot, rank, self.call, bytes.as_flattened_mut());
            let theirs = Agreed::from_args(bytes.map(u32::from_ne_bytes));
            self.agreed = self.agreed.with(theirs);
            self.at += 1;
        }
        group.knows(self.call);
        cells.finish(group.slot, self.call + 1);
        Some(self.agreed)
    }

    /// Whether the cell that is read next has come.
    pub(crate) fn has_come(&self, cells: SharedCells<'_>, group: &Group) -> bool {
        let rank = group.members.get(self.at);
        rank.is_none_or(|&rank| cells.look(group.slot, rank, self.call).is_some())
    }
}
