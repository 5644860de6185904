//! The layer below the types, for runtimes: addresses, handler indices, argument words.
//!
//! It has the same progress and completion rules as the safe API, but the caller ensures which
//! memory is read and written, and that a message's handler understands it.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::global::{Global, GlobalPtr};
use crate::global_slice::GlobalSlice;
use crate::process;
use crate::token::payload_of;
use crate::world::{Threading, World};
use argonet_am::{AmError, CLIENT_BASE, Message};
use argonet_base::{HandlerIndex, Rank, SegmentOffset};
use argonet_conduit::Prepared;
use argonet_conduit::selector::Selector;
use argonet_engine::{Engine, OpError};
use argonet_segment::SharedBytesMut;
use core::marker::PhantomData;
use core::ptr::NonNull;

pub use crate::token::Token;
pub use argonet_am::MessageClass;
pub use argonet_conduit::PrepareRequest;
pub use argonet_engine::{BoundPlace, Injection, Side, Target, Transfer};
pub use argonet_event::{Category, CategoryMask, Event};
pub use argonet_start::with_thread;

/// A pointer to `offset` bytes from the start of the segment of `rank`.
///
/// It is checked where it is used, against the segment alone: nothing keeps it inside of an array.
///
/// ```
/// use argonet::{SharedArray, World, raw};
/// # let world = World::init().unwrap();
/// let v = SharedArray::<u32>::alloc(&world, 4).unwrap();
/// let p = v.ptr(world.rank(), 1);
/// assert_eq!(raw::global_ptr(p.rank(), p.offset()), p);
/// assert_eq!(raw::offset_by(p, 2), v.ptr(world.rank(), 3));
/// assert_eq!(raw::global_slice(p, 3), v.on(world.rank()).part(1..4));
/// ```
#[must_use]
pub const fn global_ptr<T: Global>(rank: Rank, offset: SegmentOffset) -> GlobalPtr<T> {
    GlobalPtr::new(rank, offset)
}

/// The pointer `elements` further on.
///
/// It saturates; an offset too large is refused when used.
///
/// See the example of [`global_ptr`].
#[must_use]
pub const fn offset_by<T: Global>(p: GlobalPtr<T>, elements: usize) -> GlobalPtr<T> {
    p.offset_by(elements)
}

/// The value that `first` names and those behind it, `len` in all.
///
/// See the example of [`global_ptr`].
#[must_use]
pub const fn global_slice<T: Global>(first: GlobalPtr<T>, len: usize) -> GlobalSlice<T> {
    GlobalSlice::new(first, len)
}

/// The raw calls of a world.
///
/// ```
/// use argonet::raw::{Side, Target, Transfer};
/// use argonet::{JobRank, SharedArray, World};
/// # let world = World::init().unwrap();
/// let raw = world.raw();
/// let v = SharedArray::<u64>::alloc(&world, 1).unwrap();
/// let p = v.ptr(world.rank(), 0);
/// // Addresses.
/// let address = raw.local_address(p.rank(), p.offset(), 8).unwrap();
/// assert_eq!(raw.translate(address.as_ptr()), Some((p.rank(), p.offset())));
/// assert_eq!(raw.segment_base().addr().get() + p.offset().0 as usize, address.addr().get());
/// assert!(p.offset().0 + 8 <= raw.segment_len());
/// // A transfer.
/// let value = 42u64;
/// let put = Transfer {
///     target: Target::Segment { rank: JobRank(p.rank().0), offset: p.offset() },
///     side: Side::Put((&raw const value).cast()),
///     len: 8,
/// };
/// // SAFETY: the value is readable for 8 bytes, and no rank holds a slice of the array.
/// unsafe { raw.transfer(put).unwrap() };
/// assert_eq!(v.read(&world, 0), 42);
/// ```
pub struct Raw<'w, M: Threading>(&'w World<M>);

