//! Renders the templates of the reports.
//!
//! A value is escaped when it is printed, for the kind of page that the name of the template ends
//! with, so a template cannot forget it. Only the filters below give text that is not escaped
//! again, and of these only `verbatim` leaves untrusted text as it is. A missing value prints as
//! `-`, and an unknown name is an error.

use super::text::{
    self, CELL_MAX, NO_VALUE, TITLE_MAX, bounded, capital, escaped, one_line, wrapped, yaml,
};
use crate::workflows;
use karve_agents::template_env::strict_environment;
use karve_core::comparison::Estimate;
use karve_core::profile::predicate;
use karve_os::error::{CommandError, ErrorKind as FailureKind, Result};
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, Value};
use std::sync::LazyLock;

/// karve's own templates. The part of the name after the last dot decides how values are escaped.
const TEMPLATES: [(&str, &str); 11] = [
    ("REPORT.md", include_str!("templates/REPORT.md.j2")),
    ("accuracy.md", include_str!("templates/accuracy.md.j2")),
    ("attribution.md", include_str!("templates/attribution.md.j2")),
    ("became.md", include_str!("templates/became.md.j2")),
    ("commit.txt", include_str!("templates/commit.txt.j2")),
    ("headline.md", include_str!("templates/headline.md.j2")),
    ("measured.md", include_str!("templates/measured.md.j2")),
    ("profile.txt", include_str!("templates/profile.txt.j2")),
    ("pull_request.md", include_str!("templates/pull_request.md.j2")),
    ("summary.md", include_str!("templates/summary.md.j2")),
    ("terminal.txt", include_str!("templates/terminal.txt.j2")),
];

/// The width of the summary for a terminal, in columns.
const TERMINAL_WIDTH: usize = 100;
/// Where the text after a label starts there.
const LABEL_WIDTH: usize = 12;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

/// A page. A template that cannot be rendered is a bug of karve and not of the campaign, so the
/// page says so and the campaign continues.
pub(super) fn render(template: &str, page: &Value) -> String {
    let rendered = render_text(template, page);
    rendered.unwrap_or_else(|error| format!("karve has a bug in this page: {error:#}\n"))
}

/// A commit message. Here the bug is an error, so that it never becomes part of a commit.
pub(super) fn render_message(template: &str, page: &Value) -> Result<String> {
    render_text(template, page).map_err(|error| {
        CommandError::new(FailureKind::Bug, format!("the template {template} is broken"))
            .cause(format!("{error:#}"))
    })
}

fn render_text(template: &str, page: &Value) -> std::result::Result<String, Error> {
    let text = ENVIRONMENT.get_template(template).and_then(|found| found.render(page))?;
    Ok(if template.ends_with(".md") { with_plain_bars(&text) } else { text })
}

/// A bar is escaped for tables; in a code span elsewhere the escape would be shown.
fn with_plain_bars(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| match line.starts_with('|') {
        true => line.to_owned(),
        false => line.replace("\\|", "|"),
    });
    lines.collect()
}

fn environment() -> Environment<'static> {
    let mut environment = strict_environment();
    environment.set_auto_escape_callback(|name| {
        let kind = name.rsplit('.').next().unwrap_or_default();
        AutoEscape::Custom(kind.to_owned().into())
    });
    environment.set_formatter(write_value);
    environment.set_loader(|name| {
        let all = TEMPLATES.into_iter().chain(workflows::templates());
        Ok(all.into_iter().find(|(known, _)| *known == name).map(|(_, text)| text.to_owned()))
    });
    // Text that must not be escaped says so with "verbatim", which also makes it one line.
    environment.remove_filter("safe");
    add_figures(&mut environment);
    add_texts(&mut environment);
    add_layout(&mut environment);
    environment
}

