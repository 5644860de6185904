//! Whole engines, one a rank, each a coroutine of one thread.

use crate::boot::{Abort, Job, SimBoot};
use crate::clock::{Place, Step, Trace};
use crate::cluster::{ChannelNode, Cluster, Node};
use crate::config::SimConfig;
use crate::fiber::{End, Fiber, Order, Strand};
use crate::random::Random;
use argonet_am::{AmError, HandlerTable, Registered};
use argonet_base::JobRank;
use argonet_conduit::{Conduit, ThreadMode};
use argonet_engine::{
    BarrierKind, Engine, EngineConfig, Internals, ThreadCtx, WaitMode, WaitPolicy,
};
use argonet_event::HandleTable;
use argonet_segment::{OwnSegment, SegmentError};
use core::cell::RefCell;
use core::fmt;
use core::time::Duration;
use parking_lot::Mutex;
use std::rc::Rc;
use std::sync::Arc;

/// Steps of a run, at most: many times as many as the longest needs.
const MOST_STEPS: u64 = 100_000_000;

/// How a job is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobConfig {
    /// The cluster.
    pub sim: SimConfig,
    /// How ranks wait.
    pub policy: WaitPolicy,
    /// Explicit operations of a rank, at most.
    pub operations: u32,
    /// All ranks must be done so long after faults have stopped.
    pub patience: Duration,
}

impl JobConfig {
    /// A job on a cluster, with a policy that spins little, and 30 s of virtual patience.
    #[must_use]
    pub fn new(sim: SimConfig) -> Self {
        Self {
            sim,
            policy: WaitPolicy {
                spins: 5,
                yields: 3,
                room: 1,
                gives_way: false,
            },
            operations: 1024.min(HandleTable::MAX_OPERATIONS),
            patience: Duration::from_secs(30),
        }
    }
}

/// A conduit whose ranks share a virtual clock and one thread.
pub trait Simulated: Conduit {
    /// Whether messages of one class between two ranks arrive in the order in which they were sent.
    const IS_ORDERED: bool;

    /// Computes for a while without calling the library, in virtual time.
    fn compute(&self, time: Duration);

    /// Whether everything that this rank sent has reached its target, and nothing is kept for it
    /// any more.
    fn is_delivered(&self) -> bool;

    /// Operations and messages under way, for reports.
    fn under_way(&self) -> Vec<String>;
}

/// One rank, as its program sees it.
pub struct Rank<C: Conduit = ChannelNode> {
    /// Its engine.
    pub engine: Engine<C>,
    /// Its one thread.
    pub ctx: ThreadCtx,
    /// Its segment.
    pub segment: OwnSegment,
    clock: Arc<crate::clock::Clock>,
    job: Arc<Mutex<Job>>,
    /// The present work of the program, and its begin, for reports.
    doing: RefCell<(String, u64)>,
}

impl<C: Simulated> Rank<C> {
    /// Notes the work of the program from now on; a report of a run that hangs names it.
    pub fn doing(&self, what: fmt::Arguments<'_>) {
        let mut doing = self.doing.borrow_mut();
        doing.0.clear();
        // Writing to a string cannot fail.
        let _ = fmt::write(&mut doing.0, what);
        doing.1 = self.clock.now_ns();
    }

    /// Virtual time.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.now_ns())
    }

    /// Drains, finalizes, and goes on acknowledging until no rank needs it any more.
    fn leave(&self) -> Result<(), AmError> {
        self.doing(format_args!("finalizes"));
        self.engine.drain(&self.ctx, BarrierKind::Finalize)?;
        self.engine.boot().finalized();
        self.doing(format_args!(
            "has finalized, and waits for its peers to be done"
        ));
        let rank = self.engine.rank().0;
        loop {
            self.engine.poll(&self.ctx)?;
            let conduit = self.engine.conduit();
            let quiet = conduit.is_quiescent() && conduit.is_delivered();
            if self.job.lock().rests(rank, quiet, self.engine.size()) {
                return Ok(());
            }
            conduit.sleep(Some(Duration::from_micros(200)), conduit.epoch());
        }
    }

    fn state(&self) -> String {
        let (what, since_ns) = &*self.doing.borrow();
        let mut text = format!("rank {}: {what}, since {since_ns} ns", self.engine.rank());
        for line in self.engine.conduit().under_way() {
            text += "\n    ";
            text += &line;
        }
        text
    }
}

impl<C: Conduit> Drop for Rank<C> {
    fn drop(&mut self) {
        self.ctx.retire();
    }
}

