//! Peers with which nothing passes for some time: since when, and what is given up then.
//!
//! Peers are looked at now and then ([`Vitals`](super::vitals::Vitals)), and the positions of both
//! streams show whether anything has passed since the last look. So a message costs nothing for
//! this.

/// How long nothing may pass before a rank gives something up, in ns; 0 is forever.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct IdleLimits {
    /// The buffers of a peer.
    pub(super) buffers_ns: u64,
    /// The rails to it.
    pub(super) rails_ns: u64,
}

/// What a look asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct IdleLook {
    /// Free the peer's buffers.
    pub(super) free: bool,
    /// Ask the peer to close the rails.
    pub(super) close: bool,
}

/// How far the rails to a peer are closed as nothing passes.
///
/// ```text
///    asks                     agrees, if nothing is under way for it either
///     | --------- close -------> |
///     | <-------- closed ------- |  and the end of all rails
/// ```
///
/// A peer with something under way passes over the question, and what it sends shows that. So bytes
/// are lost only if the rank that has asked sends some before it hears the answer. The next rail
/// carries these again, as after any loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Closing {
    /// No close is under way: the rails are open, or were lost and a new one was asked for.
    #[default]
    Not,
    /// This rank has sent *close*; the positions of its own and of the peer's stream at that time.
    Asked(u64, u64),
    /// They are closed at both ends.
    Closed,
    /// They are closed at both ends, and this rank has asked for a new one.
    Reopening,
}

impl Closing {
    /// Whether bytes that this rank wrote after *close* may be lost: a thread must look for the
    /// peer's *closed*, to send them over a new rail.
    ///
    /// Becomes `Not` where the peer has shown that it goes on with these rails.
    ///
    /// `positions`: of this rank's stream and the peer's. `taken`: up to where the peer has taken
    /// this rank's stream. `rests`: the peer has taken all of it.
    pub(super) fn look(&mut self, positions: (u64, u64), taken: u64, rests: bool) -> bool {
        let Self::Asked(sent, heard) = *self else {
            return false;
        };
        // It had something under way when the question came; or it goes on with these rails.
        if positions.1 != heard || taken > sent || (positions.0 != sent && rests) {
            *self = Self::Not;
            return false;
        }
        !rests
    }
}

/// For how long nothing has passed between this rank and one peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Idle {
    /// How far both streams had come at the last look.
    positions: (u64, u64),
    /// The first look that found them so, with nothing under way.
    since_ns: Option<u64>,
    has_freed: bool,
    /// When the peer was last asked to close the rails.
    asked_ns: Option<u64>,
}

impl Idle {
    /// One look.
    ///
    /// `positions`: how far both streams have come. `rests`: nothing of either is under way.
    /// `holds`: there is a buffer, although none may have been used since they were freed.
    pub(super) fn look(
        &mut self,
        now_ns: u64,
        limits: &IdleLimits,
        positions: (u64, u64),
        rests: bool,
        holds: bool,
    ) -> IdleLook {
        if !rests || self.positions != positions {
            *self = Self {
                positions,
                ..Self::default()
            };
        }
        if !rests {
            return IdleLook::default();
        }
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        let is_over =
            |since_ns, limit_ns| limit_ns > 0 && now_ns.saturating_sub(since_ns) >= limit_ns;
        let free = is_over(since_ns, limits.buffers_ns) && (holds || !self.has_freed);
        self.has_freed |= free;
        let close = is_over(self.asked_ns.unwrap_or(since_ns), limits.rails_ns);
        if close {
            self.asked_ns = Some(now_ns);
        }
        IdleLook { free, close }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: IdleLimits = IdleLimits {
        buffers_ns: 1000,
        rails_ns: 0,
    };

    const FREE: IdleLook = IdleLook {
        free: true,
        close: false,
    };

    #[test]
    fn buffers_are_freed_once_after_their_time() {
        let mut idle = Idle::default();
        for now_ns in (5000..6000).step_by(250) {
            assert_eq!(
                idle.look(now_ns, &LIMITS, (7, 9), true, false),
                IdleLook::default()
            );
        }
        assert_eq!(idle.look(6000, &LIMITS, (7, 9), true, false), FREE);
        assert_eq!(
            idle.look(9000, &LIMITS, (7, 9), true, false),
            IdleLook::default()
        );
        assert_eq!(idle.look(9000, &LIMITS, (7, 9), true, true), FREE);
        // Whatever passes brings buffers back.
        assert_eq!(
            idle.look(9001, &LIMITS, (7, 10), true, false),
            IdleLook::default()
        );
        assert_eq!(
            idle.look(9999, &LIMITS, (7, 10), true, false),
            IdleLook::default()
        );
        assert_eq!(idle.look(10_001, &LIMITS, (7, 10), true, false), FREE);
    }

    #[test]
    fn what_is_under_way_begins_the_time_anew() {
        let mut idle = Idle::default();
        for now_ns in (0..5000).step_by(300) {
            let rests = now_ns % 900 != 0;
            assert_eq!(
                idle.look(now_ns, &LIMITS, (7, 9), rests, false),
                IdleLook::default()
            );
        }
        assert_eq!(idle.look(6000, &LIMITS, (7, 9), true, false), FREE);
    }

    #[test]
    fn a_peer_that_does_not_answer_is_asked_again_after_the_same_time() {
        let limits = IdleLimits {
            buffers_ns: 0,
            rails_ns: 1000,
        };
        let mut idle = Idle::default();
        let mut asked = Vec::new();
        for now_ns in (500..4000).step_by(100) {
            if idle.look(now_ns, &limits, (7, 9), true, false).close {
                asked.push(now_ns);
            }
        }
        assert_eq!(asked, [1500, 2500, 3500]);
        assert!(!idle.look(4500, &limits, (8, 9), true, false).close);
        assert!(idle.look(5500, &limits, (8, 9), true, false).close);
    }

    #[test]
    fn what_is_written_after_the_question_may_be_lost_until_the_peer_shows_that_it_has_it() {
        let asked = Closing::Asked(7, 9);
        let look = |positions, taken, rests| {
            let mut closing = asked;
            (closing.look(positions, taken, rests), closing)
        };
        assert_eq!(look((7, 9), 7, true), (false, asked));
        assert_eq!(look((8, 9), 7, false), (true, asked));
        // A question of the system queue, which is outside of the stream.
        assert_eq!(look((7, 9), 7, false), (true, asked));
        assert_eq!(look((8, 9), 7, true), (false, Closing::Not));
        // A peer that takes what was sent afterwards has passed over the question.
        assert_eq!(look((9, 9), 8, false), (false, Closing::Not));
        assert_eq!(look((7, 10), 7, false), (false, Closing::Not));
        for mut closing in [Closing::Not, Closing::Closed, Closing::Reopening] {
            let before = closing;
            assert!(!closing.look((8, 9), 7, false));
            assert_eq!(closing, before);
        }
    }

    #[test]
    fn without_a_limit_nothing_is_given_up() {
        let mut idle = Idle::default();
        for now_ns in [0, 1, u64::MAX] {
            let look = idle.look(now_ns, &IdleLimits::default(), (0, 0), true, false);
            assert_eq!(look, IdleLook::default());
        }
    }
}
