//! How operations complete: before the call returns, by an event, or with the thread's implicit
//! ones.

use argonet_am::AmError;
use argonet_engine::{Injection, LocalCompletion, OpError, Span};
use argonet_event::{Category, Event};
use argonet_trace::Kind;

use crate::context::{AfterLoss, done, lost};
use crate::flags::{DEFER, GROUP, NOW};
use crate::job::fatal;
use crate::rma::Operation;

/// When the source of a put may be overwritten: `lc_opt`.
pub(crate) enum LocalOption {
    /// When the call returns.
    Now,
    /// When the operation is complete, or the category LC of the implicit ones is.
    Later,
    /// When this event is complete, which the call writes.
    Event(*mut Event),
}

impl LocalOption {
    pub(super) fn of_implicit(function: &str, lc_opt: *mut Event) -> Self {
        match lc_opt.addr() {
            NOW => Self::Now,
            DEFER | GROUP => Self::Later,
            0 => fatal(function, "lc_opt is null"),
            _ => fatal(
                function,
                "lc_opt is an event's address; implicit operations take GEX_EVENT_NOW, DEFER or GROUP",
            ),
        }
    }

    pub(super) fn of_explicit(function: &str, lc_opt: *mut Event) -> Self {
        match lc_opt.addr() {
            NOW => Self::Now,
            DEFER => Self::Later,
            0 => fatal(function, "lc_opt is null"),
            GROUP => fatal(
                function,
                "lc_opt is GEX_EVENT_GROUP; this operation takes GEX_EVENT_NOW, DEFER or an event's address",
            ),
            _ => Self::Event(lc_opt),
        }
    }
}

/// `None` for an operation that was not started, which only [`Injection::Immediate`] allows.
pub(crate) fn started<T: AfterLoss>(
    function: &str,
    injection: Injection,
    outcome: Result<T, OpError>,
) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(OpError::Am(AmError::Full { .. }) | OpError::NoHandle { .. })
            if injection == Injection::Immediate =>
        {
            None
        }
        Err(error) => Some(lost(function, &error)),
    }
}

/// Nothing was done that a trace would have; false.
fn not_started(span: &mut Option<Span<'_>>) -> bool {
    if let Some(span) = span {
        span.forget();
    }
    false
}

impl Operation<'_> {
    /// Waits until it is complete; false if it was not started.
    pub(crate) fn block(&self) -> bool {
        self.checked(|job, ctx, transfer| {
            let mut span = self.span(job, ctx, [Kind::Put, Kind::Get]);
            let Some(transfer) = transfer else {
                return true;
            };
            let engine = &job.joined.engine;
            // SAFETY: the caller's memory, which it leaves alone until this returns.
            let outcome = unsafe { engine.start(ctx, transfer, self.injection()) };
            match started(self.function, self.injection(), outcome) {
                Some(event) => {
                    done(self.function, engine.wait(ctx, event));
                    true
                }
                None => not_started(&mut span),
            }
        })
    }

    /// Starts it among the implicit ones; false if it was not.
    pub(crate) fn implicit(&self, local: &LocalOption) -> bool {
        self.checked(|job, ctx, transfer| {
            let mut span = self.span(job, ctx, [Kind::PutNbi, Kind::GetNbi]);
            let Some(transfer) = transfer else {
                return true;
            };
            let engine = &job.joined.engine;
            // SAFETY: the caller's memory, which it leaves alone until the completion that it asked
            // for.
            let outcome = unsafe { engine.start_implicit(ctx, transfer, self.injection()) };
            match started(self.function, self.injection(), outcome) {
                None => not_started(&mut span),
                Some(LocalCompletion::Pending) if matches!(local, LocalOption::Now) => {
                    done(self.function, engine.wait_local(ctx));
                    true
                }
                Some(_) => true,
            }
        })
    }

    /// Starts it; [`Event::NO_OP`] if it was not.
    pub(crate) fn explicit(&self, local: &LocalOption) -> Event {
        self.checked(|job, ctx, transfer| {
            let mut span = self.span(job, ctx, [Kind::PutNb, Kind::GetNb]);
            let engine = &job.joined.engine;
            let outcome = match transfer {
                None => Ok(Event::DONE),
                // SAFETY: the caller's memory, which it leaves alone until the completion that it
                // asked for.
                Some(transfer) => unsafe { engine.start(ctx, transfer, self.injection()) },
            };
            let Some(root) = started(self.function, self.injection(), outcome) else {
                not_started(&mut span);
                return Event::NO_OP;
            };
            let leaf = || {
                let leaf = engine.leaf(root, Category::Lc);
                done(self.function, leaf.map_err(OpError::from))
            };
            match *local {
                LocalOption::Now => done(self.function, engine.wait(ctx, leaf())),
                LocalOption::Later => {}
                // SAFETY: the caller's event, as the header asks.
                LocalOption::Event(event) => unsafe { event.write(leaf()) },
            }
            root
        })
    }
}
