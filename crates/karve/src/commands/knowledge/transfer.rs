//! `karve knowledge index`, `import` and `export`.

use super::change::put;
use super::{FormatArg, LibraryWriter, TargetLayer};
use crate::bench::text;
use crate::library::dialects::{SourcePage, render_index};
use crate::library::{Layer, LibraryChange, LoadedLibrary, dialects, markdown_below};
use crate::project::ProjectArgs;
use crate::ui::{self};
use karve_core::knowledge::{Entry, LintSeverity, is_id, lint};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::{clock, files};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Most bytes of a page in another format.
const PAGE_BYTES_MAX: u64 = 4 << 20;
/// Most entries in one import.
const ENTRIES_MAX: usize = 20_000;
/// Most notes of one kind that are shown.
const NOTES_MAX: usize = 10;

/// Print the index
#[derive(Debug, clap::Args)]
pub(super) struct IndexArgs {
    /// Only entries of these layers, such as project
    #[arg(long, value_name = "LAYER")]
    layer: Option<String>,
}

impl IndexArgs {
    pub(super) fn run(&self, loaded: &LoadedLibrary) -> Result<()> {
        let entries = chosen(loaded, &[], self.layer.as_deref())?;
        let index = render_index(&entries);
        ui::out(&index.map_err(|why| CommandError::new(ErrorKind::Bug, why))?);
        Ok(())
    }
}

/// Entries by id and by layer; all of them if neither is given.
fn chosen<'a>(
    loaded: &'a LoadedLibrary,
    ids: &[String],
    layer: Option<&str>,
) -> Result<Vec<&'a Entry>> {
    if !ids.is_empty() {
        return ids.iter().map(|id| Ok(&loaded.get(id)?.entry)).collect();
    }
    let wanted = |name: &str| layer.is_none_or(|layer| layer == name);
    let placed = loaded.placed.values().filter(|p| wanted(p.layer.name()));
    let entries: Vec<&Entry> = placed.map(|p| &p.entry).collect();
    if entries.is_empty() {
        return Err(CommandError::usage("no entries match")
            .hint("layers are \"built in\", user, project and staged: --layer project"));
    }
    Ok(entries)
}

/// Import entries from another format
///
/// Reads and checks all of them first, then writes them together: if one entry is invalid or one
/// page cannot be read, nothing is imported, unless --partial is given.
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// A file, or a directory of them
    from: PathBuf,
    #[command(flatten)]
    form: FormatArg,
    /// Where to write them
    #[arg(long, value_enum, default_value = "staged")]
    pub(super) to: TargetLayer,
    /// Replace existing entries
    #[arg(long)]
    replace: bool,
    /// Skip what cannot be read or is invalid, and import the rest
    #[arg(long)]
    partial: bool,
}

impl ImportArgs {
    pub(super) fn run(&self, place: &ProjectArgs, writer: &LibraryWriter<'_>) -> Result<()> {
        let mut tally = ImportTally::default();
        let mut change = writer.change();
        for entry in self.read(place, &mut tally)? {
            let there = self.is_there(writer.library, &mut change, &entry)?;
            if there && !self.replace {
                tally.there.push(text::safe(&entry.id, 80));
            } else {
                self.take(&mut change, &entry, &mut tally)?;
            }
        }
        tally.print_tally(self.partial)?;
        if tally.new > 0 {
            change.commit()?;
        }
        tally.sum_up()
    }

    /// The entries of all pages, each id once.
    fn read(&self, place: &ProjectArgs, tally: &mut ImportTally) -> Result<Vec<Entry>> {
        let from = place.here()?.join(&self.from);
        let (files, base) = if from.is_dir() {
            (markdown_below(&from)?, from.as_path())
        } else {
            (vec![from.clone()], Path::new("/"))
        };
        let mut ids = BTreeSet::new();
        let mut all = Vec::new();
        for file in files {
            let text = files::read_text(&file, PAGE_BYTES_MAX)
                .context(|| format!("cannot read {}", file.display()))
                .map_err(|error| error.hint("name a file in the format given by --form"))?;
            let path = file.strip_prefix(base).unwrap_or(&file).to_owned();
            match dialects::parse(self.form.form, &SourcePage { path, text }) {
                // An index only repeats part of what each entry's own page says.
                Ok(entries) => {
                    all.extend(entries.into_iter().filter(|e| ids.insert(e.id.clone())));
                }
                Err(why) => {
                    let file = text::safe(&file.display().to_string(), 200);
                    tally.add_faulty(&file, &why);
                }
            }
            if all.len() > ENTRIES_MAX {
                let what = format!("there are more than {ENTRIES_MAX} entries");
                return Err(CommandError::usage(what)
                    .hint("import them in parts, as \"karve knowledge import DIR/FILE\""));
            }
        }
        Ok(all)
    }

    fn is_there(
        &self,
        loaded: &LoadedLibrary,
        change: &mut LibraryChange<'_>,
        of: &Entry,
    ) -> Result<bool> {
        match self.to {
            _ if !is_id(&of.id) => Ok(false),
            TargetLayer::Staged => Ok(loaded.placed.contains_key(&of.id)),
            TargetLayer::Project | TargetLayer::User => {
                Ok(change.there(self.to.layer(), &of.id)?.is_some())
            }
        }
    }

