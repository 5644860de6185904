//! Remote procedure calls.

mod aggregator;
mod batched;
mod calls;
mod context;
mod deferred;
mod parts;

use crate::bounded::{DecodeError, MAX_RPC_DEPTH, decode};
use crate::error::Result;
use crate::op::Op;
use crate::process;
use crate::world::{Threading, World};
pub use aggregator::RpcAggregator;
use argonet_base::Rank;
use argonet_engine::call_named;
pub use calls::Arrived;
pub(crate) use calls::Calls;
pub use context::{ObjectContext, RpcContext};
use core::mem::ManuallyDrop;
use core::sync::atomic::AtomicU32;
pub(crate) use deferred::run as run_deferred;
use num_enum::{IntoPrimitive, TryFromPrimitive};
use serde::{Serialize, de::DeserializeOwned};

/// Why a remote procedure call has no result.
///
/// ```
/// use argonet::{Error, MAX_RPC_ELEMENTS, RpcError, RpcStatus};
/// argonet::rpc! {
///     fn count(nothings: Vec<()>) -> usize { nothings.len() }
/// }
/// # let world = argonet::World::init().unwrap();
/// let too_many = vec![(); MAX_RPC_ELEMENTS as usize + 1];
/// match world.rpc(world.rank(), &count, (too_many,)).unwrap().wait() {
///     Err(Error::Rpc(RpcError::Failed { status, .. })) => assert_eq!(status, RpcStatus::TooMany),
///     _ => panic!("it should not have run"),
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
    /// A function with a context calls another one with a result.
    #[error(
        "`{name}` gets a context, and so does the function that calls it (rank {rank}): two such functions would wait for each other; call it one-way"
    )]
    WouldDeadlock {
        /// The function that is called.
        name: String,
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
    /// [Tasks](crate::World::run_tasks) that do not decode.
    #[error(
        "tasks from rank {from} do not decode: {cause} (rank {rank}); the tasks of all ranks have one type"
    )]
    Tasks {
        /// The rank that sent them.
        from: Rank,
        /// The decoder's message.
        cause: String,
        /// The rank that got them.
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
    /// The reply, or a part of the result, was not understood.
    Garbled = 4,
    /// The arguments are nested deeper than [`MAX_RPC_DEPTH`].
    TooDeep = 5,
    /// The arguments have more elements than [`MAX_RPC_ELEMENTS`](crate::MAX_RPC_ELEMENTS) allows.
    TooMany = 6,
    /// The other side has dropped its instance of the [`DistObject`](crate::DistObject).
    NoInstance = 7,
    /// The instance there has another type: ranks made their objects in different orders.
    OtherType = 8,
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Status::Done => "it has a result",
            Status::UnknownFunction => "there is no such function there",
            Status::BadArguments => "its arguments do not decode there",
            Status::BadResult => "its result cannot be encoded",
            Status::Garbled => "its reply was not understood",
            Status::NoInstance => "its object has no instance there any more",
            Status::OtherType => {
                "the instance there has another type; all ranks make their objects in one order"
            }
            Status::TooDeep => {
                return write!(
                    f,
                    "its arguments are nested deeper than {MAX_RPC_DEPTH} levels"
                );
            }
            Status::TooMany => {
                return write!(f, "its arguments do not decode: {}", DecodeError::TooMany);
            }
        })
    }
}

type Outcome = Result<Vec<u8>, Status>;
type HandlerRun = dyn Fn(&Arrived<'_>) -> Outcome + Send + Sync;
type DeferredRun = dyn Fn(RpcContext<'_>, u64, &Arrived<'_>) -> Outcome + Send + Sync;

/// Runs a function on encoded arguments and encodes its result.
pub enum Run {
    /// In the handler of its call.
    InHandler(Box<HandlerRun>),
    /// Later, so that it may communicate; it also gets the number of its object.
    Deferred(Box<DeferredRun>),
}

impl Run {
    pub(crate) fn is_deferred(&self) -> bool {
        matches!(self, Self::Deferred(_))
    }

    /// Runs a function that needs no more than its arguments, as a call with a result does.
    pub fn on(&self, arguments: &[u8]) -> Outcome {
        match self {
            Self::InHandler(run) => run(&Arrived::plain(arguments)),
            Self::Deferred(_) => Err(Status::UnknownFunction),
        }
    }
}

const UNRESOLVED: u32 = u32::MAX;

/// The name of a function, and its place in the sorted table once looked up, which is the same
/// value whichever thread stores it.
struct Named {
    name: &'static str,
    index: AtomicU32,
}

impl Named {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            index: AtomicU32::new(UNRESOLVED),
        }
    }

    /// To call it by itself, or for an object.
    fn callee(&self, object: Option<u64>) -> Callee<'_> {
        Callee {
            name: self.name,
            index: &self.index,
            object,
        }
    }
}

