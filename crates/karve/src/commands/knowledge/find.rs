//! `karve knowledge search` and `show`.

use crate::bench::text;
use crate::config::Overrides;
use crate::library::markdown::render_entry;
use crate::library::situation::situation_of;
use crate::library::{LoadedEntry, LoadedLibrary, situation};
use crate::project::ProjectArgs;
use crate::ui::{self};
use karve_core::knowledge::{EntryMatch, LibraryQuery, Situation, expected};
use karve_core::profile::CounterValues;
use karve_core::profile::counters::{can_be, known};
use karve_os::error::{CommandError, Result};
use serde::Serialize;

/// Find entries
#[derive(Debug, clap::Args)]
pub(super) struct SearchArgs {
    /// Words to look for
    words: Vec<String>,
    /// Counter values as name=value, separated by commas
    #[arg(long, value_name = "LIST")]
    counters: Option<String>,
    /// The operation, such as matmul
    #[arg(long)]
    op: Option<String>,
    /// The device, such as cpu or H200
    #[arg(long)]
    device: Option<String>,
    /// The language or backend, such as c, cuda or triton
    #[arg(long)]
    language: Option<String>,
    /// Search entries for any target, not only for this project's
    #[arg(long)]
    anywhere: bool,
    /// Also show refuted and superseded entries
    #[arg(long)]
    refuted: bool,
    /// Maximum number of entries
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A found entry, for JSON output.
#[derive(Debug, Serialize)]
struct SearchHit<'a> {
    id: &'a str,
    kind: &'static str,
    title: &'a str,
    status: &'static str,
    layer: &'static str,
    score: f64,
    why: Vec<String>,
    /// The expected speedup here; none if the entry claims none.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_ratio: Option<f64>,
    /// The same in words, and what it is based on.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
}

impl SearchArgs {
    pub(super) fn run(&self, place: &ProjectArgs, loaded_library: &LoadedLibrary) -> Result<()> {
        let text = self.words.join(" ");
        let values = self.counters.as_deref().map(parse_counters).transpose()?;
        let situation = self.situation(place);
        let query = LibraryQuery {
            situation: situation.as_ref(),
            values: values.as_ref(),
            text: &text,
            refuted: self.refuted,
        };
        let found = loaded_library.library.search(&query);
        let shown = &found[..found.len().min(self.limit)];
        if self.json {
            let list = shown.iter().map(|m| search_hit(loaded_library, m, situation.as_ref()));
            ui::out_json(&list.collect::<Vec<_>>());
            return Ok(());
        }
        for matched in shown {
            show(&search_hit(loaded_library, matched, situation.as_ref()));
        }
        match found.len() {
            0 => ui::outln("no entry fits; \"karve knowledge search --anywhere\" searches all"),
            n if n > shown.len() => {
                ui::outln(&format!("{} more; -n {n} shows all", n - shown.len()));
            }
            _ => {}
        }
        Ok(())
    }

    /// The target to search for: from the flags, else from the project.
    fn situation(&self, place: &ProjectArgs) -> Option<Situation> {
        if self.anywhere {
            return None;
        }
        if self.op.is_some() || self.device.is_some() || self.language.is_some() {
            let or = |text: &Option<String>| text.clone().unwrap_or_default();
            let (op, language) = (or(&self.op), or(&self.language));
            return Some(situation::of_words(&op, &language, &language, &or(&self.device)));
        }
        of_project(place)
    }
}

/// The target of the project, if there is one.
fn of_project(place: &ProjectArgs) -> Option<Situation> {
    let loaded = place.load(&Overrides::default()).ok()?;
    Some(situation_of(&loaded.charter))
}

fn search_hit<'a>(
    loaded_library: &LoadedLibrary,
    matched: &EntryMatch<'a>,
    at: Option<&Situation>,
) -> SearchHit<'a> {
    let entry = matched.entry;
    let promised = expected(entry, at);
    let said = promised.describe(entry.kind, 1.0);
    SearchHit {
        id: &entry.id,
        kind: entry.kind.name(),
        title: &entry.title,
        status: loaded_library
            .library
            .standing(&entry.id)
            .map_or(entry.status, |s| s.status)
            .name(),
        layer: loaded_library.placed.get(&entry.id).map_or("", |p| p.layer.name()),
        score: matched.score,
        why: matched.why.iter().map(|why| why.describe()).collect(),
        expected_ratio: said.is_some().then(|| promised.gain(1.0).exp()),
        expected: said,
    }
}

