//! From a well-formed file to a charter: the meaning of every table is checked here.

use super::agenda::agenda_request;
use super::agents::{agent_of, agents_of};
use super::commands::{check_commands, commands_of, mode_of};
use super::file::{ConfigFile, OutputTable};
use super::scope::{check_editable, check_globs};
use super::source::ConfigSource;
use super::{
    CharterTime, LoadedConfig, Overrides, audit, baselines, cases, contract, knobs, metric, naming,
    roles, rules, sandbox,
};
use crate::remote::table::RemoteConfig;
use karve_core::charter::{Better, Charter, Commands, Goal, Metric, OutputRule, Target, WorkMode};
use karve_core::integrity::CHECKSUM_REL_MAX;
use karve_core::integrity::lacks_skew;
use karve_core::policy::Preset;
use karve_harness::commands::output::{LinePattern, OutputFormat};
use karve_numerics::accuracy::primus_snr_db_min;
use karve_os::error::{CommandError, Result};
use karve_os::text::shown;
use std::path::Path;

/// The context a file is read in.
pub(super) struct CharterContext<'a> {
    /// The directory of the file.
    pub(super) dir: &'a Path,
    /// The command line's overrides.
    pub(super) overrides: &'a Overrides,
    /// When it is read.
    pub(super) now: &'a CharterTime,
}

/// Builds the charter, or returns the first error.
pub(super) fn loaded_of(
    source: &ConfigSource<'_>,
    file: &ConfigFile,
    given: &CharterContext<'_>,
) -> Result<LoadedConfig> {
    contract::check_presence(source, file)?;
    let metric = metric::metric_of(source, file)?;
    let target = target_of(source, file, &metric)?;
    let root = naming::root_of(source, &file.campaign, given.dir)?;
    let editable = file.sources.editable.clone();
    check_editable(source, &editable, &naming::inside(&root, given.dir))?;
    let preset = file.policy.preset.unwrap_or(Preset::Strict);
    let cases = cases::cases_of(source, &file.cases, preset)?;
    metric::check_cases(source, &metric, &cases)?;
    let commands = commands_of(source, &file.commands)?;
    let contract = contract::contract_of(source, file, &cases, &metric)?;
    let baselines = baselines::baselines_of(source, file, contract.as_deref())?;
    let mode = mode_of(file, &commands.env);
    check_paths(source, &commands, &mode)?;
    let knobs = knobs::knobs_of(source, &file.knobs, &editable)?;
    let given_knobs = knobs::arguments(source, &knobs, &cases)?;
    let from_file = check_commands(source, &commands, &mode, &cases, &given_knobs)?;
    let mut policy = rules::policy_of(source, &file.policy)?;
    policy.best_of = given.overrides.best_of.unwrap_or(policy.best_of);
    let limits = rules::limits_of(source, &file.limits, &policy, given.overrides)?;
    let agents = agents_of(source, &file.agents)?;
    let agent = agent_of(source, file, &agents, given.overrides)?;
    let asks = roles::asks_of(source, file, &target, &agents)?;
    let made = (policy.preset, given.now);
    let name = naming::name_of(source, &file.campaign, &target, made)?;
    let branch = naming::branch_of(source, &file.git, &name, made, &target)?;
    let charter = Charter {
        seed: file.campaign.seed.unwrap_or_else(|| naming::seed_of(&name)),
        name,
        created: given.now.minute.clone(),
        output: output_of(source, file, (&target, policy.preset), from_file)?,
        target,
        mode,
        editable,
        commands,
        contract,
        baselines,
        metric,
        cases,
        policy,
        limits,
        device: rules::device_of(source, &file.device)?,
        audit: audit::audit_of(source, &file.audit)?,
        sandbox: sandbox::sandbox_of(source, file)?,
        agent,
        agenda: None,
        asks,
        knobs,
        tune: knobs::tune_of(source, &file.tune)?,
        branch,
        workdir: String::new(),
        remote: given.overrides.remote.clone(),
    };
    refuse_uniform_groups(source, &charter)?;
    check_remotes(source, file)?;
    Ok(LoadedConfig {
        charter: on_member(charter, given.overrides.on.as_deref())?,
        root,
        dir: given.dir.to_path_buf(),
        agents,
        agenda: agenda_request(source, &file.campaign, given.dir, given.overrides)?,
        remotes: file.remote.clone(),
    })
}

/// Refuses globs that leave the directory.
fn check_paths(source: &ConfigSource<'_>, commands: &Commands, mode: &WorkMode) -> Result<()> {
    check_globs(source, "commands.artifacts", &commands.artifacts)?;
    match mode {
        WorkMode::Workspace { files, .. } => check_globs(source, "workspace.files", files),
        WorkMode::Repo => Ok(()),
    }
}

/// Refuses a remote that cannot be used.
fn check_remotes(source: &ConfigSource<'_>, file: &ConfigFile) -> Result<()> {
    for (name, table) in &file.remote {
        RemoteConfig::new(name, table).map_err(|error| {
            let place = source.error_at(&format!("remote.{name}"), error.message);
            CommandError { hints: error.hints, ..place }
        })?;
    }
    Ok(())
}

/// The charter on a device of its pool, if one was named.
fn on_member(charter: Charter, name: Option<&str>) -> Result<Charter> {
    let Some(name) = name else {
        return Ok(charter);
    };
    let pool = charter.tune.pool.iter();
    let devices: Vec<String> = pool.map(|member| member.device.clone()).collect();
    charter.on_member(name).ok_or_else(|| {
        let message = format!("there is no remote and no device of the pool {name:?}");
        let error = CommandError::usage(message).hint("\"karve remote list\" shows the remotes");
        error.hint(match devices.is_empty() {
            true => "name devices in [[tune.pool]] of karve.toml".to_owned(),
            false => format!("[[tune.pool]] of karve.toml has {}", devices.join(", ")),
        })
    })
}

