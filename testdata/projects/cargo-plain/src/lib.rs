//! The edit distance of two byte strings.

/// How many insertions, deletions and replacements turn `a` into `b`.
pub fn distance(a: &[u8], b: &[u8]) -> usize {
    let width = b.len() + 1;
    let mut table = vec![0usize; (a.len() + 1) * width];
    for i in 0..=a.len() {
        table[i * width] = i;
    }
    for j in 0..=b.len() {
        table[j] = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = table[(i - 1) * width + j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let deleted = table[(i - 1) * width + j] + 1;
            let inserted = table[i * width + j - 1] + 1;
            table[i * width + j] = replaced.min(deleted).min(inserted);
        }
    }
    table[a.len() * width + b.len()]
}
