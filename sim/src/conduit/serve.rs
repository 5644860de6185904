//! A poll: what has arrived is taken, served and reported.
#![allow(unsafe_code)]

use super::SimConduit;
use super::book::Report;
use super::buffers::Buffer;
use super::message::{Head, Kind, Parsed};
use argonet_am::record::RecordError;
use argonet_am::{AmError, Category, Delivery, MessageClass};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_conduit::Sink;
use argonet_segment::{SharedBytesMut, bulk};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

impl SimConduit {
    pub(super) fn serve(&self, sink: &mut dyn Sink) -> usize {
        let links = {
            let mut book = self.book.lock();
            let (frames, idle) = self.place.clock.with(|state| {
                let frames = book.receive(state);
                let idle = frames == 0 && !book.has_something(state.now_ns);
                if !idle {
                    book.flush(state);
                }
                (frames, idle)
            });
            if idle {
                return 0;
            }
            if frames > 0 {
                self.epoch.fetch_add(1, Ordering::Release);
            }
            book.arrivals()
        };
        let mut taken = self.report(sink);
        // Replies first: they free the credits that requests wait for.
        for class in [MessageClass::Reply, MessageClass::Request] {
            for id in &links {
                if id % 2 == u32::from(class == MessageClass::Reply) {
                    taken += self.serve_link(*id, class, sink);
                }
            }
        }
        taken += self.report(sink);
        self.act(|_, _| ());
        taken
    }

    /// Tells the sink what is complete or broken.
    fn report(&self, sink: &mut dyn Sink) -> usize {
        let mut count = 0;
        loop {
            let report = self.book.lock().reports.pop_front();
            match report {
                Some(Report::Completed(op, part)) => sink.completed(op, part),
                Some(Report::Broken(error)) => sink.on_error(error),
                None => return count,
            }
            count += 1;
        }
    }

    fn serve_link(&self, id: u32, class: MessageClass, sink: &mut dyn Sink) -> usize {
        let mut taken = 0;
        while taken < self.sizes.poll_messages {
            let Some(message) = self.book.lock().next_message(id) else {
                break;
            };
            taken += 1;
            self.serve_message(id / 2, class, message, sink);
        }
        taken
    }

    fn serve_message(
        &self,
        from: u32,
        class: MessageClass,
        mut bytes: Vec<u8>,
        sink: &mut dyn Sink,
    ) {
        let Some(message) = Parsed::read(&bytes, class == MessageClass::Request) else {
            let kind = bytes.first().copied().unwrap_or(0);
            self.book.lock().broken(from, RecordError::Kind(kind));
            return;
        };
        let head = message.head;
        if class == MessageClass::Request {
            self.book.lock().owe(from);
        }
        let payload = &mut bytes[message.payload_at..];
        match head.kind {
            Kind::Short | Kind::Medium | Kind::Long => {
                self.deliver(from, class, &message, payload, sink);
            }
            Kind::Put => self.serve_put(from, head, payload),
            Kind::Get => self.serve_get(from, head),
            Kind::PutDone => {
                let mut book = self.book.lock();
                match book.operations.put_done(head.op, head.length, from) {
                    Some(report) => book.reports.extend(report),
                    None => book.broken(from, RecordError::Kind(Kind::PutDone.into())),
                }
            }
            Kind::GetData => {
                let mut book = self.book.lock();
                match book.operations.got(head.op, head.offset, payload, from) {
                    Some(report) => book.reports.extend(report),
                    None => book.broken(from, RecordError::Kind(Kind::GetData.into())),
                }
            }
            Kind::Refused => self.refused(from, head),
            Kind::Credit => {}
        }
        if class == MessageClass::Reply {
            let mut book = self.book.lock();
            if !book.credited(from, head.credits) {
                book.broken(from, RecordError::Kind(head.kind.into()));
            }
        }
    }

