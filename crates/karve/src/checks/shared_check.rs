//! The mutation check of `karve doctor`, stored beside the repository's history, where no
//! candidate can write: the campaign that follows on the same commit does not repeat it.

use super::MutationResult;
use karve_core::campaign::PlantedBug;
use karve_core::charter::Charter;
use karve_core::mutants::TestStrength;
use karve_harness::git::Repo;
use karve_os::{clock, files};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::PathBuf;

/// Below the directory of git.
const FILE: &str = "karve/mutation-check.json";
/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// A check is used for this long: tools and data outside the repository may change.
const AGE_MAX_S: i64 = 12 * 3_600;

/// Where the result of a check is, and what it is for.
#[derive(Clone, Debug)]
pub struct SharedCheck {
    path: PathBuf,
    key: String,
}

#[derive(Serialize, Deserialize)]
struct StoredCheck {
    key: String,
    at_s: i64,
    bugs: Vec<PlantedBug>,
    tested: u32,
    strength: Option<TestStrength>,
}

impl SharedCheck {
    /// The check of a commit with the commands, cases and files of a charter.
    pub fn of(repo: &Repo, commit: &str, charter: &Charter) -> Self {
        let names: Vec<_> = charter.cases.iter().map(|case| (&case.name, &case.params)).collect();
        let what = json!({
            "commit": commit,
            "workdir": charter.workdir,
            "commands": charter.commands,
            "contract": charter.contract,
            "cases": names,
            "editable": charter.editable,
            "karve": env!("CARGO_PKG_VERSION"),
        });
        let key = files::sha256_hex(what.to_string().as_bytes());
        Self { path: repo.common_dir().join(FILE), key }
    }

    /// The stored result, if it is for the same commit and commands, and not old.
    pub fn get(&self) -> Option<MutationResult> {
        let text = files::read_text(&self.path, BYTES_MAX).ok()?;
        let stored: StoredCheck = serde_json::from_str(&text).ok()?;
        let is_new = (0..=AGE_MAX_S).contains(&(clock::now_s() - stored.at_s));
        (stored.key == self.key && is_new).then_some(MutationResult {
            caught: true,
            bugs: stored.bugs,
            tested: stored.tested,
            time_up: false,
            strength: stored.strength,
        })
    }

    /// Stores the result of a check that passed. Without it the campaign checks again.
    pub fn put(&self, result: &MutationResult) {
        if !result.caught {
            return;
        }
        let stored = StoredCheck {
            key: self.key.clone(),
            at_s: clock::now_s(),
            bugs: result.bugs.clone(),
            tested: result.tested,
            strength: result.strength.clone(),
        };
        if let (Some(dir), Ok(text)) = (self.path.parent(), serde_json::to_string(&stored)) {
            let _ = std::fs::create_dir_all(dir);
            let _ = files::write_atomic(&self.path, text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_found_again_for_the_same_key_only_and_a_failed_one_is_not_stored() {
        let dir = tempfile::tempdir().unwrap();
        let check = |key: &str| SharedCheck { path: dir.path().join(FILE), key: key.into() };
        let result = |caught| MutationResult {
            caught,
            bugs: Vec::new(),
            tested: 3,
            time_up: false,
            strength: None,
        };
        check("a").put(&result(false));
        assert!(check("a").get().is_none());
        check("a").put(&result(true));
        assert_eq!(check("a").get().unwrap().tested, 3);
        assert!(check("b").get().is_none());
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(check("a").get().is_none());
    }
}
