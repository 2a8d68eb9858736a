//! What the devlog of the kernel says: that of the project, and that of the last campaign.

use super::context::Context;
use crate::reports::devlog_path;
use karve_core::campaign::Tip;
use karve_os::files;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a devlog that are read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Characters of a devlog that a brief may show.
const CHARS_MAX: usize = 1_000;
/// Campaigns that are looked at, the newest first.
const CAMPAIGNS_MAX: usize = 20;
/// From here on a devlog says what was learned and what to do next.
const INSIGHTS: &str = "## Insights";

/// The devlogs of the kernel, as tips.
pub(super) fn read(context: &Context) -> Vec<Tip> {
    let path = devlog_path(&context.charter.target.op);
    let project = context.repos.upstream.root().join(&context.charter.workdir);
    let own = tip(&project.join(&path), path.clone());
    let last = earlier(context).into_iter().take(CAMPAIGNS_MAX).find_map(|campaign| {
        let source = campaign.file_name()?.to_string_lossy().into_owned();
        tip(&campaign.join(&path), format!("devlog of {source}"))
    });
    own.into_iter().chain(last).collect()
}

/// The directories of other campaigns, the newest first: names end with the time of their start.
fn earlier(context: &Context) -> Vec<PathBuf> {
    let own = context.dir.path();
    let entries = own.parent().and_then(|campaigns| fs::read_dir(campaigns).ok());
    let entries = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut dirs: Vec<PathBuf> = entries.filter(|path| path != own && path.is_dir()).collect();
    let started = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        (name.rsplit(['_', '-']).next().unwrap_or_default().to_owned(), name)
    };
    dirs.sort_by_key(started);
    dirs.reverse();
    dirs
}

/// A devlog as a tip: what was learned, or else how it begins.
fn tip(path: &Path, source: String) -> Option<Tip> {
    let text = files::read_text(path, FILE_BYTES_MAX).ok()?;
    let from = text.find(INSIGHTS).unwrap_or(0);
    let text: String = text[from..].chars().take(CHARS_MAX).collect();
    (!text.trim().is_empty()).then(|| Tip { source, text: text.trim().to_owned() })
}
