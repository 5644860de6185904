//! Calls of this rank that wait for their results, and calls of others that run here.

use super::deferred::{DeferredCalls, Kept};
use super::{Callee, RpcError, Run, Status};
use crate::error::{Error, Result};
use crate::instances::{Instance, Instances};
use crate::op::Op;
use crate::process;
use crate::world::{Threading, World};
use argonet_am::{AmError, Delivery, HandlerTable, MAX_MEDIUM, Message, Payload};
use argonet_base::{JobRank, Rank};
use argonet_engine::{Injection, internal};
use argonet_segment::SharedBytes;
use core::sync::atomic::Ordering;
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use std::collections::HashMap;
use std::sync::Arc;

/// The ticket of a call whose result nothing waits for.
pub(super) const ONE_WAY: u64 = 0;

/// Words of a message that calls a function, and of one that calls it for an object.
const CALL_WORDS: usize = 3;
const OBJECT_WORDS: usize = 5;

/// Why a call has no result.
enum Failure {
    /// What the other side says.
    Status(Status),
    /// The other side is lost.
    Lost,
}

/// Result of one call, filled by the handler of the reply.
type Cell = Arc<Mutex<Option<Result<Vec<u8>, Failure>>>>;

/// A call as it has come, for the function that it names.
#[doc(hidden)]
pub struct Arrived<'c> {
    pub(super) arguments: &'c [u8],
    /// This rank's part of the object for which it was called.
    pub(super) instance: Option<Instance>,
    /// Whether the caller waits for the result.
    pub(super) is_awaited: bool,
}

impl<'c> Arrived<'c> {
    pub(super) fn plain(arguments: &'c [u8]) -> Self {
        Self {
            arguments,
            instance: None,
            is_awaited: true,
        }
    }

    /// The instance, as what the function takes it for.
    pub(super) fn value<T: 'static>(&self) -> Result<&T, Status> {
        let instance = self.instance.as_ref().ok_or(Status::NoInstance)?;
        instance.get().ok_or(Status::OtherType)
    }
}