fn target_of(source: &ConfigSource<'_>, file: &ConfigFile, metric: &Metric) -> Result<Target> {
    let table = &file.target;
    let goal = match &table.goal {
        Some(text) => Some(goal_of(source, text, metric)?),
        None => None,
    };
    let language = table.language.clone().unwrap_or_else(|| language_of(&table.backend));
    let mut target = Target {
        op: table.op.clone(),
        backend: table.backend.clone(),
        language,
        device: table.device.clone().unwrap_or_else(|| "cpu".to_owned()),
        goal,
        constraints: table.constraints.clone(),
        project_skill: table.project_skill.clone(),
    };
    // primus names an AMD device by its architecture.
    let arch = crate::roles::arch_of(&target);
    if file.policy.preset == Some(Preset::Primus) && arch.starts_with("gfx") {
        target.device = arch;
    }
    Ok(target)
}

/// The language of a backend; most are named after it.
fn language_of(backend: &str) -> String {
    match backend.to_ascii_uppercase().as_str() {
        "TRITON" => "Triton".to_owned(),
        "CK" | "HIPBLASLT" | "TURBO" => "HIP".to_owned(),
        "FLYDSL" => "FlyDSL".to_owned(),
        _ => backend.to_owned(),
    }
}

fn goal_of(source: &ConfigSource<'_>, text: &str, metric: &Metric) -> Result<Goal> {
    let error = |message: String| source.error_at("target.goal", message);
    let goal = Goal::parse(text).map_err(|usage| {
        error(format!("the goal `{}` cannot be read", shown(text)))
            .hint(format!("{usage}; write it in target.goal"))
    })?;
    let wrong_way = match goal {
        Goal::AtLeast { .. } => metric.better == Better::Lower,
        Goal::AtMost { .. } => metric.better == Better::Higher,
        Goal::PeakShare { .. } | Goal::Speedup { .. } => return Ok(goal),
    };
    let unit = text.trim_start_matches(|c: char| "<>= .".contains(c) || c.is_ascii_digit()).trim();
    if !unit.is_empty() && !unit.eq_ignore_ascii_case(&metric.unit) {
        let (unit, of_metric) = (shown(unit), shown(&metric.unit));
        return Err(error(format!("the goal is in `{unit}`, but the metric is in `{of_metric}`"))
            .hint("write target.goal in the unit of metric.unit, or as a speedup like \">2x\""));
    }
    if wrong_way {
        return Err(error(format!("the goal `{}` has the wrong direction", shown(text)))
            .hint("metric.better sets the direction: use < for lower and > for higher"));
    }
    Ok(goal)
}

/// Plain text needs a pattern, and nothing else does.
fn check_pattern(source: &ConfigSource<'_>, table: &OutputTable) -> Result<()> {
    let example =
        "write it as in \"dot {case}: {time_us} us {}\"; docs/karve-toml.md has the rules";
    match (&table.pattern, table.format == OutputFormat::Text) {
        (None, true) => {
            let message = "the format `text` needs `output.pattern`";
            Err(source.error_at("output.format", message).hint(example))
        }
        (Some(_), false) => {
            let message = "`output.pattern` is for the format `text` only";
            let hint = "remove it, or set output.format = \"text\"";
            Err(source.error_at("output.pattern", message).hint(hint))
        }
        (Some(pattern), true) => LinePattern::parse(pattern).map(|_| ()).map_err(|why| {
            let message = format!("`output.pattern` cannot be used: {why}");
            source.error_at("output.pattern", message).hint(example)
        }),
        (None, false) => Ok(()),
    }
}

fn output_of(
    source: &ConfigSource<'_>,
    file: &ConfigFile,
    (target, preset): (&Target, Preset),
    from_file: bool,
) -> Result<OutputRule> {
    let Some(table) = &file.output else {
        // Under a contract no output is read.
        let format = OutputFormat::MetricLines.name().to_owned();
        return Ok(OutputRule { format, ..OutputRule::default() });
    };
    check_pattern(source, table)?;
    Ok(OutputRule {
        format: table.format.name().to_owned(),
        from_file,
        case_column: table.case_column.clone(),
        check_column: table.check_column.clone(),
        label: table.label.clone(),
        pattern: table.pattern.clone(),
        checksum_rel_max: match table.checksum_rel_max {
            Some(limit) => limit.option(),
            None => Some(CHECKSUM_REL_MAX),
        },
        snr_db_min: match (table.snr_db_min, preset) {
            (Some(limit), _) => limit.option(),
            (None, Preset::Primus) => primus_snr_db_min(&target.op),
            (None, _) => None,
        },
    })
}

/// primus: the representative shapes of a grouped operation include a skewed one, on which every
/// gain is measured again.
fn refuse_uniform_groups(source: &ConfigSource<'_>, charter: &Charter) -> Result<()> {
    // Under a contract karve plays skewed and empty groups itself.
    let is_due = charter.policy.preset == Preset::Primus && charter.contract.is_none();
    if !is_due || !lacks_skew(&charter.target.op, &charter.cases) {
        return Ok(());
    }
    let message = "the representative shapes of a grouped operation include no skewed one";
    Err(source.error_at("cases", message).hint(
        "add a case such as { name = \"skewed-top1\", dist = \"skewed\" } to cases.list, and to \
         cases.quick if there are quick cases",
    ))
}
