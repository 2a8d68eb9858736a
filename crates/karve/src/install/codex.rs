//! Codex: `config.toml` and sub-agents in `.codex`, skills in `.agents`. It has commands only for a
//! user, so in a project they are skills.

use super::edit::{PlannedContent, PlannedWrite};
use super::guide::{SubAgentAccess, ToolDialect};
use super::{InstallScope, InstallSite, agents_md, guide, whole};

/// Its conventions.
pub(super) const DIALECT: ToolDialect =
    ToolDialect { prefix: "mcp__karve__", arguments: "$ARGUMENTS" };

/// A skill has no arguments. Other agents read `.agents` too, so tools have the names that the
/// server gives them.
const OF_SKILLS: ToolDialect =
    ToolDialect { prefix: "", arguments: "whatever the user wrote after it." };

/// Everything that is installed.
pub(super) fn pieces(site: &InstallSite) -> Vec<PlannedWrite> {
    let skills = match site.reach {
        InstallScope::Project | InstallScope::User => ".agents/skills",
        InstallScope::Led => "skills",
    };
    let mut pieces = vec![
        PlannedWrite {
            path: site.own("config.toml"),
            how: PlannedContent::Toml {
                within: "mcp_servers",
                lines: format!(
                    "command = \"karve\"\nargs = [\"mcp\", \"--yes\"]\ntool_timeout_sec = {}\n",
                    guide::CALL_S
                ),
            },
        },
        whole(format!("{skills}/karve/SKILL.md"), OF_SKILLS.skill_file()),
    ];
    for agent in &guide::SUB_AGENTS {
        let sandbox = match agent.may {
            SubAgentAccess::Look => "read-only",
            SubAgentAccess::Edit => "workspace-write",
        };
        let text = format!(
            "name = \"{}\"\ndescription = \"{}\"\nsandbox_mode = \"{sandbox}\"\n\
             developer_instructions = '''\n{}'''\n",
            agent.name,
            agent.description,
            DIALECT.sub_agent(agent)
        );
        let path = site.own(&format!("agents/{}.toml", agent.name));
        pieces.push(whole(path, text));
    }
    for order in &guide::ORDERS {
        pieces.push(match site.is_project() {
            false => {
                let front = [("description", order.description)];
                let text = guide::with_front(&front, &DIALECT.order(order));
                whole(site.own(&format!("prompts/{}.md", order.name)), text)
            }
            true => {
                let front = [("name", order.name), ("description", order.description)];
                let text = guide::with_front(&front, &OF_SKILLS.order(order));
                whole(format!("{skills}/{}/SKILL.md", order.name), text)
            }
        });
    }
    if site.is_project() {
        pieces.push(PlannedWrite {
            path: "AGENTS.md".to_owned(),
            // The same as for any other agent, so that both may be installed.
            how: agents_md::DIALECT.section(),
        });
    }
    pieces
}
