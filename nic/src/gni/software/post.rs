//! One-sided operations, which their initiator carries out at once.

use super::endpoint::Endpoint;
use super::faults::{Held, Lot};
use super::mailbox::copy;
use super::memory::Flags;
use super::queue::Ended;
use super::shared::Shared;
use crate::gni::{Amo, AmoBits, Failure, GniError, NicAddress, Operation, Post};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// Longest operation by the processor's window.
pub(super) const FMA_BYTES: u64 = 1 << 30;
/// Longest operation by the engine.
pub(super) const RDMA_BYTES: u64 = (1 << 32) - 1;
/// Most further pieces of an operation.
const CHAIN: usize = 1 << 12;

/// Up to this length the queue of an operation is locked meanwhile, which saves locking it again.
const SHORT: u64 = 1024;

/// The alignment of gets.
const GET_ALIGN: u64 = 4;

fn amo_bytes(bits: AmoBits) -> u64 {
    match bits {
        AmoBits::Four => 4,
        AmoBits::Eight => 8,
    }
}

/// Carries out an operation; what an atomic one has found.
///
/// # Safety
/// `remote` is an address of the range of the post, which [`Shared::check`] has accepted, and local
/// memory is valid as the operation needs it.
#[inline(always)]
unsafe fn carry(post: &Post, remote: NonNull<u8>) -> u64 {
    let len = post.len_bytes as usize;
    match post.operation {
        Operation::Put => {
            // SAFETY: the caller's contract.
            unsafe { copy(remote.as_ptr(), post.local.as_ptr(), len) };
            0
        }
        Operation::Get => {
            // SAFETY: the caller's contract.
            unsafe { copy(post.local.as_ptr(), remote.as_ptr(), len) };
            0
        }
        Operation::Amo {
            amo,
            bits,
            operands,
            fetch,
        } => {
            // SAFETY: the caller's contract; the word is aligned (checked).
            let found = unsafe {
                match bits {
                    AmoBits::Four => u64::from(amo_4(remote, amo, operands)),
                    AmoBits::Eight => amo_8(remote, amo, operands),
                }
            };
            if fetch { found } else { 0 }
        }
    }
}

/// # Safety
/// An aligned word of shared memory that is accessed by atomics and `bulk` alone.
unsafe fn amo_8(word: NonNull<u8>, amo: Amo, [first, second]: [u64; 2]) -> u64 {
    // SAFETY: the caller's contract.
    let unsigned = unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) };
    // SAFETY: the caller's contract.
    let signed = unsafe { AtomicI64::from_ptr(word.as_ptr().cast()) };
    let order = Ordering::SeqCst;
    match amo {
        Amo::Add => unsigned.fetch_add(first, order),
        Amo::And => unsigned.fetch_and(first, order),
        Amo::Or => unsigned.fetch_or(first, order),
        Amo::Xor => unsigned.fetch_xor(first, order),
        Amo::Min => signed.fetch_min(first as i64, order) as u64,
        Amo::Max => signed.fetch_max(first as i64, order) as u64,
        Amo::Swap => unsigned.swap(first, order),
        Amo::CompareSwap => {
            let (Ok(found) | Err(found)) = unsigned.compare_exchange(first, second, order, order);
            found
        }
    }
}

/// # Safety
/// As [`amo_8`].
unsafe fn amo_4(word: NonNull<u8>, amo: Amo, operands: [u64; 2]) -> u32 {
    let [first, second] = operands.map(|operand| operand as u32);
    // SAFETY: the caller's contract.
    let unsigned = unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) };
    // SAFETY: the caller's contract.
    let signed = unsafe { AtomicI32::from_ptr(word.as_ptr().cast()) };
    let order = Ordering::SeqCst;
    match amo {
        Amo::Add => unsigned.fetch_add(first, order),
        Amo::And => unsigned.fetch_and(first, order),
        Amo::Or => unsigned.fetch_or(first, order),
        Amo::Xor => unsigned.fetch_xor(first, order),
        Amo::Min => signed.fetch_min(first as i32, order) as u32,
        Amo::Max => signed.fetch_max(first as i32, order) as u32,
        Amo::Swap => unsigned.swap(first, order),
        Amo::CompareSwap => {
            let (Ok(found) | Err(found)) = unsigned.compare_exchange(first, second, order, order);
            found
        }
    }
}

