//! Calls of this rank that wait for their results, and calls of others that run here.

use super::batched;
use super::deferred::{DeferredCalls, Kept};
use super::parts::{Part, Parts, u64_at, words_of};
use super::{Callee, RpcError, Run, Status};
use crate::error::{Error, Result};
use crate::instances::{Instance, Instances};
use crate::op::Op;
use crate::process;
use crate::world::{Threading, World};
use argonet_am::{AmError, Delivery, HandlerTable, MAX_MEDIUM, Message, Payload};
use argonet_base::{HandlerIndex, JobRank, Rank};
use argonet_engine::{InParts, Injection, Outgoing, internal};
use argonet_segment::SharedBytes;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

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
    /// This rank's instance of the object for which it was called.
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
    /// Tickets given, and numbers of one-way calls in parts.
    numbers: AtomicU64,
    /// Arguments and results that come in parts.
    arguments: Parts,
    results: Parts,
    /// Sends results in parts; there before any call comes.
    outgoing: OnceLock<Outgoing>,
}

/// A call as its messages name it.
#[derive(Clone, Copy)]
pub(super) struct Called {
    pub(super) source: JobRank,
    /// The function's place in the table.
    pub(super) function: usize,
    pub(super) ticket: u64,
    pub(super) object: u64,
}