impl<M: Threading> World<M> {
    /// The layer below the types.
    ///
    /// See the example of [`Raw`].
    #[must_use]
    pub fn raw(&self) -> Raw<'_, M> {
        Raw(self)
    }
}

/// A payload that is written in place, made by [`Raw::prepare`].
///
/// It lies in memory of its world, which cannot be finalized meanwhile:
///
/// ```compile_fail,E0505
/// # use argonet::{World, engine::Injection, raw::PrepareRequest};
/// # fn f(world: World, want: &PrepareRequest) {
/// let mut prepared = world.raw().prepare(want, Injection::Blocking).unwrap();
/// world.finalize().unwrap();
/// prepared.buffer().fill(0, 1, 7).unwrap();
/// # }
/// ```
///
/// See the example of [`Raw::request`].
///
/// A drop without a commit cancels it. It stays on the thread that prepared it.
pub struct PreparedPayload<'w> {
    /// Taken only by a commit and by `drop`.
    prepared: Option<Prepared>,
    cancel: &'w dyn Cancel,
    _thread: PhantomData<*mut ()>,
}

impl core::fmt::Debug for PreparedPayload<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PreparedPayload({:?})", self.prepared)
    }
}

/// The call of a world that dropping a prepared payload makes, for worlds of either threading.
trait Cancel {
    fn cancel(&self, prepared: Prepared);
}

impl<M: Threading> Cancel for World<M> {
    fn cancel(&self, prepared: Prepared) {
        process::with(|ctx| self.engine().cancel(ctx, prepared));
    }
}

impl Drop for PreparedPayload<'_> {
    fn drop(&mut self) {
        if let Some(prepared) = self.prepared.take() {
            self.cancel.cancel(prepared);
        }
    }
}

impl PreparedPayload<'_> {
    /// Bytes that it holds.
    ///
    /// See the example of [`Raw::request`].
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.prepared.as_ref().map_or(0, Prepared::capacity)
    }

    /// Where the payload is written.
    ///
    /// See the example of [`Raw::request`].
    #[must_use]
    pub fn buffer(&mut self) -> SharedBytesMut<'_> {
        match &mut self.prepared {
            // SAFETY: the conduit belongs to the world, which the lifetime of `self` borrows.
            Some(prepared) => unsafe { prepared.buffer() },
            None => SharedBytesMut::from_slice(&mut []),
        }
    }
}

