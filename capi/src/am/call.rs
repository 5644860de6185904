//! A message gets to the client's function.

use core::mem::transmute;

use argonet_am::{Category, Delivery};
use argonet_base::SegmentOffset;
use core::ffi::c_void;

use crate::am::entry::Entry;
use crate::am::source_descriptor;
use crate::am::token::{self, Token};
use crate::hsl;
use crate::job::fatal;
use crate::job::{Job, find};

/// Calls a function with the arguments that the message has, after those of its category.
macro_rules! call {
    ($function:expr, $args:expr, $first:tt, $([$($arg:ident)*])*) => {
        match *$args {
            $([$($arg),*] => call!(@one $function, $first, $($arg)*),)*
            // Neither senders nor conduits let more through.
            _ => {}
        }
    };
    (@one $function:expr, ($($value:expr => $type:ty),*), $($arg:ident)*) => {{
        // An exception of C++ ends the process where the engine calls handlers.
        type Function = unsafe extern "C-unwind" fn($($type,)* $(call!(@argument $arg)),*);
        // SAFETY: a pointer to a function, which the client says is one for such messages.
        let function: Function = unsafe { transmute::<unsafe extern "C" fn(), Function>($function) };
        // SAFETY: as above; token and payload are good until it returns.
        unsafe { function($($value,)* $($arg.cast_signed()),*) }
    }};
    (@argument $arg:ident) => { i32 };
    ($function:expr, $args:expr, $first:tt) => {
        call!(
            $function, $args, $first,
            []
            [a]
            [a b]
            [a b c]
            [a b c d]
            [a b c d e]
            [a b c d e f]
            [a b c d e f g]
            [a b c d e f g h]
            [a b c d e f g h i]
            [a b c d e f g h i j]
            [a b c d e f g h i j k]
            [a b c d e f g h i j k l]
            [a b c d e f g h i j k l m]
            [a b c d e f g h i j k l m n]
            [a b c d e f g h i j k l m n o]
            [a b c d e f g h i j k l m n o p]
        )
    };
}

/// Runs a handler.
#[inline]
pub(crate) fn run(entry: &'static Entry, delivery: &mut Delivery<'_>) {
    match find() {
        Some(job) if job.debug => run_checked(job, entry, delivery),
        _ => run_unchecked(entry, delivery),
    }
}

#[inline(always)]
fn run_unchecked(entry: &'static Entry, delivery: &mut Delivery<'_>) {
    let Some(function) = entry.function else {
        return;
    };
    let args = delivery.args();
    if delivery.category() == Category::Short {
        let token = Token::of(delivery);
        call!(function, args, (token => *mut Token));
    } else {
        let (data, bytes) = payload(delivery);
        let token = Token::of(delivery);
        call!(function, args, (token => *mut Token, data => *mut c_void, bytes => usize));
    }
}

/// The payload arguments of a medium's or long's handler.
fn payload(delivery: &mut Delivery<'_>) -> (*mut c_void, usize) {
    if delivery.category() == Category::Long {
        // The length that the sender gave, also of an empty payload.
        let bytes = delivery.payload().len();
        let there = match delivery.address() {
            Some(there) => there as *mut c_void,
            None => address(delivery.offset()),
        };
        return (there, bytes);
    }
    match delivery.payload_mut() {
        Some(payload) => (payload.as_mut_ptr().cast(), payload.len()),
        None => (core::ptr::dangling_mut::<u128>().cast(), 0),
    }
}

/// The address in this process of an offset in its segment, which may be outside: the inverse of
/// what senders do.
fn address(offset: SegmentOffset) -> *mut c_void {
    let Some(job) = find() else {
        return core::ptr::null_mut();
    };
    let engine = &job.joined.engine;
    let base = 0u64.wrapping_sub(engine.offset_of(engine.rank(), 0).0);
    base.wrapping_add(offset.0) as *mut c_void
}

#[cold]
fn run_checked(job: &Job, entry: &'static Entry, delivery: &mut Delivery<'_>) {
    let (category, class) = (delivery.category(), delivery.class());
    let (from, to) = (delivery.source(), delivery.rank());
    if let Some(why) = entry.mismatch(category, class, delivery.args().len()) {
        job.joined
            .engine
            .fatal(&format!("{why} (message from rank {from} to rank {to})"));
    }
    let token = Token::of(delivery);
    token::enter(token);
    run_unchecked(entry, delivery);
    token::leave();
    let held = hsl::held();
    if held > 0 {
        job.joined.engine.fatal(&format!(
            "handler {} ({}) of rank {to} returned with {held} handler-safe locks held, without gex_HSL_Unlock (message from rank {from})",
            entry.index,
            entry.named()
        ));
    }
    if source_descriptor::is_open() {
        job.joined.engine.fatal(&format!(
            "handler {} ({}) of rank {to} returned between prepare and commit of its reply to rank {from}",
            entry.index,
            entry.named()
        ));
    }
}

/// Ends the job, as there is no function for a message.
#[cold]
pub(crate) fn no_handler(delivery: &mut Delivery<'_>) {
    let (index, from, to) = (delivery.handler(), delivery.source(), delivery.rank());
    let ends = delivery.endpoints();
    let (mut there, mut between) = (String::new(), String::new());
    if !ends.are_primordial() {
        there = format!(", endpoint {} or 0", ends.to);
        between = format!(", endpoint {} to endpoint {}", ends.from, ends.to);
    }
    fatal(
        "an active message",
        &format!(
            "no handler is registered for index {index} on rank {to}{there} (message from rank {from} to rank {to}{between}); see gex_EP_RegisterHandlers and gasnet_attach"
        ),
    )
}
