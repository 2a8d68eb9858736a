//! A contract as a commented `karve.toml`: the template is `contract.toml.j2`.

use super::ContractPlan;
use super::entry::ENTRY;
use karve_agents::template_env::strict_environment;
use minijinja::value::Serde;
use minijinja::{Error, context};

/// The text of `karve.toml`, with the tables of an earlier one that a contract does not change.
pub fn render_contract(plan: &ContractPlan, kept: &str) -> String {
    let rendered = render(plan, kept);
    rendered.unwrap_or_else(|error| format!("# karve has a bug in this template: {error:#}\n"))
}

fn render(plan: &ContractPlan, kept: &str) -> Result<String, Error> {
    let mut environment = strict_environment();
    environment.add_filter("toml", |value: Serde<toml::Value>| value.to_string());
    environment.render_str(
        include_str!("contract.toml.j2"),
        context! { plan => Serde(plan), entry => ENTRY, kept => kept },
    )
}
