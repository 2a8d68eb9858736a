//! Words for counts.

/// A count with a regular plural: "1 case", "2 cases", "2 entries".
pub fn counted(n: usize, what: &str) -> String {
    match (n, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (n, Some(stem)) => format!("{n} {stem}ies"),
        (n, None) => format!("{n} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!(counted(1, "kept gain"), "1 kept gain");
        assert_eq!(counted(0, "case"), "0 cases");
        assert_eq!(
            (counted(1, "entry"), counted(2, "entry")),
            ("1 entry".into(), "2 entries".into())
        );
    }
}
