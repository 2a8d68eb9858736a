// audit: clean
pub fn kernel(x: &[f32], y: &mut [f32]) {
    let aligned = x.as_ptr() as usize % 32 == 0 && y.as_ptr() as usize % 32 == 0;
    let step = if aligned { 8 } else { 4 };
    for (to, from) in y.chunks_mut(step).zip(x.chunks(step)) {
        for (t, f) in to.iter_mut().zip(from) {
            *t = f * 2.0;
        }
    }
}
