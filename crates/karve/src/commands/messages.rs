//! `karve messages`: lists the messages of the published workflows, shows and checks their format.

use crate::agenda::analysis;
use crate::ui;
use karve_agents::messages::{self, FieldKind, Message, MessageField};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files;
use karve_os::text::safe;
use karve_profile::profilers::contract;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Messages with a reader of their own.
const PROFILE: &str = "hyper-mla/profile";
const ANALYSIS: &str = "trtllm/analysis";

/// List the messages between roles, show the format of one, or check a file
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve messages
  karve messages primus/review
  karve messages hyper-mla/summary --check answer.md
  karve messages primus/analyze --json")]
pub struct MessagesArgs {
    /// The message
    name: Option<String>,
    /// Check this file against its format: lists every error and exits with 1 if there are any
    #[arg(long, value_name = "FILE", requires = "name")]
    check: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl MessagesArgs {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        let Some(name) = &self.name else {
            if self.json {
                ui::out_json(&messages::all()?);
                return Ok(());
            }
            for form in messages::all()? {
                ui::outln(&format!("{:<16} {}", form.name, form.about));
            }
            return Ok(());
        };
        let form = messages::form(name)?;
        if let Some(path) = &self.check {
            return check(form, path, self.json);
        }
        if self.json {
            ui::out_json(form);
            return Ok(());
        }
        ui::outln(&form.about);
        if !form.title.is_empty() {
            ui::outln(&format!("## {}", form.title));
        }
        for label in &form.labels {
            ui::outln(label);
        }
        print_fields(&form.field, 0);
        for section in &form.section {
            let shows = [&section.labels[..], std::slice::from_ref(&section.body)].concat();
            ui::outln(&format!("### {} shows {}", section.heading, shows.join(" ").trim()));
        }
        if !form.example.is_empty() {
            ui::out(&format!("For example:\n\n{}", form.example));
        }
        Ok(())
    }
}

fn check(form: &Message, path: &Path, json: bool) -> Result<()> {
    let text = files::read_text(path, messages::BYTES_MAX as u64)
        .context(|| format!("cannot read {}", path.display()))?;
    match read(form, &text) {
        Ok(datum) if json => ui::out_json(&datum),
        Ok(_) => ui::outln(&format!("valid {}", form.name)),
        Err(faults) => {
            let n = faults.len();
            let mut error = CommandError::new(
                ErrorKind::Negative,
                format!(
                    "{} is not a valid {}: {n} {}",
                    path.display(),
                    form.name,
                    if n == 1 { "error" } else { "errors" }
                ),
            );
            for fault in faults {
                error = error.cause(safe(&fault, 400));
            }
            return Err(error.hint(format!("\"karve messages {}\" shows its format", form.name)));
        }
    }
    Ok(())
}

/// Reads a message with the one reader of its form.
fn read(form: &Message, text: &str) -> Result<Value, Vec<String>> {
    match form.name.as_str() {
        PROFILE => contract::parse(text).map(|report| json!(report)),
        ANALYSIS => match analysis::parse(text) {
            Ok(read) => {
                let items: Vec<_> = read.items.iter().map(|(_, item)| item).collect();
                Ok(json!({ "bottleneck": read.bottleneck, "items": items }))
            }
            Err(faults) => {
                Err(faults.iter().map(|(line, fault)| format!("line {line}: {fault}")).collect())
            }
        },
        _ => messages::parse(form, text),
    }
}

fn print_fields(fields: &[MessageField], depth: usize) {
    for field in fields {
        let kind = match field.kind {
            FieldKind::Line => "line".to_owned(),
            FieldKind::Text => "text".to_owned(),
            FieldKind::Number => "number".to_owned(),
            FieldKind::Count => "whole number".to_owned(),
            FieldKind::Truth => "true or false".to_owned(),
            FieldKind::Choice => field.of.join(" | "),
            FieldKind::Lines => "list of lines".to_owned(),
            FieldKind::Rows => "list of objects".to_owned(),
            FieldKind::Record => "object".to_owned(),
        };
        let mut facts = vec![kind];
        facts.extend(field.least.map(|least| format!("at least {least}")));
        facts.extend(field.most.map(|most| format!("at most {most}")));
        facts.extend(field.optional.then(|| "optional".to_owned()));
        facts.extend((!field.about.is_empty()).then(|| field.about.clone()));
        let indent = "  ".repeat(depth + 1);
        ui::outln(&format!("{indent}{}: {}", field.name, facts.join(", ")));
        print_fields(&field.field, depth + 1);
    }
}
