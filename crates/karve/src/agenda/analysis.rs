//! An analysis with recommendations to try: JSON, or the Markdown form of trtllm.
//!
//! Parsed strictly: anything that is not a recommendation, or has an unknown value, is an error
//! with its line, and all errors are reported.

use super::{EXPECTED_RATIO, TITLE_CHARS, knob_values};
use karve_core::agenda::{AgendaItem, ItemAction, ItemEffort};
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
                Err(wrong) => faults.extend(wrong.into_iter().map(|fault| (line, fault))),
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

fn item_of(number: usize, written: RawRecommendation) -> Result<AgendaItem, Vec<String>> {
    let mut faults = Vec::new();
    let named = written.impact.as_deref();
    let level = named.map(|name| level(name).ok_or_else(|| no_level(name)));
    let expected = match level.transpose() {
        Ok(level) => level.unwrap_or(EXPECTED_RATIO),
        Err(fault) => {
            faults.push(fault);
            EXPECTED_RATIO
        }
    };
    let effort = match written.effort.as_deref().map(|name| (name, ItemEffort::by_name(name))) {
        None => ItemEffort::default(),
        Some((_, Some(effort))) => effort,
        Some((name, None)) => {
            faults.push(no_effort(name));
            ItemEffort::default()
        }
    };
    let mut config = BTreeMap::new();
    for (name, value) in &written.knobs {
        match value {
            Value::String(text) => config.insert(name.clone(), text.clone()),
            Value::Number(_) | Value::Bool(_) => config.insert(name.clone(), value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                faults.push(format!("the value of the knob {name} is not a text or a number"));
                None
            }
        };
    }
    let config = (!written.knobs.is_empty()).then_some(config);
    let how = how_of(written.entry, config, written.sweep).unwrap_or_else(|fault| {
        faults.push(fault);
        ItemAction::Words
    });
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(AgendaItem {
        id: written.id.unwrap_or_else(|| number.to_string()),
        title: one_line(&written.title, TITLE_CHARS),
        text: written.text,
        expected_ratio: written.expected_ratio.unwrap_or(expected),
        effort,
        needs: written.needs,
        when: written.when,
        how,
    })
}

fn how_of(
    entry: Option<String>,
    knobs: Option<BTreeMap<String, String>>,
    sweep: bool,
) -> Result<ItemAction, String> {
    match (entry, knobs, sweep) {
        (None, None, false) => Ok(ItemAction::Words),
        (Some(entry), None, false) => Ok(ItemAction::Entry { entry }),
        (None, Some(config), false) => Ok(ItemAction::Knobs { config }),
        (None, None, true) => Ok(ItemAction::Sweep),
        _ => Err("only one of entry, knobs and sweep is allowed".to_owned()),
    }
}

fn level(name: &str) -> Option<f64> {
    let is = |(level, _): &&(&str, f64)| level.eq_ignore_ascii_case(name.trim());
    LEVELS.iter().find(is).map(|(_, ratio)| *ratio)
}

fn no_level(name: &str) -> String {
    format!("`{}` is not High, Medium or Low", one_line(name, TITLE_CHARS))
}

fn no_effort(name: &str) -> String {
    format!("the effort `{}` is not low, medium or high", one_line(name, TITLE_CHARS))
}

/// Where a reader of Markdown is.
#[derive(Default)]
struct AnalysisReader {
    analysis: Analysis,
    errors: AnalysisErrors,
    /// Whether the recommendations section was reached.
    inside: bool,
    /// The keys of the last recommendation, each with its line.
    named: Option<RecommendedAction>,
}

#[derive(Default)]
struct RecommendedAction {
    entry: Option<String>,
    knobs: Option<BTreeMap<String, String>>,
    sweep: bool,
}

fn parse_markdown(text: &str) -> Result<Analysis, AnalysisErrors> {
    let mut reader = AnalysisReader::default();
    let mut began = false;
    for (number, line) in text.lines().enumerate() {
        reader.take(number + 1, line);
        began |= reader.inside;
    }
    reader.close();
    if !began {
        let fault = "there is no section Recommendations, and it is not JSON".to_owned();
        return Err(vec![(1, fault)]);
    }
    match reader.errors.is_empty() {
        true => Ok(reader.analysis),
        false => Err(reader.errors),
    }
}