    /// A staged entry may lack what a reviewed entry must have; what it lacks is reported.
    fn take(
        &self,
        change: &mut LibraryChange<'_>,
        entry: &Entry,
        tally: &mut ImportTally,
    ) -> Result<()> {
        let id = text::safe(&entry.id, 80);
        if !is_id(&entry.id) {
            tally.add_faulty(&format!("{id:?}"), "it is not a valid id");
            return Ok(());
        }
        if self.to == TargetLayer::Staged {
            let faults = lint(entry, &clock::latest_day());
            let lacks = faults.iter().filter(|c| c.severity == LintSeverity::Error).count();
            change.put(Layer::Staged, &entry.clone().as_reported())?;
            tally.new += 1;
            if lacks > 0 {
                tally.lacks.push(id);
            }
            return Ok(());
        }
        match put(change, entry, self.to.layer(), self.replace) {
            Ok(_) => tally.new += 1,
            Err(error) => tally.add_faulty(&id, &error.to_string().replace('\n', "; ")),
        }
        Ok(())
    }
}

/// What happens to everything that was read.
#[derive(Debug, Default)]
struct ImportTally {
    new: usize,
    there: Vec<String>,
    lacks: Vec<String>,
    faulty: Vec<String>,
}

impl ImportTally {
    fn add_faulty(&mut self, what: &str, why: &str) {
        let why = text::safe(why, 300);
        self.faulty.push(format!("{what} is not valid: {why}"));
    }

    /// Reports what is wrong; an error if it means that nothing may be imported.
    fn print_tally(&self, partial: bool) -> Result<()> {
        let there = |id: &String| format!("{id} already exists; --replace overwrites it");
        note_all(self.there.iter().map(there));
        let lacks =
            |id: &String| format!("{id} cannot be promoted yet; see \"karve knowledge lint {id}\"");
        note_all(self.lacks.iter().map(lacks));
        note_all(self.faulty.iter().cloned());
        match self.faulty.len() {
            n if n > 0 && !partial && (self.new > 0 || !self.there.is_empty()) => {
                let what = format!("nothing was imported: {n} of these are not valid");
                Err(CommandError::usage(what).hint("fix them, or import the rest with --partial"))
            }
            _ => Ok(()),
        }
    }

    fn sum_up(&self) -> Result<()> {
        let (new, there, faulty) = (self.new, self.there.len(), self.faulty.len());
        ui::outln(&format!("imported  {new} entries, {there} already exist, {faulty} skipped"));
        let nothing = || CommandError::usage("nothing was imported");
        match (new, there, faulty) {
            (1.., _, _) => Ok(()),
            (0, 1.., 0) => Err(nothing()
                .cause("every entry already exists")
                .hint("use --replace to overwrite them")),
            (0, 1.., _) => Err(nothing()
                .cause("every entry either exists already or cannot be read")
                .hint("use --replace, or see \"karve knowledge import --help\"")),
            (0, 0, _) => {
                Err(nothing()
                    .hint("--form selects the format; see \"karve knowledge import --help\""))
            }
        }
    }
}

/// Notes of one kind, only as many as people read.
fn note_all(notes: impl ExactSizeIterator<Item = String>) {
    let more = notes.len().saturating_sub(NOTES_MAX);
    for note in notes.take(NOTES_MAX) {
        ui::note(&format!("note: {note}"));
    }
    if more > 0 {
        ui::note(&format!("note: and {more} more like these"));
    }
}

/// Export entries to another format
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// The directory; created if needed
    #[arg(value_name = "DIR")]
    out: PathBuf,
    /// Only these ids
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    form: FormatArg,
    /// Only entries of this layer
    #[arg(long, value_name = "LAYER")]
    layer: Option<String>,
    /// Overwrite existing files
    #[arg(long)]
    replace: bool,
}

impl ExportArgs {
    pub(super) fn run(&self, place: &ProjectArgs, loaded: &LoadedLibrary) -> Result<()> {
        let entries = chosen(loaded, &self.ids, self.layer.as_deref())?;
        let dir = place.here()?.join(&self.out);
        let pages = dialects::render(self.form.form, &entries).map_err(|why| {
            CommandError::usage("cannot write the entries in that format")
                .cause(why)
                .hint("choose another --form")
        })?;
        let is_inside = |path: &Path| {
            let mut parts = path.components();
            parts.all(|part| matches!(part, Component::Normal(_)))
        };
        if let Some(page) = pages.iter().find(|page| !is_inside(&page.path)) {
            let path = text::safe(&page.path.display().to_string(), 200);
            return Err(CommandError::usage(format!("{path} is outside that directory"))
                .hint("fix the scope of its entry; \"karve knowledge lint\" finds it"));
        }
        let there = pages.iter().find(|page| dir.join(&page.path).exists());
        if let (Some(page), false) = (there, self.replace) {
            let path = dir.join(&page.path);
            return Err(CommandError::usage(format!("{} already exists", path.display()))
                .hint("use --replace to overwrite it, or choose another directory"));
        }
        for page in &pages {
            let path = dir.join(&page.path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)
                    .context(|| format!("cannot create {}", parent.display()))?;
            }
            files::write_atomic(&path, page.text.as_bytes())?;
        }
        ui::outln(&format!("exported  {} files to {}", pages.len(), dir.display()));
        for (what, n) in dialects::lost_fields(self.form.form, &entries) {
            ui::note(&format!(
                "note: this format cannot store {what} ({n}); --form karve keeps everything"
            ));
        }
        Ok(())
    }
}
