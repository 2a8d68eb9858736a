//! What the text of a project's command tells an agent without meaning to: the seed that it was
//! given, and where karve keeps its files.

use super::{Harness, SEED};
use crate::commands::ProfilerStart;
use karve_os::process::{CapturedOutput, CommandOutcome};
use std::path::Path;

/// Fewer digits could be any number.
const DIGITS_MIN: usize = 6;
/// The replacement for a seed.
const SEED_IN_PLACE: &str = "[seed]";
/// The replacement for a directory of karve.
const DIR_IN_PLACE: &str = "[karve]";

/// What must not be in the text of a command.
#[derive(Clone, Debug, Default)]
pub(super) struct PrivateText {
    seed: Option<u64>,
    /// The worktree: its files are named relative to it.
    tree: Option<String>,
    /// Directories of karve.
    dirs: Vec<String>,
}

impl Harness {
    /// What the text of a command must not say, in this worktree and with this seed.
    pub(super) fn private(&self, tree: &Path, seed: Option<u64>) -> PrivateText {
        let campaign = self.scratch.parent().map(|dir| dir.to_string_lossy().into_owned());
        let mut dirs: Vec<String> = campaign.into_iter().chain([self.tag.clone()]).collect();
        let is_dir = |dir: &String| dir.starts_with('/') && dir.len() > 1;
        dirs.retain(is_dir);
        let tree = Some(tree.to_string_lossy().into_owned()).filter(is_dir);
        PrivateText { seed, tree, dirs }
    }

    /// The same for a benchmark under a profiler.
    pub(super) fn private_to(&self, tree: &Path, start: &ProfilerStart) -> PrivateText {
        let seed = start.environment.iter().find(|(name, _)| name == SEED);
        self.private(tree, seed.and_then(|(_, value)| value.parse().ok()))
    }

    /// The text of a command for an agent, without the directories of karve.
    pub fn without_private_dirs(&self, tree: &Path, text: &str) -> String {
        self.private(tree, None).redact(text)
    }
}

impl PrivateText {
    /// The text without it.
    pub(super) fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Some(tree) = &self.tree {
            text = text.replace(&format!("{tree}/"), "").replace(tree, ".");
        }
        for dir in &self.dirs {
            text = text.replace(dir, DIR_IN_PLACE);
        }
        let Some(seed) = self.seed else {
            return text;
        };
        let hex = |c: char| c.is_ascii_hexdigit();
        text = without_number(&text, &format!("{seed:016x}"), hex);
        text = without_number(&text, &format!("{seed:x}"), hex);
        text = without_number(&text, &format!("{seed:X}"), hex);
        without_number(&text, &seed.to_string(), |c| c.is_ascii_digit())
    }

    /// A run whose output is without it.
    pub(super) fn hide(&self, mut run: CommandOutcome) -> CommandOutcome {
        for stream in [&mut run.stdout, &mut run.stderr] {
            let left_out = stream.total_bytes - stream.bytes.len() as u64;
            let bytes = self.redact(&String::from_utf8_lossy(&stream.bytes)).into_bytes();
            *stream = CapturedOutput { total_bytes: bytes.len() as u64 + left_out, bytes };
        }
        run
    }
}

/// The text without a number, where it is not part of a longer one.
fn without_number(text: &str, number: &str, is_digit: fn(char) -> bool) -> String {
    if number.len() < DIGITS_MIN {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(number) {
        let (before, found) = rest.split_at(at);
        let after = &found[number.len()..];
        clean.push_str(before);
        let longer = clean.ends_with(is_digit) || after.starts_with(is_digit);
        clean.push_str(if longer { number } else { SEED_IN_PLACE });
        rest = after;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_directories_of_karve_are_left_out() {
        let private = PrivateText {
            seed: Some(280_303_193),
            tree: Some("/p/.karve/campaign/worktrees/a1".into()),
            dirs: vec!["/p/.karve/campaign".into()],
        };
        for (said, shown) in [
            ("seed=280303193, N=4", "seed=[seed], N=4"),
            ("default_rng(280303193)", "default_rng([seed])"),
            ("0x10b51659 and 0X10B51659", "0x[seed] and 0X[seed]"),
            ("out-0000000010b51659", "out-[seed]"),
            ("12803031930 is another", "12803031930 is another"),
            ("/p/.karve/campaign/worktrees/a1/k.py:3: in f", "k.py:3: in f"),
            ("in /p/.karve/campaign/worktrees/a1", "in ."),
            ("/p/.karve/campaign/worktrees/b2/k.py", "[karve]/worktrees/b2/k.py"),
            ("/p/.karve/campaign/tmp/out", "[karve]/tmp/out"),
            ("/p/other", "/p/other"),
        ] {
            assert_eq!(private.redact(said), shown);
        }
        // A short number says nothing about a seed, and is in every text.
        let private = PrivateText { seed: Some(12), ..private };
        assert_eq!(private.redact("error 12"), "error 12");
    }
}
