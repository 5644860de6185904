//! Transfers to and from memory that is not mapped here.
//!
//! Long parts go as puts and gets of their own, short ones are packed into messages that name them;
//! the bytes are read once and written once on either side.

use super::super::bound::{Args, BoundPlace, Flight, Landing};
use super::super::core::{Engine, Injection};
use super::super::events::OpError;
use super::super::limits::internal;
use super::super::location::Target;
use super::super::thread::ThreadCtx;
use super::super::token::Counts;
use super::super::transfer::{Side as Local, Transfer};
use super::call::Direction;
use super::copy::{Ways, walks};
use super::grid::Side;
use super::landing::Scatter;
use super::notice::Notice;
use super::plan::Plan;
use super::space::Space;
use super::walk::{Runs, Walk, parts, together};
use super::wire::{MessageLimits, Naming, lattice_bytes, name_addresses, name_lattice};
use argonet_am::{AmError, Message, MessageClass, Payload};
use argonet_base::JobRank;
use argonet_conduit::{Completion, Conduit, Injected, OpToken, PrepareRequest};
use argonet_event::Event;
use argonet_segment::{SharedBytes, bulk};
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::Arc;

/// Completions of one transfer that go as puts or gets of their own, at most.
const MOST_DIRECT: usize = 4096;

/// Where the kernel copies: from which length on that is worth a call of it.
const WORTH_A_CALL: usize = 4096;

/// A transfer to or from memory that is not mapped here.
#[derive(Clone, Copy)]
pub(super) struct Journey {
    pub(super) direction: Direction,
    pub(super) rank: JobRank,
    pub(super) space: Space,
    pub(super) bytes: usize,
    pub(super) notice: Option<Notice>,
}

/// Why a message or a part was not sent.
enum Stopped {
    /// The first, so that nothing is under way.
    First(OpError),
    /// Another.
    Later(OpError),
}

impl<C: Conduit> Engine<C> {
    /// # Safety
    /// As [`vis_start`](Self::vis_start).
    pub(super) unsafe fn vis_by_messages(
        &self,
        ctx: &ThreadCtx,
        journey: Journey,
        plan: &Plan<'_>,
        injection: Injection,
        counts: Counts,
    ) -> Result<Event, OpError> {
        let direction = journey.direction;
        let (to, from) = (plan.side(Side::To), plan.side(Side::From));
        let direct = self.vis_direct_parts(journey, &to, &from);
        let of_token = match direct {
            Some(parts) if direction == Direction::Put => (parts, parts),
            Some(parts) => (0, parts),
            None => (0, 1),
        };
        let (token, event) = self.token(ctx, counts, direction.category(), of_token, injection)?;
        // SAFETY: the caller's promise.
        let sent = unsafe {
            match (direct, direction) {
                (Some(_), _) => self.vis_direct(ctx, journey, (&to, &from), injection, token),
                (None, Direction::Put) => {
                    self.vis_pack(ctx, journey, (&to, &from), injection, token)
                }
                (None, Direction::Get) => {
                    self.vis_ask(ctx, journey, (&to, &from), injection, token)
                }
            }
        };
        match sent {
            Ok(()) => Ok(event),
            Err(Stopped::First(error)) => {
                self.untoken(ctx, token, of_token)?;
                Err(error)
            }
            // Some of it is on its way, and an error could not say which part.
            Err(Stopped::Later(error)) => self.fatal(&error.to_string()),
        }
    }

    /// How many puts or gets it is, if its parts are long enough for that.
    fn vis_direct_parts(&self, journey: Journey, to: &Runs<'_>, from: &Runs<'_>) -> Option<u32> {
        if journey.notice.is_some() {
            return None;
        }
        let crossed = self.regions().is_everything(journey.space.0) && self.crosses();
        let worth = match crossed {
            true => WORTH_A_CALL,
            // At least two fit a message otherwise.
            false => (self.vis_chunk(journey.direction) / 2).max(1),
        };
        let most = (journey.bytes / worth).min(MOST_DIRECT);
        parts(to.all(), from.all(), most).map(|parts| parts as u32)
    }

    /// Bytes that one message moves at most.
    fn vis_chunk(&self, direction: Direction) -> usize {
        let limits = self.conduit.limits();
        let most = match direction {
            Direction::Put => limits.medium_request,
            Direction::Get => limits.medium_reply,
        };
        most.min(self.vis.chunk(direction))
    }