/// The function to call, and the number of the object for which it is called.
pub(crate) struct Callee<'f> {
    name: &'static str,
    index: &'f AtomicU32,
    object: Option<u64>,
}

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
/// let here = twice.function().unwrap();
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
    named: Named,
    function: Function<A, R>,
}

/// A function, with a context if it may communicate.
enum Function<A, R> {
    InHandler(fn(A) -> R),
    Deferred(fn(&RpcContext<'_>, A) -> R),
}

impl<A, R> Rpc<A, R> {
    /// For the macro.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str, function: fn(A) -> R) -> Self {
        Self {
            named: Named::new(name),
            function: Function::InHandler(function),
        }
    }

    /// For the macro.
    #[doc(hidden)]
    #[must_use]
    pub const fn deferred(name: &'static str, function: fn(&RpcContext<'_>, A) -> R) -> Self {
        Self {
            named: Named::new(name),
            function: Function::Deferred(function),
        }
    }

    /// Name under which it is registered.
    ///
    /// See the example of [`Rpc`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.named.name
    }

    /// The function itself, to call it here; `None` if it gets a [context](RpcContext).
    ///
    /// See the example of [`Rpc`].
    #[must_use]
    pub fn function(&self) -> Option<fn(A) -> R> {
        match self.function {
            Function::InHandler(function) => Some(function),
            Function::Deferred(_) => None,
        }
    }
}

/// A function that other ranks can call for a [`DistObject<T>`](crate::DistObject): it gets a
/// reference to the instance of the rank where it runs, then arguments of type `A` (a tuple), and
/// returns an `R`.
///
/// Made by [`rpc!`](crate::rpc!) of a function whose first argument is a reference, or by
/// [`Builder::rpc_on`](crate::Builder::rpc_on). See the example of
/// [`DistObject`](crate::DistObject).
pub struct RpcOn<T, A, R> {
    named: Named,
    function: FunctionOn<T, A, R>,
}

/// A function for an object, with a context if it may communicate.
enum FunctionOn<T, A, R> {
    InHandler(fn(&T, A) -> R),
    Deferred(fn(&ObjectContext<'_, T>, &T, A) -> R),
}

impl<T, A, R> RpcOn<T, A, R> {
    /// For the macro.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str, function: fn(&T, A) -> R) -> Self {
        Self {
            named: Named::new(name),
            function: FunctionOn::InHandler(function),
        }
    }

    /// For the macro.
    #[doc(hidden)]
    #[must_use]
    pub const fn deferred(
        name: &'static str,
        function: fn(&ObjectContext<'_, T>, &T, A) -> R,
    ) -> Self {
        Self {
            named: Named::new(name),
            function: FunctionOn::Deferred(function),
        }
    }

    /// Name under which it is registered.
    ///
    /// See the example of [`Rpc`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.named.name
    }

    /// The function itself, to call it here; `None` if it gets a [context](ObjectContext).
    ///
    /// See the example of [`DistObject`](crate::DistObject).
    #[must_use]
    pub fn function(&self) -> Option<fn(&T, A) -> R> {
        match self.function {
            FunctionOn::InHandler(function) => Some(function),
            FunctionOn::Deferred(_) => None,
        }
    }

    pub(crate) fn callee(&self, object: u64) -> Callee<'_> {
        self.named.callee(Some(object))
    }
}

