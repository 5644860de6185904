//! A negotiated payload between its prepare and its commit or cancel.
//!
//! A thread has at most one.

use core::cell::RefCell;
use core::ffi::c_void;
use core::mem::ManuallyDrop;

use argonet_am::{Category, MessageClass};
use argonet_conduit::Prepared;
use argonet_engine::ThreadCtx;

use crate::am::arguments::What;
use crate::am::local::Local;
use crate::am::token::Token;
use crate::job::{Receiver, fatal, job};

/// Target of a `gex_AM_SrcDesc_t`: a thread's place for a payload that is being negotiated.
#[derive(Default)]
pub(crate) struct SourceDescriptor {
    open: Option<Open>,
    /// A buffer for the next payload that is not written in place.
    own: Vec<u128>,
}

/// A prepared payload.
pub(crate) struct Open {
    pub(crate) class: MessageClass,
    pub(crate) category: Category,
    pub(crate) nargs: usize,
    pub(crate) to: Receiver,
    /// Of a reply; null for requests.
    pub(crate) token: *mut Token,
    pub(crate) address: *mut u8,
    /// The library's buffer, if the payload is written there.
    pub(crate) own: Vec<u128>,
    pub(crate) size: usize,
    /// Of a long; null if it comes with the commit.
    pub(crate) destination: *mut c_void,
    pub(crate) flags: u32,
    /// Null if the buffer is the library's.
    pub(crate) lc_opt: Local,
    /// The conduit's part of it, if the payload is written in the target's memory.
    pub(crate) prepared: Option<Prepared>,
}

thread_local! {
    /// Without drop code, as destructors of the client's may call when a thread ends: see
    /// [`thread_ends`].
    static DESCRIPTOR: RefCell<ManuallyDrop<SourceDescriptor>> = const {
        RefCell::new(ManuallyDrop::new(SourceDescriptor {
            open: None,
            own: Vec::new(),
        }))
    };
}

/// Gives back the descriptor of a thread that ends.
///
/// A payload that it has prepared and neither committed nor canceled is an error, reported in debug
/// builds; its room in the ring to its target would hold up all messages after it, so it is
/// canceled.
pub(crate) fn thread_ends(ctx: &ThreadCtx, function: &str) {
    let descriptor = DESCRIPTOR.with_borrow_mut(core::mem::take);
    let SourceDescriptor { open, own: _ } = ManuallyDrop::into_inner(descriptor);
    let Some(open) = open else {
        return;
    };
    let job = job(function);
    if job.debug {
        let (category, to) = (open.category.name(), open.to.rank);
        fatal(
            function,
            &format!(
                "it has prepared a {category} request to rank {to} that is neither committed nor canceled; see gex_AM_Cancel*"
            ),
        );
    }
    if let Some(prepared) = open.prepared {
        job.joined.engine.cancel(ctx, prepared);
    }
}

/// Whether this thread has prepared a payload that is neither committed nor canceled.
pub(crate) fn is_open() -> bool {
    DESCRIPTOR.with_borrow(|descriptor| descriptor.open.is_some())
}

/// Ends the job if this thread has a payload prepared already.
pub(crate) fn check_closed(function: &str) {
    if is_open() {
        fatal(
            function,
            "another negotiated payload of this thread is neither committed nor canceled",
        );
    }
}

/// A buffer of the library's of at least so many bytes, good for any type.
///
/// It is the payload's until [`done`]: a commit may wait and run handlers, which may prepare
/// replies.
pub(crate) fn buffer(bytes: usize) -> Vec<u128> {
    let mut buffer = DESCRIPTOR.with_borrow_mut(|descriptor| core::mem::take(&mut descriptor.own));
    // One more, so that there is an address for nothing too.
    let units = bytes / size_of::<u128>() + 1;
    if buffer.len() < units {
        buffer.resize(units, 0);
    }
    buffer
}

/// Ends a payload that was sent or dropped; keeps its buffer for the next one.
pub(crate) fn done(open: Open) {
    DESCRIPTOR.with_borrow_mut(|descriptor| {
        if open.own.len() > descriptor.own.len() {
            descriptor.own = open.own;
        }
    });
}

/// Keeps a prepared payload.
pub(crate) fn open(what: Open) -> *const SourceDescriptor {
    DESCRIPTOR.with_borrow_mut(|descriptor| {
        descriptor.open = Some(what);
        std::ptr::from_ref(&**descriptor)
    })
}

/// Address and length of the buffer.
pub(crate) fn look(handle: *const SourceDescriptor, function: &str) -> (*mut u8, usize) {
    DESCRIPTOR.with_borrow(|descriptor| match &descriptor.open {
        Some(open) if std::ptr::eq(&raw const **descriptor, handle) => (open.address, open.size),
        _ => not_open(function),
    })
}

/// Takes what was prepared for this class and category.
pub(crate) fn close(
    handle: *const SourceDescriptor,
    class: MessageClass,
    category: Category,
    function: &str,
) -> Open {
    DESCRIPTOR.with_borrow_mut(|descriptor| {
        let mine = std::ptr::eq(&raw const **descriptor, handle);
        let Some(open) = descriptor.open.take().filter(|_| mine) else {
            not_open(function);
        };
        if open.class != class || open.category != category {
            let kind = match open.class {
                MessageClass::Request => "request",
                MessageClass::Reply => "reply",
            };
            fatal(
                function,
                &format!("sd is the descriptor of a {} {kind}", open.category.name()),
            );
        }
        open
    })
}

#[cold]
fn not_open(function: &str) -> ! {
    fatal(
        function,
        "sd is no descriptor that this thread has prepared and not yet committed or canceled",
    )
}

impl Open {
    /// Ends the job if a commit does not fit the prepared payload.
    pub(crate) fn check(&self, what: What, bytes: usize, destination: *mut c_void, function: &str) {
        if what.nargs() != self.nargs {
            fatal(
                function,
                &format!(
                    "numargs is {}; at prepare it was {}",
                    what.nargs(),
                    self.nargs
                ),
            );
        }
        if bytes > self.size {
            fatal(
                function,
                &format!(
                    "nbytes is {bytes} where gex_AM_SrcDescSize is {}",
                    self.size
                ),
            );
        }
        if !self.destination.is_null() && self.destination != destination {
            fatal(
                function,
                &format!(
                    "dest_addr is {destination:p}; at prepare it was {:p}",
                    self.destination
                ),
            );
        }
    }
}