impl Called {
    /// Of a message with these arguments: function, ticket low, ticket high, and those of the
    /// object's number if it is called for one.
    fn by(delivery: &Delivery<'_>) -> Self {
        Self {
            source: delivery.source(),
            function: delivery.arg(0) as usize,
            ticket: u64_at(delivery, 1),
            object: u64_at(delivery, CALL_WORDS),
        }
    }
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
        let ticket = self.number();
        let cell = Cell::default();
        self.waiting.lock().insert(ticket, (to, Arc::clone(&cell)));
        (ticket, cell)
    }

    /// A number that is no other call's of this rank, nor [`ONE_WAY`].
    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Ends the calls that were to run at a rank that is lost.
    pub(crate) fn lose(&self, rank: JobRank) {
        let mut waiting = self.waiting.lock();
        for (_, (_, cell)) in waiting.extract_if(|_, (to, _)| *to == rank) {
            *cell.lock() = Some(Err(Failure::Lost));
        }
        drop(waiting);
        // Only now: parts are added for calls that wait.
        self.arguments.lose(rank);
        self.results.lose(rank);
    }

    /// Puts the handlers of the protocol into the table.
    pub(crate) fn register(
        self: &Arc<Self>,
        table: &mut HandlerTable,
        outgoing: Outgoing,
    ) -> Result<(), AmError> {
        // Registered once.
        let _ = self.outgoing.set(outgoing);
        type Handler = fn(&Calls, &mut Delivery<'_>);
        let handlers: [(_, _, Handler); 5] = [
            (internal::RPC_CALL, "argonet::rpc_call", Self::serve),
            (
                internal::RPC_CALL_PART,
                "argonet::rpc_call_part",
                Self::serve_part,
            ),
            (internal::RPC_BATCH, "argonet::rpc_batch", Self::serve_batch),
            (internal::RPC_RESULT, "argonet::rpc_result", Self::finish),
            (
                internal::RPC_RESULT_PART,
                "argonet::rpc_result_part",
                Self::finish_part,
            ),
        ];
        for (index, name, handler) in handlers {
            let this = Arc::clone(self);
            let run = move |delivery: &mut Delivery<'_>| handler(&this, delivery);
            table.register_internal(index, name, Box::new(run))?;
        }
        Ok(())
    }

    /// Handler of a call.
    fn serve(&self, delivery: &mut Delivery<'_>) {
        let arguments = delivery.payload().to_vec();
        self.run(Called::by(delivery), arguments, delivery);
    }

    /// Handler of a part of a call's arguments; the last to come runs the call.
    fn serve_part(&self, delivery: &mut Delivery<'_>) {
        let call = Called::by(delivery);
        let part = Part::read(delivery, OBJECT_WORDS);
        let added = self.arguments.add(call.source, part, &delivery.payload());
        match added {
            Ok(Some(arguments)) => self.run(call, arguments, delivery),
            Ok(None) => {}
            Err(refused) => {
                let (name, source) = (self.name(call.function), call.source);
                panic!(
                    "a part of the arguments of `{name}` from rank {source} is refused: {refused}"
                );
            }
        }
    }

    /// Handler of many one-way calls.
    fn serve_batch(&self, delivery: &mut Delivery<'_>) {
        let (source, message) = (delivery.source(), delivery.payload().to_vec());
        let mut rest = &message[..];
        while !rest.is_empty() {
            let Some((call, behind)) = batched::read(rest) else {
                panic!("a message of many calls from rank {source} is garbled");
            };
            rest = behind;
            let called = Called {
                source,
                function: call.function as usize,
                ticket: ONE_WAY,
                object: call.object,
            };
            match self.try_run(called, call.arguments) {
                Some(outcome) => self.one_way_ended(called, outcome),
                None => self.deferred.keep(Kept {
                    call: called,
                    arguments: call.arguments.to_vec(),
                }),
            }
        }
    }

    pub(super) fn name(&self, function: usize) -> &'static str {
        let function = self.functions.get(function);
        function.map_or("a function", |(name, _)| name)
    }

    /// Runs a call, or keeps it if it may communicate; `delivery` is the message that brought the
    /// last of it.
    fn run(&self, call: Called, arguments: Vec<u8>, delivery: &mut Delivery<'_>) {
        let Some(outcome) = self.try_run(call, &arguments) else {
            return self.deferred.keep(Kept { call, arguments });
        };
        self.end(call, outcome, |result| {
            // The message is well-formed and its room reserved; a failure means that the sender was
            // no request, which only the raw layer can produce and which no caller waits for.
            let _ = delivery.reply(result);
        });
    }

    /// Runs a call, unless it may communicate.
    fn try_run(&self, call: Called, arguments: &[u8]) -> Option<Result<Vec<u8>, Status>> {
        match self.functions.get(call.function) {
            None => Some(Err(Status::UnknownFunction)),
            Some((_, Run::Deferred(_))) => None,
            Some((_, Run::InHandler(run))) => {
                let arrived = Arrived {
                    arguments,
                    instance: self.instances.find(call.object),
                    is_awaited: call.ticket != ONE_WAY,
                };
                Some(process::called_by(Rank(call.source.0), || run(&arrived)))
            }
        }
    }

    /// Brings the outcome to the caller, by `send` if it is one message.
    pub(super) fn end(
        &self,
        call: Called,
        outcome: Result<Vec<u8>, Status>,
        send: impl FnOnce(&Message<'_>),
    ) {
        if call.ticket == ONE_WAY {
            return self.one_way_ended(call, outcome);
        }
        let (status, bytes) = match outcome {
            Ok(bytes) if bytes.len() > MAX_MEDIUM => {
                // The engine adds the offset.
                let [t, l] = [call.ticket, bytes.len() as u64].map(words_of);
                let (handler, words) = (internal::RPC_RESULT_PART, [t[0], t[1], l[0], l[1]]);
                let result = InParts::new(call.source, handler, &words, bytes);
                let outgoing = self.outgoing.get();
                let outgoing = outgoing.expect("it is set before the handlers are registered");
                return outgoing.add(result);
            }
            Ok(bytes) => (Status::Done, bytes),
            Err(status) => (status, Vec::new()),
        };
        let [low, high] = words_of(call.ticket);
        send(&Message {
            handler: internal::RPC_RESULT,
            args: &[status.into(), low, high],
            payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
        });
    }

    /// Panics if a one-way call did not run: no rank waits for the outcome, so nothing else would
    /// say so.
    fn one_way_ended(&self, call: Called, outcome: Result<Vec<u8>, Status>) {
        if let Err(status) = outcome {
            if status == Status::NoInstance && self.instances.has_failed(call.object) {
                // This rank's program knows.
                return;
            }
            let (name, caller) = (self.name(call.function), call.source);
            panic!("a one-way call of `{name}` from rank {caller} cannot run: {status}");
        }
    }

    /// Handler of a result.
    fn finish(&self, delivery: &mut Delivery<'_>) {
        let status = Status::try_from(delivery.arg(0)).unwrap_or(Status::Garbled);
        let outcome = match status {
            Status::Done => Ok(delivery.payload().to_vec()),
            status => Err(status),
        };
        self.fill(delivery.source(), u64_at(delivery, 1), outcome);
    }

    /// Handler of a part of a result, whose number is its call's ticket.
    fn finish_part(&self, delivery: &mut Delivery<'_>) {
        let part = Part::read(delivery, 0);
        if !self.is_waiting(delivery.source(), part.number) {
            return;
        }
        let added = self
            .results
            .add(delivery.source(), part, &delivery.payload());
        match added {
            Ok(Some(result)) => self.fill(delivery.source(), part.number, Ok(result)),
            Ok(None) => {}
            Err(_) => self.fill(delivery.source(), part.number, Err(Status::Garbled)),
        }
    }

    /// Whether a call of that ticket is to run at `from`, and has not ended.
    fn is_waiting(&self, from: JobRank, ticket: u64) -> bool {
        let waiting = self.waiting.lock();
        waiting.get(&ticket).is_some_and(|(to, _)| *to == from)
    }

    /// Ends the call of that ticket.
    ///
    /// One that is over, or that runs at another rank, is left alone.
    fn fill(&self, from: JobRank, ticket: u64, outcome: Result<Vec<u8>, Status>) {
        let mut waiting = self.waiting.lock();
        if let Entry::Occupied(call) = waiting.entry(ticket)
            && call.get().0 == from
        {
            let (_, cell) = call.remove();
            *cell.lock() = Some(outcome.map_err(Failure::Status));
        }
    }
}

