//! Buffers that a provider of libfabric sends from and receives into.
//!
//! ```text
//! | 64 bytes           | as the provider wants | the message  | to a multiple |
//! | the provider's own | its prefix            |              | of 64         |
//! ```
//!
//! Those for what comes are first. Each is the provider's from [`Buffers::lend`] until its
//! completion is taken, and no one else uses it meanwhile; a completion that names no such buffer,
//! or more bytes than it has, is none.

use super::object::{Buffer, may_use_memory};
use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use memmap2::MmapMut;
use std::io;

/// Bytes that a provider may use for an operation (`fi_context2`).
pub(super) const CONTEXT_BYTES: usize = 64;

const RECEIVES: usize = 0;
const SENDS: usize = 1;

/// Where the buffers are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    memory: NonNull<u8>,
    /// Between two buffers.
    stride: usize,
    /// Bytes before a message, of receives and of sends.
    prefixes: [usize; 2],
    message_bytes: usize,
    /// How many are for what comes.
    receives: u32,
}

// SAFETY: an address and numbers; who uses the memory there is said by `Buffers`.
unsafe impl Send for Places {}
// SAFETY: as above.
unsafe impl Sync for Places {}

impl Places {
    fn at(&self, index: u32) -> *mut u8 {
        self.memory
            .as_ptr()
            .wrapping_add(index as usize * self.stride)
    }

    fn prefix(&self, index: u32) -> usize {
        let direction = if index < self.receives {
            RECEIVES
        } else {
            SENDS
        };
        self.prefixes[direction]
    }

    fn message_at(&self, index: u32) -> *mut u8 {
        let offset = CONTEXT_BYTES + self.prefix(index);
        self.at(index).wrapping_add(offset)
    }

    /// The message of a buffer.
    ///
    /// # Safety
    /// The buffer is not written to as long as what is returned is used, the message is no longer
    /// than a buffer has room for, and the memory stays for so long.
    pub(crate) unsafe fn message<'a>(self, index: u32, bytes: usize) -> &'a [u8] {
        // SAFETY: within the buffer, of which the caller says the rest; its bytes are initialized,
        // as the memory was zero at first.
        unsafe { core::slice::from_raw_parts(self.message_at(index), bytes) }
    }

    /// The message of a buffer, which can be changed.
    ///
    /// # Safety
    /// As for [`message`](Self::message), and nothing else reads it meanwhile.
    pub(crate) unsafe fn message_mut<'a>(self, index: u32, bytes: usize) -> &'a mut [u8] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.message_at(index), bytes) }
    }
}

