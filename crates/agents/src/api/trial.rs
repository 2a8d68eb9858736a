//! A small turn, to see whether a model API works from here: its key, its model, and the way there.

use super::talk::{Item, Talk};
use super::turn::{self, Place};
use super::{Model, key};
use crate::cli::Tried;
use crate::config::ApiConfig;
use crate::turn::Task;
use karve_core::asking::budget::Left;
use karve_os::error::{Context, Result};
use karve_os::process::StopFlag;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the small turn may take, in seconds.
const TRIAL_S: u64 = 120;

/// What is asked; some word must come back.
const QUESTION: &str = "Answer with this one word and nothing else: ready\n";

/// Whether the key of a model API is there, as far as can be told without asking a command.
pub fn has_key(config: &ApiConfig) -> bool {
    key::is_there(config)
}

/// Has a small turn; what was said is written down in a directory.
pub fn try_turn(name: &str, config: &ApiConfig, dir: &Path, stop: &StopFlag) -> Result<Tried> {
    let dir = dir.join("tmp");
    fs::create_dir_all(&dir).context(|| format!("cannot make {}", dir.display()))?;
    let place = Place {
        task: Task::Trial,
        exchange: &dir.join("exchange.jsonl"),
        stop,
        until: Instant::now() + Duration::from_secs(TRIAL_S),
        limit_s: TRIAL_S,
        left: Left::default(),
    };
    let mut model = Model::open(name, config, stop)?;
    let mut talk = Talk {
        of: (0, 0),
        items: vec![Item::Asked(QUESTION.to_owned())],
    };
    let told = turn::run(&mut model, &mut talk, None, &place)?;
    Ok(Tried {
        usage: told.usage,
        fault: told.fault.map(|fault| fault.describe()),
    })
}
