//! A put and a fetching atomic operation of an interface to itself, of which every member of every
//! event is compared.
//!
//! They find a library whose constants or structures are not those of `abi.rs`, before anything
//! depends on them.

use super::abi::{self, CtEvent, Guarded, Handle, Md, Me, Process, RawEvent};
use super::answer::check;
use super::open::Ni;
use crate::portals::NicError;
use std::time::{Duration, Instant};

/// How long events of operations with itself may take.
const LIMIT: Duration = Duration::from_secs(10);
const BITS: u64 = 0x0123_4567_89ab_cdef;
const HEADER: u64 = 0xfedc_ba98_7654_3210;
const OF_ENTRY: u64 = 0x1111_2222_3333_4444;
const OF_OPERATION: u64 = 0x5555_6666_7777_8888;
/// The value at the target, and the one that is added.
const HELD: u64 = 40;
const ADDED: u64 = 2;

/// Memory of the operations: target, source, destination.
#[repr(C)]
struct Words {
    target: [u64; 4],
    source: u64,
    fetched: u64,
}

struct Probe<'a> {
    ni: &'a Ni,
    queue: Handle,
    portal: u32,
    md: Handle,
}

pub(super) fn run(ni: &Ni) -> Result<(), NicError> {
    counter(ni)?;
    let mut words = Box::new(Words {
        target: [0, HELD, 0, 0],
        source: ADDED,
        fetched: 0,
    });
    let base = &raw mut *words;
    let (rank, call) = (ni.rank, &ni.library.call);
    let (mut queue, mut portal, mut md) = (0, 0, 0);
    let memory = Md {
        start: base.cast(),
        length: size_of::<Words>() as u64,
        options: 0,
        queue: 0,
        counter: abi::NO_COUNTER,
    };
    // SAFETY: the places are valid; the memory is kept until all is released below.
    unsafe {
        check(
            rank,
            "PtlEQAlloc",
            (call.eq_alloc)(ni.handle, 16, &raw mut queue),
        )?;
        let code = (call.pt_alloc)(ni.handle, 0, queue, abi::PORTAL_ANY, &raw mut portal);
        check(rank, "PtlPTAlloc", code)?;
        let memory = Md { queue, ..memory };
        check(
            rank,
            "PtlMDBind",
            (call.md_bind)(ni.handle, &raw const memory, &raw mut md),
        )?;
    }
    let probe = Probe {
        ni,
        queue,
        portal,
        md,
    };
    let result = probe.put(base).and_then(|()| probe.fetch(base));
    if result.is_err() {
        // Operations under way may still write there.
        Box::leak(words);
    }
    // SAFETY: calls by values; of an operation that has not ended they are refused, and then all
    // goes with the interface.
    unsafe {
        (call.md_release)(md);
        (call.pt_free)(ni.handle, portal);
        (call.eq_free)(queue);
    }
    result
}

fn counter(ni: &Ni) -> Result<(), NicError> {
    let (rank, call, mut counter) = (ni.rank, &ni.library.call, 0);
    let set = CtEvent {
        success: 3,
        failure: 5,
    };
    let mut seen = Guarded::new(CtEvent::default());
    // SAFETY: the places are valid, the counter is this function's own.
    unsafe {
        check(
            rank,
            "PtlCTAlloc",
            (call.ct_alloc)(ni.handle, &raw mut counter),
        )?;
        check(rank, "PtlCTSet", (call.ct_set)(counter, set))?;
        check(
            rank,
            "PtlCTGet",
            (call.ct_get)(counter, (&raw mut seen).cast()),
        )?;
        check(rank, "PtlCTFree", (call.ct_free)(counter))?;
    }
    if seen.value != set || !seen.is_whole() {
        return Err(ni.wrong(format!("a counter set to {set:?} is {:?}", seen.value)));
    }
    Ok(())
}

