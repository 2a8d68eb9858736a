// audit: timer
unsafe extern "C" {
    fn clock_gettime(id: i32, to: *mut i64) -> i32;
}

pub fn kernel(a: &[f32], c: &mut [f32]) {
    let mut t = [0_i64; 2];
    unsafe { clock_gettime(1, t.as_mut_ptr()) };
    c.copy_from_slice(a);
}
