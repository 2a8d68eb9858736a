//! Reads the formats of the published workflows, as `data/dialects.toml` maps them to entries.

use super::facts::FactList;
use super::wiki::{check_sections, claim_mark, section, with_own_fields};
use super::{Dialect, EvidencePlace, SourcePage, mark, slug, triggers_in};
use crate::library::markdown::{front_matter_error, parse_sections};
use karve_core::knowledge::{
    Entry, EntryBasis, EntryKind, EntrySection, EntryStatus, Evidence, Impact, Interactions,
    Retraction, Risk, Scope,
};
use karve_core::markdown::{MarkdownSection, cells, is_rule, sections, split_front_matter};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The fields of a tip.
const FIELDS: [&str; 4] = ["Context", "Signal", "Takeaway", "Applicability"];
/// The section with a table of figures.
const EVIDENCE: &str = "Performance Evidence";
/// Any other word of a format.
const ANY: &str = "*";
/// The word for a change that was rolled back.
const ROLLED_BACK: &str = "ROLLED BACK";
/// What stands for a fact that a format does not have.
const NOT_REPORTED: &str = "not reported";

/// The front matter of a page, by all the names that formats have for a field.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageFrontMatter {
    id: String,
    title: String,
    kind: String,
    basis: String,
    maturity: String,
    accuracy_risk: String,
    #[serde(alias = "arch")]
    architectures: Vec<String>,
    language: Vec<String>,
    kernels: Vec<String>,
    phase: Vec<String>,
    interactions: Interactions,
    measured: Option<PageMeasurement>,
    family: String,
    bottleneck: String,
    signals: Vec<String>,
    model_scope: FactList,
    patterns: FactList,
    apply_via_kind: FactList,
    knobs: FactList,
    specialists: FactList,
    commits: FactList,
    log_markers: FactList,
    eligibility: FactList,
    /// What the format has no field for: the entry, as karve wrote it.
    karve: Option<Box<Entry>>,
}

impl PageFrontMatter {
    /// What a case says besides the fields of an entry, by the names of the format.
    fn facts(&self) -> Vec<String> {
        let lists = [
            ("model_scope", &self.model_scope),
            ("patterns", &self.patterns),
            ("apply_via_kind", &self.apply_via_kind),
            ("knobs", &self.knobs),
            ("specialists", &self.specialists),
            ("commits", &self.commits),
            ("log_markers", &self.log_markers),
            ("eligibility", &self.eligibility),
        ];
        let told = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let told = told.map(|(name, list)| format!("{name}: {}", list.line()));
        let own = [
            format!("family: {}", self.family),
            format!("maturity: {}", self.maturity),
            format!("bottleneck: {}", self.bottleneck),
            format!("signals: {}", self.signals.join(", ")),
        ];
        own.into_iter().chain(told).collect()
    }
}

/// The figures of a case: either all of them are present or none.
#[derive(Debug, Default, Deserialize)]
struct PageMeasurement {
    metric: String,
    value: String,
    gpu: String,
    workload: String,
    run_ref: String,
    date: String,
}

fn parts_of(path: &Path) -> Vec<String> {
    path.iter().map(|part| part.to_string_lossy().into_owned()).collect()
}

/// The word of an entry for a word of a format.
fn translated<T: Copy>(words: &BTreeMap<String, T>, word: &str) -> Option<T> {
    words.get(word).or_else(|| words.get(ANY)).copied()
}

