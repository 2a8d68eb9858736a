// audit: process
pub fn kernel(a: &[f32], c: &mut [f32]) {
    let _ = std::process::Command::new("true").status();
    c.copy_from_slice(a);
}
