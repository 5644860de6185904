//! An interface that refuses one call.

use argonet_base::JobRank;
use argonet_nic::portals::software::Software;
use argonet_nic::portals::{
    Ack, Answer, AtomicKind, AtomicOp, Counter, Descriptor, DescriptorHandle, Entry, EntryHandle,
    Event, EventKind, Features, Limits, Matching, NicError, Part, PortalIndex, PortalOptions,
    Portals, Position, Queue, Register, Target,
};
use argonet_nic::reliable::{PathFault, PeerUnreachable};
use core::ptr::NonNull;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Which call is refused, how, and after how many others of its name.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) call: String,
    pub(crate) error: String,
    pub(crate) after: u32,
    /// Puts to this portal alone.
    pub(crate) portal: Option<u32>,
    /// Whether it is refused once more when it is tried again.
    pub(crate) twice: bool,
}

/// Distinguishes a put or a get from others, so that one that is tried again is known.
type Same = (Part, Target, u64);

/// A call that was refused, and is refused when it is tried again.
///
/// Without `same`, which distinguishes puts and gets: the next call of its name.
pub(crate) struct Retry {
    rule: Rule,
    same: Option<Same>,
}

/// Orders to the interfaces of a job, and their record.
#[derive(Default)]
pub(crate) struct Orders {
    pub(crate) rule: Option<Rule>,
    /// Whether a rule was followed, and once more.
    pub(crate) refused: bool,
    pub(crate) refused_twice: bool,
    /// Whether the call may have been made again, so that an error is the job's end.
    pub(crate) ends: bool,
    pub(crate) retry: Option<Retry>,
    pub(crate) called: BTreeSet<&'static str>,
    /// Calls with a target, by its portal.
    pub(crate) targets: BTreeMap<u32, u64>,
    /// Entries and descriptors that there are.
    pub(crate) made: i64,
}

impl Orders {
    /// From now on nothing is refused.
    pub(crate) fn forget(&mut self) {
        self.rule = None;
        self.retry = None;
    }
}

/// A software interface whose calls may be refused.
pub(crate) struct Refusing {
    pub(crate) nic: Software,
    /// It says that it is far from its targets.
    pub(crate) far: bool,
    pub(crate) orders: Arc<Mutex<Orders>>,
}

impl Refusing {
    fn gate(&self, call: &'static str) -> Result<(), NicError> {
        self.gate_of(call, None)
    }

    fn gate_of(&self, call: &'static str, same: Option<Same>) -> Result<(), NicError> {
        let mut orders = self.orders.lock().unwrap();
        orders.called.insert(call);
        if let Some((_, target, _)) = same {
            *orders.targets.entry(target.portal.0).or_default() += 1;
        }
        let again = |retry: &mut Retry| retry.rule.call == call && retry.same == same;
        if let Some(retry) = orders.retry.take_if(again) {
            orders.refused_twice = true;
            return Err(error(&retry.rule.error, self.nic.rank()));
        }
        let portal = same.map(|(_, target, _)| target.portal.0);
        let due = |rule: &&mut Rule| {
            rule.call == call && rule.portal.is_none_or(|only| portal == Some(only))
        };
        let Some(rule) = orders.rule.as_mut().filter(due) else {
            return Ok(());
        };
        if rule.after > 0 {
            rule.after -= 1;
            return Ok(());
        }
        let rule = orders.rule.take().expect("it was there");
        let error = error(&rule.error, self.nic.rank());
        orders.refused = true;
        orders.ends = rule.twice;
        orders.retry = rule.twice.then_some(Retry { rule, same });
        Err(error)
    }
}

impl Refusing {
    /// Follows how many entries and descriptors there are.
    fn count<T>(&self, change: i64, answer: Result<T, NicError>) -> Result<T, NicError> {
        if answer.is_ok() {
            self.orders.lock().unwrap().made += change;
        }
        answer
    }
}

