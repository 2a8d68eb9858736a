//! workload: polynomial of degree 7, f32, 4096 elements, one thread
//! before: -C opt-level=2
//! after: -C opt-level=3 -C codegen-units=1 -C target-cpu=x86-64-v3

const REPEATS: u32 = 4000;
include!("../bench.rs");

struct All {
    x: Vec<f32>,
    y: Vec<f32>,
}

fn prepare() -> All {
    All {
        x: floats(4096),
        y: floats(4096),
    }
}

#[inline(never)]
fn polynomial(x: &[f32], y: &mut [f32]) {
    for (x, y) in x.iter().zip(y) {
        let mut p = 0.125;
        for k in 1..8 {
            p = p * *x + k as f32;
        }
        *y = p;
    }
}

fn kernel(all: &mut All) {
    polynomial(&all.x, &mut all.y);
}

fn check(all: &All) -> bool {
    let near = |(x, y): (&f32, &f32)| {
        let want = (1..8).fold(0.125, |p, k| p * f64::from(*x) + f64::from(k));
        (f64::from(*y) - want).abs() < 1e-3
    };
    all.x.iter().zip(&all.y).all(near)
}
