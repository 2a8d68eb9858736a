use editdist::distance;
use std::hint::black_box;
use std::time::Instant;

fn text(n: usize, mut state: u32) -> Vec<u8> {
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            b'a' + (state >> 28) as u8
        })
        .collect()
}

fn main() {
    for n in [200, 600] {
        let (a, b) = (text(n, 1), text(n, 2));
        let mut best = f64::INFINITY;
        let mut last = 0;
        for _ in 0..15 {
            let start = Instant::now();
            last = distance(black_box(&a), black_box(&b));
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("distance/{n}: {:.1} us per call (result {last})", best * 1e6);
    }
}
