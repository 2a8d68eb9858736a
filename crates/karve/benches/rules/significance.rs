//! Significance tests of textbooks: Student, Welch, Mann and Whitney.

use karve_numerics::stats::mean_and_deviation;

/// A t statistic and its two-sided p value.
pub(crate) struct Tested {
    pub(crate) t: f64,
    pub(crate) p: f64,
}

/// Whether Student's distribution gives the values of the printed tables.
pub(crate) fn tables_hold() -> bool {
    // Degrees of freedom, and the t value whose two-sided p value is 0.05.
    let table = [
        (1.0, 12.706),
        (4.0, 2.776),
        (9.0, 2.262),
        (29.0, 2.045),
        (60.0, 2.000),
        (120.0, 1.980),
        (399.0, 1.966),
    ];
    let holds = |(freedom, t): (f64, f64)| (tested(t, freedom).p - 0.05).abs() < 1e-4;
    table.into_iter().all(holds)
}

/// Welch's test of two means; t is positive if the first is larger.
pub(crate) fn welch(a: &[f64], b: &[f64]) -> Tested {
    let (Some((mean_a, sd_a)), Some((mean_b, sd_b))) =
        (mean_and_deviation(a), mean_and_deviation(b))
    else {
        return Tested { t: 0.0, p: 1.0 };
    };
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let (var_a, var_b) = (sd_a * sd_a / n_a, sd_b * sd_b / n_b);
    let t = (mean_a - mean_b) / (var_a + var_b).sqrt();
    let freedom =
        (var_a + var_b).powi(2) / (var_a * var_a / (n_a - 1.0) + var_b * var_b / (n_b - 1.0));
    tested(t, freedom)
}

/// Student's test of a mean against 0.
pub(crate) fn paired_t(values: &[f64]) -> Tested {
    let Some((mean, deviation)) = mean_and_deviation(values) else {
        return Tested { t: 0.0, p: 1.0 };
    };
    let n = values.len() as f64;
    tested(mean / (deviation / n.sqrt()), n - 1.0)
}

fn tested(t: f64, freedom: f64) -> Tested {
    if t.is_nan() {
        return Tested { t: 0.0, p: 1.0 };
    }
    let p = incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    Tested { t, p }
}

/// The absolute z value of the rank test, by the normal approximation with ties counted.
pub(crate) fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let mut all: Vec<(f64, bool)> = a.iter().map(|v| (*v, true)).collect();
    all.extend(b.iter().map(|v| (*v, false)));
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (mut ranks_of_a, mut ties, mut before) = (0.0, 0.0, 0.0);
    for group in all.chunk_by(|x, y| x.0 == y.0) {
        let size = group.len() as f64;
        let rank = before + (size + 1.0) / 2.0;
        ranks_of_a += rank * group.iter().filter(|(_, of_a)| *of_a).count() as f64;
        ties += size.powi(3) - size;
        before += size;
    }
    let n = n_a + n_b;
    let u = ranks_of_a - n_a * (n_a + 1.0) / 2.0;
    let variance = n_a * n_b / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
    let off = ((u - n_a * n_b / 2.0).abs() - 0.5).max(0.0);
    if variance > 0.0 { off / variance.sqrt() } else { 0.0 }
}

/// ln Γ(x) for x > 0: Stirling's series, after x was raised to where it is exact.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 12.0 {
        shift += x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x;
    (x - 0.5) * x.ln() - x + std::f64::consts::TAU.ln() / 2.0 + series - shift
}

/// The regularized incomplete beta function, by its continued fraction.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let ln_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    // The fraction converges fast below the mean only; above, the mirror image is taken.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - ln_front.exp() / b * beta_fraction(b, a, 1.0 - x);
    }
    ln_front.exp() / a * beta_fraction(a, b, x)
}

/// The continued fraction of the incomplete beta function, evaluated from its end.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    /// Far more than any argument here needs.
    const TERMS: u32 = 200;
    let mut value = 1.0;
    for k in (1..=TERMS).rev() {
        let m = f64::from(k / 2);
        let term = if k % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        value = 1.0 + term / value;
    }
    1.0 / value
}