impl<M: Threading> World<M> {
    /// Calls a function and waits, polling, only while `to` has no room.
    pub(crate) fn call<A, R>(&self, to: Rank, callee: &Callee<'_>, args: &A) -> Result<Op<'_, R, M>>
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
        Ok(Op::waiting(self, move |_: &Self| {
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
        let index = self.index_of(callee)?;
        let bytes = postcard::to_stdvec(args).map_err(|cause| self.encode_error(callee, &cause))?;
        Ok((index, bytes))
    }

    /// The function's place in the table.
    pub(super) fn index_of(&self, callee: &Callee<'_>) -> Result<u32> {
        let mut index = callee.index.load(Ordering::Relaxed);
        if index == super::UNRESOLVED {
            let found = self.inner.calls.find(callee.name);
            index = found.ok_or_else(|| RpcError::Unregistered {
                name: callee.name.into(),
                rank: self.rank(),
            })?;
            callee.index.store(index, Ordering::Relaxed);
        }
        Ok(index)
    }

    pub(super) fn encode_error(&self, callee: &Callee<'_>, cause: &postcard::Error) -> Error {
        Error::from(RpcError::Encode {
            name: callee.name.into(),
            cause: cause.to_string(),
            rank: self.rank(),
        })
    }

    /// Sends one-way calls in one message.
    pub(super) fn send_batch(&self, to: Rank, calls: &[u8]) -> Result<()> {
        self.send_rpc(to, internal::RPC_BATCH, &[], calls)
    }

    fn send_rpc(
        &self,
        to: Rank,
        handler: HandlerIndex,
        args: &[u32],
        payload: &[u8],
    ) -> Result<()> {
        let message = Message {
            handler,
            args,
            payload: Payload::Medium(SharedBytes::from_slice(payload)),
        };
        let (engine, to) = (self.engine(), Self::job_rank(to));
        Ok(process::with(|ctx| {
            engine.request(ctx, to, &message, Injection::Blocking)
        })?)
    }

    /// Sends a call, in parts if its arguments are longer than one message.
    pub(super) fn send_call(
        &self,
        to: Rank,
        index: u32,
        ticket: u64,
        object: Option<u64>,
        bytes: &[u8],
    ) -> Result<()> {
        let ([t0, t1], [o0, o1]) = (words_of(ticket), words_of(object.unwrap_or(0)));
        let call = [index, t0, t1, o0, o1];
        if bytes.len() <= MAX_MEDIUM {
            let count = match object {
                Some(_) => OBJECT_WORDS,
                None => CALL_WORDS,
            };
            return self.send_rpc(to, internal::RPC_CALL, &call[..count], bytes);
        }
        let number = match ticket {
            ONE_WAY => self.inner.calls.number(),
            ticket => ticket,
        };
        let mut words = [0; OBJECT_WORDS + Part::WORDS];
        words[..OBJECT_WORDS].copy_from_slice(&call);
        for (at, bytes_of_part) in bytes.chunks(MAX_MEDIUM).enumerate() {
            let part = Part {
                number,
                total: bytes.len() as u64,
                offset: (at * MAX_MEDIUM) as u64,
            };
            words[OBJECT_WORDS..].copy_from_slice(&part.words());
            self.send_rpc(to, internal::RPC_CALL_PART, &words, bytes_of_part)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rank_that_was_called_ends_a_call() {
        let (calls, called, other) = (Calls::default(), JobRank(1), JobRank(2));
        let (ticket, cell) = calls.start(called);
        assert!(!calls.is_waiting(other, ticket) && !calls.is_waiting(called, ticket + 1));
        calls.fill(other, ticket, Ok(vec![1]));
        calls.fill(called, ticket + 1, Ok(vec![2]));
        assert!(cell.lock().is_none());
        assert!(calls.is_waiting(called, ticket));
        calls.fill(called, ticket, Ok(vec![3]));
        assert!(matches!(cell.lock().take(), Some(Ok(bytes)) if bytes == [3]));
        // Once.
        calls.fill(called, ticket, Ok(vec![4]));
        assert!(cell.lock().is_none() && !calls.is_waiting(called, ticket));
    }
}
