//! Writes entries in the formats of the published workflows, with a template for each.

use super::{Dialect, SourcePage, dialects, mark, slug};
use karve_agents::template_env::strict_environment;
use karve_core::knowledge::{Entry, EntryKind, EntryStatus, Risk, assess};
use karve_core::markdown;
use karve_core::profile::Predicate;
use karve_os::text::one_line;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, context};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Most characters of a cell.
const CELL_CHARS: usize = 300;
/// Most characters of a heading or a field of a tip.
const LINE_CHARS: usize = 1_000;
/// The template of the index.
const INDEX: &str = "index";

const TEMPLATES: [(&str, &str); 6] = [
    ("hyper-mla", include_str!("templates/hyper-mla.md.j2")),
    (INDEX, include_str!("templates/index.md.j2")),
    ("casebook", include_str!("templates/casebook.md.j2")),
    ("wiki", include_str!("templates/wiki.md.j2")),
    ("tips", include_str!("templates/tips.md.j2")),
    ("playbook", include_str!("templates/playbook.md.j2")),
];

static ENVIRONMENT: LazyLock<Result<Environment<'static>, String>> =
    LazyLock::new(|| environment().map_err(|error| error.to_string()));

fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = strict_environment();
    // An entry leaves out what is empty.
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.add_filter("slug", |text: &str| slug(text));
    environment.add_filter("cell", |text: &str| markdown::cell(text, CELL_CHARS));
    environment.add_filter("line", |text: &str| one_line(text, LINE_CHARS));
    environment.add_filter("first_line", |text: Option<&str>| {
        let mut lines = text.unwrap_or_default().lines();
        let line = lines.find(|line| !line.trim().is_empty()).unwrap_or("-");
        markdown::cell(line.trim_start_matches("- "), CELL_CHARS)
    });
    environment.add_filter("all_lines", |text: Option<&str>| {
        let lines = text.unwrap_or_default().lines().map(|line| line.trim_start_matches("- "));
        let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
        markdown::cell(
            if lines.is_empty() { "-".into() } else { lines.join("; ") }.as_str(),
            CELL_CHARS,
        )
    });
    environment.add_filter("positive", |value: f64| match value > 0.0 {
        // Seven digits: a mean of logarithms is off in the last ones.
        true => format!("{value:.6e}").parse().unwrap_or(value).to_string(),
        false => "-".to_owned(),
    });
    environment.add_filter("front_matter", |Serde(pairs): Serde<FieldPairs>| {
        let text = serde_saphyr::to_string(&OrderedFields(&pairs));
        text.map(|text| text.trim_end().to_owned())
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
    });
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

/// Names and values, in the order in which they are written.
type FieldPairs = Vec<(String, serde_json::Value)>;

/// Front matter: empty lists are left out, and a list of pairs is a mapping.
struct OrderedFields<'a>(&'a FieldPairs);

