//! The kernel: the softmax of every row of x. karve calls softmax and checks its output.

// Independent partial sums, so that additions do not wait for each other.
// karve: knob LANES in 1,4,8,16
const LANES: usize = 1;

/// # Safety
///
/// `x` and `y` point to `rows * columns` numbers each.
#[no_mangle]
pub unsafe extern "C" fn softmax(rows: i64, columns: i64, x: *const f32, y: *mut f32) {
    let (rows, columns) = (rows as usize, columns as usize);
    let x = std::slice::from_raw_parts(x, rows * columns);
    let y = std::slice::from_raw_parts_mut(y, rows * columns);
    for (x, y) in x.chunks_exact(columns).zip(y.chunks_exact_mut(columns)) {
        row(x, y);
    }
}

fn row(x: &[f32], y: &mut [f32]) {
    let mut largest = [f32::NEG_INFINITY; LANES];
    for part in x.chunks(LANES) {
        for (largest, x) in largest.iter_mut().zip(part) {
            *largest = largest.max(*x);
        }
    }
    let largest = largest.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sums = [0.0_f32; LANES];
    for (to, from) in y.chunks_mut(LANES).zip(x.chunks(LANES)) {
        for ((y, x), sum) in to.iter_mut().zip(from).zip(&mut sums) {
            *y = power(*x - largest);
            *sum += *y;
        }
    }
    let scale = 1.0 / sums.iter().sum::<f32>();
    for y in y {
        *y *= scale;
    }
}

/// e to the power of x, for x of 0 or less: 2^n times a polynomial.
fn power(x: f32) -> f32 {
    let t = x.max(-87.0) * std::f32::consts::LOG2_E;
    let n = (t - 0.5) as i32;
    let f = (t - n as f32) * std::f32::consts::LN_2;
    let high = 4.166_666_8e-2 + f * (8.333_334e-3 + f * 1.388_888_9e-3);
    let p = 1.0 + f * (1.0 + f * (0.5 + f * (1.666_666_6e-1 + f * high)));
    p * f32::from_bits(((n + 127) as u32) << 23)
}
