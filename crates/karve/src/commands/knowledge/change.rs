//! `karve knowledge add`, `promote` and `retract`.

use super::{LibraryWriter, TargetLayer};
use crate::bench::text;
use crate::library::difference::{differences, only_learned};
use crate::library::markdown::{ENTRY_BYTES_MAX, parse_entry};
use crate::library::{Layer, LibraryChange, LibraryLayers, LoadedEntry, LoadedLibrary};
use crate::project::ProjectArgs;
use crate::ui::{self};
use karve_core::knowledge::{
    Entry, EntrySection, EntryStatus, LintSeverity, Retraction, VOUCHED, dependants, lint,
};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::{clock, files};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most differences between two entries that are shown.
const DIFFERENCES_MAX: usize = 8;
/// Most dependents of a retracted entry that are named.
const DEPENDANTS_MAX: usize = 20;

/// Add an entry
#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// The file, or - for standard input
    file: String,
    /// Where to write it
    #[arg(long, value_enum, default_value = "project")]
    pub(super) to: TargetLayer,
    /// Replace an existing entry
    #[arg(long)]
    replace: bool,
}

impl AddArgs {
    pub(super) fn run(&self, place: &ProjectArgs, writer: &LibraryWriter<'_>) -> Result<()> {
        let text = read(&place.here()?, &self.file)?;
        let entry = parse_entry(&text).map_err(|why| {
            CommandError::usage(format!("{} is not an entry", self.file))
                .cause(why)
                .hint("\"karve knowledge show ID\" prints one to start from; see docs/knowledge.md")
        })?;
        let mut change = writer.change();
        let path = put(&mut change, &entry, self.to.layer(), self.replace)?;
        change.commit()?;
        ui::outln(&format!("added     {} in {}", entry.id, path.display()));
        Ok(())
    }
}

fn read(here: &Path, file: &str) -> Result<String> {
    if file != "-" {
        return files::read_text(&here.join(file), ENTRY_BYTES_MAX as u64)
            .context(|| format!("cannot read {file}"))
            .map_err(|error| {
                error.hint(
                    "name a file, as in \"karve knowledge add entry.md\", or - for standard input",
                )
            });
    }
    let mut text = String::new();
    let bound = ENTRY_BYTES_MAX as u64 + 1;
    std::io::stdin()
        .take(bound)
        .read_to_string(&mut text)
        .context(|| "cannot read standard input".into())?;
    Ok(text)
}

/// Adds an entry that passes lint to a change; overwrites an existing one only if asked to.
pub(super) fn put(
    change: &mut LibraryChange<'_>,
    entry: &Entry,
    layer: Layer,
    replace: bool,
) -> Result<PathBuf> {
    refuse_lint_errors(entry)?;
    let old = change.there(layer, &entry.id)?.filter(|_| !replace);
    if let Some(old) = old {
        return Err(is_there(&old, entry, layer));
    }
    change.put(layer, entry)
}

/// The error for an entry that already exists, with how the two differ.
fn is_there(old: &Entry, new: &Entry, layer: Layer) -> CommandError {
    let mut reported = differences(old, new);
    let more = reported.len().saturating_sub(DIFFERENCES_MAX);
    reported.truncate(DIFFERENCES_MAX);
    if more > 0 {
        reported.push(format!("{more} more"));
    }
    let reported = if reported.is_empty() {
        "they are identical".to_owned()
    } else {
        format!("they differ in {}", reported.join("; "))
    };
    let id = text::safe(&new.id, 80);
    let layer = layer.name();
    CommandError::usage(format!("the entry {id:?} already exists ({layer})"))
        .cause(text::safe(&reported, 600))
        .hint("use --replace to overwrite it, or choose another id")
}

fn refuse_lint_errors(entry: &Entry) -> Result<()> {
    let faults =
        lint(entry, &clock::latest_day()).into_iter().filter(|c| c.severity == LintSeverity::Error);
    let faults: Vec<String> = faults.map(|c| c.what).collect();
    if faults.is_empty() {
        return Ok(());
    }
    // The problems are independent of each other.
    let reported = faults.iter().take(10).map(|fault| text::safe(fault, 200));
    let reported = reported.collect::<Vec<_>>().join("; ");
    let n = faults.len();
    let what = if n == 1 { "error" } else { "errors" };
    Err(CommandError::usage(format!(
        "the entry {:?} cannot be used: {n} {what}",
        text::safe(&entry.id, 60)
    ))
    .cause(reported)
    .hint("fix it, then check it with \"karve knowledge lint FILE\""))
}

/// Move a staged entry, or copy one of the project to the user
#[derive(Debug, clap::Args)]
pub(super) struct PromoteArgs {
    /// The id
    id: String,
    /// Where to
    #[arg(long, value_enum, default_value = "project")]
    to: TargetLayer,
    /// Promote it although it was not replicated, and say why
    #[arg(long, value_name = "WHY")]
    vouch: Option<String>,
    /// Replace an existing entry with that id
    #[arg(long)]
    replace: bool,
}

impl PromoteArgs {
    /// The layers that it writes to.
    pub(super) fn writes(&self, loaded: &LoadedLibrary) -> Result<Vec<Layer>> {
        let placed = loaded.get(&self.id)?;
        self.refuse_way(placed)?;
        Ok(match placed.layer {
            Layer::Staged => vec![Layer::Staged, self.to.layer()],
            Layer::BuiltIn | Layer::User | Layer::Project => vec![self.to.layer()],
        })
    }

