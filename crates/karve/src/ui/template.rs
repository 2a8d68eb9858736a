//! Text for people, made from templates. A template shortens what is not karve's own with `safe`.

use karve_core::score;
use karve_os::text;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, Value};

/// Renders a template. One that cannot be rendered is a bug of karve, and the text says so.
pub fn render(template: &str, values: Value) -> String {
    let rendered = environment().and_then(|templates| templates.render_str(template, values));
    rendered.unwrap_or_else(|error| format!("karve has a bug in this text: {error:#}\n"))
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut templates = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    templates.set_syntax(syntax.build()?);
    templates.set_auto_escape_callback(|_| AutoEscape::None);
    templates.add_filter("fixed", |value: f64, digits: usize| format!("{value:.digits$}"));
    templates.add_filter("right", |text: &str, width: usize| format!("{text:>width$}"));
    templates.add_filter("left", |text: &str, width: usize| format!("{text:<width$}"));
    templates.add_filter("safe", |text: &str, chars: usize| text::safe(text, chars));
    templates.add_filter("figure", score::figure);
    templates.add_filter("evidence", score::count);
    templates.add_filter("percent", score::percent_text);
    templates.add_filter("gain", |ratio: f64| score::percent_text((ratio - 1.0) * 100.0));
    templates.add_filter("log_percent", |ln: f64| format!("{:.2}%", ln * 100.0));
    Ok(templates)
}