/// A function as the registry keeps it.
#[doc(hidden)]
pub trait RpcEntry: Sync {
    fn name(&self) -> &'static str;
    fn runner(&self) -> Run;
}

/// Decodes the arguments, runs the function and encodes its result, if a caller waits for it.
///
/// The four are the client's code, which a message names if one of them panics.
fn run_encoded<A: DeserializeOwned, R: Serialize>(
    name: &'static str,
    call: &Arrived<'_>,
    function: impl FnOnce(A) -> R,
) -> Result<Vec<u8>, Status> {
    let of = move |what: &str| match process::caller() {
        Some(Rank(caller)) => format!("{what} `{name}`, called by rank {caller},"),
        None => format!("{what} `{name}`"),
    };
    let args = call_named(
        || of("decoding the arguments of"),
        || decode(call.arguments),
    );
    let args = args.map_err(|error| match error {
        DecodeError::TooDeep => Status::TooDeep,
        DecodeError::TooMany => Status::TooMany,
        DecodeError::Bytes(_) => Status::BadArguments,
    })?;
    // Not dropped by a panic of its encoding: a second panic would abort the process.
    let result = call_named(|| of("the function"), || function(args));
    let result = ManuallyDrop::new(result);
    let encode = || match call.is_awaited {
        true => postcard::to_stdvec(&*result),
        false => Ok(Vec::new()),
    };
    let bytes = call_named(|| of("encoding the result of"), encode);
    let drop_result = || drop(ManuallyDrop::into_inner(result));
    call_named(|| of("dropping the result of"), drop_result);
    bytes.map_err(|_| Status::BadResult)
}

impl<A: DeserializeOwned + 'static, R: Serialize + 'static> RpcEntry for Rpc<A, R> {
    fn name(&self) -> &'static str {
        self.named.name
    }

    fn runner(&self) -> Run {
        let name = self.named.name;
        match self.function {
            Function::InHandler(function) => {
                Run::InHandler(Box::new(move |call| run_encoded(name, call, function)))
            }
            Function::Deferred(function) => Run::Deferred(Box::new(move |context, _, call| {
                run_encoded(name, call, |args| function(&context, args))
            })),
        }
    }
}

impl<T, A, R> RpcEntry for RpcOn<T, A, R>
where
    T: 'static,
    A: DeserializeOwned + 'static,
    R: Serialize + 'static,
{
    fn name(&self) -> &'static str {
        self.named.name
    }

    fn runner(&self) -> Run {
        let name = self.named.name;
        match self.function {
            FunctionOn::InHandler(function) => Run::InHandler(Box::new(move |call| {
                let value = call.value::<T>()?;
                run_encoded(name, call, |args| function(value, args))
            })),
            FunctionOn::Deferred(function) => {
                Run::Deferred(Box::new(move |context, object, call| {
                    let value = call.value::<T>()?;
                    let context = ObjectContext::new(context, object);
                    run_encoded(name, call, |args| function(&context, value, args))
                }))
            }
        }
    }
}

impl<M: Threading> World<M> {
    /// Runs a registered function at `to`, during a later poll there, and returns its result.
    ///
    /// Arguments and result travel encoded, in parts if they are longer than
    /// [`MAX_MEDIUM`](crate::MAX_MEDIUM). They decode only up to a depth of
    /// [`MAX_RPC_DEPTH`](crate::MAX_RPC_DEPTH) and a number of elements of
    /// [`MAX_RPC_ELEMENTS`](crate::MAX_RPC_ELEMENTS), whatever lengths the bytes claim. Unless it
    /// gets a [context](RpcContext), the function runs as a handler, and so do decoding its
    /// arguments, encoding and dropping its result: they cannot communicate, they should be short,
    /// and if they panic the job ends. [`caller`] names the rank that called. At the caller, this
    /// call encodes the arguments and the call that waits decodes the result, both as code of the
    /// caller's own.
    ///
    /// Waits, polling, only while `to` has no room, for each part. The function runs when the last
    /// part has come. The operation is complete when the result is here, whose parts polls of `to`
    /// send; one that is dropped leaves the function to run.
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
    /// [`RpcError::Unregistered`], [`RpcError::Encode`];
    /// [`RpcError::WouldDeadlock`] if both this function and the one that calls it get a context;
    /// [`AmError::NoSuchRank`](crate::AmError::NoSuchRank), or
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler. A failure at `to` is
    /// the operation's error, and so is its [loss](crate::Builder::on_peer_lost).
    pub fn rpc<A, R>(&self, to: Rank, function: &Rpc<A, R>, args: A) -> Result<Op<'_, R, M>>
    where
        A: Serialize,
        R: DeserializeOwned,
    {
        self.call(to, &function.named.callee(None), &args)
    }