/// The functions of this program, the objects that they are called for, and the calls under way.
#[derive(Default)]
pub(crate) struct Calls {
    /// Sorted by name, the same on all ranks.
    pub(super) functions: Vec<(&'static str, Run)>,
    pub(crate) instances: Instances,
    pub(crate) deferred: DeferredCalls,
    /// By ticket: where the call is to run, and its result.
    waiting: Mutex<HashMap<u64, (JobRank, Cell)>>,
    next: Mutex<u64>,
}

fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// The number of two arguments; 0 if the message has none there.
fn whole(delivery: &Delivery<'_>, first: usize) -> u64 {
    let word = |index: usize| u64::from(delivery.args().get(index).copied().unwrap_or(0));
    word(first) | word(first + 1) << 32
}

impl Calls {
    /// `functions` sorted by name.
    pub(crate) fn new(functions: Vec<(&'static str, Run)>) -> Self {
        Self {
            functions,
            ..Self::default()
        }
    }

    /// Whether any function may communicate: at all ranks, or at none.
    pub(crate) fn any_deferred(&self) -> bool {
        self.functions.iter().any(|(_, run)| run.is_deferred())
    }

    fn is_deferred(&self, index: u32) -> bool {
        let function = self.functions.get(index as usize);
        function.is_some_and(|(_, run)| run.is_deferred())
    }

    fn find(&self, name: &str) -> Option<u32> {
        let found = self
            .functions
            .binary_search_by(|(held, _)| (*held).cmp(name))
            .ok()?;
        u32::try_from(found).ok()
    }

    fn start(&self, to: JobRank) -> (u64, Cell) {
        let mut next = self.next.lock();
        *next += 1;
        let cell = Cell::default();
        self.waiting.lock().insert(*next, (to, Arc::clone(&cell)));
        (*next, cell)
    }

    /// Ends the calls that were to run at a rank that is lost.
    pub(crate) fn lose(&self, rank: JobRank) {
        let mut waiting = self.waiting.lock();
        for (_, (_, cell)) in waiting.extract_if(|_, (to, _)| *to == rank) {
            *cell.lock() = Some(Err(Failure::Lost));
        }
    }

    /// Puts the two handlers of the protocol into the table.
    pub(crate) fn register(self: &Arc<Self>, table: &mut HandlerTable) -> Result<(), AmError> {
        let this = Arc::clone(self);
        let call = move |delivery: &mut Delivery<'_>| this.serve(delivery);
        table.register_internal(internal::RPC_CALL, "argonet::rpc_call", Box::new(call))?;
        let this = Arc::clone(self);
        let result = move |delivery: &mut Delivery<'_>| this.finish(delivery);
        table.register_internal(
            internal::RPC_RESULT,
            "argonet::rpc_result",
            Box::new(result),
        )
    }

    /// Handler of a call: arguments index, ticket low, ticket high, and those of the object's
    /// number if it is called for one.
    fn serve(&self, delivery: &mut Delivery<'_>) {
        let function = delivery.arg(0) as usize;
        let (ticket, object) = (whole(delivery, 1), whole(delivery, CALL_WORDS));
        let outcome = match self.functions.get(function) {
            None => Err(Status::UnknownFunction),
            Some((_, Run::Deferred(_))) => {
                return self.deferred.keep(Kept {
                    source: delivery.source(),
                    function,
                    ticket,
                    object,
                    arguments: delivery.payload().to_vec(),
                });
            }
            Some((_, Run::InHandler(run))) => {
                let arguments = delivery.payload().to_vec();
                let call = Arrived {
                    arguments: &arguments,
                    instance: self.instances.find(object),
                    is_awaited: ticket != ONE_WAY,
                };
                process::called_by(Rank(delivery.source().0), || run(&call))
            }
        };
        if ticket == ONE_WAY {
            return self.one_way_ended(function, object, delivery.source(), outcome);
        }
        with_result(ticket, outcome, |result| {
            // The message is well-formed and its room reserved; a failure means that the sender was
            // no request, which only the raw layer can produce and which no caller waits for.
            let _ = delivery.reply(result);
        });
    }

    /// Panics if a one-way call did not run: no rank waits for the outcome, so nothing else would
    /// say so.
    pub(super) fn one_way_ended(
        &self,
        function: usize,
        object: u64,
        caller: JobRank,
        outcome: Result<Vec<u8>, Status>,
    ) {
        if let Err(status) = outcome {
            if status == Status::NoInstance && self.instances.has_failed(object) {
                // This rank's program knows.
                return;
            }
            let function = self.functions.get(function);
            let name = function.map_or("a function", |(name, _)| name);
            panic!("a one-way call of `{name}` from rank {caller} cannot run: {status}");
        }
    }

    /// Handler of a result.
    ///
    /// A ticket that no caller waits for is dropped: its operation is gone.
    fn finish(&self, delivery: &mut Delivery<'_>) {
        let ticket = whole(delivery, 1);
        let Some((_, cell)) = self.waiting.lock().remove(&ticket) else {
            return;
        };
        let status = Status::try_from(delivery.arg(0)).unwrap_or(Status::Garbled);
        *cell.lock() = Some(match status {
            Status::Done => Ok(delivery.payload().to_vec()),
            status => Err(Failure::Status(status)),
        });
    }
}

/// Calls `send` with the message that brings the outcome of a call.
fn with_result<R>(
    ticket: u64,
    outcome: Result<Vec<u8>, Status>,
    send: impl FnOnce(&Message<'_>) -> R,
) -> R {
    let (status, bytes) = match outcome {
        Ok(bytes) if bytes.len() <= MAX_MEDIUM => (Status::Done, bytes),
        Ok(_) => (Status::ResultTooLong, Vec::new()),
        Err(status) => (status, Vec::new()),
    };
    let [low, high] = halves(ticket);
    send(&Message {
        handler: internal::RPC_RESULT,
        args: &[status.into(), low, high],
        payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
    })
}

impl<M: Threading> World<M> {
    /// Calls a function and waits, polling, only while `to` has no room.
    pub(crate) fn call<A, R>(&self, to: Rank, callee: &Callee<'_>, args: &A) -> Result<Op<'_, R>>
    where
        A: Serialize,
        R: DeserializeOwned,
    {
        let (name, rank) = (callee.name, self.rank());
        let (index, bytes) = self.encoded(callee, args)?;
        if self.inner.calls.is_deferred(index) && process::with(|ctx| ctx.runs_deferred()) {
            let name = name.into();
            return Err(RpcError::WouldDeadlock { name, rank }.into());
        }
        let (ticket, cell) = self.inner.calls.start(Self::job_rank(to));
        if let Err(error) = self.send_call(to, index, ticket, callee.object, &bytes) {
            self.inner.calls.waiting.lock().remove(&ticket);
            return Err(error);
        }
        Ok(Op::waiting(self, move || {
            let outcome = cell.lock().take()?;
            let failed = |failure| match failure {
                Failure::Status(status) => Error::from(RpcError::Failed {
                    name: name.into(),
                    at: to,
                    status,
                    rank,
                }),
                Failure::Lost => Error::from(AmError::PeerLost {
                    at: JobRank(rank.0),
                    peer: Self::job_rank(to),
                }),
            };
            Some(outcome.map_err(failed).and_then(|bytes| {
                crate::bounded::decode(&bytes).map_err(|cause| {
                    Error::from(RpcError::Decode {
                        name: name.into(),
                        at: to,
                        cause: cause.to_string(),
                        rank,
                    })
                })
            }))
        }))
    }

    /// Calls a function whose result is dropped where it ran.
    pub(crate) fn call_one_way<A>(&self, to: Rank, callee: &Callee<'_>, args: &A) -> Result<()>
    where
        A: Serialize,
    {
        let (index, bytes) = self.encoded(callee, args)?;
        self.send_call(to, index, ONE_WAY, callee.object, &bytes)
    }

    /// The function's place in the table, and its arguments.
    fn encoded<A: Serialize>(&self, callee: &Callee<'_>, args: &A) -> Result<(u32, Vec<u8>)> {
        let (name, rank) = (callee.name, self.rank());
        let mut index = callee.index.load(Ordering::Relaxed);
        if index == super::UNRESOLVED {
            let found = self.inner.calls.find(name);
            index = found.ok_or_else(|| RpcError::Unregistered {
                name: name.into(),
                rank,
            })?;
            callee.index.store(index, Ordering::Relaxed);
        }
        let bytes = postcard::to_stdvec(args).map_err(|cause| RpcError::Encode {
            name: name.into(),
            cause: cause.to_string(),
            rank,
        })?;
        if bytes.len() > MAX_MEDIUM {
            return Err(RpcError::TooLong {
                name: name.into(),
                len: bytes.len(),
                rank,
            }
            .into());
        }
        Ok((index, bytes))
    }

    fn send_call(
        &self,
        to: Rank,
        index: u32,
        ticket: u64,
        object: Option<u64>,
        bytes: &[u8],
    ) -> Result<()> {
        let ([t0, t1], [o0, o1]) = (halves(ticket), halves(object.unwrap_or(0)));
        let words = [index, t0, t1, o0, o1];
        let count = match object {
            Some(_) => OBJECT_WORDS,
            None => CALL_WORDS,
        };
        let message = Message {
            handler: internal::RPC_CALL,
            args: &words[..count],
            payload: Payload::Medium(SharedBytes::from_slice(bytes)),
        };
        process::with(|ctx| {
            self.engine()
                .request(ctx, Self::job_rank(to), &message, Injection::Blocking)
        })?;
        Ok(())
    }

    /// Sends the outcome of a call that has run outside of its handler.
    pub(super) fn send_result(
        &self,
        to: JobRank,
        ticket: u64,
        outcome: Result<Vec<u8>, Status>,
    ) -> Result<(), AmError> {
        let engine = self.engine();
        with_result(ticket, outcome, |result| {
            process::with(|ctx| engine.request(ctx, to, result, Injection::Blocking))
        })
    }
}
