//! The interface and its calls.

use super::config::SoftwareConfig;
use super::datagram::Datagrams;
use super::endpoint::Endpoint;
use super::faults::{FaultRules, Faults};
use super::mailbox::MESSAGE_BYTES;
use super::memory::Registrations;
use super::post::{FMA_BYTES, RDMA_BYTES};
use super::queue::{Queue, Ring, Taken};
use super::region::Region;
use super::shared::{Shared, joined_word};
use crate::gni::{
    Access, Arrived, Credentials, Event, EventData, Exchanged, Failure, Gni, GniError, Limits,
    Mailbox, MemHandle, NicAddress, Post, Shape,
};
use argonet_segment::{Resolver, SharedBytes};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use core::time::Duration;
use parking_lot::Mutex;
use rustix::fd::BorrowedFd;
use std::collections::VecDeque;
use std::sync::Arc;

/// An interface of a rank, in a file that the ranks of a host share.
///
/// Queues and endpoints keep what they need of it.
pub struct Software {
    pub(super) shared: Arc<Shared>,
}

impl Software {
    /// The interface at `address` in the file that all ranks of the host share: a memory file,
    /// empty before the first comes.
    ///
    /// `segments` makes the attached segments reachable, beside the interface's own
    /// [`buffers`](Gni::buffers).
    ///
    /// # Errors
    /// [`GniError::BadPeer`] if `config` has no such interface; [`GniError::Invalid`] for sizes
    /// that make no sense, or if the interface was opened before; [`GniError::WrongFile`] if others
    /// use other sizes; [`GniError::Os`] if the file cannot be mapped.
    pub fn new(
        file: BorrowedFd<'_>,
        config: SoftwareConfig,
        address: NicAddress,
        credentials: Credentials,
        segments: Option<Resolver>,
        faults: FaultRules,
    ) -> Result<Self, GniError> {
        let config = config.checked(address)?;
        let Some(place) = config.place(address) else {
            return Err(GniError::BadPeer {
                rank: address.rank,
                peer: address,
            });
        };
        let shared = Shared {
            region: Region::map(file, config)?,
            segments,
            address,
            place,
            joined: joined_word(credentials),
            faults: Faults::new(faults),
            registrations: Mutex::new(Registrations::default()),
            queues: Mutex::new(Taken::default()),
            datagrams: Datagrams::new(config.places()),
            failures: Mutex::new(VecDeque::new()),
            endpoints: AtomicU64::new(0),
            sleepers: Mutex::new(0),
        };
        shared.join()?;
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Steps that this interface has taken, if [`FaultRules::count_steps`] asks for that.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.shared.faults.steps()
    }

    fn own(&self, queue: &Queue) -> Result<(), GniError> {
        if Arc::ptr_eq(&queue.ring.shared, &self.shared) {
            return Ok(());
        }
        Err(self.shared.invalid("a queue of another interface"))
    }
}

impl Drop for Software {
    fn drop(&mut self) {
        self.shared.deregister_all();
    }
}

impl Gni for Software {
    type Queue = Queue;
    type Endpoint = Endpoint;

    fn address(&self) -> NicAddress {
        self.shared.address
    }

    fn limits(&self) -> Limits {
        let config = &self.shared.region.layout.config;
        Limits {
            registrations: config.registrations,
            queues: config.queues,
            events: config.queue_events,
            wildcards: config.wildcards,
            message_bytes: MESSAGE_BYTES,
            fma_bytes: FMA_BYTES,
            rdma_bytes: RDMA_BYTES,
        }
    }

    fn create_queue(&self, events: u32) -> Result<Queue, GniError> {
        Ok(Queue {
            ring: Arc::new(Ring::new(&self.shared, events)?),
        })
    }

    #[inline]
    fn next_event(&self, queue: &Queue) -> Result<Option<Event>, GniError> {
        self.shared.progress();
        queue.ring.next()
    }

    #[inline]
    fn has_event(&self, queue: &Queue) -> bool {
        queue.ring.has_event()
    }

