//! Turns a request into the agenda of a charter: names are looked up, and everything that can be
//! checked before anything runs is checked.

pub mod analysis;

use crate::config::{AgendaOption, AgendaRequest, LoadedConfig, PROFILE_AUTO};
use crate::library::recall::known;
use crate::library::situation::situation_of;
use crate::library::{Layer, LibraryLayers, LoadedLibrary, PROJECT_DIR};
use analysis::Analysis;
use karve_agents::builtin::{self, BuiltinAgent};
use karve_core::agenda::{
    Agenda, AgendaItem, AgendaSource, ITEMS_MAX, ItemAction, ItemEffort, errors, is_id,
};
use karve_core::charter::Charter;
use karve_core::knowledge::{EntryKind, EntryStatus, KnownEntry, Situation};
use karve_harness::git::Repo;
use karve_numerics::space::{Knob, KnobSetting};
use karve_os::error::{CommandError, Result};
use karve_os::files;
use std::path::Path;

/// Characters of an item's text.
const TEXT_CHARS: usize = 2_000;
/// Characters of its title.
const TITLE_CHARS: usize = 120;
/// The expected gain of knob values, a sweep or words, if the request does not say.
const EXPECTED_RATIO: f64 = 1.1;
/// Errors that are listed.
const PROBLEMS_MAX: usize = 20;

/// Gives a new charter the requested agenda, or says why it cannot be carried out.
pub fn put(charter: &mut Charter, loaded: &LoadedConfig, repo: &Repo) -> Result<()> {
    let Some(asked) = &loaded.agenda else {
        return Ok(());
    };
    let lookup = ItemLookup::new(charter, loaded, repo)?;
    let wanted = match &asked.option {
        AgendaOption::Only(text) => {
            AgendaSource::Only { request: text.trim().to_owned(), item: lookup.only(text.trim())? }
        }
        AgendaOption::Plan(path) => lookup.plan(path)?,
        AgendaOption::Autopilot => AgendaSource::Autopilot {
            knobs: u32::try_from(lookup.knobs.len()).unwrap_or(u32::MAX),
            by_machine: lookup.by_machine(),
        },
    };
    if matches!(wanted, AgendaSource::Autopilot { .. }) && charter.commands.profile.is_none() {
        charter.commands.profile = Some(PROFILE_AUTO.to_owned());
    }
    let tries = asked.tries;
    charter.agenda = Some(Box::new(Agenda { wanted, tries }));
    Ok(())
}

/// Whether a campaign has the agenda that is asked for.
pub fn is_same(asked: &AgendaRequest, agenda: Option<&Agenda>) -> Result<bool> {
    Ok(match (&asked.option, agenda.map(|agenda| &agenda.wanted)) {
        (AgendaOption::Only(text), Some(AgendaSource::Only { request: asked, .. })) => {
            text.trim() == asked
        }
        (AgendaOption::Plan(path), Some(AgendaSource::Plan { items, .. })) => {
            let new = read_plan(path)?;
            let named = |item: &AgendaItem| (item.id.clone(), item.title.clone());
            let new = new.items.iter().map(|(_, item)| named(item));
            new.eq(items.iter().map(named))
        }
        (AgendaOption::Autopilot, Some(AgendaSource::Autopilot { .. })) => true,
        (AgendaOption::Only(_) | AgendaOption::Plan(_) | AgendaOption::Autopilot, _) => false,
    })
}

fn read_plan(path: &Path) -> Result<Analysis> {
    let read = files::read_text(path, files::WRITTEN_BYTES_MAX);
    let text = read.map_err(|error| {
        CommandError::usage(format!("cannot read the analysis {}", path.display()))
            .cause(error)
            .hint("name a file with --plan; docs/modes.md shows both forms")
    })?;
    analysis::parse(&text).map_err(|faults| unusable(path, &faults))
}

/// The error for an analysis with mistakes, each with its line.
fn unusable(path: &Path, faults: &[(usize, String)]) -> CommandError {
    let message = format!("the analysis {} cannot be used", path.display());
    let mut error = CommandError::usage(message);
    for (line, fault) in faults.iter().take(PROBLEMS_MAX) {
        error = error.cause(format!("line {line}: {fault}"));
    }
    if faults.len() > PROBLEMS_MAX {
        error = error.cause(format!("and {} more", faults.len() - PROBLEMS_MAX));
    }
    error.hint(format!("fix {}; docs/modes.md shows both forms", path.display()))
}

/// What items are looked up in.
struct ItemLookup<'a> {
    charter: Charter,
    repo: &'a Repo,
    base: String,
    library: LoadedLibrary,
    at: Situation,
    knobs: Vec<Knob>,
}

/// Why an item cannot be carried out, and a hint.
struct ItemProblem {
    why: String,
    hint: String,
}

