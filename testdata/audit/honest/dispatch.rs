// audit: clean
use std::sync::OnceLock;

type Variant = fn(&[f32]) -> f32;

fn plain(x: &[f32]) -> f32 {
    x.iter().sum()
}

fn chosen() -> Variant {
    static CHOSEN: OnceLock<Variant> = OnceLock::new();
    *CHOSEN.get_or_init(|| if is_x86_feature_detected!("avx2") { plain } else { plain })
}

pub fn kernel(x: &[f32]) -> f32 {
    chosen()(x)
}
