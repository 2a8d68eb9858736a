//! opencode: `opencode.json`, and skills, sub-agents and commands in `.opencode`.

use super::edit::{PlannedContent, PlannedWrite};
use super::guide::{SubAgentAccess, ToolDialect};
use super::{InstallSite, guide, whole};
use serde_json::json;

/// Its conventions.
pub(super) const DIALECT: ToolDialect = ToolDialect { prefix: "karve_", arguments: "$ARGUMENTS" };

/// Everything that is installed.
pub(super) fn pieces(site: &InstallSite) -> Vec<PlannedWrite> {
    let in_place = |name: &str| match site.is_project() {
        true => name.to_owned(),
        false => site.own(name),
    };
    // It reads either name; a file with comments has the longer one.
    let with_comments = in_place("opencode.jsonc");
    let registry = match site.root.join(&with_comments).exists() {
        true => with_comments,
        false => in_place("opencode.json"),
    };
    let mut pieces = vec![
        PlannedWrite {
            path: registry,
            how: PlannedContent::Json {
                within: "mcp",
                value: json!({
                    "type": "local",
                    "command": ["karve", "mcp", "--yes"],
                    "enabled": true,
                }),
            },
        },
        whole(site.own("skills/karve/SKILL.md"), DIALECT.skill_file()),
    ];
    for agent in &guide::SUB_AGENTS {
        let permission = match agent.may {
            SubAgentAccess::Look => "permission:\n  edit: \"deny\"\n",
            SubAgentAccess::Edit => "",
        };
        let front = [("description", agent.description), ("mode", "subagent")];
        let text = guide::with_front(&front, &DIALECT.sub_agent(agent));
        let text = text.replacen("\n---\n", &format!("\n{permission}---\n"), 1);
        pieces.push(whole(site.own(&format!("agent/{}.md", agent.name)), text));
    }
    for order in &guide::ORDERS {
        let front = [("description", order.description)];
        let text = guide::with_front(&front, &DIALECT.order(order));
        pieces.push(whole(site.own(&format!("command/{}.md", order.name)), text));
    }
    pieces
}
