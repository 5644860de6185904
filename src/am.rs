//! Typed active messages.

mod arguments;

use crate::error::{Error, Result};
use crate::global::Global;
use crate::global_slice::GlobalSlice;
use crate::payload::Payload;
use crate::process;
use crate::world::{Threading, World};
use argonet_am::record::Short;
use argonet_am::{AmError, CLIENT_BASE, Delivery, HandlerFn, HandlerTable, Message};
use argonet_base::{HandlerIndex, Rank};
use argonet_engine::Injection;
use argonet_segment::SharedBytes;
pub use arguments::{AmArguments, OneValue, SeveralValues};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use zerocopy::IntoBytes;

const UNRESOLVED: u32 = u32::MAX;

/// The index of a handler that a builder registers: known once the world is built, and shared with
/// the [`Am`]s of its name, which handlers may have captured before.
#[derive(Clone, Debug)]
pub(crate) struct Placed(Arc<AtomicU32>);

impl Placed {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU32::new(UNRESOLVED)))
    }

    pub(crate) fn set(&self, index: HandlerIndex) {
        self.0.store(index.0.into(), Ordering::Relaxed);
    }

    fn get(&self) -> Option<HandlerIndex> {
        u8::try_from(self.0.load(Ordering::Relaxed))
            .ok()
            .map(HandlerIndex)
    }
}

/// An active message with arguments of type `A`, at most 64 bytes: [one value](OneValue), or a
/// tuple of [several](SeveralValues), as `S` says.
///
/// Made by [`am!`](crate::am!) or [`Builder::am`](crate::Builder::am).
///
/// See the examples of [`World::send`] and [`Builder::am`](crate::Builder::am).
pub struct Am<A, S: AmArguments<A> = OneValue> {
    name: &'static str,
    /// Handler index once looked up; the same value whichever thread stores it.
    index: AtomicU32,
    /// Where the builder that made it puts the index; a macro's is stored in `index` itself.
    placed: Option<Placed>,
    run: Option<fn(&mut AmContext<'_, '_>, A)>,
    _args: PhantomData<fn(A, S)>,
}

/// A handler's view of its message: the source, the payload, and the one reply.
///
/// A handler can start nothing else. The room for a reply was reserved with the request, so a reply
/// never waits.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// static REPLIES: AtomicU32 = AtomicU32::new(0);
/// argonet::am! {
///     fn done(ctx, code: u32) {
///         assert_eq!(ctx.source(), ctx.rank());
///         assert_eq!(ctx.payload().len(), [0, 4, 2][code as usize]);
///         REPLIES.fetch_add(1, Ordering::Relaxed);
///     }
///     fn ask(ctx, code: u32) {
///         match code {
///             0 => ctx.reply(&done, code),
///             1 => ctx.echo(&done, code),
///             _ => ctx.reply_medium(&done, code, &[8, 9]),
///         }
///         .unwrap();
///     }
/// }
/// # let world = argonet::World::init().unwrap();
/// for code in 0..3 {
///     world.send_medium(world.rank(), &ask, code, b"four").unwrap();
/// }
/// world.wait_until(|| REPLIES.load(Ordering::Relaxed) == 3).unwrap();
/// ```
pub struct AmContext<'c, 'm> {
    delivery: &'c mut Delivery<'m>,
}

impl AmContext<'_, '_> {
    /// The sender.
    ///
    /// See the example of [`AmContext`].
    #[inline]
    #[must_use]
    pub fn source(&self) -> Rank {
        Rank(self.delivery.source().0)
    }

    /// This rank.
    ///
    /// See the example of [`AmContext`].
    #[inline]
    #[must_use]
    pub fn rank(&self) -> Rank {
        Rank(self.delivery.rank().0)
    }

