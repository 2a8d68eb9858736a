//! The project's commands and what they may contain, checked before anything runs.

use super::file::{CommandsTable, ConfigFile};
use super::source::ConfigSource;
use super::values::env_of;
use karve_core::charter::{Commands, WorkMode};
use karve_harness::placeholders::{NAMES, Placeholders, expand, names, uses_out};
use karve_numerics::case::Case;
use karve_numerics::space::KnobSetting;
use karve_os::error::Result;
use karve_os::text::{shown, suggestion};
use std::collections::{BTreeMap, BTreeSet};

/// The value of `commands.profile` that makes karve run the profilers it finds.
pub const PROFILE_AUTO: &str = "auto";

/// Commands with the file's variables and their quick forms.
pub(super) fn commands_of(source: &ConfigSource<'_>, table: &CommandsTable) -> Result<Commands> {
    Ok(Commands {
        build: table.build.clone(),
        test: table.test.clone().unwrap_or_default(),
        bench: table.bench.clone().unwrap_or_default(),
        condition: table.condition.clone(),
        quick_test: table.quick.test.clone(),
        quick_bench: table.quick.bench.clone(),
        profile: table.profile.clone(),
        peak: table.peak.clone(),
        acceptance: table.acceptance.clone(),
        artifacts: table.artifacts.clone(),
        env: env_of(source, "commands.env", &table.env)?,
    })
}

/// The mode; the integration gate shares the variables of the commands.
pub(super) fn mode_of(file: &ConfigFile, env: &BTreeMap<String, String>) -> WorkMode {
    let Some(workspace) = &file.workspace else {
        return WorkMode::Repo;
    };
    let integration = Commands {
        build: workspace.integration.build.clone(),
        test: workspace.integration.test.clone(),
        bench: workspace.integration.bench.clone(),
        env: env.clone(),
        ..Commands::default()
    };
    WorkMode::Workspace { files: workspace.files.clone(), integration: Box::new(integration) }
}

/// A command with its key and its possible placeholders.
struct CommandSpec<'a> {
    path: &'static str,
    command: &'a str,
    allowed: &'static [&'static str],
    per_case: RunsPerCase,
}

/// Whether a command runs for a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunsPerCase {
    Yes,
    No,
}

/// The placeholders that the harness sets for each command; `{round}` is not set in any yet.
const FOR_BUILD: &[&str] = &["seed", "layout"];
const FOR_HOST: &[&str] = &["seed"];
const FOR_TEST: &[&str] = &["case", "seed"];
const FOR_BENCH: &[&str] = &["case", "seed", "out", "repeats"];
const FOR_PROFILE: &[&str] = &["case", "seed", "depth"];

/// Rejects a placeholder that would have no value; returns whether results come from a file.
pub(super) fn check_commands(
    source: &ConfigSource<'_>,
    commands: &Commands,
    mode: &WorkMode,
    cases: &[Case],
    knobs: &KnobSetting,
) -> Result<bool> {
    for written in written(commands, mode) {
        check_command(source, &written, cases, knobs)?;
    }
    let from_file = uses_out(&commands.bench);
    let integration = match mode {
        WorkMode::Repo => None,
        WorkMode::Workspace { integration, .. } => Some(&integration.bench),
    };
    let others = [
        ("commands.quick.bench", commands.quick_bench.as_ref()),
        ("workspace.integration.bench", integration),
    ];
    for (path, command) in others {
        if command.is_some_and(|command| uses_out(command) != from_file) {
            let message = format!("only one of commands.bench and {path} uses {{out}}");
            return Err(source.error_at(path, message).hint(format!(
                "use {{out}} in both commands.bench and {path}, or in neither: \
                 it says where the results are"
            )));
        }
    }
    Ok(from_file)
}

