//! Mailboxes for short messages.
//!
//! ```text
//!  mailbox   returned       how many messages the peer has released that this rank has sent
//!            wanted         whether the peer waits until this rank has released some
//!            message 0      stamp | - | body
//!            message 1      stamp | - | body
//!            ...
//! ```
//!
//! A mailbox is memory of the rank that receives. That returns credits when it has released half of
//! the mailbox, as each time costs both ranks a line; of a sender without credits it still has the
//! other half to release. A sender that has found no credit, also by asking for them, gets an
//! event.
//!
//! The sender stores the stamp last: its number, which counts from 1 on, tag and length.
//! What each side has sent and taken stands in memory that both see, so a mailbox that both have
//! left is opened once more where it was.

use super::endpoint::Endpoint;
use super::shared::Shared;
use crate::gni::{Arrived, GniError, Mailbox, MemHandle, Shape};
use argonet_base::JobRank;
use argonet_segment::{SharedBytes, bulk};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

const LINE: u64 = 64;
const HEAD: usize = 16;
/// Longest short message.
pub(super) const MESSAGE_BYTES: u32 = 1 << 16;
const MOST_MESSAGES: u32 = 1 << 20;

const LEN_BITS: u32 = 24;

/// Bytes from one message to the next.
fn stride(shape: Shape) -> u64 {
    (HEAD as u64 + u64::from(shape.message_bytes)).next_multiple_of(LINE)
}

/// The number that is in the stamp of message `count`, counted from 1: 0 is none.
fn number(count: u64) -> u32 {
    match count {
        0 => 0,
        _ => ((count - 1) % u64::from(u32::MAX)) as u32 + 1,
    }
}

#[inline(always)]
fn after(number: u32) -> u32 {
    if number == u32::MAX { 1 } else { number + 1 }
}

/// A place to which messages go, one behind the other.
struct Slots {
    /// The mailbox.
    base: NonNull<u8>,
    /// The sender's mailbox, whose first word counts what was returned.
    returned: NonNull<u8>,
    shape: Shape,
    stride: u64,
    /// Which is next.
    slot: u32,
    /// The number of the next.
    number: u32,
    /// How many there were.
    count: u64,
    /// The peer's memory.
    handle: MemHandle,
}

impl Slots {
    #[inline(always)]
    fn address(&self) -> NonNull<u8> {
        let at = LINE + u64::from(self.slot) * self.stride;
        // SAFETY: `slot` is below `messages`, and `open_mailbox` has found all of the mailbox.
        unsafe { self.base.add(at as usize) }
    }

    /// The stamp of the next.
    #[inline(always)]
    fn stamp(&self) -> &AtomicU64 {
        // SAFETY: as in `word`; it lies in the mailbox.
        unsafe { self.address().cast().as_ref() }
    }

    /// Where its body begins.
    #[inline(always)]
    fn body(&self) -> NonNull<u8> {
        // SAFETY: as in `address`; a message is longer than its head or as long.
        unsafe { self.address().add(HEAD) }
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.slot += 1;
        if self.slot == self.shape.messages {
            self.slot = 0;
        }
        self.number = after(self.number);
        self.count = self.count.wrapping_add(1);
    }

    /// Whether the sender waits for credits, in the second word of the receiver's mailbox.
    fn wanted(&self) -> &AtomicU64 {
        // SAFETY: the first line of the mailbox has more than two words, as in `word`.
        unsafe { self.base.add(size_of::<u64>()).cast().as_ref() }
    }

    fn start(&mut self, count: u64) {
        self.count = count;
        self.slot = (count % u64::from(self.shape.messages)) as u32;
        self.number = after(number(count));
    }
}

/// A word of a mailbox.
#[inline(always)]
fn word(address: &NonNull<u8>) -> &AtomicU64 {
    // SAFETY: `open_mailbox` has found the mailbox in memory that stays mapped as long as the
    // `Shared` that its endpoint holds, and has checked that it is aligned; strides are multiples
    // of 64. It is accessed by atomics and `bulk` alone.
    unsafe { address.cast().as_ref() }
}

/// The side of an endpoint that sends.
pub(super) struct Sending {
    to: Slots,
    /// What the peer had released when it was last looked at.
    returned: u64,
}

// SAFETY: the addresses are of shared memory, which any thread may access by atomics and `bulk`.
unsafe impl Send for Sending {}

/// The side of an endpoint that receives.
pub(super) struct Receiving {
    from: Slots,
    /// Messages that were released since credits were returned.
    unreturned: u32,
}

// SAFETY: as above.
unsafe impl Send for Receiving {}

impl Sending {
    /// Messages under way; `None` for a count that no peer writes.
    fn under_way(&self) -> Option<u32> {
        let under_way = self.to.count.wrapping_sub(self.returned);
        let possible = under_way <= u64::from(self.to.shape.messages);
        possible.then_some(under_way as u32)
    }

    #[inline(always)]
    fn look(&mut self) {
        self.returned = word(&self.to.returned).load(Ordering::SeqCst);
    }

