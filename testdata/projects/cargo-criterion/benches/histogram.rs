use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion};
use std::hint::black_box;
use tonemap::histogram;

fn image(n: usize) -> Vec<u8> {
    (0..n as u32).map(|i| (i.wrapping_mul(2654435761) >> 24) as u8).collect()
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("histogram");
    for n in [4096, 65536] {
        let pixels = image(n);
        group.bench_with_input(BenchmarkId::from_parameter(n), &pixels, |b, pixels| {
            b.iter(|| histogram(black_box(pixels)))
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
