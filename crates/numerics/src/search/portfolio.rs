//! A portfolio: a few settings that together serve many cases.
//!
//! A setting serves a case by the fraction of the best time measured for that case. A portfolio
//! serves it as well as the best of its settings does.

use std::cmp::Ordering;

/// Maximum number of sets to enumerate; beyond that the best is improved step by step.
const SETS_MAX: u64 = 20_000;
/// Rounds in which every setting may be swapped.
const SWAP_ROUNDS_MAX: usize = 16;
/// A further setting must improve the objective by this much.
const GAIN_MIN: f64 = 1e-3;

/// The objective of a portfolio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortfolioGoal {
    /// The worst-served case.
    Worst,
    /// All cases on average.
    #[default]
    Mean,
}

/// Settings that were chosen together.
#[derive(Clone, Debug, PartialEq)]
pub struct Portfolio {
    /// Which settings, by their index in the input, ascending.
    pub chosen: Vec<usize>,
    /// For each case: which of the chosen serves it, and the fraction of its best.
    pub served: Vec<(usize, f64)>,
}

impl Portfolio {
    /// The fraction of the worst-served case.
    pub fn worst(&self) -> f64 {
        let fractions = self.served.iter().map(|(_, fraction)| *fraction);
        fractions.fold(1.0, f64::min)
    }

    /// The mean fraction.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.served.iter().map(|(_, fraction)| fraction).sum();
        sum / self.served.len().max(1) as f64
    }

    fn better(&self, other: &Self, aim: PortfolioGoal) -> Ordering {
        let of = |one: &Self| match aim {
            PortfolioGoal::Worst => (one.worst(), one.mean()),
            PortfolioGoal::Mean => (one.mean(), one.worst()),
        };
        let (ours, theirs) = (of(self), of(other));
        ours.0.total_cmp(&theirs.0).then(ours.1.total_cmp(&theirs.1))
    }
}

/// Chooses at most `most` settings. `times` has the time of each case for each setting; all
/// settings have the same cases, and times are above 0.
pub fn portfolio(times: &[Vec<f64>], most: usize, aim: PortfolioGoal) -> Option<Portfolio> {
    let cases = times.first()?.len();
    let usable = |row: &&Vec<f64>| row.len() == cases && row.iter().all(|t| *t > 0.0);
    if cases == 0 || most == 0 || !times.iter().all(|row| usable(&row)) {
        return None;
    }
    let best = |case: usize| times.iter().map(|row| row[case]).fold(f64::INFINITY, f64::min);
    let bests: Vec<f64> = (0..cases).map(best).collect();
    let fractions: Vec<Vec<f64>> = times
        .iter()
        .map(|row| row.iter().zip(&bests).map(|(t, best)| best / t).collect())
        .collect();
    let choice = PortfolioChoice { useful: useful(&fractions), fractions };
    let mut chosen: Option<Portfolio> = None;
    for size in 1..=most.min(choice.useful.len()) {
        let next = if sets(choice.useful.len(), size) <= SETS_MAX {
            choice.of_all(size, aim)
        } else {
            choice.improved(chosen.as_ref(), aim)
        };
        let worth = chosen.as_ref().is_none_or(|before| match aim {
            PortfolioGoal::Worst => next.worst() >= before.worst() + GAIN_MIN,
            PortfolioGoal::Mean => next.mean() >= before.mean() + GAIN_MIN,
        });
        // Two settings may help only together, so a size that does not pay off is skipped.
        if worth {
            chosen = Some(next);
        }
    }
    chosen
}

/// Settings that no other one matches or beats on every case.
fn useful(fractions: &[Vec<f64>]) -> Vec<usize> {
    let covers = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a >= b);
    let is_useful = |(index, one): (usize, &Vec<f64>)| {
        let covered = fractions.iter().enumerate().any(|(other, them)| {
            // Of two equal ones the first stays.
            other != index && covers(them, one) && (!covers(one, them) || other < index)
        });
        (!covered).then_some(index)
    };
    fractions.iter().enumerate().filter_map(is_useful).collect()
}

/// How many sets of this size there are.
fn sets(of: usize, size: usize) -> u64 {
    let mut count = 1_u64;
    for at in 0..size {
        count = count.saturating_mul((of - at) as u64) / (at as u64 + 1);
    }
    count
}

struct PortfolioChoice {
    fractions: Vec<Vec<f64>>,
    useful: Vec<usize>,
}

impl PortfolioChoice {
    fn of(&self, chosen: &[usize]) -> Portfolio {
        let cases = self.fractions.first().map_or(0, Vec::len);
        let serves = |case: usize| {
            let each = chosen.iter().map(|at| (*at, self.fractions[*at][case]));
            each.fold((0, 0.0), |best, one| if one.1 > best.1 { one } else { best })
        };
        let mut chosen = chosen.to_vec();
        chosen.sort_unstable();
        Portfolio { served: (0..cases).map(serves).collect(), chosen }
    }

    /// The best of all sets of this size.
    fn of_all(&self, size: usize, aim: PortfolioGoal) -> Portfolio {
        let mut places: Vec<usize> = (0..size).collect();
        let mut best = self.of(&self.useful[..size]);
        loop {
            let chosen: Vec<usize> = places.iter().map(|at| self.useful[*at]).collect();
            let next = self.of(&chosen);
            if next.better(&best, aim).is_gt() {
                best = next;
            }
            let last = self.useful.len();
            let Some(moves) = (0..size).rev().find(|at| places[*at] < last - size + at) else {
                return best;
            };
            places[moves] += 1;
            for at in moves + 1..size {
                places[at] = places[at - 1] + 1;
            }
        }
    }