    /// # Safety
    /// As [`vis_start`](Self::vis_start).
    unsafe fn vis_direct(
        &self,
        ctx: &ThreadCtx,
        journey: Journey,
        (to, from): (&Runs<'_>, &Runs<'_>),
        mut injection: Injection,
        token: OpToken,
    ) -> Result<(), Stopped> {
        let mut is_first = true;
        let sent = together(
            &mut to.all(),
            &mut from.all(),
            usize::MAX,
            |to, from, len| {
                // SAFETY: part of either side.
                let sent =
                    unsafe { self.vis_part(ctx, journey, (to, from, len), injection, token) };
                injection = Injection::Blocking;
                let was_first = core::mem::replace(&mut is_first, false);
                let lost = match &sent {
                    Err(OpError::Am(error)) if !was_first => self.lost_by(error),
                    _ => None,
                };
                if let Some(peer) = lost {
                    // The parts before it have ended so.
                    self.end_by_loss(peer, token, Completion::Remote, 1);
                    if journey.direction == Direction::Put {
                        self.end_by_loss(peer, token, Completion::Local, 1);
                    }
                    return Ok(());
                }
                sent.map_err(|error| match was_first {
                    true => Stopped::First(error),
                    false => Stopped::Later(error),
                })
            },
        );
        sent.map(|_| ())
    }

    /// # Safety
    /// As [`vis_start`](Self::vis_start); the part is of both sides.
    unsafe fn vis_part(
        &self,
        ctx: &ThreadCtx,
        journey: Journey,
        (to, from, len): (usize, usize, usize),
        injection: Injection,
        token: OpToken,
    ) -> Result<(), OpError> {
        let Journey {
            direction,
            rank,
            space,
            ..
        } = journey;
        let (address, side) = match direction {
            Direction::Put => (to, Local::Put(with_exposed_provenance(from))),
            Direction::Get => (from, Local::Get(with_exposed_provenance_mut(to))),
        };
        let address = address as u64;
        let target = match space {
            Space::SEGMENT => Target::Segment {
                rank,
                offset: self.offset_of(rank, address),
            },
            Space(endpoint) => Target::Bound(BoundPlace {
                rank,
                endpoint,
                address,
            }),
        };
        let transfer = Transfer { target, side, len };
        // SAFETY: the caller's promise; a part has bytes.
        let injected = unsafe {
            match self.transfer_here(ctx, transfer)? {
                true => Injected::Complete,
                false => self.launch(ctx, transfer, token, injection)?,
            }
        };
        if injected == Injected::Complete {
            self.complete(token, Completion::Remote, 1);
        }
        if injected != Injected::Pending && direction == Direction::Put {
            self.complete(token, Completion::Local, 1);
        }
        Ok(())
    }

    /// Packs the bytes of this side and sends them.
    ///
    /// # Safety
    /// As [`vis_start`](Self::vis_start).
    unsafe fn vis_pack(
        &self,
        ctx: &ThreadCtx,
        journey: Journey,
        (to, from): (&Runs<'_>, &Runs<'_>),
        mut injection: Injection,
        token: OpToken,
    ) -> Result<(), Stopped> {
        let landing = match journey.notice {
            Some(notice) => Landing::Noticed(Arc::new(notice.copied())),
            None => Landing::Put,
        };
        let op = self.vis_takes_off(journey, token, landing);
        let chunk = self.vis_chunk(Direction::Put);
        let (mut there, mut here) = (to.all(), from.all());
        let (mut name, mut left) = (Vec::new(), journey.bytes);
        while left > 0 {
            let limits = MessageLimits {
                message: self.conduit.limits().medium_request,
                bytes: chunk.min(left),
                carries: true,
            };
            let (naming, bytes) = name_next(&mut name, to, &mut there, limits);
            let args = Args::pack([op, journey.space.code(naming), name.len() as u64]);
            let want = PrepareRequest {
                to: journey.rank,
                class: MessageClass::Request,
                nargs: args.words().len(),
                least: name.len() + bytes,
                most: name.len() + bytes,
                offset: None,
            };
            self.bound.flights.expect_one_more(op);
            let mut prepared = match self.prepare(ctx, &want, injection) {
                Ok(prepared) => prepared,
                Err(error) => {
                    return self.vis_stopped((journey.rank, op), left == journey.bytes, error);
                }
            };
            assert!(
                prepared.capacity() >= name.len() + bytes,
                "a conduit prepares at least the bytes asked for"
            );
            // SAFETY: the conduit is this engine's; the buffer has room for both, as was just
            // checked; the source is readable by the caller's promise, and another place than the
            // buffer.
            unsafe {
                let buffer = prepared.buffer().as_mut_ptr();
                bulk::copy(buffer, name.as_ptr(), name.len());
                let mut line = Walk::Line {
                    address: buffer.add(name.len()).expose_provenance(),
                    len: bytes,
                };
                walks(&mut line, &mut here, bytes, Ways::default());
            }
            let len = name.len() + bytes;
            if let Err(error) = self.commit(ctx, prepared, internal::VIS_PUT, args.words(), len) {
                return self.vis_stopped((journey.rank, op), left == journey.bytes, error);
            }
            injection = Injection::Blocking;
            left -= bytes;
        }
        self.vis_has_left(op);
        Ok(())
    }

