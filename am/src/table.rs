//! The handler table of 256 entries.

use crate::delivery::Delivery;
use crate::error::AmError;
use crate::limits::{CLIENT_BASE, HANDLERS};
use argonet_base::HandlerIndex;

/// The function that runs when a message arrives.
pub type HandlerFn = dyn Fn(&mut Delivery<'_>) + Send + Sync;

/// Handlers by index.
///
/// Filled before the job communicates, read-only from then on.
///
/// Indices below [`CLIENT_BASE`] are the library's, the 128 from there on the client's.
pub struct HandlerTable {
    /// Apart from the names, as each message looks here.
    run: [Option<Box<HandlerFn>>; HANDLERS],
    names: [String; HANDLERS],
    /// Indices whose messages the caller of [`dispatch`](Self::dispatch) serves.
    reserved: Registered,
}

impl Default for HandlerTable {
    fn default() -> Self {
        Self {
            run: [const { None }; HANDLERS],
            names: [const { String::new() }; HANDLERS],
            reserved: Registered::default(),
        }
    }
}

impl HandlerTable {
    /// Registers a client's handler at an index that it chose.
    ///
    /// # Errors
    /// [`AmError::NotClients`] below the client's range, [`AmError::Taken`],
    /// [`AmError::NameTaken`].
    pub fn register_at(
        &mut self,
        index: HandlerIndex,
        name: &str,
        run: Box<HandlerFn>,
    ) -> Result<(), AmError> {
        if index < CLIENT_BASE {
            return Err(AmError::NotClients {
                index,
                name: name.into(),
                first: CLIENT_BASE,
            });
        }
        // The index first: an index of its own choice is the more frequent error of callers.
        self.vacant(index, name)?;
        self.unnamed(name)?;
        self.place(index, name, run)
    }

    /// Registers a client's handler at the highest free index and returns that index.
    ///
    /// The highest, so that fixed indices, which clients count up from the base, stay free.
    ///
    /// # Errors
    /// [`AmError::TableFull`], [`AmError::NameTaken`].
    pub fn register(&mut self, name: &str, run: Box<HandlerFn>) -> Result<HandlerIndex, AmError> {
        self.unnamed(name)?;
        let first = usize::from(CLIENT_BASE.0);
        let free = (first..HANDLERS).rev().find(|&i| self.run[i].is_none());
        let index = free
            .and_then(|i| u8::try_from(i).ok())
            .map(HandlerIndex)
            .ok_or_else(|| AmError::TableFull {
                name: name.into(),
                count: HANDLERS - first,
            })?;
        self.place(index, name, run)?;
        Ok(index)
    }

    /// Registers one of the library's own handlers.
    ///
    /// # Errors
    /// [`AmError::Taken`].
    pub fn register_internal(
        &mut self,
        index: HandlerIndex,
        name: &str,
        run: Box<HandlerFn>,
    ) -> Result<(), AmError> {
        debug_assert!(
            index < CLIENT_BASE,
            "internal handlers stand below the client's range"
        );
        self.place(index, name, run)
    }

    /// Takes an index for messages that the caller of [`dispatch`](Self::dispatch) serves itself,
    /// because it needs what exists only after the table is complete.
    ///
    /// # Errors
    /// [`AmError::Taken`].
    pub fn reserve_internal(&mut self, index: HandlerIndex, name: &str) -> Result<(), AmError> {
        self.vacant(index, name)?;
        self.reserved.insert(index);
        self.names[usize::from(index.0)] = name.into();
        Ok(())
    }

    /// Puts something around the handlers of clients, for traces.
    ///
    /// `wrap` gets each handler and returns the one that runs from then on.
    pub fn wrap_clients(&mut self, wrap: impl Fn(Box<HandlerFn>) -> Box<HandlerFn>) {
        for run in &mut self.run[usize::from(CLIENT_BASE.0)..] {
            *run = run.take().map(&wrap);
        }
    }

    fn vacant(&self, index: HandlerIndex, name: &str) -> Result<(), AmError> {
        if self.is_registered(index) {
            return Err(AmError::Taken {
                index,
                name: name.into(),
                holder: self.names[usize::from(index.0)].clone(),
            });
        }
        Ok(())
    }

    /// Clients send by name, so a name has one handler.
    ///
    /// Those of the library count too: a client that takes one of them means a handler that it
    /// cannot reach.
    fn unnamed(&self, name: &str) -> Result<(), AmError> {
        match self.names().find(|(_, held)| *held == name) {
            Some((index, _)) => Err(AmError::NameTaken {
                name: name.into(),
                index,
            }),
            None => Ok(()),
        }
    }

    fn place(
        &mut self,
        index: HandlerIndex,
        name: &str,
        run: Box<HandlerFn>,
    ) -> Result<(), AmError> {
        self.vacant(index, name)?;
        let at = usize::from(index.0);
        self.run[at] = Some(run);
        self.names[at] = name.into();
        Ok(())
    }

    /// Whether a message may name the index.
    #[inline(always)]
    #[must_use]
    pub fn is_registered(&self, index: HandlerIndex) -> bool {
        self.run[usize::from(index.0)].is_some() || self.reserved.contains(index)
    }

    /// Name and index of every handler, in the order of the indices.
    pub fn names(&self) -> impl Iterator<Item = (HandlerIndex, &str)> {
        let all = (0u8..=255).map(HandlerIndex).zip(&self.names);
        all.filter(|(index, _)| self.is_registered(*index))
            .map(|(index, name)| (index, name.as_str()))
    }

    /// The indices that have a handler, for checks of replies.
    #[must_use]
    pub fn registered(&self) -> Registered {
        let mut registered = Registered::default();
        for (index, _) in self.names() {
            registered.insert(index);
        }
        registered
    }

    /// Index of a client's handler by name.
    ///
    /// The library's own are not found: a client that could send them could forge its barriers.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<HandlerIndex> {
        self.names()
            .find(|(index, held)| *index >= CLIENT_BASE && *held == name)
            .map(|(index, _)| index)
    }

    /// Runs the handler that the message names; false if there is none, as for a reserved index.
    #[inline(always)]
    pub fn dispatch(&self, delivery: &mut Delivery<'_>) -> bool {
        match &self.run[usize::from(delivery.handler().0)] {
            Some(run) => {
                run(delivery);
                true
            }
            None => false,
        }
    }
}

