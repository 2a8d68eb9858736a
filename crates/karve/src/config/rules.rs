//! The policy and the limits of a charter: a preset, and the file's overrides.

use super::Overrides;
use super::file::{AcceptTable, DeviceTable, LimitsTable, PlaybookTable, PolicyTable};
use super::source::{ConfigSource, PathSegment};
use super::values::{OrNone, PinValue};
use karve_core::charter::{ClockLock, DeviceRule, Limits, Pin};
use karve_core::policy::{
    AcceptRule, FullWhen, PlaybookRule, Policy, Preset, StopRule, StreakAction,
};
use karve_os::error::{CommandError, Result};
use karve_os::text::shown;
use std::collections::BTreeMap;

/// The highest accepted number of rounds.
const ROUNDS_MAX: u32 = 100_000;
/// primus accepts fewer rounds than this.
const PRIMUS_ROUNDS_END: u32 = 120;
/// The highest accepted number of hours: a year.
const HOURS_MAX: f64 = 8_760.0;
/// Default limit for one command, in seconds: a quarter of an hour.
const COMMAND_S: u64 = 900;
/// Default limit for one turn of an agent, in seconds.
const AGENT_S: u64 = 3_600;
/// Default limit for one duel, in seconds.
const DUEL_S: u64 = 3_600;
/// Default number of blocks of the final duel.
const FINAL_BLOCKS: u32 = 200;

/// The preset with everything that the file overrides.
pub(super) fn policy_of(source: &ConfigSource<'_>, table: &PolicyTable) -> Result<Policy> {
    let preset = table.preset.unwrap_or(Preset::Strict);
    let mut policy = preset.policy();
    override_accept(&mut policy.accept, &table.accept);
    put(&mut policy.profile_when, table.profile_when);
    put(&mut policy.profile_again, table.profile_again);
    put(&mut policy.first_verdict, table.first_verdict);
    put(&mut policy.rounds_max, table.rounds_max);
    put(&mut policy.round_minutes, table.round_minutes.map(OrNone::option));
    put(&mut policy.debug_retries, table.debug_retries);
    put(&mut policy.proposal_tries, table.proposal_tries);
    put(&mut policy.best_of, table.best_of);
    put(&mut policy.changes_per_round, table.changes_per_round);
    put(&mut policy.duplicate_similarity, table.duplicate_similarity);
    put(&mut policy.baseline_number, table.baseline_number);
    put(&mut policy.first_round, table.first_round);
    put(&mut policy.stagnation_directions, table.stagnation_directions);
    put(&mut policy.modest_gain_ratio, table.modest_gain_ratio.map(OrNone::option));
    if let Some(words) = &table.ask_about {
        policy.ask_about = words.iter().map(|word| word.trim().to_lowercase()).collect();
    }
    override_playbook(&mut policy.playbook, &table.playbook);
    put(&mut policy.controls.every, table.controls.every);
    put(&mut policy.controls.blocks, table.controls.blocks);
    put(&mut policy.tune.share, table.tune.share);
    put(&mut policy.tune.minutes, table.tune.minutes);
    put(&mut policy.tune.few, table.tune.few);
    put(&mut policy.tune.coarse, table.tune.coarse);
    put(&mut policy.tune.fine, table.tune.fine);
    put(&mut policy.review, table.review);
    put(&mut policy.bundles, table.bundles);
    put(&mut policy.full_when, table.full_when.map(|name| name.rule()));
    if let Some(stop) = &table.stop {
        policy.stop = stop.iter().map(|name| name.rule()).collect();
    }
    if let Some(on_streak) = &table.on_streak {
        policy.on_streak = streaks(source, on_streak)?;
    }
    refuse_odd_rules(source, &policy)?;
    match policy.errors().first() {
        Some(fault) => Err(source
            .error(line_of_error(source, fault), format!("policy: {fault}"))
            .hint(format!("change it in [policy], or keep the preset \"{}\"", preset.name()))),
        None => Ok(policy),
    }
}

fn put<T: Copy>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn override_accept(accept: &mut AcceptRule, table: &AcceptTable) {
    put(&mut accept.null_ratio, table.null_ratio);
    put(&mut accept.effect_ratio, table.effect_ratio);
    put(&mut accept.alpha, table.alpha);
    put(&mut accept.guard_evidence, table.guard_evidence);
    put(&mut accept.case_regress_ratio, table.case_regress_ratio.map(OrNone::option));
    put(&mut accept.case_loss_ratio, table.case_loss_ratio.map(OrNone::option));
    put(&mut accept.minor_regress_ratio, table.minor_regress_ratio);
    put(&mut accept.tail_ratio, table.tail_ratio);
    put(&mut accept.blocks_min, table.blocks_min);
    put(&mut accept.blocks_max, table.blocks_max);
    put(&mut accept.small_gain, table.small_gain);
    put(&mut accept.small_gain_ratio, table.small_gain_ratio);
    put(&mut accept.errors, table.errors);
    put(&mut accept.warm_up, table.warm_up);
}