    /// Asks for the bytes of the peer's side.
    ///
    /// # Safety
    /// As [`vis_start`](Self::vis_start).
    unsafe fn vis_ask(
        &self,
        ctx: &ThreadCtx,
        journey: Journey,
        (to, from): (&Runs<'_>, &Runs<'_>),
        mut injection: Injection,
        token: OpToken,
    ) -> Result<(), Stopped> {
        // SAFETY: the lists are there until the operation is complete, as the caller promises, and
        // so long it is under way.
        let scatter = Arc::new(unsafe { Scatter::new(to) });
        let op = self.vis_takes_off(journey, token, Landing::Scatter(Arc::clone(&scatter)));
        let chunk = self.vis_chunk(Direction::Get);
        let (mut there, mut here) = (from.all(), to.all());
        let (mut name, mut left) = (Vec::new(), journey.bytes);
        while left > 0 {
            let limits = MessageLimits {
                message: self.conduit.limits().medium_request,
                bytes: chunk.min(left),
                carries: false,
            };
            let (naming, bytes) = name_next(&mut name, from, &mut there, limits);
            let piece = scatter.expect(here.place(), bytes);
            here.skip_all(bytes);
            let space = journey.space.code(naming);
            let args = Args::pack([op, piece, space, bytes as u64]);
            let message = Message {
                handler: internal::VIS_GET,
                args: args.words(),
                payload: Payload::Medium(SharedBytes::from_slice(&name)),
            };
            self.bound.flights.expect_one_more(op);
            if let Err(error) = self.request(ctx, journey.rank, &message, injection) {
                return self.vis_stopped((journey.rank, op), left == journey.bytes, error);
            }
            injection = Injection::Blocking;
            left -= bytes;
        }
        self.vis_has_left(op);
        Ok(())
    }

    /// An operation begins, of which it is not known yet how many messages it is: it is not
    /// complete before [`vis_has_left`](Self::vis_has_left).
    fn vis_takes_off(&self, journey: Journey, token: OpToken, landing: Landing) -> u64 {
        self.bound.flights.begin(Flight {
            peer: journey.rank,
            token,
            landing,
            coming: 1,
            landing_now: 0,
        })
    }

    /// All messages of an operation have been sent.
    fn vis_has_left(&self, op: u64) {
        if let Some(flight) = self.bound.flights.expect_one_less(op) {
            self.bound_landed(flight);
        }
    }

    /// A message could not be sent; an operation whose peer is lost ends as those under way.
    fn vis_stopped(
        &self,
        (rank, op): (JobRank, u64),
        is_first: bool,
        error: AmError,
    ) -> Result<(), Stopped> {
        match is_first || self.lost_by(&error).is_some() {
            true => self
                .not_sent(rank, op, error)
                .map_err(|error| Stopped::First(error.into())),
            false => Err(Stopped::Later(error.into())),
        }
    }
}

/// Names the next bytes of a side, by addresses or by a lattice, whichever takes less room.
fn name_next(
    name: &mut Vec<u8>,
    runs: &Runs<'_>,
    walk: &mut Walk<'_>,
    limits: MessageLimits,
) -> (Naming, usize) {
    if let Runs::Lattice(lattice) = runs {
        let len = lattice_bytes(lattice);
        if len <= limits.message / 2 {
            name_lattice(name, lattice, walk.place());
            let bytes = match limits.carries {
                true => limits.bytes.min(limits.message - len),
                false => limits.bytes,
            };
            walk.skip_all(bytes);
            return (Naming::Lattice, bytes);
        }
    }
    (Naming::Addresses, name_addresses(name, walk, limits))
}
