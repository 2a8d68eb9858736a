//! Lessons of rounds for later campaigns on the same device, operation and backend.
//!
//! They are in `tips/<device>/<op>/<backend>/tips.md` under the campaigns' root. They are also read
//! from where primus keeps them, `agent/historical_experience`, if the project has that directory;
//! `karve apply` adds them there, so that a campaign does not change the checkout. There is one
//! section per round with a lesson; the file survives every campaign and every rollback.

use super::context::Context;
use karve_core::campaign::{Campaign, RoundSummary, Tip};
use karve_core::charter::Target;
use karve_core::integrity::{self, Transfer};
use karve_core::knowledge;
use karve_os::error::{CommandError, Result};
use karve_os::files;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Most tips that are read.
const TIPS_READ_MAX: usize = 50;
/// Bytes of a tips file that are read; one that is larger is not appended to.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Characters of one tip.
const TIP_CHARS_MAX: usize = 1_000;
/// Where projects that use primus keep tips.
const PRIMUS_TIPS: &str = "agent/historical_experience";

/// The file with the tips for the target, in a directory for all tips.
fn tips_in(target: &Target, root: &Path, backend: &str) -> PathBuf {
    let clean = |name: &str| -> String {
        let replace = |c: char| {
            if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' }
        };
        name.chars().map(replace).collect::<String>().trim_matches('.').to_owned()
    };
    root.join(clean(&target.device)).join(clean(&target.op)).join(clean(backend)).join("tips.md")
}

/// The project's own file of tips for the target, if it keeps tips. A link there could lead to any
/// file of the user, whose text must not come into a brief, and which must not be written.
fn project_tips(target: &Target, checkout: &Path) -> Option<PathBuf> {
    let root = checkout.join(PRIMUS_TIPS);
    let path = tips_in(target, &root, &target.backend.to_lowercase());
    (root.is_dir() && !files::is_linked(&path, checkout)).then_some(path)
}

/// Adds the tips of karve to those of a project that keeps tips where primus does; returns the
/// file. Doing it again changes nothing.
pub(crate) fn hand_over(
    target: &Target,
    campaigns: &Path,
    checkout: &Path,
) -> Result<Option<PathBuf>> {
    let Some(path) = project_tips(target, checkout) else {
        return Ok(None);
    };
    let backend = target.backend.to_lowercase();
    let own = text_of(&tips_in(target, &campaigns.join("tips"), &backend), campaigns);
    let own = own.filter(|own| own.contains("\n### "));
    // A person may have edited it: what cannot be read is not replaced.
    let (Some(own), Some(mut text)) = (own, text_of(&path, checkout)) else {
        return Ok(None);
    };
    for section in own.split("\n### ").skip(1) {
        let section = format!("\n### {}\n", section.trim_end());
        if !text.contains(section.trim()) && text.len() < FILE_BYTES_MAX {
            text += &section;
        }
    }
    if let Some(parent) = path.parent() {
        let _ = fs::create_dir_all(parent);
    }
    files::write_atomic(&path, text.as_bytes())?;
    Ok(Some(path))
}

/// A lesson in an agent's words: a claim, and never a figure of karve's.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AgentTip {
    /// What was tried, and where.
    context: String,
    /// What showed it.
    signal: String,
    /// The lesson, reusable elsewhere.
    takeaway: String,
    /// When it applies.
    applicability: String,
}

/// Appends a tip of an agent; returns the file.
pub(crate) fn add(target: &Target, campaigns: &Path, tip: &AgentTip) -> Result<PathBuf> {
    let line = |text: &str| -> String {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.chars().take(TIP_CHARS_MAX / 4).collect()
    };
    let parts = [
        ("Context", line(&tip.context)),
        ("Signal", line(&tip.signal)),
        ("Takeaway", line(&tip.takeaway)),
        ("Applicability", line(&tip.applicability)),
    ];
    if let Some((name, _)) = parts.iter().find(|(_, text)| text.is_empty()) {
        return Err(CommandError::usage(format!("the tip has no {}", name.to_lowercase())).hint(
            "give append_tip context, signal, takeaway and applicability: see docs/serve.md",
        ));
    }
    let path = tips_in(target, &campaigns.join("tips"), &target.backend.to_lowercase());
    let text = text_of(&path, campaigns).filter(|text| text.len() < FILE_BYTES_MAX);
    let mut text = text.ok_or_else(|| {
        CommandError::usage(format!("{} cannot be appended to", path.display()))
            .hint("see \"karve knowledge\" for lessons that outgrow tips.md, or shorten the file")
    })?;
    let _ = write!(text, "\n### {} — an agent's words\n", karve_os::clock::minute());
    for (name, said) in parts {
        let _ = writeln!(text, "- {name}: {said}");
    }
    if let Some(parent) = path.parent() {
        let _ = fs::create_dir_all(parent);
    }
    files::write_atomic(&path, text.as_bytes())?;
    Ok(path)
}