impl Probe<'_> {
    /// Lists an entry for one operation over the target's words.
    fn entry(&self, base: *mut Words) -> Result<u64, NicError> {
        let me = Me {
            start: base.cast(),
            length: 32,
            counter: abi::NO_COUNTER,
            uid: self.ni.uid,
            options: abi::ME_PUT
                | abi::ME_GET
                | abi::ME_USE_ONCE
                | abi::ME_NO_TRUNCATE
                | abi::ME_LINK_DISABLE,
            source: Process {
                nid_or_rank: self.ni.rank.0,
                pid: 0,
            },
            match_bits: BITS ^ 0xff,
            ignore_bits: 0xff,
            min_free: 0,
        };
        let (call, mut raw) = (&self.ni.library.call, 0);
        // SAFETY: the memory stays until the entry has left or all is released.
        let code = unsafe {
            (call.me_append)(
                self.ni.handle,
                self.portal,
                &raw const me,
                abi::PRIORITY_LIST,
                OF_ENTRY as *mut _,
                &raw mut raw,
            )
        };
        check(self.ni.rank, "PtlMEAppend", code)?;
        Ok(base as u64)
    }

    fn put(&self, base: *mut Words) -> Result<(), NicError> {
        let start = self.entry(base)?;
        // SAFETY: the part is in the bound memory.
        let code = unsafe {
            (self.ni.library.call.put)(
                self.md,
                32,
                8,
                abi::ACK_EVENT,
                self.own(),
                self.portal,
                BITS,
                16,
                OF_OPERATION as *mut _,
                HEADER,
            )
        };
        check(self.ni.rank, "PtlPut", code)?;
        let kinds = [
            abi::EVENT_PUT,
            abi::EVENT_AUTO_UNLINK,
            abi::EVENT_SEND,
            abi::EVENT_ACK,
        ];
        let events = self.events(kinds)?;
        self.target("put", &events[0], start + 16)?;
        self.initiator("send", &events[2], None)?;
        self.initiator("acknowledgement", &events[3], Some(16))?;
        // SAFETY: the operation is over, and the memory is alive.
        let arrived = unsafe { (&raw const (*base).target[2]).read_volatile() };
        if arrived != ADDED {
            return Err(self.ni.wrong(format!("a put of {ADDED} left {arrived}")));
        }
        Ok(())
    }

    fn fetch(&self, base: *mut Words) -> Result<(), NicError> {
        let start = self.entry(base)?;
        // SAFETY: the parts are in the bound memory and do not overlap.
        let code = unsafe {
            (self.ni.library.call.fetch_atomic)(
                self.md,
                40,
                self.md,
                32,
                8,
                self.own(),
                self.portal,
                BITS,
                8,
                OF_OPERATION as *mut _,
                HEADER,
                abi::OP_SUM,
                abi::TYPE_U64,
            )
        };
        check(self.ni.rank, "PtlFetchAtomic", code)?;
        let kinds = [
            abi::EVENT_FETCH_ATOMIC,
            abi::EVENT_AUTO_UNLINK,
            abi::EVENT_SEND,
            abi::EVENT_REPLY,
        ];
        let events = self.events(kinds)?;
        self.target("fetching sum", &events[0], start + 8)?;
        self.initiator("reply", &events[3], Some(8))?;
        // SAFETY: the operation is over, and the memory is alive.
        let (sum, old) = unsafe {
            (
                (&raw const (*base).target[1]).read_volatile(),
                (&raw const (*base).fetched).read_volatile(),
            )
        };
        if (sum, old) != (HELD + ADDED, HELD) {
            let text = format!("a sum of {HELD} and {ADDED} left {sum} and fetched {old}");
            return Err(self.ni.wrong(text));
        }
        Ok(())
    }

    fn own(&self) -> Process {
        Process {
            nid_or_rank: self.ni.rank.0,
            pid: 0,
        }
    }

    /// Waits for one event of each of these kinds, in any order.
    fn events(&self, kinds: [u8; 4]) -> Result<[RawEvent; 4], NicError> {
        let begun = Instant::now();
        let mut events = [None; 4];
        while events.iter().any(Option::is_none) {
            let mut raw = Guarded::new(RawEvent::UNSET);
            // SAFETY: the place has room for an event that is longer in another version.
            let code = unsafe { (self.ni.library.call.eq_get)(self.queue, (&raw mut raw).cast()) };
            if code == abi::EQ_EMPTY {
                if begun.elapsed() > LIMIT {
                    let missing = (0..4).filter(|n| events[*n].is_none());
                    let missing: Vec<u8> = missing.map(|n| kinds[n]).collect();
                    let text = format!(
                        "of an operation of a rank with itself events of the kinds {missing:?} did not come in {} s",
                        LIMIT.as_secs()
                    );
                    return Err(self.ni.wrong(text));
                }
                // Not a yield: a thread of the library that never sleeps would keep the processor
                // for its whole turn.
                std::thread::sleep(super::queue::SHORTEST_NAP);
                continue;
            }
            check(self.ni.rank, "PtlEQGet", code)?;
            let place = kinds.iter().position(|kind| *kind == raw.value.kind);
            match place.filter(|place| events[*place].is_none() && raw.is_whole()) {
                Some(place) => events[place] = Some(raw.value),
                None => return Err(self.strange("operation", &raw.value)),
            }
        }
        Ok(events.map(|event| event.unwrap_or(RawEvent::UNSET)))
    }

    fn strange(&self, what: &str, raw: &RawEvent) -> NicError {
        self.ni.wrong(format!(
            "the event of a {what} of a rank with itself is {raw:x?}"
        ))
    }

    fn target(&self, what: &str, raw: &RawEvent, start: u64) -> Result<(), NicError> {
        let right = raw.start == start
            && raw.user == OF_ENTRY
            && raw.header == HEADER
            && raw.match_bits == BITS
            && (raw.requested, raw.moved) == (8, 8)
            && raw.initiator.nid_or_rank == self.ni.rank.0
            && raw.portal == self.portal
            && raw.fail == abi::FAIL_NONE;
        if right {
            return Ok(());
        }
        Err(self.strange(what, raw))
    }

    fn initiator(&self, what: &str, raw: &RawEvent, offset: Option<u64>) -> Result<(), NicError> {
        let moved = offset.is_none_or(|at| (raw.moved, raw.remote_offset) == (8, at));
        if raw.user == OF_OPERATION && raw.fail == abi::FAIL_NONE && moved {
            return Ok(());
        }
        Err(self.strange(what, raw))
    }
}