impl AnalysisReader {
    fn take(&mut self, number: usize, line: &str) {
        let bare = line.trim().trim_matches(['#', '*', ':', ' ', '-']).trim();
        if bare.eq_ignore_ascii_case("recommendations") {
            self.inside = true;
            return;
        }
        if !self.inside {
            let said = bare.split_once(':').filter(|(key, _)| is_bottleneck(key));
            if let Some((_, said)) = said {
                said.trim().trim_matches('*').trim().clone_into(&mut self.analysis.bottleneck);
            }
            return;
        }
        if line.starts_with('#') {
            self.inside = false;
        } else if line.trim().is_empty() {
        } else if let Some((id, rest)) = numbered(line) {
            self.begin(number, id, rest);
        } else if line.starts_with([' ', '\t']) {
            self.go_on(number, line.trim());
        } else {
            let fault = "this is not a recommendation like \"1. [High] unroll the inner loop\"";
            self.errors.push((number, fault.to_owned()));
        }
    }

    fn begin(&mut self, number: usize, id: &str, rest: &str) {
        self.close();
        let levelled = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (expected_ratio, title) = match levelled.map(|(name, title)| (name, level(name), title))
        {
            Some((_, Some(ratio), title)) => (ratio, title),
            Some((name, None, title)) => {
                self.errors.push((number, no_level(name)));
                (EXPECTED_RATIO, title)
            }
            None => {
                let fault = "a recommendation starts with [High], [Medium] or [Low]";
                self.errors.push((number, fault.to_owned()));
                (EXPECTED_RATIO, rest)
            }
        };
        // The lines below it are still checked, so that every error is reported at once.
        self.named = Some(RecommendedAction::default());
        let item = AgendaItem {
            id: id.to_owned(),
            title: one_line(title, TITLE_CHARS),
            text: title.trim().to_owned(),
            expected_ratio,
            ..AgendaItem::default()
        };
        self.analysis.items.push((number, item));
    }

    /// A line below a recommendation: one of its keys, or more text.
    fn go_on(&mut self, number: usize, line: &str) {
        let (Some((_, item)), Some(named)) = (self.analysis.items.last_mut(), &mut self.named)
        else {
            return;
        };
        let key = line.strip_prefix(['-', '*']).and_then(|line| line.split_once(':'));
        let Some((key, value)) = key else {
            item.text.push('\n');
            item.text.push_str(line);
            return;
        };
        let value = value.trim();
        let fault = match key.trim().to_lowercase().as_str() {
            "id" => {
                value.clone_into(&mut item.id);
                None
            }
            "expected" => match value.trim_end_matches('x').parse() {
                Ok(ratio) => {
                    item.expected_ratio = ratio;
                    None
                }
                Err(_) => Some(format!(
                    "`{}` is not a speedup such as 1.2x",
                    one_line(value, TITLE_CHARS)
                )),
            },
            "effort" => match ItemEffort::by_name(value) {
                Some(effort) => {
                    item.effort = effort;
                    None
                }
                None => Some(no_effort(value)),
            },
            "needs" => {
                item.needs = list_of(value);
                None
            }
            "when" => {
                item.when.push(value.trim_matches('`').to_owned());
                None
            }
            "entry" => {
                named.entry = Some(value.to_owned());
                None
            }
            "knobs" => {
                named.knobs = knob_values(value);
                let shown = one_line(value, TITLE_CHARS);
                let fault = format!("`{shown}` does not look like TILE=16,UNROLL=4");
                named.knobs.is_none().then_some(fault)
            }
            "sweep" => {
                named.sweep = value == "yes" || value == "true";
                None
            }
            other => Some(format!(
                "`{}` is not one of id, expected, effort, needs, when, entry, knobs and sweep",
                one_line(other, TITLE_CHARS)
            )),
        };
        self.errors.extend(fault.map(|fault| (number, fault)));
    }

    /// The last recommendation is complete.
    fn close(&mut self) {
        let named = self.named.take();
        let (Some(named), Some((line, item))) = (named, self.analysis.items.last_mut()) else {
            return;
        };
        match how_of(named.entry, named.knobs, named.sweep) {
            Ok(how) => item.how = how,
            Err(fault) => self.errors.push((*line, fault)),
        }
    }
}

fn is_bottleneck(key: &str) -> bool {
    let key = key.trim().trim_matches('*').to_lowercase();
    key == "primary bottleneck" || key == "bottleneck"
}

/// `1. text` or `1) text`.
fn numbered(line: &str) -> Option<(&str, &str)> {
    let digits = line.find(|c: char| !c.is_ascii_digit())?;
    let (id, rest) = line.split_at(digits);
    let rest = rest.strip_prefix(['.', ')'])?;
    let spaced = rest.starts_with(' ');
    (spaced && !id.is_empty() && id.len() <= 4).then(|| (id, rest.trim()))
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
