//! One-way calls that are held back, and sent many at a time.

use super::batched::{self, OneCall};
use super::calls::ONE_WAY;
use super::{Callee, Rpc, RpcOn};
use crate::dist_object::DistObject;
use crate::error::{Result, is_loss, keep_failure};
use crate::instances::InstanceIn;
use crate::process;
use crate::world::{Seq, Threading, World};
use argonet_base::Rank;
use core::marker::PhantomData;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Bytes of calls in one message, at most.
const BATCH: usize = 8192;

/// Calls between looks at the clock.
const CLOCK_EVERY: u32 = 64;

/// Holds one-way remote procedure calls back, and sends many in one message.
///
/// Made by [`World::rpc_aggregator`]. It is for many short calls: a message has up to 8 KiB of
/// them, and a call takes its encoded arguments and four to 17 bytes. A call whose arguments are
/// longer than a message goes by itself.
///
/// ```
/// use argonet::{DistObject, Rank, World};
/// use std::cell::RefCell;
/// use std::collections::HashMap;
///
/// type Counts = RefCell<HashMap<u64, u64>>;
/// argonet::rpc! {
///     fn count(counts: &Counts, number: u64) {
///         *counts.borrow_mut().entry(number).or_default() += 1;
///     }
/// }
///
/// let world = World::init().unwrap();
/// let counts = DistObject::new(&world, Counts::default()).unwrap();
/// let mut calls = world.rpc_aggregator();
/// for number in 0..1000 {
///     let owner = Rank(number as u32 % world.size());
///     calls.rpc_on_one_way(&counts, owner, &count, (number,)).unwrap();
/// }
/// calls.send().unwrap();
/// // Now all calls have run, those of other ranks, too.
/// world.drain().unwrap();
/// let ranks = u64::from(world.size());
/// assert!(counts.borrow().values().all(|times| *times == ranks));
/// ```
///
/// Calls run as those of [`World::rpc_one_way`] do, in the handler of their message one after
/// another; those that get a [context](crate::RpcContext) run after it. Nothing orders them. Such a
/// function can make an aggregator of its own, for functions without an object. A call
/// that is held has not been sent: [`World::drain`] waits only for those that [`send`](Self::send)
/// has sent, or that left because a message was full.
///
/// It belongs to one thread; with [`World<Par>`](crate::Par) each thread makes its own. Its memory:
/// 8 KiB for each rank that is called, until it is dropped.
///
/// # Errors
/// A call fails for itself alone, and is not held then. An error of sending is that of the next
/// [`send`](Self::send); the calls of that message are lost.
///
/// # Drop
/// As [`send`](Self::send). An error ends the job, but for the loss of a peer. While the thread
/// panics nothing is sent.
#[must_use = "call `send`: calls are held back until then"]
pub struct RpcAggregator<'w, M: Threading = Seq> {
    world: &'w World<M>,
    /// By rank; made with the first call of it.
    held: Vec<Option<Box<Batch>>>,
    /// The ranks with calls that are held; also some whose calls have been sent since.
    held_for: Vec<Rank>,
    max_age: Option<Duration>,
    /// Calls until the next look at the clock.
    until_clock: u32,
    /// The first failure since the last `send`.
    outcome: Result<()>,
    /// Encoded arguments of one call.
    arguments: Vec<u8>,
    /// It stays on its thread.
    _of_thread: PhantomData<*mut ()>,
}

/// Calls of one rank.
struct Batch {
    bytes: [u8; BATCH],
    used: usize,
    /// Whether the rank is in [`RpcAggregator::held_for`].
    is_listed: bool,
    /// When the first of them came, if ages matter.
    since: Option<Instant>,
}

impl<M: Threading> World<M> {
    /// Makes an [`RpcAggregator`] without calls.
    ///
    /// See the example of [`RpcAggregator`].
    pub fn rpc_aggregator(&self) -> RpcAggregator<'_, M> {
        RpcAggregator {
            world: self,
            held: Vec::new(),
            held_for: Vec::new(),
            max_age: None,
            until_clock: CLOCK_EVERY,
            outcome: Ok(()),
            arguments: Vec::new(),
            _of_thread: PhantomData,
        }
    }
}

