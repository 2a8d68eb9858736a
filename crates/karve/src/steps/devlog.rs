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
/// Here begins what a devlog of hyper-mla says of a version.
const VERSION: &str = "**Performance**";
/// Characters of what such a devlog begins with.
const OVERVIEW_CHARS: usize = 300;

/// The devlogs of the kernel, as tips.
pub(super) fn read(context: &Context) -> Vec<Tip> {
    let path = devlog_path(&context.charter.target.op);
    let project = context.repos.upstream.root().join(&context.charter.workdir);
    let file = project.join(&path);
    // A link could lead to any file of the user, whose text must not come into a brief.
    let is_linked = files::is_linked(&file, context.repos.upstream.root());
    let own = (!is_linked).then(|| tip(&file, path.clone())).flatten();
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

/// A devlog as a tip.
fn tip(path: &Path, source: String) -> Option<Tip> {
    let text = gist(&files::read_text(path, FILE_BYTES_MAX).ok()?);
    (!text.is_empty()).then_some(Tip { source, text })
}

/// What was learned, if a devlog has that section; or else how it begins and what it says of the
/// last version, as hyper-mla writes one.
fn gist(text: &str) -> String {
    let of = |text: &str, chars: usize| -> String {
        text.trim().chars().take(chars).collect::<String>().trim().to_owned()
    };
    if let Some(at) = text.find(INSIGHTS) {
        return of(&text[at..], CHARS_MAX);
    }
    match (text.find(VERSION), text.rfind(VERSION)) {
        (Some(first), Some(last)) => {
            let overview = of(&text[..first], OVERVIEW_CHARS);
            let version = of(&text[last..], CHARS_MAX - OVERVIEW_CHARS);
            format!("{overview}\n\n{version}").trim().to_owned()
        }
        _ => of(text, CHARS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devlog_is_told_by_its_insights_or_by_its_overview_and_last_version() {
        assert_eq!(gist("# a\n\n- v0\n\n## Insights\n\n- waits\n"), "## Insights\n\n- waits");
        let version = |name: &str, us: u32| {
            format!("## {name}\n\n**Performance** (x):\n\n| Duration | {us} |\n\n")
        };
        let (first, last) = (version("v1", 9), version("v2", 7));
        let versions = format!("# mla\n\nsplit KV\n\n{first}{last}**Insights**:\n- fuller\n");
        let told = gist(&versions);
        assert!(told.starts_with("# mla\n\nsplit KV"), "{told}");
        assert!(told.ends_with("| Duration | 7 |\n\n**Insights**:\n- fuller"), "{told}");
        assert!(!told.contains("| Duration | 9 |"), "{told}");
        assert_eq!(gist(&"x".repeat(5_000)).len(), CHARS_MAX);
        assert_eq!(gist(" \n"), "");
    }
}
