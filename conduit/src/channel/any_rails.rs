//! Rails of any kind behind one type, for which there is one channel: each further one would be as
//! much code in every program.

use super::Pieces;
use super::rail::{Look, Made, NewRail, OneSided, Rail, RailId, Rails, Ready, Server, Vital};
use crate::connections::GateCounts;
use crate::datagrams::Datagrams;
use crate::failover::RailReport;
use argonet_base::JobRank;
use core::any::TypeId;
use core::time::Duration;
use std::io;
use std::sync::Arc;

/// Rails of any kind.
pub type AnyRails = Box<dyn Rails<Rail = AnyRail>>;

/// A rail of any kind.
///
/// Clones are the same rail.
#[derive(Clone)]
pub struct AnyRail {
    rail: Arc<dyn Object>,
    /// Its type.
    kind: TypeId,
}

/// What a rail can do, without its type.
trait Object: Send + Sync {
    /// As [`Rail::write`].
    ///
    /// # Safety
    /// As there.
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize>;

    /// As [`Rail::read`].
    ///
    /// # Safety
    /// As there.
    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize>;

    fn shut(&self);

    fn queued(&self) -> u64;

    fn vital(&self) -> Option<Vital>;
}

impl<R: Rail> Object for R {
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        // SAFETY: the caller's promise.
        unsafe { Rail::write(self, pieces) }
    }

    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        // SAFETY: the caller's promise.
        unsafe { Rail::read(self, pieces) }
    }

    fn shut(&self) {
        Rail::shut(self);
    }

    fn queued(&self) -> u64 {
        Rail::queued(self)
    }

    fn vital(&self) -> Option<Vital> {
        Rail::vital(self)
    }
}

impl AnyRail {
    /// That rail.
    pub(crate) fn new<R: Rail>(rail: R) -> Self {
        Self {
            rail: Arc::new(rail),
            kind: TypeId::of::<R>(),
        }
    }

    /// The rail, if it is of this kind.
    #[inline]
    pub(crate) fn as_kind<R: Rail>(&self) -> Option<&R> {
        let is_of_it = self.kind == TypeId::of::<R>();
        // SAFETY: `new` has put a rail of this type there, and nothing replaces it.
        is_of_it.then(|| unsafe { &*Arc::as_ptr(&self.rail).cast::<R>() })
    }
}

// SAFETY: the rail behind it keeps the promises.
unsafe impl Rail for AnyRail {
    #[inline]
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        // SAFETY: the caller's promise.
        unsafe { self.rail.write(pieces) }
    }

    #[inline]
    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        // SAFETY: the caller's promise.
        unsafe { self.rail.read(pieces) }
    }

    fn shut(&self) {
        self.rail.shut();
    }

    fn queued(&self) -> u64 {
        self.rail.queued()
    }

    fn vital(&self) -> Option<Vital> {
        self.rail.vital()
    }
}

/// Rails of one kind, whose rails are [`AnyRail`]s.
pub struct Erased<R>(R);

impl<R: Rails> Erased<R> {
    /// Those rails.
    pub fn new(rails: R) -> Self {
        Self(rails)
    }

    pub(crate) fn rails(&self) -> &R {
        &self.0
    }

    /// One of them.
    pub(crate) fn of<'a>(&self, rail: &'a AnyRail) -> &'a R::Rail {
        rail.as_kind()
            .expect("a rail comes back to those that made it")
    }
}

impl<R: Rails> Rails for Erased<R> {
    type Rail = AnyRail;

    fn reopens(&self) -> bool {
        self.0.reopens()
    }

    fn sends_beside(&self) -> bool {
        self.0.sends_beside()
    }

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn most(&self) -> u16 {
        self.0.most()
    }

    fn want(&self, id: RailId) {
        self.0.want(id);
    }

    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<AnyRail>> {
        Some(match self.0.next(received)? {
            Made::Rail(new) => Made::Rail(NewRail {
                id: new.id,
                rail: AnyRail::new(new.rail),
                incarnation: new.incarnation,
                received: new.received,
            }),
            Made::Unreachable(id, error) => Made::Unreachable(id, error),
        })
    }

    fn open(&self, id: RailId, rail: &AnyRail) -> io::Result<()> {
        self.0.open(id, self.of(rail))
    }

    fn close(&self, id: RailId, rail: &AnyRail) {
        self.0.close(id, self.of(rail));
    }

    fn refuse(&self, id: RailId, rail: &AnyRail) {
        self.0.refuse(id, self.of(rail));
    }

    fn unwant(&self, id: RailId) {
        self.0.unwant(id);
    }

    fn forget(&self, peer: JobRank) {
        self.0.forget(peer);
    }

    fn begin_poll(&self, alone: bool) -> Look {
        self.0.begin_poll(alone)
    }

    fn polls(&self) -> u32 {
        self.0.polls()
    }

    fn heard(&self, peer: JobRank, rail: &AnyRail, asleep: &dyn Fn() -> bool) {
        self.0.heard(peer, self.of(rail), asleep);
    }

