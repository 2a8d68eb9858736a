#[unsafe(no_mangle)]
pub unsafe extern "C" fn kernel(a: *const f32, b: *const f32, c: *mut f32, n: usize) {
    for i in 0..n {
        unsafe { *c.add(i) = *a.add(i) * *b.add(i) };
    }
}