    pub(super) fn run(&self, writer: &LibraryWriter<'_>) -> Result<()> {
        let placed = writer.library.get(&self.id)?;
        self.refuse_way(placed)?;
        let mut entry = placed.entry.clone();
        let standing = writer.library.library.standing(&entry.id);
        entry.status = standing.map_or(entry.status, |standing| standing.status);
        if let Some(why) = &self.vouch {
            entry.status = EntryStatus::Verified;
            entry.retracted = None;
            entry.sections.push(EntrySection {
                heading: VOUCHED.into(),
                text: format!("{}: {}", clock::day(), text::safe(why, 500)),
            });
        }
        refuse_lint_errors(&entry)?;
        let to = self.to.layer();
        let mut change = writer.change();
        let old = change.there(to, &entry.id)?;
        // Evidence that rounds added to the same text loses nothing.
        let old = old.filter(|old| !self.replace && !only_learned(old, &entry));
        if let Some(old) = old {
            return Err(is_there(&old, &entry, to));
        }
        let path = change.put(to, &entry)?;
        if let (Layer::Staged, Some(staged)) = (placed.layer, &placed.path) {
            change.remove(Layer::Staged, staged)?;
        }
        change.commit()?;
        ui::outln(&format!(
            "promoted  {} ({}) to {}",
            entry.id,
            entry.status.name(),
            path.display()
        ));
        if placed.layer == Layer::Project {
            ui::outln("          the project keeps its own copy, which takes precedence there");
        }
        Ok(())
    }

    /// An entry moves from staged to the project or the user, and from the project to the user.
    fn refuse_way(&self, placed: &LoadedEntry) -> Result<()> {
        let id = &placed.entry.id;
        match (placed.layer, self.to) {
            (Layer::Staged, TargetLayer::Project | TargetLayer::User)
            | (Layer::Project, TargetLayer::User) => Ok(()),
            (Layer::Staged, TargetLayer::Staged) => {
                Err(CommandError::usage("it is already staged")
                    .hint("use --to project or --to user"))
            }
            (Layer::Project, TargetLayer::Project | TargetLayer::Staged) => Err(
                CommandError::usage(format!("{id} is not staged, it is already in the project"))
                    .hint("--to user copies it to all your projects"),
            ),
            (Layer::User | Layer::BuiltIn, _) => Err(CommandError::usage(format!(
                "{id} is not staged, it is {}",
                placed.layer.name()
            ))
            .hint("\"karve knowledge show ID\" shows where an entry is")),
        }
    }
}

/// Retract an entry
#[derive(Debug, clap::Args)]
pub(super) struct RetractArgs {
    /// The id
    id: String,
    /// Why
    #[arg(long)]
    why: String,
    /// The entry that replaces it
    #[arg(long, value_name = "ID")]
    by: Option<String>,
    /// Where to write it [default: its own layer, or the project for a built-in entry]
    #[arg(long, value_enum)]
    to: Option<TargetLayer>,
}

impl RetractArgs {
    /// Where to write it.
    pub(super) fn layer(
        &self,
        library_layers: &LibraryLayers,
        loaded: &LoadedLibrary,
    ) -> Result<Layer> {
        Ok(match (self.to, loaded.get(&self.id)?.layer) {
            (Some(to), _) => to.layer(),
            (None, Layer::BuiltIn) if library_layers.dir(Layer::Project).is_none() => Layer::User,
            (None, Layer::BuiltIn) => Layer::Project,
            (None, layer) => layer,
        })
    }

    pub(super) fn run(&self, writer: &LibraryWriter<'_>) -> Result<()> {
        let loaded = writer.library;
        if self.why.trim().is_empty() {
            return Err(CommandError::usage("a retraction needs a reason")
                .hint("give it with --why \"...\""));
        }
        let mut entry = loaded.get(&self.id)?.entry.clone();
        match &self.by {
            Some(by) => {
                let by = &loaded.get(by)?.entry;
                refuse_circle(loaded, &entry.id, &by.id)?;
                entry.status = EntryStatus::Superseded;
                entry.superseded_by = Some(by.id.clone());
            }
            None => entry.status = EntryStatus::Refuted,
        }
        entry.retracted = self
            .by
            .is_none()
            .then(|| Retraction { date: clock::day(), why: text::safe(&self.why, 500) });
        entry.sections.push(EntrySection {
            heading: "Taken back".into(),
            text: format!("{}: {}", clock::day(), text::safe(&self.why, 500)),
        });
        let mut change = writer.change();
        let path = change.put(self.layer(writer.layers, loaded)?, &entry)?;
        change.commit()?;
        ui::outln(&format!("retracted {} in {}", entry.id, path.display()));
        let rests = dependants(loaded.library.entries(), &entry.id);
        for id in rests.iter().take(DEPENDANTS_MAX) {
            ui::outln(&format!("affected  {id} depends on it, and is no longer used"));
        }
        let more = rests.len().saturating_sub(DEPENDANTS_MAX);
        if more > 0 {
            ui::outln(&format!(
                "affected  {more} more of {} depend on it; see \"karve knowledge show ID\"",
                rests.len()
            ));
        }
        Ok(())
    }
}

/// An entry cannot replace itself, and a refuted or retracted entry cannot replace another.
fn refuse_circle(loaded: &LoadedLibrary, id: &str, by: &str) -> Result<()> {
    if by == id {
        return Err(CommandError::usage(format!("{id} cannot replace itself"))
            .hint("name another entry with --by, or leave --by out"));
    }
    match loaded.library.standing(by).filter(|by| by.is_out()) {
        None => Ok(()),
        Some(standing) => Err(CommandError::usage(format!("{by} cannot replace it"))
            .cause(text::safe(&standing.describe(), 300))
            .hint("name a valid entry with --by, or leave --by out")),
    }
}