/// Reads a page with one entry.
pub(super) fn parse_page(dialect: &Dialect, page: &SourcePage) -> Result<Entry, String> {
    let (head, body) = match dialect.front_matter {
        true => {
            let (head, body) = split_front_matter(&page.text)?;
            let read = serde_saphyr::from_str(head);
            (read.map_err(|error| front_matter_error(head, &error))?, body)
        }
        false => (front_of_path(dialect, &page.path), page.text.as_str()),
    };
    let (heading, sections) = parse_sections(body);
    if head.karve.is_none() {
        check_sections(dialect, &sections)?;
    }
    let titles = [&head.title, &heading, &head.id];
    let title = titles.into_iter().find(|title| !title.is_empty());
    let title = title.ok_or("there is no title: a line \"# name\"")?.clone();
    let stem = page.path.file_stem().map(|stem| slug(&stem.to_string_lossy()));
    let ids = [Some(slug(&head.id)), stem, Some(slug(&title))];
    let id = ids.into_iter().flatten().find(|id| !id.is_empty()).unwrap_or_default();
    let evidence = evidence_in(dialect, &sections, &head, &id);
    let measured_on = head.measured.as_ref().map(|measured| measured.date.clone());
    let last = || evidence.last().map(|evidence| evidence.date.clone());
    let in_words: Vec<&EntrySection> = match &dialect.triggers {
        Some(heading) => section(&sections, heading).into_iter().collect(),
        None => sections.iter().collect(),
    };
    let in_words: Vec<&str> = in_words.iter().map(|section| section.text.as_str()).collect();
    let triggers = triggers_in(&in_words.join("\n"));
    let basis = basis_word(dialect, &sections, &head);
    let counter = dialect.counter_signals.as_deref();
    let counter = counter.and_then(|heading| section(&sections, heading));
    let counter_signals = counter.map(|section| bullets(&section.text)).unwrap_or_default();
    let sections = translated_sections(dialect, sections, &head);
    let aliases = dialect.kept_kinds.get(&head.kind).into_iter().cloned().collect();
    let own = head.karve;
    let entry = Entry {
        kind: translated(&dialect.kinds, &head.kind).unwrap_or_default(),
        basis: translated(&dialect.bases, &basis).unwrap_or_default(),
        risk: translated(&dialect.risks, &head.accuracy_risk).unwrap_or_default(),
        scope: Scope {
            device: head.architectures,
            language: head.language,
            op: head.kernels,
            phase: head.phase,
            ..Scope::default()
        },
        triggers,
        counter_signals,
        interactions: head.interactions,
        date: measured_on.or_else(last).unwrap_or_default(),
        evidence,
        sections,
        id,
        title,
        aliases,
        ..Entry::default()
    };
    let entry = own.map_or_else(|| entry.clone(), |own| with_own_fields(*own, &entry));
    let mut above = body.lines().take_while(|line| !line.starts_with("## "));
    Ok(above.find_map(|line| mark::marked(&entry, line)).unwrap_or(entry))
}

/// What the path of a page without front matter says: a directory names the kind, and
/// `languages/<language>/` the language.
fn front_of_path(dialect: &Dialect, path: &Path) -> PageFrontMatter {
    let parts = parts_of(path);
    let kind = parts.iter().find(|part| dialect.kinds.contains_key(*part));
    let at = parts.iter().position(|part| part == "languages");
    let language = at.and_then(|at| parts.get(at + 1)).cloned();
    PageFrontMatter {
        kind: kind.cloned().unwrap_or_default(),
        language: language.into_iter().collect(),
        ..PageFrontMatter::default()
    }
}

/// The word for the basis of a page: in its front matter, or a phrase of its evidence.
fn basis_word(dialect: &Dialect, sections: &[EntrySection], head: &PageFrontMatter) -> String {
    let words = [&head.maturity, &head.basis];
    if let Some(word) = words.into_iter().find(|word| !word.is_empty()) {
        return word.clone();
    }
    let shown = section(sections, EVIDENCE).map(|section| section.text.to_lowercase());
    let shown = shown.unwrap_or_default();
    let phrase = dialect.bases.keys().find(|phrase| *phrase != ANY && shown.contains(*phrase));
    phrase.cloned().unwrap_or_default()
}