impl Serialize for OrderedFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0 {
            let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            match serde_json::from_value::<FieldPairs>(value.clone()) {
                _ if is_empty => {}
                Ok(pairs) => map.serialize_entry(name, &OrderedFields(&pairs))?,
                Err(_) => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

fn rendered(template: &str, context: Value) -> Result<String, String> {
    let environment = ENVIRONMENT.as_ref().map_err(Clone::clone)?;
    let template = environment.get_template(template).map_err(|error| error.to_string())?;
    template.render(context).map_err(|error| format!("{error:#}"))
}

/// Writes entries in a format; entries with the same path are one page.
pub(super) fn render(dialect: &Dialect, entries: &[&Entry]) -> Result<Vec<SourcePage>, String> {
    let is_own = |entry: &&Entry| dialect.only.is_empty() || dialect.only.contains(&entry.kind);
    let entries: Vec<&Entry> = entries.iter().copied().filter(is_own).collect();
    let mut pages: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (number, entry) in entries.iter().enumerate() {
        let view = view(dialect, entry, number)?;
        let path = view.get_attr("path").map_err(|error| error.to_string())?;
        pages.entry(path.to_string()).or_default().push(view);
    }
    let page = |(path, entries): (String, Vec<Value>)| {
        let text = rendered(&dialect.template, context! { entries })?;
        Ok(SourcePage { path: PathBuf::from(path), text })
    };
    let mut pages = pages.into_iter().map(page).collect::<Result<Vec<_>, String>>()?;
    if let Some(index) = &dialect.index {
        pages.push(SourcePage { path: PathBuf::from(index), text: render_index(&entries)? });
    }
    Ok(pages)
}

/// What a template shows of an entry.
fn view(dialect: &Dialect, entry: &Entry, number: usize) -> Result<Value, String> {
    let mut section: BTreeMap<String, &str> = BTreeMap::new();
    for part in &entry.sections {
        section.entry(part.heading.to_lowercase()).or_insert(&part.text);
    }
    let parts = entry.sections.iter();
    let sections = parts.map(|part| context! { heading => &*part.heading, text => &*part.text });
    let facts = entry.section("Casebook").unwrap_or_default().lines();
    let facts: BTreeMap<&str, &str> = facts.filter_map(|line| line.split_once(": ")).collect();
    let numbered = char::from(b'A' + u8::try_from(number % 26).unwrap_or(0));
    let letter = entry.letter().unwrap_or(numbered).to_string();
    let view = context! {
        e => Serde(entry),
        section => Serde(&section),
        sections => sections.collect::<Vec<_>>(),
        facts => Serde(&facts),
        mark => mark::render(entry),
        marked_title => marked_title(entry),
        is_out => assess(entry).is_out(),
        applies => entry.scope.describe(),
        interactions => Serde(&entry.interactions.ids().collect::<Vec<_>>()),
        letter => letter,
    };
    let environment = ENVIRONMENT.as_ref().map_err(Clone::clone)?;
    let path = environment.render_str(&dialect.path, &view);
    let path = path.map_err(|error| format!("{error:#}"))?;
    Ok(context! { path, ..view })
}

/// The title of a row: with the status and risk of the entry, where they matter.
fn marked_title(entry: &Entry) -> String {
    let status = assess(entry).status;
    let is_out = matches!(status, EntryStatus::Refuted | EntryStatus::Superseded);
    let risk = (entry.risk != Risk::Lossless).then(|| entry.risk.name());
    let said: Vec<&str> = is_out.then(|| status.name()).into_iter().chain(risk).collect();
    let title = markdown::cell(&entry.title, CELL_CHARS);
    if said.is_empty() { title } else { format!("{title} [{}]", said.join(", ")) }
}

/// The numbers of entries in the index: the one an entry has elsewhere, or the next.
fn numbers(entries: &[&Entry]) -> Vec<String> {
    let letter = |entry: &Entry| if entry.kind == EntryKind::AntiPattern { 'A' } else { 'O' };
    let own = |entry: &Entry| {
        let is_number = |alias: &&String| {
            alias.strip_prefix(letter(entry)).is_some_and(|n| n.parse::<u32>().is_ok())
        };
        entry.aliases.iter().find(is_number).cloned()
    };
    let mut taken: Vec<String> = entries.iter().filter_map(|entry| own(entry)).collect();
    let mut number_of = |entry: &Entry| {
        own(entry).unwrap_or_else(|| {
            let all = (1_u32..).map(|number| format!("{}{number}", letter(entry)));
            let next = all.into_iter().find(|number| !taken.contains(number));
            let next = next.unwrap_or_default();
            taken.push(next.clone());
            next
        })
    };
    entries.iter().map(|entry| number_of(entry)).collect()
}

/// The index of some entries, and the cross-reference from metric states to them.
pub fn render_index(entries: &[&Entry]) -> Result<String, String> {
    let dialect = &dialects()?.hyper_mla;
    let mut views = Vec::new();
    let mut states: BTreeMap<&String, Vec<String>> = BTreeMap::new();
    for (entry, number) in entries.iter().zip(numbers(entries)) {
        for trigger in entry.triggers.iter().filter(|t| Predicate::parse(t).is_ok()) {
            states.entry(trigger).or_default().push(number.clone());
        }
        views.push(context! { number, ..view(dialect, entry, 0)? });
    }
    rendered(INDEX, context! { entries => views, states => Serde(&states) })
}
