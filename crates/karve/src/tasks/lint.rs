//! What the check of a task lets through: the script that tries it, and what that reports.

use super::draft::RUN;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The part of the script that tries wrong results.
const LINT: &str = include_str!("lint.py");

/// Most findings and notes of one report.
const LISTED_MAX: usize = 100;

/// What was found in a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLint {
    /// How many cases were examined.
    pub examined: u32,
    /// What passes although it is wrong.
    pub findings: Vec<AcceptedFault>,
    /// What limits the result.
    pub notes: Vec<String>,
}

/// Something that the check of a task accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedFault {
    /// A short name, such as `zeros`.
    pub rule: String,
    /// What passes.
    pub what: String,
    /// The case that shows it.
    pub shows: String,
}

/// The script for a project: that of command mode, with the trials in place of its own commands.
pub(super) fn script_of_lint(dir: &Path) -> String {
    let place = serde_json::Value::String(dir.join(super::draft::RUN_PATH).display().to_string());
    let own = RUN.split("if __name__ == \"__main__\":").next().unwrap_or(RUN);
    format!("__file__ = {place}\n{own}\n{LINT}")
}

/// Reads the last line of what the script prints.
pub(super) fn parse_lint(text: &str) -> Result<TaskLint, String> {
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut lint: TaskLint = serde_json::from_str(line).map_err(|error| error.to_string())?;
    lint.findings.truncate(LISTED_MAX);
    lint.notes.truncate(LISTED_MAX);
    Ok(lint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_report() {
        let text = "noise\n{\"examined\": 2, \"findings\": [{\"rule\": \"zeros\", \"what\": \"a\", \
            \"shows\": \"b\"}], \"notes\": []}\n\n";
        let lint = parse_lint(text).unwrap();
        assert_eq!((lint.examined, &*lint.findings[0].rule), (2, "zeros"));
        assert!(parse_lint("Traceback").is_err() && parse_lint("").is_err());
        let script = script_of_lint(Path::new("/a \"b\""));
        assert!(script.starts_with("__file__ = \"/a \\\"b\\\"/karve/run.py\"\n"));
        assert!(script.ends_with("\nlint()\n") && !script.contains("    main()"));
    }
}
