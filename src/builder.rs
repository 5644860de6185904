//! How a world is made.

use crate::am::{Am, AmContext, AmEntry, Placed};
use crate::error::{Error, Result};
use crate::global::Global;
use crate::heap::Memory;
use crate::process;
use crate::progress::Wakers;
use crate::registry;
use crate::rpc::{Calls, ObjectContext, Rpc, RpcContext, RpcEntry, RpcOn, Run};
use crate::token::Token;
use crate::world::{Inner, Par, Seq, Threading, World};
use argonet_am::{HandlerFn, HandlerTable};
use argonet_base::{HandlerIndex, Rank};
use argonet_start::{Joining, StartError, launch_if_alone, segment_request};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// Joins a job with settings and handlers of one's own.
///
/// Made by [`World::builder`].
///
/// ```
/// let world = argonet::World::builder()
///     .ranks(1)
///     .segment_bytes(1 << 20)
///     .build()
///     .unwrap();
/// assert_eq!(world.size(), 1);
/// ```
#[derive(Default)]
pub struct Builder {
    ranks: Option<u32>,
    segment: Option<u64>,
    fixed: Vec<(HandlerIndex, &'static str, Box<HandlerFn>)>,
    ams: Vec<(&'static str, Box<HandlerFn>, Placed)>,
    rpcs: Vec<Box<dyn RpcEntry>>,
    on_peer_lost: Option<Box<dyn Fn(Rank) + Send + Sync>>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Makes `ranks` ranks of a program that was started alone, as `GASNET_PSHM_NODES` does; a
    /// program started by `argonet run` has as many as that says.
    ///
    /// See the example of [`Builder`].
    #[must_use]
    pub fn ranks(mut self, ranks: u32) -> Self {
        self.ranks = Some(ranks);
        self
    }

    /// Bytes of this rank's segment at the start; `ARGONET_SEGMENT` overrides it, 16 MiB is the
    /// default.
    ///
    /// The same on all ranks. A segment grows when arrays need more.
    ///
    /// See the example of [`Builder`].
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment = Some(bytes);
        self
    }

    /// Registers an active message without the [`am!`](crate::am!) macro: the handler may capture
    /// state of its rank.
    ///
    /// All ranks register the same names.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// let seen = Arc::new(AtomicU32::new(0));
    /// let mut builder = argonet::World::builder();
    /// let ping = builder.am("ping", {
    ///     let seen = Arc::clone(&seen);
    ///     move |_ctx, n: u32| { seen.fetch_add(n, Ordering::Relaxed); }
    /// });
    /// assert_eq!(ping.name(), "ping");
    /// let world = builder.build().unwrap();
    /// world.send(world.rank(), &ping, 3).unwrap();
    /// world.wait_until(|| seen.load(Ordering::Relaxed) == 3).unwrap();
    /// ```
    ///
    /// The handler has one argument: for several use an array, a `#[repr(C)]` struct, or
    /// [`am!`](crate::am!).
    pub fn am<A: Global>(
        &mut self,
        name: &'static str,
        handler: impl Fn(&mut AmContext<'_, '_>, A) + Send + Sync + 'static,
    ) -> Am<A> {
        let placed = Placed::new();
        self.ams
            .push((name, Am::<A>::handler(handler), placed.clone()));
        Am::named(name, placed)
    }

    /// Registers a handler of the [raw layer](crate::raw) at an index of its own choice, from
    /// [`CLIENT_BASE`](crate::CLIENT_BASE) to 255.
    ///
    /// All ranks register the same names at the same indices; typed messages get those that are
    /// left. No two handlers have one name.
    ///
    /// ```
    /// use argonet::{HandlerIndex, raw::Injection};
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// const ADD: HandlerIndex = HandlerIndex(200);
    /// const SUM: HandlerIndex = HandlerIndex(201);
    /// let sum = Arc::new(AtomicU32::new(0));
    /// let mut builder = argonet::World::builder();
    /// builder.handler_at(ADD, "add", |token| {
    ///     let bytes: u32 = token.payload().to_vec::<u8>().iter().map(|b| u32::from(*b)).sum();
    ///     let total = token.args().iter().sum::<u32>() + bytes;
    ///     // SAFETY: a short reply writes to no segment.
    ///     unsafe { token.reply(SUM, &[total], None).unwrap() };
    /// });
    /// builder.handler_at(SUM, "sum", {
    ///     let sum = Arc::clone(&sum);
    ///     move |token| sum.store(token.args()[0] + token.source().0, Ordering::Relaxed)
    /// });
    /// let world = builder.build().unwrap();
    /// // SAFETY: a medium request writes to no segment.
    /// let sent = unsafe {
    ///     world.raw().request(world.rank(), ADD, &[1, 2, 3], Some((&[10, 20], None)), Injection::Blocking)
    /// };
    /// sent.unwrap();
    /// world.wait_until(|| sum.load(Ordering::Relaxed) == 36).unwrap();
    /// ```
    pub fn handler_at(
        &mut self,
        index: HandlerIndex,
        name: &'static str,
        handler: impl Fn(&mut Token<'_, '_>) + Send + Sync + 'static,
    ) {
        self.fixed.push((index, name, Token::handler(handler)));
    }

    /// Registers a function for remote calls without the [`rpc!`](crate::rpc!) macro.
    ///
    /// All ranks register the same names. `A` is a tuple.
    ///
    /// ```
    /// let mut builder = argonet::World::builder();
    /// let double = builder.rpc("double", |(x,): (u32,)| x * 2);
    /// let world = builder.build().unwrap();
    /// assert_eq!(world.rpc(world.rank(), &double, (4,)).unwrap().wait().unwrap(), 8);
    /// ```
    pub fn rpc<A, R>(&mut self, name: &'static str, function: fn(A) -> R) -> Rpc<A, R>
    where
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        self.rpcs.push(Box::new(Rpc::new(name, function)));
        Rpc::new(name, function)
    }

    /// Registers a function that is called for distributed objects, without the
    /// [`rpc!`](crate::rpc!) macro.
    ///
    /// All ranks register the same names. `A` is a tuple.
    ///
    /// ```
    /// use argonet::DistObject;
    /// use std::cell::Cell;
    /// let mut builder = argonet::World::builder();
    /// let add = builder.rpc_on("add", |sum: &Cell<u32>, (x,): (u32,)| sum.set(sum.get() + x));
    /// let world = builder.build().unwrap();
    /// let sum = DistObject::new(&world, Cell::new(1)).unwrap();
    /// sum.rpc(&world, world.rank(), &add, (4,)).unwrap().wait().unwrap();
    /// assert_eq!(sum.get(), 5);
    /// ```
    pub fn rpc_on<T, A, R>(
        &mut self,
        name: &'static str,
        function: fn(&T, A) -> R,
    ) -> RpcOn<T, A, R>
    where
        T: 'static,
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        self.rpcs.push(Box::new(RpcOn::new(name, function)));
        RpcOn::new(name, function)
    }