/// Why a run is a failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A check failed: the program of a rank panicked.
    Panicked {
        /// The rank that panicked.
        rank: JobRank,
        /// Its message.
        message: String,
    },
    /// Some ranks were not done in time; the states of all.
    Stalled(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Panicked { rank, message } => write!(f, "rank {rank}: {message}"),
            Failure::Stalled(states) => write!(f, "the job does not end:\n{states}"),
        }
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The first thing that went wrong in a way that must not be.
    pub failure: Option<Failure>,
    /// How a rank ended the job, if one did.
    pub abort: Option<Abort>,
    /// Ranks that slept until their time was over although something had come.
    pub overslept: Vec<u32>,
    /// A rank died with which no survivor had tried to connect: none could notice.
    pub died_unknown: bool,
    /// The same number for the same course of events.
    pub digest: u64,
    /// Things that happened.
    pub events: u64,
    /// Virtual time that it took.
    pub took: Duration,
    /// Connections that were made, and those that broke.
    pub connections: (u64, u64),
}

/// Runs a job: `register` puts each rank's handlers into its table, and its result goes to the
/// rank's program, `body`.
///
/// After the program a rank drains and finalizes.
///
/// # Errors
/// The error of the system for the memory of segments and stacks.
pub fn run<T: 'static>(
    config: &JobConfig,
    trace: Option<Trace>,
    register: impl FnMut(JobRank, &mut HandlerTable) -> Result<T, AmError>,
    body: impl Fn(&Rank, T) + 'static,
) -> Result<Outcome, StartError> {
    let nodes = |cluster: &Cluster, rank, registered, fiber| {
        let Node { conduit, segment } = cluster.node(rank, registered, Some(fiber))?;
        let place = conduit.place().clone();
        Ok(Seat {
            conduit,
            segment,
            place,
        })
    };
    let Ran {
        cluster,
        ranks,
        failure,
        abort,
    } = run_over(config, trace, nodes, register, body)?;
    let deaths = config.sim.faults.deaths.iter();
    let dead: Vec<u32> = deaths.map(|(rank, _)| *rank).collect();
    let survivors = (0..config.sim.ranks).filter(|rank| !dead.contains(rank));
    let died_unknown = cluster.clock().with(|state| {
        let is_known = |peer: u32| survivors.clone().any(|rank| state.knows(rank, peer));
        dead.iter().any(|peer| !is_known(*peer))
    });
    drop(ranks);
    Ok(Outcome {
        died_unknown,
        ..outcome(&cluster, failure, abort)
    })
}

/// A rank that has not begun: its conduit, its segment, and where it is in the cluster.
pub(crate) struct Seat<C> {
    pub(crate) conduit: C,
    pub(crate) segment: OwnSegment,
    pub(crate) place: Place,
}

/// A job that has ended.
pub(crate) struct Ran<C: Conduit> {
    pub(crate) cluster: Cluster,
    pub(crate) ranks: Vec<Rc<Rank<C>>>,
    pub(crate) failure: Option<Failure>,
    pub(crate) abort: Option<Abort>,
}

/// The outcome of a run, as far as its cluster knows it.
pub(crate) fn outcome(
    cluster: &Cluster,
    failure: Option<Failure>,
    abort: Option<Abort>,
) -> Outcome {
    Outcome {
        failure,
        abort,
        overslept: cluster.clock().with(|state| state.overslept.clone()),
        died_unknown: false,
        digest: cluster.digest(),
        events: cluster.clock().with(|state| state.events),
        took: cluster.now(),
        connections: cluster.connections(),
    }
}

