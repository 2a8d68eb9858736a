//! A bundle: one archive with everything another person needs to check the claim of a campaign.
//!
//! ```text
//! <campaign>/SHA256SUMS        every other file with its hash, for "sha256sum -c" too
//!            README.md         what it is and how to check it
//!            REPORT.md         the report, as "karve report" prints it
//!            bundle.json       what was bundled, by which karve, and what was left out
//!            environment.json  what the samples were measured on and with
//!            events.jsonl      the log: every sample, seed and verdict
//!            final.patch       from the original to the final kernel
//!            artifacts/<hash>  what the log refers to
//! ```
//!
//! The log is the only claim. A reader folds it again, and everything but the patch and the
//! artifacts is rendered from it and compared; an artifact is named by its hash in the log, and
//! whether the patch gives the final kernel can be checked where the repository is.

mod archive;
mod pack;
#[cfg(test)]
mod tests;
mod unpack;

pub use pack::{PackedBundle, pack};
pub use unpack::{UnpackedBundle, archive_of, reads_archive, unpack};

use crate::reports;
use crate::ui::template;
use karve_core::campaign::{Campaign, LOG_VERSION};
use karve_os::error::Result;
use minijinja::context;
use minijinja::value::Serde;
use serde::{Deserialize, Serialize};

/// The version of the format.
pub const FORMAT: u32 = 1;
/// The list of all other files; a reader needs it first, so it is the first file.
const SUMS: &str = "SHA256SUMS";
/// From the original to the final kernel.
pub const PATCH: &str = "final.patch";
const FACTS: &str = "bundle.json";
const ARTIFACTS: &str = "artifacts";

/// Limits of what is written and read, so that a bundle can be sent, and a hostile one does no
/// harm. A campaign of a hundred rounds has a log of a few MiB.
const FILE_BYTES_MAX: u64 = 1 << 30;
const TOTAL_BYTES_MAX: u64 = 2 << 30;
const FILES_MAX: usize = 20_000;
/// An artifact is left out beyond this size, mostly the raw output of a profiler.
const ARTIFACT_BYTES_MAX: u64 = 16 << 20;
/// All artifacts together; the smallest ones come first.
const ARTIFACTS_BYTES_MAX: u64 = 256 << 20;

/// What a bundle says about itself, in `bundle.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleFacts {
    /// The version of the format.
    pub format: u32,
    /// The version of karve that wrote it.
    pub karve: String,
    /// The version of the log's format.
    pub log: u32,
    /// The name of the campaign.
    pub campaign: String,
    /// Whether it was finished.
    pub finished: bool,
    /// The commit that the campaign started from; empty before it is known.
    pub original: String,
    /// The commit of the final kernel; the original if nothing was kept.
    #[serde(rename = "final")]
    pub best: String,
    /// The tree of the final kernel; none if nothing was kept.
    pub tree: Option<String>,
    /// Names that reports withhold and the log reveals.
    pub hidden_cases: Vec<String>,
    /// Artifacts that are not in the bundle.
    pub left_out: Vec<OmittedArtifact>,
}

/// An artifact that is not in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OmittedArtifact {
    /// Its hash, which is its name.
    pub sha256: String,
    /// Its size; none if it no longer exists.
    pub bytes: Option<u64>,
}

impl BundleFacts {
    /// What a bundle of a campaign says, written by a version of karve.
    pub fn of(campaign: &Campaign, karve: &str, left_out: Vec<OmittedArtifact>) -> Self {
        let charter = campaign.charter();
        let hidden = charter.map_or_else(Vec::new, |charter| charter.hidden_cases());
        Self {
            format: FORMAT,
            karve: karve.to_owned(),
            log: LOG_VERSION,
            campaign: charter.map(|charter| charter.name.clone()).unwrap_or_default(),
            finished: campaign.is_finished(),
            original: campaign.base_commit().to_owned(),
            best: campaign.incumbent().to_owned(),
            tree: campaign.lineage().best().map(|kept| kept.tree.clone()),
            hidden_cases: hidden
                .into_iter()
                .filter_map(|at| Some(campaign.case(at)?.name))
                .collect(),
            left_out,
        }
    }
}

/// The files that are rendered from the log, with their paths.
pub fn rendered(campaign: &Campaign, facts: &BundleFacts) -> Result<Vec<(&'static str, String)>> {
    let environment = campaign.preparation().map(|preparation| &preparation.environment.facts);
    let values = context! {
        facts => Serde(facts),
        claim => reports::render_terminal_summary(campaign),
    };
    Ok(vec![
        ("README.md", template::render(include_str!("bundle/README.md.j2"), values)),
        ("REPORT.md", reports::render_final_report(campaign)),
        (FACTS, json(facts)?),
        ("environment.json", json(&environment)?),
    ])
}

fn json<T: Serialize>(value: &T) -> Result<String> {
    use karve_os::error::WithContext;
    let text = serde_json::to_string_pretty(value).context(|| "cannot write JSON".to_owned())?;
    Ok(format!("{text}\n"))
}
