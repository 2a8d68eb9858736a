//! Why a change is no candidate: a key is in it, or there is nothing in it that can be taken.

use super::World;
use karve_core::hypothesis::Candidate;
use karve_harness::git::{CandidateCommit, FILE_BYTES_MAX, Refusal, Refused, Terms};

/// Characters of a path that are told.
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
    /// Looks at what was left out of a commit. A key anywhere is reason enough; other files that
    /// cannot be taken are one only where nothing else changed: then nothing else says why.
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
            return Some(Self(format!("leaked: {told} holds the value of a key")));
        }
        let refused = with(|why| why != Refusal::NotGranted).filter(|_| made.files.is_empty())?;
        Some(Self(format!("not taken: {}", words(refused))))
    }
}

fn path_of(refused: &Refused) -> String {
    refused.change.path.chars().take(PATH_CHARS_MAX).collect()
}

fn words(refused: &Refused) -> String {
    let path = path_of(refused);
    match refused.why {
        Refusal::NotGranted => format!("{path} is not granted"),
        Refusal::NotAFile => format!("{path} is no plain file, but a link, a pipe or the like"),
        Refusal::BehindLink => format!("{path} lies behind a link"),
        Refusal::InSubmodule => format!("{path} lies in a submodule"),
        Refusal::Unreadable => format!("{path} cannot be read"),
        Refusal::TooLarge => format!("{path} is larger than {FILE_BYTES_MAX} bytes"),
        Refusal::TooMany => "so many files are new that not all were looked at".to_owned(),
        Refusal::InTheWay => format!("{path} is where a file must stay that is not granted"),
        Refusal::GitsOwn => format!("{path} has a name that is git's own"),
        Refusal::BadName => format!("the name {path} is not UTF-8"),
        Refusal::HoldsKey => format!("{path} holds the value of a key"),
    }
}
