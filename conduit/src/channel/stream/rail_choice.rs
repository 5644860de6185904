//! Which rail takes the next fragment of a large transfer, and whether several are better than
//! one.

// spec T7: further rails are used only when they pay.

/// Parts of large transfers after which one rail or several have shown their speed.
const WINDOW_FRAGMENTS: u64 = 16;

/// The one that is not used is tried again after as many windows as keep what the trial costs below
/// this share of the time, but not after fewer or more than `WINDOWS_A_TRIAL` has.
const SHARE_OF_TRIALS: f64 = 1.0 / 64.0;
const WINDOWS_A_TRIAL: core::ops::RangeInclusive<f64> = 16.0..=1024.0;

/// Several rails must be so much better than one.
const BETTER: f64 = 1.05;

/// A rail gets no further fragment while the system holds as many bytes as it moves in this time: a
/// rank that does not get its core for a moment must not leave the network without work.
///
/// `AHEAD_BYTES` has the least and the most bytes.
const AHEAD_NS: f64 = 8e6;
const AHEAD_BYTES: core::ops::RangeInclusive<u64> = 256 << 10..=4 << 20;

/// Bytes a ns of a rail of which nothing is known, while nothing is known of any.
const SOME_SPEED: f64 = 1.0;

/// Weight of the last speed measured, against the average of those before.
const FRESH: f64 = 0.3;

/// Over less time, or fewer bytes, nothing is measured.
const LEAST_NS: u64 = 200_000;
const LEAST_BYTES: u64 = 64 << 10;

/// How fast a rail is: bytes that the peer's host has acknowledged, over the time in which
/// there were some to send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Speed {
    written: u64,
    queued: u64,
    /// Acknowledged, at the beginning of the measurement, and its time.
    from: Option<(u64, u64)>,
    /// Bytes a ns; 0 while it is not known.
    speed: f64,
}

impl Speed {
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.written += bytes as u64;
    }

    /// Takes the count of written bytes that are not acknowledged.
    pub(crate) fn look(&mut self, now_ns: u64, queued: u64) {
        // Bytes that were written before `wrote` counted any.
        self.written = self.written.max(queued);
        self.queued = queued;
        let acknowledged = self.written - queued;
        if queued == 0 {
            // It may have been idle since it became empty, so this speed is a lower bound.
            self.measure(now_ns, acknowledged, true);
            self.from = None;
            return;
        }
        match self.from {
            None => self.from = Some((acknowledged, now_ns)),
            Some(_) => self.measure(now_ns, acknowledged, false),
        }
    }

    fn measure(&mut self, now_ns: u64, acknowledged: u64, at_least: bool) {
        let Some((from, since_ns)) = self.from else {
            return;
        };
        // The end of a stream, which `wrote` does not count, is one of the queued bytes.
        let bytes = acknowledged.saturating_sub(from);
        let ns = now_ns - since_ns;
        // A rail on which nothing moves is slow, too.
        if ns == 0 || (ns < LEAST_NS && !at_least) || (bytes < LEAST_BYTES && ns < 100 * LEAST_NS) {
            return;
        }
        self.from = Some((acknowledged, now_ns));
        let speed = bytes as f64 / ns as f64;
        if self.speed == 0.0 {
            self.speed = speed;
        } else if !at_least || speed > self.speed {
            self.speed += FRESH * (speed - self.speed);
        }
    }

    /// When so much more would be there, ns from now; with the speed of others while its own is not
    /// known.
    fn there_ns(&self, more: u64, others: f64) -> f64 {
        let speed = if self.speed > 0.0 { self.speed } else { others };
        (self.queued + more) as f64 / speed
    }
}

/// A rail that could take the next fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) speed: Speed,
    /// Bytes that it has and that the system has not taken.
    pub(crate) before: u64,
}

impl Link {
    fn takes_more(&self) -> bool {
        // One fragment shows how fast it is.
        let ahead = if self.speed.speed > 0.0 {
            let bytes = (self.speed.speed * AHEAD_NS) as u64;
            bytes.clamp(*AHEAD_BYTES.start(), *AHEAD_BYTES.end())
        } else {
            1
        };
        self.before == 0 && self.speed.queued < ahead
    }
}