fn show(found: &SearchHit<'_>) {
    ui::outln(&format!("{}  {}", text::safe(found.id, 80), text::safe(found.title, 120)));
    let expected = found.expected.as_ref();
    let expected = expected.map_or_else(String::new, |said| format!("; {said}"));
    ui::outln(&format!("    {}, {}, {}{expected}", found.kind, found.status, found.layer));
    for why in &found.why {
        ui::outln(&format!("    {}", text::safe(why, 200)));
    }
}

/// `name=value,name=value`.
fn parse_counters(text: &str) -> Result<CounterValues> {
    let mut values = CounterValues::new();
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let bad = |why: &str| {
            CommandError::usage(format!("cannot read the counter {:?}", text::safe(part, 60)))
                .cause(why)
                .hint("write --counters l1_miss_pct=12,ipc=0.8; docs/profile.md lists the names")
        };
        let (name, value) = part.split_once('=').ok_or_else(|| bad("it has no ="))?;
        let (name, value) = (name.trim(), value.trim());
        if known(name).is_none() {
            return Err(bad("no counter has that name"));
        }
        let value: f64 = value.parse().map_err(|_| bad("the value is not a number"))?;
        if !value.is_finite() {
            return Err(bad("the value is not a number"));
        }
        if !can_be(name, value) {
            return Err(bad("a percentage must be from 0 to 100"));
        }
        if values.insert(name.to_owned(), value).is_some() {
            return Err(bad("it appears twice"));
        }
    }
    Ok(values)
}

/// Show an entry
#[derive(Debug, clap::Args)]
pub(super) struct ShowEntryArgs {
    /// The id or an alias
    id: String,
    /// Print its record as JSON
    #[arg(long)]
    json: bool,
}

impl ShowEntryArgs {
    pub(super) fn run(&self, place: &ProjectArgs, loaded_library: &LoadedLibrary) -> Result<()> {
        let placed = loaded_library.get(&self.id)?;
        if self.json {
            ui::out_json(&placed.entry);
            return Ok(());
        }
        for line in head(loaded_library, placed, of_project(place).as_ref()) {
            ui::outln(&line);
        }
        let text = render_entry(&placed.entry)
            .map_err(|why| CommandError::usage(format!("cannot show {:?}", self.id)).cause(why))?;
        ui::outln("");
        for line in text.lines() {
            let indent = line.len() - line.trim_start_matches(' ').len();
            ui::outln(&format!("{}{}", " ".repeat(indent), text::safe(line, 400)));
        }
        Ok(())
    }
}

/// Where it was read from, its status, and what depends on it.
fn head(
    loaded_library: &LoadedLibrary,
    placed: &LoadedEntry,
    at: Option<&Situation>,
) -> Vec<String> {
    let entry = &placed.entry;
    let path = placed.path.as_ref();
    let path = path.map_or_else(String::new, |path| format!(" ({})", path.display()));
    let mut lines = vec![format!("layer     {}{path}", placed.layer.name())];
    if !placed.hides.is_empty() {
        let hidden: Vec<&str> = placed.hides.iter().map(|layer| layer.name()).collect();
        lines.push(format!("overrides {}", hidden.join(" and ")));
    }
    if let Some(standing) = loaded_library.library.standing(&entry.id) {
        lines.push(format!("standing  {}", text::safe(&standing.explain(entry), 400)));
    }
    if let Some(said) = expected(entry, at).describe(entry.kind, 1.0) {
        lines.push(format!("expected  {said}"));
    }
    let rests = karve_core::knowledge::dependants(loaded_library.library.entries(), &entry.id);
    if !rests.is_empty() {
        lines.push(format!("needed by {}", text::safe(&rests.join(", "), 300)));
    }
    lines
}