/// The set of indices that have a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Registered([u64; HANDLERS / 64]);

impl Registered {
    /// All indices, where only the receiver knows which it has.
    pub const ALL: Self = Self([u64::MAX; HANDLERS / 64]);

    /// Whether the index has one.
    #[inline(always)]
    #[must_use]
    pub fn contains(&self, index: HandlerIndex) -> bool {
        self.0[usize::from(index.0) / 64] >> (index.0 % 64) & 1 != 0
    }

    fn insert(&mut self, index: HandlerIndex) {
        self.0[usize::from(index.0) / 64] |= 1 << (index.0 % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::ReplyPort;
    use crate::message::{Category, Message, MessageClass};
    use argonet_base::{JobRank, SegmentOffset};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    fn nothing() -> Box<HandlerFn> {
        Box::new(|_| {})
    }

    #[test]
    fn fixed_and_chosen_indices() {
        let mut table = HandlerTable::default();
        table
            .register_at(HandlerIndex(128), "a", nothing())
            .unwrap();
        assert_eq!(table.register("b", nothing()).unwrap(), HandlerIndex(255));
        assert!(matches!(
            table.register_at(HandlerIndex(255), "c", nothing()),
            Err(AmError::Taken { holder, .. }) if holder == "b"
        ));
        assert!(matches!(
            table.register_at(HandlerIndex(127), "c", nothing()),
            Err(AmError::NotClients { .. })
        ));
        assert!(table.is_registered(HandlerIndex(128)));
        let set = table.registered();
        assert!(
            (0..=255)
                .map(HandlerIndex)
                .all(|i| set.contains(i) == table.is_registered(i))
        );
        assert!(!table.is_registered(HandlerIndex(129)));
    }

    #[test]
    fn a_reserved_index_is_taken_and_named() {
        let mut table = HandlerTable::default();
        let index = HandlerIndex(9);
        table.reserve_internal(index, "mine").unwrap();
        assert!(table.registered().contains(index));
        assert!(table.names().any(|named| named == (index, "mine")));
        for refused in [
            table.reserve_internal(index, "other"),
            table.register_internal(index, "other", nothing()),
        ] {
            assert!(matches!(refused, Err(AmError::Taken { holder, .. }) if holder == "mine"));
        }
    }

    #[test]
    fn the_librarys_own_handlers_are_not_found_by_name() {
        let mut table = HandlerTable::default();
        table.reserve_internal(HandlerIndex(9), "own").unwrap();
        table
            .register_internal(HandlerIndex(1), "lib::barrier", nothing())
            .unwrap();
        assert_eq!(table.find("lib::barrier"), None);
        assert_eq!(table.find("own"), None);
        let index = table.register("client", nothing()).unwrap();
        assert_eq!(table.find("client"), Some(index));
    }

    #[test]
    fn a_name_that_is_taken_is_refused() {
        let mut table = HandlerTable::default();
        table
            .register_internal(HandlerIndex(1), "lib::barrier", nothing())
            .unwrap();
        table
            .register_at(HandlerIndex(130), "mine", nothing())
            .unwrap();
        let free = HandlerIndex(140);
        for (refused, name, holder) in [
            (
                table.register("lib::barrier", nothing()).map(drop),
                "lib::barrier",
                1,
            ),
            (
                table.register_at(free, "lib::barrier", nothing()),
                "lib::barrier",
                1,
            ),
            (table.register("mine", nothing()).map(drop), "mine", 130),
            (table.register_at(free, "mine", nothing()), "mine", 130),
        ] {
            let error = refused.unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("`{name}`")), "{text}");
            assert!(text.contains(&format!("index {holder}")), "{text}");
        }
        assert_eq!(table.names().count(), 2);
    }