/// The sections under our headings, without those that are fields of an entry, and with the facts
/// that no field can store.
fn translated_sections(
    dialect: &Dialect,
    mut sections: Vec<EntrySection>,
    head: &PageFrontMatter,
) -> Vec<EntrySection> {
    sections.retain(|section| Some(&section.heading) != dialect.counter_signals.as_ref());
    for section in &mut sections {
        let mut names = dialect.headings.iter();
        let ours = names.find(|(theirs, _)| section.heading.eq_ignore_ascii_case(theirs));
        if let Some((_, heading)) = ours {
            section.heading.clone_from(heading);
        }
    }
    if let Some(heading) = &dialect.facts {
        let facts = head.facts();
        sections.push(EntrySection { heading: heading.clone(), text: facts.join("\n") });
    }
    sections
}

fn bullets(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches(['-', '*', ' ']));
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The figures of a page, where its format puts them.
fn evidence_in(
    dialect: &Dialect,
    sections: &[EntrySection],
    head: &PageFrontMatter,
    id: &str,
) -> Vec<Evidence> {
    match dialect.evidence {
        EvidencePlace::FrontMatter => head.measured.iter().filter_map(measured).collect(),
        EvidencePlace::Table => {
            let shown = section(sections, EVIDENCE).map_or("", |section| &section.text);
            let rows = shown.lines().filter_map(cells).filter(|cells| !is_rule(cells));
            rows.filter_map(|cells| table_row(&cells, id)).collect()
        }
        EvidencePlace::Claims => {
            let lines = sections.iter().flat_map(|section| section.text.lines());
            lines.filter_map(dated_claim).collect()
        }
    }
}

fn positive(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)
}

/// A ratio such as `1.23x` or `+12.5%`.
fn ratio_in(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => Some(1.0 + percent.trim().parse::<f64>().ok()? / 100.0),
        None => positive(text.strip_suffix(['x', '×'])?),
    }
}

/// The figures of a case; a value that is not a ratio is not usable.
fn measured(measured: &PageMeasurement) -> Option<Evidence> {
    let ratio = ratio_in(measured.value.trim())?;
    (ratio.is_finite() && ratio > 0.0).then(|| Evidence {
        metric: measured.metric.clone(),
        ratio,
        device: measured.gpu.clone(),
        workload: measured.workload.clone(),
        run: measured.run_ref.clone(),
        date: measured.date.clone(),
        n: 1,
        toolchain: NOT_REPORTED.into(),
        ..Evidence::default()
    })
}

/// A row `Config | Before | After | Change`; a row whose cells are not numbers stays text. One that
/// only gives the change, such as `1.25x`, has neither before nor after.
fn table_row(cells: &[String], id: &str) -> Option<Evidence> {
    let [config, before, after, change @ ..] = cells else {
        return None;
    };
    let number = |cell: &str| positive(cell.split_whitespace().next()?);
    let (was, is, ratio) = match (number(before), number(after)) {
        (Some(was), Some(is)) => (was, is, was / is),
        _ => (0.0, 0.0, positive(change.first()?.strip_suffix('x')?)?),
    };
    Some(Evidence {
        metric: before.split_whitespace().nth(1).unwrap_or("time").to_owned(),
        before: was,
        after: is,
        ratio,
        workload: config.clone(),
        run: format!("page {id}"),
        device: NOT_REPORTED.into(),
        toolchain: NOT_REPORTED.into(),
        n: 1,
        ..Evidence::default()
    })
}

/// A bullet that carries `[YYYY-MM, arch, toolkit, N=k]` and names a ratio such as `1.30x`.
fn dated_claim(line: &str) -> Option<Evidence> {
    let (claim, mark) = claim_mark(line)?;
    let parts: Vec<&str> = mark.split(',').map(str::trim).collect();
    let [date, arch, toolkit, n] = parts.as_slice() else {
        return None;
    };
    let mut words = claim.split([' ', '(', ')', ',']);
    Some(Evidence {
        metric: "time".into(),
        ratio: words.find_map(|word| positive(word.strip_suffix(['x', '×'])?))?,
        device: (*arch).to_owned(),
        toolchain: (*toolkit).to_owned(),
        date: (*date).to_owned(),
        n: n.strip_prefix("N=")?.trim().parse().ok()?,
        workload: claim.trim().trim_start_matches(['-', '*', ' ']).chars().take(200).collect(),
        run: format!("wiki [{mark}]"),
        ..Evidence::default()
    })
}

