//! A bug of the mutation check, and how many of them the tests noticed.

use crate::mutants::TestStrength;
use serde::{Deserialize, Serialize};

/// A bug that was planted to see whether the tests notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlantedBug {
    /// The file.
    pub file: String,
    /// What was planted, and where.
    pub bug: String,
    /// Whether the test failed because of it.
    pub noticed: bool,
    /// Whether it could not be built, so that it says nothing about the tests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unbuilt: bool,
    /// The output of the command.
    pub detail: String,
}

impl PlantedBug {
    /// How many of these bugs the tests noticed, of those that could be built; none if there are
    /// no bugs.
    pub fn strength(bugs: &[Self]) -> Option<TestStrength> {
        let mut strength = TestStrength::default();
        for bug in bugs.iter().filter(|bug| !bug.unbuilt) {
            strength.count(&bug.bug, &bug.file, bug.noticed);
        }
        (!bugs.is_empty()).then_some(strength)
    }
}
