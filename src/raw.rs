//! The layer below the types, for runtimes: addresses, handler indices, argument words.
//!
//! It has the same progress and completion rules as the safe API, and leaves to the caller what
//! that ensures: which memory is read and written, and that a message's handler understands it.
#![allow(unsafe_code)]

use crate::engine::OpError;
use crate::error::Result;
use crate::process;
use crate::world::{Threading, World};
use argonet_am::{Message, Payload};
use argonet_base::{HandlerIndex, Rank, SegmentOffset};
use argonet_segment::SharedBytes;
use core::ptr::NonNull;

pub use crate::engine::{NEAR_MAGIC, NEAR_VERSION, NearPrefix, NearTable, Outlook, Transfer};
pub use argonet_am::Lane;
pub use argonet_conduit::{PrepareRequest, Prepared};
pub use argonet_event::{Category, CategoryMask, Event};

/// The raw calls of a world.
pub struct Raw<'w, M: Threading>(&'w World<M>);

impl<M: Threading> World<M> {
    /// The layer below the types.
    #[must_use]
    pub fn raw(&self) -> Raw<'_, M> {
        Raw(self)
    }
}

impl<M: Threading> Raw<'_, M> {
    /// Start of this rank's segment. It never moves.
    #[must_use]
    pub fn segment_base(&self) -> NonNull<u8> {
        self.0.inner.memory.own.base()
    }

    /// Attached bytes of this rank's segment.
    #[must_use]
    pub fn segment_len(&self) -> u64 {
        self.0.inner.memory.own.len()
    }

    /// Address of `len` bytes of a segment where this process can load and store them.
    #[must_use]
    pub fn local_address(
        &self,
        rank: Rank,
        offset: SegmentOffset,
        len: usize,
    ) -> Option<NonNull<u8>> {
        let directory = self.0.engine().directory();
        directory.resolve(World::<M>::job_rank(rank), offset, len)
    }

    /// The segment and offset that an address of this process lies in.
    #[must_use]
    pub fn translate(&self, address: *const u8) -> Option<(Rank, SegmentOffset)> {
        let (rank, offset) = self.0.engine().directory().translate(address)?;
        Some((Rank(rank.0), offset))
    }

    /// The table through which C code, with `include/argonet_near.h`, puts to and gets from
    /// neighbours without a call. It maps the attached part of every neighbour's segment, and
    /// takes 8 bytes a rank beside the directory. Local; blocks only for system calls.
    ///
    /// ```
    /// let world = argonet::World::init().unwrap();
    /// let table = world.raw().near_table().unwrap();
    /// assert!(table.reach_bytes() <= world.raw().segment_len());
    /// ```
    ///
    /// # Errors
    /// What the system says of a mapping.
    pub fn near_table(&self) -> Result<NearTable> {
        Ok(self.0.engine().near_table()?)
    }

    /// Does a transfer; complete, locally and remotely, on return.
    ///
    /// # Safety
    /// The transfer's memory is readable or writable for its length, and nobody holds a slice of
    /// the segment's side.
    ///
    /// # Errors
    /// As [`World::put_value`].
    pub unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        // SAFETY: the caller's promise.
        process::with(|ctx| unsafe { self.0.engine().transfer(ctx, transfer) })?;
        Ok(())
    }

    /// Starts a transfer; [`Event::DONE`] if it is complete already.
    ///
    /// # Safety
    /// As [`transfer`](Self::transfer), until the event is complete; the source of a put until
    /// its leaf of local completion is.
    ///
    /// # Errors
    /// As [`World::put_value`]; with [`Outlook::Immediate`] also that there is no room or no
    /// handle. At the limit of 2^24 - 1 outstanding operations a world of one thread ends the job,
    /// one of several polls for 10 s before it does.
    pub unsafe fn start(&self, transfer: &Transfer, outlook: Outlook) -> Result<Event> {
        // SAFETY: the caller's promise.
        Ok(process::with(|ctx| unsafe {
            self.0.engine().start(ctx, transfer, outlook)
        })?)
    }

    /// Starts an implicit transfer, which [`wait_implicit`](Self::wait_implicit) waits for, or the
    /// event of the access region around it.
    ///
    /// # Safety
    /// As [`start`](Self::start), until that says that it is complete.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub unsafe fn start_implicit(&self, transfer: &Transfer, outlook: Outlook) -> Result<()> {
        // SAFETY: the caller's promise.
        process::with(|ctx| unsafe { self.0.engine().start_implicit(ctx, transfer, outlook) })?;
        Ok(())
    }

    /// The event of the local completion of a put, or of one category of an access region.
    ///
    /// # Errors
    /// An event that is stale or has no such leaf.
    pub fn leaf(&self, root: Event, category: Category) -> Result<Event> {
        Ok(self
            .0
            .engine()
            .leaf(root, category)
            .map_err(OpError::from)?)
    }

    /// Polls once; whether the event is complete, and then gone. Any thread may ask.
    ///
    /// # Errors
    /// A stale event, or a call from inside a handler.
    pub fn test(&self, event: Event) -> Result<bool> {
        Ok(process::with(|ctx| self.0.engine().test(ctx, event))?)
    }

    /// Polls until the event is complete.
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn wait(&self, event: Event) -> Result<()> {
        Ok(process::with(|ctx| self.0.engine().wait(ctx, event))?)
    }

    /// Polls until one of the events is complete, or all were; complete ones become
    /// [`Event::DONE`].
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn wait_some(&self, events: &mut [Event]) -> Result<()> {
        Ok(process::with(|ctx| self.0.engine().wait_some(ctx, events))?)
    }

    /// Polls until all events are complete, which become [`Event::DONE`].
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn wait_all(&self, events: &mut [Event]) -> Result<()> {
        Ok(process::with(|ctx| self.0.engine().wait_all(ctx, events))?)
    }

    /// Polls until this thread's implicit operations of the categories are complete.
    ///
    /// # Errors
    /// A call inside an access region or a handler.
    pub fn wait_implicit(&self, mask: CategoryMask) -> Result<()> {
        Ok(process::with(|ctx| {
            self.0.engine().wait_implicit(ctx, mask)
        })?)
    }

    /// Polls once; whether this thread's implicit operations of the categories are complete.
    ///
    /// # Errors
    /// As [`wait_implicit`](Self::wait_implicit).
    pub fn test_implicit(&self, mask: CategoryMask) -> Result<bool> {
        Ok(process::with(|ctx| {
            self.0.engine().test_implicit(ctx, mask)
        })?)
    }

    /// Begins an access region of this thread.
    ///
    /// # Errors
    /// One is open already.
    pub fn begin_region(&self) -> Result<()> {
        Ok(process::with(|ctx| self.0.engine().begin_region(ctx))?)
    }

    /// Ends the access region; the event of all implicit operations started in it.
    ///
    /// # Errors
    /// None is open.
    pub fn end_region(&self) -> Result<Event> {
        Ok(process::with(|ctx| self.0.engine().end_region(ctx))?)
    }

    /// Index of the handler with a name.
    #[must_use]
    pub fn handler(&self, name: &str) -> Option<HandlerIndex> {
        self.0.engine().handler_named(name)
    }

    /// Sends a request by index.
    ///
    /// # Safety
    /// A long's destination is not held as a slice by its rank.
    ///
    /// # Errors
    /// As [`World::send_medium`]; [`AmError::Full`](crate::AmError::Full) with
    /// [`Outlook::Immediate`].
    pub unsafe fn request(
        &self,
        to: Rank,
        handler: HandlerIndex,
        args: &[u32],
        payload: Option<(&[u8], Option<SegmentOffset>)>,
        outlook: Outlook,
    ) -> Result<()> {
        let payload = match payload {
            None => Payload::None,
            Some((bytes, None)) => Payload::Medium(SharedBytes::from_slice(bytes)),
            Some((bytes, Some(to))) => Payload::Long(SharedBytes::from_slice(bytes), to),
        };
        let message = Message {
            handler,
            args,
            payload,
        };
        process::with(|ctx| {
            self.0
                .engine()
                .request(ctx, World::<M>::job_rank(to), &message, outlook)
        })?;
        Ok(())
    }

    /// Reserves room for a payload that is written in place. Until it is committed or cancelled
    /// this thread can do nothing else.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn prepare(&self, want: &PrepareRequest, outlook: Outlook) -> Result<Prepared> {
        Ok(process::with(|ctx| {
            self.0.engine().prepare(ctx, want, outlook)
        })?)
    }

    /// Sends `len` bytes of a prepared payload.
    ///
    /// # Safety
    /// `room` came from [`prepare`](Self::prepare) of this world, on this thread.
    ///
    /// # Errors
    /// A handler that is not registered; the payload is cancelled then.
    pub unsafe fn commit(
        &self,
        room: Prepared,
        handler: HandlerIndex,
        args: &[u32],
        len: usize,
    ) -> Result<()> {
        process::with(|ctx| self.0.engine().commit(ctx, room, handler, args, len))?;
        Ok(())
    }

    /// Gives a prepared payload back.
    ///
    /// # Safety
    /// As [`commit`](Self::commit).
    pub unsafe fn cancel(&self, room: Prepared) {
        process::with(|ctx| self.0.engine().cancel(ctx, room));
    }
}
