//! Whether messages may go to an endpoint of another process.
//!
//! Only that process knows, so it is asked. An endpoint that may have messages may have them for
//! good, so such an answer is kept.
#![allow(unsafe_code)]

use crate::bound::Subject;
use crate::core::{Engine, Injection};
use crate::events::OpError;
use crate::thread::ThreadCtx;
use argonet_am::ENDPOINTS;
use argonet_base::JobRank;
use argonet_conduit::Conduit;
use core::sync::atomic::{AtomicU32, Ordering};
use parking_lot::RwLock;
use std::collections::HashSet;

/// The state of an index of an endpoint in a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointState {
    /// No endpoint, so far.
    Missing,
    /// One that was created without the capability to have active messages.
    Mute,
    /// One that has active messages.
    Open,
}

impl EndpointState {
    /// As it travels.
    pub(crate) fn number(self) -> u64 {
        self as u64
    }

    fn of_number(number: u64) -> Self {
        match number {
            1 => Self::Mute,
            2 => Self::Open,
            _ => Self::Missing,
        }
    }
}

/// Known states of endpoints, beside the handler tables of this process's endpoints.
#[derive(Default)]
pub(super) struct Asked {
    /// Endpoints of this process that cannot have messages, a bit each.
    ///
    /// Nothing else is published with it (Relaxed).
    mute: AtomicU32,
    /// Endpoints of other processes that have said that they can.
    open_there: RwLock<HashSet<(JobRank, u8)>>,
}

const _: () = assert!(ENDPOINTS <= u32::BITS);

impl<C: Conduit> Engine<C> {
    /// Records, for answers to peers, that an endpoint of this process cannot have messages.
    pub fn mute_endpoint(&self, index: u32) {
        if index < ENDPOINTS {
            let mute = &self.tables.asked.mute;
            mute.fetch_or(1 << index, Ordering::Relaxed);
        }
    }

    /// The state of an index in this process.
    pub(crate) fn own_endpoint(&self, index: u32) -> EndpointState {
        let mute = self.tables.asked.mute.load(Ordering::Relaxed);
        match u8::try_from(index) {
            Ok(index) if self.table(index).is_some() => EndpointState::Open,
            _ if index < ENDPOINTS && mute >> index & 1 == 1 => EndpointState::Mute,
            _ => EndpointState::Missing,
        }
    }

    /// The state of an index in a process.
    ///
    /// Asks that process, unless it is this one, or it has answered before that messages may go
    /// there. Its polls answer; this call waits for the answer.
    ///
    /// # Errors
    /// As [`bound_query`](Self::bound_query).
    pub fn endpoint_state(
        &self,
        ctx: &ThreadCtx,
        rank: JobRank,
        index: u8,
    ) -> Result<EndpointState, OpError> {
        self.permit_messages(ctx, "a question about an endpoint", rank)?;
        if rank == self.rank {
            return Ok(self.own_endpoint(index.into()));
        }
        let open_there = &self.tables.asked.open_there;
        // The first one is there from the start.
        if index == 0 || open_there.read().contains(&(rank, index)) {
            return Ok(EndpointState::Open);
        }
        let mut number = 0;
        let answer = &raw mut number;
        let (nowhere, wait) = (core::ptr::null_mut(), Injection::Blocking);
        // SAFETY: the answer is waited for before the variable ends, and read through the pointer
        // that it was written by.
        let state = unsafe {
            let asked = self.bound_ask(
                ctx,
                rank,
                (Subject::Messages, index.into()),
                [answer, nowhere],
                wait,
            )?;
            self.wait_or_end(ctx, asked)?;
            EndpointState::of_number(answer.read())
        };
        if state == EndpointState::Open {
            open_there.write().insert((rank, index));
        }
        Ok(state)
    }
}