    /// One more setting than before, and swaps as long as they help.
    fn improved(&self, before: Option<&Portfolio>, aim: PortfolioGoal) -> Portfolio {
        let chosen = before.map(|p| p.chosen.clone()).unwrap_or_default();
        let with = |chosen: &[usize], at: usize| {
            let mut more = chosen.to_vec();
            more.push(at);
            self.of(&more)
        };
        let mut best = self.best(|at| with(&chosen, at), aim).unwrap_or_else(|| self.of(&chosen));
        for _ in 0..SWAP_ROUNDS_MAX {
            let mut next = best.clone();
            for out in &best.chosen {
                let rest: Vec<usize> = best.chosen.iter().copied().filter(|at| at != out).collect();
                if let Some(exchanged) = self.best(|at| with(&rest, at), aim)
                    && exchanged.better(&next, aim).is_gt()
                {
                    next = exchanged;
                }
            }
            if next == best {
                break;
            }
            best = next;
        }
        best
    }

    fn best(&self, of: impl Fn(usize) -> Portfolio, aim: PortfolioGoal) -> Option<Portfolio> {
        let all = self.useful.iter().map(|at| of(*at));
        all.max_by(|a, b| a.better(b, aim))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(times: &[&[f64]], most: usize, aim: PortfolioGoal, want: &[usize]) {
        let times: Vec<Vec<f64>> = times.iter().map(|row| row.to_vec()).collect();
        let found = portfolio(&times, most, aim).unwrap();
        assert_eq!(found.chosen, want, "{found:?}");
    }

    #[test]
    fn the_aim_decides() {
        // 0 is good everywhere, 1 and 2 are the best of one case each.
        let times: &[&[f64]] = &[&[1.2, 1.2, 1.2], &[1.0, 1.0, 9.0], &[9.0, 9.0, 1.0]];
        check(times, 1, PortfolioGoal::Worst, &[0]);
        check(times, 2, PortfolioGoal::Worst, &[1, 2]);
        check(times, 8, PortfolioGoal::Mean, &[1, 2]);
        let skewed: &[&[f64]] = &[&[1.5, 1.5, 1.5, 1.5], &[1.0, 1.0, 1.0, 9.0]];
        check(skewed, 1, PortfolioGoal::Worst, &[0]);
        check(skewed, 1, PortfolioGoal::Mean, &[1]);
    }

    #[test]
    fn one_setting_is_enough_where_it_is_the_best_of_all() {
        check(&[&[2.0, 2.0], &[1.0, 1.0], &[1.0, 1.0]], 8, PortfolioGoal::Mean, &[1]);
        check(&[&[3.0]], 8, PortfolioGoal::Worst, &[0]);
    }

    #[test]
    fn what_has_no_times_has_no_portfolio() {
        assert_eq!(portfolio(&[], 3, PortfolioGoal::Mean), None);
        assert_eq!(portfolio(&[vec![1.0], vec![1.0, 2.0]], 3, PortfolioGoal::Mean), None);
        assert_eq!(portfolio(&[vec![0.0]], 3, PortfolioGoal::Mean), None);
        assert_eq!(portfolio(&[vec![1.0]], 0, PortfolioGoal::Mean), None);
    }

    fn spaces() -> impl Strategy<Value = Vec<Vec<f64>>> {
        (1..6_usize).prop_flat_map(|cases| {
            prop::collection::vec(prop::collection::vec(0.5..4.0_f64, cases), 1..9)
        })
    }

    proptest! {
        #![proptest_config(crate::testing::fixed(128))]

        #[test]
        fn no_set_of_that_size_is_better(times in spaces(), most in 1..4_usize) {
            for aim in [PortfolioGoal::Worst, PortfolioGoal::Mean] {
                let found = portfolio(&times, most, aim).unwrap();
                prop_assert!(!found.chosen.is_empty() && found.chosen.len() <= most);
                for mask in 1..1_u32 << times.len() {
                    if mask.count_ones() as usize > most {
                        continue;
                    }
                    let of_mask = |case: usize| {
                        let in_mask = (0..times.len()).filter(|at| mask >> at & 1 == 1);
                        let best = times.iter().map(|t| t[case]).fold(f64::INFINITY, f64::min);
                        in_mask.map(|at| best / times[at][case]).fold(0.0, f64::max)
                    };
                    let all: Vec<f64> = (0..times[0].len()).map(of_mask).collect();
                    let (ours, theirs) = match aim {
                        PortfolioGoal::Worst => {
                            (found.worst(), all.iter().copied().fold(1.0, f64::min))
                        }
                        PortfolioGoal::Mean => {
                            (found.mean(), all.iter().sum::<f64>() / all.len() as f64)
                        }
                    };
                    prop_assert!(ours >= theirs - GAIN_MIN * 1.01, "{ours} {theirs}");
                }
            }
        }

        #[test]
        fn steps_come_near_to_the_best_of_all_sets(times in spaces()) {
            // A greedy choice reaches 1 - 1/e of the best mean, and swaps do not make it worse.
            let found = portfolio(&times, 3, PortfolioGoal::Mean).unwrap();
            let best = |case: usize| times.iter().map(|t| t[case]).fold(f64::INFINITY, f64::min);
            let cases = times[0].len();
            let fractions: Vec<Vec<f64>> = times
                .iter()
                .map(|row| (0..cases).map(|case| best(case) / row[case]).collect())
                .collect();
            let choice = PortfolioChoice { useful: useful(&fractions), fractions };
            let mut step: Option<Portfolio> = None;
            for _ in 0..3.min(choice.useful.len()) {
                step = Some(choice.improved(step.as_ref(), PortfolioGoal::Mean));
            }
            prop_assert!(step.unwrap().mean() >= 0.63 * found.mean());
        }
    }
}
