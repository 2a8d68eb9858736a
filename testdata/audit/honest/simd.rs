// audit: clean
use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps};

/// # Safety
/// Both slices are as long as `n`, and the CPU has FMA.
#[unsafe(no_mangle)]
#[target_feature(enable = "avx2,fma")]
pub unsafe extern "C" fn kernel(a: *const f32, b: *const f32, c: *mut f32, n: usize) {
    let mut sum = _mm256_setzero_ps();
    let whole = n / 8 * 8;
    for i in (0..whole).step_by(8) {
        unsafe { sum = _mm256_fmadd_ps(_mm256_loadu_ps(a.add(i)), _mm256_loadu_ps(b.add(i)), sum) };
    }
    let mut lanes = [0.0_f32; 8];
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
    let rest: f32 = (whole..n).map(|i| unsafe { *a.add(i) * *b.add(i) }).sum();
    unsafe { *c = lanes.iter().sum::<f32>() + rest };
}
