//! Plain commands, their cases and their metric, from the command line.

use crate::config;
use karve_core::charter::{
    Better, Branch, Charter, ClockRule, Commands, DeviceRule, Limits, Metric, OutputRule, Pin,
    SandboxRule, Target, TuneRule, WorkMode,
};
use karve_core::policy::Preset;
use karve_harness::commands::output::NAMES;
use karve_harness::{commands, placeholders};
use karve_numerics::case::{Case, CaseSet};
use karve_os::error::{CommandError, Result};
use std::collections::BTreeMap;

/// The most seconds that one run of a plain command may take.
const COMMAND_S: u64 = 120;
/// The highest allowed false positive rate.
pub const ALPHA_MAX: f64 = 0.2;
/// The smallest difference that a bench accepts as a threshold, as a ratio.
const EFFECT_MIN: f64 = 1.01;
/// The one case of a command that has none.
const ONLY_CASE: &str = "command";

/// How plain commands are run and read.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PlainCommandArgs {
    /// A case for {case}, such as small or size=64,m=3 (which also sets {size} and {m}); for a
    /// project, one of its cases. May be repeated
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,
    /// What is compared: wall_time, cpu_time, or a number that the command prints
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// How the command prints its numbers: csv, json, metric, or another format of output.format
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// The unit of a printed number; by default the suffix of its name, as in time_ms
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// Which direction of a printed number is better
    #[arg(long, value_name = "WHICH", value_enum)]
    pub better: Option<BetterName>,
    /// Run this command before each timed run, untimed; for example to flush caches
    #[arg(long, value_name = "COMMAND")]
    pub condition: Option<String>,
    /// Which clocks decide: the metric alone, always both, or both if the command has one thread
    /// and does not wait
    #[arg(long, value_name = "WHICH", value_enum)]
    pub clocks: Option<ClocksName>,
    /// Pin every timed run to one CPU
    #[arg(long)]
    pub pin: bool,
}

/// Which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BetterName {
    /// For times.
    Lower,
    /// For rates.
    Higher,
}

/// Which clocks decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ClocksName {
    /// Both, if that is sound.
    Auto,
    /// The metric alone.
    Metric,
    /// Always both.
    Both,
}

impl ClocksName {
    /// The matching type of the core.
    pub fn rule(self) -> ClockRule {
        match self {
            Self::Auto => ClockRule::Auto,
            Self::Metric => ClockRule::Metric,
            Self::Both => ClockRule::Both,
        }
    }
}