/// Runs a job over the conduits that `seat` makes.
pub(crate) fn run_over<C: Simulated + 'static, T: 'static>(
    config: &JobConfig,
    trace: Option<Trace>,
    mut seat: impl FnMut(&Cluster, u32, Registered, Arc<Fiber>) -> Result<Seat<C>, StartError>,
    mut register: impl FnMut(JobRank, &mut HandlerTable) -> Result<T, AmError>,
    body: impl Fn(&Rank<C>, T) + 'static,
) -> Result<Ran<C>, StartError> {
    let cluster = Cluster::new(config.sim.clone());
    if let Some(trace) = trace {
        cluster.trace(trace);
    }
    let job = Arc::new(Mutex::new(Job::default()));
    let body = Rc::new(body);
    let mut random = Random::fork(config.sim.seed, 2);
    let (mut ranks, mut strands) = (Vec::new(), Vec::new());
    for rank in 0..config.sim.ranks {
        let mut handlers = HandlerTable::default();
        let internals = Internals::register(&mut handlers)?;
        let input = register(JobRank(rank), &mut handlers)?;
        let fiber = Arc::new(Fiber::default());
        let seat = seat(&cluster, rank, handlers.registered(), Arc::clone(&fiber))?;
        let rank_state = Rc::new(rank_of(config, &job, seat, handlers, internals));
        let (mine, body) = (Rc::clone(&rank_state), Rc::clone(&body));
        let strand = Strand::new(fiber, move || {
            body(&mine, input);
            if let Err(error) = mine.leave() {
                panic!("{error}");
            }
        });
        ranks.push(rank_state);
        strands.push(strand.map_err(StartError::Stack)?);
        // Ranks do not start at the same time.
        let begins_ns = random.range(0, 50_000);
        cluster.clock().with(|state| state.alarm(rank, begins_ns));
    }
    let horizon_ns = config.sim.faults.stop_ns + config.patience.as_nanos() as u64;
    cluster.clock().with(|state| {
        state.horizon_ns = horizon_ns;
        state.left = MOST_STEPS;
    });
    let failure = schedule(&cluster, &job, &ranks, &mut strands, horizon_ns);
    let abort = job.lock().abort.clone();
    Ok(Ran {
        cluster,
        ranks,
        failure,
        abort,
    })
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The system refuses memory for segments.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The handlers do not fit.
    #[error(transparent)]
    Handlers(#[from] AmError),
    /// The system refuses memory for a rank's stack.
    #[error("no memory for a rank's stack: {0}")]
    Stack(std::io::Error),
    /// An interface in software cannot be made, or used by its conduit.
    #[error("no interface: {0}")]
    Interface(Box<dyn std::error::Error + Send + Sync>),
}

fn rank_of<C: Simulated>(
    config: &JobConfig,
    job: &Arc<Mutex<Job>>,
    seat: Seat<C>,
    handlers: HandlerTable,
    internals: Internals,
) -> Rank<C> {
    let Seat {
        conduit,
        segment,
        place,
    } = seat;
    let clock = Arc::clone(&place.clock);
    let config = EngineConfig {
        boot: Arc::new(SimBoot {
            place,
            size: config.sim.ranks,
            job_id: config.sim.seed,
            job: Arc::clone(job),
        }),
        conduit,
        handlers,
        internals,
        directory: Arc::clone(segment.directory()),
        // No other rank's segment can be mapped here.
        segment_len: Arc::new(|_| 0),
        segment_base: Arc::new(|_| 0),
        policy: config.policy,
        wait: WaitMode::Auto,
        stall: None,
        mode: ThreadMode::Seq,
        operations: config.operations,
        clock: Box::new({
            let clock = Arc::clone(&clock);
            move || Duration::from_nanos(clock.now_ns())
        }),
    };
    // SAFETY: this rank is a coroutine of one thread, with one context. Programs of the simulator
    // are those of this project's tests, which keep the contract; none of them holds a slice of a
    // segment.
    #[allow(unsafe_code)]
    let engine = unsafe { Engine::new(config) };
    Rank {
        engine,
        ctx: ThreadCtx::uncounted(),
        segment,
        clock,
        job: Arc::clone(job),
        doing: RefCell::new(("has not begun".to_owned(), 0)),
    }
}

/// Lets ranks run, in the order of virtual time, until all are done, one has ended the job, or a
/// check has failed.
///
/// Then ends those that are left.
fn schedule<C: Simulated>(
    cluster: &Cluster,
    job: &Mutex<Job>,
    ranks: &[Rc<Rank<C>>],
    strands: &mut [Strand],
    horizon_ns: u64,
) -> Option<Failure> {
    let mut ended = vec![false; strands.len()];
    let mut failure = None;
    let is_over = |ended: &[bool]| {
        cluster.clock().with(|state| {
            let mut ranks = (0..).zip(ended);
            ranks.all(|(rank, ended)| *ended || state.plan.is_dead(rank, state.now_ns))
        })
    };
    while failure.is_none() && job.lock().abort.is_none() {
        let end = match cluster.clock().with(|state| state.step(horizon_ns)) {
            Step::Other => continue,
            Step::Run(rank) => strands[rank as usize]
                .resume(Order::Go)
                .map(|end| (rank, end)),
            // The dead may be all that is left.
            Step::Nothing if is_over(&ended) => break,
            Step::Nothing => {
                let states = ranks.iter().map(|rank| rank.state());
                let states: Vec<String> = states.collect();
                failure = Some(Failure::Stalled(states.join("\n")));
                continue;
            }
        };
        if let Some((rank, end)) = end {
            ended[rank as usize] = true;
            if let End::Panicked(message) = end {
                let rank = JobRank(rank);
                failure = Some(Failure::Panicked { rank, message });
            }
            if is_over(&ended) {
                break;
            }
        }
    }
    job.lock().over = true;
    for (strand, ended) in strands.iter_mut().zip(&ended) {
        // Unwinding runs no code that waits.
        if !ended && strand.resume(Order::End).is_none() {
            unreachable!("a rank suspends itself while it unwinds");
        }
    }
    failure
}
