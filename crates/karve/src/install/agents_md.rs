//! Any other agent: a section in `AGENTS.md`.

use super::InstallSite;
use super::edit::PlannedWrite;
use super::guide::ToolDialect;

/// Its conventions: tools have the names that the server gives them.
pub(super) const DIALECT: ToolDialect = ToolDialect { prefix: "", arguments: "" };

/// Everything that is installed.
pub(super) fn pieces(_: &InstallSite) -> Vec<PlannedWrite> {
    vec![PlannedWrite { path: "AGENTS.md".to_owned(), how: DIALECT.section() }]
}
