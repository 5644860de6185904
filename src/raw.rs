//! The layer below the types, for runtimes: addresses, handler indices, argument words.
//!
//! It has the same progress and completion rules as the safe API, and leaves to the caller what
//! that ensures: which memory is read and written, and that a message's handler understands it.
#![allow(unsafe_code)]

use crate::engine::Outlook;
use crate::error::Result;
use crate::process;
use crate::world::{Threading, World};
use argonet_am::{AmError, CLIENT_BASE, Message, Payload};
use argonet_base::{HandlerIndex, Rank, SegmentOffset};
use argonet_conduit::{PrepareRequest, Prepared};
use argonet_segment::{SharedBytes, SharedBytesMut};
use core::marker::PhantomData;
use core::ptr::NonNull;

pub use argonet_am::Lane;
pub use argonet_conduit::PrepareRequest as Want;

/// The raw calls of a world.
pub struct Raw<'w, M: Threading>(&'w World<M>);

impl<M: Threading> World<M> {
    /// The layer below the types.
    #[must_use]
    pub fn raw(&self) -> Raw<'_, M> {
        Raw(self)
    }
}

/// Room for a payload that is written in place, made by [`Raw::prepare`].
///
/// It lies in memory of its world, which cannot be finalised meanwhile:
///
/// ```compile_fail
/// # use argonet::{World, engine::Outlook, raw::Want};
/// # fn f(world: World, want: &Want) {
/// let mut room = world.raw().prepare(want, Outlook::Wait).unwrap();
/// world.finalise().unwrap();
/// room.buffer().fill(0, 1, 7).unwrap();
/// # }
/// ```
#[derive(Debug)]
pub struct Room<'w> {
    prepared: Prepared,
    _world: PhantomData<&'w ()>,
}

impl Room<'_> {
    /// Bytes that it holds.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.prepared.capacity()
    }

    /// Where the payload is written.
    #[must_use]
    pub fn buffer(&mut self) -> SharedBytesMut<'_> {
        // SAFETY: the conduit belongs to the world, which the lifetime of `self` borrows.
        unsafe { self.prepared.buffer() }
    }
}

impl<'w, M: Threading> Raw<'w, M> {
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

    /// Writes `len` bytes; complete on return.
    ///
    /// # Safety
    /// `src` is readable for `len` bytes. Nobody holds a slice of the target.
    ///
    /// # Errors
    /// As [`World::put_value`].
    pub unsafe fn put(
        &self,
        to: Rank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        process::with(|ctx| unsafe {
            self.0
                .engine()
                .put(ctx, World::<M>::job_rank(to), offset, src, len)
        })?;
        Ok(())
    }

    /// Reads `len` bytes; complete on return.
    ///
    /// # Safety
    /// `dst` is writable for `len` bytes.
    ///
    /// # Errors
    /// As [`World::put_value`].
    pub unsafe fn get(
        &self,
        from: Rank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        process::with(|ctx| unsafe {
            self.0
                .engine()
                .get(ctx, World::<M>::job_rank(from), offset, dst, len)
        })?;
        Ok(())
    }

    /// Index of the handler with a name.
    #[must_use]
    pub fn handler(&self, name: &str) -> Option<HandlerIndex> {
        self.0.engine().handler_named(name)
    }

    /// Handlers of the library are not for clients: a forged barrier would let a rank out of a
    /// quiet phase.
    fn check_client(&self, index: HandlerIndex, to: Rank) -> Result<(), AmError> {
        if index < CLIENT_BASE {
            return Err(AmError::NotForClients {
                index,
                from: self.0.engine().rank(),
                to: World::<M>::job_rank(to),
            });
        }
        Ok(())
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
        self.check_client(handler, to)?;
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
    /// this thread can do nothing else. Of `want`, the lane is ignored: it is a request's.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn prepare(&self, want: &PrepareRequest, outlook: Outlook) -> Result<Room<'w>> {
        let want = PrepareRequest {
            lane: Lane::Request,
            ..*want
        };
        let prepared = process::with(|ctx| self.0.engine().prepare(ctx, &want, outlook))?;
        Ok(Room {
            prepared,
            _world: PhantomData,
        })
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
        room: Room<'_>,
        handler: HandlerIndex,
        args: &[u32],
        len: usize,
    ) -> Result<()> {
        if let Err(error) = self.check_client(handler, Rank(room.prepared.to().0)) {
            // SAFETY: the caller's promise.
            unsafe { self.cancel(room) };
            return Err(error.into());
        }
        let engine = self.0.engine();
        process::with(|ctx| engine.commit(ctx, room.prepared, handler, args, len))?;
        Ok(())
    }

    /// Gives a prepared payload back.
    ///
    /// # Safety
    /// As [`commit`](Self::commit).
    pub unsafe fn cancel(&self, room: Room<'_>) {
        process::with(|ctx| self.0.engine().cancel(ctx, room.prepared));
    }
}
