//! This rank's instances of distributed objects, for the functions that are called for them.

use crate::world::{Par, Seq, Threading};
use core::any::Any;
use core::cell::RefCell;
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

thread_local! {
    /// Those of worlds of one thread, which runs all functions: the instances never leave it.
    static OF_THREAD: RefCell<BTreeMap<u64, Rc<dyn Any>>> = RefCell::default();
}

/// An instance that stays for as long as this is kept, also when the object is dropped.
#[derive(Clone)]
pub(crate) enum Instance {
    OfThread(Rc<dyn Any>),
    Shared(Arc<dyn Any + Send + Sync>),
}

impl Instance {
    /// The value, if it is of that type.
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        match self {
            Self::OfThread(value) => value.downcast_ref(),
            Self::Shared(value) => value.downcast_ref(),
        }
    }
}

/// The instances of a world by the numbers of their objects, which count from 1 and never repeat.
#[derive(Default)]
pub(crate) struct Instances {
    made: AtomicU64,
    /// Objects that this rank could not make, or gave up, as a rank was lost; others may call them.
    failed: Mutex<HashSet<u64>>,
    shared: Mutex<BTreeMap<u64, Arc<dyn Any + Send + Sync>>>,
}

impl Instances {
    /// The number of the next object, the same on all ranks.
    pub(crate) fn number(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The object could not be made here.
    pub(crate) fn fail(&self, number: u64) {
        self.failed.lock().insert(number);
    }

    /// Whether the object could not be made here.
    pub(crate) fn has_failed(&self, number: u64) -> bool {
        self.failed.lock().contains(&number)
    }

    /// The instance of that number that this thread can see.
    pub(crate) fn find(&self, number: u64) -> Option<Instance> {
        if number == 0 {
            return None;
        }
        // While the thread ends there is none any more.
        let of_thread = OF_THREAD.try_with(|all| all.borrow().get(&number).cloned());
        if let Ok(Some(value)) = of_thread {
            return Some(Instance::OfThread(value));
        }
        let shared = self.shared.lock().get(&number).cloned();
        shared.map(Instance::Shared)
    }
}

/// Types that can be instances of a [`DistObject`](crate::DistObject) in a `World<M>`: any without
/// borrows where `M` is `Seq`, those that are [`Send`] and [`Sync`] where it is `Par`.
///
/// ```compile_fail,E0277
/// # use argonet::{DistObject, Par, World};
/// # use std::cell::RefCell;
/// # fn f(world: &World<Par>) {
/// let words = DistObject::new(world, RefCell::new(7));
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an instance of a distributed object in a `World<{M}>`",
    note = "a `World<Par>` runs functions on any thread: its instances are `Send` and `Sync`, with a `Mutex` instead of a `RefCell`"
)]
pub trait InstanceIn<M: Threading>: Sized + 'static {
    /// Where it is kept, for the owner and for functions.
    #[doc(hidden)]
    type Kept: Deref<Target = Self>;

    #[doc(hidden)]
    fn keep(self) -> Self::Kept;
    #[doc(hidden)]
    fn publish(kept: &Self::Kept, number: u64, of: Registry<'_>);
    #[doc(hidden)]
    fn withdraw(number: u64, of: Registry<'_>);
}

/// The instances of a world, for implementations in this crate alone.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Registry<'c>(pub(crate) &'c Instances);

impl<T: 'static> InstanceIn<Seq> for T {
    type Kept = Rc<T>;

    fn keep(self) -> Rc<T> {
        Rc::new(self)
    }

    fn publish(kept: &Rc<T>, number: u64, _: Registry<'_>) {
        let value: Rc<dyn Any> = Rc::clone(kept) as _;
        OF_THREAD.with_borrow_mut(|all| all.insert(number, value));
    }

    fn withdraw(number: u64, _: Registry<'_>) {
        // It is dropped outside of the map's borrow: its destructor is the client's.
        let value = OF_THREAD.try_with(|all| all.borrow_mut().remove(&number));
        drop(value);
    }
}

impl<T: Send + Sync + 'static> InstanceIn<Par> for T {
    type Kept = Arc<T>;

    fn keep(self) -> Arc<T> {
        Arc::new(self)
    }

    fn publish(kept: &Arc<T>, number: u64, of: Registry<'_>) {
        let value: Arc<dyn Any + Send + Sync> = Arc::clone(kept) as _;
        of.0.shared.lock().insert(number, value);
    }

    fn withdraw(number: u64, of: Registry<'_>) {
        let value = of.0.shared.lock().remove(&number);
        drop(value);
    }
}
