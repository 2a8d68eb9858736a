//! Why a change is not a candidate: it contains a key, or nothing in it can be accepted.

use karve_harness::git::{CandidateCommit, ChangeRefusal, FILE_BYTES_MAX, RefusedChange};

/// Characters of a path that are shown.
const PATH_CHARS_MAX: usize = 200;

/// Checks what was left out of a commit. A key anywhere is enough; other files that cannot be
/// accepted are a reason only if nothing else changed: then nothing else would explain it.
pub(super) fn why_missing(
    made: &CandidateCommit,
    forbids: &dyn Fn(&[u8]) -> bool,
) -> Option<String> {
    let find_refused = |why: fn(ChangeRefusal) -> bool| {
        let mut refused = made.out_of_scope.iter();
        refused.find(|refused| why(refused.why))
    };
    if let Some(leaked) = find_refused(|why| why == ChangeRefusal::HoldsKey) {
        let shown = match forbids(leaked.change.path.as_bytes()) {
            true => "the name of a file".to_owned(),
            false => path_of(leaked),
        };
        return Some(format!("leaked: {shown} contains the value of a key"));
    }
    let refused =
        find_refused(|why| why != ChangeRefusal::NotEditable).filter(|_| made.files.is_empty())?;
    Some(format!("not accepted: {}", describe(refused)))
}

fn path_of(refused: &RefusedChange) -> String {
    refused.change.path.chars().take(PATH_CHARS_MAX).collect()
}

fn describe(refused: &RefusedChange) -> String {
    let path = path_of(refused);
    match refused.why {
        ChangeRefusal::NotEditable => format!("{path} is not editable"),
        ChangeRefusal::NotAFile => format!("{path} is not a regular file (a symlink, a pipe, ...)"),
        ChangeRefusal::BehindLink => format!("{path} is behind a symlink"),
        ChangeRefusal::InSubmodule => format!("{path} is in a submodule"),
        ChangeRefusal::Unreadable => format!("{path} cannot be read"),
        ChangeRefusal::TooLarge => format!("{path} is larger than {FILE_BYTES_MAX} bytes"),
        ChangeRefusal::TooMany => {
            "there are so many new files that not all were checked".to_owned()
        }
        ChangeRefusal::InTheWay => format!("{path} takes the place of a read-only file"),
        ChangeRefusal::GitsOwn => format!("{path} has a name that git reserves"),
        ChangeRefusal::BadName => format!("the name {path} is not UTF-8"),
        ChangeRefusal::HoldsKey => format!("{path} contains the value of a key"),
    }
}
