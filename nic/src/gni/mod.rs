//! Interfaces of the kind that Cray's Generic Network Interface (GNI) drives.
//!
//! The trait [`Gni`] has what its public interface has, by the same terms: completion queues,
//! registered memory, endpoints, datagrams that two interfaces exchange, mailboxes for short
//! messages (SMSG), one-sided operations by the processor's window (FMA) and by the interface's own
//! engine (BTE). Each call names the function of GNI that does the same, so that a binding can be
//! written where the library exists.
//!
//! [`software`] is such an interface in memory that the ranks of a host share. The hardware is
//! retired, and its library was never public.
//!
//! Any thread uses an interface and its endpoints, several at once, too: an implementation over a
//! library that does not allow that has locks.

mod error;
pub mod software;
mod types;

pub use error::GniError;
pub use types::{
    Access, Amo, AmoBits, Arrived, Credentials, DATAGRAM_BYTES, Event, EventData, EventKind,
    Exchanged, Failure, Limits, Mailbox, MemHandle, NicAddress, Operation, Post, RemotePlace,
    Shape,
};

use argonet_segment::SharedBytes;
use core::ptr::NonNull;
use core::time::Duration;

/// An interface of one rank; a rank may have several, which share nothing in its process.
pub trait Gni: Send + Sync + 'static {
    /// A completion queue.
    type Queue: Send + Sync + 'static;

    /// An endpoint, which is bound to one interface of a peer.
    type Endpoint: Send + Sync + 'static;

    /// Where it is reached (`GNI_CdmGetNicAddress`).
    fn address(&self) -> NicAddress;

    /// How much of each thing it has.
    fn limits(&self) -> Limits;

    /// Makes a completion queue of so many events (`GNI_CqCreate`).
    ///
    /// It goes when it is dropped, with all its events.
    ///
    /// # Errors
    /// [`GniError::NoSpace`].
    fn create_queue(&self, events: u32) -> Result<Self::Queue, GniError>;

    /// Takes the next event (`GNI_CqGetEvent`); `None` if there is none.
    ///
    /// # Errors
    /// [`GniError::Overrun`] once after events were lost as the queue was full: the client looks at
    /// all that could have caused one.
    fn next_event(&self, queue: &Self::Queue) -> Result<Option<Event>, GniError>;

    /// Whether [`next_event`](Self::next_event) would find something.
    fn has_event(&self, queue: &Self::Queue) -> bool;

    /// Sleeps until one of these queues has an event, a datagram may be complete,
    /// [`wake`](Self::wake) is called, or the time is over (`GNI_CqVectorMonitor`,
    /// `GNI_PostdataProbeWaitById`).
    ///
    /// Returns at once if `come` says so, which is asked when threads that post events know that
    /// this one sleeps. May return for nothing.
    fn wait(&self, queues: &[&Self::Queue], timeout: Option<Duration>, come: &dyn Fn() -> bool);

    /// Ends the waits of this interface's threads, and of those that are about to wait.
    fn wake(&self);

    /// Memory of this rank that can be registered, beside its segment; the client divides it.
    ///
    /// It is shared: accessed by atomics and [`argonet_segment::bulk`] while it is registered.
    fn buffers(&self) -> (NonNull<u8>, u64);

    /// Registers memory (`GNI_MemRegister`): peers that have the handle access it.
    ///
    /// `index`: this place of the table (`vmdh_index`), with this key; what is registered there is
    /// replaced, and must be a beginning of it. Otherwise a free place and a key by chance.
    /// `queue`: gets an event for each short message that arrives in the memory, and for each post
    /// that asks for a remote event.
    ///
    /// # Safety
    /// The memory stays mapped until it is deregistered or the interface is dropped, and is
    /// accessed by atomics and [`argonet_segment::bulk`] alone.
    ///
    /// # Errors
    /// [`GniError::NoSpace`], [`GniError::NotShared`], [`GniError::Invalid`].
    unsafe fn register(
        &self,
        index: Option<(u32, u64)>,
        memory: NonNull<u8>,
        len_bytes: u64,
        access: Access,
        queue: Option<&Self::Queue>,
    ) -> Result<MemHandle, GniError>;

    /// Peers access this memory no more (`GNI_MemDeregister`).
    ///
    /// # Errors
    /// [`GniError::BadHandle`].
    fn deregister(&self, handle: MemHandle) -> Result<(), GniError>;

    /// Makes an endpoint (`GNI_EpCreate`, `GNI_EpBind`, `GNI_EpSetEventData`), whose posts report
    /// to `queue`.
    ///
    /// # Errors
    /// [`GniError::NoSpace`], [`GniError::BadPeer`], [`GniError::Invalid`] for a queue of another
    /// interface, [`GniError::Busy`] if the peer has not opened its interface.
    fn create_endpoint(
        &self,
        queue: &Self::Queue,
        to: NicAddress,
        data: EventData,
    ) -> Result<Self::Endpoint, GniError>;

    /// Posts a datagram (`GNI_EpPostDataWId`) of at most [`DATAGRAM_BYTES`].
    ///
    /// One that is bound to a peer is exchanged with one of the peer's that is bound to this
    /// interface, or else with a wildcard of the peer's. One of `None` is a wildcard. An exchange
    /// gives each of the two the other's data. Bound ones wait at the peer until it has one.
    ///
    /// # Errors
    /// [`GniError::Busy`] while one to this peer waits, or the peer has not seen the last one, or
    /// has not opened its interface; [`GniError::NoSpace`] for more wildcards than there can be;
    /// [`GniError::TooLong`]; [`GniError::BadPeer`], also for this interface itself.
    fn post_datagram(&self, to: Option<NicAddress>, id: u64, data: &[u8]) -> Result<(), GniError>;

    /// Takes the next datagram that was exchanged or has failed (`GNI_PostDataProbeById`,
    /// `GNI_EpPostDataTestById`).
    fn next_datagram(&self) -> Option<Exchanged>;

    /// Takes back a datagram that was not exchanged (`GNI_EpPostDataCancelById`).
    ///
    /// # Errors
    /// [`GniError::Busy`] if it was, or is being; [`GniError::BadHandle`] if there is none.
    fn cancel_datagram(&self, id: u64) -> Result<(), GniError>;

    /// Memory that a mailbox of this shape takes (`GNI_SmsgBufferSizeNeeded`), a multiple of 64.
    ///
    /// # Errors
    /// [`GniError::Invalid`] for no or too many messages, or too long ones.
    fn mailbox_bytes(&self, shape: Shape) -> Result<u64, GniError>;

    /// Opens an endpoint for short messages (`GNI_SmsgInit`): what comes lies in `local`, what is
    /// sent in `remote`.
    ///
    /// The memory of `local` is zero before the peer opens its end, or both ends have dropped their
    /// endpoints and open the same mailboxes once more: what was not released is received again.
    ///
    /// # Errors
    /// [`GniError::BadHandle`] for memory that is not this rank's or not the peer's,
    /// [`GniError::OutOfRange`], [`GniError::Invalid`] if it is open or the shapes differ.
    fn open_mailbox(
        &self,
        endpoint: &Self::Endpoint,
        local: &Mailbox,
        remote: &Mailbox,
    ) -> Result<(), GniError>;

    /// Sends a short message (`GNI_SmsgSendWTag`) of these parts, one behind the other, which have
    /// been read when it returns.
    ///
    /// False if there is no credit now: the peer has released none of the last ones.
    ///
    /// # Errors
    /// [`GniError::TooLong`], [`GniError::NotOpen`], [`GniError::BadHandle`] if the peer's memory
    /// is not registered any more, [`GniError::Damaged`] if the peer has released more than was
    /// sent.
    fn send(
        &self,
        endpoint: &Self::Endpoint,
        tag: u8,
        parts: &[SharedBytes<'_>],
    ) -> Result<bool, GniError>;

    /// Messages that can be sent now; none counts as a [`send`](Self::send) that found no credit.
    fn credits(&self, endpoint: &Self::Endpoint) -> u32;

    /// The message that has come first and was not released (`GNI_SmsgGetNextWTag`), at its place
    /// in the mailbox; `None` if there is none.
    ///
    /// # Errors
    /// [`GniError::NotOpen`]; [`GniError::Damaged`] for a mailbox in which something stands that no
    /// peer sends.
    fn receive<'a>(&'a self, endpoint: &'a Self::Endpoint)
    -> Result<Option<Arrived<'a>>, GniError>;

    /// Gives the place of that message back to the peer (`GNI_SmsgRelease`), at once, or with
    /// others when half of the mailbox is to be given back.
    ///
    /// The peer's queue gets an event then if its last [`send`](Self::send) has found no credit.
    ///
    /// # Errors
    /// [`GniError::NotOpen`]; [`GniError::Invalid`] if none has come.
    fn release(&self, endpoint: &Self::Endpoint) -> Result<(), GniError>;

    /// Begins an operation by the window of the processor (`GNI_PostFma`): for short ones, and the
    /// only way for atomic ones.
    ///
    /// Ends with an event in the endpoint's queue that has `post.id`.
    ///
    /// # Safety
    /// Local memory is readable for a put and writable for a get until the event.
    ///
    /// # Errors
    /// [`GniError::Busy`] if as many are under way as the queue has room for;
    /// [`GniError::Alignment`] as the hardware asks: gets of 4 bytes at places that are multiples
    /// of 4 on both sides, atomics of their own size; [`GniError::BadHandle`],
    /// [`GniError::OutOfRange`], [`GniError::NotAllowed`], [`GniError::BadPeer`],
    /// [`GniError::TooLong`]. Nothing has been done then.
    unsafe fn post_fma(&self, endpoint: &Self::Endpoint, post: &Post) -> Result<(), GniError>;

    /// Begins an operation by the interface's engine (`GNI_PostRdma`): for long puts and gets.
    ///
    /// With `post.fence` it begins when all earlier ones of the endpoint have ended. `chain` has
    /// further pieces of the same operation, which has one event.
    ///
    /// # Safety
    /// As [`post_fma`](Self::post_fma), of all pieces.
    ///
    /// # Errors
    /// As [`post_fma`](Self::post_fma).
    unsafe fn post_rdma(
        &self,
        endpoint: &Self::Endpoint,
        post: &Post,
        chain: &[Post],
    ) -> Result<(), GniError>;

    /// Takes the next failure of the interface (`GNI_WaitErrorEvents`), beside those that
    /// operations report.
    fn next_failure(&self) -> Option<Failure>;
}
