//! The project's own acceptance test, which a kernel must pass before it is handed back.

use super::{CommandPurpose, Harness};
use crate::outcome::GateResult;
use std::path::Path;

impl Harness {
    /// Runs an acceptance test once in a built tree.
    pub fn accept(&self, line: &str, tree: &Path) -> GateResult<()> {
        let trial = self.trial(tree, CommandPurpose::Test)?;
        self.test_once(line, tree, trial.as_ref(), None)
    }
}