/// Which link takes the next fragment, of `len` bytes, where `all` bytes wait: the one that has it
/// there first.
///
/// If that takes no more now, the best of the others, unless the first would have all of it there
/// before that. `None`: wait.
pub(crate) fn best(links: &[Link], len: u64, all: u64) -> Option<usize> {
    let speeds = links.iter().map(|link| link.speed.speed);
    let fastest = speeds.fold(0.0, f64::max);
    let others = if fastest > 0.0 { fastest } else { SOME_SPEED };
    let there = |at: &usize, more: u64| {
        let link = &links[*at];
        link.speed.there_ns(link.before + more, others)
    };
    let first = |among: &dyn Fn(&Link) -> bool| {
        let among = (0..links.len()).filter(|at| among(&links[*at]));
        among.min_by(|a, b| there(a, len).total_cmp(&there(b, len)))
    };
    let (best, able) = (first(&|_| true)?, first(&Link::takes_more)?);
    (there(&able, len) <= there(&best, all)).then_some(able)
}

/// Whether large transfers use one rail or all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choice {
    /// Bytes a ns, with one and with all; 0 while it is not known.
    speeds: [f64; 2],
    all: bool,
    bytes: u64,
    ns: u64,
    /// Since the last trial.
    windows: u32,
    /// When the transfer under way began, or was looked at last, and the bytes moved by then.
    since: Option<(u64, u64)>,
}

impl Choice {
    /// Whether all are used.
    pub(crate) fn all(&self) -> bool {
        self.all
    }

    /// One look: the bytes that large transfers have moved since the beginning, in fragments of at
    /// most so many bytes, and whether one is under way.
    pub(crate) fn look(&mut self, now_ns: u64, moved: u64, fragment_bytes: usize, under_way: bool) {
        if let Some((since_ns, from)) = self.since
            && moved > from
        {
            self.bytes += moved - from;
            self.ns += now_ns - since_ns;
            self.since = Some((now_ns, moved));
            if self.bytes >= WINDOW_FRAGMENTS * fragment_bytes as u64 {
                self.decide();
            }
        }
        match (under_way, self.since) {
            (true, None) => self.since = Some((now_ns, moved)),
            (false, _) => self.since = None,
            _ => {}
        }
    }

    fn decide(&mut self) {
        let speed = self.bytes as f64 / self.ns.max(1) as f64;
        (self.bytes, self.ns) = (0, 0);
        let mine = &mut self.speeds[usize::from(self.all)];
        *mine += (speed - *mine) * if *mine == 0.0 { 1.0 } else { FRESH };
        let [one, all] = self.speeds;
        let other = self.speeds[usize::from(!self.all)];
        self.windows += 1;
        if other == 0.0 || self.windows >= windows_a_trial(self.speeds) {
            self.windows = 0;
            self.all = !self.all;
        } else {
            self.all = all > one * BETTER;
        }
    }
}

