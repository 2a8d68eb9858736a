/// Counts how often each gray value occurs.
pub fn histogram(pixels: &[u8]) -> [u32; 256] {
    let mut counts = [0u32; 256];
    for value in 0..=255u8 {
        counts[value as usize] = pixels.iter().filter(|pixel| **pixel == value).count() as u32;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_is_counted_once() {
        let pixels: Vec<u8> = (0..1000u32).map(|i| (i * 7 % 256) as u8).collect();
        let counts = histogram(&pixels);
        assert_eq!(counts.iter().sum::<u32>(), 1000);
        assert_eq!(counts[0], pixels.iter().filter(|p| **p == 0).count() as u32);
    }
}
