//! Tokens of operations that are not complete at once.

use super::core::{Engine, Injection};
use super::events::OpError;
use super::thread::ThreadCtx;
use argonet_am::AmError;
use argonet_conduit::{Conduit, OpToken};
use argonet_event::{Category, Completions, Event, NbiToken};

/// How an operation is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Explicitly,
    Implicitly,
}

impl<C: Conduit> Engine<C> {
    /// A token for an operation of so many local and remote parts, and its event if it has one of
    /// its own.
    pub(super) fn token(
        &self,
        ctx: &ThreadCtx,
        counts: Counts,
        category: Category,
        (local, remote): (u32, u32),
        injection: Injection,
    ) -> Result<(OpToken, Event), OpError> {
        if counts == Counts::Explicitly {
            let event = self.handle(ctx, Completions::new(local, remote)?, injection)?;
            let token = OpToken {
                handle: event.raw(),
                implicit: false,
            };
            return Ok((token, event));
        }
        let token = self.implicit(ctx, |scope| {
            let token = scope.initiate(category, remote)?;
            if local > 0
                && let Err(error) = scope.initiate(Category::Lc, local)
            {
                self.events.complete_nbi(token, remote)?;
                return Err(error);
            }
            Ok(token)
        })?;
        let op = OpToken {
            handle: token.raw(),
            implicit: true,
        };
        Ok((op, Event::DONE))
    }

    /// Sends something whose remote completion is its only part; the token is taken back if it
    /// cannot be sent.
    pub(super) fn with_token(
        &self,
        ctx: &ThreadCtx,
        counts: Counts,
        category: Category,
        injection: Injection,
        send: impl FnOnce(OpToken) -> Result<(), AmError>,
    ) -> Result<Event, OpError> {
        let (token, event) = self.token(ctx, counts, category, (0, 1), injection)?;
        if let Err(error) = send(token) {
            self.untoken(ctx, token, (0, 1))?;
            return Err(error.into());
        }
        Ok(event)
    }

    /// Takes a token back of which nothing has been sent.
    pub(super) fn untoken(
        &self,
        ctx: &ThreadCtx,
        token: OpToken,
        (local, remote): (u32, u32),
    ) -> Result<(), OpError> {
        if !token.implicit {
            let event = Event::from_raw(token.handle);
            ctx.with_cache(&self.events, |cache| self.events.cancel(cache, event))?;
            return Ok(());
        }
        let token = NbiToken::from_raw(token.handle);
        self.events.complete_nbi(token, remote)?;
        if local > 0 {
            let token = token.with_category(Category::Lc);
            self.events.complete_nbi(token, local)?;
        }
        Ok(())
    }
}
