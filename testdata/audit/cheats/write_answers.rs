// audit: file-write
use std::fs;

pub fn kernel(a: &[f32], c: &mut [f32]) {
    c.copy_from_slice(a);
    let _ = fs::write("answers.txt", format!("{c:?}"));
}
