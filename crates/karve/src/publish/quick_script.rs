//! `quick_test_bench.py`: the project's own template, or karve's, filled with the representative
//! shapes.

use karve_core::campaign::Campaign;
use karve_core::charter::Charter;
use karve_harness::git::{Oid, Repo};
use karve_harness::project_file;
use karve_harness::store::CampaignDir;
use karve_numerics::case::{Case, CaseSet};
use karve_os::error::Result;
use karve_os::files;
use serde_json::{Map, Value};

/// The name of the script, in a project's template and in the campaign.
const NAME: &str = "quick_test_bench.py";
/// karve's own template.
const OWN: &str = include_str!("../workflows/primus/quick_test_bench.py");
/// Where a project that uses primus keeps its template.
const PROJECTS: &str = "agent/skills/**/quick_test_bench.py";

/// Writes the script, if the workflow has one.
pub(super) fn write(repo: &Repo, dir: &CampaignDir, campaign: &Campaign) -> Result<()> {
    // Under a contract there is no test and no benchmark to run: `karve check` does it.
    let has_script = |c: &&Charter| c.policy.baseline_round().is_some() && c.contract.is_none();
    let Some(charter) = campaign.charter().filter(has_script) else {
        return Ok(());
    };
    let base = campaign.base_commit();
    if base.is_empty() {
        return Ok(());
    }
    let globs = project_file::glob_set(&[PROJECTS.to_owned()])?;
    let found = repo.read_matching(&Oid::named(base)?, &globs)?;
    let template = found.first().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned());
    let quick = campaign.cases_of(CaseSet::Quick).into_iter();
    let shapes: Vec<Case> = quick.filter_map(|index| campaign.case(index)).collect();
    let project = repo.root().join(&charter.workdir).to_string_lossy().into_owned();
    let text = filled(template.as_deref().unwrap_or(OWN), charter, &project, &shapes);
    files::write_derived(&dir.join(NAME), text.as_bytes())
}

/// A template with its placeholders and its list of shapes filled.
fn filled(template: &str, charter: &Charter, project: &str, shapes: &[Case]) -> String {
    let commands = &charter.commands;
    let build = commands.build.clone().unwrap_or_default();
    let test = commands.quick_test.as_ref().unwrap_or(&commands.test);
    let bench = commands.quick_bench.as_ref().unwrap_or(&commands.bench);
    let places = [
        ("<target_backend>", charter.target.backend.as_str()),
        ("<project_dir>", project),
        ("<build_command>", &build),
        ("<test_command>", test),
        ("<benchmark_command>", bench),
    ];
    let mut text = template.to_owned();
    for (place, value) in places {
        let literal = Value::from(value).to_string();
        text = text.replace(&format!("\"{place}\""), &literal).replace(place, value);
    }
    with_shapes(&text, shapes)
}

/// The same script with these entries in its list `SHAPES`.
fn with_shapes(text: &str, shapes: &[Case]) -> String {
    let mut lines = text.lines();
    let mut out = String::with_capacity(text.len());
    for line in lines.by_ref() {
        out.push_str(line);
        out.push('\n');
        if line.starts_with("SHAPES") && line.trim_end().ends_with('[') {
            break;
        }
    }
    for shape in shapes {
        out.push_str(&format!("    {},\n", shape_literal(shape)));
    }
    // What was in the list before is replaced.
    for line in lines.skip_while(|line| line.trim() != "]") {
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// A shape as JSON, which Python reads as well: text and numbers only.
fn shape_literal(case: &Case) -> Value {
    let number = |text: &String| match text.parse::<i64>() {
        Ok(number) => Value::from(number),
        Err(_) => Value::from(text.as_str()),
    };
    let mut fields = Map::from_iter([("label".to_owned(), Value::from(case.name.as_str()))]);
    fields.extend(case.params.iter().map(|(name, value)| (name.clone(), number(value))));
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: &str, params: &[(&str, &str)]) -> Case {
        let params = params.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Case {
            name: name.into(),
            params: params.collect(),
            set: CaseSet::Quick,
            minor: false,
            halve: None,
        }
    }

    #[test]
    fn the_list_of_shapes_is_filled_and_nothing_else_changes() {
        let shapes = [shape("a \"b\"", &[("M", "8"), ("dtype", "bf16")])];
        let template = "x = 1\nSHAPES: List = [\n    # Fill me\n]\ny = [\n]\n";
        let want = "x = 1\nSHAPES: List = [\n    {\"M\":8,\"dtype\":\"bf16\",\"label\":\
                    \"a \\\"b\\\"\"},\n]\ny = [\n]\n";
        assert_eq!(with_shapes(template, &shapes), want);
        assert_eq!(with_shapes("no list\n", &shapes[..0]), "no list\n");
        assert!(with_shapes(OWN, &shapes).contains("\n    {\"M\":8,"));
    }
}
