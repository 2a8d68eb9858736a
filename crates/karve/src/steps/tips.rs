//! Lessons of earlier campaigns for the same device, operation and backend.
//!
//! They are in `<root>/tips/<device>/<op>/<backend>/tips.md`, one section per round worth
//! remembering, and survive every campaign and every rollback.

use super::context::Context;
use karve_core::campaign::{Campaign, RoundSummary, Tip};
use karve_core::lineage::unchecked_note;
use karve_os::error::Result;
use karve_os::files;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::PathBuf;

/// Most tips that are read.
const TIPS_READ_MAX: usize = 50;
/// Bytes of a tips file that are read.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Characters of one tip.
const TIP_CHARS_MAX: usize = 1_000;

/// The file with the tips for the target.
fn tips_path(context: &Context) -> PathBuf {
    let target = &context.charter.target;
    let clean = |name: &str| -> String {
        let replace = |c: char| {
            if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' }
        };
        name.chars().map(replace).collect::<String>().trim_matches('.').to_owned()
    };
    let campaigns = context.dir.path().parent().unwrap_or(context.dir.path());
    campaigns
        .join("tips")
        .join(clean(&target.device))
        .join(clean(&target.op))
        .join(clean(&target.backend))
        .join("tips.md")
}

/// The newest tips for the target.
pub(super) fn read_tips(context: &Context) -> Vec<Tip> {
    let path = tips_path(context);
    let mut bytes = files::read(&path, u64::MAX).unwrap_or_default();
    bytes.truncate(FILE_BYTES_MAX);
    let text = String::from_utf8_lossy(&bytes);
    let mut tips: Vec<Tip> = Vec::new();
    for section in text.split("\n### ").skip(1) {
        let (source, body) = section.split_once('\n').unwrap_or((section, ""));
        tips.push(Tip {
            source: source.trim().chars().take(200).collect(),
            text: body.trim().chars().take(TIP_CHARS_MAX).collect(),
        });
    }
    // The newest are at the end of the file.
    let skip = tips.len().saturating_sub(TIPS_READ_MAX);
    tips.split_off(skip)
}

/// Adds this campaign's lessons once; doing it again changes nothing.
pub(super) fn append_tips(context: &Context, campaign: &Campaign) -> Result<()> {
    let path = tips_path(context);
    let mut text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => "# Tips\n".to_owned(),
        // A person may have edited it: what cannot be read is not replaced.
        Err(_) => return Ok(()),
    };
    for round in campaign.notable_rounds() {
        let outcome = if round.verdict.keeps() { "ACCEPTED" } else { "ROLLED BACK" };
        let heading =
            format!("### {} round-{} — {outcome}", campaign.view().campaign, round.number);
        if text.contains(&heading) {
            continue;
        }
        let _ = write!(text, "\n{heading}\n{}", render_tip(campaign, round));
    }
    if let Some(parent) = path.parent() {
        let _ = fs::create_dir_all(parent);
    }
    files::write_atomic(&path, text.as_bytes())
}

fn render_tip(campaign: &Campaign, round: &RoundSummary) -> String {
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let target = campaign.charter().map(|c| &c.target);
    let note = unchecked_note(round.unchecked_keeps).map(|note| format!(" ({note})"));
    format!(
        "- Context: {} after {:.3}x{}\n- Signal: {:.3}x over its parent\n- Takeaway: {}\n\
         - Applicability: {}\n",
        line(round.title()),
        round.cumulative_ratio,
        note.unwrap_or_default(),
        round.ratio().unwrap_or(1.0),
        line(&round.lesson.text),
        target.map(|t| format!("{} {} on {}", t.op, t.backend, t.device)).unwrap_or_default(),
    )
}
