//! Which member carries the stream to a peer: when another does, and how both ranks agree on that.
//!
//! ```text
//!    one rank                    the other
//!     | ------- offer g --------> |  over the member that is to carry the stream
//!     | <------ offer g --------- |  the answer: both use it from now on
//! ```
//!
//! Each offer has a number, the generation, higher than that of all before; the higher one counts.
//! Those of the lower rank are odd and those of the other even: so each belongs to one member, also
//! where an offer that was given up arrives late, and both ranks that carry one carry it alike. An
//! offer says up to where the stream of the peer was taken: from there on it is sent again.
//!
//! No I/O and no clock: times are ns of any clock that does not go back.

use std::collections::VecDeque;

/// Where no member carries the stream, another one is asked for a rail after so long without one.
///
/// At the start, when peers may be slow, and later.
const STAGGER_NS: [u64; 2] = [2_000_000_000, 250_000_000];

/// How long an offer is waited for until the member is looked at.
pub(super) const PATIENCE_NS: u64 = 250_000_000;

/// Before a member that has failed is asked again: at first, and at most.
///
/// With the chance in them, and the time until the stream goes back, less than 5 s.
const PAUSE_NS: [u64; 2] = [50_000_000, 2_500_000_000];

/// The longest pause where no member carries the stream.
const SOON_NS: u64 = 200_000_000;

/// How long a better member than the one that carries has been there until the stream goes back to
/// it: at first, and at most.
///
/// It doubles with each failure.
const HOLD_NS: [u64; 2] = [200_000_000, 60_000_000_000];

/// A rail that was there for so long is asked for again after the first pause.
const LASTING_NS: u64 = 1_000_000_000;

/// A member that has carried the stream for so long has no failures any more.
const STEADY_NS: u64 = 30_000_000_000;

/// What is known of a member's rail to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It was not asked for.
    Unasked,
    /// It was, then.
    Asked { at_ns: u64 },
    /// It is there, since then.
    Up { since_ns: u64 },
    /// It has failed, and is asked for again then: sooner where no member carries the stream.
    Down { soon_ns: u64, again_ns: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its rails last.
    lasts: bool,
    state: State,
    /// Losses while it carried the stream, since the last time that it was steady.
    failures: u32,
    /// Losses, and outcomes without a rail, since it was there last for some time.
    pauses: u32,
    /// It could not be made since the stream was carried last.
    is_unreachable: bool,
}

/// An offer that the peer has not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Offer {
    member: usize,
    generation: u64,
    /// When the member is looked at.
    until_ns: u64,
}

/// The next step of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    /// Ask this member for a rail.
    Ask(usize),
    /// Offer this generation over this member.
    Offer(usize, u64),
    /// Use its rail for no offer any more.
    Drop(usize),
    /// It carries the stream from now on: the generation, and up to where the peer has taken this
    /// rank's stream.
    Carry(usize, u64, u64),
    /// There is none that could.
    GiveUp,
}

/// The machine of one peer.
#[derive(Debug)]
pub(super) struct Succession {
    /// This rank's number is the lower one: its offers are odd.
    is_lower: bool,
    /// The stream waits for a carrier.
    is_wanted: bool,
    /// Since when there is none.
    wanted_ns: u64,
    /// How long no member may answer until there is none that could.
    limit_ns: u64,
    /// The last agreement; 0 before the first.
    generation: u64,
    /// The highest that was offered or heard.
    highest: u64,
    carrier: Option<usize>,
    /// Since when.
    carries_ns: u64,
    offer: Option<Offer>,
    /// By member, the best one first.
    places: Box<[Place]>,
    acts: VecDeque<Act>,
    /// Where the chance in pauses comes from.
    random: u64,
}

/// A time that doubles with each failure, between two bounds.
fn doubled([least, most]: [u64; 2], failures: u32) -> u64 {
    least.saturating_mul(1 << failures.min(20)).min(most)
}

impl Succession {
    /// A peer with these members, at least one, whose rails last or not.
    ///
    /// `limit_ns`: how long none may answer until the peer is given up.
    pub(super) fn new(
        is_lower: bool,
        lasts: impl Iterator<Item = bool>,
        limit_ns: u64,
        seed: u64,
    ) -> Self {
        let place = |lasts| Place {
            lasts,
            state: State::Unasked,
            failures: 0,
            pauses: 0,
            is_unreachable: false,
        };
        Self {
            is_lower,
            is_wanted: false,
            wanted_ns: 0,
            limit_ns,
            generation: 0,
            highest: 0,
            carrier: None,
            carries_ns: 0,
            offer: None,
            places: lasts.map(place).collect(),
            acts: VecDeque::new(),
            random: seed | 1,
        }
    }

