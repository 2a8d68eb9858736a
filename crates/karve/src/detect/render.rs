//! A proposal as a commented `karve.toml`: the template is `karve.toml.j2`.

use super::ConfigProposal;
use crate::config::PROFILE_AUTO;
use karve_agents::template_env::strict_environment;
use minijinja::value::Serde;
use minijinja::{Error, context};

/// The widest comment, in columns.
const WIDTH: usize = 96;

/// The text of a `karve.toml` for the proposal, with comments that help to edit it.
pub fn render_karve_toml(proposal: &ConfigProposal) -> String {
    with_template(include_str!("karve.toml.j2"), proposal)
}

/// A template of a `karve.toml`, filled with a proposal.
pub(super) fn with_template(template: &str, proposal: &impl serde::Serialize) -> String {
    let rendered = render(template, proposal);
    rendered.unwrap_or_else(|error| format!("# karve has a bug in this template: {error:#}\n"))
}

fn render(template: &str, proposal: &impl serde::Serialize) -> Result<String, Error> {
    let mut environment = strict_environment();
    environment.add_filter("remark", remark);
    // A string, a list or a table of strings; the crate handles escaping.
    environment.add_filter("toml", |value: Serde<toml::Value>| value.to_string());
    environment
        .render_str(template, context! { proposal => Serde(proposal), profile => PROFILE_AUTO })
}

/// One of the reasons for a proposal as a comment, wrapped between words.
fn remark(why: &str) -> String {
    let mut lines = Vec::new();
    let mut line = "# -".to_owned();
    for word in why.replace(char::is_control, " ").split(' ') {
        if line.chars().count() + word.chars().count() >= WIDTH && line.len() > 2 {
            lines.push(line.trim_end().to_owned());
            line = "# ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    lines.push(line.trim_end().to_owned());
    lines.join("\n")
}
