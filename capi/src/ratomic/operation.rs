//! One operation, and where it takes place.

use core::ffi::c_void;
use core::sync::atomic::{Ordering, fence};

use argonet_base::JobRank;
use argonet_base::gasnet::number32;
use argonet_engine::{self, Atomic, AtomicWord, DataType, Injection, OpError, Target, ThreadCtx};
use argonet_event::Event;

use crate::context::communicating;
use crate::flags::{IMMEDIATE, PEER_OFFSET, RANK_IS_JOBRANK, SELF_OFFSET};
use crate::job::{Job, Team, fatal, member};
use crate::ratomic::checks;
use crate::ratomic::domain::{Domain, domain};
use crate::rma::{Remote, started};

/// `GEX_FLAG_AD_ACQ`, `GEX_FLAG_AD_REL`.
pub(super) const ACQUIRE: u32 = number32("GEX_FLAG_AD_ACQ");
pub(super) const RELEASE: u32 = number32("GEX_FLAG_AD_REL");

/// The operation that C asks for, without its values.
pub(super) struct Operation<'a> {
    pub(super) function: &'static str,
    pub(super) domain: &'a Domain,
    /// As C has it: of the team, or of the job.
    rank: u32,
    /// As C has it: an address of the other process, or an offset.
    pub(super) addr: *mut c_void,
    op: u32,
    pub(super) flags: u32,
}

impl<'a> Operation<'a> {
    /// # Safety
    /// Null, or a domain that has not been destroyed.
    pub(super) unsafe fn new(
        function: &'static str,
        ad: *const Domain,
        rank: u32,
        addr: *mut c_void,
        op: u32,
        flags: u32,
    ) -> Self {
        Self {
            function,
            // SAFETY: this function's contract.
            domain: unsafe { domain(ad, function) },
            rank,
            addr,
            op,
            flags,
        }
    }

    /// Starts it; [`Event::NO_OP`] if it was not.
    pub(super) fn explicit<T: AtomicWord>(&self, result: *mut T, op1: T, op2: T) -> Event {
        self.checked(result, op1, op2, |job, ctx, target, what, result| {
            let (engine, injection) = (&job.joined.engine, self.injection());
            // SAFETY: the caller's result, which it leaves alone until the completion that it asked
            // for.
            let outcome = unsafe { engine.atomic_start(ctx, target, what, result, injection) };
            started(self.function, injection, outcome).unwrap_or(Event::NO_OP)
        })
    }

    /// Starts it among the implicit ones; false if it was not.
    pub(super) fn implicit<T: AtomicWord>(&self, result: *mut T, op1: T, op2: T) -> bool {
        self.checked(result, op1, op2, |job, ctx, target, what, result| {
            let (engine, injection) = (&job.joined.engine, self.injection());
            // SAFETY: as above.
            let outcome: Result<(), OpError> =
                unsafe { engine.atomic_start_implicit(ctx, target, what, result, injection) };
            started(self.function, injection, outcome).is_some()
        })
    }

    fn injection(&self) -> Injection {
        match self.flags & IMMEDIATE {
            0 => Injection::Blocking,
            _ => Injection::Immediate,
        }
    }

    /// Checks it and calls `f` with it as the engine takes it.
    #[inline]
    fn checked<T: AtomicWord, R>(
        &self,
        result: *mut T,
        operand1: T,
        operand2: T,
        f: impl FnOnce(&'static Job, &ThreadCtx, Target, Atomic<T>, *mut T) -> R,
    ) -> R {
        communicating(self.function, |job, ctx| {
            let operation = self.operation(T::TYPE);
            let rank = self.rank();
            if job.debug {
                checks::flags(self, job, rank);
            }
            let target = self.target(job, ctx, rank, size_of::<T>());
            let result = match operation.is_fetching() {
                true => self.result(result, size_of::<T>()),
                false => result,
            };
            if job.debug && operation.is_fetching() {
                checks::result(self, job, target, result.addr(), size_of::<T>());
            }
            let what = Atomic {
                operation,
                operand1,
                operand2,
            };
            // The processor's operations order all else by themselves, but for a load after stores
            // and a store before loads.
            if self.flags & RELEASE != 0 && operation == argonet_engine::Operation::Get {
                fence(Ordering::SeqCst);
            }
            let outcome = f(job, ctx, target, what, result.cast());
            if self.flags & ACQUIRE != 0 && operation == argonet_engine::Operation::Set {
                fence(Ordering::SeqCst);
            }
            outcome
        })
    }

    /// One operation that the domain has.
    fn operation(&self, dt: DataType) -> argonet_engine::Operation {
        let Self { domain, op, .. } = *self;
        match argonet_engine::Operation::try_from(op) {
            Ok(known) if domain.dt == dt && domain.operations & op != 0 => known,
            _ => self.no_operation(dt),
        }
    }

    #[cold]
    fn no_operation(&self, dt: DataType) -> ! {
        let Self { domain, op, .. } = *self;
        let why = match argonet_engine::Operation::try_from(op) {
            _ if domain.dt != dt => format!(
                "ad has {}; this call is for {}",
                domain.dt.name(),
                dt.name()
            ),
            Ok(known) => format!(
                "opcode is {}, which is not among the operations of ad; give it to gex_AD_Create",
                known.name()
            ),
            Err(_) => format!("opcode is {op:#x}; give one of GEX_OP_*, not several"),
        };
        fatal(self.function, &why)
    }

    /// The rank in the team.
    fn rank(&self) -> u32 {
        let team = self.domain.team();
        if self.flags & RANK_IS_JOBRANK == 0 {
            return member(team, self.rank, self.function, "tgt_rank");
        }
        match team.rank_of(JobRank(self.rank)) {
            Some(rank) => rank,
            None => fatal(
                self.function,
                &format!(
                    "tgt_rank is {} with GEX_FLAG_RANK_IS_JOBRANK; that rank of the job is no member of ad's team",
                    self.rank
                ),
            ),
        }
    }

    fn target(&self, job: &Job, ctx: &ThreadCtx, rank: u32, bytes: usize) -> Target {
        let is_offset = self.flags & PEER_OFFSET != 0;
        let team: &Team = self.domain.team();
        if !self.addr.addr().is_multiple_of(bytes) || (self.addr.is_null() && !is_offset) {
            fatal(
                self.function,
                &format!(
                    "tgt_addr is {:p} of rank {}; a word of {} lies at a multiple of {bytes}",
                    self.addr,
                    team.job_rank(rank),
                    self.domain.dt.name()
                ),
            );
        }
        let remote = Remote {
            function: self.function,
            team,
            rank,
            at: self.addr,
            is_offset,
            bytes,
            argument: "tgt_addr",
        };
        remote.find(job, ctx)
    }

    /// Where the value before goes.
    fn result<T>(&self, result: *mut T, bytes: usize) -> *mut T {
        if self.flags & SELF_OFFSET != 0 {
            let endpoint = self.domain.team().endpoint();
            return endpoint
                .own_offset(result.addr(), bytes, self.function)
                .cast();
        }
        if result.is_null() {
            fatal(
                self.function,
                "result_p is null; the operation fetches a value",
            );
        }
        result
    }
}
