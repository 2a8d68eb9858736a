//! The file of `hyperfine --export-json`.
//!
//! Times are in seconds, under the names of the file and again with `_s`. A run that ended with
//! a nonzero exit code, or by a signal, fails its case.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::OutputRows;
use super::json::JsonNode;
use super::{CaseCheck, OutputParseError, OutputRow, ParseSpec, fields, json};

/// The numbers of a result that are used.
const TIMES: [&str; 7] = ["mean", "stddev", "median", "min", "max", "user", "system"];

/// Reads one row per result.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let give = "the file of hyperfine --export-json";
    let (results, lines) = json::parse_list(text, "results", give)?;
    let mut found = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let line = lines.get(index).copied().unwrap_or(1);
        let parsed = parse_result(result, line);
        found.push(parsed.map_err(|reason| OutputParseError::at(text, line, reason))?);
    }
    let naming = CaseNaming::of(&found, spec);
    let mut rows = OutputRows::default();
    for (row, command) in found {
        let line = row.line;
        let case = naming.case(&row, command);
        rows.add(text, line, case.map(|case| OutputRow { case: Some(case), ..row }))?;
    }
    Ok(rows.finish())
}

/// How the cases are named.
enum CaseNaming<'a> {
    Column(&'a str),
    Parameters,
    Command,
}

impl<'a> CaseNaming<'a> {
    /// By parameters if they distinguish all results, else by command.
    fn of(found: &[(OutputRow, String)], spec: &ParseSpec<'a>) -> Self {
        match spec.case_column {
            Some("command") => Self::Command,
            Some(column) => Self::Column(column),
            None => {
                let mut seen = BTreeSet::new();
                let tells = |(row, _): &(OutputRow, String)| {
                    !row.params.is_empty() && seen.insert(join(&row.params))
                };
                if found.iter().all(tells) { Self::Parameters } else { Self::Command }
            }
        }
    }

    fn case(&self, row: &OutputRow, command: String) -> Result<String, String> {
        match self {
            Self::Column(name) => {
                row.params.get(*name).cloned().ok_or_else(|| {
                    format!("there is no parameter \"{name}\", which names the case")
                })
            }
            Self::Parameters => Ok(join(&row.params)),
            Self::Command => Ok(command),
        }
    }
}

fn join(params: &BTreeMap<String, String>) -> String {
    let parts: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    parts.join(",")
}

fn parse_result(result: &JsonNode, line: usize) -> Result<(OutputRow, String), String> {
    let Some(JsonNode::Text(command)) = result.get("command") else {
        return Err("a result has no \"command\"".into());
    };
    let check = parse_exit_codes(result.get("exit_codes"))?;
    let params = parse_parameters(result.get("parameters"))?;
    let mut row = OutputRow::new(None, check, line);
    row.params = params;
    for name in TIMES {
        match result.get(name) {
            Some(JsonNode::Number(seconds)) => {
                fields::add_value(&mut row, &format!("{name}_s"), *seconds)?;
                fields::add_value(&mut row, name, *seconds)?;
            }
            // The spread of a single run is null.
            Some(JsonNode::Null) | None => {}
            Some(_) => return Err(format!("\"{name}\" is not a number")),
        }
    }
    if row.values.contains_key("mean") || check == CaseCheck::Fail {
        return Ok((row, command.clone()));
    }
    Err("a result has no \"mean\"".into())
}

fn parse_exit_codes(codes: Option<&JsonNode>) -> Result<CaseCheck, String> {
    match codes {
        None | Some(JsonNode::Null) => Ok(CaseCheck::NotStated),
        Some(JsonNode::List(codes)) if codes.is_empty() => Ok(CaseCheck::NotStated),
        Some(JsonNode::List(codes)) => {
            let is_zero = |code: &JsonNode| *code == JsonNode::Number(0.0);
            Ok(if codes.iter().all(is_zero) { CaseCheck::Pass } else { CaseCheck::Fail })
        }
        Some(_) => Err("\"exit_codes\" is not an array".into()),
    }
}

