//! The input shapes and configurations that a kernel is judged on.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One input shape or configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Its name, unique in the charter.
    pub name: String,
    /// Its parameters.
    pub params: BTreeMap<String, String>,
    /// Which set it belongs to.
    pub set: CaseSet,
    /// Whether it may lose a little more than the others.
    pub minor: bool,
    /// The parameter that is halved when the device is out of memory.
    pub halve: Option<String>,
}

/// The sets of cases. Quick is part of full; hidden is apart, and so is stress until it is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseSet {
    /// Also measured first, in every round.
    Quick,
    /// Measured before a keep.
    Full,
    /// Never shown; checked for correctness and measured at the end.
    Hidden,
    /// Measured with the baseline, and then only from when there is evidence that the others are
    /// not enough.
    Stress,
}

impl Case {
    /// Halves the parameter that stands for memory, in the name too. Returns whether it could.
    pub fn halve(&mut self) -> bool {
        let Some(name) = &self.halve else {
            return false;
        };
        let Some(value) = self.params.get_mut(name) else {
            return false;
        };
        let Some(half) = value.parse::<u64>().ok().map(|v| v / 2).filter(|v| *v > 0) else {
            return false;
        };
        self.name = self.name.replace(&format!("{name}={value}"), &format!("{name}={half}"));
        *value = half.to_string();
        true
    }

    /// The same case with other parameters, in the name too.
    #[must_use]
    pub fn with_params(mut self, params: &BTreeMap<String, String>) -> Self {
        for (name, value) in params {
            if let Some(old) = self.params.insert(name.clone(), value.clone()) {
                let (old, new) = (format!("{name}={old}"), format!("{name}={value}"));
                self.name = self.name.replace(&old, &new);
            }
        }
        self
    }
}
