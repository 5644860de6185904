//! From times to values.

use super::super::stats;

/// A value that is this much faster than the one that holds is taken; less may be chance.
pub(super) const LEAST_GAIN: f64 = 0.05;

/// Ways to do one load, and what each took.
pub(super) struct Timed {
    /// For each value the place of its way in `times`: values that make no difference share one.
    pub(super) way_of: Vec<usize>,
    /// Nanoseconds a call, chunk by chunk, of each way.
    pub(super) times: Vec<Vec<f64>>,
}

impl Timed {
    /// Nanoseconds with a value: a quarter of the chunks were faster.
    ///
    /// Whatever else runs on the machine only adds to some of them.
    pub(super) fn quartile(&self, value: usize) -> f64 {
        stats::quantile(&self.times[self.way_of[value]], 0.25)
    }

    /// Whether it makes a difference which value is taken.
    pub(super) fn differs(&self) -> bool {
        self.times.len() > 1
    }
}

/// Ratio of a value to the first one over the loads that differ: the geometric mean of the ratios
/// of times.
pub(super) fn against_first(loads: &[Timed], value: usize) -> f64 {
    let ratios = loads.iter().filter(|timed| timed.differs());
    let logs: Vec<f64> = ratios
        .map(|timed| (timed.quartile(value) / timed.quartile(0)).ln())
        .collect();
    if logs.is_empty() {
        return 1.0;
    }
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

/// The fastest of `values` values; the first, which holds, unless another is clearly faster.
pub(super) fn choose(loads: &[Timed], values: usize) -> usize {
    let means = (0..values).map(|value| (value, against_first(loads, value)));
    let best = means.min_by(|(_, a), (_, b)| a.total_cmp(b));
    best.filter(|(_, mean)| *mean <= 1.0 - LEAST_GAIN)
        .map_or(0, |(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(way_of: &[usize], times: &[f64]) -> Timed {
        Timed {
            way_of: way_of.to_vec(),
            times: times.iter().map(|time| vec![*time, *time, 9e9]).collect(),
        }
    }

    #[test]
    fn the_fastest_over_all_loads_is_taken_if_it_is_clearly_faster() {
        // Three values; the last load is the same with all.
        let loads = [
            timed(&[0, 1, 2], &[100.0, 50.0, 80.0]),
            timed(&[0, 1, 1], &[100.0, 90.0]),
            timed(&[0, 0, 0], &[1.0]),
        ];
        assert_eq!(choose(&loads, 3), 1);
        let mean = against_first(&loads, 1);
        assert!((mean - 0.45f64.sqrt()).abs() < 1e-12, "{mean}");
        assert_eq!(against_first(&loads[2..], 2), 1.0);
        // The value in force stays if the gain is small, or nothing differs.
        assert_eq!(choose(&[timed(&[0, 1], &[100.0, 96.0])], 2), 0);
        assert_eq!(choose(&[timed(&[0, 1], &[100.0, 94.0])], 2), 1);
        assert_eq!(choose(&loads[2..], 3), 0);
        assert_eq!(choose(&[timed(&[0, 1], &[100.0, 300.0])], 2), 0);
    }
}
