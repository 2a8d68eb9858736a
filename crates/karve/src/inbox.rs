//! What a person tells a running campaign: files in a directory that the campaign looks at before
//! each step.

use karve_core::campaign::Campaign;
use karve_harness::store::CampaignDir;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::{clock, files};
use std::fs;
use std::path::PathBuf;

/// Most characters of an answer.
const TEXT_CHARS_MAX: usize = 4_000;
/// The file that asks a campaign to stop.
const STOP: &str = "stop";

/// The directory.
pub fn of(dir: &CampaignDir) -> PathBuf {
    dir.join("inbox")
}

/// Puts an answer there; the campaign reads it before its next step.
pub fn put_answer(dir: &CampaignDir, campaign: &Campaign, text: &str) -> Result<()> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > TEXT_CHARS_MAX {
        return Err(CommandError::usage(format!(
            "an answer must have 1 to {TEXT_CHARS_MAX} characters"
        ))
        .hint("shorten it: karve answer \"…\""));
    }
    if campaign.is_finished() {
        return Err(CommandError::usage("the campaign is finished and does not accept answers")
            .hint("resume it first: \"karve run --campaign NAME --rounds N\""));
    }
    let name = format!("{:020}-{}.txt", clock::now_ms(), std::process::id());
    files::write_atomic(&made(dir)?.join(name), text.as_bytes())
}

/// Asks the process that runs a campaign to stop after its step.
pub fn ask_to_stop(dir: &CampaignDir, campaign: &Campaign) -> Result<()> {
    if campaign.is_finished() {
        return Err(CommandError::usage("the campaign is finished")
            .hint("\"karve report\" shows its result"));
    }
    files::write_atomic(&made(dir)?.join(STOP), b"")
}

/// Whether somebody asked for that; asking is forgotten.
pub fn takes_stop(dir: &CampaignDir) -> bool {
    fs::remove_file(of(dir).join(STOP)).is_ok()
}

fn made(dir: &CampaignDir) -> Result<PathBuf> {
    let inbox = of(dir);
    if fs::symlink_metadata(&inbox).is_ok_and(|meta| meta.is_symlink()) {
        return Err(CommandError::environment(format!("{} is a link", inbox.display()))
            .hint("remove it; \"karve answer\" makes a directory in its place"));
    }
    fs::create_dir_all(&inbox).context(|| format!("cannot create {}", inbox.display()))?;
    Ok(inbox)
}
