//! The tables `[[knobs]]` and `[tune]`: knobs declared outside the source, and how knobs are
//! tuned.

use super::source::ConfigSource;
use super::values::{Scalar, env_of};
use karve_core::charter::{PoolMember, TuneRule};
use karve_harness::placeholders::NAMES;
use karve_harness::project_file::glob_set;
use karve_numerics::case::Case;
use karve_numerics::expr;
use karve_numerics::search::{StrategyKind, budget};
use karve_numerics::space::{
    Delivery, KnobDeclaration, KnobSetting, TEMPLATE_END, expand_values, is_flag, is_value,
};
use karve_os::error::{CommandError, Result};
use karve_os::text::{shown, suggestion};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A knob declared outside the source.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KnobTable {
    /// Its name as written in the file.
    #[schemars(length(min = 1))]
    name: String,
    /// The values it may take; `"1..8"`, `"0..64+8"` and `"1..64*2"` are ranges.
    #[serde(default)]
    #[schemars(length(max = 256))]
    values: Vec<Scalar>,
    /// Instead of values: flags, each of which is on or off in the list of that name.
    #[serde(default)]
    #[schemars(length(max = 64))]
    flags: Vec<String>,
    /// The editable file that contains it.
    #[schemars(length(min = 1))]
    file: String,
    /// How its value reaches the kernel; by default through its definition in the file.
    deliver: Option<DeliveryName>,
    /// Its path in a JSON file, such as `gemm.tile`; by default its name.
    #[schemars(length(min = 1))]
    key: Option<String>,
    /// When it matters, as an expression over other knobs; otherwise it keeps its value.
    #[schemars(length(min = 1))]
    when: Option<String>,
}

/// How the value of a knob reaches the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DeliveryName {
    /// Through its definition in the file.
    Source,
    /// Through a key of the file, which is JSON.
    Json,
    /// Through an environment variable of every command; the file defines it.
    Environment,
    /// Through `{NAME}` in the commands; the file defines it.
    Argument,
    /// Through a file generated from this one, whose name ends in `.in`: `@NAME=8@` becomes `8`.
    Placeholder,
}

/// How knobs are tuned.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TuneTable {
    /// What settings must satisfy, in addition to the restrictions in the editable files.
    #[serde(default)]
    #[schemars(length(max = 64))]
    restrictions: Vec<String>,
    /// How many settings "karve tune" tries, or for how long: `50` or `"10m"`.
    budget: Option<Scalar>,
    /// The search strategy: `auto`, `random`, `local`, `annealing` or `genetic`.
    strategy: Option<String>,
    /// Identical devices on which settings are tried at the same time.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pool: Vec<PoolTable>,
}

/// One of several identical devices.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PoolTable {
    /// The name under which it is leased, such as `cuda:1`.
    #[schemars(length(min = 1))]
    device: String,
    /// Added to the environment of its commands: `{ CUDA_VISIBLE_DEVICES = "1" }`.
    #[serde(default)]
    env: BTreeMap<String, Scalar>,
    /// The CPUs that its benchmarks are pinned to.
    #[serde(default)]
    pin: Vec<usize>,
}

impl DeliveryName {
    fn delivery(self) -> Delivery {
        match self {
            Self::Source => Delivery::Source,
            Self::Json => Delivery::Json,
            Self::Environment => Delivery::Environment,
            Self::Argument => Delivery::Argument,
            Self::Placeholder => Delivery::Placeholder,
        }
    }
}

/// The declarations of the file.
pub(super) fn knobs_of(
    source: &ConfigSource<'_>,
    tables: &[KnobTable],
    editable: &[String],
) -> Result<Vec<KnobDeclaration>> {
    let globs = glob_set(editable)?;
    let mut knobs: Vec<KnobDeclaration> = Vec::with_capacity(tables.len());
    for (index, table) in tables.iter().enumerate() {
        let line = source.item_line("knobs", index);
        let (name, file) = (shown(&table.name), shown(&table.file));
        if !globs.is_match(&table.file) {
            return Err(source
                .error(line, format!("the knob `{name}` is in {file}, which is read-only"))
                .hint(format!(
                    "add \"{file}\" to sources.editable, or correct the file of the knob"
                )));
        }
        if knobs.iter().any(|knob| knob.name == table.name && knob.file == table.file) {
            return Err(source
                .error(line, format!("the knob `{name}` of {file} is declared twice"))
                .hint("name each knob of a file once in [[knobs]]"));
        }
        let wrong = |what: String| source.error(line, format!("the knob `{name}` {what}"));
        knobs.push(knob_of(table, &wrong)?);
    }
    Ok(knobs)
}

