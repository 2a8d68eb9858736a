//! Claude Code: `.mcp.json`, and skills, sub-agents and commands in `.claude`.

use super::edit::{PlannedContent, PlannedWrite};
use super::guide::{SubAgentAccess, ToolDialect};
use super::{InstallSite, guide, whole};

/// Its conventions.
pub(super) const DIALECT: ToolDialect =
    ToolDialect { prefix: "mcp__karve__", arguments: "$ARGUMENTS" };

/// Everything that is installed.
pub(super) fn pieces(site: &InstallSite) -> Vec<PlannedWrite> {
    let registry = match site.is_project() {
        true => ".mcp.json",
        false => ".claude.json",
    };
    let mut pieces = vec![
        PlannedWrite {
            path: registry.to_owned(),
            how: PlannedContent::Json { within: "mcpServers", value: guide::server() },
        },
        whole(site.own("skills/karve/SKILL.md"), DIALECT.skill_file()),
    ];
    for agent in &guide::SUB_AGENTS {
        let tools = tools(agent.may);
        let front =
            [("name", agent.name), ("description", agent.description), ("tools", tools.as_str())];
        let text = guide::with_front(&front, &DIALECT.sub_agent(agent));
        pieces.push(whole(site.own(&format!("agents/{}.md", agent.name)), text));
    }
    for order in &guide::ORDERS {
        let front = [("description", order.description)];
        let text = guide::with_front(&front, &DIALECT.order(order));
        pieces.push(whole(site.own(&format!("commands/{}.md", order.name)), text));
    }
    pieces
}

/// The tools that a sub-agent may use, by name.
fn tools(may: SubAgentAccess) -> String {
    let (own, asked): (&str, &[&str]) = match may {
        SubAgentAccess::Look => ("Read, Grep, Glob, Bash", &guide::READING),
        SubAgentAccess::Edit => ("Read, Grep, Glob, Bash, Edit, Write", &guide::TOOLS),
    };
    let asked = asked.iter().map(|tool| format!("{}{tool}", DIALECT.prefix));
    let all: Vec<String> = std::iter::once(own.to_owned()).chain(asked).collect();
    all.join(", ")
}
