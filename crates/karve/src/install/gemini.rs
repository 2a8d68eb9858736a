//! Gemini CLI: `settings.json`, skills, sub-agents and commands in `.gemini`, and `GEMINI.md`.

use super::edit::{PlannedContent, PlannedWrite};
use super::guide::ToolDialect;
use super::{InstallSite, guide, whole};

/// Its conventions.
pub(super) const DIALECT: ToolDialect = ToolDialect { prefix: "mcp_karve_", arguments: "{{args}}" };

/// Everything that is installed.
pub(super) fn pieces(site: &InstallSite) -> Vec<PlannedWrite> {
    let mut server = guide::server();
    server["timeout"] = (guide::CALL_S * 1_000).into();
    let mut pieces = vec![
        PlannedWrite {
            path: site.own("settings.json"),
            how: PlannedContent::Json { within: "mcpServers", value: server },
        },
        whole(site.own("skills/karve/SKILL.md"), DIALECT.skill_file()),
    ];
    for agent in &guide::SUB_AGENTS {
        let front = [("name", agent.name), ("description", agent.description), ("kind", "local")];
        let text = guide::with_front(&front, &DIALECT.sub_agent(agent));
        pieces.push(whole(site.own(&format!("agents/{}.md", agent.name)), text));
    }
    for order in &guide::ORDERS {
        let text = format!(
            "description = \"{}\"\nprompt = '''\n{}'''\n",
            order.description,
            DIALECT.order(order)
        );
        let path = site.own(&format!("commands/{}.toml", order.name));
        pieces.push(whole(path, text));
    }
    if site.is_project() {
        pieces.push(PlannedWrite { path: "GEMINI.md".to_owned(), how: DIALECT.section() });
    }
    pieces
}