    fn deliver(
        &self,
        from: u32,
        class: MessageClass,
        message: &Parsed,
        payload: &mut [u8],
        sink: &mut dyn Sink,
    ) {
        let head = message.head;
        let category = head.kind.category().unwrap_or(Category::Short);
        let payload = match category {
            Category::Short => None,
            Category::Medium => Some(SharedBytesMut::from_slice(payload)),
            Category::Long if payload.is_empty() => None,
            Category::Long => {
                let Some(place) = self.own(head.offset, payload.len() as u64) else {
                    return self.refuse(from, class, head);
                };
                // SAFETY: the directory has checked that the bytes lie in this rank's own segment,
                // which stays mapped as long as the directory.
                let landed = unsafe {
                    bulk::copy(place.as_ptr(), payload.as_ptr(), payload.len());
                    SharedBytesMut::from_raw(place, payload.len())
                };
                Some(landed)
            }
        };
        let mut delivery = Delivery::new(
            JobRank(from),
            class,
            category,
            HandlerIndex(head.handler),
            message.args(),
            payload,
            SegmentOffset(head.offset),
            self,
        );
        sink.deliver(&mut delivery);
    }

    /// Where bytes of this rank's own segment lie.
    fn own(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let len = usize::try_from(len).ok()?;
        self.directory
            .resolve(JobRank(self.place.rank), SegmentOffset(offset), len)
    }

    fn serve_put(&self, from: u32, head: Head, payload: &[u8]) {
        let fits = payload.len() as u64 <= head.rest;
        let Some(place) = self.own(head.offset, head.rest).filter(|_| fits) else {
            return self.refuse(from, MessageClass::Request, head);
        };
        // SAFETY: the directory has checked the bytes of this rank's own segment.
        unsafe { bulk::copy(place.as_ptr(), payload.as_ptr(), payload.len()) };
        let answer = Head {
            kind: Kind::PutDone,
            ..head
        };
        self.answer(from, answer, None);
    }

    fn serve_get(&self, from: u32, head: Head) {
        let fits = head.length <= (self.sizes.chunk_bytes as u64).min(head.rest);
        let Some(place) = self.own(head.offset, head.rest).filter(|_| fits) else {
            return self.refuse(from, MessageClass::Request, head);
        };
        let mut bytes = vec![0; head.length as usize].into_boxed_slice();
        // SAFETY: the directory has checked the bytes of this rank's own segment.
        unsafe { bulk::copy(bytes.as_mut_ptr(), place.as_ptr(), bytes.len()) };
        let len = bytes.len();
        let data = Buffer::Payload {
            bytes,
            replay: false,
        };
        let answer = Head {
            kind: Kind::GetData,
            ..head
        };
        self.answer(from, answer, Some((data, len)));
    }

    /// Answers a request, for which there is room.
    fn answer(&self, to: u32, head: Head, tail: Option<(Buffer, usize)>) {
        self.act(|book, now_ns| book.send(to, MessageClass::Reply, head, &[], tail, now_ns));
    }

    /// Something for this rank's segment does not lie in it.
    fn refuse(&self, from: u32, class: MessageClass, head: Head) {
        let attached = self.directory.attached_bytes(JobRank(self.place.rank));
        if class == MessageClass::Reply {
            // Whoever asked for the reply said where it should go.
            let cause = RecordError::Payload {
                len: head.offset.saturating_add(head.length),
                max: attached,
            };
            self.book.lock().broken(from, cause);
            return;
        }
        let answer = Head {
            kind: Kind::Refused,
            length: attached,
            ..head
        };
        self.answer(from, answer, None);
    }

    /// The target has refused something of this rank.
    fn refused(&self, by: u32, head: Head) {
        self.book
            .lock()
            .reports
            .push_back(Report::Broken(AmError::OutsideSegment {
                offset: head.offset,
                len: 0,
                segment: head.length,
                from: JobRank(self.place.rank),
                to: JobRank(by),
            }));
    }
}
