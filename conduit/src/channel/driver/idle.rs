//! Peers with which nothing passes for some time: since when, and what is given up then.
//!
//! Peers are looked at now and then ([`Vitals`](super::vitals::Vitals)), and the positions of both
//! streams show whether anything has passed since the last look. So a message costs nothing for
//! this.

/// After which times without anything something is given up, ns; 0 is never.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct IdleLimits {
    /// The buffers of a peer.
    pub(super) buffers_ns: u64,
}

/// What a look asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct IdleLook {
    /// Free the peer's buffers.
    pub(super) free: bool,
}

/// The machine of one peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Idle {
    /// How far both streams had come at the last look.
    positions: (u64, u64),
    /// The first look that found them so, with nothing under way.
    since_ns: Option<u64>,
    has_freed: bool,
}

impl Idle {
    /// One look.
    ///
    /// `positions`: how far both streams have come. `rests`: nothing of either is under way.
    pub(super) fn look(
        &mut self,
        now_ns: u64,
        limits: &IdleLimits,
        positions: (u64, u64),
        rests: bool,
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
        let idle_ns = now_ns.saturating_sub(since_ns);
        let is_over = |limit_ns| limit_ns > 0 && idle_ns >= limit_ns;
        let free = is_over(limits.buffers_ns) && !self.has_freed;
        self.has_freed |= free;
        IdleLook { free }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: IdleLimits = IdleLimits { buffers_ns: 1000 };

    const FREE: IdleLook = IdleLook { free: true };

    #[test]
    fn buffers_are_freed_once_after_their_time() {
        let mut idle = Idle::default();
        for now_ns in (5000..6000).step_by(250) {
            assert_eq!(
                idle.look(now_ns, &LIMITS, (7, 9), true),
                IdleLook::default()
            );
        }
        assert_eq!(idle.look(6000, &LIMITS, (7, 9), true), FREE);
        assert_eq!(idle.look(9000, &LIMITS, (7, 9), true), IdleLook::default());
        // Whatever passes brings buffers back.
        assert_eq!(idle.look(9001, &LIMITS, (7, 10), true), IdleLook::default());
        assert_eq!(idle.look(9999, &LIMITS, (7, 10), true), IdleLook::default());
        assert_eq!(idle.look(10_001, &LIMITS, (7, 10), true), FREE);
    }

    #[test]
    fn what_is_under_way_begins_the_time_anew() {
        let mut idle = Idle::default();
        for now_ns in (0..5000).step_by(300) {
            let rests = now_ns % 900 != 0;
            assert_eq!(
                idle.look(now_ns, &LIMITS, (7, 9), rests),
                IdleLook::default()
            );
        }
        assert_eq!(idle.look(6000, &LIMITS, (7, 9), true), FREE);
    }

    #[test]
    fn without_a_limit_nothing_is_given_up() {
        let mut idle = Idle::default();
        for now_ns in [0, 1, u64::MAX] {
            let look = idle.look(now_ns, &IdleLimits::default(), (0, 0), true);
            assert_eq!(look, IdleLook::default());
        }
    }
}
