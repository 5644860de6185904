//! Remote procedure calls.

use crate::bounded::{DecodeError, MAX_RPC_DEPTH, MAX_RPC_ELEMENTS, decode};
use crate::error::{Error, Result};
use crate::op::Op;
use crate::process;
use crate::world::{Threading, World};
use argonet_am::{AmError, Delivery, HandlerTable, MAX_MEDIUM, Message, Payload};
use argonet_base::{JobRank, Rank};
use argonet_engine::{Injection, call_named, internal};
use argonet_segment::SharedBytes;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU32, Ordering};
use num_enum::{IntoPrimitive, TryFromPrimitive};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use std::collections::HashMap;
use std::sync::Arc;

/// Why a remote procedure call has no result.
///
/// ```
/// use argonet::{Error, RpcError};
/// argonet::rpc! {
///     fn length(bytes: Vec<u8>) -> usize { bytes.len() }
/// }
/// # let world = argonet::World::init().unwrap();
/// let too_long = vec![0; argonet::MAX_MEDIUM + 1];
/// match world.rpc(world.rank(), &length, (too_long,)) {
///     Err(Error::Rpc(RpcError::TooLong { len, .. })) => assert!(len > argonet::MAX_MEDIUM),
///     _ => panic!("it should not have been sent"),
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// The function was not registered.
    #[error(
        "no function is registered under the name `{name}` (rank {rank}); define it with `rpc!` or register it with the builder"
    )]
    Unregistered {
        /// Its name.
        name: String,
        /// The rank that called.
        rank: Rank,
    },
    /// Arguments that cannot be encoded.
    #[error("the arguments of `{name}` cannot be encoded: {cause} (rank {rank})")]
    Encode {
        /// Function.
        name: String,
        /// The encoder's message.
        cause: String,
        /// The rank that called.
        rank: Rank,
    },
    /// Arguments too long for one message.
    #[error(
        "the arguments of `{name}` take {len} bytes, at most {MAX_MEDIUM} are allowed; send a pointer to shared memory instead (rank {rank})"
    )]
    TooLong {
        /// Function.
        name: String,
        /// Encoded length in bytes.
        len: usize,
        /// The rank that called.
        rank: Rank,
    },
    /// The other side could not do it.
    #[error("`{name}` failed on rank {at}: {status} (called by rank {rank})")]
    Failed {
        /// Function.
        name: String,
        /// Where it was to run.
        at: Rank,
        /// The outcome there.
        status: Status,
        /// The rank that called.
        rank: Rank,
    },
    /// The result does not decode.
    #[error(
        "the result of `{name}` from rank {at} does not decode: {cause} (called by rank {rank})"
    )]
    Decode {
        /// Function.
        name: String,
        /// Where it ran.
        at: Rank,
        /// The decoder's message.
        cause: String,
        /// The rank that called.
        rank: Rank,
    },
}

/// The outcome of a call at the other side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromPrimitive, IntoPrimitive)]
#[repr(u32)]
#[non_exhaustive]
pub enum Status {
    /// There is a result.
    Done = 0,
    /// There is no such function there.
    UnknownFunction = 1,
    /// The arguments do not decode.
    BadArguments = 2,
    /// The result does not encode.
    BadResult = 3,
    /// The result is too long for one message.
    ResultTooLong = 4,
    /// The reply was not understood.
    Garbled = 5,
    /// The arguments are nested deeper than [`MAX_RPC_DEPTH`].
    TooDeep = 6,
    /// The arguments have more elements than [`MAX_RPC_ELEMENTS`].
    TooMany = 7,
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Status::Done => "it has a result",
            Status::UnknownFunction => "there is no such function there",
            Status::BadArguments => "its arguments do not decode there",
            Status::BadResult => "its result cannot be encoded",
            Status::ResultTooLong => "its result is longer than one message can carry",
            Status::Garbled => "its reply was not understood",
            Status::TooDeep => {
                return write!(
                    f,
                    "its arguments are nested deeper than {MAX_RPC_DEPTH} levels"
                );
            }
            Status::TooMany => {
                return write!(
                    f,
                    "its arguments have more than {MAX_RPC_ELEMENTS} elements"
                );
            }
        })
    }
}

/// Runs a function on encoded arguments and encodes its result.
pub(crate) type Run = Arc<dyn Fn(&[u8]) -> Result<Vec<u8>, Status> + Send + Sync>;

const UNRESOLVED: u32 = u32::MAX;

