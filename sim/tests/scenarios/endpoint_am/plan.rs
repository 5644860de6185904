//! Contents of each message of the scenario: worked out by sender and receiver alike from the
//! sender and a number.

use argonet_am::{Category, Endpoints, MAX_ARGS};

/// Endpoints of every process: the one from the start, one more, and the last that there can be.
pub(super) const ENDPOINTS: [u8; 3] = [0, 3, 31];
/// Bytes of a place for a payload in each endpoint's memory.
pub(super) const PLACE: usize = 5000;

/// Facts about the job that all ranks know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scene {
    pub(super) seed: u64,
    pub(super) ranks: u32,
    /// Bytes of mediums, and of longs that the conduit carries.
    pub(super) medium: usize,
    pub(super) long: usize,
}

/// How a request is given to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Waits,
    Immediate,
    /// A medium that is prepared and committed.
    Negotiated,
}

/// Contents of a request or a reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Content {
    pub(super) category: Category,
    pub(super) args: Vec<u32>,
    pub(super) payload: Vec<u8>,
}

/// A request, and its reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    pub(super) to: u32,
    pub(super) ends: Endpoints,
    pub(super) way: Way,
    pub(super) request: Content,
    pub(super) reply: Content,
    /// Whether a long reply names its place by an offset.
    pub(super) by_offset: bool,
}

/// Numbers that follow from others.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Arguments, of which the first, if there is one, is given.
    fn args(&mut self, first: u32) -> Vec<u32> {
        let any = self.below(MAX_ARGS + 1);
        let count = self.one_of(&[0, 1, MAX_ARGS, any]);
        let later = |at| if at == 0 { first } else { self.next() as u32 };
        (0..count).map(later).collect()
    }

    fn content(&mut self, first: u32, medium: usize, long: usize) -> Content {
        let category = self.one_of(&[Category::Short, Category::Medium, Category::Long]);
        let most = match category {
            Category::Short => 0,
            Category::Medium => medium.min(PLACE),
            Category::Long => long.min(PLACE),
        };
        let any = self.below(most + 1);
        let len = self.one_of(&[0, 1, most, any, any]).min(most);
        let args = self.args(first);
        let fill = self.next() as usize;
        let payload = (0..len).map(|at| (fill ^ at.wrapping_mul(167) ^ at >> 8) as u8);
        Content {
            category,
            args,
            payload: payload.collect(),
        }
    }
}

impl Plan {
    /// Request `number` of a rank.
    pub(super) fn of(scene: &Scene, source: u32, number: u32) -> Self {
        let of_message = u64::from(source) << 32 | u64::from(number);
        let mut numbers = Numbers(scene.seed ^ of_message.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let ends = Endpoints {
            from: numbers.one_of(&ENDPOINTS),
            to: numbers.one_of(&ENDPOINTS),
        };
        // The conduit limits payloads into attached segments; payloads into other memory are at
        // most as long as a place there.
        let longest = |endpoint| if endpoint == 0 { scene.long } else { PLACE };
        let request = numbers.content(number, scene.medium, longest(ends.to));
        let reply = numbers.content(number, scene.medium, longest(ends.from));
        let ways = match (request.category, ends.to) {
            (Category::Medium, _) => &[Way::Waits, Way::Immediate, Way::Negotiated][..],
            (Category::Long, 1..) => &[Way::Waits],
            _ => &[Way::Waits, Way::Immediate],
        };
        Self {
            to: numbers.below(scene.ranks as usize) as u32,
            ends,
            way: numbers.one_of(ways),
            request,
            reply,
            by_offset: numbers.below(2) == 0,
        }
    }
}
