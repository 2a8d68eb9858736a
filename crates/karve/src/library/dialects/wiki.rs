//! The tilegym wiki pages, with dated and scoped claims, and its playbook of lettered sections.

use super::{SourcePage, mark, slug, triggers_in};
use crate::library::markdown::{front_matter_error, parse_sections, split_front_matter};
use karve_core::knowledge::{Entry, EntryBasis, EntryKind, EntrySection, Evidence, Impact, Scope};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::PathBuf;

/// The front matter of a wiki page.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct WikiFrontMatter {
    title: String,
    kind: String,
    basis: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arch: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    language: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kernels: Vec<String>,
}

pub(super) fn parse(page: &SourcePage) -> Result<Entry, String> {
    let (head, body) = split_front_matter(&page.text)?;
    let head: WikiFrontMatter =
        serde_saphyr::from_str(head).map_err(|error| front_matter_error(head, &error))?;
    let (heading, sections) = parse_sections(body);
    let title = if head.title.is_empty() { heading } else { head.title };
    if title.is_empty() {
        return Err("there is no title".to_owned());
    }
    let stem = page.path.file_stem().map(|stem| slug(&stem.to_string_lossy()));
    let evidence: Vec<Evidence> =
        sections.iter().flat_map(|section| section.text.lines()).filter_map(dated_claim).collect();
    let all: String = sections.iter().map(|s| format!("{}\n", s.text)).collect();
    let mut entry = Entry {
        id: stem.filter(|id| !id.is_empty()).unwrap_or_else(|| slug(&title)),
        kind: match head.kind.as_str() {
            "pattern" => EntryKind::AntiPattern,
            "kernel" | "reference" => EntryKind::Case,
            "language" => EntryKind::Technique,
            _ => EntryKind::Optimization,
        },
        title,
        basis: match head.basis.as_str() {
            "source-semantics" => EntryBasis::SourceSemantics,
            "measured" => EntryBasis::Measured,
            "single-observation" => EntryBasis::SingleObservation,
            _ => EntryBasis::Reported,
        },
        scope: Scope {
            device: head.arch,
            language: head.language,
            op: head.kernels,
            ..Scope::default()
        },
        triggers: triggers_in(&all),
        date: evidence.last().map(|e| e.date.clone()).unwrap_or_default(),
        evidence,
        sections,
        ..Entry::default()
    };
    if let Some(mark) = mark::of_page(body) {
        mark.put(&mut entry);
    }
    Ok(entry)
}

/// A bullet that carries `[YYYY-MM, arch, toolkit, N=k]` and names a ratio such as `1.30x`.
fn dated_claim(line: &str) -> Option<Evidence> {
    let (claim, rest) = line.split_once('[')?;
    let (mark, _) = rest.split_once(']')?;
    let parts: Vec<&str> = mark.split(',').map(str::trim).collect();
    let [date, arch, toolkit, n] = parts.as_slice() else {
        return None;
    };
    let ratio = claim.split([' ', '(', ')', ',']).find_map(|word| {
        let digits = word.strip_suffix('x').or_else(|| word.strip_suffix('×'))?;
        digits.parse::<f64>().ok().filter(|r| r.is_finite() && *r > 0.0)
    })?;
    Some(Evidence {
        metric: "time".into(),
        ratio,
        device: (*arch).to_owned(),
        toolchain: (*toolkit).to_owned(),
        date: (*date).to_owned(),
        n: n.strip_prefix("N=")?.trim().parse().ok()?,
        workload: claim.trim().trim_start_matches(['-', '*', ' ']).chars().take(200).collect(),
        run: format!("wiki [{mark}]"),
        ..Evidence::default()
    })
}

pub(super) fn render(entry: &Entry) -> Result<SourcePage, String> {
    let head = WikiFrontMatter {
        title: entry.title.clone(),
        kind: match entry.kind {
            EntryKind::AntiPattern => "pattern".into(),
            EntryKind::Case => "kernel".into(),
            EntryKind::Tip | EntryKind::Optimization | EntryKind::Technique => "technique".into(),
        },
        basis: match entry.basis {
            EntryBasis::Reported => "ungraded-batch-1".into(),
            other => other.name().into(),
        },
        arch: entry.scope.device.clone(),
        language: entry.scope.language.clone(),
        kernels: entry.scope.op.clone(),
    };
    let folder = head.kind.clone();
    let head = serde_saphyr::to_string(&head).map_err(|error| error.to_string())?;
    let (head, mark) = (head.trim_end(), mark::render(entry));
    let mut text = format!("---\n{head}\n---\n\n# {}\n\n{mark}\n", entry.title);
    for section in &entry.sections {
        let _ = write!(text, "\n## {}\n\n{}\n", section.heading, section.text.trim());
    }
    let reported = |e: &&Evidence| !entry.sections.iter().any(|s| s.text.contains(&e.workload));
    let new: Vec<&Evidence> = entry.evidence.iter().filter(reported).collect();
    if !new.is_empty() {
        text.push_str("\n## Evidence\n\n");
    }
    for e in new {
        let month: String = e.date.chars().take(7).collect();
        let _ = writeln!(
            text,
            "- {} {:.3}x [{month}, {}, {}, N={}]",
            e.workload,
            e.ratio,
            e.device.replace([',', ']'], " "),
            e.toolchain.replace([',', ']'], " "),
            e.n
        );
    }
    Ok(SourcePage { path: PathBuf::from(folder).join(format!("{}.md", entry.id)), text })
}

