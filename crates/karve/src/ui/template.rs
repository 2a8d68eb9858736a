//! Text for people, made from templates. A template shortens what is not karve's own with `safe`.

use karve_agents::template_env::strict_environment;
use karve_core::score;
use karve_os::text;
use minijinja::{Environment, Value};

/// Renders a template. One that cannot be rendered is a bug of karve, and the text says so.
pub fn render(template: &str, values: Value) -> String {
    let rendered = environment().render_str(template, values);
    rendered.unwrap_or_else(|error| format!("karve has a bug in this text: {error:#}\n"))
}

fn environment() -> Environment<'static> {
    let mut templates = strict_environment();
    templates.add_filter("right", |text: &str, width: usize| format!("{text:>width$}"));
    templates.add_filter("left", |text: &str, width: usize| format!("{text:<width$}"));
    templates.add_filter("safe", |text: &str, chars: usize| text::safe(text, chars));
    templates.add_filter("figure", score::figure);
    templates.add_filter("evidence", score::count);
    templates.add_filter("percent", score::percent_text);
    templates.add_filter("gain", |ratio: f64| score::percent_text((ratio - 1.0) * 100.0));
    templates.add_filter("log_percent", |ln: f64| format!("{:.2}%", ln * 100.0));
    templates
}
