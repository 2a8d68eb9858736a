//! Writes a bundle. The same log and artifacts give the same bytes.

use super::archive::{ArchiveWriter, TOP_BYTES_MAX};
use super::{
    ARTIFACT_BYTES_MAX, ARTIFACTS, ARTIFACTS_BYTES_MAX, BundleFacts, FILE_BYTES_MAX, FILES_MAX,
    OmittedArtifact, PATCH, SUMS, rendered,
};
use flate2::{Compression, GzBuilder};
use karve_core::campaign::{Campaign, Record};
use karve_harness::git::{Oid, Repo};
use karve_harness::store::{self, CampaignDir, LoadedLog};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::BufWriter;
use std::path::Path;

/// Files beside the artifacts, with room to spare.
const OTHER_FILES_MAX: usize = 16;

/// What was written.
#[derive(Debug)]
pub struct PackedBundle {
    /// What the bundle says about itself.
    pub facts: BundleFacts,
    /// How many files it has.
    pub files: usize,
    /// Its size.
    pub bytes: u64,
    /// The hash of the whole file.
    pub sha256: String,
    /// Bytes of an incomplete last line of the log, which is not in it.
    pub torn_bytes: u64,
}

/// What a file of the bundle contains.
enum BundleContents {
    Bytes(Vec<u8>),
    /// An artifact, which is read when it is written.
    Artifact,
}

/// Writes the bundle of a campaign to a file, whole or not at all.
pub fn pack(dir: &CampaignDir, repo: &Repo, target: &Path) -> Result<PackedBundle> {
    let path = dir.log();
    let mut log = files::read(&path, FILE_BYTES_MAX)
        .context(|| format!("cannot bundle {}", path.display()))
        .map_err(|error| error.hint("\"karve list\" shows the campaigns and their sizes"))?;
    // A running campaign may add to the log meanwhile, so everything is from these bytes.
    let LoadedLog { records, campaign, torn_bytes, .. } = store::parse_log(&path, &log[..])?;
    log.truncate(log.len() - usize::try_from(torn_bytes).unwrap_or(0));
    let (artifacts, left_out) = choose_artifacts(dir, &records);
    let facts = BundleFacts::of(&campaign, env!("CARGO_PKG_VERSION"), left_out);
    if facts.campaign.is_empty() {
        return Err(CommandError::usage("the campaign has no charter yet")
            .hint("start it with \"karve run\""));
    }
    let mut contents: BTreeMap<String, BundleContents> = BTreeMap::new();
    for hash in artifacts {
        contents.insert(format!("{ARTIFACTS}/{hash}"), BundleContents::Artifact);
    }
    for (path, text) in rendered(&campaign, &facts)? {
        contents.insert(path.to_owned(), BundleContents::Bytes(text.into_bytes()));
    }
    contents.insert(PATCH.to_owned(), BundleContents::Bytes(patch_of(repo, &campaign)?));
    contents.insert(log_name(dir), BundleContents::Bytes(log));
    let files = contents.len() + 1;
    let time_s =
        records.last().map_or(0, |record| u64::try_from(record.at_ms / 1_000).unwrap_or(0));
    write(dir, &facts, time_s, &contents, target)?;
    let bytes = fs::metadata(target).map_or(0, |data| data.len());
    let sha256 = files::sha256_file(target)?;
    Ok(PackedBundle { facts, files, bytes, sha256, torn_bytes })
}

/// The name of the log in a campaign's directory and in a bundle.
pub(super) fn log_name(dir: &CampaignDir) -> String {
    dir.log().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The artifacts that go into the bundle, and those that do not: the smallest come first.
fn choose_artifacts(
    dir: &CampaignDir,
    records: &[Record],
) -> (BTreeSet<String>, Vec<OmittedArtifact>) {
    let all: BTreeSet<&str> = records.iter().flat_map(|record| record.event.artifacts()).collect();
    let size = |hash: &str| fs::metadata(dir.join(ARTIFACTS).join(hash)).map(|data| data.len());
    let mut sized: Vec<(Option<u64>, &str)> =
        all.into_iter().map(|hash| (size(hash).ok(), hash)).collect();
    sized.sort_by_key(|(bytes, hash)| (bytes.unwrap_or(u64::MAX), *hash));
    let (mut taken, mut left_out, mut total) = (BTreeSet::new(), Vec::new(), 0_u64);
    for (bytes, hash) in sized {
        let fits = bytes.is_some_and(|bytes| {
            bytes <= ARTIFACT_BYTES_MAX && total.saturating_add(bytes) <= ARTIFACTS_BYTES_MAX
        });
        if fits && taken.len() < FILES_MAX - OTHER_FILES_MAX {
            total += bytes.unwrap_or(0);
            taken.insert(hash.to_owned());
        } else {
            left_out.push(OmittedArtifact { sha256: hash.to_owned(), bytes });
        }
    }
    left_out.sort_by(|a, b| a.sha256.cmp(&b.sha256));
    (taken, left_out)
}

fn patch_of(repo: &Repo, campaign: &Campaign) -> Result<Vec<u8>> {
    match campaign.lineage().best() {
        Some(best) => repo.patch(&Oid::named(campaign.base_commit())?, &Oid::named(&best.commit)?),
        None => Ok(Vec::new()),
    }
}

fn write(
    dir: &CampaignDir,
    facts: &BundleFacts,
    time_s: u64,
    contents: &BTreeMap<String, BundleContents>,
    target: &Path,
) -> Result<()> {
    let cannot = || format!("cannot write {}", target.display());
    let home = target.parent().filter(|home| !home.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(home.unwrap_or(Path::new(".")))
        .context(cannot)
        .map_err(|error| error.hint("name a file in an existing directory with --bundle FILE"))?;
    let packer = GzBuilder::new().write(BufWriter::new(file.as_file_mut()), Compression::default());
    let top: String = facts.campaign.chars().take(TOP_BYTES_MAX).collect();
    let mut archive = ArchiveWriter::new(packer, &top, time_s);
    let mut sums = String::new();
    for (path, contents) in contents {
        let hash = match contents {
            BundleContents::Bytes(bytes) => files::sha256_hex(bytes),
            // Its name is its hash; whether that is so is checked below.
            BundleContents::Artifact => artifact_in(path).to_owned(),
        };
        sums.push_str(&format!("{hash}  {path}\n"));
    }
    archive.add(SUMS, sums.as_bytes()).context(cannot)?;
    for (path, contents) in contents {
        match contents {
            BundleContents::Bytes(bytes) => archive.add(path, bytes).context(cannot)?,
            BundleContents::Artifact => {
                let bytes = store::get_artifact(dir, artifact_in(path))?;
                archive.add(path, &bytes).context(cannot)?;
            }
        }
    }
    let packed = archive.finish().and_then(|packer| packer.finish());
    let written = packed.and_then(|out| out.into_inner().map(drop).map_err(Into::into));
    written.and_then(|()| file.as_file().sync_all()).context(cannot)?;
    file.persist(target).map(drop).context(cannot)
}

/// The hash in the path of an artifact.
fn artifact_in(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
