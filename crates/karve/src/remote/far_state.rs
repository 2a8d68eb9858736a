//! What the far side has of a campaign, and what it lacks.

use super::wire::{PackNote, RepoRole, Sync, TaskEnd, Welcome};
use karve_harness::git::{ExpectedRef, Oid, Repo};
use karve_harness::store::{self, CampaignDir};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path};

/// The most log that is sent at a time, in bytes.
const LOG_BYTES_MAX: u64 = 512 << 20;

/// What a host must have of a campaign or a project.
#[derive(Debug)]
pub struct NearSide<'a> {
    /// The campaign's directory, if there is a campaign.
    pub dir: Option<&'a CampaignDir>,
    /// The repositories; candidates are made in the last one.
    pub repos: Vec<(RepoRole, &'a Repo)>,
    /// Refs that are the same on both sides, by their prefix; none if absent.
    pub refs: Option<String>,
    /// Commits that are needed besides those of the refs.
    pub commits: Vec<(RepoRole, Oid)>,
    /// Artifacts that are needed.
    pub artifacts: Vec<String>,
}

/// What the far side has.
#[derive(Debug, Default)]
pub(super) struct FarState {
    pub(super) instance: String,
    pub(super) log: u64,
    pub(super) commits: BTreeSet<(RepoRole, String)>,
    pub(super) refs: BTreeMap<(RepoRole, String), String>,
    pub(super) artifacts: BTreeSet<String>,
}

impl NearSide<'_> {
    /// Stores what a task made: artifacts, commits and refs; returns the other files.
    pub(super) fn store(
        &self,
        end: &TaskEnd,
        attached: Vec<Vec<u8>>,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let mut attached = attached.into_iter();
        let mut next = || attached.next().ok_or_else(|| odd("an attachment is missing"));
        let Some((_, work)) = self.repos.last() else {
            return Ok(Vec::new());
        };
        let prefix = self.refs.as_ref().map(|prefix| format!("{prefix}/"));
        if !end.refs.is_empty() {
            work.unpack(next()?)?;
        }
        for (name, oid) in &end.refs {
            let oid = Oid::parse(oid).ok_or_else(|| odd("a ref has no commit"))?;
            if !prefix.as_ref().is_some_and(|prefix| name.starts_with(prefix)) {
                return Err(odd("a ref is not of this campaign"));
            }
            work.update_ref(name, &oid, ExpectedRef::Any)?;
        }
        for hash in &end.artifacts {
            let (bytes, dir) = (next()?, self.dir.ok_or_else(|| odd("there is no campaign"))?);
            if store::put_artifact(dir, &bytes)? != *hash {
                return Err(odd("an artifact does not match its hash"));
            }
        }
        let mut files = Vec::new();
        for path in &end.files {
            let plain = Path::new(path).components().all(|c| matches!(c, Component::Normal(_)));
            let hidden = Path::new(path).components().any(|c| c.as_os_str() == ".git");
            if !plain || hidden || path.is_empty() {
                return Err(odd("a file has an odd name"));
            }
            files.push((path.clone(), next()?));
        }
        Ok(files)
    }
}

/// The error for an answer that no karve gives.
pub(super) fn odd(why: &str) -> CommandError {
    CommandError::environment("the worker gave an answer that cannot be used")
        .cause(why)
        .hint("resume with \"karve run\": nothing was stored")
}

impl FarState {
    /// What a task made is there too.
    pub(super) fn made(&mut self, end: &TaskEnd, near: &NearSide<'_>) {
        if let Some((role, _)) = near.repos.last() {
            for (name, oid) in &end.refs {
                self.commits.insert((*role, oid.clone()));
                self.refs.insert((*role, name.clone()), oid.clone());
            }
        }
        self.artifacts.extend(end.artifacts.iter().cloned());
    }