fn parse_parameters(parameters: Option<&JsonNode>) -> Result<BTreeMap<String, String>, String> {
    let value = |(name, node): &(String, JsonNode)| match node {
        JsonNode::Text(text) => Ok((name.clone(), text.clone())),
        JsonNode::Number(number) => Ok((name.clone(), number.to_string())),
        JsonNode::Null | JsonNode::Flag(_) | JsonNode::List(_) | JsonNode::Object(_) => {
            Err(format!("the parameter \"{name}\" is neither text nor a number"))
        }
    };
    parameters.map(JsonNode::entries).unwrap_or_default().iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    fn check(case_column: Option<&str>, results: &[&str], want: &str) {
        let text = format!("{{\"results\": [\n{}\n]}}\n", results.join(",\n"));
        let spec = ParseSpec { case_column, ..spec(OutputFormat::Hyperfine) };
        assert_eq!(render(&parse(&text, &spec)), want, "{text}");
    }

    #[test]
    fn times_are_given_under_both_names() {
        check(
            None,
            &[r#"{"command": "./a", "mean": 0.5, "stddev": null, "median": 0.25, "user": 0.1,
                 "system": 0, "min": 0.125, "max": 1, "times": [0.5], "exit_codes": [0]}"#],
            "2 ./a Pass [] max=1; max_s=1; mean=0.5; mean_s=0.5; median=0.25; median_s=0.25; \
             min=0.125; min_s=0.125; system=0; system_s=0; user=0.1; user_s=0.1",
        );
    }

    #[test]
    fn an_exit_code_other_than_zero_fails_the_case() {
        check(
            None,
            &[
                r#"{"command": "a", "mean": 1, "exit_codes": [0, 3]}"#,
                r#"{"command": "b", "mean": 1, "exit_codes": [0, null]}"#,
                r#"{"command": "c", "mean": 1}"#,
            ],
            "2 a Fail [] mean=1; mean_s=1\n3 b Fail [] mean=1; mean_s=1\n\
             4 c NotStated [] mean=1; mean_s=1",
        );
    }

    #[test]
    fn the_case_comes_from_the_parameters_if_they_tell_all_apart() {
        let one = r#"{"command": "x 1", "mean": 1, "parameters": {"n": "1", "k": 2}}"#;
        let two = r#"{"command": "x 2", "mean": 2, "parameters": {"n": "2", "k": 2}}"#;
        let other = r#"{"command": "y 2", "mean": 2, "parameters": {"n": "2", "k": 2}}"#;
        let values = ["mean=1; mean_s=1", "mean=2; mean_s=2"];
        let want = |cases: [&str; 2]| {
            format!(
                "2 {} NotStated [k=2 n=1] {}\n3 {} NotStated [k=2 n=2] {}",
                cases[0], values[0], cases[1], values[1]
            )
        };
        check(None, &[one, two], &want(["k=2,n=1", "k=2,n=2"]));
        check(Some("n"), &[one, two], &want(["1", "2"]));
        check(Some("command"), &[one, two], &want(["x 1", "x 2"]));
        let all = want(["x 1", "x 2"]) + "\n4 y 2 NotStated [k=2 n=2] mean=2; mean_s=2";
        check(None, &[one, two, other], &all);
        check(Some("m"), &[one], "line 2: there is no parameter \"m\", which names the case");
        check(
            Some("k"),
            &[one, two],
            "line 3: the case \"2\" is already on line 2; each case may appear once",
        );
    }

    #[test]
    fn a_result_without_what_it_must_have_is_refused() {
        check(None, &[r#"{"mean": 1}"#], "line 2: a result has no \"command\"");
        check(None, &[r#"{"command": "a"}"#], "line 2: a result has no \"mean\"");
        check(None, &[r#"{"command": "a", "mean": "1"}"#], "line 2: \"mean\" is not a number");
        check(
            None,
            &[r#"{"command": "a", "mean": -1}"#],
            "line 2: \"mean_s\" is -1; it must not be negative",
        );
        let codes = r#"{"command": "a", "mean": 1, "exit_codes": 0}"#;
        check(None, &[codes], "line 2: \"exit_codes\" is not an array");
        let none = parse("{\"a\": 1}", &spec(OutputFormat::Hyperfine)).unwrap_err();
        assert!(none.reason.contains("no \"results\" array"), "{none}");
    }
}