/// A function that other ranks can call with arguments of type `A` (a tuple) and that returns an
/// `R`.
///
/// Made by [`rpc!`](crate::rpc!) or [`Builder::rpc`](crate::Builder::rpc).
///
/// ```
/// argonet::rpc! {
///     fn twice(x: u32) -> u32 { 2 * x }
/// }
/// assert!(twice.name().ends_with("::twice"));
/// let here = twice.function();
/// # let world = argonet::World::init().unwrap();
/// let there = world.rpc(world.rank(), &twice, (21,)).unwrap();
/// assert_eq!(there.wait().unwrap(), here((21,)));
/// ```
///
/// It cannot capture anything: all ranks must have it. A capturing closure is refused:
///
/// ```compile_fail,E0308
/// # let mut builder = argonet::World::builder();
/// let k = 3;
/// let add = builder.rpc("add", move |(x,): (u32,)| x + k);
/// ```
pub struct Rpc<A, R> {
    name: &'static str,
    /// Place in the sorted table once looked up; the same value whichever thread stores it.
    index: AtomicU32,
    function: fn(A) -> R,
}

impl<A, R> Rpc<A, R> {
    /// For the macro.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str, function: fn(A) -> R) -> Self {
        Self {
            name,
            index: AtomicU32::new(UNRESOLVED),
            function,
        }
    }

    /// Name under which it is registered.
    ///
    /// See the example of [`Rpc`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The function itself, to call it here.
    ///
    /// See the example of [`Rpc`].
    #[must_use]
    pub fn function(&self) -> fn(A) -> R {
        self.function
    }
}

/// A function as the registry keeps it.
#[doc(hidden)]
pub trait RpcEntry: Sync {
    fn name(&self) -> &'static str;
    fn runner(&self) -> Run;
}

impl<A: DeserializeOwned + 'static, R: Serialize + 'static> RpcEntry for Rpc<A, R> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn runner(&self) -> Run {
        let Self { name, function, .. } = *self;
        // The four are the client's code, which a message names if one of them panics.
        let of = move |what: &str| match process::caller() {
            Some(Rank(caller)) => format!("{what} `{name}`, called by rank {caller},"),
            None => format!("{what} `{name}`"),
        };
        Arc::new(move |bytes| {
            let args = call_named(|| of("decoding the arguments of"), || decode(bytes));
            let args = args.map_err(|error| match error {
                DecodeError::TooDeep => Status::TooDeep,
                DecodeError::TooMany => Status::TooMany,
                DecodeError::Bytes(_) => Status::BadArguments,
            })?;
            // Not dropped by a panic of its encoding: a second panic would abort the process.
            let result = call_named(|| of("the function"), || function(args));
            let result = ManuallyDrop::new(result);
            let encode = || postcard::to_stdvec(&*result);
            let bytes = call_named(|| of("encoding the result of"), encode);
            let drop_result = || drop(ManuallyDrop::into_inner(result));
            call_named(|| of("dropping the result of"), drop_result);
            bytes.map_err(|_| Status::BadResult)
        })
    }
}

/// Why a call has no result.
enum Failure {
    /// What the other side says.
    Status(Status),
    /// The other side is lost.
    Lost,
}

/// Result of one call, filled by the handler of the reply.
type Cell = Arc<Mutex<Option<Result<Vec<u8>, Failure>>>>;

