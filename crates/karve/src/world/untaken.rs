//! Why a change is not a candidate: it contains a key, or nothing in it can be accepted.

use super::World;
use karve_core::hypothesis::Candidate;
use karve_harness::git::{CandidateCommit, FILE_BYTES_MAX, Refusal, Refused, Terms};

/// Characters of a path that are shown.
const PATH_CHARS_MAX: usize = 200;

/// Why there is no candidate, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Untaken(pub(super) String);

/// A candidate with the names of what was left out of it, or why there is none.
pub(super) type Taken = Result<(Candidate, Vec<String>), Untaken>;

impl World {
    /// Whether the value of a key is in what an agent left.
    pub(super) fn holds_key(&self, bytes: &[u8]) -> bool {
        self.secrets.are_in(bytes) || self.agent.knows_key_in(bytes)
    }
}

impl Untaken {
    /// Checks what was left out of a commit. A key anywhere is enough; other files that cannot be
    /// accepted are a reason only if nothing else changed: then nothing else would explain it.
    pub(super) fn of(made: &CandidateCommit, terms: Terms<'_>) -> Option<Self> {
        let with = |why: fn(Refusal) -> bool| {
            let mut refused = made.out_of_scope.iter();
            refused.find(|refused| why(refused.why))
        };
        if let Some(leaked) = with(|why| why == Refusal::HoldsKey) {
            let told = match (terms.forbids)(leaked.change.path.as_bytes()) {
                true => "the name of a file".to_owned(),
                false => path_of(leaked),
            };
            return Some(Self(format!("leaked: {told} contains the value of a key")));
        }
        let refused = with(|why| why != Refusal::NotGranted).filter(|_| made.files.is_empty())?;
        Some(Self(format!("not accepted: {}", words(refused))))
    }
}

fn path_of(refused: &Refused) -> String {
    refused.change.path.chars().take(PATH_CHARS_MAX).collect()
}

fn words(refused: &Refused) -> String {
    let path = path_of(refused);
    match refused.why {
        Refusal::NotGranted => format!("{path} is not editable"),
        Refusal::NotAFile => format!("{path} is not a regular file (a symlink, a pipe, ...)"),
        Refusal::BehindLink => format!("{path} is behind a symlink"),
        Refusal::InSubmodule => format!("{path} is in a submodule"),
        Refusal::Unreadable => format!("{path} cannot be read"),
        Refusal::TooLarge => format!("{path} is larger than {FILE_BYTES_MAX} bytes"),
        Refusal::TooMany => "there are so many new files that not all were checked".to_owned(),
        Refusal::InTheWay => format!("{path} takes the place of a read-only file"),
        Refusal::GitsOwn => format!("{path} has a name that git reserves"),
        Refusal::BadName => format!("the name {path} is not UTF-8"),
        Refusal::HoldsKey => format!("{path} contains the value of a key"),
    }
}