/// Prints a value: figures as they are, text escaped for the kind of page.
fn write_value(
    out: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> std::result::Result<(), Error> {
    let page = match state.auto_escape() {
        AutoEscape::Custom(page) => page.as_ref(),
        _ => "",
    };
    let text = match (value.kind(), page) {
        (ValueKind::Undefined, _) => return Ok(()),
        (_, "jsonl" | "json") => serde_json::to_string(value).map_err(not_json)?,
        (ValueKind::None, "yaml") => "null".to_owned(),
        (ValueKind::None, _) => NO_VALUE.to_owned(),
        (ValueKind::Map, "yaml") => yaml_map(value)?,
        (ValueKind::Number | ValueKind::Bool, _) => value.to_string(),
        (ValueKind::String, _) => {
            let text = value.as_str().unwrap_or_default();
            match page {
                _ if value.is_safe() => text.to_owned(),
                "yaml" => yaml(text),
                "txt" => one_line(text),
                "md" => escaped(&one_line(text)),
                _ => return Err(Error::new(ErrorKind::BadEscape, "the kind of page is unknown")),
            }
        }
        _ => {
            let why = "a list or a map needs a filter";
            return Err(Error::new(ErrorKind::InvalidOperation, why));
        }
    };
    out.write_str(&text).map_err(Error::from)
}

/// A map of texts on one line.
fn yaml_map(map: &Value) -> std::result::Result<String, Error> {
    let quoted = |value: &Value| yaml(value.as_str().unwrap_or_default());
    let pair = |key: Value| Ok(format!("{}: {}", quoted(&key), quoted(&map.get_item(&key)?)));
    let pairs: std::result::Result<Vec<String>, Error> = map.try_iter()?.map(pair).collect();
    Ok(format!("{{{}}}", pairs?.join(", ")))
}

fn not_json(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::BadSerialization, "not JSON").with_source(error)
}

/// Text that is not escaped again.
fn safe(text: String) -> Value {
    Value::from_safe_string(text)
}

/// Filters for figures.
fn add_figures(environment: &mut Environment<'static>) {
    environment.add_filter("ratio", |value: Option<f64>| safe(text::ratio(value)));
    environment.add_filter("gain", |value: Option<f64>| safe(text::gain(value)));
    environment.add_filter("percent", |value: Option<f64>| safe(text::percent(value)));
    environment.add_filter("share", |value: Option<f64>| safe(text::share(value)));
    environment.add_filter("number", |value: Option<f64>| safe(text::number(value)));
    environment.add_filter("limit", |value: f64| safe(text::limit(value)));
    environment.add_filter("typed", |value: f64| safe(text::typed(value)));
    environment.add_filter("reading", |value: f64| safe(predicate::short(value)));
    environment.add_filter("decimals", |value: Option<f64>, decimals: usize| {
        safe(text::decimals(value, decimals))
    });
    environment.add_filter("signed", |value: Option<f64>, decimals: usize| {
        safe(value.map_or(NO_VALUE.to_owned(), |value| format!("{value:+.decimals$}")))
    });
    environment.add_filter("scientific", |value: f64| safe(format!("{value:.3e}")));
    environment.add_filter("duration", |ms: u64| safe(text::duration(ms)));
    environment.add_filter("stamp", |at_ms: i64| safe(text::stamp(at_ms)));
    environment.add_filter("interval", |of: Serde<Estimate>| safe(text::interval(&of)));
    environment.add_filter("estimated", |of: Serde<Estimate>| safe(text::estimated(&of)));
    environment
        .add_filter("counted", |n: usize, noun: &str| safe(karve_os::text::counted(n, noun)));
}

/// Filters for text. Those that shorten it leave the escaping to the page.
fn add_texts(environment: &mut Environment<'static>) {
    environment.add_filter("title", |text: &str| bounded(text, TITLE_MAX));
    environment.add_filter("cell", |text: &str| bounded(text, CELL_MAX));
    environment.add_filter("bounded", |text: &str, max: usize| bounded(&one_line(text), max));
    environment.add_filter("capital", |text: &str| capital(text));
    environment.add_filter("short", |commit: &str| text::short(commit));
    environment.add_filter("listed", |names: Vec<Value>| {
        let are_safe = names.iter().all(Value::is_safe);
        let names: Vec<String> = names.iter().map(Value::to_string).collect();
        let listed = text::list(&names);
        if are_safe { safe(listed) } else { Value::from(listed) }
    });
    environment.add_filter("code", |line: &str| safe(text::code(&one_line(line))));
    environment.add_filter("fenced", |log: &str| safe(text::fenced(log)));
    // One line that is shown as it is: another program reads it, or it is not Markdown.
    environment.add_filter("verbatim", |text: &str| safe(one_line(text)));
}

