//! The environment that every template of karve starts from: prompts, reports, forms and screens.

use karve_os::text::counted;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

/// An environment in which an unknown name is an error, the line of a block tag leaves no trace,
/// and nothing is escaped.
pub fn strict_environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    // Only delimiters can be wrong, and these are the default ones.
    environment.set_syntax(syntax.build().unwrap_or_default());
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.add_filter("fixed", |value: f64, digits: usize| format!("{value:.digits$}"));
    environment.add_filter("counted", |n: usize, noun: &str| counted(n, noun));
    environment
}