    /// The next step; to be taken until there is none.
    pub(super) fn poll_act(&mut self) -> Option<Act> {
        self.acts.pop_front()
    }

    /// The generation that is offered over a member and was not answered.
    fn offered(&self, member: usize) -> Option<u64> {
        let of_it = self.offer.filter(|offer| offer.member == member);
        of_it.map(|offer| offer.generation)
    }

    /// The state of each member's rail, in words.
    pub(super) fn in_words(&self, names: &[String]) -> String {
        let each = self.places.iter().zip(names).enumerate();
        let each = each.map(|(member, (place, name))| {
            let state = match place.state {
                State::Up { .. } if self.carrier == Some(member) => "carries messages",
                State::Up { .. } if place.failures > 0 => "in probation",
                State::Up { .. } => "up",
                State::Unasked => "not in use",
                State::Asked { .. } => "asked for",
                State::Down { .. } => "down",
            };
            match place.failures {
                0 => format!("{name} {state}"),
                1 => format!("{name} {state} (failed once)"),
                failures => format!("{name} {state} (failed {failures} times)"),
            }
        });
        each.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn is_up(&self, member: usize) -> bool {
        matches!(self.places[member].state, State::Up { .. })
    }

    /// Whether a member has failed since the last time that it was steady.
    pub(super) fn has_failed(&self, member: usize) -> bool {
        self.places[member].failures > 0
    }

    /// A number between a half and three halves of `time`.
    fn jittered(&mut self, time: u64) -> u64 {
        // Xorshift, of Marsaglia.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        time / 2 + self.random % time.max(1)
    }

    /// The stream needs a carrier.
    pub(super) fn want(&mut self, now_ns: u64) {
        if !self.is_wanted {
            self.begin_to_lack(now_ns);
        }
        self.is_wanted = true;
        self.step(now_ns);
    }

    /// There is no carrier from now on.
    fn begin_to_lack(&mut self, now_ns: u64) {
        self.wanted_ns = now_ns;
        for place in &mut self.places {
            place.is_unreachable = false;
        }
    }

    /// A member has a rail.
    pub(super) fn made(&mut self, member: usize, now_ns: u64) {
        let place = &mut self.places[member];
        place.state = State::Up { since_ns: now_ns };
        place.is_unreachable = false;
        self.step(now_ns);
    }

    /// Whether the peer may have agreed to another member, and ended this one, where this rank does
    /// not know yet.
    pub(super) fn is_planned_end(&self, member: usize) -> bool {
        let carried = self.carrier == Some(member);
        carried && self.offer.is_some() && self.offered(member).is_none()
    }

    /// A member has failed while it carried the stream.
    fn count_failure(&mut self, member: usize, now_ns: u64) {
        let is_steady = now_ns.saturating_sub(self.carries_ns) >= STEADY_NS;
        let place = &mut self.places[member];
        place.failures = match is_steady {
            true => 1,
            false => place.failures.saturating_add(1),
        };
    }

    /// A member is asked again after a pause.
    fn put_down(&mut self, member: usize, now_ns: u64) {
        let place = &mut self.places[member];
        if let State::Up { since_ns } = place.state
            && now_ns.saturating_sub(since_ns) >= LASTING_NS
        {
            place.pauses = 0;
        }
        let pause = doubled(PAUSE_NS, place.pauses);
        place.pauses = place.pauses.saturating_add(1);
        let soon_ns = now_ns + self.jittered(pause.min(SOON_NS));
        let again_ns = now_ns + self.jittered(pause);
        self.places[member].state = State::Down { soon_ns, again_ns };
    }

    /// Its rail has ended, or is of no use.
    pub(super) fn ended(&mut self, member: usize, now_ns: u64) {
        let carried = self.carrier == Some(member);
        // One that only does not answer offers is asked again later and later as it is.
        if carried && !self.is_planned_end(member) {
            self.count_failure(member, now_ns);
        }
        self.put_down(member, now_ns);
        if carried {
            self.carrier = None;
            self.begin_to_lack(now_ns);
        }
        if self.offered(member).is_some() {
            self.offer = None;
        }
        self.step(now_ns);
    }

    /// A member cannot make one.
    pub(super) fn unreachable(&mut self, member: usize, now_ns: u64) {
        self.ended(member, now_ns);
        self.places[member].is_unreachable = true;
        self.give_up_if(|place| place.is_unreachable);
    }

    /// Gives the peer up where a carrier is wanted and no member could be one.
    fn give_up_if(&mut self, could_not: impl FnMut(&Place) -> bool) {
        let none = self.carrier.is_none() && self.offer.is_none();
        if self.is_wanted && none && self.places.iter().all(could_not) {
            self.is_wanted = false;
            self.acts.push_back(Act::GiveUp);
        }
    }

    /// The stream has lost the carrier of a generation, which may be past.
    pub(super) fn lost(&mut self, generation: u64, now_ns: u64) {
        if let Some(member) = self.carrier.filter(|_| generation == self.generation) {
            self.ended(member, now_ns);
        }
    }

    /// Whether the stream has a carrier of this generation.
    pub(super) fn carries(&self, generation: u64) -> bool {
        self.carrier.is_some() && generation == self.generation
    }

    /// The rail of a member, if it does not last, is used no more.
    pub(super) fn closed(&mut self, member: usize) {
        if self.carrier != Some(member) && self.is_up(member) && !self.places[member].lasts {
            self.places[member].state = State::Unasked;
        }
    }

    // spec B4: an offer says from where the stream begins again. spec B5: it goes over a rail that
    // works, so a rank that sees no failure learns of it. spec B9: the rail before is used no more.
    /// The peer has offered a generation over a member.
    ///
    /// `received`: up to where it has taken this rank's stream.
    pub(super) fn heard(&mut self, member: usize, generation: u64, received: u64, now_ns: u64) {
        if !self.is_up(member) {
            self.places[member].state = State::Up { since_ns: now_ns };
        }
        if generation <= self.generation {
            // It has offered more since.
            return;
        }
        self.highest = self.highest.max(generation);
        let own = self.offer.map(|offer| (offer.generation, offer.member));
        match own {
            // The peer answers this rank's.
            Some((own, at)) if own == generation && at == member => self.offer = None,
            // It reads this rank's next, and answers it, or the rail ends for both.
            Some((own, at)) if own > generation && at == member && !self.places[member].lasts => {
                return;
            }
            // It may never read this rank's: until it does, its own counts.
            Some((own, _)) if own > generation => self.answer(member, generation),
            _ => {
                if let Some((_, at)) = own
                    && at != member
                {
                    self.acts.push_back(Act::Drop(at));
                    self.closed(at);
                }
                self.offer = None;
                self.answer(member, generation);
            }
        }
        if let Some(before) = self.carrier
            && before < member
            && !self.is_own(generation)
        {
            // The peer leaves the better one as it has failed, though this rank finds no failure;
            // or has offered this before it knew what the ranks have just agreed on.
            if now_ns.saturating_sub(self.carries_ns) >= PATIENCE_NS {
                self.count_failure(before, now_ns);
            }
            // It has to answer first, and to be there for a while from then on.
            self.put_down(before, now_ns);
        }
        self.carrier = Some(member);
        self.carries_ns = now_ns;
        self.generation = generation;
        self.is_wanted = false;
        for place in &mut self.places {
            place.is_unreachable = false;
        }
        self.acts
            .push_back(Act::Carry(member, generation, received));
    }

    /// Whether offers of this generation are this rank's own.
    fn is_own(&self, generation: u64) -> bool {
        (generation % 2 == 1) == self.is_lower
    }

    /// Answers an offer of the peer's.
    ///
    /// Not what is the answer to an offer that this rank has given up: the peer uses the position
    /// that was said with that.
    fn answer(&mut self, member: usize, generation: u64) {
        if !self.is_own(generation) {
            self.acts.push_back(Act::Offer(member, generation));
        }
    }

    /// Does what is due; `answers` says whether the host at the other end of a member's rail
    /// answers.
    ///
    /// Returns a member that is given up as its offer was not answered.
    pub(super) fn tick(&mut self, now_ns: u64, answers: impl Fn(usize) -> bool) -> Option<usize> {
        let mut silent = None;
        if let Some(offer) = &mut self.offer
            && offer.until_ns <= now_ns
        {
            let member = offer.member;
            // The peer may compute, or be stopped.
            offer.until_ns = now_ns + PATIENCE_NS;
            if !answers(member) {
                if self.carrier == Some(member) {
                    // It carries an offer of the peer's meanwhile, and the channel finds silence.
                    self.offer = None;
                } else {
                    silent = Some(member);
                    self.acts.push_back(Act::Drop(member));
                    self.ended(member, now_ns);
                }
            }
        }
        self.step(now_ns);
        if self.lacks() && self.given_up_at() <= now_ns {
            // Rails that last are silent, and none reports that it has failed.
            self.give_up_if(|place| place.is_unreachable || place.lasts);
            // Others still try.
            self.wanted_ns = now_ns;
        }
        silent
    }

    /// When a peer is given up that no member that lasts has reached.
    fn given_up_at(&self) -> u64 {
        self.wanted_ns.saturating_add(self.limit_ns)
    }

    /// When the next tick is due, if nothing happens until then.
    pub(super) fn poll_timeout(&self) -> Option<u64> {
        let offer = self.offer.map(|offer| offer.until_ns);
        let at = |place: &Place| match place.state {
            State::Down { soon_ns, again_ns } if self.lacks() => Some(soon_ns.min(again_ns)),
            State::Down { again_ns, .. } if self.asks() => Some(again_ns),
            _ => None,
        };
        let places = self.places.iter().filter_map(at).min();
        let back = self.goes_back_at().map(|(at, _)| at);
        let given_up = self.lacks().then(|| self.given_up_at());
        [offer, places, self.next_asked_at(), back, given_up]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the next member is asked that was not, as those that were have no rail.
    fn next_asked_at(&self) -> Option<u64> {
        let mut places = self.places.iter();
        if !self.lacks() || !places.any(|place| place.state == State::Unasked) {
            return None;
        }
        let at = |place: &Place| match place.state {
            State::Asked { at_ns } => Some(at_ns + self.stagger_ns()),
            _ => None,
        };
        self.places.iter().filter_map(at).max()
    }

    /// Whether a carrier is needed, and none is to come.
    fn lacks(&self) -> bool {
        self.is_wanted && self.carrier.is_none() && self.offer.is_none()
    }

    fn stagger_ns(&self) -> u64 {
        STAGGER_NS[usize::from(self.generation > 0)]
    }

    /// Whether members that have failed are asked again.
    fn asks(&self) -> bool {
        self.is_wanted || self.carrier.is_some()
    }

    /// When the stream goes back to the best member that is better than its carrier, and to which.
    fn goes_back_at(&self) -> Option<(u64, usize)> {
        let carrier = self.carrier.filter(|_| self.offer.is_none())?;
        let better = self.places[..carrier].iter().enumerate();
        let at = |(member, place): (usize, &Place)| match place.state {
            State::Up { since_ns } => Some((since_ns + doubled(HOLD_NS, place.failures), member)),
            _ => None,
        };
        better.filter_map(at).min()
    }

    fn step(&mut self, now_ns: u64) {
        if self.lacks()
            && let Some(member) = (0..self.places.len()).find(|member| self.is_up(*member))
        {
            self.make_offer(member, now_ns);
        }
        if let Some((at_ns, member)) = self.goes_back_at()
            && at_ns <= now_ns
        {
            self.make_offer(member, now_ns);
        }
        if self.asks() {
            for member in 0..self.places.len() {
                if let State::Down { soon_ns, again_ns } = self.places[member].state
                    && (again_ns <= now_ns || (self.lacks() && soon_ns <= now_ns))
                {
                    self.ask(member, now_ns);
                }
            }
        }
        // It was given up for an offer that counted less in the end, and perhaps by both ranks.
        let better = self.carrier.unwrap_or(0);
        if let Some(member) = self.places[..better]
            .iter()
            .position(|place| place.state == State::Unasked)
        {
            self.ask(member, now_ns);
        }
        if self.lacks()
            && self.next_asked_at().is_none_or(|at_ns| at_ns <= now_ns)
            && let Some(member) = self
                .places
                .iter()
                .position(|place| place.state == State::Unasked)
        {
            self.ask(member, now_ns);
        }
    }

    fn ask(&mut self, member: usize, now_ns: u64) {
        self.places[member].state = State::Asked { at_ns: now_ns };
        self.acts.push_back(Act::Ask(member));
    }

    fn make_offer(&mut self, member: usize, now_ns: u64) {
        let next = self.highest + 1;
        let generation = next + u64::from(!self.is_own(next));
        self.highest = generation;
        self.offer = Some(Offer {
            member,
            generation,
            // At the start the peer may not be there yet.
            until_ns: now_ns + PATIENCE_NS.max(self.stagger_ns()),
        });
        self.acts.push_back(Act::Offer(member, generation));
    }
}