/// Reads the rows of an index.
pub(super) fn parse_index(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    let mut kind = EntryKind::Optimization;
    for cells in text.lines().filter_map(cells).filter(|cells| !is_rule(cells)) {
        match cells.as_slice() {
            [id, second, ..] if id == "ID" => {
                kind = match second.as_str() {
                    "Anti-Pattern" => EntryKind::AntiPattern,
                    _ => EntryKind::Optimization,
                };
            }
            [alias, title, when, _, .., file] => {
                let heading = match kind {
                    EntryKind::AntiPattern => "Failure mode",
                    _ => "When to apply",
                };
                let (title, status, risk) = unmarked(title);
                let file = file.trim_matches(['`', '[', ']']);
                let stem = Path::new(file.split(['(', ']']).next().unwrap_or(file)).file_stem();
                let id = stem.map(|stem| slug(&stem.to_string_lossy())).unwrap_or_default();
                entries.push(Entry {
                    id: if id.is_empty() { slug(title) } else { id },
                    kind,
                    status,
                    risk,
                    title: title.to_owned(),
                    aliases: vec![alias.to_owned()],
                    triggers: triggers_in(when),
                    sections: vec![EntrySection { heading: heading.into(), text: when.clone() }],
                    ..Entry::default()
                });
            }
            _ => {}
        }
    }
    match entries.is_empty() {
        true => Err("the index has no rows".to_owned()),
        false => Ok(entries),
    }
}

/// A title with the status and risk of its entry; brackets with other words are part of the title.
fn unmarked(title: &str) -> (&str, EntryStatus, Risk) {
    let plain = (title, EntryStatus::default(), Risk::default());
    let Some((own, said)) = title.strip_suffix(']').and_then(|t| t.rsplit_once(" [")) else {
        return plain;
    };
    let mut read = (own, EntryStatus::default(), Risk::default());
    for word in said.split(", ") {
        match (EntryStatus::by_name(word), Risk::by_name(word)) {
            (Some(status), _) => read.1 = status,
            (None, Some(risk)) => read.2 = risk,
            (None, None) => return plain,
        }
    }
    read
}

/// Reads the tips of `<device>/<op>/<backend>/tips.md`, one section per round.
pub(super) fn parse_tips(page: &SourcePage) -> Result<Vec<Entry>, String> {
    let parts = page.path.parent().map(parts_of).unwrap_or_default();
    let word = |part: &String| vec![part.to_lowercase()];
    let scope = match parts.as_slice() {
        [.., device, op, backend] => {
            Scope { device: word(device), op: word(op), backend: word(backend), ..Scope::default() }
        }
        _ => Scope::default(),
    };
    let (_, parts) = sections(&page.text, |line| line.strip_prefix("### "));
    if parts.is_empty() {
        return Err("there is no tip: a line \"### <time> round-N — ACCEPTED\"".to_owned());
    }
    let tips = parts.iter().enumerate();
    Ok(tips.map(|(number, part)| tip(part, &scope, number + 1)).collect())
}

