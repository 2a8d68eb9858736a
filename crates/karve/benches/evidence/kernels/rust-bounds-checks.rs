//! workload: sum of a f32 window of three elements over 4096 elements, one thread
//! flags: -C opt-level=3 -C target-cpu=x86-64-v3

const REPEATS: u32 = 5000;
include!("../bench.rs");

struct All {
    x: Vec<f32>,
    y: Vec<f32>,
}

fn prepare() -> All {
    All {
        x: floats(4098),
        y: floats(4096),
    }
}

#[cfg(not(after))]
#[inline(never)]
fn windows(x: &[f32], y: &mut [f32], n: usize) {
    for i in 0..n {
        y[i] = x[i] + x[i + 1] + x[i + 2];
    }
}

#[cfg(after)]
#[inline(never)]
fn windows(x: &[f32], y: &mut [f32], n: usize) {
    let (x, y) = (&x[..n + 2], &mut y[..n]);
    for i in 0..n {
        y[i] = x[i] + x[i + 1] + x[i + 2];
    }
}

fn kernel(all: &mut All) {
    let n = std::hint::black_box(all.y.len());
    windows(&all.x, &mut all.y, n);
}

fn check(all: &All) -> bool {
    let near = |i: usize| {
        let want: f64 = (0..3).map(|k| f64::from(all.x[i + k])).sum();
        (f64::from(all.y[i]) - want).abs() < 1e-3
    };
    (0..all.y.len()).all(near)
}