    pub(super) fn of(welcome: &Welcome, dir: Option<&CampaignDir>) -> Self {
        // The log there is a copy; if it is another one, it is sent again from the start.
        let (length, digest) = &welcome.log;
        let same = dir.is_some_and(|dir| prefix_digest(dir, *length).as_ref() == Some(digest));
        Self {
            instance: welcome.instance.clone(),
            log: if same { *length } else { 0 },
            commits: welcome.commits.iter().cloned().collect(),
            refs: BTreeMap::new(),
            artifacts: welcome.artifacts.iter().cloned().collect(),
        }
    }

    /// What it lacks, and the attachments with it.
    pub(super) fn lacks(&self, near: &NearSide<'_>) -> Result<(Sync, Vec<Vec<u8>>)> {
        let (mut sync, mut attached) = (Sync::default(), Vec::new());
        if let Some(dir) = near.dir {
            let bytes = log_from(dir, self.log)?;
            if !bytes.is_empty() || self.log == 0 {
                sync.log_from = Some(self.log);
                attached.push(bytes);
            }
        }
        for (role, repo) in &near.repos {
            let refs = match &near.refs {
                Some(prefix) => repo.list_refs(prefix)?,
                None => Vec::new(),
            };
            let is_new = |name: &str, oid: &Oid| {
                self.refs.get(&(*role, name.to_owned())).map(String::as_str) != Some(oid.as_str())
            };
            let extra = near.commits.iter().filter(|(of, _)| of == role).map(|(_, oid)| oid);
            let wanted: BTreeSet<&Oid> = refs.iter().map(|(_, oid)| oid).chain(extra).collect();
            let lacks = |oid: &&&Oid| !self.commits.contains(&(*role, oid.to_string()));
            let missing: Vec<Oid> = wanted.iter().filter(lacks).map(|oid| (*oid).clone()).collect();
            let mut changed = refs.iter().filter(|(name, oid)| is_new(name, oid)).peekable();
            if missing.is_empty() && changed.peek().is_none() {
                continue;
            }
            let has = self.commits.iter().filter(|(of, _)| of == role);
            let has: Vec<Oid> = has.filter_map(|(_, oid)| Oid::parse(oid)).collect();
            attached.push(repo.pack(&missing, &has)?);
            sync.packs.push(PackNote {
                role: *role,
                commits: missing.iter().map(Oid::to_string).collect(),
                refs: changed.map(|(name, oid)| (name.clone(), oid.to_string())).collect(),
            });
        }
        for hash in &near.artifacts {
            if let (false, Some(dir)) = (self.artifacts.contains(hash), near.dir) {
                attached.push(store::get_artifact(dir, hash)?);
                sync.artifacts.push(hash.clone());
            }
        }
        Ok((sync, attached))
    }

    /// What was sent has arrived.
    pub(super) fn got(&mut self, sync: &Sync, near: &NearSide<'_>) {
        if let (Some(_), Some(dir)) = (sync.log_from, near.dir) {
            self.log = dir.log().metadata().map_or(0, |meta| meta.len());
        }
        for pack in &sync.packs {
            let commits = pack.commits.iter().cloned();
            self.commits.extend(commits.map(|oid| (pack.role, oid)));
            let refs = pack.refs.iter().cloned();
            self.refs.extend(refs.map(|(name, oid)| ((pack.role, name), oid)));
        }
        self.artifacts.extend(sync.artifacts.iter().cloned());
    }
}

fn prefix_digest(dir: &CampaignDir, length: u64) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(dir.log()).ok()?;
    file.take(length).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == length).then(|| files::sha256_hex(&bytes))
}

/// The log from a place on.
fn log_from(dir: &CampaignDir, from: u64) -> Result<Vec<u8>> {
    let path = dir.log();
    let cannot = || format!("cannot read {}", path.display());
    let mut bytes = Vec::new();
    let mut file = File::open(&path).context(cannot)?;
    file.seek(SeekFrom::Start(from)).context(cannot)?;
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes).context(cannot)?;
    Ok(bytes)
}
