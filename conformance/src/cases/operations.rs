//! Puts and gets under way, with their buffers.

use crate::bench::Bench;
use crate::log::token;
use crate::rig::Rig;
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::{Completion, Conduit, Injected, SMALL_PUT, SendError};

/// Bytes on both sides of a get's data, which must not change; on both sides of puts, too.
pub(super) const MARGIN: usize = 64;

/// Operations of one rank with their buffers, which live until the operations are complete.
pub(super) struct Operations {
    rank: u32,
    next: u64,
    /// Handle, completions that are due, buffer.
    pub(super) open: Vec<(u64, Due, Vec<u8>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) local: bool,
    pub(super) remote: bool,
}

pub(super) const NOTHING: Due = Due {
    local: false,
    remote: false,
};

/// Injects, with polls while there is no room.
fn admitted<R: Rig>(
    bench: &mut Bench<R>,
    what: &str,
    mut inject: impl FnMut(&mut Bench<R>) -> Result<Injected, SendError>,
) -> Injected {
    let mut result = Injected::Complete;
    bench.until(what, |bench| match inject(bench) {
        Err(SendError::Full) => false,
        Err(error) => bench.fail(&error.to_string()),
        Ok(injected) => {
            result = injected;
            true
        }
    });
    result
}

impl Operations {
    pub(super) fn of(rank: u32) -> Self {
        Self {
            rank,
            next: 1,
            open: Vec::new(),
        }
    }

    /// Keeps the buffer of an operation that was injected; gives it back where the operation is
    /// complete.
    fn injected(
        &mut self,
        injected: Injected,
        mut due: Due,
        mut buffer: Vec<u8>,
    ) -> (u64, Option<Vec<u8>>) {
        let handle = self.next;
        self.next += 1;
        if injected == Injected::Complete {
            return (handle, Some(buffer));
        }
        if injected == Injected::Local {
            // The conduit does not read it any more.
            due.local = false;
            buffer.fill(0xee);
        }
        self.open.push((handle, due, buffer));
        (handle, None)
    }

    /// Puts, with polls while there is no room.
    ///
    /// The source lies as many bytes behind an aligned place as there are to an alignment of 64 at
    /// the target.
    pub(super) fn put<R: Rig>(
        &mut self,
        bench: &mut Bench<R>,
        to: u32,
        offset: u64,
        bytes: &[u8],
    ) -> u64 {
        let shift = (64 - offset % 64) as usize % 64;
        let mut buffer = vec![0; shift];
        buffer.extend_from_slice(bytes);
        let (rank, op, at) = (self.rank, token(self.next), buffer[shift..].as_ptr());
        let len = bytes.len();
        let injected = admitted(bench, "room for a put", |bench| {
            // SAFETY: the buffer stays in `open` while the put is pending; its heap memory does
            // not move.
            unsafe {
                bench
                    .at(rank)
                    .put(JobRank(to), SegmentOffset(offset), at, len, op)
            }
        });
        assert!(
            len > SMALL_PUT || injected != Injected::Pending,
            "a put of {len} bytes may still read its source"
        );
        self.injected(
            injected,
            Due {
                local: true,
                remote: true,
            },
            buffer,
        )
        .0
    }

    /// Gets into a buffer filled with `0x5a`; the bytes, if they are there already.
    pub(super) fn get<R: Rig>(
        &mut self,
        bench: &mut Bench<R>,
        from: u32,
        offset: u64,
        len: usize,
        place: usize,
    ) -> (u64, Option<Vec<u8>>) {
        let mut buffer = vec![0x5a; len + place + 2 * MARGIN];
        let (rank, op) = (self.rank, token(self.next));
        let at = buffer[MARGIN + place..].as_mut_ptr();
        let injected = admitted(bench, "room for a get", |bench| {
            // SAFETY: as in `put`; the buffer has `len` bytes from there.
            unsafe {
                bench
                    .at(rank)
                    .get(JobRank(from), SegmentOffset(offset), at, len, op)
            }
        });
        self.injected(
            injected,
            Due {
                local: false,
                remote: true,
            },
            buffer,
        )
    }

    /// Takes the reports since the last call; `(handle, completion)` in order.
    ///
    /// A completion that is not due fails: it was reported twice, or never promised.
    pub(super) fn reports<R: Rig>(&mut self, bench: &mut Bench<R>) -> Vec<(u64, Completion)> {
        let reports = std::mem::take(&mut bench.logs[self.rank as usize].completed);
        for &(handle, completion) in &reports {
            let open = self.open.iter_mut().find(|(open, ..)| *open == handle);
            let due = open.map(|(_, due, _)| match completion {
                Completion::Local => std::mem::take(&mut due.local),
                Completion::Remote => std::mem::take(&mut due.remote),
            });
            if due != Some(true) {
                bench.fail(&format!(
                    "{completion:?} of operation {handle} is not due: {due:?}"
                ));
            }
        }
        reports
    }

    /// The buffer of an operation with nothing due any more.
    pub(super) fn close(&mut self, handle: u64) -> Option<Vec<u8>> {
        let at = self
            .open
            .iter()
            .position(|&(open, due, _)| open == handle && due == NOTHING)?;
        Some(self.open.swap_remove(at).2)
    }
}

/// Waits for all completions of a put.
///
/// The source is overwritten once it may be, and the bytes must be at the target at the moment at
/// which the remote completion is reported.
pub(super) fn complete_put<R: Rig>(
    bench: &mut Bench<R>,
    ops: &mut Operations,
    handle: u64,
    to: u32,
    offset: u64,
    bytes: &[u8],
) {
    // The rank that puts is polled here, and its reports are looked at before others do anything.
    let others: Vec<u32> = bench.ranks().filter(|&rank| rank != ops.rank).collect();
    bench.until_among(&others, "a put is complete", |bench| {
        bench.poll(ops.rank);
        for (reported, completion) in ops.reports(bench) {
            assert_eq!(reported, handle);
            if completion == Completion::Local {
                let open = ops.open.iter_mut().find(|(open, ..)| *open == handle);
                open.into_iter()
                    .for_each(|(_, _, buffer)| buffer.fill(0xee));
            } else {
                let there = bench.read(to, offset, bytes.len());
                assert!(
                    there == bytes,
                    "put of {}: not there when reported",
                    bytes.len()
                );
            }
        }
        let open = ops.open.iter().any(|&(open, ..)| open == handle);
        !open || ops.close(handle).is_some()
    });
    let there = bench.read(to, offset, bytes.len());
    assert!(there == bytes, "put of {} at {offset}", bytes.len());
}
