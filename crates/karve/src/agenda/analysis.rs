//! An analysis with recommendations to try: JSON, or the Markdown form of trtllm.
//!
//! Parsed strictly: anything that is not a recommendation, or has an unknown value, is an error
//! with its line, and all errors are reported.

use super::{EXPECTED_RATIO, TITLE_CHARS, knob_values};
use karve_core::agenda::{AgendaItem, ItemAction, ItemEffort};
use karve_core::markdown::{MarkdownSection, numbered_item, sections};
use karve_os::text::one_line;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The expected gain of a recommendation by level, if it does not say.
const LEVELS: [(&str, f64); 3] = [("High", 1.4), ("Medium", 1.15), ("Low", 1.05)];

/// What an analysis says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysis {
    /// What limits the kernel.
    pub bottleneck: String,
    /// The recommendations, each with its line.
    pub items: Vec<(usize, AgendaItem)>,
}

/// Errors, each with its line.
type AnalysisErrors = Vec<(usize, String)>;

/// Parses an analysis, or lists everything that is wrong with it.
pub fn parse(text: &str) -> Result<Analysis, AnalysisErrors> {
    let analysis = match text.trim_start().starts_with(['{', '[']) {
        true => parse_json(text)?,
        false => parse_markdown(text)?,
    };
    match analysis.items.is_empty() {
        true => Err(vec![(1, "it has no recommendation".to_owned())]),
        false => Ok(analysis),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnalysisFile<'a> {
    #[serde(default)]
    bottleneck: String,
    #[serde(default)]
    evidence: String,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

/// One recommendation, as JSON has it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawRecommendation {
    id: Option<String>,
    title: String,
    text: String,
    impact: Option<String>,
    expected_ratio: Option<f64>,
    effort: Option<String>,
    risk: Option<String>,
    needs: Vec<String>,
    when: Vec<String>,
    entry: Option<String>,
    knobs: BTreeMap<String, Value>,
    sweep: bool,
}

fn parse_json(text: &str) -> Result<Analysis, AnalysisErrors> {
    let file: AnalysisFile<'_> =
        serde_json::from_str(text).map_err(|error| vec![(error.line(), without_place(&error))])?;
    let mut faults = AnalysisErrors::new();
    let mut items = Vec::new();
    for (number, raw) in file.items.iter().enumerate() {
        let raw = raw.get();
        let offset = (raw.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let line = 1 + text.get(..offset).map_or(0, |before| before.matches('\n').count());
        match serde_json::from_str::<RawRecommendation>(raw) {
            Err(error) => faults.push((line + error.line().max(1) - 1, without_place(&error))),
            Ok(written) => match item_of(number + 1, written) {
                Ok(item) => items.push((line, item)),
                Err(wrong) => faults.extend(wrong.into_iter().map(|(_, fault)| (line, fault))),
            },
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let bottleneck = match file.evidence.is_empty() {
        true => file.bottleneck,
        false => format!("{} ({})", file.bottleneck, file.evidence),
    };
    Ok(Analysis { bottleneck, items })
}

/// The message without line and column, which are reported relative to the whole file.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// The item of a recommendation, or what is wrong with it, each with its key.
fn item_of(
    number: usize,
    written: RawRecommendation,
) -> Result<AgendaItem, Vec<(&'static str, String)>> {
    let mut faults = Vec::new();
    let mut expected = EXPECTED_RATIO;
    if let Some(name) = &written.impact {
        match level(name) {
            Some(ratio) => expected = ratio,
            None => {
                let name = one_line(name, TITLE_CHARS);
                faults.push(("impact", format!("`{name}` is not High, Medium or Low")));
            }
        }
    }
    let mut degree = |key: &'static str, name: Option<&String>| {
        let Some(name) = name else {
            return ItemEffort::default();
        };
        ItemEffort::by_name(&name.trim().to_lowercase()).unwrap_or_else(|| {
            let name = one_line(name, TITLE_CHARS);
            faults.push((key, format!("the {key} `{name}` is not low, medium or high")));
            ItemEffort::default()
        })
    };
    let effort = degree("effort", written.effort.as_ref());
    let risk = degree("risk", written.risk.as_ref());
    let mut config = BTreeMap::new();
    for (name, value) in &written.knobs {
        match value {
            Value::String(text) => config.insert(name.clone(), text.clone()),
            Value::Number(_) | Value::Bool(_) => config.insert(name.clone(), value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let fault = format!("the value of the knob {name} is not a text or a number");
                faults.push(("knobs", fault));
                None
            }
        };
    }
    let how = match (written.entry, written.knobs.is_empty(), written.sweep) {
        (None, true, false) => ItemAction::Words,
        (Some(entry), true, false) => ItemAction::Entry { entry },
        (None, false, false) => ItemAction::Knobs { config },
        (None, true, true) => ItemAction::Sweep,
        _ => {
            let fault = "only one of entry, knobs and sweep is allowed".to_owned();
            faults.push(("", fault));
            ItemAction::Words
        }
    };
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(AgendaItem {
        id: written.id.unwrap_or_else(|| number.to_string()),
        title: one_line(&written.title, TITLE_CHARS),
        text: written.text,
        expected_ratio: written.expected_ratio.unwrap_or(expected),
        effort,
        risk,
        needs: written.needs,
        when: written.when,
        how,
    })
}

fn level(name: &str) -> Option<f64> {
    let is = |(level, _): &&(&str, f64)| level.eq_ignore_ascii_case(name.trim());
    LEVELS.iter().find(is).map(|(_, ratio)| *ratio)
}

/// The keys below a recommendation of the Markdown form.
const KEYS: [&str; 9] =
    ["id", "expected", "effort", "risk", "needs", "when", "entry", "knobs", "sweep"];

/// A recommendation of the Markdown form, with its line and those of its keys.
struct MarkdownRecommendation {
    line: usize,
    key_lines: BTreeMap<&'static str, usize>,
    written: RawRecommendation,
}

fn parse_markdown(text: &str) -> Result<Analysis, AnalysisErrors> {
    let is_heading = |line: &&str| line.starts_with('#') || is_list(line);
    let (before, parts) = sections(text, |line| Some(line).filter(is_heading));
    let (lists, others): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|part| is_list(part.heading));
    if lists.is_empty() {
        let fault = "there is no section Recommendations, and it is not JSON".to_owned();
        return Err(vec![(1, fault)]);
    }
    let other_lines = others
        .iter()
        .flat_map(|part| [part.heading].into_iter().chain(part.body.iter().map(|(_, line)| *line)));
    let outside = before.iter().map(|(_, line)| *line).chain(other_lines);
    let mut analysis = Analysis {
        bottleneck: outside.filter_map(bottleneck_in).next_back().unwrap_or_default().to_owned(),
        items: Vec::new(),
    };
    let mut faults = AnalysisErrors::new();
    let mut found: Vec<MarkdownRecommendation> = Vec::new();
    for (number, line) in lists.iter().flat_map(MarkdownSection::filled) {
        let fault = if let Some((id, rest)) = numbered_item(line) {
            let (recommendation, fault) = MarkdownRecommendation::new(number, id, rest);
            found.push(recommendation);
            fault
        } else if !line.starts_with([' ', '\t']) {
            Some("this is not a recommendation like \"1. [High] unroll the inner loop\"".to_owned())
        } else {
            found.last_mut().and_then(|recommendation| recommendation.add(number, line.trim()))
        };
        faults.extend(fault.map(|fault| (number, fault)));
    }
    for (number, MarkdownRecommendation { line, key_lines, written }) in
        found.into_iter().enumerate()
    {
        match item_of(number + 1, written) {
            Ok(item) => analysis.items.push((line, item)),
            Err(wrong) => {
                let line_of = |key: &str| key_lines.get(key).copied().unwrap_or(line);
                faults.extend(wrong.into_iter().map(|(key, fault)| (line_of(key), fault)));
            }
        }
    }
    faults.sort_by_key(|(line, _)| *line);
    if faults.is_empty() { Ok(analysis) } else { Err(faults) }
}

impl MarkdownRecommendation {
    /// The first line of a recommendation, and what is wrong with it.
    fn new(line: usize, id: &str, rest: &str) -> (Self, Option<String>) {
        let levelled = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (impact, title) = match levelled {
            Some((level, title)) => (Some(level.to_owned()), title.trim()),
            None => (None, rest),
        };
        let fault = "a recommendation starts with [High], [Medium] or [Low]".to_owned();
        let fault = impact.is_none().then_some(fault);
        let written = RawRecommendation {
            id: Some(id.to_owned()),
            title: title.to_owned(),
            text: title.to_owned(),
            impact,
            ..RawRecommendation::default()
        };
        (Self { line, key_lines: BTreeMap::new(), written }, fault)
    }

    /// A line below it: one of its keys, or more text. Returns what is wrong with the line.
    fn add(&mut self, number: usize, line: &str) -> Option<String> {
        let written = &mut self.written;
        let item = line.strip_prefix(['-', '*']).and_then(|item| item.split_once(':'));
        let Some((key, value)) = item else {
            written.text.push('\n');
            written.text.push_str(line);
            return None;
        };
        let (key, value) = (key.trim().to_lowercase(), value.trim());
        let Some(key) = KEYS.into_iter().find(|known| *known == key) else {
            let key = one_line(&key, TITLE_CHARS);
            let (last, others) = KEYS.split_last()?;
            return Some(format!("`{key}` is not one of {} and {last}", others.join(", ")));
        };
        let shown = || one_line(value, TITLE_CHARS);
        self.key_lines.insert(key, number);
        match key {
            "id" => written.id = Some(value.to_owned()),
            "expected" => match value.trim_end_matches('x').parse() {
                Ok(ratio) => written.expected_ratio = Some(ratio),
                Err(_) => return Some(format!("`{}` is not a speedup such as 1.2x", shown())),
            },
            "effort" => written.effort = Some(value.to_owned()),
            "risk" => written.risk = Some(value.to_owned()),
            "needs" => written.needs = list_of(value),
            "when" => written.when.push(value.trim_matches('`').to_owned()),
            "entry" => written.entry = Some(value.to_owned()),
            "knobs" => match knob_values(value) {
                Some(knobs) => {
                    let knobs = knobs.into_iter();
                    written.knobs = knobs.map(|(name, value)| (name, value.into())).collect();
                }
                None => return Some(format!("`{}` does not look like TILE=16,UNROLL=4", shown())),
            },
            _ => written.sweep = value == "yes" || value == "true",
        }
        None
    }
}

/// A line without the marks of a heading or of emphasis.
fn unmarked(line: &str) -> &str {
    line.trim().trim_matches(['#', '*', ':', ' ', '-']).trim()
}

/// Whether a line is the heading of the recommendations.
fn is_list(line: &str) -> bool {
    unmarked(line).eq_ignore_ascii_case("recommendations")
}

/// What a line says about the bottleneck.
fn bottleneck_in(line: &str) -> Option<&str> {
    let (key, said) = unmarked(line).split_once(':')?;
    let key = key.trim().trim_matches('*').to_lowercase();
    let named = key == "primary bottleneck" || key == "bottleneck";
    named.then(|| said.trim().trim_matches('*').trim())
}

/// The parts between commas.
fn list_of(text: &str) -> Vec<String> {
    let parts = text.split(',').map(|part| part.trim().to_owned());
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKDOWN: &str = "# Analysis\n\nPrimary bottleneck: memory-bound\nEvidence: dram 85%\n\n\
        ## Recommendations\n\n1. [High] Walk rows first (l1_miss_pct=9)\n   - effort: low\n   \
        - expected: 1.8x\n   - when: l1_miss_pct > 4\n2. [Low] Unroll four times\n   the inner \
        loop\n   - needs: 1\n   - knobs: UNROLL=4\n\n## Remarks\n\nnone\n";

    #[test]
    fn the_markdown_form_is_read_with_its_keys() {
        let analysis = parse(MARKDOWN).unwrap();
        assert_eq!(analysis.bottleneck, "memory-bound");
        let [(8, first), (12, second)] = &analysis.items[..] else {
            panic!("{:?}", analysis.items);
        };
        assert_eq!((first.id.as_str(), first.effort), ("1", ItemEffort::Low));
        assert_eq!((first.expected_ratio, first.when.len()), (1.8, 1));
        assert_eq!(second.text, "Unroll four times\nthe inner loop");
        assert_eq!((second.expected_ratio, &second.needs[..]), (1.05, &["1".to_owned()][..]));
        let config = [("UNROLL".to_owned(), "4".to_owned())].into();
        assert_eq!(second.how, ItemAction::Knobs { config });
    }

    #[test]
    fn the_json_form_says_the_same() {
        let text = r#"{"bottleneck": "memory", "evidence": "dram 85%", "items": [
            {"id": "rows", "title": "Walk rows first", "impact": "High", "effort": "low"},
            {"title": "Unroll", "expected_ratio": 1.1, "needs": ["rows"], "knobs": {"UNROLL": 4}},
            {"title": "Tune", "sweep": true}]}"#;
        let analysis = parse(text).unwrap();
        assert_eq!(analysis.bottleneck, "memory (dram 85%)");
        let ids: Vec<&str> = analysis.items.iter().map(|(_, i)| i.id.as_str()).collect();
        assert_eq!(ids, ["rows", "2", "3"]);
        assert!((analysis.items[0].1.expected_ratio - 1.4).abs() < 1e-9);
        assert_eq!(analysis.items[2].1.how, ItemAction::Sweep);
    }

    #[track_caller]
    fn check(text: &str, want: &[(usize, &str)]) {
        let faults = parse(text).unwrap_err();
        assert_eq!(faults.len(), want.len(), "{faults:?}");
        for ((line, fault), (at, part)) in faults.iter().zip(want) {
            assert!(line == at && fault.contains(part), "{faults:?}");
        }
    }

    #[test]
    fn every_fault_is_told_with_its_line() {
        check("", &[(1, "no section Recommendations")]);
        check("Recommendations:\n", &[(1, "no recommendation")]);
        check(
            "Recommendations:\n1. Unroll\n2. [Huge] x\nso what\n3. [Low] y\n   - cost: 3\n   \
             - effort: some\n   - expected: much\n   - knobs: UNROLL\n",
            &[
                (2, "[High]"),
                (3, "`Huge`"),
                (4, "not a recommendation like"),
                (6, "`cost`"),
                (7, "`some`"),
                (8, "`much`"),
                (9, "`UNROLL`"),
            ],
        );
        check(
            "# Analysis\n## Recommendations\n1. [Hihg] rows first\n   more words\n   \
             - effort: tiny\n2. Unroll\n   - expected: much\n",
            &[(3, "`Hihg`"), (5, "`tiny`"), (6, "[High]"), (7, "`much`")],
        );
        check("Recommendations:\n1. [Low] y\n   - entry: e\n   - sweep: yes\n", &[(2, "only one")]);
        check(
            "{\"items\": [\n{\"title\": 3},\n{\"titel\": \"x\"},\n{\"impact\": \"no\"}]}",
            &[(2, "invalid type"), (3, "unknown field"), (4, "`no`")],
        );
        check("{\"items\": [\n", &[(2, "EOF")]);
        check("{\"item\": []}", &[(1, "unknown field")]);
    }
}