/// The buffers of an endpoint.
pub(super) struct Buffers {
    places: Places,
    /// Which are the provider's.
    lent: Box<[bool]>,
    /// Buffers for what is sent that are free.
    free: Vec<u32>,
    /// Buffers for what comes that the provider has not taken.
    unposted: Vec<u32>,
    memory: ManuallyDrop<MmapMut>,
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // An object that could not be closed may go on to receive.
        if !may_use_memory() {
            // SAFETY: it is dropped here alone.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

impl Buffers {
    /// So many for what comes and for what is sent, with so much room before each message.
    pub(super) fn new(
        [receives, sends]: [usize; 2],
        prefixes: [usize; 2],
        message_bytes: usize,
    ) -> io::Result<Self> {
        let prefix = prefixes[RECEIVES].max(prefixes[SENDS]);
        let stride = (CONTEXT_BYTES + prefix + message_bytes).next_multiple_of(CONTEXT_BYTES);
        let count = receives + sends;
        let mut memory = MmapMut::map_anon(stride * count)?;
        let at = NonNull::new(memory.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        let places = Places {
            memory: at,
            stride,
            prefixes,
            message_bytes,
            receives: receives as u32,
        };
        Ok(Self {
            places,
            lent: vec![false; count].into(),
            free: (receives as u32..count as u32).collect(),
            unposted: Vec::with_capacity(receives),
            memory: ManuallyDrop::new(memory),
        })
    }

    pub(super) fn places(&self) -> Places {
        self.places
    }

    pub(super) fn receives(&self) -> usize {
        self.places.receives as usize
    }

    /// Leaves the buffers out of child processes.
    ///
    /// Memory that a card has pinned is copied at a write after a fork, in the parent too, and the
    /// card would go on with the old pages.
    pub(super) fn keep_from_children(&self) -> io::Result<()> {
        self.memory.advise(memmap2::Advice::DontFork)
    }

    pub(super) fn memory(&self) -> NonNull<u8> {
        self.places.memory
    }

    pub(super) fn bytes(&self) -> usize {
        self.memory.len()
    }

    pub(super) fn send_prefix(&self) -> usize {
        self.places.prefixes[SENDS]
    }

    /// A buffer with its prefix and all its room.
    pub(super) fn whole(&self, index: u32, descriptor: *mut c_void) -> Buffer {
        self.buffer(index, self.places.message_bytes, descriptor)
    }

    fn buffer(&self, index: u32, message_bytes: usize, descriptor: *mut c_void) -> Buffer {
        let context = self.places.at(index);
        Buffer {
            at: context.wrapping_add(CONTEXT_BYTES),
            bytes: self.places.prefix(index) + message_bytes,
            descriptor,
            context,
        }
    }

    /// A buffer is the provider's from now on.
    pub(super) fn lend(&mut self, index: u32) {
        self.lent[index as usize] = true;
    }

    /// The provider has not taken it.
    pub(super) fn take_back(&mut self, index: u32) {
        self.lent[index as usize] = false;
    }

    /// The buffer of a completion, which is the provider's no more.
    fn ended(&mut self, context: usize) -> Option<u32> {
        let offset = context.checked_sub(self.places.memory.as_ptr().addr())?;
        let index = offset / self.places.stride;
        let lent = self.lent.get_mut(index)?;
        let is_one = offset.is_multiple_of(self.places.stride) && *lent;
        is_one.then(|| {
            *lent = false;
            index as u32
        })
    }

    /// The buffer where a message has come, and its bytes.
    ///
    /// A provider's own packet that is nothing but a prefix is a message of no bytes.
    pub(super) fn arrived(&mut self, context: usize, bytes: usize) -> Option<(u32, usize)> {
        let most = self.places.message_bytes;
        let bytes = bytes.saturating_sub(self.places.prefixes[RECEIVES]);
        let index = self.ended(context)?;
        if index >= self.places.receives {
            self.put_free(index);
            return None;
        }
        Some((index, bytes.min(most)))
    }

    /// The buffer of a send that has ended is free; which, if there was such a send.
    pub(super) fn end_send(&mut self, context: usize) -> Option<u32> {
        let index = self.ended(context)?;
        match index < self.places.receives {
            true => self.unposted.push(index),
            false => self.free.push(index),
        }
        Some(index)
    }

    /// Buffers for sends that are free.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Buffers for sends that are the provider's.
    pub(super) fn lent_sends(&self) -> impl Iterator<Item = usize> {
        let sends = self.receives()..self.lent.len();
        sends.filter(|index| self.lent[*index])
    }

    /// Whether the provider has a buffer for what comes.
    pub(super) fn receives_any(&self) -> bool {
        self.lent[..self.receives()].contains(&true)
    }

    /// Whether a buffer for sends is in use.
    pub(super) fn is_sending(&self) -> bool {
        self.places.receives as usize + self.free.len() < self.lent.len()
    }

    /// A free buffer for a send.
    pub(super) fn take_free(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// A buffer of a send is free at once.
    pub(super) fn put_free(&mut self, index: u32) {
        self.take_back(index);
        self.free.push(index);
    }

    /// Fills a buffer that was taken from the free ones with a message of so many bytes.
    pub(super) fn fill(&mut self, index: u32, bytes: usize, fill: impl FnOnce(&mut [u8])) {
        // SAFETY: the buffer was free, and only its holder has it.
        fill(unsafe {
            self.places
                .message_mut(index, bytes.min(self.places.message_bytes))
        });
    }

    /// A message of so many bytes in a buffer for sends that is not the provider's.
    pub(super) fn message(&self, index: u32, bytes: usize) -> &[u8] {
        // SAFETY: as above; nothing fills it while this is borrowed, as that takes the holder.
        unsafe {
            self.places
                .message(index, bytes.min(self.places.message_bytes))
        }
    }

    /// The first bytes of a buffer with its prefix.
    pub(super) fn part(&self, index: u32, bytes: usize, descriptor: *mut c_void) -> Buffer {
        self.buffer(index, bytes.min(self.places.message_bytes), descriptor)
    }

    pub(super) fn keep_unposted(&mut self, index: u32) {
        self.unposted.push(index);
    }

    pub(super) fn take_unposted(&mut self) -> Option<u32> {
        self.unposted.pop()
    }
}