impl<'w, M: Threading> Raw<'w, M> {
    pub(crate) fn world(&self) -> &'w World<M> {
        self.0
    }

    /// The engine below the world, whose calls take the thread's context
    /// ([`with_thread`]).
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// // SAFETY: the only calls are those that describe the job.
    /// let engine = unsafe { world.raw().engine() };
    /// assert_eq!(engine.size(), world.size());
    /// ```
    ///
    /// It asks for none of the promises that the safe calls of all ranks rely on, so it is not to
    /// be had by safe code:
    ///
    /// ```compile_fail,E0133
    /// # let world = argonet::World::init().unwrap();
    /// let engine = world.raw().engine();
    /// ```
    ///
    /// # Safety
    /// The caller keeps, with this engine, the [contract of the engine](argonet_engine#contract).
    #[must_use]
    pub unsafe fn engine(&self) -> &'w Engine<Selector> {
        self.0.engine()
    }

    /// Start of this rank's segment.
    ///
    /// It never moves.
    ///
    /// See the example of [`Raw`].
    #[must_use]
    pub fn segment_base(&self) -> NonNull<u8> {
        self.0.inner.memory.own.base()
    }

    /// Attached bytes of this rank's segment.
    ///
    /// See the example of [`Raw`].
    #[must_use]
    pub fn segment_len(&self) -> u64 {
        self.0.inner.memory.own.len()
    }

    /// Address of `len` bytes of a segment where this process can load and store them; `None` where
    /// they are not mapped here.
    ///
    /// See the example of [`Raw`].
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

    /// The rank and the offset in its segment that an address of this process leads to; `None` for
    /// an address in no segment.
    ///
    /// See the example of [`Raw`].
    #[must_use]
    pub fn translate(&self, address: *const u8) -> Option<(Rank, SegmentOffset)> {
        let (rank, offset) = self.0.engine().directory().translate(address)?;
        Some((Rank(rank.0), offset))
    }

    /// Does a transfer; complete, locally and remotely, on return.
    ///
    /// See the example of [`Raw`].
    ///
    /// # Safety
    /// The transfer's memory is readable or writable for its length, and no rank holds a slice of
    /// the target's side.
    ///
    /// # Errors
    /// As [`World::put_value`]. Bound memory that its owner does not have ends the job.
    pub unsafe fn transfer(&self, transfer: Transfer) -> Result<()> {
        // SAFETY: the caller's promise.
        process::with(|ctx| unsafe { self.0.engine().transfer(ctx, transfer) })?;
        Ok(())
    }

    /// Starts a transfer; [`Event::DONE`] if it is complete already.
    ///
    /// ```
    /// use argonet::raw::{Category, Event, Injection, Side, Target, Transfer};
    /// use argonet::{JobRank, SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let raw = world.raw();
    /// let v = SharedArray::<u8>::alloc(&world, 4).unwrap();
    /// let (rank, offset) = (JobRank(world.rank().0), v.ptr(world.rank(), 0).offset());
    /// let target = Target::Segment { rank, offset };
    /// let (source, mut back) = (*b"data", [0u8; 4]);
    /// let put = Transfer { target, side: Side::Put(source.as_ptr()), len: 4 };
    /// let get = Transfer { target, side: Side::Get(back.as_mut_ptr()), len: 4 };
    /// // SAFETY: source and destination live until the events are complete, and no rank holds a
    /// // slice of the array.
    /// unsafe {
    ///     let written = raw.start(put, Injection::Blocking).unwrap();
    ///     let source_free = raw.leaf(written, Category::Lc).unwrap();
    ///     raw.wait(source_free).unwrap();
    ///     raw.wait(written).unwrap();
    ///     let read = raw.start(get, Injection::Blocking).unwrap();
    ///     while !raw.test(read).unwrap() {}
    ///     let mut events = [raw.start(put, Injection::Blocking).unwrap(), Event::DONE];
    ///     raw.wait_some(&mut events).unwrap();
    ///     raw.wait_all(&mut events).unwrap();
    ///     assert_eq!(events, [Event::DONE; 2]);
    /// }
    /// assert_eq!(back, source);
    /// ```
    ///
    /// # Safety
    /// As [`transfer`](Self::transfer), until the event is complete; the source of a put until
    /// its leaf of local completion is.
    ///
    /// # Errors
    /// As [`World::put_value`]; with [`Injection::Immediate`] also that there is no room or no
    /// handle. At the limit of 2^24 - 2 outstanding operations a world of one thread ends the job,
    /// one of several polls for 10 s before it does.
    pub unsafe fn start(&self, transfer: Transfer, injection: Injection) -> Result<Event> {
        // SAFETY: the caller's promise.
        Ok(process::with(|ctx| unsafe {
            self.0.engine().start(ctx, transfer, injection)
        })?)
    }

    /// Starts an implicit transfer, which [`wait_implicit`](Self::wait_implicit) waits for, or the
    /// event of the access region around it.
    ///
    /// ```
    /// use argonet::raw::{Category, CategoryMask, Injection, Side, Target, Transfer};
    /// use argonet::{JobRank, SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let raw = world.raw();
    /// let v = SharedArray::<u8>::alloc(&world, 4).unwrap();
    /// let source = *b"data";
    /// let (rank, offset) = (JobRank(world.rank().0), v.ptr(world.rank(), 0).offset());
    /// let target = Target::Segment { rank, offset };
    /// let put = Transfer { target, side: Side::Put(source.as_ptr()), len: 4 };
    /// // SAFETY: the source lives until all is complete, and no rank holds a slice of the array.
    /// unsafe {
    ///     raw.start_implicit(put, Injection::Blocking).unwrap();
    ///     raw.wait_implicit(CategoryMask::ALL).unwrap();
    ///     assert!(raw.test_implicit(Category::Put.mask()).unwrap());
    ///     // An access region has an event of its own.
    ///     raw.begin_region().unwrap();
    ///     raw.start_implicit(put, Injection::Blocking).unwrap();
    ///     let region = raw.end_region().unwrap();
    ///     raw.wait(region).unwrap();
    /// }
    /// assert_eq!(v.read(&world, 3), b'a');
    /// ```
    ///
    /// # Safety
    /// As [`start`](Self::start), until that says that it is complete.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub unsafe fn start_implicit(&self, transfer: Transfer, injection: Injection) -> Result<()> {
        // SAFETY: the caller's promise.
        process::with(|ctx| unsafe { self.0.engine().start_implicit(ctx, transfer, injection) })?;
        Ok(())
    }

    /// The event of the local completion of a put, or of one category of an access region.
    ///
    /// See the example of [`start`](Self::start).
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

    /// Polls once; whether the event is complete, and then gone.
    ///
    /// Any thread may ask.
    ///
    /// See the example of [`start`](Self::start).
    ///
    /// # Errors
    /// A stale event, or a call from inside a handler.
    pub fn test(&self, event: Event) -> Result<bool> {
        Ok(process::with(|ctx| self.0.engine().test(ctx, event))?)
    }

    /// Polls until the event is complete.
    ///
    /// See the example of [`start`](Self::start).
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn wait(&self, event: Event) -> Result<()> {
        Ok(process::with(|ctx| self.0.engine().wait(ctx, event))?)
    }

    /// Polls until one of the events is complete, or all were; complete ones become
    /// [`Event::DONE`].
    ///
    /// See the example of [`start`](Self::start).
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn wait_some(&self, events: &mut [Event]) -> Result<()> {
        Ok(process::with(|ctx| self.0.engine().wait_some(ctx, events))?)
    }

    /// Polls until all events are complete, which become [`Event::DONE`].
    ///
    /// See the example of [`start`](Self::start).
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn wait_all(&self, events: &mut [Event]) -> Result<()> {
        Ok(process::with(|ctx| self.0.engine().wait_all(ctx, events))?)
    }

    /// Polls until this thread's implicit operations of the categories are complete.
    ///
    /// Those with a rank that is lost end without an error: compare
    /// [`lost_ranks`](crate::World::lost_ranks) before and after.
    ///
    /// See the example of [`start_implicit`](Self::start_implicit).
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
    /// See the example of [`start_implicit`](Self::start_implicit).
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
    /// See the example of [`start_implicit`](Self::start_implicit).
    ///
    /// # Errors
    /// One is open already.
    pub fn begin_region(&self) -> Result<()> {
        Ok(process::with(|ctx| self.0.engine().begin_region(ctx))?)
    }

    /// Ends the access region; the event of all implicit operations started in it.
    ///
    /// See the example of [`start_implicit`](Self::start_implicit).
    ///
    /// # Errors
    /// None is open.
    pub fn end_region(&self) -> Result<Event> {
        Ok(process::with(|ctx| self.0.engine().end_region(ctx))?)
    }

    /// Index of the client's handler with a name; the library's own are not found.
    ///
    /// See the example of [`request`](Self::request).
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

    /// Sends a request by index; its payload may be reused when this returns.
    ///
    /// ```
    /// use argonet::raw::{MessageClass, Injection, PrepareRequest};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// static SUM: AtomicU32 = AtomicU32::new(0);
    /// argonet::am! {
    ///     fn add(ctx, value: u32) {
    ///         SUM.fetch_add(value + ctx.payload().len() as u32, Ordering::Relaxed);
    ///     }
    /// }
    /// # let world = argonet::World::init().unwrap();
    /// let raw = world.raw();
    /// let handler = raw.handler(add.name()).unwrap();
    /// let payload = Some((b"abc".as_slice(), None));
    /// // SAFETY: a medium has no destination.
    /// unsafe { raw.request(world.rank(), handler, &[10], payload, Injection::Blocking).unwrap() };
    /// // A payload that is written in place.
    /// let want = PrepareRequest {
    ///     to: argonet::JobRank(world.rank().0),
    ///     class: MessageClass::Request,
    ///     nargs: 1,
    ///     least: 4,
    ///     most: 8,
    ///     offset: None,
    /// };
    /// let mut prepared = raw.prepare(&want, Injection::Blocking).unwrap();
    /// assert!(prepared.capacity() >= 4);
    /// prepared.buffer().copy_from(0, b"four").unwrap();
    /// // SAFETY: prepared just now, on this thread.
    /// unsafe { raw.commit(prepared, handler, &[20], 4).unwrap() };
    /// raw.cancel(raw.prepare(&want, Injection::Blocking).unwrap());
    /// world.wait_until(|| SUM.load(Ordering::Relaxed) == 37).unwrap();
    /// ```
    ///
    /// # Safety
    /// A long's destination is not held as a slice by its rank.
    ///
    /// # Errors
    /// As [`World::send_medium`]; [`AmError::Full`] with
    /// [`Injection::Immediate`].
    pub unsafe fn request(
        &self,
        to: Rank,
        handler: HandlerIndex,
        args: &[u32],
        payload: Option<(&[u8], Option<SegmentOffset>)>,
        injection: Injection,
    ) -> Result<()> {
        self.check_client(handler, to)?;
        let message = Message {
            handler,
            args,
            payload: payload_of(payload),
        };
        process::with(|ctx| {
            self.0
                .engine()
                .request(ctx, World::<M>::job_rank(to), &message, injection)
        })?;
        Ok(())
    }

    /// Prepares a payload that is written in place.
    ///
    /// Until it is committed or canceled this thread can do nothing else, and messages of other
    /// threads to the same rank wait behind it. A prepared payload that is forgotten
    /// ([`mem::forget`](core::mem::forget)) stays so, and the job ends when the world is finalized
    /// or dropped. Of `want`, the class is ignored: it is a request's.
    ///
    /// See the example of [`request`](Self::request).
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn prepare(
        &self,
        want: &PrepareRequest,
        injection: Injection,
    ) -> Result<PreparedPayload<'w>> {
        let want = PrepareRequest {
            class: MessageClass::Request,
            ..*want
        };
        let prepared = process::with(|ctx| self.0.engine().prepare(ctx, &want, injection))?;
        Ok(PreparedPayload {
            prepared: Some(prepared),
            cancel: self.0,
            _thread: PhantomData,
        })
    }

    /// Sends `len` bytes of a prepared payload.
    ///
    /// See the example of [`request`](Self::request).
    ///
    /// # Safety
    /// `payload` came from [`prepare`](Self::prepare) of this world, on this thread.
    ///
    /// # Errors
    /// A handler that is not registered; the payload is canceled then.
    ///
    /// # Panics
    /// If `args` are not as many as were prepared, or `len` is above the payload's capacity; the
    /// payload is canceled then.
    pub unsafe fn commit(
        &self,
        mut payload: PreparedPayload<'_>,
        handler: HandlerIndex,
        args: &[u32],
        len: usize,
    ) -> Result<()> {
        let Some(prepared) = payload.prepared.take() else {
            unreachable!("a payload is committed once: it is consumed here");
        };
        if let Err(error) = self.check_client(handler, Rank(prepared.to().0)) {
            self.0.cancel(prepared);
            return Err(error.into());
        }
        process::with(|ctx| self.0.engine().commit(ctx, prepared, handler, args, len))?;
        Ok(())
    }

    /// Gives a prepared payload back, as dropping it does.
    ///
    /// See the example of [`request`](Self::request).
    pub fn cancel(&self, payload: PreparedPayload<'_>) {
        drop(payload);
    }
}
