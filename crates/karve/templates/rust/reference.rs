//! The reference: the same in float64, as simple as possible.

/// # Safety
///
/// `x` and `y` point to `rows * columns` numbers each.
#[no_mangle]
pub unsafe extern "C" fn softmax_reference(rows: i64, columns: i64, x: *const f64, y: *mut f64) {
    let (rows, columns) = (rows as usize, columns as usize);
    let x = std::slice::from_raw_parts(x, rows * columns);
    let y = std::slice::from_raw_parts_mut(y, rows * columns);
    for (x, y) in x.chunks_exact(columns).zip(y.chunks_exact_mut(columns)) {
        let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = x.iter().map(|x| (x - largest).exp()).sum();
        for (y, x) in y.iter_mut().zip(x) {
            *y = (x - largest).exp() / sum;
        }
    }
}