    /// Registers a function that gets a [context](RpcContext) and may communicate, without the
    /// [`rpc!`](crate::rpc!) macro.
    ///
    /// All ranks register the same names. `A` is a tuple.
    ///
    /// ```
    /// let mut builder = argonet::World::builder();
    /// let here = builder.rpc_deferred("here", |ctx, (): ()| ctx.rank().0);
    /// let world = builder.build().unwrap();
    /// assert_eq!(world.rpc(world.rank(), &here, ()).unwrap().wait().unwrap(), world.rank().0);
    /// ```
    pub fn rpc_deferred<A, R>(
        &mut self,
        name: &'static str,
        function: fn(&RpcContext<'_>, A) -> R,
    ) -> Rpc<A, R>
    where
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        self.rpcs.push(Box::new(Rpc::deferred(name, function)));
        Rpc::deferred(name, function)
    }

    /// As [`rpc_deferred`](Self::rpc_deferred), for functions that are called for distributed
    /// objects.
    ///
    /// ```
    /// use argonet::DistObject;
    /// let mut builder = argonet::World::builder();
    /// let sum = builder.rpc_deferred_on("sum", |ctx, n: &u32, (x,): (u32,)| n + x + ctx.rank().0);
    /// let world = builder.build().unwrap();
    /// let object = DistObject::new(&world, 2).unwrap();
    /// let found = object.rpc(&world, world.rank(), &sum, (4,)).unwrap().wait().unwrap();
    /// assert_eq!(found, 6 + world.rank().0);
    /// # world.barrier().unwrap();
    /// ```
    pub fn rpc_deferred_on<T, A, R>(
        &mut self,
        name: &'static str,
        function: fn(&ObjectContext<'_, T>, &T, A) -> R,
    ) -> RpcOn<T, A, R>
    where
        T: 'static,
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        self.rpcs.push(Box::new(RpcOn::deferred(name, function)));
        RpcOn::deferred(name, function)
    }