impl<'a> ItemLookup<'a> {
    fn new(charter: &Charter, loaded: &LoadedConfig, repo: &'a Repo) -> Result<Self> {
        let mut layers = LibraryLayers::of_user();
        layers.put(Layer::Project, loaded.dir.join(PROJECT_DIR));
        layers.put(Layer::Staged, loaded.root.join(PROJECT_DIR));
        let base = repo.head()?.oid().to_string();
        Ok(Self {
            library: layers.load()?,
            at: situation_of(charter),
            knobs: builtin::knobs_at(repo, &base, &charter.editable, &charter.knobs)?,
            charter: charter.clone(),
            repo,
            base,
        })
    }

    /// Whether only the built-in strategy will carry items out.
    fn by_machine(&self) -> bool {
        self.charter.agent == "builtin"
    }

    /// The one item that a text asks for.
    fn only(&self, text: &str) -> Result<AgendaItem> {
        if text.is_empty() {
            return Err(CommandError::usage("the request is empty")
                .hint("write --only with an entry, KNOB=VALUE, sweep, or the task in words"));
        }
        let item = self.item_of(text);
        match self.problems(&item)?.into_iter().next() {
            None => Ok(self.with_text(item)),
            Some(fault) => {
                let message = format!("{text:?} cannot be carried out: {}", fault.why);
                Err(CommandError::usage(message).hint(fault.hint))
            }
        }
    }

    fn item_of(&self, text: &str) -> AgendaItem {
        let item = |id: &str, how: ItemAction| AgendaItem {
            id: id.to_owned(),
            title: text.split_whitespace().collect::<Vec<_>>().join(" "),
            expected_ratio: EXPECTED_RATIO,
            how,
            ..AgendaItem::default()
        };
        let mut item = if text == "sweep" {
            item("sweep", ItemAction::Sweep)
        } else if let Some(config) = knob_values(text) {
            item("knobs", ItemAction::Knobs { config })
        } else if self.library.library.get(text).is_some() || names_an_entry(text) {
            self.of_entry(text)
        } else {
            AgendaItem {
                text: text.chars().take(TEXT_CHARS).collect(),
                ..item("only", ItemAction::Words)
            }
        };
        item.title = item.title.chars().take(TITLE_CHARS).collect();
        item
    }

    fn of_entry(&self, id: &str) -> AgendaItem {
        let known = self.known(id);
        let entry = known.as_ref().map_or(id, |known| &known.id).to_owned();
        let by_hand = known.as_ref().is_none_or(|known| known.apply.is_empty());
        AgendaItem {
            id: match is_id(&entry) {
                true => entry.clone(),
                false => "entry".to_owned(),
            },
            title: known.as_ref().map_or(id, |known| &known.title).to_owned(),
            expected_ratio: known.map_or(EXPECTED_RATIO, |known| known.expected_ratio),
            effort: match by_hand {
                true => ItemEffort::Medium,
                false => ItemEffort::Low,
            },
            how: ItemAction::Entry { entry },
            ..AgendaItem::default()
        }
    }

    /// An entry as a campaign here would remember it.
    fn known(&self, id: &str) -> Option<KnownEntry> {
        let entry = self.library.library.get(id)?;
        let layer = self.library.placed.get(&entry.id)?.layer;
        Some(known(&self.library, entry, layer, &self.at))
    }

    /// The text of an entry becomes part of its item.
    fn with_text(&self, mut item: AgendaItem) -> AgendaItem {
        let known = item.entry().and_then(|entry| self.known(entry));
        if let Some(known) = known.filter(|_| item.text.is_empty()) {
            item.text = known.text;
        }
        item
    }

    /// The items of an analysis.
    fn plan(&self, path: &Path) -> Result<AgendaSource> {
        let Analysis { bottleneck, items } = read_plan(path)?;
        let (lines, mut items): (Vec<usize>, Vec<AgendaItem>) = items.into_iter().unzip();
        let mut wrong: Vec<(usize, String)> = Vec::new();
        if items.len() > ITEMS_MAX {
            let fault = format!("there are more than {ITEMS_MAX} recommendations");
            wrong.push((lines[ITEMS_MAX], fault));
        }
        for item in &mut items {
            if let ItemAction::Entry { entry } = &mut item.how
                && let Some(known) = self.library.library.get(entry)
            {
                entry.clone_from(&known.id);
            }
        }
        self.add_needs(&mut items);
        wrong.extend(errors(&items).into_iter().map(|(at, why)| (lines[at], why)));
        for (item, line) in items.iter().zip(&lines) {
            for fault in self.problems(item)? {
                wrong.push((*line, format!("{} ({})", fault.why, fault.hint)));
            }
        }
        wrong.sort();
        match wrong.is_empty() {
            true => Ok(AgendaSource::Plan {
                bottleneck,
                items: items.into_iter().map(|item| self.with_text(item)).collect(),
            }),
            false => Err(unusable(path, &wrong)),
        }
    }

