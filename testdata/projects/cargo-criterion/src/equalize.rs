use crate::histogram;

/// Spreads the gray values evenly.
pub fn equalize(pixels: &mut [u8]) {
    let counts = histogram(pixels);
    let mut below = 0u64;
    let mut map = [0u8; 256];
    for (value, count) in counts.iter().enumerate() {
        map[value] = (below * 255 / pixels.len().max(1) as u64) as u8;
        below += u64::from(*count);
    }
    for pixel in pixels {
        *pixel = map[usize::from(*pixel)];
    }
}