    fn wait(&self, queues: &[&Queue], timeout: Option<Duration>, come: &dyn Fn() -> bool) {
        if self.shared.faults.is_active() {
            // Posts that are held back go on with calls alone.
            self.shared.progress();
            std::thread::yield_now();
        } else {
            let has_event = || queues.iter().any(|queue| queue.ring.has_event());
            self.shared.sleep(&has_event, timeout, come);
        }
    }

    fn wake(&self) {
        // What the caller has done before is seen by those that sleep after this.
        fence(Ordering::SeqCst);
        self.shared.wake_place(self.shared.place);
    }

    fn buffers(&self) -> (NonNull<u8>, u64) {
        let region = &self.shared.region;
        let len = region.layout.config.buffer_bytes;
        let base = region.buffers(self.shared.place, 0, len);
        (base.unwrap_or(NonNull::dangling()), len)
    }

    unsafe fn register(
        &self,
        index: Option<(u32, u64)>,
        memory: NonNull<u8>,
        len_bytes: u64,
        access: Access,
        queue: Option<&Queue>,
    ) -> Result<MemHandle, GniError> {
        if let Some(queue) = queue {
            self.own(queue)?;
        }
        let queue = queue.map(|queue| queue.ring.target);
        self.shared
            .register(index, memory, len_bytes, access, queue)
    }

    fn deregister(&self, handle: MemHandle) -> Result<(), GniError> {
        self.shared.deregister(handle)
    }

    fn create_endpoint(
        &self,
        queue: &Queue,
        to: NicAddress,
        data: EventData,
    ) -> Result<Endpoint, GniError> {
        self.own(queue)?;
        Endpoint::new(&self.shared, &queue.ring, to, data)
    }

    fn post_datagram(&self, to: Option<NicAddress>, id: u64, data: &[u8]) -> Result<(), GniError> {
        self.shared.post_datagram(to, id, data)
    }

    #[inline]
    fn next_datagram(&self) -> Option<Exchanged> {
        self.shared.next_datagram()
    }

    fn cancel_datagram(&self, id: u64) -> Result<(), GniError> {
        self.shared.cancel_datagram(id)
    }

    fn mailbox_bytes(&self, shape: Shape) -> Result<u64, GniError> {
        self.shared.mailbox_bytes(shape)
    }

    fn open_mailbox(
        &self,
        endpoint: &Endpoint,
        local: &Mailbox,
        remote: &Mailbox,
    ) -> Result<(), GniError> {
        endpoint.shared.open_mailbox(endpoint, local, remote)
    }

    #[inline]
    fn send(
        &self,
        endpoint: &Endpoint,
        tag: u8,
        parts: &[SharedBytes<'_>],
    ) -> Result<bool, GniError> {
        endpoint.shared.send(endpoint, tag, parts)
    }

    fn credits(&self, endpoint: &Endpoint) -> u32 {
        endpoint.shared.credits(endpoint)
    }

    #[inline]
    fn receive<'a>(&'a self, endpoint: &'a Endpoint) -> Result<Option<Arrived<'a>>, GniError> {
        endpoint.shared.receive(endpoint)
    }

    #[inline]
    fn release(&self, endpoint: &Endpoint) -> Result<(), GniError> {
        endpoint.shared.release(endpoint)
    }

    #[inline]
    unsafe fn post_fma(&self, endpoint: &Endpoint, post: &Post) -> Result<(), GniError> {
        // SAFETY: the caller's contract.
        unsafe { endpoint.shared.post_fma(endpoint, post) }
    }

    unsafe fn post_rdma(
        &self,
        endpoint: &Endpoint,
        post: &Post,
        chain: &[Post],
    ) -> Result<(), GniError> {
        // SAFETY: the caller's contract.
        unsafe { endpoint.shared.post_rdma(endpoint, post, chain) }
    }

    fn next_failure(&self) -> Option<Failure> {
        self.shared.failures.lock().pop_front()
    }
}
