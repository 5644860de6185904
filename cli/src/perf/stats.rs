//! From the times of chunks to figures.

use serde::{Deserialize, Serialize};

/// The `q`-quantile of `values` (0 is the smallest), linear between neighbors.
pub(crate) fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = q * last as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The smallest.
pub(crate) fn best(values: &[f64]) -> f64 {
    quantile(values, 0.0)
}

/// Measurements of a metric: nanoseconds an operation, chunk by chunk, ours and the limit's in
/// turn.
#[derive(Default)]
pub(crate) struct Chunks {
    pub(crate) ours: Vec<f64>,
    /// As many, or none where there is no limit.
    pub(crate) limit: Vec<f64>,
}

/// Two series of chunks compared, chunk by chunk.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Comparison {
    /// Median of the ratios of neighboring chunks, ours divided by the limit's.
    pub(crate) median: f64,
    /// A tenth of the ratios are smaller.
    pub(crate) p10: f64,
    /// A tenth of the ratios are larger.
    pub(crate) p90: f64,
    /// Our best chunk divided by the limit's best.
    pub(crate) best: f64,
}

impl Comparison {
    /// Compares chunks that were measured in turn.
    pub(crate) fn of(ours: &[f64], limit: &[f64]) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(limit).map(|(a, b)| a / b).collect();
        Self {
            median: median(&ratios),
            p10: quantile(&ratios, 0.1),
            p90: quantile(&ratios, 0.9),
            best: best(ours) / best(limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_their_neighbors() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&values), 2.5);
        assert_eq!(best(&values), 1.0);
        assert_eq!(quantile(&values, 1.0), 4.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn one_disturbed_chunk_does_not_move_the_comparison() {
        let got = Comparison::of(&[2.0, 2.0, 90.0], &[1.0, 1.0, 1.0]);
        assert_eq!((got.median, got.best), (2.0, 2.0));
    }
}
