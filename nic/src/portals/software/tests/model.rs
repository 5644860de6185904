//! Match lists against a simple list, with random operations.

use super::{BOTH, Pair, drain, memory, part, read, write};
use crate::portals::{
    Ack, Entry, EntryHandle, EventKind, Managed, Matching, NicError, Outcome, Portals, Position,
};
use argonet_base::JobRank;
use proptest::prelude::*;

/// Bytes of one entry's memory at most, and how many entries there are.
const SPAN: u64 = 8192;
const MOST: usize = 60;

#[derive(Clone, Debug)]
enum Step {
    Attach {
        place: u8,
        beside: usize,
        bits: u64,
        ignore: u64,
        source: Option<u32>,
        len: u64,
        local: Option<u64>,
        flags: u8,
        threshold: Option<u32>,
    },
    Unlink(usize),
    Move {
        get: bool,
        bits: u64,
        len: u64,
        offset: u64,
    },
    Enable(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop::sample::select(vec![0_u64, 1, 8, 100, 4096, 4097, 6000, 8192]);
    let attach = (
        (
            0..4_u8,
            any::<usize>(),
            0..4_u64,
            prop::sample::select(vec![0_u64, 1, 2, 3, !0]),
        ),
        prop::option::weighted(0.2, 0..2_u32),
        len.clone(),
        prop::option::of(prop::sample::select(vec![0_u64, 1, 64, 5000])),
        any::<u8>(),
        prop::option::of(1..4_u32),
    )
        .prop_map(
            |((place, beside, bits, ignore), source, len, local, flags, threshold)| Step::Attach {
                place,
                beside,
                bits,
                ignore,
                source,
                len,
                local,
                flags,
                threshold,
            },
        );
    let moves = (any::<bool>(), 0..4_u64, len, 0..200_u64);
    prop_oneof![
        4 => attach,
        1 => any::<usize>().prop_map(Step::Unlink),
        10 => moves.prop_map(|(get, bits, len, offset)| Step::Move { get, bits, len, offset }),
        1 => prop::bool::weighted(0.8).prop_map(Step::Enable),
    ]
}

/// An entry as the model knows it.
struct Known {
    handle: EntryHandle,
    matching: Matching,
    entry: Entry,
    /// Where its memory is, and how much.
    at: u64,
    len: u64,
    used: u64,
    left: Option<u32>,
}

impl Known {
    /// Where a message goes and how much of it, if it is accepted.
    fn accepts(&self, get: bool, bits: u64, len: u64, offset: u64) -> Option<(u64, u64)> {
        let wanted = (bits ^ self.matching.bits) & !self.matching.ignore == 0;
        let from = self.matching.source.is_none_or(|rank| rank == JobRank(0));
        let kind = if get {
            self.entry.gets
        } else {
            self.entry.puts
        };
        if !wanted || !from || !kind || self.left == Some(0) {
            return None;
        }
        let offset = match self.entry.managed {
            Managed::Remote => offset,
            Managed::Local { min_free_bytes } if self.len - self.used < min_free_bytes => {
                return None;
            }
            Managed::Local { .. } => self.used,
        };
        let room = self.len.checked_sub(offset)?;
        match len <= room {
            true => Some((offset, len)),
            false => self.entry.truncate.then_some((offset, room)),
        }
    }

    /// After an operation: whether the entry is used up.
    fn take(&mut self, moved: u64) -> bool {
        self.left = self.left.map(|left| left - 1);
        let mut over = self.left == Some(0);
        if let Managed::Local { min_free_bytes } = self.entry.managed {
            self.used += moved;
            over |= self.len - self.used < min_free_bytes;
        }
        over
    }
}

struct Model {
    pair: Pair,
    list: Vec<Known>,
    enabled: bool,
    attached: usize,
    /// The contents of the target's memory.
    memory: Vec<u8>,
    sent: u8,
}

impl Model {
    fn attach(&mut self, step: &Step) {
        let Step::Attach {
            place,
            beside,
            bits,
            ignore,
            source,
            len,
            local,
            flags,
            threshold,
        } = *step
        else {
            return;
        };
        if self.attached == MOST {
            return;
        }
        let silent = flags & 1 == 1;
        let entry = Entry {
            puts: flags & 6 != 0,
            gets: flags & 6 != 2,
            managed: local.map_or(Managed::Remote, |min_free_bytes| Managed::Local {
                min_free_bytes,
            }),
            truncate: flags & 8 != 0,
            auto_unlink: flags & 16 != 0,
            threshold: threshold.filter(|_| flags & 32 != 0),
            events: BOTH,
            queue: (!silent).then_some(self.pair.target_queue),
            user: self.attached as u64,
            ..Entry::OPEN
        };
        let matching = Matching {
            bits,
            ignore,
            source: source.map(JobRank),
        };
        let count = self.list.len();
        let (position, index) = match (place, count) {
            (0, _) => (Position::Head, 0),
            (1, _) | (_, 0) => (Position::Tail, count),
            (2, _) => (
                Position::Before(self.list[beside % count].handle),
                beside % count,
            ),
            _ => (
                Position::After(self.list[beside % count].handle),
                beside % count + 1,
            ),
        };
        let at = self.attached as u64 * SPAN;
        let handle = self.pair.attach(position, matching, at, len, entry);
        self.attached += 1;
        let known = Known {
            handle,
            matching,
            entry,
            at,
            len,
            used: 0,
            left: entry.threshold,
        };
        self.list.insert(index, known);
    }