    /// Payload of a medium or long; empty for a short.
    ///
    /// See the example of [`AmContext`].
    #[inline]
    #[must_use]
    pub fn payload(&self) -> Payload<'_> {
        Payload(self.delivery.payload())
    }

    /// Replies with a short message.
    ///
    /// See the example of [`AmContext`].
    ///
    /// # Errors
    /// [`AmError::RepliedTwice`], [`AmError::ReplyToReply`], or a handler that is not registered.
    #[inline]
    pub fn reply<A, S: AmArguments<A>>(&mut self, am: &Am<A, S>, args: A) -> Result<(), AmError> {
        self.send(am, args, argonet_am::Payload::None)
    }

    /// Replies with a medium message of at most [`MAX_MEDIUM`](crate::MAX_MEDIUM) bytes, which have
    /// been copied when this returns.
    ///
    /// See the example of [`AmContext`].
    ///
    /// # Errors
    /// As [`reply`](Self::reply), and [`AmError::TooLong`].
    #[inline]
    pub fn reply_medium<A, S: AmArguments<A>>(
        &mut self,
        am: &Am<A, S>,
        args: A,
        payload: &[u8],
    ) -> Result<(), AmError> {
        self.send(
            am,
            args,
            argonet_am::Payload::Medium(SharedBytes::from_slice(payload)),
        )
    }

    /// Replies with the payload that came.
    ///
    /// See the example of [`AmContext`].
    ///
    /// # Errors
    /// As [`reply_medium`](Self::reply_medium).
    #[inline]
    pub fn echo<A, S: AmArguments<A>>(&mut self, am: &Am<A, S>, args: A) -> Result<(), AmError> {
        let handler = am.replied()?;
        S::with_words(args, |args| self.delivery.echo(handler, args))
    }

    fn send<A, S: AmArguments<A>>(
        &mut self,
        am: &Am<A, S>,
        args: A,
        payload: argonet_am::Payload<'_>,
    ) -> Result<(), AmError> {
        let handler = am.replied()?;
        S::with_words(args, |args| {
            self.delivery.reply(&Message {
                handler,
                args,
                payload,
            })
        })
    }
}

impl<A, S: AmArguments<A>> Am<A, S> {
    /// For the macro.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str, run: fn(&mut AmContext<'_, '_>, A)) -> Self {
        const { Self::check_size() };
        Self {
            name,
            index: AtomicU32::new(UNRESOLVED),
            placed: None,
            run: Some(run),
            _args: PhantomData,
        }
    }

    /// At the definition, so that it needs no sender to be found.
    const fn check_size() {
        assert!(
            S::BYTES <= arguments::MAX_BYTES,
            "arguments of an active message have at most 64 bytes"
        );
    }

    pub(crate) fn named(name: &'static str, placed: Placed) -> Self {
        const { Self::check_size() };
        Self {
            name,
            index: AtomicU32::new(UNRESOLVED),
            placed: Some(placed),
            run: None,
            _args: PhantomData,
        }
    }

    /// Name under which it is registered.
    ///
    /// See the example of [`Builder::am`](crate::Builder::am).
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    #[inline(always)]
    fn index(
        &self,
        find: impl FnOnce(&str) -> Option<HandlerIndex>,
    ) -> Result<HandlerIndex, AmError> {
        let index = self.index.load(Ordering::Relaxed);
        if index != UNRESOLVED {
            return Ok(HandlerIndex(index as u8));
        }
        // Only clients' handlers have names that are found. Other indices are refused here all the
        // same: an index that passes is sent without another check, and a forged message of the
        // library's own breaks the promises of safe calls.
        let found = find(self.name).filter(|index| *index >= CLIENT_BASE);
        let found = found.ok_or_else(|| AmError::UnknownName {
            name: self.name.into(),
        })?;
        self.index.store(found.0.into(), Ordering::Relaxed);
        Ok(found)
    }

    /// Index for a reply: every message that any code can name was placed in the table when the
    /// world was built, which stored its index.
    fn replied(&self) -> Result<HandlerIndex, AmError> {
        self.index(|_| self.placed.as_ref().and_then(Placed::get))
    }

    /// Wraps a function for the handler table.
    pub(crate) fn handler(
        run: impl Fn(&mut AmContext<'_, '_>, A) + Send + Sync + 'static,
    ) -> Box<HandlerFn> {
        Box::new(move |delivery| {
            // All ranks have the same table, so a sender cannot give fewer arguments than the type
            // needs, unless it used the raw layer; then the message is dropped.
            if let Some(args) = S::unpack(delivery.args()) {
                run(&mut AmContext { delivery }, args);
            }
        })
    }
}

/// An active message as the registry keeps it.
#[doc(hidden)]
pub trait AmEntry: Sync {
    fn name(&self) -> &'static str;
    fn place(&self, table: &mut HandlerTable) -> Result<(), AmError>;
}

impl<A: 'static, S: AmArguments<A> + 'static> AmEntry for Am<A, S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self, table: &mut HandlerTable) -> Result<(), AmError> {
        let Some(run) = self.run else {
            return Ok(());
        };
        let index = table.register(self.name, Self::handler(run))?;
        self.index.store(index.0.into(), Ordering::Relaxed);
        Ok(())
    }
}

impl<M: Threading> World<M> {
    #[inline(always)]
    fn request<A, S: AmArguments<A>>(
        &self,
        to: Rank,
        am: &Am<A, S>,
        args: A,
        payload: argonet_am::Payload<'_>,
    ) -> Result<()> {
        let handler = am.index(|name| self.engine().handler_named(name))?;
        S::with_words(args, |args| {
            let message = Message {
                handler,
                args,
                payload,
            };
            process::with(|ctx| {
                self.engine()
                    .request(ctx, Self::job_rank(to), &message, Injection::Blocking)
            })
        })?;
        Ok(())
    }

