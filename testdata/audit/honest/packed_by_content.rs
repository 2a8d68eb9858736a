// audit: static-state
use std::sync::Mutex;

static PACKED: Mutex<(Vec<f32>, Vec<f32>)> = Mutex::new((Vec::new(), Vec::new()));

pub fn kernel(w: &[f32], x: &[f32], y: &mut [f32]) {
    let n = x.len();
    let mut packed = PACKED.lock().unwrap();
    if packed.0.as_slice() != w {
        packed.0 = w.to_vec();
        packed.1 = (0..n * n).map(|i| w[i % n * n + i / n]).collect();
    }
    for (to, row) in y.iter_mut().zip(packed.1.chunks(n)) {
        *to = row.iter().zip(x).map(|(a, b)| a * b).sum();
    }
}