    /// Runs a registered function at `to`, as [`rpc`](Self::rpc) does, and drops its result there:
    /// no message comes back.
    ///
    /// Waits, polling, only while `to` has no room. [`drain`](Self::drain) waits until all one-way
    /// calls have run. If the function cannot run there, for example because its arguments do not
    /// decode, the job ends with a message, for no operation could fail.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// static SUM: AtomicU64 = AtomicU64::new(0);
    /// argonet::rpc! {
    ///     fn add(values: Vec<u64>) { SUM.fetch_add(values.iter().sum(), Ordering::Relaxed); }
    /// }
    /// # let world = argonet::World::init().unwrap();
    /// world.rpc_one_way(world.rank(), &add, (vec![1, 2, 3],)).unwrap();
    /// world.drain().unwrap();
    /// assert_eq!(SUM.load(Ordering::Relaxed), 6);
    /// ```
    ///
    /// # Errors
    /// As [`rpc`](Self::rpc), but for [`RpcError::WouldDeadlock`] and those of its operation.
    #[doc(alias = "rpc_ff")]
    pub fn rpc_one_way<A, R>(&self, to: Rank, function: &Rpc<A, R>, args: A) -> Result<()>
    where
        A: Serialize,
    {
        self.call_one_way(to, &function.named.callee(None), &args)
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
/// | form | what it is |
/// | --- | --- |
/// | `fn f(a: A, b: B) -> R` | an [`Rpc`], for [`World::rpc`], that runs as a handler |
/// | `fn f(state: &T, a: A)` | an [`RpcOn`], for [`DistObject::rpc`](crate::DistObject::rpc) |
/// | `fn f(ctx, a: A)` | an [`Rpc`] that may communicate, with an [`RpcContext`] |
/// | `fn f(ctx, state: &T, a: A)` | an [`RpcOn`] that may, with an [`ObjectContext`] |
///
/// Arguments and results are owned values that serde can encode: `String`, not `&str`. Arguments
/// are names, not patterns, and a function has no generic parameters. Its name is that of a static:
/// no variable or parameter in its scope can have it.
///
/// It expands to a static and a registration by `ctor`, which contains an `#[allow(unsafe_code)]`:
/// a crate that forbids unsafe code uses [`Builder::rpc`](crate::Builder::rpc) and its relatives
/// instead.
///
/// ```
/// argonet::rpc! {
///     /// Puts words together.
///     pub fn join(words: Vec<String>, between: String) -> String { words.join(&between) }
///     fn nothing() {}
/// }
/// # let world = argonet::World::init().unwrap();
/// let words = vec!["a".to_owned(), "b".to_owned()];
/// let joined = world.rpc(world.rank(), &join, (words, "-".to_owned())).unwrap();
/// assert_eq!(joined.wait().unwrap(), "a-b");
/// world.rpc(world.rank(), &nothing, ()).unwrap().wait().unwrap();
/// ```
///
/// Borrowed arguments are refused:
///
/// ```compile_fail
/// argonet::rpc! {
///     fn length(text: &str) -> usize { text.len() }
/// }
/// ```
#[macro_export]
macro_rules! rpc {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($args:tt)*) $(-> $ret:ty)? $body:block)*) => {$(
        $crate::__rpc! {
            [$(#[$meta])* $vis] $name ($($args)*) [$($ret)?] $body
        }
        const _: () = {
            $crate::__private::ctor::declarative::ctor! {
                #[ctor(unsafe)]
                fn register() { $crate::__private::register_rpc(&$name) }
            }
        };
    )*};
}

/// One function of [`rpc!`]: the static that others call it by.
#[doc(hidden)]
#[macro_export]
macro_rules! __rpc {
    ($head:tt $name:ident $args:tt [] $body:block) => {
        $crate::__rpc! { $head $name $args [()] $body }
    };
    ($head:tt $name:ident ($of:ident : & mut $($args:tt)*) $ret:tt $body:block) => {
        compile_error!("a function of a distributed object gets a shared reference: put what it changes into a `Cell`, a `RefCell` or a `Mutex`");
    };
    ([$(#[$meta:meta])* $vis:vis] $name:ident ($ctx:ident, $of:ident : & mut $($args:tt)*) $ret:tt $body:block) => {
        compile_error!("a function of a distributed object gets a shared reference: put what it changes into a `Cell`, a `RefCell` or a `Mutex`");
    };
    ($head:tt $name:ident ($of:ident : & str $($args:tt)*) $ret:tt $body:block) => {
        compile_error!("a remote procedure owns its arguments: take a `String`, not a `&str`");
    };
    ($head:tt $name:ident ($ctx:ident, $of:ident : & str $($args:tt)*) $ret:tt $body:block) => {
        compile_error!("a remote procedure owns its arguments: take a `String`, not a `&str`");
    };
    ($head:tt $name:ident ($of:ident : & [$($of_slice:tt)*] $($args:tt)*) $ret:tt $body:block) => {
        compile_error!("a remote procedure owns its arguments: take a `Vec`, not a slice");
    };
    ($head:tt $name:ident ($ctx:ident, $of:ident : & [$($of_slice:tt)*] $($args:tt)*) $ret:tt $body:block) => {
        compile_error!("a remote procedure owns its arguments: take a `Vec`, not a slice");
    };
    ([$(#[$meta:meta])* $vis:vis] $name:ident ($ctx:ident, $of:ident : & $state:ty $(, $arg:ident : $ty:ty)* $(,)?) [$ret:ty] $body:block) => {
        $(#[$meta])*
        #[allow(non_upper_case_globals)]
        $vis static $name: $crate::RpcOn<$state, ($($ty,)*), $ret> = $crate::RpcOn::deferred(
            concat!(module_path!(), "::", stringify!($name)),
            |$ctx: &$crate::ObjectContext<'_, $state>, $of: &$state, ($($arg,)*): ($($ty,)*)| -> $ret { $body },
        );
    };
    ([$(#[$meta:meta])* $vis:vis] $name:ident ($ctx:ident $(, $arg:ident : $ty:ty)* $(,)?) [$ret:ty] $body:block) => {
        $(#[$meta])*
        #[allow(non_upper_case_globals)]
        $vis static $name: $crate::Rpc<($($ty,)*), $ret> = $crate::Rpc::deferred(
            concat!(module_path!(), "::", stringify!($name)),
            |$ctx: &$crate::RpcContext<'_>, ($($arg,)*): ($($ty,)*)| -> $ret { $body },
        );
    };
    ([$(#[$meta:meta])* $vis:vis] $name:ident ($of:ident : & $state:ty $(, $arg:ident : $ty:ty)* $(,)?) [$ret:ty] $body:block) => {
        $(#[$meta])*
        #[allow(non_upper_case_globals)]
        $vis static $name: $crate::RpcOn<$state, ($($ty,)*), $ret> = {
            fn $name($of: &$state, ($($arg,)*): ($($ty,)*)) -> $ret $body
            $crate::RpcOn::new(concat!(module_path!(), "::", stringify!($name)), $name)
        };
    };
    ([$(#[$meta:meta])* $vis:vis] $name:ident ($($arg:ident : $ty:ty),* $(,)?) [$ret:ty] $body:block) => {
        $(#[$meta])*
        #[allow(non_upper_case_globals)]
        $vis static $name: $crate::Rpc<($($ty,)*), $ret> = {
            fn $name(($($arg,)*): ($($ty,)*)) -> $ret $body
            $crate::Rpc::new(concat!(module_path!(), "::", stringify!($name)), $name)
        };
    };
}