impl Shared {
    fn alignment(&self, what: &'static str) -> GniError {
        GniError::Alignment {
            rank: self.rank(),
            what,
        }
    }

    /// Where an operation goes, if the hardware does it.
    #[inline(always)]
    fn check(
        &self,
        (place, to): (u32, NicAddress),
        post: &Post,
        most: u64,
    ) -> Result<(NonNull<u8>, Flags), GniError> {
        let handle = &post.remote.handle;
        if handle.of != to {
            return Err(self.bad_handle("memory of the endpoint's peer with that handle"));
        }
        let len = match post.operation {
            Operation::Amo { bits, .. } => amo_bytes(bits),
            _ => post.len_bytes,
        };
        if len > most {
            return Err(self.too_long("an operation", len, most));
        }
        let (address, flags) = self.reach(place, handle, post.remote.offset, len)?;
        let remote = address.addr().get() as u64;
        match post.operation {
            Operation::Get => {
                let local = post.local.addr().get() as u64;
                if !(local | remote | len).is_multiple_of(GET_ALIGN) {
                    return Err(self.alignment("gets have places and lengths that 4 divides"));
                }
            }
            _ if flags.is_read_only() => {
                return Err(GniError::NotAllowed {
                    rank: self.rank(),
                    peer: to.rank,
                });
            }
            Operation::Amo { .. } if !remote.is_multiple_of(len) => {
                return Err(self.alignment("atomic operations have words that are aligned"));
            }
            _ => {}
        }
        Ok((address, flags))
    }

    /// The event that the peer gets.
    #[inline(always)]
    fn report(&self, place: u32, post: &Post, flags: Flags, data: u32) {
        if post.remote_event
            && let Some(queue) = flags.queue()
        {
            self.step();
            self.post_came(place, queue, data);
        }
    }

    /// # Safety
    /// That of [`post_fma`](crate::gni::Gni::post_fma).
    #[inline]
    pub(super) unsafe fn post_fma(&self, endpoint: &Endpoint, post: &Post) -> Result<(), GniError> {
        let to = (endpoint.place, endpoint.to);
        let (remote, flags) = self.check(to, post, FMA_BYTES)?;
        if self.faults.is_active() {
            // SAFETY: the caller's contract.
            return unsafe { self.post_faulty(endpoint, &[*post]) };
        }
        if post.len_bytes > SHORT {
            // SAFETY: the caller's contract.
            return unsafe { self.post_long(endpoint, post, &[]) };
        }
        let Some(own) = endpoint.ring.room() else {
            return Err(self.busy("more operations than the queue has room for"));
        };
        self.step();
        // SAFETY: the caller's contract; `check` has found the address.
        let fetched = unsafe { carry(post, remote) };
        self.step();
        let ended = Ended {
            id: post.id,
            fetched,
            result: Ok(()),
        };
        endpoint.ring.end(own, endpoint.data.local, ended);
        self.report(endpoint.place, post, flags, endpoint.data.remote);
        Ok(())
    }

    /// # Safety
    /// That of [`post_rdma`](crate::gni::Gni::post_rdma).
    pub(super) unsafe fn post_rdma(
        &self,
        endpoint: &Endpoint,
        post: &Post,
        chain: &[Post],
    ) -> Result<(), GniError> {
        if chain.len() > CHAIN {
            return Err(self.too_long("a chain", chain.len() as u64, CHAIN as u64));
        }
        for post in core::iter::once(post).chain(chain) {
            if matches!(post.operation, Operation::Amo { .. }) {
                return Err(self.invalid("the engine has no atomic operations"));
            }
            self.check((endpoint.place, endpoint.to), post, RDMA_BYTES)?;
        }
        if self.faults.is_active() {
            let mut posts = vec![*post];
            posts.extend_from_slice(chain);
            // SAFETY: the caller's contract.
            return unsafe { self.post_faulty(endpoint, &posts) };
        }
        // SAFETY: the caller's contract.
        unsafe { self.post_long(endpoint, post, chain) }
    }