    /// Has the program go on when its job loses a rank, if the user wants that too.
    ///
    /// The user says so by `argonet run --on-rank-lost=continue`, or by
    /// `ARGONET_ON_RANK_LOST=continue`; else the loss ends the job. A rank is lost when its process
    /// is killed (SIGKILL) or crashes before it has finalized. SIGINT, SIGTERM and other signals
    /// that ask it to end still end the job. The polls of the others notice a loss, and call `act`
    /// with each lost rank, once, as a handler is called: it cannot communicate, and if it panics
    /// the job ends. Any thread that polls may call it; no two calls of it overlap. From then on
    ///
    /// * operations with the lost rank, those under way too, fail with
    ///   [`AmError::PeerLost`](crate::AmError::PeerLost); whether they have taken effect there is
    ///   not known. Those of a [scope](crate::World::scope) end without an error: compare
    ///   [`lost_ranks`](crate::World::lost_ranks) before and after.
    /// * collective calls of the world and of each team that has the lost rank fail so, at every
    ///   survivor at which they were not complete yet.
    ///   [`World::survivors`](crate::World::survivors) makes a team for what follows.
    ///   [`barrier`](crate::World::barrier), [`drain`](crate::World::drain),
    ///   [`quiet`](crate::World::quiet) and [`SharedArray::alloc`](crate::SharedArray::alloc) are
    ///   collective over the world: allocate before, and wait for each other by a team.
    /// * the memory of the lost rank is gone. Arrays stay, and survivors use the other parts. A put
    ///   to it of just before the loss was noticed may have succeeded without effect.
    /// * a wait for a condition of the program's own goes on: `act` can make the condition true.
    ///
    /// All ranks ask for it, or the loss ends the job. All survivors call `World::survivors`
    /// equally often, and none finalizes while another still calls it. A panic, an error of the
    /// program and `exit` end the job as always. Jobs go on over smp, tcp, usnic, gni and ofi, on
    /// one host and over several (`argonet run -H`); the loss of a host is that of each of its
    /// ranks. Jobs of other launchers are refused at the start. Where a job has started its ranks
    /// itself, the death of rank 0 ends it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// let lost = Arc::new(AtomicU32::new(0));
    /// let count = Arc::clone(&lost);
    /// let world = argonet::World::builder()
    ///     .on_peer_lost(move |_rank| _ = count.fetch_add(1, Ordering::Relaxed))
    ///     .build()
    ///     .unwrap();
    /// assert!(world.lost_ranks().is_empty() && lost.load(Ordering::Relaxed) == 0);
    /// // All ranks that are not lost, here all.
    /// assert_eq!(world.survivors().unwrap().size(), world.size());
    /// ```
    #[must_use]
    pub fn on_peer_lost(mut self, act: impl Fn(Rank) + Send + Sync + 'static) -> Self {
        self.on_peer_lost = Some(Box::new(act));
        self
    }

    /// Joins the job, for one thread.
    ///
    /// Blocks until all ranks have joined. Call it before there is a second thread, as a program
    /// that starts its own ranks forks here.
    ///
    /// See the example of [`Builder`].
    ///
    /// # Errors
    /// The job cannot start; see [`Error`].
    pub fn build(self) -> Result<World<Seq>> {
        self.join()
    }

    /// Joins the job, for any number of threads.
    ///
    /// As [`build`](Self::build) before there is a second thread.
    ///
    /// ```
    /// let world = argonet::World::builder().build_par().unwrap();
    /// std::thread::scope(|s| {
    ///     for _ in 0..4 {
    ///         s.spawn(|| world.poll().unwrap());
    ///     }
    /// });
    /// ```
    ///
    /// # Errors
    /// The job cannot start; see [`Error`].
    pub fn build_par(self) -> Result<World<Par>> {
        self.join()
    }

