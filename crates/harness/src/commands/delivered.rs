//! Knobs that reach the kernel through its environment, an argument or a template.
//!
//! Their values are in editable files, so that a setting is a commit. Only values that the user
//! declared are passed on.

use super::Harness;
use crate::placeholders::Placeholders;
use karve_core::measurement::{FailureCategory, Gate};
use karve_numerics::case::Case;
use karve_numerics::space::{
    Delivery, KnobDeclaration, KnobSetting, TEMPLATE_END, parse_knobs, render_template,
};
use karve_os::files;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

impl Harness {
    /// What the placeholders of a command stand for in a tree.
    pub(super) fn placeholders(&self, tree: &Path, seed: u64, out: Option<&Path>) -> Placeholders {
        Placeholders {
            seed: Some(seed),
            out: out.map(|path| path.to_string_lossy().into_owned()),
            knobs: self.knobs_by(Delivery::Argument, tree),
            ..Placeholders::default()
        }
    }

    /// The knobs of a tree that are delivered in one way. A knob that a build made unreadable has
    /// its first value: the build gate has already checked it.
    pub(super) fn knobs_by(&self, delivery: Delivery, tree: &Path) -> KnobSetting {
        let some = self.knobs.iter().filter(|knob| knob.deliver == delivery);
        some.map(|knob| {
            let value = value_in(tree, knob);
            let first = || knob.values.first().cloned().unwrap_or_default();
            (knob.name.clone(), value.unwrap_or_else(|_| first()))
        })
        .collect()
    }

    /// Generates files from templates, and refuses values that were not declared.
    pub(super) fn deliver(&self, tree: &Path) -> Result<(), Gate> {
        let failed =
            |excerpt: String| Gate::BuildFailed { category: FailureCategory::Other, excerpt };
        let mut templates: BTreeMap<&str, KnobSetting> = BTreeMap::new();
        for knob in &self.knobs {
            match knob.deliver {
                Delivery::Source | Delivery::Json => continue,
                Delivery::Environment | Delivery::Argument => {
                    value_in(tree, knob).map_err(failed)?;
                }
                Delivery::Placeholder => {
                    let value = value_in(tree, knob).map_err(failed)?;
                    let values = templates.entry(&knob.file).or_default();
                    values.insert(knob.name.clone(), value);
                }
            }
        }
        for (file, values) in templates {
            let text = text_of(tree, file).map_err(failed)?;
            let path = tree.join(file.trim_end_matches(TEMPLATE_END));
            write_new(&path, &render_template(&text, &values))
                .map_err(|error| failed(format!("cannot fill the template {file}: {error}")))?;
        }
        Ok(())
    }
}

fn text_of(tree: &Path, file: &str) -> Result<String, String> {
    files::read_text(&tree.join(file), files::WRITTEN_BYTES_MAX)
        .map_err(|error| format!("cannot read {file}: {error}"))
}

/// The value of a knob in a tree; one that was not declared is none.
fn value_in(tree: &Path, knob: &KnobDeclaration) -> Result<String, String> {
    let text = text_of(tree, &knob.file)?;
    let found = parse_knobs(&knob.file, &text, std::slice::from_ref(knob))?;
    let of_name = found.into_iter().find(|found| found.name == knob.name);
    let value = of_name.map(|found| found.current).unwrap_or_default();
    match knob.values.contains(&value) {
        true => Ok(value),
        false => Err(format!(
            "{} sets the knob {} to {value:?}, which is not one of its values",
            knob.file, knob.name
        )),
    }
}

/// Writes a file in place of whatever is there, without following a link.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// Whether a command is run once for each case.
pub fn names_case(line: &str, cases: &[Case]) -> bool {
    let param = |case: &Case| case.params.keys().any(|name| line.contains(&format!("{{{name}}}")));
    line.contains("{case}") || cases.iter().any(param)
}
