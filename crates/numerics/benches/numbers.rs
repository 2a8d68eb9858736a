//! How fast inputs are drawn, converted and summed up: elements per second on one core.
//!
//! `cargo bench -p karve-core --bench numbers`

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and prints"
)]

use karve_numerics::accuracy::{AccuracyRuleSet, CrossBound, agree, measure};
use karve_numerics::draw::{Draw, fill, hash64};
use karve_numerics::tensor::{Dtype, from_f64, to_f64};
use std::hint::black_box;
use std::time::Instant;

/// The elements of a call of the usual size.
const N: usize = 150_000;

/// The fastest of many runs: what else the machine does only adds time.
fn row(what: &str, bytes: usize, mut run: impl FnMut()) {
    let mut best_s = f64::INFINITY;
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < 0.1 {
        let start = Instant::now();
        run();
        best_s = best_s.min(start.elapsed().as_secs_f64());
    }
    let (ms, rate, gb) = (best_s * 1e3, N as f64 / best_s / 1e6, bytes as f64 / best_s / 1e9);
    println!("{what:<28} {ms:>8.4} ms {rate:>9.0} million/s {gb:>7.2} GB/s");
}

fn drawing() {
    let boxed = |draw: &Draw| Box::new(draw.clone());
    let uniform = Draw::Uniform { low: -1.0, high: 1.0 };
    let normal = Draw::Normal { mean: 0.0, sd: 1.0 };
    let small = Draw::Integers { low: 0, high: 99 };
    let sparse = Draw::Sparse { density: 0.1, of: boxed(&normal) };
    for (name, draw, dtype) in [
        ("uniform", &uniform, Dtype::F32),
        ("uniform", &uniform, Dtype::F64),
        ("uniform", &uniform, Dtype::Bf16),
        ("uniform", &uniform, Dtype::F16),
        ("uniform", &uniform, Dtype::F8E4m3),
        ("normal", &normal, Dtype::F32),
        ("normal", &normal, Dtype::F64),
        ("normal", &normal, Dtype::Bf16),
        ("integers", &small, Dtype::I32),
        ("integers", &small, Dtype::I64),
        ("sparse", &sparse, Dtype::F32),
        ("denormals", &Draw::Denormals, Dtype::F32),
        ("mixed", &Draw::Mixed, Dtype::F32),
        ("cancelling", &Draw::Cancelling, Dtype::F32),
        ("permutation", &Draw::Permutation, Dtype::I32),
    ] {
        let mut out = vec![0; N * dtype.bytes()];
        let mut stream = 0;
        row(&format!("draw {name} {}", dtype.name()), out.len(), || {
            stream += 1;
            fill(draw, dtype, 7, stream, black_box(&mut out));
        });
    }
}

fn converting() {
    let draw = Draw::Normal { mean: 0.0, sd: 1.0 };
    for dtype in
        [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F8E4m3, Dtype::I32, Dtype::I64]
    {
        let mut bytes = vec![0; N * dtype.bytes()];
        fill(&draw, dtype, 7, 0, &mut bytes);
        let mut values = Vec::with_capacity(N);
        row(&format!("{} to f64", dtype.name()), bytes.len(), || {
            to_f64(dtype, black_box(&bytes), black_box(&mut values));
        });
        row(&format!("f64 to {}", dtype.name()), bytes.len(), || {
            from_f64(dtype, black_box(&values), black_box(&mut bytes));
        });
    }
}

fn summing() {
    let bytes = vec![1; 4 * N];
    row("checksum, 600 kB", bytes.len(), || {
        black_box(hash64(7, black_box(&bytes)));
    });
}

fn comparing() {
    let draw = Draw::Normal { mean: 0.0, sd: 1.0 };
    for dtype in [Dtype::F32, Dtype::F64, Dtype::F16, Dtype::Bf16] {
        let (mut a, mut values) = (vec![0; N * dtype.bytes()], Vec::new());
        fill(&draw, dtype, 7, 0, &mut a);
        to_f64(dtype, &a, &mut values);
        let tolerance = AccuracyRuleSet::Default.tolerance(dtype);
        let moved: Vec<f64> = values.iter().map(|v| v * (1.0 + 2.0 * dtype.epsilon())).collect();
        let stats = measure(&moved, &values, &tolerance);
        let bound = CrossBound::from(&stats, &stats, dtype);
        let mut b = vec![0; a.len()];
        from_f64(dtype, &moved, &mut b);
        row(&format!("agree {}", dtype.name()), a.len() * 2, || {
            black_box(agree(black_box(&b), black_box(&a), dtype, &bound));
        });
        row(&format!("measure {}", dtype.name()), a.len() * 2, || {
            black_box(measure(black_box(&moved), &values, &tolerance));
        });
    }
}

fn main() {
    drawing();
    converting();
    summing();
    comparing();
}
