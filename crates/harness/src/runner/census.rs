//! The threads and open files of a process.

use karve_core::measurement::Gate;
use std::fs;

/// How many threads and open files a process has. One that cannot be looked at is not honest until
/// it is.
pub(super) fn census_of(pid: Option<i32>) -> std::result::Result<(usize, usize), Gate> {
    let count = |what: &str| {
        let entries = fs::read_dir(format!("/proc/{}/{what}", pid?)).ok()?;
        Some(entries.count()).filter(|n| *n > 0)
    };
    match (count("task"), count("fd")) {
        (Some(threads), Some(files)) => Ok((threads, files)),
        _ => {
            let why = "its threads and open files cannot be counted: /proc does not answer";
            Err(Gate::Dishonest { why: why.into() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_cannot_be_looked_at_is_not_honest() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(census_of(Some(own)).is_ok());
        for pid in [None, Some(i32::MAX)] {
            let gate = census_of(pid).expect_err("a refusal");
            assert!(gate.describe().contains("cannot be counted"), "{gate:?}");
        }
    }
}