/// An error by its name.
fn error(name: &str, rank: JobRank) -> NicError {
    let what = "thing of the test";
    match name {
        "NoSpace" => NicError::NoSpace {
            rank,
            what,
            limit: 1,
        },
        "BadHandle" => NicError::BadHandle {
            rank,
            what,
            index: 1,
            generation: 1,
        },
        "BadPortal" => NicError::BadPortal {
            rank,
            portal: 1,
            portals: 1,
        },
        "InUse" => NicError::InUse {
            rank,
            what,
            index: 1,
            by: what,
        },
        "BadRank" => NicError::BadRank {
            rank,
            peer: rank,
            ranks: 1,
        },
        "OutOfRange" => NicError::OutOfRange {
            rank,
            offset_bytes: 1,
            len_bytes: 1,
            size_bytes: 1,
        },
        "NotShared" => NicError::NotShared {
            rank,
            address: 1,
            len_bytes: 1,
        },
        "Exhausted" => NicError::Exhausted {
            rank,
            index: 1,
            threshold: 1,
        },
        "Invalid" => NicError::Invalid { rank, what },
        "Unsupported" => NicError::Unsupported {
            rank,
            feature: what,
        },
        "Unreachable" => NicError::Unreachable {
            host: String::new(),
            address: None,
            lost: PeerUnreachable {
                rank,
                peer: rank,
                fault: PathFault::Silent,
                silent: Duration::from_secs(1),
                sends: 1,
            },
        },
        "EventsDropped" => NicError::EventsDropped {
            rank,
            queue: 1,
            count: 1,
        },
        "Corrupt" => NicError::Corrupt { rank, what },
        other => panic!("the trait has a new error, {other}"),
    }
}

impl Portals for Refusing {
    fn rank(&self) -> JobRank {
        self.nic.rank()
    }

    fn limits(&self) -> Limits {
        self.nic.limits()
    }

    fn features(&self) -> Features {
        let features = self.nic.features();
        match self.far {
            true => Features {
                synchronous: false,
                remote: true,
                ..features
            },
            false => features,
        }
    }

    fn status(&self, register: Register) -> u64 {
        self.nic.status(register)
    }

    fn queue_alloc(&self, events: u64) -> Result<Queue, NicError> {
        self.gate("queue_alloc")?;
        self.nic.queue_alloc(events)
    }

    fn queue_free(&self, queue: Queue) -> Result<(), NicError> {
        self.gate("queue_free")?;
        self.nic.queue_free(queue)
    }

    fn queue_get(&self, queue: Queue) -> Result<Option<Event>, NicError> {
        self.gate("queue_get")?;
        let event = self.nic.queue_get(queue)?;
        let has_left = event.is_some_and(|event| event.kind == EventKind::Unlink);
        self.count(-i64::from(has_left), Ok(event))
    }

    fn queue_poll(&self, queues: &[Queue]) -> Result<Option<(usize, Event)>, NicError> {
        self.gate("queue_poll")?;
        self.nic.queue_poll(queues)
    }

    fn queue_is_empty(&self, queue: Queue) -> Result<bool, NicError> {
        self.gate("queue_is_empty")?;
        self.nic.queue_is_empty(queue)
    }

    fn queue_wait(
        &self,
        queues: &[Queue],
        timeout: Option<Duration>,
        come: &dyn Fn() -> bool,
    ) -> Result<(), NicError> {
        self.gate("queue_wait")?;
        self.nic.queue_wait(queues, timeout, come)
    }

    fn wake(&self) {
        self.nic.wake();
    }

    fn counter_alloc(&self) -> Result<Counter, NicError> {
        self.gate("counter_alloc")?;
        self.nic.counter_alloc()
    }

    fn counter_free(&self, counter: Counter) -> Result<(), NicError> {
        self.gate("counter_free")?;
        self.nic.counter_free(counter)
    }

    fn counter_get(&self, counter: Counter) -> Result<(u64, u64), NicError> {
        self.gate("counter_get")?;
        self.nic.counter_get(counter)
    }

