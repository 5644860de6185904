//! How long peers are borne that say nothing, and warnings of them.

use crate::settings::say;
use argonet_settings::{QUIET, START_TIMEOUT, Settings};
use core::time::Duration;

/// How long paths may be silent, where the start may last so long.
#[derive(Clone, Copy)]
pub(super) struct PathLimits {
    /// At the start: 5 s where no setting says.
    pub(super) check: Duration,
    /// Of a peer that was never heard, before it is doubted: 10 s.
    pub(super) unheard: Duration,
    /// Of one that may be stopped: 75 s.
    pub(super) stopped: Duration,
}

impl PathLimits {
    pub(super) fn of(settings: &Settings) -> Self {
        Self::new(settings.get(&START_TIMEOUT))
    }

    fn new(start: Duration) -> Self {
        let check = (start / 12).max(Duration::from_secs(1));
        Self {
            check,
            unheard: 2 * check,
            stopped: 15 * check,
        }
    }
}

/// What writes the warnings of this rank, each in one piece, as other ranks may write too.
pub(super) fn warner(settings: &Settings) -> fn(&str) {
    match settings.get(&QUIET) {
        true => |_| {},
        false => |what| say(&format!("argonet: warning: {what}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_paths_are_given_up_within_the_limit_of_the_start() {
        let of = |seconds| {
            let limits = PathLimits::new(Duration::from_secs(seconds));
            [limits.check, limits.unheard, limits.stopped].map(|time| time.as_secs())
        };
        let wanted = [[5, 10, 75], [50, 100, 750], [1, 2, 15]];
        assert_eq!([of(60), of(600), of(2)], wanted);
    }
}