    #[test]
    fn the_129th_handler_is_refused() {
        let mut table = HandlerTable::default();
        for i in 0..128 {
            table.register(&format!("h{i}"), nothing()).unwrap();
        }
        assert!(matches!(
            table.register("one more", nothing()),
            Err(AmError::TableFull { count: 128, .. })
        ));
        assert_eq!(table.names().count(), 128);
    }

    /// Where nothing replies.
    struct Nowhere;

    impl ReplyPort for Nowhere {
        fn reply(&self, _: JobRank, _: &Message<'_>) -> Result<(), AmError> {
            Ok(())
        }

        fn rank(&self) -> JobRank {
            JobRank(0)
        }

        fn registered(&self) -> &Registered {
            &Registered::ALL
        }
    }

    /// Whether a handler ran for a short message to this index.
    fn dispatched(table: &HandlerTable, index: HandlerIndex) -> bool {
        let (class, category) = (MessageClass::Request, Category::Short);
        let (from, nowhere) = (JobRank(0), SegmentOffset(0));
        let mut short = Delivery::new(from, class, category, index, &[], None, nowhere, &Nowhere);
        table.dispatch(&mut short)
    }

    fn counting(count: &Arc<AtomicU32>, by: u32) -> Box<HandlerFn> {
        let count = Arc::clone(count);
        Box::new(move |_| {
            count.fetch_add(by, Relaxed);
        })
    }

    #[test]
    fn the_handler_that_a_message_names_runs() {
        let (count, mut table) = (Arc::new(AtomicU32::new(0)), HandlerTable::default());
        let (first, second) = (HandlerIndex(128), HandlerIndex(129));
        table.register_at(first, "a", counting(&count, 1)).unwrap();
        table
            .register_at(second, "b", counting(&count, 10))
            .unwrap();
        table.reserve_internal(HandlerIndex(9), "served").unwrap();
        assert!(dispatched(&table, second));
        assert_eq!(count.load(Relaxed), 10);
        assert!(dispatched(&table, first));
        assert_eq!(count.load(Relaxed), 11);
        assert!(!dispatched(&table, HandlerIndex(130)));
        assert!(!dispatched(&table, HandlerIndex(9)), "its caller serves it");
    }

    #[test]
    fn clients_handlers_alone_are_wrapped() {
        let (count, mut table) = (Arc::new(AtomicU32::new(0)), HandlerTable::default());
        let (own, clients) = (HandlerIndex(1), [CLIENT_BASE, HandlerIndex(255)]);
        table
            .register_internal(own, "own", counting(&count, 1))
            .unwrap();
        for (index, name) in clients.into_iter().zip(["a", "b"]) {
            table.register_at(index, name, counting(&count, 1)).unwrap();
        }
        table.wrap_clients(|inner| {
            let count = Arc::clone(&count);
            Box::new(move |delivery| {
                count.fetch_add(10, Relaxed);
                inner(delivery);
            })
        });
        for (index, expected) in [(own, 1), (clients[0], 11), (clients[1], 11)] {
            count.store(0, Relaxed);
            assert!(dispatched(&table, index));
            assert_eq!(count.load(Relaxed), expected, "{index:?}");
        }
        assert!(!table.is_registered(HandlerIndex(129)), "nothing to wrap");
    }
}