    /// Whether there is a credit; `None` for a count that no peer writes.
    ///
    /// If not, the peer posts an event when it returns some.
    fn has_credit(&mut self) -> Option<bool> {
        let messages = self.to.shape.messages;
        if self
            .under_way()
            .is_some_and(|under_way| under_way < messages)
        {
            return Some(true);
        }
        self.look();
        if self.under_way()? < messages {
            return Some(true);
        }
        // The receiver returns credits first and looks at this after.
        self.to.wanted().swap(1, Ordering::SeqCst);
        self.look();
        Some(self.under_way()? < messages)
    }

    /// As [`Gni::credits`](crate::gni::Gni::credits).
    fn credits(&mut self) -> Option<u32> {
        self.look();
        self.has_credit()?;
        Some(self.to.shape.messages - self.under_way()?)
    }
}

/// [`Gni::mailbox_bytes`](crate::gni::Gni::mailbox_bytes) of each interface in software, before
/// there is one.
///
/// # Errors
/// As there.
pub fn mailbox_bytes(rank: JobRank, shape: Shape) -> Result<u64, GniError> {
    let sane = (1..=MOST_MESSAGES).contains(&shape.messages)
        && (1..=MESSAGE_BYTES).contains(&shape.message_bytes);
    if !sane {
        let what = "mailboxes have 1 to 2^20 messages of 1 to 65,536 bytes";
        return Err(GniError::Invalid { rank, what });
    }
    Ok(LINE + u64::from(shape.messages) * stride(shape))
}

impl Shared {
    pub(super) fn mailbox_bytes(&self, shape: Shape) -> Result<u64, GniError> {
        mailbox_bytes(self.rank(), shape)
    }

    /// Where a mailbox lies.
    fn find(&self, place: u32, mailbox: &Mailbox) -> Result<NonNull<u8>, GniError> {
        let len = self.mailbox_bytes(mailbox.shape)?;
        let (address, flags) = self.reach(place, &mailbox.handle, mailbox.offset, len)?;
        let aligned = mailbox.offset.is_multiple_of(LINE)
            && address.addr().get().is_multiple_of(LINE as usize);
        if !aligned {
            return Err(self.invalid("mailboxes lie at multiples of 64"));
        }
        if flags.is_read_only() {
            return Err(self.invalid("mailboxes lie in memory that may be written"));
        }
        Ok(address)
    }

    pub(super) fn open_mailbox(
        &self,
        endpoint: &Endpoint,
        local: &Mailbox,
        remote: &Mailbox,
    ) -> Result<(), GniError> {
        if local.handle.of != self.address || remote.handle.of != endpoint.to {
            return Err(self.bad_handle("memory of a mailbox"));
        }
        if local.shape != remote.shape {
            return Err(self.invalid("the mailboxes of an endpoint differ in shape"));
        }
        let here = self.find(self.place, local)?;
        let there = self.find(endpoint.place, remote)?;
        let slots = |base, returned| Slots {
            base,
            returned,
            shape: local.shape,
            stride: stride(local.shape),
            slot: 0,
            number: 1,
            count: 0,
            handle: remote.handle,
        };
        let mut receiving = Receiving {
            from: slots(here, there),
            unreturned: 0,
        };
        // What this rank has released stands at the peer, what the peer has released here.
        let taken = word(&there).load(Ordering::Acquire);
        receiving.from.start(taken);
        let returned = word(&here).load(Ordering::Acquire);
        let mut sending = Sending {
            to: slots(there, here),
            returned,
        };
        sending.to.start(returned);
        for _ in 0..local.shape.messages {
            let stamp = sending.to.stamp().load(Ordering::Acquire);
            if (stamp >> 32) as u32 != sending.to.number {
                break;
            }
            sending.to.advance();
        }
        let mut to = endpoint.sending.lock();
        if to.is_some() {
            return Err(self.invalid("the endpoint has a mailbox already"));
        }
        *to = Some(sending);
        *endpoint.receiving.lock() = Some(receiving);
        Ok(())
    }

    pub(super) fn leave_mailbox(&self, endpoint: &Endpoint) {
        if let Some(receiving) = endpoint.receiving.lock().as_mut()
            && receiving.unreturned > 0
        {
            self.return_credits(endpoint, receiving);
        }
    }

    fn not_open(&self, endpoint: &Endpoint) -> GniError {
        GniError::NotOpen {
            rank: self.rank(),
            peer: endpoint.to.rank,
        }
    }

    #[cold]
    fn damaged(&self, endpoint: &Endpoint, what: &'static str) -> GniError {
        GniError::Damaged {
            rank: self.rank(),
            peer: endpoint.to.rank,
            what,
        }
    }

