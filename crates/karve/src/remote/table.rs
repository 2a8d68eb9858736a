//! `[remote.NAME]`: where kernels are built and measured if not here, and how to get there.

use karve_numerics::search::budget::parse_time;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The file with the user's own remotes, below the configuration directory.
const USER_FILE: &str = "karve/remotes.toml";
/// Longest name of a remote.
const NAME_CHARS_MAX: usize = 40;
/// The most devices of a remote.
const DEVICES_MAX: u32 = 64;
/// How long the far side works on after the line is lost.
const GRACE: Duration = Duration::from_secs(120);
/// How long an allocation may stay in the queue.
const QUEUE: Duration = Duration::from_secs(3_600);
/// How long an allocation lasts.
const TIME: Duration = Duration::from_secs(4 * 3_600);

/// How another machine is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// By `ssh`, with your own configuration and keys.
    Ssh,
    /// In an allocation of SLURM, by `salloc` or `sbatch`, and `srun`.
    Slurm,
    /// In an actor of a Ray cluster.
    Ray,
    /// By commands of your own: `acquire`, `run`, `release`, `status`.
    Command,
}

/// How an allocation is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlurmSubmit {
    /// With `salloc`.
    #[default]
    Salloc,
    /// With `sbatch`, where interactive allocations are forbidden.
    Sbatch,
}

/// How long a device is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldRule {
    /// For one block or build.
    Block,
    /// While a round is built, tested and measured; not while an agent thinks.
    Round,
    /// Until the campaign ends or is stopped.
    #[default]
    Campaign,
}

/// Another machine, as written in `karve.toml` or in `~/.config/karve/remotes.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteTable {
    /// How it is reached.
    pub engine: EngineKind,
    /// The host for `ssh`; for SLURM the login node, if this is not one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub host: Option<String>,
    /// Options for `ssh`, such as `["-p", "2222"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// karve's directory there; `~/.cache/karve` by default. All nodes of a cluster must see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub dir: Option<String>,
    /// Variables to set there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How long the device is held; `campaign` by default.
    #[serde(default)]
    pub hold: HoldRule,
    /// How long work goes on there after the line is lost, such as `2m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
    /// How long to wait for an allocation, such as `1h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// How long an allocation lasts, such as `4h`; it is renewed before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// How SLURM is asked; `salloc` by default.
    #[serde(default)]
    pub submit: SlurmSubmit,
    /// An allocation of SLURM to join; it is not given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub job: Option<String>,
    /// Arguments for `salloc`, `sbatch`, or of the Ray actor's resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The address of the Ray cluster; `auto` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub address: Option<String>,
    /// The Python that has Ray; `python3` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub python: Option<String>,
    /// Gets a device; the last line that it prints is `{id}` of the other commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub acquire: Option<String>,
    /// Runs `{command}` there, with its standard input and output; `{command_word}` is the same as
    /// one word, for a program that hands it to another shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub run: Option<String>,
    /// Gives the device back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub release: Option<String>,
    /// Prints the state of the device, and exits with 0 if it can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub status: Option<String>,
    /// How many devices try settings of knobs and variants at the same time; 1 by default. `{n}` in
    /// `host`, `env`, `job` and the commands is the number of a device, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub devices: Option<u32>,
    /// What an hour of a held device costs, for the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub price_per_hour: Option<f64>,
}

/// A remote that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteConfig {
    /// Its name.
    pub name: String,
    /// As written.
    pub table: RemoteTable,
    /// How long work goes on after the line is lost.
    pub grace: Duration,
    /// How long to wait for an allocation.
    pub queue: Duration,
    /// How long an allocation lasts.
    pub time: Duration,
}

impl RemoteConfig {
    /// How many devices it has.
    pub fn devices(&self) -> u32 {
        self.table.devices.unwrap_or(1).clamp(1, DEVICES_MAX)
    }

    /// One of its devices.
    #[must_use]
    pub fn device(&self, number: u32) -> Self {
        let mut one = self.clone();
        let set = |text: &mut String| *text = text.replace("{n}", &number.to_string());
        let table = &mut one.table;
        let texts = [&mut table.host, &mut table.job, &mut table.acquire, &mut table.run];
        let more = [&mut table.release, &mut table.status, &mut table.dir];
        texts.into_iter().chain(more).flatten().for_each(set);
        table.env.values_mut().for_each(set);
        one
    }

    /// Where it is: what is there is there for every device of the same place.
    pub fn place(&self) -> [Option<String>; 3] {
        [self.table.host.clone(), self.table.dir.clone(), self.table.run.clone()]
    }