/// The functions of this program, and the calls under way.
#[derive(Default)]
pub(crate) struct Calls {
    /// Sorted by name, the same on all ranks.
    functions: Vec<(&'static str, Run)>,
    /// By ticket: where the call is to run, and its result.
    waiting: Mutex<HashMap<u64, (JobRank, Cell)>>,
    next: Mutex<u64>,
}

impl Calls {
    /// `functions` sorted by name.
    pub(crate) fn new(functions: Vec<(&'static str, Run)>) -> Self {
        Self {
            functions,
            ..Self::default()
        }
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

    /// Handler of a call: arguments index, ticket low, ticket high.
    fn serve(&self, delivery: &mut Delivery<'_>) {
        let outcome = match self.functions.get(delivery.arg(0) as usize) {
            None => Err(Status::UnknownFunction),
            Some((_, run)) => {
                let arguments = delivery.payload().to_vec();
                process::called_by(Rank(delivery.source().0), || run(&arguments))
            }
        };
        let outcome = outcome.and_then(|bytes| {
            if bytes.len() > MAX_MEDIUM {
                Err(Status::ResultTooLong)
            } else {
                Ok(bytes)
            }
        });
        let (status, bytes) = match outcome {
            Ok(bytes) => (Status::Done, bytes),
            Err(status) => (status, Vec::new()),
        };
        let args = [status.into(), delivery.arg(1), delivery.arg(2)];
        let payload = Payload::Medium(SharedBytes::from_slice(&bytes));
        let reply = Message {
            handler: internal::RPC_RESULT,
            args: &args,
            payload,
        };
        // The message is well-formed and its room reserved; a failure means that the sender was no
        // request, which only the raw layer can produce and which no caller waits for.
        let _ = delivery.reply(&reply);
    }

    /// Handler of a result.
    ///
    /// A ticket that no caller waits for is dropped: its operation is gone.
    fn finish(&self, delivery: &mut Delivery<'_>) {
        let ticket = u64::from(delivery.arg(1)) | u64::from(delivery.arg(2)) << 32;
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

impl<M: Threading> World<M> {
    /// Runs a registered function at `to`, during a later poll there, and returns its result.
    ///
    /// Arguments and result travel encoded, at most [`MAX_MEDIUM`](crate::MAX_MEDIUM) bytes each,
    /// and decode only up to a depth of [`MAX_RPC_DEPTH`](crate::MAX_RPC_DEPTH) and to
    /// [`MAX_RPC_ELEMENTS`](crate::MAX_RPC_ELEMENTS) elements, for any claim of a message. The
    /// function runs as a handler, and so do decoding its arguments, encoding and dropping its
    /// result: they cannot communicate, they should be short, and if they panic the job ends.
    /// [`caller`] names the rank that called. At the caller, this call encodes the arguments and
    /// the call that waits decodes the result, both as code of the caller's own.
    ///
    /// Waits, polling, only while `to` has no room. The operation is complete when the result is
    /// here; one that is dropped leaves the function to run.
    ///
    /// ```
    /// argonet::rpc! {
    ///     fn concat(a: String, b: u32) -> String { format!("{a}{b}") }
    /// }
    /// # let world = argonet::World::init().unwrap();
    /// let op = world.rpc(world.rank(), &concat, ("x".into(), 7)).unwrap();
    /// assert_eq!(op.wait().unwrap(), "x7");
    /// ```
    ///
    /// # Errors
    /// A function that is not registered, arguments too long, a rank that does not exist, or a call
    /// from inside a handler. A failure at `to` is the operation's error, and so is its
    /// [loss](crate::Builder::on_peer_lost).
    pub fn rpc<A, R>(&self, to: Rank, function: &Rpc<A, R>, args: A) -> Result<Op<'_, R>>
    where
        A: Serialize,
        R: DeserializeOwned,
    {
        let (name, rank) = (function.name, self.rank());
        let mut index = function.index.load(Ordering::Relaxed);
        if index == UNRESOLVED {
            let found = self.inner.calls.find(name);
            index = found.ok_or_else(|| RpcError::Unregistered {
                name: name.into(),
                rank,
            })?;
            function.index.store(index, Ordering::Relaxed);
        }
        let bytes = postcard::to_stdvec(&args).map_err(|cause| RpcError::Encode {
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
        let (ticket, cell) = self.inner.calls.start(Self::job_rank(to));
        let words = [index, ticket as u32, (ticket >> 32) as u32];
        let message = Message {
            handler: internal::RPC_CALL,
            args: &words,
            payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
        };
        let sent = process::with(|ctx| {
            self.engine()
                .request(ctx, Self::job_rank(to), &message, Injection::Blocking)
        });
        if let Err(error) = sent {
            self.inner.calls.waiting.lock().remove(&ticket);
            return Err(error.into());
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
                decode(&bytes).map_err(|cause| {
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
}

/// Inside a remote procedure: the rank that called it.
///
/// Elsewhere `None`.
///
/// ```
/// use argonet::{Rank, caller};
/// argonet::rpc! {
///     fn who() -> u32 { caller().map_or(u32::MAX, |Rank(rank)| rank) }
/// }
/// # let world = argonet::World::init().unwrap();
/// assert_eq!(world.rpc(world.rank(), &who, ()).unwrap().wait().unwrap(), world.rank().0);
/// assert_eq!(caller(), None);
/// ```
#[must_use]
pub fn caller() -> Option<Rank> {
    process::caller()
}

/// Defines functions that other ranks can call and registers them before `main`.
///
/// Arguments and results are of any type that serde can encode. It expands to a static of type
/// [`Rpc`] and a registration by `ctor`, which contains an `#[allow(unsafe_code)]`: a crate that
/// forbids unsafe code uses [`Builder::rpc`](crate::Builder::rpc) instead. See [`World::rpc`].
///
/// ```
/// argonet::rpc! {
///     /// Puts words together.
///     pub fn join(words: Vec<String>, between: String) -> String { words.join(&between) }
///     fn nothing() -> () {}
/// }
/// # let world = argonet::World::init().unwrap();
/// let words = vec!["a".to_owned(), "b".to_owned()];
/// let joined = world.rpc(world.rank(), &join, (words, "-".to_owned())).unwrap();
/// assert_eq!(joined.wait().unwrap(), "a-b");
/// world.rpc(world.rank(), &nothing, ()).unwrap().wait().unwrap();
/// ```
#[macro_export]
macro_rules! rpc {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident : $ty:ty),* $(,)?) -> $ret:ty $body:block)*) => {$(
        $(#[$meta])*
        #[allow(non_upper_case_globals)]
        $vis static $name: $crate::Rpc<($($ty,)*), $ret> = {
            fn $name(($($arg,)*): ($($ty,)*)) -> $ret $body
            $crate::Rpc::new(concat!(module_path!(), "::", stringify!($name)), $name)
        };
        const _: () = {
            $crate::__private::ctor::declarative::ctor! {
                #[ctor(unsafe)]
                fn register() { $crate::__private::register_rpc(&$name) }
            }
        };
    )*};
}