    /// If the plan contains what an entry depends on, that comes first.
    fn add_needs(&self, items: &mut [AgendaItem]) {
        let ids: Vec<(String, String)> = items
            .iter()
            .filter_map(|item| Some((item.entry()?.to_owned(), item.id.clone())))
            .collect();
        for item in items {
            let known = item.entry().and_then(|entry| self.known(entry));
            for needed in known.iter().flat_map(|known| &known.interactions.depends_on) {
                let there = ids.iter().find(|(entry, _)| entry == needed);
                if let Some((_, id)) = there.filter(|(_, id)| !item.needs.contains(id)) {
                    item.needs.push(id.clone());
                }
            }
        }
    }

    /// Problems with an item, found before anything runs.
    fn problems(&self, item: &AgendaItem) -> Result<Vec<ItemProblem>> {
        let fault = |why: String, hint: &str| ItemProblem { why, hint: hint.to_owned() };
        Ok(match &item.how {
            ItemAction::Words if self.by_machine() => vec![fault(
                "the built-in strategy cannot carry out a task in words".to_owned(),
                "name an agent with --agent; \"karve agents\" lists them",
            )],
            ItemAction::Words => Vec::new(),
            ItemAction::Sweep if self.knobs.is_empty() => vec![fault(
                "the editable files declare no knobs".to_owned(),
                "declare one like \"karve: knob TILE in 8,16,32\", see docs/tune.md",
            )],
            ItemAction::Sweep => Vec::new(),
            ItemAction::Knobs { config } => self.knob_problems(config),
            ItemAction::Entry { entry } => self.entry_problem(entry)?.into_iter().collect(),
        })
    }

    fn knob_problems(&self, config: &KnobSetting) -> Vec<ItemProblem> {
        let names: Vec<&str> = self.knobs.iter().map(|knob| knob.name.as_str()).collect();
        let names = match names.is_empty() {
            true => "declare it first, see docs/tune.md".to_owned(),
            false => {
                format!("the knobs in karve.toml and the editable files: {}", names.join(", "))
            }
        };
        let of = |(name, value): (&String, &String)| {
            let Some(knob) = self.knobs.iter().find(|knob| knob.name == *name) else {
                return Some(ItemProblem {
                    why: format!("there is no knob {name}"),
                    hint: names.clone(),
                });
            };
            (!knob.values.contains(value)).then(|| ItemProblem {
                why: format!("{name} cannot be {value}"),
                hint: format!("{} takes {}; it is declared in {}", name, few(knob), knob.file),
            })
        };
        config.iter().filter_map(of).collect()
    }

    fn entry_problem(&self, id: &str) -> Result<Option<ItemProblem>> {
        let fault = |why: String, hint: &str| Some(ItemProblem { why, hint: hint.to_owned() });
        let (Some(entry), Some(known)) = (self.library.library.get(id), self.known(id)) else {
            let hint = "\"karve knowledge search WORDS\" finds entries";
            return Ok(fault(format!("there is no entry {id}"), hint));
        };
        let show = format!("\"karve knowledge show {}\" shows it", entry.id);
        Ok(if !entry.scope.holds(&self.at) {
            let scope = entry.scope.describe();
            fault(format!("the entry {id} is only for {scope}"), &show)
        } else if matches!(known.status, EntryStatus::Refuted | EntryStatus::Superseded) {
            let status = known.status.name();
            fault(format!("the entry {id} is {status} here: {}", known.refuted), &show)
        } else if known.kind == EntryKind::AntiPattern {
            fault(format!("the entry {id} says what not to do"), &show)
        } else if !self.by_machine() {
            None
        } else if known.apply.is_empty() {
            let hint = "name an agent with --agent; \"karve agents\" lists them";
            fault(format!("the entry {id} has no recipe that karve can apply"), hint)
        } else if !self.applies(&known)? {
            let why = format!("no recipe of the entry {id} changes anything in the editable files");
            fault(why, "check sources.editable in karve.toml, or name an agent with --agent")
        } else {
            None
        })
    }

    /// Whether the built-in strategy finds something to change.
    fn applies(&self, known: &KnownEntry) -> Result<bool> {
        let Charter { editable, knobs, .. } = &self.charter;
        let machine = BuiltinAgent::new(editable.clone(), knobs.clone());
        machine.can_apply(self.repo, &self.base, known)
    }
}

/// The first values of a knob.
fn few(knob: &Knob) -> String {
    let shown: Vec<&str> = knob.values.iter().take(12).map(String::as_str).collect();
    let more = if knob.values.len() > 12 { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// `KNOB=VALUE,…`, if that is all there is.
pub(crate) fn knob_values(text: &str) -> Option<KnobSetting> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let named = !name.is_empty() && name.chars().all(plain);
        (named && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    };
    text.split(',').map(pair).collect()
}

/// Whether a text can only be the name of an entry: one word with hyphens.
fn names_an_entry(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.contains('-') && text.chars().all(plain)
}
