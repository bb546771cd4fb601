//! The few statistics that the benchmarks use.

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The tenth percentile: the figure without disturbances. With fewer than eleven rounds, close to the best.
pub(crate) fn p10(values: &[f64]) -> f64 {
    quantile(values, 0.1)
}

/// The 99th percentile.
pub(crate) fn p99(values: &[f64]) -> f64 {
    quantile(values, 0.99)
}

pub(crate) fn worst(values: &[f64]) -> f64 {
    quantile(values, 1.0)
}

/// The median of the pairwise ratios: both values of a pair come from the same round, so the machine's mood cancels out.
pub(crate) fn median_ratio(ours: &[f64], floor: &[f64]) -> f64 {
    let ratios: Vec<f64> = ours.iter().zip(floor).map(|(ours, floor)| ours / floor).collect();
    median(&ratios)
}

/// Interpolates between the two nearest values; not a number without values.
fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q * last as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&values), 2.5);
        assert_eq!(worst(&values), 4.0);
        assert!((p10(&values) - 1.3).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_slow_round_does_not_change_the_ratio() {
        assert_eq!(median_ratio(&[2.0, 20.0, 2.0], &[1.0, 10.0, 1.0]), 2.0);
    }
}
