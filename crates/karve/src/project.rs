//! What a command works on: the project's `karve.toml`, its campaigns, and the selected one.

use crate::config::{CharterTime, LoadedConfig, Overrides};
use crate::library::LibraryLayers;
use crate::{config, ui};
use karve_core::campaign::{Campaign, Record};
use karve_core::charter::Charter;
use karve_harness::git::{Oid, Repo};
use karve_harness::store::{self, CampaignDir};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::{clock, files, text};
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the configuration file.
pub const CONFIG: &str = "karve.toml";
/// How many parent directories are searched.
const LEVELS_MAX: usize = 64;

/// Options that most commands share.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ProjectArgs {
    /// Run as if started in this directory
    #[arg(short = 'C', long = "dir", value_name = "DIR", global = true)]
    pub dir: Option<PathBuf>,
    /// The campaign to use [default: the newest one]
    #[arg(long, value_name = "NAME", global = true, value_parser = campaign_arg)]
    pub campaign: Option<String>,
}

fn campaign_arg(name: &str) -> std::result::Result<String, String> {
    config::campaign_name(name).map_err(|rule| format!("the name of a campaign has {rule}"))
}

impl ProjectArgs {
    /// The working directory of a command.
    pub fn here(&self) -> Result<PathBuf> {
        let here = match &self.dir {
            Some(dir) => dir.clone(),
            None => {
                std::env::current_dir().context(|| "cannot get the current directory".into())?
            }
        };
        fs::canonicalize(&here)
            .context(|| format!("cannot enter {}", here.display()))
            .map_err(|error| error.hint("name an existing directory with -C DIR"))
    }

    /// The layers of knowledge as a command sees them, with the project's if there is one.
    pub fn library(&self) -> LibraryLayers {
        match (self.config(), self.root()) {
            (Ok(config), Ok(root)) => LibraryLayers::of_project(&config, &root),
            _ => LibraryLayers::of_user(),
        }
    }

    /// The project's `karve.toml`, here or in a directory above.
    pub fn config(&self) -> Result<PathBuf> {
        let here = self.here()?;
        let found = here.ancestors().take(LEVELS_MAX).map(|dir| dir.join(CONFIG));
        found.into_iter().find(|path| path.is_file()).ok_or_else(|| {
            CommandError::usage(format!("there is no {CONFIG} in {} or above", here.display()))
                .hint("write one with \"karve init\", or try \"karve demo\" first")
        })
    }

    /// The configuration, with the command line's overrides.
    pub fn load(&self, overrides: &Overrides) -> Result<LoadedConfig> {
        config::load(&self.config()?, overrides, CharterTime { minute: clock::minute() })
    }

    /// The path of the configuration in its repository: a project may be in a subdirectory.
    pub fn load_in(&self, repo: &Repo, overrides: &Overrides) -> Result<LoadedConfig> {
        let mut loaded = self.load(overrides)?;
        let workdir = workdir_in(repo, &loaded.dir);
        loaded.charter = loaded.charter.placed_in(&workdir);
        Ok(loaded)
    }

    /// The repository that contains the project.
    pub fn repo(&self) -> Result<Repo> {
        let config = self.config()?;
        Repo::discover(config.parent().unwrap_or(&config))
    }

    /// Where the campaigns are, even if the rest of `karve.toml` has errors.
    pub fn root(&self) -> Result<PathBuf> {
        let path = self.config()?;
        let text = files::read_text(&path, files::WRITTEN_BYTES_MAX).unwrap_or_default();
        let root = text
            .parse::<toml::Table>()
            .ok()
            .and_then(|table| Some(table.get("campaign")?.get("root")?.as_str()?.to_owned()));
        let dir = path.parent().unwrap_or(Path::new("."));
        Ok(dir.join(root.as_deref().unwrap_or(".karve")))
    }

    /// The selected campaign and its log.
    pub fn open(&self) -> Result<LoadedCampaign> {
        let dir = self.pick()?;
        let store::LoadedLog { records, campaign, torn_bytes, .. } = store::read(&dir)?;
        if torn_bytes > 0 {
            ui::note(&torn_note(torn_bytes));
        }
        if let Some(why) = self.is_foreign(&campaign) {
            let message = format!("the campaign {} is not of this project: {why}", dir.name());
            return Err(CommandError::usage(message)
                .hint("look at it in the project that it was copied from, with -C DIR")
                .hint("remove the copy: \"karve clean NAME\""));
        }
        Ok(LoadedCampaign { dir, records, campaign })
    }

