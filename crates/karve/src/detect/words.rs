//! A proposal as the user's words change it, and the mode that is recommended for the project.

use super::request::WordedTarget;
use super::trial::{case_name, parse_rows};
use super::{CASES_MAX, ConfigProposal, ProjectFiles};

/// From this many tracked files on, a project that must be built is large.
const LARGE_FILES: usize = 400;

/// Takes over what the words name; the rest stays as it was found.
pub fn apply_words(proposal: &mut ConfigProposal, said: &WordedTarget) {
    let mut taken = Vec::new();
    let mut put = |place: &mut String, value: &Option<String>, key: &str| {
        if let Some(value) = value {
            place.clone_from(value);
            taken.push(format!("{key} {value}"));
        }
    };
    put(&mut proposal.op, &said.op, "op");
    put(&mut proposal.backend, &said.backend, "backend");
    put(&mut proposal.device, &said.device, "device");
    put(&mut proposal.preset, &said.preset, "preset");
    if let Some(goal) = &said.goal {
        proposal.goal = Some(goal.clone());
        taken.push(format!("goal {goal}"));
    }
    if let Some(rounds) = said.rounds {
        proposal.rounds = Some(rounds);
        taken.push(format!("{rounds} rounds"));
    }
    if let Some(hours) = said.hours {
        proposal.hours = Some(hours);
        taken.push(format!("{hours} hours"));
    }
    proposal.all_shapes |= said.all_shapes;
    if said.all_shapes {
        taken.push("all shapes".to_owned());
    }
    proposal.why.push(match taken.is_empty() {
        true => "Your words name nothing that belongs here.".to_owned(),
        false => format!("Your words name: {}.", taken.join(", ")),
    });
}

/// Every shape that the output of a proposal's benchmark has a row for, by name.
pub fn shapes_in(proposal: &ConfigProposal, printed: &str) -> Result<Vec<String>, String> {
    let format = serde_json::from_value(proposal.format.as_str().into());
    let format = format.map_err(|_| format!("there is no format {}", proposal.format))?;
    let rows = parse_rows(proposal, format, printed)?;
    let names: Vec<String> = rows.iter().map(case_name).filter(|name| !name.is_empty()).collect();
    match names.len() {
        0 => Err("its output has no rows with the name of a shape".to_owned()),
        1..=CASES_MAX => Ok(names),
        n => Err(format!("it prints {n} shapes, and a campaign has at most {CASES_MAX}")),
    }
}

/// The execution mode of primus that fits a project, and why.
pub fn recommended_mode(found: &ProjectFiles, build: Option<&str>) -> String {
    let n_files = found.files.len();
    match build {
        Some(build) if n_files >= LARGE_FILES => format!(
            "Execution mode workspace is recommended: {n_files} files, and every candidate would \
             run \"{build}\"; extract the kernel with [workspace]."
        ),
        Some(build) => format!(
            "Execution mode repo is recommended: {n_files} files, built by \"{build}\" for each \
             candidate."
        ),
        None => "Execution mode repo is recommended: nothing needs to be built.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::request::read_words;

    fn files(count: usize) -> ProjectFiles {
        let files = (0..count).map(|n| (format!("f{n}.c"), String::new())).collect();
        ProjectFiles { files, kernel: None }
    }

    #[test]
    fn a_large_project_that_is_built_gets_a_workspace_recommended() {
        let check = |count, build, want: &str| {
            let says = recommended_mode(&files(count), build);
            assert!(says.starts_with(&format!("Execution mode {want} is")), "{says}");
        };
        check(3, Some("make"), "repo");
        check(900, Some("cmake --build build"), "workspace");
        check(900, None, "repo");
    }

    #[test]
    fn words_change_what_they_name_and_nothing_else() {
        let mut proposal = super::super::propose(&files(1));
        let before = proposal.clone();
        apply_words(&mut proposal, &read_words("tune softmax on H200 to <2 ms, 12 rounds"));
        assert_eq!((proposal.op.as_str(), proposal.device.as_str()), ("softmax", "H200"));
        assert_eq!((proposal.goal.as_deref(), proposal.rounds), (Some("<2 ms"), Some(12)));
        assert_eq!((&proposal.test, &proposal.preset), (&before.test, &before.preset));
        let last = proposal.why.last().unwrap();
        assert_eq!(last, "Your words name: op softmax, device H200, goal <2 ms, 12 rounds.");
    }
}