fn tip(part: &MarkdownSection<'_>, scope: &Scope, number: usize) -> Entry {
    let mut fields: BTreeMap<&str, String> = BTreeMap::new();
    let mut current = "";
    // A line without the name of a field belongs to the field before it.
    for (_, line) in part.filled() {
        let plain = line.trim().trim_start_matches(['-', '*', ' ']).replace("**", "");
        let named = plain.split_once(':').and_then(|(name, text)| {
            let field = FIELDS.iter().find(|field| **field == name.trim_end())?;
            Some((*field, text.trim().to_owned()))
        });
        if let Some((field, text)) = named {
            current = field;
            fields.insert(field, text);
        } else if let Some(text) = fields.get_mut(current) {
            text.push(' ');
            text.push_str(line.trim());
        }
    }
    let field = |name: &str| fields.get(name).cloned();
    let heading = part.heading;
    let date: String = heading.chars().take(10).collect();
    let is_date = date.len() == 10 && date.chars().all(|c| c.is_ascii_digit() || c == '-');
    let date = if is_date { date } else { String::new() };
    // A rolled-back tip is titled by what was tried, and the lesson is the reason.
    let rolled_back = heading.contains(ROLLED_BACK);
    let (first, second) =
        if rolled_back { ("Context", "Takeaway") } else { ("Takeaway", "Context") };
    let title = field(first).or(field(second)).unwrap_or_else(|| heading.to_owned());
    let texts = FIELDS.iter().filter_map(|name| Some((*name, field(name)?)));
    let texts = texts.chain([("Source", heading.to_owned())]);
    let place = [&scope.device, &scope.op, &scope.backend].map(|words| words.join("-"));
    let why = format!("rolled back: {}", field("Takeaway").unwrap_or_default());
    let entry = Entry {
        id: slug(&format!("tip {} {number} {heading}", place.join(" "))),
        kind: EntryKind::Tip,
        title: title.chars().take(100).collect(),
        basis: EntryBasis::SingleObservation,
        scope: scope.clone(),
        status: if rolled_back { EntryStatus::Refuted } else { EntryStatus::Candidate },
        retracted: rolled_back.then(|| Retraction { date: date.clone(), why }),
        date,
        sections: texts
            .map(|(heading, text)| EntrySection { heading: heading.to_owned(), text })
            .collect(),
        ..Entry::default()
    };
    let mark = part.body.first().and_then(|(_, line)| mark::marked(&entry, line));
    mark.unwrap_or(entry)
}

/// Reads a playbook: sections such as `## B. Persistent kernel (+50–300%)`.
pub(super) fn parse_playbook(text: &str) -> Result<Vec<Entry>, String> {
    let (_, parts) = sections(text, |line| lettered(line).map(|_| line));
    if parts.is_empty() {
        return Err("there is no section such as \"## A. name\"".to_owned());
    }
    let entry = |part: &MarkdownSection<'_>| {
        let (letter, title) = lettered(part.heading)?;
        let text = part.text().trim().to_owned();
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let is_marked = mark::marked(&Entry::default(), first).is_some();
        let text = if is_marked { rest.trim() } else { &text };
        let entry = Entry {
            id: slug(&format!("playbook {letter} {title}")),
            title: title.chars().take(100).collect(),
            aliases: vec![format!("playbook-{letter}")],
            impact: impact_in(title),
            triggers: triggers_in(text),
            sections: vec![EntrySection { heading: "Recipe".into(), text: text.to_owned() }],
            ..Entry::default()
        };
        Some(mark::marked(&entry, first).unwrap_or(entry))
    };
    Ok(parts.iter().filter_map(entry).collect())
}

fn lettered(line: &str) -> Option<(char, &str)> {
    let rest = line.strip_prefix("##")?.trim_start_matches('#').trim_start();
    let mut chars = rest.chars();
    let letter = chars.next().filter(char::is_ascii_uppercase)?;
    Some((letter, chars.as_str().strip_prefix(['.', ':'])?.trim()))
}

/// `+50–300%` or `2–78x` in a heading.
fn impact_in(title: &str) -> Option<Impact> {
    let plain = title.replace(['–', '—'], "-").replace(['(', ')', '~', '+'], " ");
    plain.split_whitespace().find_map(|word| {
        let unit = word.chars().next_back().filter(|unit| ['%', 'x', '×'].contains(unit))?;
        let range = word.strip_suffix(unit)?;
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let ratio = |text: &str| ratio_in(&format!("{text}{unit}"));
        let (low, high) = (ratio(low)?, ratio(high)?);
        (low > 0.0 && low <= high && high.is_finite()).then_some(Impact { low, high })
    })
}
