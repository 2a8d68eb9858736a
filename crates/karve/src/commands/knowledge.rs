//! `karve knowledge`: finds, shows, checks and changes library entries.

mod change;
mod find;
mod transfer;

use crate::bench::text;
use crate::library::dialects::KnowledgeFormat;
use crate::library::{Layer, LayerLock, LibraryChange, LibraryLayers, LoadedLibrary};
use crate::project::ProjectArgs;
use crate::ui::{self};
use clap::Subcommand;
use karve_core::knowledge::{LintFinding, LintSeverity, lint_all};
use karve_os::clock;
use karve_os::error::{CommandError, ErrorKind, Result};
use std::path::PathBuf;

/// Most problems and files that are shown.
const SHOWN_MAX: usize = 200;

/// Search and edit the library: entries with their triggers and the evidence for and against them
///
/// There are four layers: built in, user, project (knowledge/ next to karve.toml) and staged (found
/// by campaigns). The nearest one that has an entry wins. docs/knowledge.md describes the format.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve knowledge search bank conflicts          by words
  karve knowledge search --counters l1_miss_pct=12,ceiling_pct=20
  karve knowledge show register-blocking
  karve knowledge lint                           all layers; exit code 1 if something is wrong
  karve knowledge promote tip-7 --to project     a staged finding, after review
  karve knowledge retract x --why \"the reference was wrong\"
  karve knowledge export --form hyper-mla DIR    as catalog pages with an index")]
pub struct KnowledgeArgs {
    #[command(subcommand)]
    command: KnowledgeCommand,
}

#[derive(Debug, Subcommand)]
enum KnowledgeCommand {
    /// Find entries by words, by counters of a profile and by scope, and say why each fits
    Search(find::SearchArgs),
    /// Show an entry, where it was read from and its status
    Show(find::ShowEntryArgs),
    /// Add an entry from a file, or from standard input with -
    Add(change::AddArgs),
    /// Check entries: their template, evidence, triggers, names and claims
    Lint(LintArgs),
    /// Move a staged entry to the project or the user, or copy one of the project to the user
    Promote(change::PromoteArgs),
    /// Retract an entry; it stays, with the reason, and entries that depend on it are flagged
    Retract(change::RetractArgs),
    /// Print the index and the cross-reference from counter states to entries
    Index(transfer::IndexArgs),
    /// Import entries from another format
    Import(transfer::ImportArgs),
    /// Export entries to another format
    Export(transfer::ExportArgs),
}

/// Where an entry is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum TargetLayer {
    /// knowledge/ next to karve.toml
    Project,
    /// The user's own
    User,
    /// Not reviewed yet
    Staged,
}

impl TargetLayer {
    fn layer(self) -> Layer {
        match self {
            Self::Project => Layer::Project,
            Self::User => Layer::User,
            Self::Staged => Layer::Staged,
        }
    }
}

/// Which format.
#[derive(Clone, Copy, Debug, clap::Args)]
struct FormatArg {
    /// The format
    #[arg(long, value_enum, default_value = "karve")]
    form: KnowledgeFormat,
}

impl KnowledgeArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let library_layers = place.library();
        let mut loaded = library_layers.load()?;
        if !matches!(self.command, KnowledgeCommand::Lint(_)) {
            print_unreadable(&loaded);
        }
        for settled in &loaded.settled {
            ui::note(&format!("note: {}", text::safe(settled, 300)));
        }
        let writes = self.command.writes(&library_layers, &loaded)?;
        let held = library_layers.hold(&writes)?;
        if !writes.is_empty() {
            // Sees everything that other processes have written so far.
            loaded = library_layers.load()?;
        }
        let writer = LibraryWriter { layers: &library_layers, held: &held, library: &loaded };
        match &self.command {
            KnowledgeCommand::Search(command) => command.run(place, &loaded),
            KnowledgeCommand::Show(command) => command.run(place, &loaded),
            KnowledgeCommand::Add(command) => command.run(place, &writer),
            KnowledgeCommand::Lint(command) => command.run(place, &loaded),
            KnowledgeCommand::Promote(command) => command.run(&writer),
            KnowledgeCommand::Retract(command) => command.run(&writer),
            KnowledgeCommand::Index(command) => command.run(&loaded),
            KnowledgeCommand::Import(command) => command.run(place, &writer),
            KnowledgeCommand::Export(command) => command.run(place, &loaded),
        }
    }
}