    pub(crate) fn join<M: Threading>(self) -> Result<World<M>> {
        if self.ranks.is_none() {
            launch_if_alone()?;
        }
        let names = Names::gather(self.fixed, self.ams, self.rpcs)?;
        let calls = Arc::new(Calls::new(names.rpcs));
        let joined = process::join(
            Joining {
                mode: M::MODE,
                ranks: self.ranks,
                limit: None,
                digest: names.digest.as_bytes(),
                count: names.count,
            },
            |handlers, outgoing| {
                calls.register(handlers, outgoing)?;
                let mut places = names.ams.into_iter();
                Ok(places.try_for_each(|place| place(handlers))?)
            },
        )?;
        if let Some(act) = self.on_peer_lost {
            let calls = Arc::clone(&calls);
            let on_loss = joined.engine.on_loss(Box::new(move |rank| {
                calls.lose(rank);
                act(Rank(rank.0));
            }));
            let rank = Rank(joined.engine.rank().0);
            on_loss.map_err(|conduit| StartError::CannotGoOn { rank, conduit })?;
        }
        let request = segment_request(joined.limit, self.segment, &joined.settings)?;
        let own = joined.attach_at_start(request)?;
        joined.start()?;
        let on_host = joined.boot.host_ranks().len();
        Ok(World::new(Inner {
            engine: joined.engine,
            memory: Memory::new(own, joined.limit, joined.published, on_host),
            calls,
            wakers: Wakers::default(),
            placement: joined.placement,
        }))
    }
}

type Place = Box<dyn FnOnce(&mut HandlerTable) -> Result<(), argonet_am::AmError>>;

/// All registrations, sorted by name.
struct Names {
    ams: Vec<Place>,
    rpcs: Vec<(&'static str, Run)>,
    digest: blake3::Hash,
    count: usize,
}

impl Names {
    fn gather(
        mut fixed: Vec<(HandlerIndex, &'static str, Box<HandlerFn>)>,
        built: Vec<(&'static str, Box<HandlerFn>, Placed)>,
        rpcs: Vec<Box<dyn RpcEntry>>,
    ) -> Result<Self> {
        let mut ams: Vec<(&'static str, Place)> = Vec::new();
        for (name, run, placed) in built {
            let place = move |table: &mut HandlerTable| {
                placed.set(table.register(name, run)?);
                Ok(())
            };
            ams.push((name, Box::new(place)));
        }
        for entry in registry::ams() {
            ams.push((
                AmEntry::name(entry),
                Box::new(move |table| entry.place(table)),
            ));
        }
        let statics = registry::rpcs();
        let statics = statics.iter().map(|entry| (entry.name(), entry.runner()));
        let built = rpcs.iter().map(|entry| (entry.name(), entry.runner()));
        let mut rpcs: Vec<(_, Run)> = statics.chain(built).collect();
        fixed.sort_by_key(|(index, _, _)| *index);
        ams.sort_by_key(|(name, _)| *name);
        rpcs.sort_by_key(|(name, _)| *name);
        let mut hasher = blake3::Hasher::new();
        for (index, name, _) in &fixed {
            hash_name(hasher.update(b"at").update(&[index.0]), name);
        }
        for (kind, names) in [
            (b"am", ams.iter().map(|(name, _)| *name).collect::<Vec<_>>()),
            (b"fn", rpcs.iter().map(|(name, _)| *name).collect()),
        ] {
            if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(Error::DuplicateName {
                    name: pair[0].into(),
                });
            }
            for name in names {
                hash_name(hasher.update(kind), name);
            }
        }
        for (name, _) in rpcs.iter().filter(|(_, run)| run.is_deferred()) {
            hash_name(hasher.update(b"later"), name);
        }
        Ok(Self {
            count: fixed.len() + ams.len() + rpcs.len(),
            // Handlers with a chosen index first, so that the others keep clear of it.
            ams: fixed
                .into_iter()
                .map(|(index, name, run)| -> Place {
                    Box::new(move |table| table.register_at(index, name, run))
                })
                .chain(ams.into_iter().map(|(_, place)| place))
                .collect(),
            rpcs,
            digest: hasher.finalize(),
        })
    }
}

fn hash_name(hasher: &mut blake3::Hasher, name: &str) {
    hasher
        .update(&(name.len() as u64).to_le_bytes())
        .update(name.as_bytes());
}
