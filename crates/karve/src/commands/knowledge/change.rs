//! `karve knowledge add`, `promote` and `retract`.

use super::To;
use crate::clock;
use crate::error::{CommandError, Context, Result};
use crate::library::markdown::{ENTRY_BYTES_MAX, parse_entry};
use crate::library::{Layer, Shelves, Stock};
use crate::plain_file;
use crate::project::Place;
use crate::ui::{self, style};
use karve_core::knowledge::{Entry, Grave, Retraction, Section, Status, VOUCHED, dependants, lint};
use std::fs;
use std::io::Read;
use std::path::Path;

/// Add an entry
#[derive(Debug, clap::Args)]
pub(super) struct Add {
    /// The file, or - for standard input
    file: String,
    /// Where it is written
    #[arg(long, value_enum, default_value = "project")]
    to: To,
    /// Take the place of an entry that is there
    #[arg(long)]
    replace: bool,
}

impl Add {
    pub(super) fn run(&self, place: &Place, shelves: &Shelves, stock: &Stock) -> Result<()> {
        let text = read(&place.here()?, &self.file)?;
        let entry = parse_entry(&text).map_err(|why| {
            CommandError::usage(format!("{} is no entry", self.file))
                .cause(why)
                .hint("\"karve knowledge show ID\" prints one to begin with; see docs/knowledge.md")
        })?;
        let path = put(shelves, stock, (&entry, self.to.layer()), self.replace)?;
        ui::outln(&format!("added     {} in {}", entry.id, path.display()));
        Ok(())
    }
}

fn read(here: &Path, file: &str) -> Result<String> {
    if file != "-" {
        return plain_file::read_text(&here.join(file), ENTRY_BYTES_MAX as u64)
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

/// Writes an entry that passes lint; refuses to write over one unless told to.
pub(super) fn put(
    shelves: &Shelves,
    stock: &Stock,
    (entry, layer): (&Entry, Layer),
    replace: bool,
) -> Result<std::path::PathBuf> {
    refuse_faults(entry)?;
    if let Some(placed) = stock.placed.get(&entry.id)
        && placed.layer == layer
        && !replace
    {
        return Err(
            CommandError::usage(format!("there is an entry {:?} already", entry.id))
                .hint("use --replace to take its place, or give it another id"),
        );
    }
    shelves.write(layer, entry)
}

fn refuse_faults(entry: &Entry) -> Result<()> {
    let faults = lint(entry).into_iter().filter(|c| c.grave == Grave::Error);
    let faults: Vec<String> = faults.map(|c| c.what).collect();
    if faults.is_empty() {
        return Ok(());
    }
    let mut error = CommandError::usage(format!(
        "the entry {:?} is not fit to be used",
        style::safe(&entry.id, 60)
    ));
    for fault in faults.iter().take(10) {
        error = error.cause(style::safe(fault, 200));
    }
    Err(error.hint("mend it, then check it with \"karve knowledge lint FILE\""))
}

/// Move a staged entry
#[derive(Debug, clap::Args)]
pub(super) struct Promote {
    /// The id
    id: String,
    /// Where to
    #[arg(long, value_enum, default_value = "project")]
    to: To,
    /// Vouch for it although it was not replicated, and say why
    #[arg(long, value_name = "WHY")]
    vouch: Option<String>,
}

impl Promote {
    pub(super) fn run(&self, shelves: &Shelves, stock: &Stock) -> Result<()> {
        let placed = stock.get(&self.id)?;
        if placed.layer != Layer::Staged {
            return Err(CommandError::usage(format!(
                "{} is not staged, it is {}",
                placed.entry.id,
                placed.layer.name()
            ))
            .hint("\"karve knowledge show ID\" tells where an entry is"));
        }
        if self.to == To::Staged {
            return Err(
                CommandError::usage("it is staged already").hint("use --to project or --to user")
            );
        }
        let mut entry = placed.entry.clone();
        let standing = stock.library.standing(&entry.id);
        entry.status = standing.map_or(entry.status, |standing| standing.status);
        if let Some(why) = &self.vouch {
            entry.status = Status::Verified;
            entry.sections.push(Section {
                heading: VOUCHED.into(),
                text: format!("{}: {}", clock::day(), style::safe(why, 500)),
            });
        }
        refuse_faults(&entry)?;
        let path = shelves.write(self.to.layer(), &entry)?;
        if let Some(staged) = &placed.path {
            fs::remove_file(staged)
                .context(|| format!("cannot remove {}", staged.display()))
                .map_err(|error| {
                    error.hint(
                        "the promoted file is written; remove the one in .karve/knowledge by hand",
                    )
                })?;
        }
        ui::outln(&format!(
            "promoted  {} ({}) to {}",
            entry.id,
            entry.status.name(),
            path.display()
        ));
        Ok(())
    }
}

/// Take an entry back
#[derive(Debug, clap::Args)]
pub(super) struct Retract {
    /// The id
    id: String,
    /// Why
    #[arg(long)]
    why: String,
    /// The entry that takes its place
    #[arg(long, value_name = "ID")]
    by: Option<String>,
    /// Where it is written; by default where it is, or the project for what is built in
    #[arg(long, value_enum)]
    to: Option<To>,
}

impl Retract {
    pub(super) fn run(&self, shelves: &Shelves, stock: &Stock) -> Result<()> {
        let placed = stock.get(&self.id)?;
        if self.why.trim().is_empty() {
            return Err(CommandError::usage("a retraction needs a reason")
                .hint("say it with --why \"...\""));
        }
        let mut entry = placed.entry.clone();
        match &self.by {
            Some(by) => {
                entry.status = Status::Superseded;
                entry.superseded_by = Some(stock.get(by)?.entry.id.clone());
            }
            None => entry.status = Status::Refuted,
        }
        entry.retracted = self.by.is_none().then(|| Retraction {
            date: clock::day(),
            why: style::safe(&self.why, 500),
        });
        entry.sections.push(Section {
            heading: "Taken back".into(),
            text: format!("{}: {}", clock::day(), style::safe(&self.why, 500)),
        });
        let near = match (self.to, placed.layer) {
            (Some(to), _) => to.layer(),
            (None, Layer::BuiltIn) if shelves.dir(Layer::Project).is_none() => Layer::User,
            (None, Layer::BuiltIn) => Layer::Project,
            (None, layer) => layer,
        };
        let path = shelves.write(near, &entry)?;
        ui::outln(&format!("retracted {} in {}", entry.id, path.display()));
        let rests = dependants(stock.library.entries(), &entry.id);
        for id in rests {
            ui::outln(&format!(
                "question  {id} depends on it, and is not told any more"
            ));
        }
        Ok(())
    }
}