    fn counter_set(&self, counter: Counter, success: u64, failure: u64) -> Result<(), NicError> {
        self.gate("counter_set")?;
        self.nic.counter_set(counter, success, failure)
    }

    fn portal_alloc(
        &self,
        options: PortalOptions,
        queue: Option<Queue>,
        wish: Option<PortalIndex>,
    ) -> Result<PortalIndex, NicError> {
        self.gate("portal_alloc")?;
        self.nic.portal_alloc(options, queue, wish)
    }

    fn portal_free(&self, portal: PortalIndex) -> Result<(), NicError> {
        self.gate("portal_free")?;
        self.nic.portal_free(portal)
    }

    fn portal_enable(&self, portal: PortalIndex, enabled: bool) -> Result<(), NicError> {
        self.gate("portal_enable")?;
        self.nic.portal_enable(portal, enabled)
    }

    unsafe fn attach(
        &self,
        portal: PortalIndex,
        position: Position,
        matching: Matching,
        memory: NonNull<u8>,
        len_bytes: u64,
        entry: Entry,
    ) -> Result<EntryHandle, NicError> {
        self.gate("attach")?;
        // SAFETY: the caller's promise.
        let attached = unsafe {
            self.nic
                .attach(portal, position, matching, memory, len_bytes, entry)
        };
        self.count(1, attached)
    }

    fn unlink(&self, entry: EntryHandle) -> Result<(), NicError> {
        self.gate("unlink")?;
        self.count(-1, self.nic.unlink(entry))
    }

    unsafe fn bind(
        &self,
        memory: NonNull<u8>,
        len_bytes: u64,
        descriptor: Descriptor,
    ) -> Result<DescriptorHandle, NicError> {
        self.gate("bind")?;
        // SAFETY: the caller's promise.
        self.count(1, unsafe { self.nic.bind(memory, len_bytes, descriptor) })
    }

    fn release(&self, descriptor: DescriptorHandle) -> Result<(), NicError> {
        self.gate("release")?;
        self.count(-1, self.nic.release(descriptor))
    }

    fn put(
        &self,
        source: DescriptorHandle,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError> {
        self.gate("put")?;
        self.nic.put(source, ack, target, header)
    }

    fn put_region(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError> {
        self.gate_of("put_region", Some((part, target, header)))?;
        self.nic.put_region(source, part, ack, target, header)
    }

    fn get_region(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: Target,
    ) -> Result<(), NicError> {
        self.gate_of("get_region", Some((part, target, 0)))?;
        self.nic.get_region(destination, part, target)
    }

    fn put_answered(
        &self,
        source: DescriptorHandle,
        part: Part,
        target: Target,
        header: u64,
    ) -> Result<Answer, NicError> {
        self.gate_of("put_answered", Some((part, target, header)))?;
        self.nic.put_answered(source, part, target, header)
    }

    fn get_answered(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: Target,
    ) -> Result<Answer, NicError> {
        self.gate("get_answered")?;
        self.nic.get_answered(destination, part, target)
    }

    fn get(&self, destination: DescriptorHandle, target: Target) -> Result<(), NicError> {
        self.gate("get")?;
        self.nic.get(destination, target)
    }

    fn atomic(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: Target,
        header: u64,
        op: AtomicOp,
        kind: AtomicKind,
    ) -> Result<(), NicError> {
        self.gate("atomic")?;
        self.nic.atomic(source, part, ack, target, header, op, kind)
    }

    fn fetch_atomic(
        &self,
        fetched: DescriptorHandle,
        fetched_offset_bytes: u64,
        source: DescriptorHandle,
        part: Part,
        target: Target,
        header: u64,
        op: AtomicOp,
        kind: AtomicKind,
        compare: u64,
    ) -> Result<(), NicError> {
        self.gate("fetch_atomic")?;
        self.nic.fetch_atomic(
            fetched,
            fetched_offset_bytes,
            source,
            part,
            target,
            header,
            op,
            kind,
            compare,
        )
    }
}