/// What a file of tips holds; none if it cannot be read, or is not below this directory.
fn text_of(path: &Path, above: &Path) -> Option<String> {
    if files::is_linked(path, above) {
        return None;
    }
    match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("# Tips\n".to_owned()),
        Err(_) => None,
    }
}

/// The directory of all campaigns.
fn campaigns(context: &Context) -> &Path {
    context.dir.path().parent().unwrap_or(context.dir.path())
}

/// The newest tips for the target: karve's own, then those of the project.
pub(super) fn read_tips(context: &Context) -> Vec<Tip> {
    let target = &context.charter.target;
    let (backend, lower) = (&target.backend, target.backend.to_lowercase());
    let campaigns = campaigns(context);
    let own = campaigns.join("tips");
    let mut paths = vec![tips_in(target, &own, &lower)];
    // Earlier versions kept the case of the backend.
    if lower != *backend {
        paths.insert(0, tips_in(target, &own, backend));
    }
    paths.retain(|path| !files::is_linked(path, campaigns));
    paths.extend(project_tips(target, context.repos.upstream.root()));
    let mut tips: Vec<Tip> = Vec::new();
    for tip in paths.iter().flat_map(|path| tips_of(path)) {
        // What was handed over is in both.
        if !tips.contains(&tip) {
            tips.push(tip);
        }
    }
    // The newest are at the end of a file.
    let skip = tips.len().saturating_sub(TIPS_READ_MAX);
    tips.split_off(skip)
}

fn tips_of(path: &Path) -> Vec<Tip> {
    let mut bytes = files::read(path, u64::MAX).unwrap_or_default();
    bytes.truncate(FILE_BYTES_MAX);
    let text = format!("\n{}", String::from_utf8_lossy(&bytes));
    let sections = text.split("\n### ").skip(1);
    let tip = |section: &str| {
        let (source, body) = section.split_once('\n').unwrap_or((section, ""));
        Tip {
            source: source.trim().chars().take(200).collect(),
            text: body.trim().chars().take(TIP_CHARS_MAX).collect(),
        }
    };
    sections.map(tip).collect()
}

/// Adds the lesson of a round once; doing it again changes nothing.
pub(super) fn append_tip(
    context: &Context,
    campaign: &Campaign,
    round: &RoundSummary,
) -> Result<()> {
    let is_measured = round.ratio().is_some();
    let transfer = integrity::classify(&round.findings, campaign.standing_proof()).transfer();
    // What only works in a benchmark is no lesson.
    if !is_measured || transfer == Transfer::Overfit {
        return Ok(());
    }
    let target = &context.charter.target;
    let campaigns = campaigns(context);
    let path = tips_in(target, &campaigns.join("tips"), &target.backend.to_lowercase());
    // A person may have edited it: what cannot be read is not replaced.
    let Some(mut text) = text_of(&path, campaigns) else {
        return Ok(());
    };
    let run = format!("{}/round-{}", context.charter.name, round.number);
    if text.contains(&format!("({run})")) || text.len() > FILE_BYTES_MAX {
        return Ok(());
    }
    let outcome = if round.verdict.keeps() { "ACCEPTED" } else { "ROLLED BACK" };
    let time = karve_os::clock::utc_minute(round.at_ms);
    let _ = write!(text, "\n### {time} round-{} — {outcome}\n", round.number);
    text += &render_tip(context, &run, round, transfer);
    if let Some(parent) = path.parent() {
        let _ = fs::create_dir_all(parent);
    }
    files::write_atomic(&path, text.as_bytes())
}

fn render_tip(context: &Context, run: &str, round: &RoundSummary, transfer: Transfer) -> String {
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let target = &context.charter.target;
    let measured = match round.ratio() {
        Some(ratio) => format!("measured {ratio:.3}x over its parent"),
        None => "not measured".to_owned(),
    };
    let signal = match &round.hypothesis {
        Some(stated) => format!("expected {:.3}x, {measured}", stated.expected_ratio),
        None => measured,
    };
    let bound = match transfer {
        Transfer::WithAsterisk => " (a cache of weights: real use gains at most its bound)",
        Transfer::AsReal | Transfer::Unknown | Transfer::Overfit => "",
    };
    format!(
        "- Context: {} ({run})\n- Signal: {signal}\n- Takeaway: {}{bound}\n\
         - Applicability: {}\n",
        line(round.title()),
        line(&takeaway(round)),
        line(&applicability(round, &target.op, &target.backend, &target.device)),
    )
}

/// What a later campaign should know.
fn takeaway(round: &RoundSummary) -> String {
    let learning = round.lesson.learning.as_deref();
    learning.map_or_else(|| round.lesson.text.clone(), knowledge::takeaway)
}

fn applicability(round: &RoundSummary, op: &str, backend: &str, device: &str) -> String {
    let here = format!("{op} {backend} on {device}");
    let learning = round.lesson.learning.as_ref();
    match learning.map(|learning| learning.words.condition.as_str()) {
        None | Some("") => here,
        Some(condition) => format!("{here}, {condition}"),
    }
}
