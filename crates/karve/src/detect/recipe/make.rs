//! A project with a Makefile.

use super::{ProjectRecipe, measured};
use crate::detect::FileListing;
use crate::detect::kernel::KernelGuess;

/// Names of targets that test, and of targets that measure.
const TESTS: [&str; 3] = ["test", "check", "tests"];
const BENCHES: [&str; 4] = ["bench", "benchmark", "perf", "benchmarks"];

pub(super) fn recipe(files: &FileListing<'_>, _: &KernelGuess) -> Option<ProjectRecipe> {
    let name = ["Makefile", "makefile", "GNUmakefile"]
        .into_iter()
        .find(|name| files.text(name).is_some())?;
    let text = files.text(name)?;
    let test = command(text, "test", &TESTS);
    let bench = command(text, "bench", &BENCHES);
    if test.is_none() && bench.is_none() {
        return None;
    }
    let why = match (&test, &bench) {
        (Some(_), Some(_)) => format!("{name} has test and bench targets."),
        (None, _) => format!("{name} has no target called test or check; check the test command."),
        (_, None) => format!("{name} has no target called bench; check the bench command."),
    };
    let commands = ProjectRecipe {
        build: Some(build(text)),
        test: test.unwrap_or_else(|| "./build/test {case} {seed}".to_owned()),
        bench: bench.unwrap_or_else(|| "./build/bench {case} {seed}".to_owned()),
        why: vec![why],
        ..ProjectRecipe::default()
    };
    Some(measured(files, commands))
}

/// All programs are built, since nothing is built while it is measured.
fn build(text: &str) -> String {
    let needed = |targets: &[&str]| -> Vec<String> {
        let target = targets.iter().find(|target| line_of(text, target).is_some());
        let Some((target, line)) = target.and_then(|t| Some((*t, line_of(text, t)?))) else {
            return Vec::new();
        };
        match is_program(text, target) {
            true => vec![target.to_owned()],
            // What the task runs; a variable would be unknown to a shell.
            false => {
                let words = line.split_once(':').map_or("", |(_, needs)| needs).split_whitespace();
                words.filter(|word| line_of(text, word).is_some()).map(str::to_owned).collect()
            }
        }
    };
    let builds_all = ["all", "build"].iter().any(|name| line_of(text, name).is_some());
    let mut targets = needed(&BENCHES);
    targets.extend(needed(&TESTS));
    targets.dedup();
    match builds_all || targets.is_empty() || line_of(text, "build/bench").is_some() {
        true => "make -s".to_owned(),
        false => format!("make -s {}", targets.join(" ")),
    }
}

fn line_of<'a>(text: &'a str, target: &str) -> Option<&'a str> {
    text.lines().find(|line| line.starts_with(&format!("{target}:")))
}

/// Whether a target is a file that is linked, not a task.
fn is_program(text: &str, target: &str) -> bool {
    let phony = text.lines().filter_map(|line| line.strip_prefix(".PHONY:"));
    if phony.flat_map(str::split_whitespace).any(|name| name == target) {
        return false;
    }
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&format!("{target}:")));
    let depends = lines.next().unwrap_or_default();
    let mut steps = lines.take_while(|line| line.starts_with('\t'));
    let links = steps.any(|step| step.contains("-o $@") || step.contains(&format!("-o {target}")));
    links || depends.contains(".o") || depends.contains(&format!("{target}.c"))
}

fn command(text: &str, program: &str, targets: &[&str]) -> Option<String> {
    if line_of(text, &format!("build/{program}")).is_some() {
        return Some(format!("./build/{program} {{case}} {{seed}}"));
    }
    let target = targets.iter().find(|target| line_of(text, target).is_some())?;
    if is_program(text, target) {
        return Some(format!("./{target} {{case}} {{seed}}"));
    }
    let takes_case = text.contains("$(CASE)") || text.contains("${CASE}");
    let case = if takes_case { " CASE={case}" } else { "" };
    Some(format!("make -s {target}{case}"))
}
