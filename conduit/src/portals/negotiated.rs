//! Payloads that are filled before their message is sent.

use super::core::Portals;
use super::peer::Open;
use super::send::{Keeps, LIMITS, Reserved, Shape};
use super::wire::{Body, Kind};
use crate::conduit::{PrepareRequest, Prepared, SendError};
use argonet_am::{AmError, Category, MAX_MEDIUM, Message, MessageClass, Payload};
use argonet_base::HandlerIndex;
use argonet_base::kept::Kept;
use argonet_nic::portals::Portals as Interface;
use argonet_segment::SharedBytes;
use std::collections::BTreeMap;

/// Payloads until their commit or cancel, by the address of the buffer.
pub(super) type Reserves = BTreeMap<usize, Reserve>;

pub(super) struct Reserve {
    buffer: Kept<u8>,
    shape: Shape,
    of: Of,
}

enum Of {
    Request(Reserved),
    Reply(Open),
}

impl<N: Interface> Portals<N> {
    pub(super) fn prepare_payload(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        let category = match want.offset {
            Some(_) => Category::Long,
            None => Category::Medium,
        };
        LIMITS.check(self.rank, want.to, category, want.nargs, want.least)?;
        if let Some(offset) = want.offset {
            self.check_place(want.to, offset, want.most)?;
        }
        // A long is prepared for all of `most`, a medium for the largest of three capacities that
        // there is room for: `most`, a chunk, or the least.
        let most = match category {
            Category::Long => want.most,
            _ => want.most.min(MAX_MEDIUM),
        };
        let chunk = self.packed_bytes - Body::of(Kind::Medium, want.nargs, 0).len();
        let capacities = match category {
            Category::Long => [most; 3],
            _ => [most, chunk.clamp(want.least, most), want.least],
        };
        let peer = self.peer(want.to);
        let offset = want.offset.map_or(0, |offset| offset.0);
        for capacity in capacities {
            let shape = self.shape(category, want.nargs, capacity, offset);
            let mut state = peer.state.lock();
            let of = match want.class {
                MessageClass::Reply => match state.open.pop() {
                    Some(open) => Of::Reply(open),
                    None => {
                        let (rank, to) = (self.rank, want.to);
                        return Err(AmError::RepliedTwice { rank, to }.into());
                    }
                },
                MessageClass::Request => {
                    let temporary = shape.kind == Kind::SplitLong && capacity > 0;
                    match self.reserve(&mut state, &shape, temporary) {
                        Ok(reserved) => Of::Request(reserved),
                        Err(SendError::Full) => continue,
                        Err(error) => return Err(error),
                    }
                }
            };
            drop(state);
            let buffer = Kept::new(vec![0; capacity.max(1)].into());
            let start = buffer.as_ptr().cast::<u8>();
            let reserve = Reserve { buffer, shape, of };
            self.reserves.lock().insert(start.addr(), reserve);
            // SAFETY: the buffer is kept, and no other code touches it, until commit or cancel.
            return Ok(unsafe { Prepared::new(*want, start, capacity, start.addr(), 0) });
        }
        Err(SendError::Full)
    }

    fn take_reserve(&self, prepared: &Prepared) -> Reserve {
        let (position, _) = prepared.place();
        let reserve = self.reserves.lock().remove(&position);
        reserve.expect("a payload that this conduit has prepared")
    }

    pub(super) fn commit_payload(
        &self,
        prepared: &Prepared,
        handler: HandlerIndex,
        args: &[u32],
        len: usize,
    ) {
        assert_eq!(
            args.len(),
            prepared.nargs(),
            "a commit gives the arguments prepared for"
        );
        assert!(
            len <= prepared.capacity(),
            "a commit sends at most the prepared bytes"
        );
        let Reserve { buffer, shape, of } = self.take_reserve(prepared);
        let buffer = buffer.give();
        let bytes = SharedBytes::from_slice(&buffer[..len]);
        let message = Message {
            handler,
            args,
            payload: match prepared.offset() {
                Some(offset) => Payload::Long(bytes, offset),
                None => Payload::Medium(bytes),
            },
        };
        let peer = self.peer(prepared.to());
        // As it was prepared, if shorter; the cost stays as it was paid.
        let shape = Shape {
            cost: shape.cost,
            ..self.shape_as(shape.kind, args.len(), len)
        };
        let sent = match of {
            Of::Request(reserved) => {
                let launched = self.launch(peer, &shape, reserved, &message, Keeps::Call);
                launched.map(drop)
            }
            Of::Reply(open) => {
                let answered = self.answer(peer, open, &message, &shape);
                answered.map_err(SendError::from)
            }
        };
        if let Err(error) = sent {
            // A commit returns no error; the next poll reports it.
            self.fail_later(error);
        }
    }

    pub(super) fn cancel_payload(&self, prepared: &Prepared) {
        let Reserve { shape, of, .. } = self.take_reserve(prepared);
        let peer = self.peer(prepared.to());
        match of {
            Of::Request(reserved) => {
                if shape.kind.is_split() {
                    self.return_half(peer, &reserved);
                }
                self.abandon(peer, reserved.chunk, shape.cost);
            }
            Of::Reply(open) => peer.state.lock().open.push(open),
        }
    }
}
