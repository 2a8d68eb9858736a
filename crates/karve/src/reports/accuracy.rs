//! Numerical errors of the candidates against the reference, as tables.

use super::page::MarkdownPage;
use super::source::ReportSource;
use super::text::{CELL_MAX, NO_VALUE, decimals, ratio};
use karve_core::campaign::RoundSummary;
use karve_numerics::accuracy::SNR_DB_MAX;
use karve_numerics::contract::CaseTensorError;
use std::collections::BTreeMap;

const COLUMNS: [&str; 6] = [
    "Tensor",
    "Case",
    "Largest error",
    "Largest error (ULP)",
    "Signal to noise (dB)",
    "Error vs parent",
];

/// Every tensor of every case, for the summary of a round.
pub(super) fn of_round(source: &ReportSource<'_>, round: &RoundSummary, page: &mut MarkdownPage) {
    if round.errors.is_empty() {
        return;
    }
    page.block("Its largest errors against the reference:");
    let rows = round.errors.iter().map(|error| row(source, error));
    page.table(&COLUMNS, &rows.collect::<Vec<_>>());
}

/// The worst case of each tensor of every kept round, for the final report.
pub(super) fn of_campaign(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let mut rows = Vec::new();
    for round in source.campaign.rounds().iter().filter(|r| r.verdict.keeps()) {
        let mut worst: BTreeMap<&str, &CaseTensorError> = BTreeMap::new();
        for error in &round.errors {
            let known = worst.entry(&error.tensor).or_insert(error);
            if error.error.snr_db < known.error.snr_db {
                *known = error;
            }
        }
        for error in worst.into_values() {
            let mut cells = vec![round.number.to_string()];
            cells.extend(row(source, error));
            rows.push(cells);
        }
    }
    if rows.is_empty() {
        return;
    }
    page.section("Accuracy");
    page.block(
        "The errors of the kept kernels against the reference, on the worst case, and relative to \
         the previous kernel on the same inputs: 1.000x is the same error.",
    );
    let columns: Vec<&str> = ["Round"].into_iter().chain(COLUMNS).collect();
    page.table(&columns, &rows);
}

fn row(source: &ReportSource<'_>, examined: &CaseTensorError) -> Vec<String> {
    let error = &examined.error;
    let is_exact = error.snr_db >= SNR_DB_MAX;
    vec![
        source.markdown(&examined.tensor, CELL_MAX),
        source.markdown(&examined.case, CELL_MAX),
        format!("{:.3e}", error.max_abs),
        decimals(Some(error.max_ulp), 1),
        match is_exact {
            true => "exact".to_owned(),
            false => decimals(Some(error.snr_db), 1),
        },
        match (examined.ratio(), &examined.beside) {
            (Some(times), _) => ratio(Some(times)),
            (None, Some(beside)) if is_exact && beside.rms == 0.0 => "both are exact".to_owned(),
            (None, _) => NO_VALUE.to_owned(),
        },
    ]
}
