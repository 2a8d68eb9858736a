//! The cases of a charter: the list, the combinations of the matrix, the hidden ones and those that
//! are held back.

use super::file::CasesTable;
use super::source::{ConfigSource, PathSegment};
use super::values::{CaseEntry, Scalar};
use karve_core::policy::Preset;
use karve_harness::placeholders;
use karve_numerics::case::{Case, CaseSet};
use karve_os::error::{CommandError, Result};
use karve_os::text::{shown, suggestion};
use std::collections::{BTreeMap, BTreeSet};

/// Most cases of one charter.
pub const CASES_MAX: usize = 1_000;

/// A case with its line in the file.
struct LocatedCase {
    case: Case,
    line: usize,
}

/// The cases of hyper-mla where the file names none: one query as in decoding, several as in
/// speculative decoding. A batch that does not fit is halved.
const TRIALS: [&str; 2] = ["b=32,s=1,t=4096", "b=32,s=16,t=4096"];
const TRIALS_HALVE: &str = "b";

/// Builds the cases, in the order of the file: list, matrix, hidden, stress.
pub(super) fn cases_of(
    source: &ConfigSource<'_>,
    table: &CasesTable,
    preset: Preset,
) -> Result<Vec<Case>> {
    let mut cases = entries(source, "list", &table.list, CaseSet::Full)?;
    cases.extend(combinations(source, &table.matrix)?);
    let mut halve = table.halve.as_deref();
    if cases.is_empty() && preset == Preset::HyperMla {
        let trials = TRIALS.map(|trial| CaseEntry::Text(trial.to_owned()));
        cases = entries(source, "list", &trials, CaseSet::Full)?;
        halve = halve.or(Some(TRIALS_HALVE));
    }
    if cases.is_empty() {
        return Err(source
            .error_at("cases", "there is no case")
            .hint("name at least one in cases.list or cases.matrix, such as \"M=256,N=256\""));
    }
    mark(source, "quick", &table.quick, &mut cases, |case| case.set = CaseSet::Quick)?;
    mark(source, "minor", &table.minor, &mut cases, |case| case.minor = true)?;
    cases.extend(entries(source, "hidden", &table.hidden, CaseSet::Hidden)?);
    cases.extend(entries(source, "stress", &table.stress, CaseSet::Stress)?);
    refuse_too_many(source, cases.len())?;
    refuse_twins(source, &cases)?;
    let mut cases: Vec<Case> = cases.into_iter().map(|placed| placed.case).collect();
    if let Some(halve) = halve {
        halve_by(source, halve, &mut cases)?;
    }
    Ok(cases)
}

fn entries(
    source: &ConfigSource<'_>,
    key: &str,
    entries: &[CaseEntry],
    set: CaseSet,
) -> Result<Vec<LocatedCase>> {
    refuse_too_many(source, entries.len())?;
    let mut cases = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let line = source.item_line(&format!("cases.{key}"), index);
        let (name, params) = match entry {
            CaseEntry::Text(text) => (text.clone(), pairs(text)),
            CaseEntry::Table { name, params } => {
                let way =
                    [PathSegment::Key("cases"), PathSegment::Key(key), PathSegment::Index(index)];
                let params = in_order(params, &source.keys_in_order(&way));
                (name.clone().unwrap_or_else(|| name_of(&params)), params)
            }
        };
        let case = case(name, params, set).map_err(|fault| fault.at(source, line))?;
        cases.push(LocatedCase { case, line });
    }
    Ok(cases)
}

/// A case as written on the command line: `n=64,m=3`, or only a name.
pub fn case_of(text: &str) -> Result<Case> {
    case(text.to_owned(), pairs(text), CaseSet::Full).map_err(|fault| {
        CommandError::usage(fault.message).hint("write it like --case small or --case n=64,m=3")
    })
}