/// The playbook with what the file says of it; a preset without one starts from tilegym's.
fn override_playbook(playbook: &mut Option<PlaybookRule>, table: &PlaybookTable) {
    if *table == PlaybookTable::default() {
        return;
    }
    let base = || Preset::Tilegym.policy().playbook;
    if let Some(rule) = playbook.take().or_else(base) {
        *playbook = Some(PlaybookRule {
            memory_below: table.memory_below.unwrap_or(rule.memory_below),
            compute_above: table.compute_above.unwrap_or(rule.compute_above),
            memory: table.memory.clone().unwrap_or(rule.memory),
            compute: table.compute.clone().unwrap_or(rule.compute),
        });
    }
}

fn streaks(
    source: &ConfigSource<'_>,
    table: &BTreeMap<String, StreakAction>,
) -> Result<Vec<(u32, StreakAction)>> {
    let mut ladder = Vec::with_capacity(table.len());
    for (length, action) in table {
        let Some(rounds) = length.parse().ok().filter(|rounds| *rounds > 0) else {
            let way = [
                PathSegment::Key("policy"),
                PathSegment::Key("on_streak"),
                PathSegment::Key(length),
            ];
            let message = format!("`{}` is not a number of rounds", shown(length));
            return Err(source
                .error(source.line_along(&way), message)
                .hint("write policy.on_streak like { 2 = \"review\", 3 = \"inspect_code\" }"));
        };
        ladder.push((rounds, *action));
    }
    ladder.sort_unstable();
    Ok(ladder)
}

/// Checks that core does not make, because only a file can get them wrong.
fn refuse_odd_rules(source: &ConfigSource<'_>, policy: &Policy) -> Result<()> {
    for (index, rule) in policy.stop.iter().enumerate() {
        if let StopRule::HardwareLimit { share } = rule
            && !(*share > 0.0 && *share <= 1.0)
        {
            let line = source.item_line("policy.stop", index);
            return Err(source
                .error(line, format!("hardware_limit must be above 0 and at most 1, not {share}"))
                .hint("write { hardware_limit = 0.95 } in policy.stop for 95% of the peak"));
        }
    }
    if !policy.stop.contains(&StopRule::Rounds) {
        return Err(source
            .error_at("policy.stop", "policy.stop does not limit the rounds")
            .hint("add \"rounds\" to policy.stop; limits.rounds says how many"));
    }
    if let FullWhen::Borderline { ratio } = policy.full_when
        && !(1.0..=100.0).contains(&ratio)
    {
        return Err(source
            .error_at("policy.full_when", format!("borderline must be at least 1, not {ratio}"))
            .hint("write full_when = { borderline = 1.05 } for gains below 5%"));
    }
    let small = policy.accept.small_gain_ratio;
    if !(1.0..=100.0).contains(&small) {
        let path = "policy.accept.small_gain_ratio";
        return Err(source
            .error_at(path, format!("small_gain_ratio must be at least 1, not {small}"))
            .hint("write small_gain_ratio = 1.02 in [policy.accept] for 2%"));
    }
    Ok(())
}

/// The line of the overridden key that an error names; otherwise that of the table.
fn line_of_error(source: &ConfigSource<'_>, fault: &str) -> usize {
    let accept = source.keys_in_order(&[PathSegment::Key("policy"), PathSegment::Key("accept")]);
    let policy = source.keys_in_order(&[PathSegment::Key("policy")]);
    let accept = accept.iter().map(|key| (key, format!("policy.accept.{key}")));
    let policy = policy.iter().map(|key| (key, format!("policy.{key}")));
    let words: Vec<&str> = fault.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    accept
        .chain(policy)
        .find(|(key, _)| *key != "accept" && words.contains(&key.as_str()))
        .map_or_else(|| source.line("policy.accept"), |(_, path)| source.line(&path))
}