    /// # Safety
    /// That of [`post_rdma`](crate::gni::Gni::post_rdma).
    unsafe fn post_long(
        &self,
        endpoint: &Endpoint,
        post: &Post,
        chain: &[Post],
    ) -> Result<(), GniError> {
        if !endpoint.ring.reserve() {
            return Err(self.busy("more operations than the queue has room for"));
        }
        let posts = core::iter::once(post).chain(chain);
        // SAFETY: the caller's contract.
        let ended =
            unsafe { self.carry_all((endpoint.place, endpoint.to), posts, endpoint.data.remote) };
        endpoint.ring.end_reserved(endpoint.data.local, ended);
        Ok(())
    }

    /// Carries out all pieces of an operation; memory may have gone since they were checked.
    ///
    /// # Safety
    /// That of [`post_rdma`](crate::gni::Gni::post_rdma), of all.
    unsafe fn carry_all<'a>(
        &self,
        to: (u32, NicAddress),
        posts: impl Iterator<Item = &'a Post>,
        data: u32,
    ) -> Ended {
        let mut ended = Ended {
            id: 0,
            fetched: 0,
            result: Ok(()),
        };
        let mut asked = None;
        for (n, post) in posts.enumerate() {
            let Ok((remote, flags)) = self.check(to, post, RDMA_BYTES) else {
                ended.result = Err(Failure::Gone);
                if n == 0 {
                    ended.id = post.id;
                }
                break;
            };
            self.step();
            // SAFETY: the caller's contract; `check` has found the address.
            let fetched = unsafe { carry(post, remote) };
            if n == 0 {
                ended.id = post.id;
                ended.fetched = fetched;
                asked = Some((post, flags));
            }
        }
        if let (Some((post, flags)), Ok(())) = (asked, ended.result) {
            self.report(to.0, post, flags, data);
        }
        ended
    }

    /// As faults will have it, of pieces that were checked.
    ///
    /// # Safety
    /// That of [`post_rdma`](crate::gni::Gni::post_rdma), of all.
    #[cold]
    unsafe fn post_faulty(&self, endpoint: &Endpoint, posts: &[Post]) -> Result<(), GniError> {
        self.progress();
        let Some(first) = posts.first() else {
            return Ok(());
        };
        if !endpoint.ring.reserve() {
            return Err(self.busy("more operations than the queue has room for"));
        }
        let lot = self.faults.draw();
        let fails = match lot {
            Lot::Transient => Some((false, Failure::Transient)),
            Lot::Fatal { carried } => Some((carried, Failure::Fatal)),
            _ => None,
        };
        let mut held = Held {
            ring: Arc::downgrade(&endpoint.ring),
            place: endpoint.place,
            to: endpoint.to,
            data: endpoint.data,
            endpoint: endpoint.number,
            posts: posts.to_vec(),
            fence: first.fence,
            ended: None,
            due: 0,
        };
        if let Some((carried, failure)) = fails {
            if failure == Failure::Fatal {
                self.failures.lock().push_back(failure);
            }
            let ended = if carried {
                self.run(&held)
            } else {
                Ended {
                    id: first.id,
                    fetched: 0,
                    result: Ok(()),
                }
            };
            held.ended = Some(Ended {
                result: Err(failure),
                ..ended
            });
        } else if !matches!(lot, Lot::Overtaken) && !self.faults.is_behind(&held) {
            held.ended = Some(self.run(&held));
        }
        let late = matches!(lot, Lot::Overtaken | Lot::Late);
        self.faults.hold(held, late);
        self.progress();
        Ok(())
    }

    fn run(&self, held: &Held) -> Ended {
        // SAFETY: `post_faulty` alone makes these; its caller keeps local memory until the event,
        // which has not come.
        unsafe { self.carry_all((held.place, held.to), held.posts.iter(), held.data.remote) }
    }

    /// Lets posts go on that are held back.
    #[inline(always)]
    pub(super) fn progress(&self) {
        if self.faults.is_active() {
            self.release_held();
        }
    }

    #[cold]
    fn release_held(&self) {
        self.faults.count_call();
        while let Some(held) = self.faults.release() {
            // Without its queue, no event will come, and memory may have gone.
            if let Some(ring) = held.ring.upgrade() {
                let ended = held.ended.unwrap_or_else(|| self.run(&held));
                ring.end_reserved(held.data.local, ended);
            }
        }
    }
}