/// Filters that place text by columns; in Markdown it is still escaped.
fn add_layout(environment: &mut Environment<'static>) {
    fn plain(state: &State<'_, '_>, text: String) -> Value {
        let is_plain = *state.auto_escape() == AutoEscape::Custom("txt".into());
        if !is_plain {
            return Value::from(text);
        }
        safe(text.chars().filter(|c| *c == '\n' || !c.is_control()).collect())
    }
    /// In Markdown the spaces must be added after it is escaped.
    fn cell(state: &State<'_, '_>, text: &Value) -> (String, bool) {
        let shown = text.as_str().unwrap_or_default();
        let is_markdown = *state.auto_escape() == AutoEscape::Custom("md".into());
        match is_markdown && !text.is_safe() {
            true => (escaped(&one_line(shown)), true),
            false => (shown.to_owned(), is_markdown),
        }
    }
    environment.add_filter("left", |state: &State<'_, '_>, text: Value, width: usize| {
        let (text, is_done) = cell(state, &text);
        let text = format!("{text:<width$}");
        if is_done { safe(text) } else { plain(state, text) }
    });
    environment.add_filter("right", |state: &State<'_, '_>, text: Value, width: usize| {
        let (text, is_done) = cell(state, &text);
        let text = format!("{text:>width$}");
        if is_done { safe(text) } else { plain(state, text) }
    });
    environment.add_filter(
        "wrapped",
        |state: &State<'_, '_>, text: &str, width: usize, indent: Option<usize>| {
            plain(state, wrapped(text, width, &" ".repeat(indent.unwrap_or(0))))
        },
    );
    environment.add_filter("labeled", |state: &State<'_, '_>, text: &str, label: &str| {
        let body = wrapped(text, TERMINAL_WIDTH, &" ".repeat(LABEL_WIDTH));
        plain(state, format!("{label:<LABEL_WIDTH$}{}", body.trim_start()))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::context;

    fn printed(name: &str, template: &str) -> String {
        let page = context! {
            text => "# a | <b>\n\u{1b}[31mc",
            none => None::<f64>,
            list => ["x|y"],
        };
        let rendered = ENVIRONMENT.render_named_str(name, template, page);
        rendered.unwrap_or_else(|error| format!("error: {error:#}"))
    }

    #[test]
    fn every_template_compiles() {
        for (name, _) in TEMPLATES.into_iter().chain(workflows::templates()) {
            assert!(ENVIRONMENT.get_template(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn text_is_escaped_without_asking_for_it() {
        assert_eq!(printed("x.md", "{{ text }}"), "\\# a \\| \\<b\\> c");
        assert_eq!(printed("x.md", "{{ text | wrapped(40) }}"), "\\# a \\| \\<b\\> c");
        assert_eq!(printed("x.md", "{{ list | listed }}"), "x\\|y");
        assert_eq!(printed("x.txt", "{{ text }}"), "# a | <b> c");
        assert_eq!(printed("x.yaml", "{{ text }}"), "\"# a | <b>\\n\\u001b[31mc\"");
        assert_eq!(printed("x.md", "{{ none }}, {{ none | ratio }}"), "-, -");
    }

    #[test]
    fn a_broken_commit_message_is_an_error_and_not_a_message() {
        let broken = render_message("commit.txt", &context! {});
        assert!(broken.unwrap_err().to_string().contains("commit.txt is broken"));
        assert!(render("commit.txt", &context! {}).starts_with("karve has a bug"));
    }

    #[test]
    fn what_a_template_cannot_do_is_an_error() {
        for wrong in ["{{ text | safe }}", "{{ unknown }}", "{{ list }}", "{{ text.unknown }}"] {
            assert!(printed("x.md", wrong).starts_with("error:"), "{wrong}");
        }
        assert!(printed("x", "{{ text }}").starts_with("error:"));
    }
}
