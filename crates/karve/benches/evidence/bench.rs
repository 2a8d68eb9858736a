// What the kernels in Rust share: memory, numbers, a clock. See bench.h.

use std::time::Instant;

fn floats(n: usize) -> Vec<f32> {
    let mut state: u64 = 88_172_645_463_325_252;
    let draw = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as i32 as f32 / 2_147_483_648.0
    };
    (0..n).map(draw).collect()
}

fn main() {
    let mut all = prepare();
    kernel(&mut all);
    if std::env::args().nth(1).as_deref() == Some("check") {
        std::process::exit(if check(&all) { 0 } else { 1 });
    }
    let began = Instant::now();
    for _ in 0..REPEATS {
        kernel(std::hint::black_box(&mut all));
    }
    let ms = began.elapsed().as_secs_f64() * 1e3;
    println!("METRIC time_ms={:.9}", ms / f64::from(REPEATS));
}
