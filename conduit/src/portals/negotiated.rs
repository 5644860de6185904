//! Payloads that are filled before their message is sent.

use super::core::Portals;
use super::peer::Open;
use super::send::{Keeps, LIMITS, Reserved, Shape};
use super::wire::{Body, Kind};
use crate::conduit::{PrepareRequest, Prepared, SendError};
use crate::prepared_buffers::committed;
use argonet_am::{AmError, Category, MAX_MEDIUM, MessageClass};
use argonet_base::HandlerIndex;
use argonet_nic::portals::Portals as Interface;
use argonet_segment::SharedBytes;

/// What the message of a payload has taken, until its commit or cancel.
pub(super) struct Reserve {
    shape: Shape,
    of: Of,
}

enum Of {
    Request(Reserved),
    Reply(Open),
}

impl<N: Interface> Portals<N> {
    pub(super) fn prepare_payload(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        let category = want.category();
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
            return Ok(self.prepared.add(want, capacity, Reserve { shape, of }));
        }
        Err(SendError::Full)
    }

    pub(super) fn commit_payload(
        &self,
        prepared: &Prepared,
        handler: HandlerIndex,
        args: &[u32],
        len: usize,
    ) {
        prepared.check(args, len);
        let (buffer, Reserve { shape, of }) = self.prepared.take(prepared);
        let bytes = SharedBytes::from_slice(&buffer[..len]);
        let message = committed(prepared, handler, args, bytes);
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
        let (_, Reserve { shape, of }) = self.prepared.take(prepared);
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
