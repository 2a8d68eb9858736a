//! Which of several baselines ours is judged by.

use crate::comparison::Estimate;

/// The fastest baseline: the one over which our speedup is the smallest. Baselines that are not
/// correct or not measured have no speedup, and do not count.
pub fn fastest_baseline(speedups: &[Option<Estimate>]) -> Option<usize> {
    let measured = speedups.iter().enumerate().filter_map(|(at, speedup)| Some((at, (*speedup)?)));
    let numbers = measured.filter(|(_, speedup)| speedup.ratio.is_finite());
    numbers.min_by(|(_, a), (_, b)| a.ratio.total_cmp(&b.ratio)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_is_the_one_that_leaves_the_least_speedup() {
        let of = |ratio: f64| Some(Estimate { ratio, low: None, high: None });
        assert_eq!(fastest_baseline(&[of(3.0), of(1.2), None, of(1.5)]), Some(1));
        assert_eq!(fastest_baseline(&[of(0.8), of(1.2)]), Some(0));
        assert_eq!(fastest_baseline(&[None, of(f64::NAN)]), None);
        assert_eq!(fastest_baseline(&[]), None);
    }
}
