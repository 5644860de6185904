//! The one place where the engine calls code of its client's: handlers and the combinations of
//! reductions.
//!
//! Such code runs in the midst of the engine's work, perhaps in a poll of a call that has nothing
//! to do with it. So a panic does not unwind from here: it would leave a blocking call whose buffer
//! other ranks still write, and the other ranks would wait for a rank that has left a collective
//! operation. It ends the job. And the code may not communicate: the thread is in
//! [`Context::Handler`] meanwhile, in which every call that communicates is refused.
//!
//! No lock is held here that another call waits for. Conduits run handlers with a lock of the
//! sender's messages, and collective calls fold with the lock of their work, but a thread that
//! finds those held passes by. A blocking reduction holds the call lock of its team; only threads
//! whose call has to follow this one anyway wait for it.
//!
//! Remote procedures that get a context run later, after the handlers of a poll, and may
//! communicate ([`deferred`](super::deferred)); their panics end the job, too.
//!
//! The library calls other client code directly, in the client's own call and with no work of its
//! own below: conditions of waits, futures and wakers, encoders of arguments and decoders of
//! results, the functions of scopes and quiet phases. A panic there goes to the client, and all
//! calls are allowed. [ADR 0032](../../docs/adr/0032-one-place-calls-client-code.md) has the list.

use super::core::Engine;
use super::deferred::RunDeferred;
use super::thread::{Context, ThreadCtx};
use argonet_am::Delivery;
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::Conduit;
use core::any::Any;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::ThreadId;

/// The exit code of a job that a panic of client code ends: that of a Rust program that panics.
pub const PANIC_CODE: u8 = 101;

/// Client code that the engine calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClientCode {
    /// Handlers of messages, among them those of the library's that run remote procedures.
    Handlers,
    /// The function that combines the values of a reduction.
    Combination,
    /// What handlers have left to a later time.
    Deferred,
}

/// The payload of a panic of client code inside a handler of the library's, which says whose it is.
struct Named {
    /// The code that panicked.
    what: String,
    /// The message of the panic.
    text: String,
}

/// Calls client code inside a handler of the library's.
///
/// A panic goes on, and the message that ends the job says `what` panicked.
pub fn call_named<R>(what: impl FnOnce() -> String, f: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result,
        Err(payload) => resume_unwind(Box::new(Named {
            what: what(),
            text: panic_text(payload),
        })),
    }
}

/// The message of a panic.
pub fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a value that is no text".to_owned(),
    };
    // Its destructor is the client's, too, and could panic.
    core::mem::forget(payload);
    text
}

/// Messages whose handlers were left by a panic, by the thread that ran them.
#[derive(Default)]
pub(super) struct Unwound(Mutex<Vec<(ThreadId, HandlerIndex, JobRank)>>);

/// A handler that runs.
///
/// It is forgotten when the handler returns, so that naming it costs nothing; only a panic drops
/// it.
pub(super) struct Running<'r, 'd> {
    pub(super) delivery: &'r mut Delivery<'d>,
    pub(super) unwound: &'r Unwound,
}

impl Drop for Running<'_, '_> {
    #[cold]
    fn drop(&mut self) {
        let thread = std::thread::current().id();
        let (handler, source) = (self.delivery.handler(), self.delivery.source());
        self.unwound.0.lock().push((thread, handler, source));
    }
}

impl Unwound {
    /// The message whose handler a panic of this thread has left last.
    fn last(&self) -> Option<(HandlerIndex, JobRank)> {
        let thread = std::thread::current().id();
        let unwound = self.0.lock();
        let last = unwound.iter().rev().find(|(of, ..)| *of == thread);
        last.map(|&(_, handler, source)| (handler, source))
    }
}

impl<C: Conduit> Engine<C> {
    /// Calls client code.
    ///
    /// Its panic ends the job, and its calls that communicate are refused.
    ///
    /// The caller holds no lock that another call waits for.
    #[inline(always)]
    pub(super) fn call_client<R>(
        &self,
        ctx: &ThreadCtx,
        code: ClientCode,
        f: impl FnOnce() -> R,
    ) -> R {
        let before = ctx.enter(Context::Handler);
        let result = match catch_unwind(AssertUnwindSafe(f)) {
            Ok(result) => result,
            Err(payload) => self.client_panicked(code, payload),
        };
        ctx.enter(before);
        result
    }

    /// Calls client code that may communicate.
    ///
    /// Its panic ends the job.
    ///
    /// The caller holds no lock that another call waits for, but for the call lock of a collective
    /// call that it is in.
    pub(super) fn call_deferred(&self, run: &RunDeferred) -> usize {
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(ran) => ran,
            Err(payload) => self.client_panicked(ClientCode::Deferred, payload),
        }
    }

    /// Ends the job.
    ///
    /// The panic hook has printed where.
    #[cold]
    #[inline(never)]
    fn client_panicked(&self, code: ClientCode, payload: Box<dyn Any + Send>) -> ! {
        let (what, text) = match payload.downcast::<Named>() {
            Ok(named) => (named.what, named.text),
            Err(payload) => (self.name_of(code), panic_text(payload)),
        };
        self.fatal_with(PANIC_CODE, &format!("{what} panicked: {text}"))
    }

    fn name_of(&self, code: ClientCode) -> String {
        match (code, self.unwound.last()) {
            (ClientCode::Deferred, _) => "a remote procedure".into(),
            (ClientCode::Combination, _) => "the combination of a reduction".into(),
            (ClientCode::Handlers, None) => "a handler".into(),
            (ClientCode::Handlers, Some((handler, source))) => {
                let mut names = self.handlers.names();
                let name = names.find(|(index, _)| *index == handler);
                let name = name.map_or_else(|| handler.to_string(), |(_, name)| name.into());
                format!("the handler `{name}` of a message from rank {source}")
            }
        }
    }
}
