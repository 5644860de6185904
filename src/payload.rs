//! The bytes of a message, as its handler sees them.

use crate::global::Global;
use argonet_segment::{OutOfRange, SharedBytes};

/// Payload of an active message, valid while its handler runs.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// static SEEN: AtomicBool = AtomicBool::new(false);
/// argonet::am! {
///     fn look(ctx, _nothing: ()) {
///         let payload = ctx.payload();
///         assert!(payload.len() == 12 && !payload.is_empty());
///         assert_eq!(payload.read::<u32>(4).unwrap(), 20);
///         assert!(payload.read::<u64>(8).is_err());
///         let mut last = [0u32; 2];
///         payload.copy_to(4, &mut last).unwrap();
///         assert_eq!(last, [20, 30]);
///         assert_eq!(payload.to_vec::<u32>(), [10, 20, 30]);
///         assert_eq!(payload.shared().len(), 12);
///         SEEN.store(true, Ordering::Relaxed);
///     }
/// }
/// # let world = argonet::World::init().unwrap();
/// world.send_medium(world.rank(), &look, (), &[10u32, 20, 30]).unwrap();
/// world.wait_until(|| SEEN.load(Ordering::Relaxed)).unwrap();
/// ```
///
/// It is memory that other ranks share, so it is read by copy; there is no `&[u8]`. It cannot be
/// kept:
///
/// ```compile_fail
/// # use argonet::{AmContext, Payload};
/// fn keep(ctx: &AmContext<'_, '_>) -> Payload<'static> { ctx.payload() }
/// ```
#[derive(Clone, Copy)]
pub struct Payload<'a>(pub(crate) SharedBytes<'a>);

impl<'a> Payload<'a> {
    /// Length in bytes.
    ///
    /// See the example of [`Payload`].
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no bytes.
    ///
    /// See the example of [`Payload`].
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a value at a byte offset, aligned or not.
    ///
    /// See the example of [`Payload`].
    ///
    /// # Errors
    /// [`OutOfRange`] if it would reach past the end.
    #[inline]
    pub fn read<T: Global>(&self, offset: usize) -> Result<T, OutOfRange> {
        self.0.read(offset)
    }

    /// Copies values from a byte offset on.
    ///
    /// See the example of [`Payload`].
    ///
    /// # Errors
    /// [`OutOfRange`] if they would reach past the end.
    #[inline]
    pub fn copy_to<T: Global>(&self, offset: usize, to: &mut [T]) -> Result<(), OutOfRange> {
        self.0.copy_to_slice(offset, to)
    }

    /// All whole values, in a vector.
    ///
    /// See the example of [`Payload`].
    #[must_use]
    pub fn to_vec<T: Global>(&self) -> Vec<T> {
        let count = self.len() / size_of::<T>().max(1);
        let mut values = vec![T::new_zeroed(); count];
        // Cannot fail: the count was computed from the length.
        let copied = self.copy_to(0, &mut values);
        debug_assert!(copied.is_ok());
        values
    }

    /// The bytes in place, for `unsafe` users.
    ///
    /// See the example of [`Payload`].
    #[must_use]
    pub fn shared(&self) -> SharedBytes<'a> {
        self.0
    }
}
