//! A small turn, to check that a model API works from here: its key, its model and the network.

use super::conversation::{ApiConversation, ConversationItem};
use super::turn::ApiTurnContext;
use super::{ApiModel, key, turn};
use crate::api::ApiConfig;
use crate::cli::AgentTrial;
use crate::turn::TurnTask;
use karve_core::asking::budget::RemainingBudget;
use karve_os::error::{Result, WithContext};
use karve_os::process::StopFlag;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the small turn may take, in seconds.
const TRIAL_S: u64 = 120;

/// The question; any text must come back.
const QUESTION: &str = "Answer with this one word and nothing else: ready\n";

/// Whether the key of a model API is set, as far as is known without running a command.
pub fn has_key(config: &ApiConfig) -> bool {
    key::is_there(config)
}

/// Runs a small turn; its session log goes to a directory.
pub fn run_trial(
    name: &str,
    config: &ApiConfig,
    dir: &Path,
    stop: &StopFlag,
) -> Result<AgentTrial> {
    let dir = dir.join("tmp");
    fs::create_dir_all(&dir).context(|| format!("cannot create {}", dir.display()))?;
    let place = ApiTurnContext {
        task: TurnTask::Trial,
        session_log: &dir.join("session.jsonl"),
        stop,
        until: Instant::now() + Duration::from_secs(TRIAL_S),
        limit_s: TRIAL_S,
        left: RemainingBudget::default(),
    };
    let mut model = ApiModel::open(name, config, stop)?;
    let mut talk =
        ApiConversation { of: (0, 0), items: vec![ConversationItem::Prompt(QUESTION.to_owned())] };
    let reported = turn::run(&mut model, &mut talk, None, &place)?;
    Ok(AgentTrial {
        usage: reported.usage,
        failure: reported.failure.map(|fault| fault.describe()),
    })
}