impl<M: Threading> RpcAggregator<'_, M> {
    /// Makes calls send what is held for a rank when some of it has been for longer than this.
    ///
    /// Each 64th call looks at the clock; where there are no calls nothing is sent. By default a
    /// message is sent when it is full.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// use std::time::Duration;
    /// let mut calls = world.rpc_aggregator().max_age(Duration::from_millis(1));
    /// # calls.send().unwrap();
    /// ```
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        let now = Instant::now();
        for batch in self.held.iter_mut().flatten() {
            batch.since.get_or_insert(now);
        }
        self
    }

    /// Adds a call as [`World::rpc_one_way`] makes it.
    ///
    /// If the message is full, waits for room at the target. It polls meanwhile, so handlers run.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// static SUM: AtomicU64 = AtomicU64::new(0);
    /// argonet::rpc! {
    ///     fn add(value: u64) { SUM.fetch_add(value, Ordering::Relaxed); }
    /// }
    /// # let world = argonet::World::init().unwrap();
    /// let mut calls = world.rpc_aggregator();
    /// (1..=4).for_each(|value| calls.rpc_one_way(world.rank(), &add, (value,)).unwrap());
    /// calls.send().unwrap();
    /// world.drain().unwrap();
    /// assert_eq!(SUM.load(Ordering::Relaxed), 10);
    /// ```
    ///
    /// # Errors
    /// As [`World::rpc_one_way`], but for those of sending, which are errors of
    /// [`send`](Self::send), also for a call that goes by itself.
    pub fn rpc_one_way<A, R>(&mut self, to: Rank, function: &Rpc<A, R>, args: A) -> Result<()>
    where
        A: Serialize,
    {
        self.add(to, &function.named.callee(None), &args)
    }

    /// Adds a call as [`DistObject::rpc_one_way`] makes it.
    ///
    /// As [`rpc_one_way`](Self::rpc_one_way). Drop the object only when its calls have been sent
    /// and have run.
    ///
    /// See the example of [`RpcAggregator`].
    ///
    /// # Errors
    /// As [`rpc_one_way`](Self::rpc_one_way).
    pub fn rpc_on_one_way<T, A, R>(
        &mut self,
        object: &DistObject<T, M>,
        to: Rank,
        function: &RpcOn<T, A, R>,
        args: A,
    ) -> Result<()>
    where
        T: InstanceIn<M>,
        A: Serialize,
    {
        self.add(to, &function.callee(object.number()), &args)
    }

    /// Sends all calls that are held; [`World::drain`] waits until they have run.
    ///
    /// Waits, polling, only while a target has no room.
    ///
    /// See the example of [`RpcAggregator`].
    ///
    /// # Errors
    /// One failure of sending since the last call of this: the first that is not
    /// [`AmError::PeerLost`](crate::AmError::PeerLost), else the first loss. Nothing changes where
    /// nothing can be sent: in a handler ([`AmError::Restricted`](crate::AmError::Restricted)),
    /// while a payload is prepared, and on a thread too many.
    pub fn send(&mut self) -> Result<()> {
        self.permit()?;
        self.send_all();
        core::mem::replace(&mut self.outcome, Ok(()))
    }

    fn permit(&self) -> Result<()> {
        let rank = World::<M>::job_rank(self.world.rank());
        Ok(process::with(|ctx| {
            ctx.permit("an aggregator of calls", rank)
        })?)
    }

    fn add<A: Serialize>(&mut self, to: Rank, callee: &Callee<'_>, args: &A) -> Result<()> {
        self.permit()?;
        self.world.check_rank(to)?;
        self.until_clock -= 1;
        if self.until_clock == 0 {
            self.look_at_clock();
        }
        let function = self.world.index_of(callee)?;
        let mut room = core::mem::take(&mut self.arguments);
        room.clear();
        // Once: an implementation of `Serialize` may have effects.
        self.arguments = postcard::to_extend(args, room)
            .map_err(|cause| self.world.encode_error(callee, &cause))?;
        if self.add_to_batch(to, function, callee) {
            return Ok(());
        }
        self.send_batch(to);
        if !self.add_to_batch(to, function, callee) {
            // Longer than a message.
            let (world, bytes) = (self.world, &self.arguments);
            let sent = world.send_call(to, function, ONE_WAY, callee.object, bytes);
            self.note(sent);
        }
        Ok(())
    }

    /// Adds a call with the arguments to the message for a rank; false if there is no room.
    fn add_to_batch(&mut self, to: Rank, function: u32, callee: &Callee<'_>) -> bool {
        let at = to.0 as usize;
        if self.held.len() <= at {
            self.held.resize_with(at + 1, || None);
        }
        let batch = self.held[at].get_or_insert_with(Batch::new);
        let call = OneCall {
            function,
            object: callee.object.unwrap_or(0),
            arguments: &self.arguments,
        };
        let Some(len) = batched::write(&mut batch.bytes[batch.used..], &call) else {
            return false;
        };
        if batch.used == 0 {
            batch.since = self.max_age.map(|_| Instant::now());
            if !core::mem::replace(&mut batch.is_listed, true) {
                self.held_for.push(to);
            }
        }
        batch.used += len;
        true
    }

    #[cold]
    #[inline(never)]
    fn look_at_clock(&mut self) {
        self.until_clock = CLOCK_EVERY;
        let Some(age) = self.max_age else {
            return;
        };
        let now = Instant::now();
        for at in 0..self.held_for.len() {
            let to = self.held_for[at];
            let batch = self.held[to.0 as usize].as_ref();
            let since = batch.and_then(|batch| batch.since);
            if since.is_some_and(|since| now.saturating_duration_since(since) >= age) {
                self.send_batch(to);
            }
        }
    }

    fn send_all(&mut self) {
        while let Some(to) = self.held_for.pop() {
            if let Some(batch) = &mut self.held[to.0 as usize] {
                batch.is_listed = false;
            }
            self.send_batch(to);
        }
    }

    /// Sends the calls that are held for a rank.
    fn send_batch(&mut self, to: Rank) {
        let Some(batch) = &mut self.held[to.0 as usize] else {
            return;
        };
        batch.since = None;
        let used = core::mem::take(&mut batch.used);
        if used > 0 {
            let sent = self.world.send_batch(to, &batch.bytes[..used]);
            self.note(sent);
        }
    }

    fn note(&mut self, sent: Result<()>) {
        if let Err(error) = sent {
            keep_failure(&mut self.outcome, error);
        }
    }
}

impl Batch {
    fn new() -> Box<Self> {
        Box::new(Self {
            bytes: [0; BATCH],
            used: 0,
            is_listed: false,
            since: None,
        })
    }
}

impl<M: Threading> Drop for RpcAggregator<'_, M> {
    fn drop(&mut self) {
        let is_done = self.held_for.is_empty() && self.outcome.is_ok();
        if is_done || std::thread::panicking() {
            return;
        }
        match self.send() {
            Err(error) if !is_loss(&error) => {
                let why = format!("an aggregator of calls was dropped: {error}");
                self.world.engine().fatal(&why)
            }
            _ => {}
        }
    }
}