    /// The effect of a message, by the model: outcome, bytes, events of the target (kind, user,
    /// offset).
    fn expect(&mut self, get: bool, bits: u64, len: u64, offset: u64) -> Expected {
        if !self.enabled {
            return Expected::failed(Outcome::Refused);
        }
        let found = self.list.iter().enumerate().find_map(|(index, known)| {
            let (offset, moved) = known.accepts(get, bits, len, offset)?;
            Some((index, offset, moved))
        });
        let Some((index, offset, moved)) = found else {
            return Expected::failed(Outcome::NoMatch);
        };
        let known = &mut self.list[index];
        let at = known.at + offset;
        let user = known.entry.user;
        let mut events = match get {
            true => vec![
                (EventKind::GetStart, user, offset),
                (EventKind::GetEnd, user, offset),
            ],
            false => vec![
                (EventKind::PutStart, user, offset),
                (EventKind::PutEnd, user, offset),
            ],
        };
        let silent = known.entry.queue.is_none();
        if known.take(moved) && known.entry.auto_unlink {
            events.push((EventKind::Unlink, user, offset));
            self.list.remove(index);
        }
        if silent {
            events.clear();
        }
        Expected {
            outcome: Outcome::Done,
            moved,
            at,
            events,
        }
    }

    fn message(&mut self, get: bool, bits: u64, len: u64, offset: u64) {
        self.sent = self.sent.wrapping_add(1) | 1;
        let pattern: Vec<u8> = (0..len).map(|n| self.sent.wrapping_add(n as u8)).collect();
        write(&self.pair.a, 0, &pattern);
        let expected = self.expect(get, bits, len, offset);
        let target = self.pair.target(bits, offset);
        let moved = expected.moved as usize;
        let range = expected.at as usize..expected.at as usize + moved;
        let (a, from) = (&self.pair.a, self.pair.from);
        let mine = if get {
            a.get_region(from, part(0, len), target).unwrap();
            let mut holds = pattern.clone();
            holds[..moved].copy_from_slice(&self.memory[range]);
            assert_eq!(read(a, 0, len as usize), holds);
            vec![EventKind::ReplyStart, EventKind::ReplyEnd]
        } else {
            a.put_region(from, part(0, len), Ack::Event, target, 77)
                .unwrap();
            self.memory[range].copy_from_slice(&pattern[..moved]);
            vec![EventKind::SendStart, EventKind::SendEnd, EventKind::Ack]
        };
        let events = drain(a, self.pair.queue);
        assert_eq!(events.iter().map(|e| e.kind).collect::<Vec<_>>(), mine);
        let last = events.last().unwrap();
        assert_eq!(
            (last.outcome, last.moved_bytes),
            (expected.outcome, expected.moved)
        );
        assert_eq!((last.bits, last.requested_bytes), (bits, len));
        let events = drain(&self.pair.b, self.pair.target_queue);
        let seen: Vec<_> = events
            .iter()
            .map(|e| (e.kind, e.user, e.offset_bytes))
            .collect();
        assert_eq!(seen, expected.events);
        assert!(
            events
                .iter()
                .all(|e| e.link == last.link && e.peer == JobRank(0))
        );
    }

    fn unlink(&mut self, which: usize) {
        if !self.list.is_empty() {
            let known = self.list.remove(which % self.list.len());
            self.pair.b.unlink(known.handle).unwrap();
            let again = self.pair.b.unlink(known.handle);
            assert!(matches!(again, Err(NicError::BadHandle { .. })));
        }
    }
}

struct Expected {
    outcome: Outcome,
    moved: u64,
    at: u64,
    events: Vec<(EventKind, u64, u64)>,
}

impl Expected {
    fn failed(outcome: Outcome) -> Self {
        Self {
            outcome,
            moved: 0,
            at: 0,
            events: Vec::new(),
        }
    }
}

proptest! {
    #[test]
    fn lists_are_those_of_a_simple_model(steps in prop::collection::vec(step(), 1..80)) {
        let mut model = Model {
            pair: Pair::new(),
            list: Vec::new(),
            enabled: true,
            attached: 0,
            memory: vec![0; MOST * SPAN as usize],
            sent: 0,
        };
        for step in &steps {
            match *step {
                Step::Attach { .. } => model.attach(step),
                Step::Unlink(which) => model.unlink(which),
                Step::Move { get, bits, len, offset } => model.message(get, bits, len, offset),
                Step::Enable(enabled) => {
                    model.pair.b.portal_enable(model.pair.portal, enabled).unwrap();
                    model.enabled = enabled;
                }
            }
        }
        let _ = memory(&model.pair.b, 0);
        prop_assert!(read(&model.pair.b, 0, model.memory.len()) == model.memory);
        for known in &model.list {
            model.pair.b.unlink(known.handle).unwrap();
        }
        prop_assert!(model.pair.b.portal_free(model.pair.portal).is_ok());
    }
}
