//! `karve knowledge index`, `import` and `export`.

use super::change::put;
use super::{FormArg, To};
use crate::error::{CommandError, Context, Result};
use crate::library::dialects::{self, Page, render_cross_reference, render_index};
use crate::library::{Shelves, Stock, markdown_below};
use crate::plain_file;
use crate::project::Place;
use crate::store;
use crate::ui::{self, style};
use karve_core::knowledge::{Entry, Grave, is_id, lint};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Bytes of a page of another form.
const PAGE_BYTES_MAX: u64 = 4 << 20;

/// Print the index
#[derive(Debug, clap::Args)]
pub(super) struct Index {
    /// Only entries of these layers' names, such as project
    #[arg(long, value_name = "LAYER")]
    layer: Option<String>,
}

impl Index {
    pub(super) fn run(&self, stock: &Stock) -> Result<()> {
        let entries = chosen(stock, &[], self.layer.as_deref())?;
        ui::out(&render_index(&entries));
        ui::outln("");
        ui::out(&render_cross_reference(&entries));
        Ok(())
    }
}

/// Entries by id and by layer; all without either.
fn chosen<'a>(stock: &'a Stock, ids: &[String], layer: Option<&str>) -> Result<Vec<&'a Entry>> {
    if !ids.is_empty() {
        return ids.iter().map(|id| Ok(&stock.get(id)?.entry)).collect();
    }
    let wanted = |name: &str| layer.is_none_or(|layer| layer == name);
    let placed = stock.placed.values().filter(|p| wanted(p.layer.name()));
    let entries: Vec<&Entry> = placed.map(|p| &p.entry).collect();
    if entries.is_empty() {
        return Err(CommandError::usage("there are no such entries")
            .hint("layers are \"built in\", user, project and staged: --layer project"));
    }
    Ok(entries)
}

/// Read entries from another form
#[derive(Debug, clap::Args)]
pub(super) struct Import {
    /// A file, or a directory of them
    from: PathBuf,
    #[command(flatten)]
    form: FormArg,
    /// Where they are written
    #[arg(long, value_enum, default_value = "staged")]
    to: To,
    /// Take the place of entries that are there
    #[arg(long)]
    replace: bool,
}

impl Import {
    pub(super) fn run(&self, place: &Place, shelves: &Shelves, stock: &Stock) -> Result<()> {
        let from = place.here()?.join(&self.from);
        let files = match from.is_dir() {
            true => markdown_below(&from)?,
            false => vec![from.clone()],
        };
        let base = if from.is_dir() {
            from.as_path()
        } else {
            Path::new("/")
        };
        let mut tally = Tally::default();
        for file in files {
            let text = plain_file::read_text(&file, PAGE_BYTES_MAX)
                .context(|| format!("cannot read {}", file.display()))
                .map_err(|error| error.hint("name a file of the form that --form says"))?;
            let path = file.strip_prefix(base).unwrap_or(&file).to_owned();
            let entries = match dialects::parse(self.form.form, &Page { path, text }) {
                Ok(entries) => entries,
                Err(why) => {
                    tally.faulty += 1;
                    let why = style::safe(&why, 200);
                    ui::note(&format!("note: {} is left out: {why}", file.display()));
                    continue;
                }
            };
            for entry in entries {
                // An index tells again, and less, what a page of its own tells.
                if tally.ids.insert(entry.id.clone()) {
                    self.take(shelves, stock, &entry)?.count(&mut tally);
                }
            }
        }
        tally.tell()
    }

