//! Cursor: `mcp.json`, a rule (for a user a skill), sub-agents and commands in `.cursor`.

use super::edit::{PlannedContent, PlannedWrite};
use super::guide::{SubAgentAccess, ToolDialect};
use super::{InstallSite, guide, whole};

/// Its conventions. It shows tools by their own names, and appends the text after a command.
pub(super) const DIALECT: ToolDialect =
    ToolDialect { prefix: "", arguments: "the text after the command." };

/// Everything that is installed.
pub(super) fn pieces(site: &InstallSite) -> Vec<PlannedWrite> {
    let mut pieces = vec![PlannedWrite {
        path: site.own("mcp.json"),
        how: PlannedContent::Json { within: "mcpServers", value: guide::server() },
    }];
    pieces.push(match site.is_project() {
        true => {
            let text = guide::with_front(&[("description", guide::SKILL)], &DIALECT.skill());
            let text = text.replacen("\n---\n", "\nalwaysApply: false\n---\n", 1);
            whole(site.own("rules/karve.mdc"), text)
        }
        false => whole(site.own("skills/karve/SKILL.md"), DIALECT.skill_file()),
    });
    for agent in &guide::SUB_AGENTS {
        let front = [("name", agent.name), ("description", agent.description)];
        let text = guide::with_front(&front, &DIALECT.sub_agent(agent));
        let text = match agent.may {
            SubAgentAccess::Look => text.replacen("\n---\n", "\nreadonly: true\n---\n", 1),
            SubAgentAccess::Edit => text,
        };
        pieces.push(whole(site.own(&format!("agents/{}.md", agent.name)), text));
    }
    for order in &guide::ORDERS {
        let path = site.own(&format!("commands/{}.md", order.name));
        pieces.push(whole(path, DIALECT.order(order)));
    }
    pieces
}
