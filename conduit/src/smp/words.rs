//! The memory of one ring, in 8-byte words: shared memory, or loom's atomics under `--cfg loom`.

#[cfg(not(loom))]
mod real {
    use argonet_segment::bulk;
    use core::ptr::NonNull;
    use core::sync::atomic::{AtomicU64, Ordering};

    /// Words of one ring in a shared mapping.
    ///
    /// Invariant (from [`Words::new`]): `base` points to `len` words, 16-byte aligned, that stay
    /// mapped as long as any copy of this value is used. Single words are only accessed as
    /// atomics; payload bytes only through `bulk`, between a reservation and its release.
    #[derive(Clone, Copy)]
    pub(crate) struct Words {
        base: *const AtomicU64,
        len: usize,
    }

    // SAFETY: the words are atomics in memory that outlives the value (invariant above); which
    // thread may touch which payload bytes is decided by the ring's positions.
    unsafe impl Send for Words {}
    // SAFETY: as for Send.
    unsafe impl Sync for Words {}

    impl Words {
        /// Names the words.
        ///
        /// # Safety
        /// `base` points to `len` words, 16-byte aligned, mapped readable and writable as long as
        /// this value or a copy of it is used.
        pub(crate) unsafe fn new(base: *const u8, len: usize) -> Self {
            Self {
                base: base.cast(),
                len,
            }
        }

        #[inline(always)]
        fn word(&self, i: usize) -> &AtomicU64 {
            debug_assert!(i < self.len, "ring positions are masked");
            // SAFETY: i < len: callers pass masked unit positions and offsets within a record
            // that ends before the ring does (Producer::reserve, record::unpack).
            unsafe { &*self.base.add(i) }
        }

        #[inline(always)]
        pub(crate) fn load(&self, i: usize, order: Ordering) -> u64 {
            self.word(i).load(order)
        }

        #[inline(always)]
        pub(crate) fn store(&self, i: usize, value: u64, order: Ordering) {
            self.word(i).store(value, order);
        }

        /// Address of word `i`, for payloads of `len` bytes.
        #[inline(always)]
        pub(crate) fn bytes(&self, i: usize, len: usize) -> NonNull<u8> {
            assert!(
                i <= self.len && len <= (self.len - i) * 8,
                "payload lies within the ring"
            );
            // SAFETY: just checked against the length of the mapping, which is not null.
            unsafe { NonNull::new_unchecked(self.base.add(i) as *mut u8) }
        }

        /// Copies a payload into the ring at word `i`.
        ///
        /// # Safety
        /// `src` is readable for `len` bytes and does not overlap the reserved units.
        #[inline(always)]
        pub(crate) unsafe fn copy_in(&self, i: usize, src: *const u8, len: usize) {
            // SAFETY: the target was checked by `bytes`, the source is the caller's promise.
            unsafe { bulk::copy(self.bytes(i, len).as_ptr(), src, len) };
        }
    }
}

#[cfg(loom)]
mod model {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering};

    /// Words of one ring as loom's atomics.
    #[derive(Clone)]
    pub(crate) struct Words(Arc<Vec<AtomicU64>>);

    impl Words {
        pub(crate) fn zeroed(len: usize) -> Self {
            Self(Arc::new((0..len).map(|_| AtomicU64::new(0)).collect()))
        }

        pub(crate) fn load(&self, i: usize, order: Ordering) -> u64 {
            self.0[i].load(order)
        }

        pub(crate) fn store(&self, i: usize, value: u64, order: Ordering) {
            self.0[i].store(value, order);
        }
    }
}

#[cfg(loom)]
pub(crate) use model::Words;
#[cfg(not(loom))]
pub(crate) use real::Words;