    /// Checks a table.
    pub fn new(name: &str, table: &RemoteTable) -> Result<Self> {
        let place = format!("remote.{name}");
        let wrong = |key: &str, message: String| {
            let error = CommandError::usage(format!("{place}.{key}: {message}"));
            error.hint(format!("change {place}.{key} in karve.toml or {}", user_file().display()))
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(plain) || name.len() > NAME_CHARS_MAX {
            let message = "a name has letters, digits, - and _, and at most 40 of them";
            return Err(wrong("engine", message.to_owned()));
        }
        let time = |key: &str, text: &Option<String>, default: Duration| match text {
            None => Ok(default),
            Some(text) => parse_time(text).map_err(|usage| wrong(key, usage)),
        };
        let needs = |key: &str, value: &Option<String>| match value {
            Some(value) if value.starts_with('-') => {
                Err(wrong(key, "it must not start with -".to_owned()))
            }
            Some(_) => Ok(()),
            None => Err(wrong(key, "it is required for this engine".to_owned())),
        };
        let is_name = |name: &String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(plain)
        };
        if let Some(name) = table.env.keys().find(|name| !is_name(name)) {
            return Err(wrong("env", format!("{name:?} is not the name of a variable")));
        }
        match table.engine {
            EngineKind::Ssh => needs("host", &table.host)?,
            EngineKind::Command => {
                needs("run", &table.run)?;
                let run = table.run.as_deref().unwrap_or_default();
                if !run.contains("{command}") && !run.contains("{command_word}") {
                    return Err(wrong("run", "it has no {command}".to_owned()));
                }
                if run.contains("{id}") {
                    needs("acquire", &table.acquire)?;
                }
            }
            EngineKind::Slurm if table.host.is_some() => needs("host", &table.host)?,
            EngineKind::Slurm | EngineKind::Ray => {}
        }
        Ok(Self {
            name: name.to_owned(),
            grace: time("grace", &table.grace, GRACE)?,
            queue: time("queue", &table.queue, QUEUE)?,
            time: time("time", &table.time, TIME)?,
            table: table.clone(),
        })
    }
}

/// Where the user's own remotes are written.
pub fn user_file() -> PathBuf {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let set = std::env::var_os("XDG_CONFIG_HOME").filter(|dir| !dir.is_empty());
    let dir = set.map(PathBuf::from).or(home).unwrap_or_else(|| PathBuf::from("/etc"));
    dir.join(USER_FILE)
}

/// The tables of a file of remotes: `[NAME]` each.
pub fn tables_in(text: &str) -> Result<BTreeMap<String, RemoteTable>, toml::de::Error> {
    toml::from_str(text)
}

/// The user's own remotes.
pub fn of_user() -> Result<BTreeMap<String, RemoteTable>> {
    let path = user_file();
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let text = files::read_text(&path, files::WRITTEN_BYTES_MAX)
        .context(|| format!("cannot read {}", path.display()))?;
    tables_in(&text).map_err(|error| {
        let message = format!("{} cannot be read", path.display());
        CommandError::usage(message)
            .cause(error.message())
            .hint(format!("compare {} with docs/remote.md, or remove it", path.display()))
    })
}

/// A remote by its name: the project's, or else the user's.
pub fn find(name: &str, project: &BTreeMap<String, RemoteTable>) -> Result<Option<RemoteConfig>> {
    if let Some(table) = project.get(name) {
        return RemoteConfig::new(name, table).map(Some);
    }
    of_user()?.get(name).map(|table| RemoteConfig::new(name, table)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Example {
        remote: BTreeMap<String, RemoteTable>,
    }

    #[test]
    fn the_examples_of_the_documentation_are_remotes() {
        let text = include_str!("../../../../docs/remote.md");
        let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let mut names = Vec::new();
        for block in blocks {
            let example: Example = toml::from_str(block).unwrap();
            for (name, table) in &example.remote {
                RemoteConfig::new(name, table).unwrap();
                names.push(name.clone());
            }
        }
        assert_eq!(names, ["box", "lab", "pool", "docker", "flux", "k8s", "pbs", "sge"]);
    }

    #[test]
    fn each_device_of_a_remote_has_its_number() {
        let text = "[gpus]\nengine = \"ssh\"\nhost = \"gpu{n}\"\ndevices = 3\n\
                    env = { CUDA_VISIBLE_DEVICES = \"{n}\" }\n";
        let table = &tables_in(text).unwrap()["gpus"];
        let config = RemoteConfig::new("gpus", table).unwrap();
        assert_eq!(config.devices(), 3);
        let last = config.device(2).table;
        assert_eq!(last.host.as_deref(), Some("gpu2"));
        assert_eq!(last.env["CUDA_VISIBLE_DEVICES"], "2");
    }

    #[test]
    fn a_remote_that_cannot_work_is_refused_with_its_key() {
        let refused = |lines: &str, key: &str| {
            let table = &tables_in(&format!("[x]\n{lines}")).unwrap()["x"];
            let error = RemoteConfig::new("x", table).unwrap_err();
            assert!(error.to_string().contains(&format!("remote.x.{key}")), "{error}");
        };
        refused("engine = \"ssh\"", "host");
        refused("engine = \"ssh\"\nhost = \"-oProxyCommand=x\"", "host");
        refused("engine = \"command\"\nrun = \"ssh x\"", "run");
        refused("engine = \"command\"\nrun = \"x {id} {command}\"", "acquire");
        refused("engine = \"slurm\"\ntime = \"soon\"", "time");
        refused("engine = \"slurm\"\nenv = { \"A B\" = \"1\" }", "env");
    }
}