impl PlainCommandArgs {
    /// Rejects flags that are only for plain commands: a project sets them in its `karve.toml`.
    pub fn refuse_for_project(&self) -> Result<()> {
        let flags = [
            ("--metric", self.metric.is_some()),
            ("--format", self.format.is_some()),
            ("--unit", self.unit.is_some()),
            ("--better", self.better.is_some()),
            ("--condition", self.condition.is_some()),
        ];
        match flags.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => {
                let what = format!("{flag} is for plain commands; a project sets it in karve.toml");
                Err(CommandError::usage(what)
                    .hint("change karve.toml, or give two commands after \"--\""))
            }
        }
    }

    /// The charter for plain commands; `lines` are the commands.
    pub fn charter(&self, lines: &[String]) -> Result<Charter> {
        if lines.iter().any(|line| line.trim().is_empty()) {
            return Err(CommandError::usage("a command is empty")
                .hint("write the two commands after \"--\", such as './old' './new'"));
        }
        let metric = self.metric()?;
        let cases = self.plain_cases(lines, &metric)?;
        Ok(Charter {
            contract: None,
            baselines: Vec::new(),
            name: "bench".into(),
            created: String::new(),
            target: Target { device: "cpu".into(), ..Target::default() },
            mode: WorkMode::Repo,
            editable: Vec::new(),
            commands: Commands {
                bench: lines.first().cloned().unwrap_or_default(),
                condition: self.condition.clone(),
                ..Commands::default()
            },
            output: OutputRule {
                format: self.format.clone().unwrap_or_else(|| "metric".into()),
                from_file: lines.iter().any(|line| line.contains("{out}")),
                ..OutputRule::default()
            },
            metric,
            cases,
            policy: Preset::Strict.policy(),
            limits: Limits {
                rounds: 1,
                wall_s: None,
                command_s: COMMAND_S,
                agent_s: 0,
                duel_s: 0,
                agent_usd: None,
                final_blocks: 0,
            },
            agent: String::new(),
            agenda: None,
            asks: karve_core::charter::AskRule::default(),
            knobs: Vec::new(),
            tune: TuneRule::default(),
            branch: Branch::Hidden,
            workdir: String::new(),
            remote: None,
            device: self.device(),
            audit: Default::default(),
            sandbox: SandboxRule::default(),
            seed: 0,
        })
    }

    /// The device settings from the command line.
    pub fn device(&self) -> DeviceRule {
        DeviceRule { pin: if self.pin { Pin::Auto } else { Pin::No }, ..DeviceRule::default() }
    }

    fn metric(&self) -> Result<Metric> {
        let name = self.metric.clone().unwrap_or_else(|| "wall_time".into());
        let mut metric = Metric {
            unit: self.unit.clone().unwrap_or_else(|| config::unit_in(&name)),
            name,
            clocks: self.clocks.map_or(ClockRule::Auto, ClocksName::rule),
            ..Metric::default()
        };
        if metric.own_clock().is_some() {
            if self.format.is_some() || self.better.is_some() {
                let what = format!("{} is measured by karve's own clock", metric.name);
                return Err(CommandError::usage(what)
                    .hint("name the printed number with --metric, or leave out --format"));
            }
            if metric.unit.is_empty() {
                metric.unit = "ms".into();
            }
            if metric.seconds_per_unit().is_none() {
                let what = format!("{:?} is not a unit of time", metric.unit);
                return Err(CommandError::usage(what).hint("use --unit s, ms, us or ns"));
            }
            return Ok(metric);
        }
        let format = self.format.as_deref().unwrap_or("metric");
        if !commands::knows_format(format) {
            return Err(CommandError::usage(format!("there is no format {format:?}"))
                .hint(format!("use --format {}", NAMES.join(", "))));
        }
        metric.better = match self.better {
            Some(BetterName::Lower) => Better::Lower,
            Some(BetterName::Higher) => Better::Higher,
            None if metric.seconds_per_unit().is_some() => Better::Lower,
            None if metric.rate_per_unit().is_some() => Better::Higher,
            None => {
                let what = format!("it is not clear whether more {} is better", metric.name);
                return Err(CommandError::usage(what)
                    .hint("use --better lower or --better higher, or name the --unit"));
            }
        };
        Ok(metric)
    }

    fn plain_cases(&self, lines: &[String], metric: &Metric) -> Result<Vec<Case>> {
        if self.cases.is_empty() {
            refuse_parameters(lines, &[])?;
            return Ok(vec![Case {
                name: ONLY_CASE.into(),
                params: BTreeMap::new(),
                set: CaseSet::Full,
                minor: false,
                halve: None,
            }]);
        }
        let cases: Vec<Case> =
            self.cases.iter().map(|text| config::case_of(text)).collect::<Result<_>>()?;
        refuse_parameters(lines, &cases)?;
        let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twin) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(CommandError::usage(format!("the case {:?} is given twice", twin[0]))
                .hint("name each --case once"));
        }
        let blind = |line: &&String| !commands::names_case(line, &cases);
        if let Some(line) = lines.iter().find(blind)
            && metric.own_clock().is_some()
        {
            return Err(CommandError::usage(format!("{line:?} does not use the case"))
                .hint("write {case} or a parameter such as {size} into it, or leave out --case"));
        }
        Ok(cases)
    }
}

/// Placeholders that a plain command may use without a case.
const FREE: [&str; 3] = ["seed", "out", "repeats"];

/// Rejects a placeholder that no case, or not every case, has a value for.
fn refuse_parameters(lines: &[String], cases: &[Case]) -> Result<()> {
    let known = |name: &str| {
        let has = |case: &Case| name == "case" || case.params.contains_key(name);
        FREE.contains(&name) || (!cases.is_empty() && cases.iter().all(has))
    };
    let names = lines.iter().flat_map(|line| placeholders::names(line));
    let Some(name) = names.into_iter().find(|name| !known(name)) else {
        return Ok(());
    };
    let what = if cases.is_empty() {
        format!("a command uses {{{name}}}, but there is no case")
    } else {
        format!("a command uses {{{name}}}, but not every case has it")
    };
    let way = if name == "case" {
        "name one or more with --case NAME".to_owned()
    } else {
        format!("give it a value with --case {name}=64")
    };
    let braces = "; write a literal brace as {{";
    Err(CommandError::usage(what).hint(way + braces))
}

/// Reads `2%` as the ratio 1.02.
pub fn parse_percent(text: &str) -> std::result::Result<f64, String> {
    let usage = || "write a percentage like 2% or 0.5%, from 0% to 1000%".to_owned();
    let number = text.strip_suffix('%').ok_or_else(usage)?;
    let percent: f64 = number.trim().parse().map_err(|_| usage())?;
    if (0.0..=1_000.0).contains(&percent) { Ok(1.0 + percent / 100.0) } else { Err(usage()) }
}

/// Reads the smallest difference that counts, `2%`, as the ratio 1.02.
pub fn parse_effect(text: &str) -> std::result::Result<f64, String> {
    let usage = || {
        "write the smallest difference that counts like 2%, from 1% to 1000%: less cannot be \
         distinguished from the noise of the host"
            .to_owned()
    };
    let ratio = parse_percent(text).map_err(|_| usage())?;
    if ratio < EFFECT_MIN { Err(usage()) } else { Ok(ratio) }
}

/// Reads an error probability.
pub fn parse_alpha(text: &str) -> std::result::Result<f64, String> {
    let usage = || "alpha must be between 1e-9 and 0.2, such as 0.001".to_owned();
    let alpha: f64 = text.parse().map_err(|_| usage())?;
    if (1e-9..=ALPHA_MAX).contains(&alpha) { Ok(alpha) } else { Err(usage()) }
}