fn knob_of(table: &KnobTable, wrong: &dyn Fn(String) -> CommandError) -> Result<KnobDeclaration> {
    let deliver = table.deliver.map_or(Delivery::Source, DeliveryName::delivery);
    let written = table.values.iter().map(|Scalar(value)| value.clone());
    let written: Vec<String> = written.collect();
    if written.is_empty() == table.flags.is_empty() {
        return Err(wrong("needs either values or flags".into())
            .hint("write values = [8, 16] or flags = [\"-funroll-loops\"] in [[knobs]]"));
    }
    if let Some(flag) = table.flags.iter().find(|flag| !is_flag(flag)) {
        return Err(wrong(format!("cannot have the flag `{}`", shown(flag)))
            .hint("a flag in [[knobs]] is one word that begins with a minus sign"));
    }
    if !table.flags.is_empty() && deliver != Delivery::Source {
        return Err(wrong("has flags, which must be in a list of the file".into())
            .hint("leave deliver out in [[knobs]], or give values"));
    }
    let Some(values) = expand_values(&written) else {
        return Err(wrong("has a range that cannot be read".into())
            .hint("write ranges in [[knobs]] like \"1..8\", \"0..64+8\" or \"1..64*2\""));
    };
    if let Some(value) = values.iter().find(|value| !is_value(value)) {
        return Err(wrong(format!("cannot take the value `{}`", shown(value)))
            .hint("a value in [[knobs]] is one word without ; , ) and quotes"));
    }
    if deliver == Delivery::Placeholder && !table.file.ends_with(TEMPLATE_END) {
        return Err(wrong(format!("is in {}, which is not a template", shown(&table.file)))
            .hint("a template's name ends in .in: \"kernel.c.in\" generates kernel.c"));
    }
    if table.key.is_some() && deliver != Delivery::Json {
        return Err(wrong("has a key, but is not in a JSON file".into())
            .hint("add deliver = \"json\" in [[knobs]], or leave key out"));
    }
    if let Some(Err(why)) = table.when.as_deref().map(expr::parse_expr) {
        return Err(wrong(format!("has a `when` that cannot be read: {why}"))
            .hint("write when in [[knobs]] like \"ORDER == 'tiled'\""));
    }
    Ok(KnobDeclaration {
        name: table.name.clone(),
        values,
        file: table.file.clone(),
        flags: table.flags.clone(),
        deliver,
        key: table.key.clone(),
        when: table.when.clone(),
    })
}

/// The knobs that commands may name, each with one of its values.
pub(super) fn arguments(
    source: &ConfigSource<'_>,
    knobs: &[KnobDeclaration],
    cases: &[Case],
) -> Result<KnobSetting> {
    let mut given = KnobSetting::new();
    for (index, knob) in knobs.iter().enumerate() {
        let line = source.item_line("knobs", index);
        let name = &knob.name;
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let named = matches!(knob.deliver, Delivery::Argument | Delivery::Environment);
        if named && !name.chars().all(word) {
            let message = format!("the knob `{}` cannot be passed to a command", shown(name));
            return Err(source
                .error(line, message)
                .hint("use letters, digits and _ for its name in [[knobs]]"));
        }
        let of_system = name == "PATH" || name == "HOME" || name.starts_with("LD_");
        if knob.deliver == Delivery::Environment && of_system {
            let message = format!("the knob `{}` would change how programs start", shown(name));
            return Err(source
                .error(line, message)
                .hint("choose another name in [[knobs]], or set it in commands.env"));
        }
        if knob.deliver != Delivery::Argument {
            continue;
        }
        let taken = NAMES.contains(&name.as_str())
            || cases.iter().any(|case| case.params.contains_key(name));
        if taken {
            let message = format!("`{{{}}}` in a command does not mean the knob", shown(name));
            return Err(source
                .error(line, message)
                .hint("choose another name in [[knobs]]: this one is a parameter of a case"));
        }
        given.insert(name.clone(), knob.values.first().cloned().unwrap_or_default());
    }
    Ok(given)
}

/// How knobs are tuned.
pub(super) fn tune_of(source: &ConfigSource<'_>, table: &TuneTable) -> Result<TuneRule> {
    for text in &table.restrictions {
        if let Err(why) = expr::parse_expr(text) {
            return Err(source
                .error_at("tune.restrictions", format!("`{}`: {why}", shown(text)))
                .hint("write tune.restrictions like [\"TILE % VEC == 0\"]"));
        }
    }
    if let Some(Scalar(text)) = &table.budget
        && let Err(why) = budget::parse(text)
    {
        return Err(source
            .error_at("tune.budget", format!("`{}`: {why}", shown(text)))
            .hint("write tune.budget like 50 or \"10m\""));
    }
    if let Some(name) = &table.strategy
        && StrategyKind::by_name(name).is_none()
    {
        let all = StrategyKind::ALL.iter().map(|kind| kind.name());
        return Err(source
            .error_at("tune.strategy", format!("there is no strategy `{}`", shown(name)))
            .hint(suggestion(name, all, "`tune.strategy` may be")));
    }
    let mut pool: Vec<PoolMember> = Vec::with_capacity(table.pool.len());
    for (index, member) in table.pool.iter().enumerate() {
        if pool.iter().any(|other| other.device == member.device) {
            let message = format!("`{}` appears twice in the pool", shown(&member.device));
            return Err(source
                .error(source.item_line("tune.pool", index), message)
                .hint("give each device of tune.pool its own name"));
        }
        pool.push(PoolMember {
            device: member.device.clone(),
            env: env_of(source, "tune.pool", &member.env)?,
            pin: member.pin.clone(),
        });
    }
    Ok(TuneRule {
        pool,
        restrictions: table.restrictions.clone(),
        budget: table.budget.as_ref().map(|Scalar(text)| text.clone()),
        strategy: table.strategy.clone(),
    })
}