/// The parameters in the text of a case; a part without `=` is only part of the name.
fn pairs(text: &str) -> Vec<(String, String)> {
    text.split(',')
        .filter_map(|part| part.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

fn in_order(params: &[(String, String)], order: &[String]) -> Vec<(String, String)> {
    let mut params = params.to_vec();
    params.sort_by_key(|(key, _)| order.iter().position(|other| other == key));
    params
}

fn name_of(params: &[(String, String)]) -> String {
    let pairs: Vec<String> = params.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// What is wrong with a case, before its line is known.
struct CaseError {
    message: String,
    hint: &'static str,
}

impl CaseError {
    fn at(self, source: &ConfigSource<'_>, line: usize) -> CommandError {
        source.error(line, self.message).hint(self.hint)
    }
}

fn case(name: String, pairs: Vec<(String, String)>, set: CaseSet) -> Result<Case, CaseError> {
    let shown = shown(&name);
    let fault = |message: String, hint| Err(CaseError { message, hint });
    if name.trim().is_empty() || name.contains(char::is_control) {
        let hint = "give the case a name of printable characters in [cases]";
        return fault("a case has no usable name".into(), hint);
    }
    let mut params = BTreeMap::new();
    for (key, value) in pairs {
        if key.is_empty() || value.is_empty() {
            let hint = "write parameters like M=256 in [cases]";
            return fault(
                format!("the case `{shown}` has a parameter without name or value"),
                hint,
            );
        }
        if placeholders::NAMES.contains(&key.as_str()) {
            let hint =
                "rename the parameter in [cases]; case, seed, out, round and depth are reserved";
            return fault(format!("the parameter `{key}` of the case `{shown}` is reserved"), hint);
        }
        if value.contains(char::is_control) {
            let hint = "write parameters like M=256 in [cases]";
            return fault(format!("the case `{shown}` has a control character in `{key}`"), hint);
        }
        if let Some(key) = params.insert(key.clone(), value).map(|_| key) {
            let hint = "name each parameter once in [cases]";
            return fault(format!("the case `{shown}` gives `{key}` twice"), hint);
        }
    }
    Ok(Case { name, params, set, minor: false, halve: None })
}

fn combinations(
    source: &ConfigSource<'_>,
    matrix: &BTreeMap<String, Vec<Scalar>>,
) -> Result<Vec<LocatedCase>> {
    let axes = source.keys_in_order(&[PathSegment::Key("cases"), PathSegment::Key("matrix")]);
    let axes: Vec<(&str, &[Scalar])> = axes
        .iter()
        .filter_map(|axis| Some((axis.as_str(), matrix.get(axis)?.as_slice())))
        .collect();
    if axes.is_empty() {
        return Ok(Vec::new());
    }
    if let Some((axis, _)) = axes.iter().find(|(_, values)| values.is_empty()) {
        return Err(source
            .error_at(&format!("cases.matrix.{axis}"), format!("`cases.matrix.{axis}` is empty"))
            .hint(format!("name at least one value of `{axis}` in [cases], or leave it out")));
    }
    let count = axes.iter().fold(1_usize, |n, (_, values)| n.saturating_mul(values.len()));
    refuse_too_many(source, count)?;
    let line = source.line("cases.matrix");
    let mut cases = Vec::with_capacity(count);
    for number in 0..count {
        let params = combination(&axes, number);
        let case = case(name_of(&params), params, CaseSet::Full)
            .map_err(|fault| fault.at(source, line))?;
        cases.push(LocatedCase { case, line });
    }
    Ok(cases)
}

/// The combination with that number; the last axis changes fastest.
fn combination(axes: &[(&str, &[Scalar])], mut number: usize) -> Vec<(String, String)> {
    let mut params = Vec::with_capacity(axes.len());
    for (axis, values) in axes.iter().rev() {
        let Scalar(value) = &values[number % values.len()];
        params.push(((*axis).to_owned(), value.clone()));
        number /= values.len();
    }
    params.reverse();
    params
}

fn refuse_too_many(source: &ConfigSource<'_>, count: usize) -> Result<()> {
    if count <= CASES_MAX {
        return Ok(());
    }
    Err(source
        .error_at("cases", format!("there are {count} cases, more than {CASES_MAX}"))
        .hint("shorten cases.list, or give fewer values in cases.matrix"))
}

fn refuse_twins(source: &ConfigSource<'_>, cases: &[LocatedCase]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for placed in cases {
        if !seen.insert(placed.case.name.as_str()) {
            let name = shown(&placed.case.name);
            return Err(source
                .error(placed.line, format!("the case `{name}` appears twice"))
                .hint("give each case of cases.list, cases.matrix and cases.hidden its own name"));
        }
    }
    Ok(())
}

/// Applies `set` to every named case.
fn mark(
    source: &ConfigSource<'_>,
    key: &str,
    names: &[String],
    cases: &mut [LocatedCase],
    set: impl Fn(&mut Case),
) -> Result<()> {
    for (index, name) in names.iter().enumerate() {
        let Some(placed) = cases.iter_mut().find(|placed| placed.case.name == *name) else {
            let known = cases.iter().take(12).map(|placed| placed.case.name.as_str());
            let message =
                format!("cases.{key} names `{}`, which is not a visible case", shown(name));
            return Err(source
                .error(source.item_line(&format!("cases.{key}"), index), message)
                .hint(suggestion(name, known, "the cases of cases.list and cases.matrix")));
        };
        set(&mut placed.case);
    }
    Ok(())
}

fn halve_by(source: &ConfigSource<'_>, halve: &str, cases: &mut [Case]) -> Result<()> {
    let mut used = false;
    for case in cases.iter_mut() {
        let Some(value) = case.params.get(halve) else {
            continue;
        };
        if value.parse::<u64>().is_err() {
            let name = shown(&case.name);
            let message = format!("`{halve}` of the case `{name}` cannot be halved");
            return Err(source
                .error_at("cases.halve", message)
                .hint("cases.halve must name a parameter whose values are whole numbers"));
        }
        case.halve = Some(halve.to_owned());
        used = true;
    }
    if used {
        return Ok(());
    }
    let known: BTreeSet<&str> =
        cases.iter().flat_map(|case| case.params.keys().map(String::as_str)).collect();
    Err(source
        .error_at("cases.halve", format!("no case has the parameter `{}`", shown(halve)))
        .hint(suggestion(halve, known, "cases.halve may be")))
}
