//! A few settings that together serve all cases of a project, from the readings of a tuning run.

use super::session::TuneResult;
use karve_numerics::grid::GridPoint;
use karve_numerics::search::PortfolioGoal;
use karve_numerics::{search, stats};

/// A portfolio and how well it serves the cases.
#[derive(Clone, Debug, PartialEq)]
pub struct PortfolioTable {
    /// Each setting, with the cases for which it is the best of them.
    pub rows: Vec<(GridPoint, Vec<String>)>,
    /// The fraction of the best reading that the worst-served case reaches.
    pub worst: f64,
    /// The same on average.
    pub mean: f64,
}

/// Chooses at most `most` of the measured settings.
pub fn choose(found: &TuneResult, most: usize, aim: PortfolioGoal) -> Option<PortfolioTable> {
    let (names, readings) = &found.by_case;
    let ranking = found.record.ranking();
    let of_point = |(point, value): &(GridPoint, f64)| {
        if names.len() == 1 {
            return Some((*point, vec![*value]));
        }
        let readings = readings.get(point)?;
        let whole: Vec<&Vec<f64>> = readings.iter().filter(|r| r.len() == names.len()).collect();
        let median = |case: usize| {
            let values: Vec<f64> = whole.iter().map(|reading| reading[case]).collect();
            stats::median(&values)
        };
        let cases: Option<Vec<f64>> = (0..names.len()).map(median).collect();
        Some((*point, cases?))
    };
    let rows: Vec<(GridPoint, Vec<f64>)> = ranking.iter().filter_map(of_point).collect();
    let times: Vec<Vec<f64>> = rows.iter().map(|(_, times)| times.clone()).collect();
    let chosen = search::portfolio(&times, most, aim)?;
    let serves = |at: &usize| {
        let cases = chosen.served.iter().zip(names);
        let of_this = cases.filter(|((by, _), _)| by == at);
        (rows[*at].0, of_this.map(|(_, name)| name.clone()).collect())
    };
    Some(PortfolioTable {
        rows: chosen.chosen.iter().map(serves).collect(),
        worst: chosen.worst(),
        mean: chosen.mean(),
    })
}