    fn cool(&self, peer: JobRank) {
        self.0.cool(peer);
    }

    fn ready(&self, found: &mut Ready) {
        self.0.ready(found);
    }

    fn has_ready(&self) -> bool {
        self.0.has_ready()
    }

    fn arm(&self) {
        self.0.arm();
    }

    fn wait_for_room(&self, id: RailId, rail: &AnyRail, waits: bool) {
        self.0.wait_for_room(id, self.of(rail), waits);
    }

    fn sleep(&self, timeout: Option<Duration>) {
        self.0.sleep(timeout);
    }

    fn wake(&self) {
        self.0.wake();
    }

    fn forget_wakeups(&self) {
        self.0.forget_wakeups();
    }

    fn virtual_ns(&self) -> Option<u64> {
        self.0.virtual_ns()
    }

    fn server(&self) -> Option<&dyn Server<AnyRail>> {
        self.0.server().map(|_| self as &dyn Server<AnyRail>)
    }

    fn came(&self) -> u64 {
        self.0.came()
    }

    fn callers(&self) -> Option<GateCounts> {
        self.0.callers()
    }

    fn in_words(&self, peer: JobRank) -> Option<String> {
        self.0.in_words(peer)
    }

    fn rail_report(&self) -> Option<RailReport> {
        self.0.rail_report()
    }

    fn datagrams(&self) -> Option<Datagrams> {
        self.0.datagrams()
    }

    fn one_sided(&self) -> Option<&dyn OneSided> {
        self.0.one_sided()
    }
}

impl<R: Rails> Server<AnyRail> for Erased<R> {
    fn wait(&self, found: &mut Ready) -> bool {
        self.0.server().is_some_and(|server| server.wait(found))
    }

    fn again(&self, id: RailId, rail: &AnyRail) {
        if let Some(server) = self.0.server() {
            server.again(id, self.of(rail));
        }
    }

    fn again_made(&self) {
        if let Some(server) = self.0.server() {
            server.again_made();
        }
    }

    fn end(&self) {
        if let Some(server) = self.0.server() {
            server.end();
        }
    }
}

impl<R: Rails + ?Sized> Rails for Box<R> {
    type Rail = R::Rail;

    fn reopens(&self) -> bool {
        (**self).reopens()
    }

    fn sends_beside(&self) -> bool {
        (**self).sends_beside()
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn most(&self) -> u16 {
        (**self).most()
    }

    fn want(&self, id: RailId) {
        (**self).want(id);
    }

    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<Self::Rail>> {
        (**self).next(received)
    }

    fn open(&self, id: RailId, rail: &Self::Rail) -> io::Result<()> {
        (**self).open(id, rail)
    }

    fn close(&self, id: RailId, rail: &Self::Rail) {
        (**self).close(id, rail);
    }

    fn refuse(&self, id: RailId, rail: &Self::Rail) {
        (**self).refuse(id, rail);
    }

    fn unwant(&self, id: RailId) {
        (**self).unwant(id);
    }

    fn forget(&self, peer: JobRank) {
        (**self).forget(peer);
    }

    fn begin_poll(&self, alone: bool) -> Look {
        (**self).begin_poll(alone)
    }

    fn polls(&self) -> u32 {
        (**self).polls()
    }

    fn heard(&self, peer: JobRank, rail: &Self::Rail, asleep: &dyn Fn() -> bool) {
        (**self).heard(peer, rail, asleep);
    }

    fn cool(&self, peer: JobRank) {
        (**self).cool(peer);
    }

    fn ready(&self, found: &mut Ready) {
        (**self).ready(found);
    }

    fn has_ready(&self) -> bool {
        (**self).has_ready()
    }

    fn arm(&self) {
        (**self).arm();
    }

    fn wait_for_room(&self, id: RailId, rail: &Self::Rail, waits: bool) {
        (**self).wait_for_room(id, rail, waits);
    }

    fn sleep(&self, timeout: Option<Duration>) {
        (**self).sleep(timeout);
    }

    fn wake(&self) {
        (**self).wake();
    }

    fn forget_wakeups(&self) {
        (**self).forget_wakeups();
    }

    fn virtual_ns(&self) -> Option<u64> {
        (**self).virtual_ns()
    }

    fn server(&self) -> Option<&dyn Server<Self::Rail>> {
        (**self).server()
    }

    fn came(&self) -> u64 {
        (**self).came()
    }

    fn callers(&self) -> Option<GateCounts> {
        (**self).callers()
    }

    fn in_words(&self, peer: JobRank) -> Option<String> {
        (**self).in_words(peer)
    }

    fn rail_report(&self) -> Option<RailReport> {
        (**self).rail_report()
    }

    fn datagrams(&self) -> Option<Datagrams> {
        (**self).datagrams()
    }

    fn one_sided(&self) -> Option<&dyn OneSided> {
        (**self).one_sided()
    }
}