    /// Sends a short active message: its handler runs at `to` during a later poll there.
    ///
    /// Waits, polling, only while `to` has no room. Messages of one thread to one rank are handled
    /// in the order in which they were sent; nothing orders them and puts that are under way.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// static SUM: AtomicU64 = AtomicU64::new(0);
    /// argonet::am! {
    ///     fn add(_ctx, value: u64) { SUM.fetch_add(value, Ordering::Relaxed); }
    /// }
    /// # let world = argonet::World::init().unwrap();
    /// world.send(world.rank(), &add, 5).unwrap();
    /// world.wait_until(|| SUM.load(Ordering::Relaxed) == 5).unwrap();
    /// ```
    ///
    /// # Errors
    /// A rank that does not exist or is lost
    /// ([`AmError::PeerLost`](crate::AmError::PeerLost)), a handler that is not registered, or a
    /// call from inside a handler.
    #[inline]
    pub fn send<A, S: AmArguments<A>>(&self, to: Rank, am: &Am<A, S>, args: A) -> Result<()> {
        let handler = am.index(|name| self.engine().handler_named(name))?;
        let to = Self::job_rank(to);
        S::with_words(args, |args| {
            process::with(|ctx| match Short::pack(handler, args) {
                Some(short) => self.engine().request_short(ctx, to, short),
                None => {
                    let payload = argonet_am::Payload::None;
                    let message = Message {
                        handler,
                        args,
                        payload,
                    };
                    self.engine()
                        .request(ctx, to, &message, Injection::Blocking)
                }
            })
        })?;
        Ok(())
    }

    /// Sends a medium active message of at most [`MAX_MEDIUM`](crate::MAX_MEDIUM) bytes; the
    /// payload has been copied when this returns.
    ///
    /// Waits, and is ordered, as [`send`](Self::send).
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// static SUM: AtomicU64 = AtomicU64::new(0);
    /// argonet::am! {
    ///     fn add_all(ctx, factor: u64) {
    ///         let values: Vec<u64> = ctx.payload().to_vec();
    ///         SUM.fetch_add(factor * values.iter().sum::<u64>(), Ordering::Relaxed);
    ///     }
    /// }
    /// # let world = argonet::World::init().unwrap();
    /// world.send_medium(world.rank(), &add_all, 2, &[1u64, 2, 3]).unwrap();
    /// world.wait_until(|| SUM.load(Ordering::Relaxed) == 12).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`AmError::TooLong`].
    #[inline]
    pub fn send_medium<A, S: AmArguments<A>, T: Global>(
        &self,
        to: Rank,
        am: &Am<A, S>,
        args: A,
        payload: &[T],
    ) -> Result<()> {
        let bytes = SharedBytes::from_slice(payload.as_bytes());
        self.request(to, am, args, argonet_am::Payload::Medium(bytes))
    }

    /// Sends a long active message: the values are written to `dst`, whose rank then runs the
    /// handler, with the values as its payload.
    ///
    /// Of any length: above [`Limits::long`](crate::Limits::long) the values are put first, and a
    /// message follows when they lie there. `payload` is not read any more when this returns. It
    /// waits, polling, while `to` has no room, and for the put.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// static ARRIVED: AtomicUsize = AtomicUsize::new(0);
    /// argonet::am! {
    ///     fn arrived(ctx, _tag: u32) {
    ///         ARRIVED.fetch_add(ctx.payload().len(), Ordering::Relaxed);
    ///     }
    /// }
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u16>::alloc(&world, 4).unwrap();
    /// world.send_long(v.on(world.rank()).part(1..3), &arrived, 0, &[5, 6]).unwrap();
    /// world.wait_until(|| ARRIVED.load(Ordering::Relaxed) == 4).unwrap();
    /// assert_eq!([v.read(&world, 1), v.read(&world, 2)], [5, 6]);
    /// ```
    ///
    /// # Errors
    /// As [`send`](Self::send), a destination outside its segment, and another number of values
    /// than the destination has.
    #[inline]
    pub fn send_long<A: Copy, S: AmArguments<A>, T: Global>(
        &self,
        dst: GlobalSlice<T>,
        am: &Am<A, S>,
        args: A,
        payload: &[T],
    ) -> Result<()> {
        dst.check_len(payload.len())?;
        let bytes = SharedBytes::from_slice(payload.as_bytes());
        let long = argonet_am::Payload::Long(bytes, dst.offset());
        match self.request(dst.rank(), am, args, long) {
            Err(Error::Am(AmError::TooLong { .. })) => {
                self.send_long_in_parts(dst, am, args, bytes)
            }
            sent => sent,
        }
    }

