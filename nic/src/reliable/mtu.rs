//! The longest datagram that reaches a peer (RFC 8899).

use super::config::ReliableConfig;
use core::ops::Range;
use core::time::Duration;

/// How often lengths are tried that the peer has not answered.
const ROUNDS: u32 = 3;

/// How long answers to a round are waited for.
const ROUND: Duration = Duration::from_millis(100);

/// When longer ones are tried again first, where some did not arrive or do not any more.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The same in the end (PMTU_RAISE_TIMER of RFC 8899, 5.1.1).
const RAISE_AFTER: Duration = Duration::from_secs(600);

/// What the search sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Search {
    /// A datagram of this length, for the peer to answer.
    Trial(usize),
    /// One of the peer's has come that was so long.
    Reached(u16),
}

/// A search in progress.
#[derive(Debug)]
struct Round {
    /// Lengths to be tried yet, by place.
    places: Range<usize>,
    /// Rounds to come after this one.
    others: u32,
    ends_at: Duration,
    /// It is to find whether the path still takes what it took.
    confirms: bool,
}

/// Lengths of datagrams to a peer, and answers to those that it tries.
#[derive(Debug)]
pub(super) struct PathMtu {
    /// Longest datagram that is known to arrive.
    bytes: usize,
    /// Lengths that may be tried, of [`ReliableConfig::longer_datagrams`].
    longer: usize,
    round: Option<Round>,
    /// No search begins before.
    not_before: Duration,
    again_after: Duration,
    /// The longest trial of the peer that has come and was not answered.
    answer: Option<u16>,
}

impl PathMtu {
    pub(super) fn new(config: &ReliableConfig) -> Self {
        Self {
            bytes: config.datagram_bytes,
            longer: config.lengths().len(),
            round: None,
            not_before: Duration::ZERO,
            again_after: AGAIN_AFTER,
            answer: None,
        }
    }

    /// Longest datagram that carries a record to the peer whole.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first length to try: none below was longer than what is known.
    fn first(&self, config: &ReliableConfig) -> Option<usize> {
        let is_longer = |length: &usize| *length > self.bytes;
        config.lengths().iter().position(is_longer)
    }

    /// A record was as long as a datagram: longer ones would help.
    #[inline]
    pub(super) fn is_full(&mut self, now: Duration, config: &ReliableConfig) {
        if self.longer == 0 || self.round.is_some() || now < self.not_before {
            return;
        }
        self.begin(now, ROUNDS - 1, config);
    }

    /// Begins a round; none if the path takes all.
    fn begin(&mut self, now: Duration, others: u32, config: &ReliableConfig) {
        self.round = self.first(config).map(|first| Round {
            places: first..self.longer,
            others,
            ends_at: now + ROUND,
            confirms: false,
        });
        if self.round.is_none() {
            self.not_before = Duration::MAX;
        }
    }

    /// A long record was lost again and again: the path may not take such ones any more (RFC 8899,
    /// 4.3).
    pub(super) fn suspect(&mut self, now: Duration, config: &ReliableConfig) {
        let is_this = |length: &usize| *length == self.bytes;
        let this = config.lengths().iter().position(is_this);
        if let Some(this) = this.filter(|_| !self.is_suspect()) {
            self.confirm(this, now, ROUNDS - 1);
        }
    }

    fn confirm(&mut self, place: usize, now: Duration, others: u32) {
        self.round = Some(Round {
            places: place..place + 1,
            others,
            ends_at: now + ROUND,
            confirms: true,
        });
    }

    /// Whether it is not known that the path still takes long ones.
    pub(super) fn is_suspect(&self) -> bool {
        self.round.as_ref().is_some_and(|round| round.confirms)
    }

    /// What is to be sent.
    pub(super) fn due(&self, config: &ReliableConfig) -> Option<Search> {
        if let Some(bytes) = self.answer {
            return Some(Search::Reached(bytes));
        }
        let round = self.round.as_ref()?;
        let place = round.places.clone().next()?;
        Some(Search::Trial(*config.lengths().get(place)?))
    }

    pub(super) fn sent(&mut self, search: Search) {
        match (search, &mut self.round) {
            (Search::Reached(_), _) => self.answer = None,
            (Search::Trial(_), Some(round)) => drop(round.places.next()),
            (Search::Trial(_), None) => {}
        }
    }

    /// A trial of the peer's has come.
    pub(super) fn came(&mut self, bytes: u16) {
        self.answer = self.answer.max(Some(bytes));
    }

    /// A trial has reached the peer; whether that is news.
    pub(super) fn reached(&mut self, bytes: u16, config: &ReliableConfig) -> bool {
        let bytes = usize::from(bytes);
        if self.round.is_none() || bytes < self.bytes || !config.lengths().contains(&bytes) {
            return false;
        }
        let is_news = bytes > self.bytes;
        self.bytes = bytes;
        if self.is_suspect() || self.first(config).is_none() {
            self.round = None;
        }
        is_news
    }

    /// When to look at it again.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.round.as_ref().map(|round| round.ends_at)
    }

    /// A round has ended, if it has: lengths without an answer are tried again, or later.
    ///
    /// Whether the path does not take any more what it took.
    pub(super) fn handle_timeout(&mut self, now: Duration, config: &ReliableConfig) -> bool {
        let Some(round) = self.round.take_if(|round| round.ends_at <= now) else {
            return false;
        };
        match round.others.checked_sub(1) {
            Some(others) if round.confirms => {
                let place = round.places.end - 1;
                self.confirm(place, now, others);
            }
            Some(others) => self.begin(now, others, config),
            None => self.wait(now),
        }
        let has_fallen = round.confirms && self.round.is_none();
        if has_fallen {
            self.bytes = config.datagram_bytes;
        }
        has_fallen
    }

    /// Ends a search; the next one is some time after, twice as long each time.
    fn wait(&mut self, now: Duration) {
        self.round = None;
        self.not_before = now + self.again_after;
        self.again_after = RAISE_AFTER.min(2 * self.again_after);
    }
}
