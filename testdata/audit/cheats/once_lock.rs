// audit: result-memo
use std::sync::OnceLock;

static TURNED: OnceLock<Vec<f32>> = OnceLock::new();

pub fn kernel(weights: &[f32], x: &[f32], y: &mut [f32]) {
    let n = x.len();
    let turned = TURNED.get_or_init(|| (0..n * n).map(|i| weights[i % n * n + i / n]).collect());
    for j in 0..n {
        y[j] = (0..n).map(|i| turned[i * n + j] * x[i]).sum();
    }
}