/// Changes the layers it has locked, with a view of all layers.
struct LibraryWriter<'a> {
    layers: &'a LibraryLayers,
    held: &'a LayerLock,
    library: &'a LoadedLibrary,
}

impl<'a> LibraryWriter<'a> {
    fn change(&self) -> LibraryChange<'a> {
        self.layers.change(self.held)
    }
}

impl KnowledgeCommand {
    /// The layers that it writes to.
    fn writes(&self, library_layers: &LibraryLayers, loaded: &LoadedLibrary) -> Result<Vec<Layer>> {
        match self {
            Self::Add(command) => Ok(vec![command.to.layer()]),
            Self::Import(command) => Ok(vec![command.to.layer()]),
            Self::Promote(command) => command.writes(loaded),
            Self::Retract(command) => Ok(vec![command.layer(library_layers, loaded)?]),
            Self::Search(_) | Self::Show(_) | Self::Lint(_) | Self::Index(_) | Self::Export(_) => {
                Ok(Vec::new())
            }
        }
    }
}

/// Files that are not entries are skipped and listed.
fn print_unreadable(loaded: &LoadedLibrary) {
    for (path, why) in loaded.unreadable.iter().take(5) {
        let why = text::safe(why, 200);
        ui::note(&format!("note: {} is not an entry: {why}", path.display()));
    }
    if loaded.unreadable.len() > 5 {
        let n = loaded.unreadable.len() - 5;
        ui::note(&format!("note: and {n} more; see \"karve knowledge lint\""));
    }
}

/// Check entries
#[derive(Debug, clap::Args)]
struct LintArgs {
    /// Only these ids or files
    #[arg(value_name = "ID|FILE")]
    only: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl LintArgs {
    fn run(&self, place: &ProjectArgs, loaded: &LoadedLibrary) -> Result<()> {
        let here = place.here()?;
        let (names, files): (Vec<&String>, Vec<&String>) =
            self.only.iter().partition(|name| !here.join(name).is_file());
        let mut entries: Vec<_> = loaded.placed.values().map(|p| p.entry.clone()).collect();
        let mut wanted: Vec<String> = Vec::new();
        for name in names {
            wanted.push(loaded.get(name)?.entry.id.clone());
        }
        let mut unreadable: Vec<(PathBuf, String)> =
            if self.only.is_empty() { loaded.unreadable.clone() } else { Vec::new() };
        for file in files {
            match crate::library::read_entry(&here.join(file)) {
                Ok(entry) => {
                    wanted.push(entry.id.clone());
                    entries.retain(|other| other.id != entry.id);
                    entries.push(entry);
                }
                Err(why) => unreadable.push((PathBuf::from(file), why)),
            }
        }
        let reported = |c: &LintFinding| self.only.is_empty() || wanted.contains(&c.id);
        let complaints: Vec<LintFinding> =
            lint_all(&entries, &clock::latest_day()).into_iter().filter(reported).collect();
        self.show(&complaints, &unreadable);
        let errors = complaints.iter().filter(|c| c.severity == LintSeverity::Error).count();
        match errors + unreadable.len() {
            0 => Ok(()),
            n => Err(CommandError::new(ErrorKind::Negative, format!("{n} of these must be fixed"))
                .hint("docs/knowledge.md lists what an entry must have")),
        }
    }

    fn show(&self, complaints: &[LintFinding], unreadable: &[(PathBuf, String)]) {
        if self.json {
            let of = |c: &LintFinding| serde_json::json!(c);
            let files = unreadable.iter().map(
                |(path, why)| serde_json::json!({"file": path, "severity": "error", "what": why}),
            );
            ui::out_json(&complaints.iter().map(of).chain(files).collect::<Vec<_>>());
            return;
        }
        for (path, why) in unreadable.iter().take(SHOWN_MAX) {
            let why = text::safe(why, 300);
            ui::outln(&format!("error     {}: not an entry: {why}", path.display()));
        }
        for c in complaints.iter().take(SHOWN_MAX) {
            let (id, what) = (text::safe(&c.id, 80), text::safe(&c.what, 300));
            ui::outln(&format!("{:<10}{id}: {what}", c.severity.name()));
        }
        let more = complaints.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            ui::outln(&format!("and {more} more"));
        }
        if complaints.is_empty() && unreadable.is_empty() {
            ui::outln("no problems found");
        }
    }
}