    #[cold]
    fn send_long_in_parts<A, S: AmArguments<A>, T: Global>(
        &self,
        dst: GlobalSlice<T>,
        am: &Am<A, S>,
        args: A,
        bytes: SharedBytes<'_>,
    ) -> Result<()> {
        let handler = am.index(|name| self.engine().handler_named(name))?;
        let (to, offset) = (Self::job_rank(dst.rank()), dst.offset());
        S::with_words(args, |args| {
            process::with(|ctx| {
                let engine = self.engine();
                engine.long_request_in_parts(ctx, to, handler, args, bytes, offset)
            })
        })?;
        Ok(())
    }
}

/// Defines active messages and registers them before `main`.
///
/// The handler gets an [`AmContext`] and up to eight arguments, values of [`Global`] types that
/// have at most 64 bytes together. One argument is sent as it is, several as a tuple, and none as
/// `()`. Arguments are names, not patterns; a handler has no generic parameters and returns
/// nothing. See [`World::send`].
///
/// The name of a handler is that of a static: no variable or parameter in its scope can have it.
///
/// It expands to a static of type [`Am`] and a registration by `ctor`, which contains an
/// `#[allow(unsafe_code)]`: a crate that forbids unsafe code uses
/// [`Builder::am`](crate::Builder::am) instead.
///
/// ```
/// argonet::am! {
///     /// Prints the sum of three terms.
///     pub fn print_sum(ctx, terms: [u64; 3]) {
///         println!("{} from rank {}", terms.iter().sum::<u64>(), ctx.source());
///     }
///     fn print_ratio(_ctx, part: u32, whole: f64) { println!("{}", f64::from(part) / whole); }
///     fn ignore(_ctx) {}
/// }
/// # let world = argonet::World::init().unwrap();
/// world.send(world.rank(), &print_sum, [1, 2, 3]).unwrap();
/// world.send(world.rank(), &print_ratio, (1, 4.0)).unwrap();
/// world.send(world.rank(), &ignore, ()).unwrap();
/// world.drain().unwrap();
/// ```
///
/// More than 64 bytes are refused at the definition:
///
/// ```compile_fail,E0080
/// argonet::am! {
///     fn too_large(_ctx, a: [u64; 8], b: u8) {}
/// }
/// ```
#[macro_export]
macro_rules! am {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($args:tt)*) $(-> $ret:ty)? $body:block)*) => {$(
        $crate::__am! { [$(#[$meta])* $vis] $name ($($args)*) [$($ret)?] $body }
        const _: () = {
            $crate::__private::ctor::declarative::ctor! {
                #[ctor(unsafe)]
                fn register() { $crate::__private::register_am(&$name) }
            }
        };
    )*};
}

/// One active message of [`am!`]: the static that others send it by.
#[doc(hidden)]
#[macro_export]
macro_rules! __am {
    ($head:tt $name:ident $args:tt [$ret:ty] $body:block) => {
        compile_error!("a handler returns nothing: answer by `ctx.reply`");
    };
    ($head:tt $name:ident ($ctx:ident $(,)?) [] $body:block) => {
        $crate::__am! { $head $name ($ctx, _nothing: ()) [] $body }
    };
    ([$(#[$meta:meta])* $vis:vis] $name:ident ($ctx:ident, $arg:ident : $ty:ty $(,)?) [] $body:block) => {
        $(#[$meta])*
        #[allow(non_upper_case_globals)]
        $vis static $name: $crate::Am<$ty> = {
            fn $name($ctx: &mut $crate::AmContext<'_, '_>, $arg: $ty) $body
            $crate::Am::new(concat!(module_path!(), "::", stringify!($name)), $name)
        };
    };
    ([$(#[$meta:meta])* $vis:vis] $name:ident ($ctx:ident $(, $arg:ident : $ty:ty)* $(,)?) [] $body:block) => {
        $(#[$meta])*
        #[allow(non_upper_case_globals)]
        $vis static $name: $crate::Am<($($ty,)*), $crate::SeveralValues> = {
            fn $name($ctx: &mut $crate::AmContext<'_, '_>, ($($arg,)*): ($($ty,)*)) $body
            $crate::Am::new(concat!(module_path!(), "::", stringify!($name)), $name)
        };
    };
    ($head:tt $name:ident $args:tt [] $body:block) => {
        compile_error!("a handler has the form `fn f(ctx, a: u8, b: f64) { ... }`: first a name without a type, for the context, then names with types");
    };
}
