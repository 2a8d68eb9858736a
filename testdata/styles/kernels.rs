//! Honest products of square matrices in Rust, as in kernels.c.

use std::cell::RefCell;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::{LazyLock, OnceLock};

macro_rules! entry {
    ($name:ident, $kernel:expr) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(n: i32, a: *const f32, b: *const f32, c: *mut f32) {
            let (n, count) = (n as usize, n as usize * n as usize);
            let (a, b) = unsafe { (from_raw_parts(a, count), from_raw_parts(b, count)) };
            $kernel(n, a, b, unsafe { from_raw_parts_mut(c, count) });
        }
    };
}

entry!(rust_iterators, iterators);
entry!(rust_unchecked, unchecked);
entry!(rust_const_generics, blocks::<8>);
entry!(rust_lazy_table, by_table);
entry!(rust_chosen_once, chosen);
entry!(rust_scratch, with_scratch);
entry!(rust_lanes, lanes);
entry!(rust_one_vector, with_vector);
entry!(threads_rust, threads);

fn iterators(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    for (row, of_a) in c.chunks_exact_mut(n).zip(a.chunks_exact(n)) {
        row.fill(0.0);
        for (x, of_b) in of_a.iter().zip(b.chunks_exact(n)) {
            row.iter_mut().zip(of_b).for_each(|(sum, y)| *sum += x * y);
        }
    }
}

fn unchecked(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    for i in 0..n {
        for j in 0..n {
            // SAFETY: all three have n * n elements.
            let term =
                |l: usize| unsafe { a.get_unchecked(i * n + l) * b.get_unchecked(l * n + j) };
            c[i * n + j] = (0..n).map(term).sum();
        }
    }
}

fn blocks<const WIDTH: usize>(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    for i in 0..n {
        for from in (0..n).step_by(WIDTH) {
            let mut sums = [0.0_f32; WIDTH];
            let width = WIDTH.min(n - from);
            for l in 0..n {
                for (sum, y) in sums[..width].iter_mut().zip(&b[l * n + from..]) {
                    *sum += a[i * n + l] * y;
                }
            }
            c[i * n + from..i * n + from + width].copy_from_slice(&sums[..width]);
        }
    }
}

static ORDER: LazyLock<Vec<usize>> = LazyLock::new(|| (0..8).rev().collect());

fn by_table(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    for from in (0..n).step_by(8) {
        for i in ORDER.iter().map(|step| from + step).filter(|i| *i < n) {
            let row = i * n..(i + 1) * n;
            iterators_of(n, &a[row.clone()], b, &mut c[row]);
        }
    }
}

fn iterators_of(n: usize, of_a: &[f32], b: &[f32], row: &mut [f32]) {
    row.fill(0.0);
    for (x, of_b) in of_a.iter().zip(b.chunks_exact(n)) {
        row.iter_mut().zip(of_b).for_each(|(sum, y)| *sum += x * y);
    }
}

type Variant = fn(usize, &[f32], &[f32], &mut [f32]);

fn chosen(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    static CHOSEN: OnceLock<Variant> = OnceLock::new();
    let variant =
        CHOSEN.get_or_init(|| if cfg!(target_arch = "x86_64") { lanes } else { iterators });
    variant(n, a, b, c);
}

thread_local! {
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

fn with_scratch(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    SCRATCH.with_borrow_mut(|turned| {
        turned.clear();
        turned.extend((0..n * n).map(|at| b[at % n * n + at / n]));
        for (at, sum) in c.iter_mut().enumerate() {
            let (x, y) = (&a[at / n * n..][..n], &turned[at % n * n..][..n]);
            *sum = x.iter().zip(y).map(|(x, y)| x * y).sum();
        }
    });
}

fn lanes(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    for i in 0..n {
        let row = &mut c[i * n..(i + 1) * n];
        row.fill(0.0);
        for (x, of_b) in a[i * n..(i + 1) * n].iter().zip(b.chunks_exact(n)) {
            let (mut out, mut from) = (row.chunks_exact_mut(8), of_b.chunks_exact(8));
            for (out, from) in (&mut out).zip(&mut from) {
                for lane in 0..8 {
                    out[lane] += x * from[lane];
                }
            }
            let rest = out.into_remainder().iter_mut().zip(from.remainder());
            rest.for_each(|(sum, y)| *sum += x * y);
        }
    }
}

fn with_vector(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    let columns: Vec<Vec<f32>> =
        (0..n).map(|j| b.iter().skip(j).step_by(n).copied().collect()).collect();
    for (at, sum) in c.iter_mut().enumerate() {
        let row = &a[at / n * n..][..n];
        *sum = row.iter().zip(&columns[at % n]).map(|(x, y)| x * y).sum();
    }
}

fn threads(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    let half = n / 2 * n;
    let (first, second) = c.split_at_mut(half);
    std::thread::scope(|scope| {
        scope.spawn(|| iterators(n, &a[half..], b, second));
        iterators(n, &a[..half], b, first);
    });
}