    /// Why a campaign is of another project: it started from another repository, or from another
    /// directory of this one.
    pub fn is_foreign(&self, campaign: &Campaign) -> Option<String> {
        let (charter, repo) = (campaign.charter()?, self.repo().ok()?);
        let here = workdir_in(&repo, self.config().ok()?.parent()?);
        if charter.workdir != here {
            let place = |dir: &str| match dir {
                "" => "the top of its repository".to_owned(),
                dir => text::safe(dir, 200),
            };
            let (theirs, ours) = (place(&charter.workdir), place(&here));
            return Some(format!("it was measured in {theirs}, and this is {ours}"));
        }
        let commit = start_of(campaign)?;
        let short = commit.get(..10).unwrap_or(commit);
        (!repo.has_commit(commit))
            .then(|| format!("it started from {}, which is not here", text::safe(short, 20)))
    }

    /// The directory of the selected campaign.
    pub fn pick(&self) -> Result<CampaignDir> {
        let root = self.root()?;
        if let Some(name) = &self.campaign {
            let dir = CampaignDir::new(&root, name);
            return if dir.exists() {
                Ok(dir)
            } else {
                let there = store::list(&root).unwrap_or_default();
                let there: Vec<String> = there.iter().map(CampaignDir::name).collect();
                let there = there.iter().map(String::as_str);
                Err(CommandError::usage(format!("there is no campaign {name:?}"))
                    .cause(text::suggestion(name, there, "campaigns"))
                    .hint("\"karve list\" shows them"))
            };
        }
        newest(&root, self.repo().ok().as_ref())?.ok_or_else(|| {
            CommandError::usage(format!("there is no campaign under {}", root.display()))
                .hint("start one with \"karve run\"")
        })
    }
}

/// A directory of a repository, relative to its top.
fn workdir_in(repo: &Repo, dir: &Path) -> String {
    dir.strip_prefix(repo.root()).unwrap_or(Path::new("")).to_string_lossy().into_owned()
}

/// The commit of the user's repository that a campaign started from. An extracted workspace has its
/// own commits.
fn start_of(campaign: &Campaign) -> Option<&str> {
    let preparation = campaign.preparation()?;
    let from = preparation.provenance.as_ref().map(|from| from.commit.as_str());
    Some(from.unwrap_or(&preparation.base))
}

/// What `karve.toml` said in the commit that a campaign started from; none if it was not there.
pub fn charter_at_start(repo: &Repo, campaign: &Campaign) -> Result<Option<Charter>> {
    match (campaign.charter(), start_of(campaign)) {
        (Some(charter), Some(commit)) => charter_in(repo, &Oid::named(commit)?, &charter.workdir),
        _ => Ok(None),
    }
}

/// What `karve.toml` says in a commit; none if it is not there.
pub fn charter_in(repo: &Repo, commit: &Oid, workdir: &str) -> Result<Option<Charter>> {
    let path = Path::new(workdir).join(CONFIG);
    let Some(bytes) = repo.read_file(commit, &path.to_string_lossy())? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes);
    let now = CharterTime { minute: clock::minute() };
    let loaded = config::parse(&text, repo.root(), &Overrides::default(), &now)?;
    Ok(Some(loaded.charter.placed_in(workdir)))
}

/// How an incomplete last line of a log is reported. It never counts.
pub fn torn_note(torn_bytes: u64) -> String {
    format!("note: the last line of the log is incomplete ({torn_bytes} bytes)")
}

/// Whether a campaign belongs to a repository. Projects may share a root, and a campaign without
/// a commit yet could belong to any of them.
pub fn is_of(dir: &CampaignDir, repo: Option<&Repo>) -> bool {
    let base = store::base_of(dir);
    base.zip(repo).is_none_or(|(base, repo)| repo.has_commit(&base))
}

/// The newest campaign of a repository under a root.
pub fn newest(root: &Path, repo: Option<&Repo>) -> Result<Option<CampaignDir>> {
    let mut dirs = store::list(root)?;
    while let Some(dir) = dirs.pop() {
        if is_of(&dir, repo) {
            return Ok(Some(dir));
        }
    }
    Ok(None)
}

/// A campaign read from disk.
#[derive(Debug)]
pub struct LoadedCampaign {
    /// Where it lives.
    pub dir: CampaignDir,
    /// Its log.
    pub records: Vec<Record>,
    /// The state folded from the log.
    pub campaign: Campaign,
}

/// The mark that every process of a campaign carries.
pub fn tag_of(dir: &CampaignDir) -> String {
    fs::canonicalize(dir.path()).unwrap_or_else(|_| dir.path().to_owned()).to_string_lossy().into()
}