    #[inline]
    pub(super) fn send(
        &self,
        endpoint: &Endpoint,
        tag: u8,
        parts: &[SharedBytes<'_>],
    ) -> Result<bool, GniError> {
        let mut sending = endpoint.sending.lock();
        let Some(sending) = sending.as_mut() else {
            return Err(self.not_open(endpoint));
        };
        let lens = parts.iter().map(SharedBytes::len);
        let len = lens.fold(0, usize::saturating_add) as u64;
        let most = u64::from(sending.to.shape.message_bytes);
        if len > most {
            return Err(self.too_long("a short message", len, most));
        }
        let Some(flags) = self.still_there(endpoint.place, &sending.to.handle) else {
            return Err(self.bad_handle("memory of a mailbox"));
        };
        match sending.has_credit() {
            Some(true) => {}
            Some(false) => return Ok(false),
            None => return Err(self.damaged(endpoint, "more was released than was sent")),
        }
        if self.faults.has_no_credit() {
            return Ok(false);
        }
        let mut at = sending.to.body();
        self.step();
        for part in parts {
            // SAFETY: all parts fit the message (checked), which lies in the peer's mailbox; that
            // is accessed by atomics and `bulk` only. A part is valid as long as its view.
            unsafe {
                copy(at.as_ptr(), part.as_ptr(), part.len());
                at = at.add(part.len());
            }
        }
        let number = u64::from(sending.to.number);
        let stamp = number << 32 | u64::from(tag) << LEN_BITS | len;
        self.step();
        match flags.queue() {
            Some(queue) => {
                sending.to.stamp().store(stamp, Ordering::Release);
                sending.to.advance();
                self.step();
                self.post_came(endpoint.place, queue, endpoint.data.remote);
            }
            None => {
                sending.to.stamp().swap(stamp, Ordering::SeqCst);
                sending.to.advance();
                self.wake_place(endpoint.place);
            }
        }
        Ok(true)
    }

    pub(super) fn credits(&self, endpoint: &Endpoint) -> u32 {
        let mut sending = endpoint.sending.lock();
        let credits = sending.as_mut().and_then(Sending::credits);
        credits.unwrap_or(0)
    }

    #[inline]
    pub(super) fn receive<'a>(
        &self,
        endpoint: &'a Endpoint,
    ) -> Result<Option<Arrived<'a>>, GniError> {
        let receiving = endpoint.receiving.lock();
        let Some(receiving) = receiving.as_ref() else {
            return Err(self.not_open(endpoint));
        };
        let from = &receiving.from;
        let stamp = from.stamp().load(Ordering::Acquire);
        if (stamp >> 32) as u32 != from.number {
            return Ok(None);
        }
        let len = stamp & ((1 << LEN_BITS) - 1);
        if len > u64::from(from.shape.message_bytes) {
            return Err(self.damaged(endpoint, "a message is longer than messages can be"));
        }
        // SAFETY: the message fits its place in the mailbox, which stays mapped as long as the
        // `Shared` that the endpoint holds, and is accessed by atomics and `bulk` only.
        let bytes = unsafe { SharedBytes::from_raw(from.body(), len as usize) };
        let tag = (stamp >> LEN_BITS) as u8;
        Ok(Some(Arrived { tag, bytes }))
    }

    #[inline]
    pub(super) fn release(&self, endpoint: &Endpoint) -> Result<(), GniError> {
        let mut receiving = endpoint.receiving.lock();
        let Some(receiving) = receiving.as_mut() else {
            return Err(self.not_open(endpoint));
        };
        let Receiving { from, unreturned } = receiving;
        let stamp = from.stamp().load(Ordering::Relaxed);
        if (stamp >> 32) as u32 != from.number {
            return Err(self.invalid("no message has come that could be released"));
        }
        from.advance();
        *unreturned += 1;
        if *unreturned >= from.shape.messages / 2 {
            self.return_credits(endpoint, receiving);
        }
        Ok(())
    }

    /// Returns the credits of all messages that were released.
    fn return_credits(&self, endpoint: &Endpoint, receiving: &mut Receiving) {
        let Receiving { from, unreturned } = receiving;
        *unreturned = 0;
        self.step();
        // Memory that the peer has taken back may be something else by now.
        let Some(flags) = self.still_there(endpoint.place, &from.handle) else {
            return;
        };
        word(&from.returned).swap(from.count, Ordering::SeqCst);
        if from.wanted().load(Ordering::SeqCst) != 0 {
            from.wanted().store(0, Ordering::Relaxed);
            match flags.queue() {
                Some(queue) => self.post_came(endpoint.place, queue, endpoint.data.remote),
                None => self.wake_place(endpoint.place),
            }
        }
    }
}

/// Copies what may overlap by chance, too.
///
/// # Safety
/// As [`bulk::copy`], but for that.
#[inline(always)]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    let overlap = to.addr().abs_diff(from.addr()) < len;
    // SAFETY: the caller's contract, and the ranges do not overlap.
    unsafe {
        if overlap {
            copy_overlapping(to, from, len);
        } else {
            bulk::copy(to, from, len);
        }
    }
}

/// # Safety
/// As [`copy`].
#[cold]
unsafe fn copy_overlapping(to: *mut u8, from: *const u8, len: usize) {
    let mut between = vec![0_u8; len];
    // SAFETY: the caller's contract; the vector is apart from both, and as long.
    unsafe {
        bulk::copy(between.as_mut_ptr(), from, len);
        bulk::copy(to, between.as_ptr(), len);
    }
}