/// A heading such as `## B. Persistent kernel (+50–300%)`.
pub(super) fn parse_playbook(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let lettered = (!fenced).then(|| lettered(line)).flatten();
        if let Some((letter, title)) = lettered {
            entries.push(of_heading(letter, title));
        } else if let Some(section) = entries.last_mut().and_then(|e| e.sections.last_mut()) {
            section.text.push_str(line);
            section.text.push('\n');
        }
    }
    for entry in &mut entries {
        let text = entry.sections[0].text.trim().to_owned();
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let mark = mark::parse(first);
        let text = if mark.is_some() { rest.trim() } else { &text };
        entry.triggers = triggers_in(text);
        entry.sections[0].text = text.to_owned();
        if let Some(mark) = mark {
            mark.put(entry);
        }
    }
    if entries.is_empty() {
        return Err("there is no section such as \"## A. name\"".to_owned());
    }
    Ok(entries)
}

fn lettered(line: &str) -> Option<(char, &str)> {
    let rest = line.strip_prefix("##")?.trim_start_matches('#').trim_start();
    let mut chars = rest.chars();
    let letter = chars.next().filter(char::is_ascii_uppercase)?;
    let title = chars.as_str();
    let title = title.strip_prefix('.').or_else(|| title.strip_prefix(':'))?;
    Some((letter, title.trim()))
}

fn of_heading(letter: char, title: &str) -> Entry {
    Entry {
        id: slug(&format!("playbook {letter} {title}")),
        title: title.chars().take(100).collect(),
        aliases: vec![format!("playbook-{letter}")],
        impact: impact_in(title),
        sections: vec![EntrySection { heading: "Recipe".into(), text: String::new() }],
        ..Entry::default()
    }
}

/// `+50–300%` or `2–78x` in a heading.
fn impact_in(title: &str) -> Option<Impact> {
    let plain = title.replace(['–', '—'], "-").replace(['(', ')', '~', '+'], " ");
    plain.split_whitespace().find_map(|word| {
        let (range, percent) = match word.strip_suffix('%') {
            Some(range) => (range, true),
            None => (word.strip_suffix(['x', '×'])?, false),
        };
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let ratio = |text: &str| -> Option<f64> {
            let value: f64 = text.parse().ok()?;
            Some(if percent { 1.0 + value / 100.0 } else { value })
        };
        let (low, high) = (ratio(low)?, ratio(high)?);
        (low > 0.0 && low <= high && high.is_finite()).then_some(Impact { low, high })
    })
}

pub(super) fn render_playbook(entries: &[&Entry]) -> SourcePage {
    let mut text = "# Playbook\n".to_owned();
    for (number, entry) in entries.iter().enumerate() {
        let own = entry.aliases.iter().find_map(|a| a.strip_prefix("playbook-"));
        let letter = own.map_or_else(|| letter_of(number), str::to_owned);
        let impact = entry.impact.map_or_else(String::new, |i| {
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            format!(" (+{:.0}-{:.0}%)", percent(i.low), percent(i.high))
        });
        let titled = entry.title.contains(['%', '×']);
        let impact = if titled { "" } else { &impact };
        let _ = write!(text, "\n## {letter}. {}{impact}\n\n", entry.title);
        let _ = writeln!(text, "{}", mark::render(entry));
        for trigger in &entry.triggers {
            let _ = write!(text, "\n- when `{trigger}`");
        }
        // The reason for a retraction is in its mark.
        let reported = entry.sections.iter().filter(|s| s.heading != mark::RETRACTED);
        for section in reported {
            let _ = write!(text, "\n\n{}", section.text.trim());
        }
        text.push('\n');
    }
    SourcePage { path: PathBuf::from("playbook.md"), text }
}

fn letter_of(number: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(number % 26).unwrap_or(0));
    letter.to_string()
}