/// The limits; a flag overrides the file, and the file overrides the preset.
pub(super) fn limits_of(
    source: &ConfigSource<'_>,
    table: &LimitsTable,
    policy: &Policy,
    overrides: &Overrides,
) -> Result<Limits> {
    if let Some(rounds) = overrides.rounds.filter(|rounds| !(1..=ROUNDS_MAX).contains(rounds)) {
        return Err(CommandError::usage(format!(
            "--rounds must be 1 to {ROUNDS_MAX}, not {rounds}"
        ))
        .hint("leave --rounds out to use limits.rounds of karve.toml"));
    }
    let hours = overrides.hours.or(table.hours);
    if let Some(hours) = hours.filter(|hours| !(*hours > 0.0 && *hours <= HOURS_MAX)) {
        let fault = format!("must be above 0 and at most {HOURS_MAX}, not {hours}");
        return Err(match overrides.hours {
            Some(_) => CommandError::usage(format!("--hours {fault}"))
                .hint("leave --hours out to use limits.hours of karve.toml"),
            None => source
                .error_at("limits.hours", format!("`limits.hours` {fault}"))
                .hint("leave limits.hours out for no time limit"),
        });
    }
    if let Some(usd) = table.agent_usd.filter(|usd| *usd < 0.0) {
        return Err(source
            .error_at("limits.agent_usd", format!("`limits.agent_usd` cannot be {usd}"))
            .hint("leave limits.agent_usd out for no cost limit"));
    }
    let rounds = overrides.rounds.or(table.rounds).unwrap_or(policy.rounds_max);
    if policy.preset == Preset::Primus && rounds >= PRIMUS_ROUNDS_END {
        let message = format!("under primus max_iterations must be below 120, not {rounds}");
        return Err(match overrides.rounds {
            Some(_) => CommandError::usage(message).hint("use --rounds with at most 119"),
            None => source.error_at("limits.rounds", message).hint("set limits.rounds to 1 to 119"),
        });
    }
    let limits = Limits {
        rounds,
        wall_s: hours.map(seconds),
        command_s: table.command_s.unwrap_or(COMMAND_S),
        agent_s: table.agent_s.unwrap_or(AGENT_S),
        duel_s: table.duel_s.unwrap_or(DUEL_S),
        agent_usd: table.agent_usd,
        final_blocks: table.final_blocks.unwrap_or(FINAL_BLOCKS),
    };
    refuse_idle_limits(source, &limits, policy)?;
    Ok(limits)
}

/// How to keep the device quiet.
pub(super) fn device_of(source: &ConfigSource<'_>, table: &DeviceTable) -> Result<DeviceRule> {
    let clocks = match (&table.lock, &table.unlock) {
        (None, None) => None,
        (Some(lock), Some(unlock)) => {
            Some(ClockLock { lock: lock.clone(), unlock: unlock.clone() })
        }
        (Some(_), None) => {
            return Err(source
                .error_at("device.lock", "`device.lock` needs `device.unlock`")
                .hint("add unlock to [device], which undoes lock, such as \"nvidia-smi -rgc\""));
        }
        (None, Some(_)) => {
            return Err(source
                .error_at("device.unlock", "`device.unlock` needs `device.lock`")
                .hint("add lock to [device], or leave unlock out"));
        }
    };
    let pin = match &table.pin {
        None => Pin::No,
        Some(PinValue::Auto) => Pin::Auto,
        Some(PinValue::Cpus(cpus)) => Pin::Cpus { cpus: cpus.clone() },
    };
    Ok(DeviceRule {
        pin,
        pressure_max: table.pressure_max.unwrap_or(DeviceRule::PRESSURE_MAX),
        pause_max_s: table.pause_max_s.unwrap_or(DeviceRule::PAUSE_MAX_S),
        lease_wait_s: table.lease_wait_s.unwrap_or(DeviceRule::LEASE_WAIT_S),
        clocks,
        gpu: table.gpu.unwrap_or_default(),
        member: None,
    })
}

/// A limit that no stop rule checks would have no effect.
fn refuse_idle_limits(source: &ConfigSource<'_>, limits: &Limits, policy: &Policy) -> Result<()> {
    let idle = [
        (limits.wall_s.is_some(), StopRule::WallTime, "hours", "wall_time"),
        (limits.agent_usd.is_some(), StopRule::AgentCost, "agent_usd", "agent_cost"),
    ];
    for (is_set, rule, limit, word) in idle {
        if is_set && !policy.stop.contains(&rule) {
            let message = format!("policy.stop does not check limits.{limit}");
            return Err(source
                .error_at("policy.stop", message)
                .hint(format!("add \"{word}\" to policy.stop, or leave limits.{limit} out")));
        }
    }
    Ok(())
}

/// At least a second, because a limit of zero would reject everything.
fn seconds(hours: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let seconds = (hours * 3_600.0).round() as u64;
    seconds.max(1)
}