    /// What is staged may lack what a reviewed entry must have; what it lacks is told.
    fn take(&self, shelves: &Shelves, stock: &Stock, entry: &Entry) -> Result<Taken> {
        let id = style::safe(&entry.id, 80);
        if !is_id(&entry.id) {
            ui::note(&format!("note: {id:?} is no id, so it is left out"));
            return Ok(Taken::Faulty);
        }
        let layer = self.to.layer();
        let there = match self.to {
            To::Staged => stock.placed.contains_key(&entry.id),
            To::Project | To::User => shelves.find(layer, &entry.id).is_ok_and(|e| e.is_some()),
        };
        if there && !self.replace {
            ui::note(&format!(
                "note: {id} is there already; --replace takes its place"
            ));
            return Ok(Taken::There);
        }
        if self.to != To::Staged {
            return match put(shelves, (entry, layer), self.replace) {
                Ok(_) => Ok(Taken::New),
                Err(error) => {
                    ui::note(&format!("note: {}", error.to_string().replace('\n', "; ")));
                    Ok(Taken::Faulty)
                }
            };
        }
        let lacks = lint(entry)
            .iter()
            .filter(|c| c.grave == Grave::Error)
            .count();
        shelves.write(layer, &entry.clone().as_reported())?;
        if lacks > 0 {
            ui::note(&format!(
                "note: {id} lacks {lacks} things before it can be promoted; see \"karve knowledge \
                 lint {id}\""
            ));
        }
        Ok(Taken::New)
    }
}

/// What became of an entry.
enum Taken {
    New,
    There,
    Faulty,
}

/// What became of all of them.
#[derive(Debug, Default)]
struct Tally {
    ids: BTreeSet<String>,
    new: u32,
    there: u32,
    faulty: u32,
}

impl Taken {
    fn count(self, tally: &mut Tally) {
        match self {
            Self::New => tally.new += 1,
            Self::There => tally.there += 1,
            Self::Faulty => tally.faulty += 1,
        }
    }
}

impl Tally {
    fn tell(&self) -> Result<()> {
        let (new, there, faulty) = (self.new, self.there, self.faulty);
        ui::outln(&format!(
            "imported  {new} entries, {there} are there already, {faulty} left out"
        ));
        let nothing = || CommandError::usage("nothing was imported");
        match (new, there, faulty) {
            (1.., _, _) => Ok(()),
            (0, 1.., 0) => Err(nothing()
                .cause("every entry is there already")
                .hint("use --replace to take their place")),
            (0, 1.., _) => Err(nothing()
                .cause("what is not there already cannot be read")
                .hint("use --replace, or see \"karve knowledge import --help\"")),
            (0, 0, _) => Err(nothing()
                .hint("--form says which form it is; see \"karve knowledge import --help\"")),
        }
    }
}

/// Write entries in another form
#[derive(Debug, clap::Args)]
pub(super) struct Export {
    /// The directory; it is made
    #[arg(value_name = "DIR")]
    out: PathBuf,
    /// Only these ids
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    form: FormArg,
    /// Only entries of this layer
    #[arg(long, value_name = "LAYER")]
    layer: Option<String>,
    /// Write over files that are there
    #[arg(long)]
    replace: bool,
}

impl Export {
    pub(super) fn run(&self, place: &Place, stock: &Stock) -> Result<()> {
        let entries = chosen(stock, &self.ids, self.layer.as_deref())?;
        let dir = place.here()?.join(&self.out);
        let pages = dialects::render(self.form.form, &entries).map_err(|why| {
            CommandError::usage("cannot write the entries in that form")
                .cause(why)
                .hint("choose another --form")
        })?;
        let is_inside = |path: &Path| {
            let mut parts = path.components();
            parts.all(|part| matches!(part, Component::Normal(_)))
        };
        if let Some(page) = pages.iter().find(|page| !is_inside(&page.path)) {
            let path = style::safe(&page.path.display().to_string(), 200);
            return Err(
                CommandError::usage(format!("{path} is outside of that directory"))
                    .hint("mend the scope of its entry; \"karve knowledge lint\" finds it"),
            );
        }
        let there = pages.iter().find(|page| dir.join(&page.path).exists());
        if let (Some(page), false) = (there, self.replace) {
            let path = dir.join(&page.path);
            return Err(CommandError::usage(format!("{} is there", path.display()))
                .hint("use --replace to write over it, or name another directory"));
        }
        for page in &pages {
            let path = dir.join(&page.path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)
                    .context(|| format!("cannot make {}", parent.display()))?;
            }
            store::write_atomic(&path, page.text.as_bytes())?;
        }
        ui::outln(&format!(
            "exported  {} files to {}",
            pages.len(),
            dir.display()
        ));
        for (what, n) in dialects::lost(self.form.form, &entries) {
            ui::note(&format!(
                "note: this form has no place for {what} ({n}); --form karve keeps all"
            ));
        }
        Ok(())
    }
}