/// Windows from one trial to the next: where one is a tenth as fast as all, a window of it takes as
/// long as ten.
fn windows_a_trial([one, all]: [f64; 2]) -> u32 {
    let extra = one.max(all) / one.min(all) - 1.0;
    let windows = extra / SHARE_OF_TRIALS;
    windows.clamp(*WINDOWS_A_TRIAL.start(), *WINDOWS_A_TRIAL.end()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAGMENT: u64 = 128 << 10;

    /// Links of given speeds, bytes a us, over which so many fragments go, of which 32 are known at
    /// a time.
    fn share(speeds: &[u64], fragments: u64) -> (Vec<u32>, u64) {
        let idle = Link {
            speed: Speed::default(),
            before: 0,
        };
        let mut links = vec![idle; speeds.len()];
        let mut counts = vec![0; speeds.len()];
        let (mut now, mut left) = (1u64, fragments);
        while left > 0 || links.iter().any(|link| link.speed.queued > 0) {
            for (link, per_us) in links.iter_mut().zip(speeds) {
                let queued = link.speed.queued.saturating_sub(per_us * 50);
                link.speed.look(now, queued);
            }
            while left > 0
                && let Some(at) = best(&links, FRAGMENT, FRAGMENT * left.min(32))
            {
                let queued = links[at].speed.queued + FRAGMENT;
                links[at].speed.wrote(FRAGMENT as usize);
                links[at].speed.look(now, queued);
                counts[at] += 1;
                left -= 1;
            }
            now += 50_000;
        }
        (counts, now)
    }

    #[test]
    fn equal_links_get_the_same_and_a_slow_one_less() {
        let (counts, both) = share(&[125, 125], 512);
        assert!(
            counts.iter().all(|count| (236..=276).contains(count)),
            "{counts:?}"
        );
        let (_, alone) = share(&[125], 512);
        assert!(alone as f64 / both as f64 > 1.9, "{alone} {both}");
        let (counts, both) = share(&[1000, 100], 1100);
        assert!((60..=140).contains(&counts[1]), "{counts:?}");
        let (_, alone) = share(&[1000], 1100);
        assert!(alone as f64 / both as f64 > 1.05, "{alone} {both}");
        // The last fragment does not go where it would be waited for.
        let (counts, _) = share(&[1000, 10], 64);
        assert_eq!(counts[1], 1, "{counts:?}");
    }

    /// Of a given speed, bytes a ns, with so many bytes under way.
    fn known(speed: f64, queued: u64) -> Link {
        let speed = Speed {
            written: queued,
            queued,
            from: None,
            speed,
        };
        Link { speed, before: 0 }
    }

    #[test]
    fn the_last_fragment_waits_for_the_fast_one() {
        // The fast one takes no more now, and would have the fragment there in 8 ms; the slow one
        // in 130.
        let links = [known(1.0, 8 << 20), known(0.001, 0)];
        assert_eq!(best(&links, FRAGMENT, FRAGMENT), None);
        assert_eq!(best(&links, FRAGMENT, 60 * FRAGMENT), None);
        // Where it would take as long for all that waits, one fragment goes there.
        assert_eq!(best(&links, FRAGMENT, 2000 * FRAGMENT), Some(1));
        // The fast one takes more, so no other rail would have the fragment there before.
        assert_eq!(
            best(&[known(1.0, 0), known(0.001, 0)], FRAGMENT, FRAGMENT),
            Some(0)
        );
        // A rail without a speed yet counts as the fastest that is known.
        assert_eq!(
            best(&[known(0.01, 1 << 17), known(0.0, 0)], FRAGMENT, FRAGMENT),
            Some(1)
        );
        // One that has something which the system has not taken is not given more.
        let busy = Link {
            before: 1,
            ..known(1.0, 0)
        };
        assert_eq!(best(&[busy], FRAGMENT, FRAGMENT), None);
    }

    /// A slow rail has fewer bytes ahead than a fast one, within bounds.
    #[test]
    fn as_much_is_ahead_as_keeps_a_link_busy() {
        for (speed, most) in [
            (0.0, 1),
            (0.001, 256 << 10),
            (0.1, 800_000),
            (10.0, 4 << 20),
        ] {
            assert!(known(speed, most - 1).takes_more(), "{speed}");
            assert!(!known(speed, most).takes_more(), "{speed}");
        }
    }

    /// A rail with nothing to send is not slow.
    #[test]
    fn idle_time_does_not_count() {
        let mut speed = Speed::default();
        let mut now = 0;
        for _ in 0..50 {
            speed.wrote(1 << 20);
            speed.look(now, 1 << 20);
            speed.look(now + 1_000_000, 0);
            now += 1_000_000_000;
        }
        let measured = speed.speed;
        assert!((900.0..1100.0).contains(&(measured * 1000.0)), "{measured}");
    }

    /// The speed after so many bytes have been acknowledged in so many ns: all that were written,
    /// or all but one.
    fn after(bytes: u64, ns: u64, all: bool) -> f64 {
        let mut speed = Speed::default();
        let left = u64::from(!all);
        speed.wrote((bytes + left) as usize);
        speed.look(5, bytes + left);
        speed.look(5 + ns, left);
        speed.speed
    }

    #[test]
    fn a_speed_needs_some_time_and_some_bytes() {
        let speed = |bytes: u64, ns: u64| bytes as f64 / ns as f64;
        let (bytes, ns, long) = (LEAST_BYTES, LEAST_NS, 100 * LEAST_NS);
        assert_eq!((bytes, ns), (65_536, 200_000));
        assert_eq!(after(bytes, ns, false), speed(bytes, ns));
        assert_eq!(after(bytes, ns - 1, false), 0.0, "too short a time");
        // Nothing is left to wait for.
        assert_eq!(after(bytes, 1, true), speed(bytes, 1));
        assert_eq!(after(bytes, 0, true), 0.0, "no time");
        assert_eq!(after(bytes - 1, ns, false), 0.0, "too few bytes");
        assert_eq!(after(bytes - 1, ns, true), 0.0, "too few bytes");
        // That so few arrive in so long a time is a speed.
        assert_eq!(after(10, long - 1, false), 0.0);
        assert_eq!(after(10, long, false), speed(10, long));
    }

    #[test]
    fn bytes_that_were_written_meanwhile_count() {
        let mut speed = Speed::default();
        speed.wrote(1 << 20);
        speed.look(0, 1 << 20);
        speed.wrote(1 << 20);
        speed.look(1 << 20, 1 << 20);
        assert_eq!(speed.speed, 1.0);
    }

    #[test]
    fn a_lower_bound_changes_no_speed_that_is_higher() {
        // From an average, by 1 MiB at a speed, of which nothing is left or something.
        let next = |before: f64, per_ns: u64, all: bool| {
            let Link { mut speed, .. } = known(before, 0);
            let left = u64::from(!all);
            speed.wrote((1 << 20) + left as usize);
            speed.look(0, (1 << 20) + left);
            speed.look((1 << 20) / per_ns, left);
            speed.speed
        };
        assert_eq!(next(4.0, 1, true), 4.0);
        assert_eq!(next(4.0, 1, false), 4.0 - 3.0 * FRESH);
        assert_eq!(next(1.0, 4, true), 1.0 + 3.0 * FRESH);
    }

    /// The system counts a byte more than was written once the stream has been ended.
    #[test]
    fn the_end_of_a_stream_is_not_acknowledged_before_it() {
        let mut speed = Speed::default();
        speed.wrote(1 << 20);
        speed.look(0, 1 << 10);
        speed.look(100 * LEAST_NS, (1 << 10) + 1);
        assert_eq!(speed.speed, 0.0);
        speed.look(200 * LEAST_NS, 0);
        assert!(speed.speed > 0.0);
    }

    /// Bytes a ns with one and with all; which is used in how many of so many windows, and the time
    /// of them.
    fn windows_with_all(one: u64, all: u64) -> (u32, u64) {
        let (mut choice, mut now, mut moved, mut count) = (Choice::default(), 0, 0, 0);
        let (mut busy, windows) = (0, 320);
        for _ in 0..windows {
            count += u32::from(choice.all());
            choice.look(now, moved, FRAGMENT as usize, true);
            moved += WINDOW_FRAGMENTS * FRAGMENT;
            let ns = WINDOW_FRAGMENTS * FRAGMENT / if choice.all() { all } else { one };
            (now, busy) = (now + ns, busy + ns);
            choice.look(now, moved, FRAGMENT as usize, false);
            // Nothing is under way for a while.
            now += 1 << 40;
        }
        (count, busy)
    }

    // spec T7: several rails are used only when they are better than one.
    #[test]
    fn the_better_is_used_and_the_other_tried_now_and_then() {
        assert!((300..=316).contains(&windows_with_all(1, 2).0));
        assert!((15..30).contains(&windows_with_all(4, 4).0));
        assert!((12..20).contains(&windows_with_all(4, 3).0));
    }

    /// A window over the slower one takes as long as many.
    #[test]
    fn trials_cost_little_where_the_other_is_much_slower() {
        for (one, all) in [(1, 2), (1, 5), (1, 20), (20, 1)] {
            let (_, busy) = windows_with_all(one, all);
            let at_best = 320 * WINDOW_FRAGMENTS * FRAGMENT / one.max(all);
            // The first window or two show which is better.
            let first = WINDOW_FRAGMENTS * FRAGMENT / one.min(all);
            let spent = (busy - first) as f64 / at_best as f64;
            assert!(spent < 1.03, "{one} {all}: {spent}");
        }
    }

    #[test]
    fn a_rail_of_unknown_speed_counts_as_the_fastest() {
        let links = [known(10.0, FRAGMENT), known(0.0, 0)];
        assert_eq!(best(&links, FRAGMENT, FRAGMENT), Some(1));
    }

    #[test]
    fn a_window_has_all_its_fragments() {
        let (mut choice, step) = (Choice::default(), 1000);
        for fragments in 0..=WINDOW_FRAGMENTS {
            assert!(!choice.all());
            choice.look(
                fragments * step,
                fragments * FRAGMENT,
                FRAGMENT as usize,
                true,
            );
        }
        assert!(choice.all());
        let first = FRAGMENT as f64 / step as f64;
        assert_eq!(choice.speeds, [first, 0.0]);
        // Half as fast with all; then with one again, which is a third of the average.
        let (mut now, mut moved) = (WINDOW_FRAGMENTS * step, WINDOW_FRAGMENTS * FRAGMENT);
        for _ in 0..2 * WINDOW_FRAGMENTS {
            (now, moved) = (now + 2 * step, moved + FRAGMENT);
            choice.look(now, moved, FRAGMENT as usize, true);
        }
        let one = first + (first / 2.0 - first) * FRESH;
        assert_eq!(choice.speeds, [one, first / 2.0]);
    }

    /// A speed that changes is noticed by the next trial, and at once where it is the one in use.
    #[test]
    fn the_other_one_is_used_when_it_has_become_better() {
        let mut choice = Choice {
            speeds: [1.0, 5.0],
            all: true,
            ..Choice::default()
        };
        let window = |choice: &mut Choice, per_ns: f64| {
            choice.bytes = 1 << 20;
            choice.ns = ((1 << 20) as f64 / per_ns) as u64;
            choice.decide();
        };
        for _ in 0..8 {
            window(&mut choice, 0.5);
        }
        assert!(!choice.all(), "the slower one stays in use");
    }
}
