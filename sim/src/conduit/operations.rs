//! Puts and gets under way.

use super::book::{Book, Report};
use super::buffers::{Buffer, Source};
use super::message::{Head, Kind};
use argonet_am::MessageClass;
use argonet_conduit::wire::UserPlace;
use argonet_conduit::{Completion, OpToken};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) enum Transfer {
    Put(Source),
    Get(UserPlace),
}

#[derive(Debug)]
struct Operation {
    token: OpToken,
    peer: u32,
    transfer: Transfer,
    offset: u64,
    len: usize,
    /// Bytes for which a chunk was sent.
    issued: usize,
    /// Bytes of a put that the peer's link has acknowledged.
    acknowledged: usize,
    /// Bytes that are done at the target, or have come.
    done: usize,
}

/// The table of operations.
#[derive(Debug)]
pub(super) struct Operations {
    limit: usize,
    next: u64,
    table: BTreeMap<u64, Operation>,
    /// Bytes of puts that are copied.
    pub(super) copied_bytes: usize,
}

impl Operations {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            next: 0,
            table: BTreeMap::new(),
            copied_bytes: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.table.len() >= self.limit
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(super) fn ledger(&self) -> String {
        let mut text = String::from("operations:");
        for op in self.table.values() {
            let what = match op.transfer {
                Transfer::Put(_) => "put to",
                Transfer::Get(_) => "get from",
            };
            let Operation {
                peer,
                len,
                issued,
                done,
                ..
            } = op;
            text += &format!(" {what} rank {peer}: {done} of {len} bytes done, {issued} issued;");
        }
        text
    }

    /// A chunk of a put is with the peer: its source is not read any more.
    pub(super) fn chunk_acknowledged(&mut self, key: u64, len: usize) -> Option<Report> {
        let op = self.table.get_mut(&key)?;
        op.acknowledged += len;
        let local = matches!(op.transfer, Transfer::Put(Source::User(_)));
        let report = (local && op.acknowledged == op.len)
            .then_some(Report::Completed(op.token, Completion::Local));
        self.remove_if_over(key);
        report
    }

    fn remove_if_over(&mut self, key: u64) {
        let over = self.table.get(&key).is_some_and(|op| {
            let acknowledged = match op.transfer {
                Transfer::Put(_) => op.acknowledged == op.len,
                Transfer::Get(_) => true,
            };
            op.done == op.len && acknowledged
        });
        if over
            && let Some(op) = self.table.remove(&key)
            && let Transfer::Put(Source::Copied(bytes)) = op.transfer
        {
            self.copied_bytes -= bytes.len();
        }
    }

    fn finish(&mut self, key: u64, len: usize) -> Option<Report> {
        let op = self.table.get_mut(&key)?;
        op.done += len;
        let report = (op.done == op.len).then_some(Report::Completed(op.token, Completion::Remote));
        self.remove_if_over(key);
        report
    }

    /// A chunk of a put lies in its segment. False if no such chunk is under way.
    pub(super) fn put_done(&mut self, key: u64, len: u64, peer: u32) -> Option<Option<Report>> {
        let op = self.table.get(&key)?;
        let left = op.issued - op.done;
        let is_put = matches!(op.transfer, Transfer::Put(_));
        if op.peer != peer || !is_put || len == 0 || len > left as u64 {
            return None;
        }
        Some(self.finish(key, len as usize))
    }

    /// Data of a get has come. None if no such chunk is under way.
    pub(super) fn got(
        &mut self,
        key: u64,
        offset: u64,
        bytes: &[u8],
        peer: u32,
    ) -> Option<Option<Report>> {
        let op = self.table.get(&key)?;
        let Transfer::Get(place) = op.transfer else {
            return None;
        };
        // Chunks are answered in the order in which they were asked for.
        if op.peer != peer
            || offset != op.offset.saturating_add(op.done as u64)
            || bytes.is_empty()
            || bytes.len() > op.issued - op.done
        {
            return None;
        }
        place.write(op.done, bytes);
        Some(self.finish(key, bytes.len()))
    }
}

impl Book {
    /// Takes an operation for which there is room.
    pub(super) fn begin(
        &mut self,
        token: OpToken,
        peer: u32,
        transfer: Transfer,
        offset: u64,
        len: usize,
        now_ns: u64,
    ) {
        if let Transfer::Put(Source::Copied(bytes)) = &transfer {
            self.operations.copied_bytes += bytes.len();
        }
        let operations = &mut self.operations;
        operations.next += 1;
        let operation = Operation {
            token,
            peer,
            transfer,
            offset,
            len,
            issued: 0,
            acknowledged: 0,
            done: 0,
        };
        operations.table.insert(operations.next, operation);
        self.go_on(now_ns);
    }

    /// Sends chunks of operations for which there is room now.
    pub(super) fn go_on(&mut self, now_ns: u64) {
        if self.operations.is_empty() {
            return;
        }
        let waiting = self.operations.table.iter();
        let waiting: Vec<u64> = waiting
            .filter(|(_, op)| op.issued < op.len)
            .map(|(key, _)| *key)
            .collect();
        for key in waiting {
            while self.chunk(key, now_ns) {}
        }
    }

    /// Sends the next chunk of an operation, if there is one and there is room.
    fn chunk(&mut self, key: u64, now_ns: u64) -> bool {
        let Some(op) = self.operations.table.get(&key) else {
            return false;
        };
        let peer = op.peer;
        if op.issued == op.len || !self.may_request(peer) {
            return false;
        }
        let len = self.sizes.chunk_bytes.min(op.len - op.issued);
        let mut head = Head {
            // No segment reaches that far: the target refuses it.
            offset: op.offset.saturating_add(op.issued as u64),
            length: len as u64,
            op: key,
            rest: (op.len - op.issued) as u64,
            ..Head::new(Kind::Get)
        };
        let mut tail = None;
        if let Transfer::Put(source) = &op.transfer {
            head.kind = Kind::Put;
            let chunk = Buffer::Chunk {
                source: source.clone(),
                at: op.issued,
                len,
                op: key,
            };
            tail = Some((chunk, len));
        }
        self.send(peer, MessageClass::Request, head, &[], tail, now_ns);
        if let Some(op) = self.operations.table.get_mut(&key) {
            op.issued += len;
        }
        true
    }
}
