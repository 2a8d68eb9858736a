//! What a tuning run has tried, one line per reading, so that no setting is tried twice.
//!
//! The first line identifies the readings: the commit, the knobs, the commands and the cases.
//! Anything else gets a new journal next to it. A torn last line is cut off.

use super::evaluator::{Evaluator, SettingResult};
use super::recorded::EvaluationFailure;
use karve_numerics::space::KnobSetting;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The largest journal that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JournalLine {
    /// What the readings belong to.
    Space {
        /// The version of the journal.
        version: u32,
        /// The digest of everything that a reading depends on.
        key: String,
        /// The commit that is tuned.
        commit: String,
        /// The unit of the values.
        unit: String,
    },
    /// A reading.
    Read {
        /// The setting.
        config: KnobSetting,
        /// The geometric mean of the metric over the cases.
        value: f64,
        /// The metric of each case.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cases: Vec<f64>,
        /// The digest of its artifacts: settings with the same artifacts are the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifacts: Option<String>,
        /// How long it took, including build and test.
        spent_ms: u64,
    },
    /// A setting that cannot be used.
    Failed {
        /// The setting.
        config: KnobSetting,
        /// Why.
        why: String,
        /// The kind of failure.
        #[serde(default)]
        failure: EvaluationFailure,
        /// How long it took.
        spent_ms: u64,
    },
}

impl JournalLine {
    /// A line for the result of a setting.
    pub fn of(config: &KnobSetting, tried: &SettingResult, spent_ms: u64) -> Self {
        let config = config.clone();
        match tried {
            SettingResult::Read { value, cases } => Self::Read {
                config,
                value: *value,
                cases: if cases.len() > 1 { cases.clone() } else { Vec::new() },
                artifacts: None,
                spent_ms,
            },
            SettingResult::Failed { why, failure } => Self::Failed {
                config,
                why: why.chars().take(500).collect(),
                failure: *failure,
                spent_ms,
            },
        }
    }

    /// The same, with the digest of the artifacts.
    #[must_use]
    pub fn with_artifacts(mut self, digest: Option<&String>) -> Self {
        if let Self::Read { artifacts, .. } = &mut self {
            *artifacts = digest.cloned();
        }
        self
    }

    /// How long it took.
    pub fn spent_ms(&self) -> u64 {
        match self {
            Self::Space { .. } => 0,
            Self::Read { spent_ms, .. } | Self::Failed { spent_ms, .. } => *spent_ms,
        }
    }
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// The current version.
const VERSION: u32 = 1;

impl Journal {
    /// The journal of an evaluator in a directory, with what was tried before on this host.
    pub fn open(
        dir: &Path,
        setting_evaluator: &mut Evaluator,
        host: &str,
        fresh: FreshStart,
    ) -> Result<(Self, Vec<JournalLine>)> {
        let key = key_of(setting_evaluator, host)?;
        let path = dir.join(format!("{}.jsonl", &key[..16]));
        let failed = || format!("cannot write {}", path.display());
        fs::create_dir_all(dir).context(failed)?;
        if fresh == FreshStart::Yes && path.exists() {
            fs::rename(&path, path.with_extension("old.jsonl")).context(failed)?;
        }
        let lines = read_lines(&path)?;
        let mut file = OpenOptions::new().create(true).append(true).open(&path).context(failed)?;
        lock(&file, &path)?;
        if lines.is_empty() {
            let first = JournalLine::Space {
                version: VERSION,
                key,
                commit: setting_evaluator.base().to_string(),
                unit: setting_evaluator.charter().metric.unit.clone(),
            };
            write_line(&mut file, &first).context(failed)?;
        }
        Ok((Self { file, path }, lines))
    }

    /// Adds a line; it is on the disk when this returns.
    pub fn append(&mut self, line: &JournalLine) -> Result<()> {
        let path = &self.path;
        write_line(&mut self.file, line).context(|| format!("cannot write {}", path.display()))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether to start over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreshStart {
    /// Earlier readings are moved aside.
    Yes,
    /// Earlier readings count.
    No,
}

/// Two runs at once would try the same settings, and disturb each other.
fn lock(file: &File, path: &Path) -> Result<()> {
    file.try_lock().map_err(|_| {
        CommandError::new(
            karve_os::error::ErrorKind::Busy,
            format!("another \"karve tune\" uses {}", path.display()),
        )
        .hint("wait for it, or stop it with Ctrl-C; \"karve tune\" resumes where it stopped")
    })
}

fn write_line(file: &mut File, line: &JournalLine) -> std::io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())?;
    file.sync_data()
}

/// The complete lines of a journal. A last line without a newline was torn, and is cut off.
fn read_lines(path: &Path) -> Result<Vec<JournalLine>> {
    let Ok(meta) = fs::metadata(path) else {
        return Ok(Vec::new());
    };
    let damaged = |why: String| {
        CommandError::usage(format!("cannot read {}", path.display()))
            .cause(why)
            .hint("start over with \"karve tune --fresh\"; the old file is kept next to it")
    };
    if meta.len() > BYTES_MAX {
        return Err(damaged("it is larger than 64 MiB".into()));
    }
    let bytes = fs::read(path).context(|| format!("cannot read {}", path.display()))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < bytes.len() {
        let file = OpenOptions::new().write(true).open(path);
        let cut = file.and_then(|file| file.set_len(whole as u64));
        cut.context(|| format!("cannot write {}", path.display()))?;
    }
    let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let read = serde_json::from_str(line);
        lines.push(read.map_err(|error| damaged(format!("line {}: {error}", number + 1)))?);
    }
    match lines.first() {
        None | Some(JournalLine::Space { version: VERSION, .. }) => Ok(lines),
        Some(_) => Err(damaged("its first line is not a journal header".into())),
    }
}

/// The digest of everything that a reading depends on.
fn key_of(setting_evaluator: &mut Evaluator, host: &str) -> Result<String> {
    let common = setting_evaluator.common_tree()?.to_string();
    let charter = setting_evaluator.charter();
    let parts = serde_json::json!({
        "host": host,
        "common": common,
        "workdir": charter.workdir,
        "commands": charter.commands,
        "output": charter.output,
        "metric": charter.metric,
        "cases": charter.cases,
        "contract": charter.contract,
        "knobs": setting_evaluator.knobs().iter().map(|k| (&k.name, &k.values)).collect::<Vec<_>>(),
        "restrictions": setting_evaluator.restrictions(),
        // How they are delivered and where they apply may change without a commit.
        "declared": charter.knobs,
    });
    let text = serde_json::to_string(&parts).context(|| "cannot hash the journal".into())?;
    Ok(files::sha256_hex(text.as_bytes()))
}