fn written<'a>(commands: &'a Commands, mode: &'a WorkMode) -> Vec<CommandSpec<'a>> {
    use RunsPerCase::{No, Yes};
    let mut all = Vec::new();
    let mut add = |path, command: Option<&'a String>, allowed, per_case| {
        if let Some(command) = command {
            all.push(CommandSpec { path, command, allowed, per_case });
        }
    };
    add("commands.build", commands.build.as_ref(), FOR_BUILD, No);
    add("commands.condition", commands.condition.as_ref(), FOR_HOST, No);
    add("commands.peak", commands.peak.as_ref(), FOR_HOST, No);
    add("commands.test", Some(&commands.test), FOR_TEST, Yes);
    add("commands.bench", Some(&commands.bench), FOR_BENCH, Yes);
    add("commands.quick.test", commands.quick_test.as_ref(), FOR_TEST, Yes);
    add("commands.quick.bench", commands.quick_bench.as_ref(), FOR_BENCH, Yes);
    add(
        "commands.profile",
        commands.profile.as_ref().filter(|line| *line != PROFILE_AUTO),
        FOR_PROFILE,
        Yes,
    );
    if let WorkMode::Workspace { integration, .. } = mode {
        let build = integration.build.as_ref();
        add("workspace.integration.build", build, FOR_BUILD, No);
        add("workspace.integration.test", Some(&integration.test), FOR_TEST, Yes);
        add("workspace.integration.bench", Some(&integration.bench), FOR_BENCH, Yes);
    }
    all
}

fn check_command(
    source: &ConfigSource<'_>,
    written: &CommandSpec<'_>,
    cases: &[Case],
    knobs: &KnobSetting,
) -> Result<()> {
    let path = written.path;
    let allowed_params: &[Case] = if written.per_case == RunsPerCase::Yes { cases } else { &[] };
    for name in names(written.command) {
        let is_allowed = written.allowed.contains(&name) || knobs.contains_key(name);
        let lacking = allowed_params.iter().find(|case| !case.params.contains_key(name));
        if is_allowed || (!allowed_params.is_empty() && lacking.is_none()) {
            continue;
        }
        let some = allowed_params.iter().any(|case| case.params.contains_key(name));
        if let Some(case) = lacking.filter(|_| some) {
            let case = shown(&case.name);
            return Err(source
                .error_at(
                    path,
                    format!("{path} uses {{{name}}}, which the case `{case}` does not have"),
                )
                .hint(format!("give `{case}` the parameter {name} in [cases], or use {{case}}")));
        }
        let params: BTreeSet<&str> =
            allowed_params.iter().flat_map(|case| case.params.keys().map(String::as_str)).collect();
        let known = written.allowed.iter().copied().chain(params);
        let known = known.chain(knobs.keys().map(String::as_str));
        let message = if NAMES.contains(&name) {
            format!("{path} uses {{{name}}}, which has no value there")
        } else {
            format!("{path} uses {{{}}}, which is not a placeholder", shown(name))
        };
        let hint = suggestion(name, known, &format!("placeholders of {path}"));
        return Err(source
            .error_at(path, message)
            .hint(format!("{hint}; write {{{{ for a literal brace")));
    }
    try_to_expand(source, written, allowed_params, knobs)
}

/// Every case must be usable inside the quotes of the command.
fn try_to_expand(
    source: &ConfigSource<'_>,
    written: &CommandSpec<'_>,
    cases: &[Case],
    knobs: &KnobSetting,
) -> Result<()> {
    let values = Placeholders {
        seed: Some(1),
        out: Some("out".to_owned()),
        depth: Some("light".to_owned()),
        layout: Some(0),
        repeats: Some(1),
        knobs: knobs.clone(),
        ..Placeholders::default()
    };
    let none = cases.is_empty().then_some(None);
    for case in none.into_iter().chain(cases.iter().map(Some)) {
        if let Err(error) = expand(written.command, case, &values) {
            let mut located = source.error_at(written.path, &error.message);
            located.hints = error.hints;
            return Err(located);
        }
    }
    Ok(())
}
