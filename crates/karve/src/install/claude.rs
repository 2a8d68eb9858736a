//! Claude Code: `.mcp.json`, and skills, sub-agents and commands in `.claude`.

use super::edit::{How, Piece};
use super::guide::{self, Dialect, May};
use super::{Site, whole};

/// Its conventions.
pub(super) const DIALECT: Dialect = Dialect {
    prefix: "mcp__karve__",
    arguments: "$ARGUMENTS",
};

/// Everything that is installed.
pub(super) fn pieces(site: &Site) -> Vec<Piece> {
    let registry = match site.is_project() {
        true => ".mcp.json",
        false => ".claude.json",
    };
    let mut pieces = vec![
        Piece {
            path: registry.to_owned(),
            how: How::Json {
                within: "mcpServers",
                value: guide::server(),
            },
        },
        whole(site.own("skills/karve/SKILL.md"), DIALECT.skill_file()),
    ];
    for agent in &guide::SUB_AGENTS {
        let tools = tools(agent.may);
        let front = [
            ("name", agent.name),
            ("description", agent.description),
            ("tools", tools.as_str()),
        ];
        let text = guide::with_front(&front, &DIALECT.sub_agent(agent));
        pieces.push(whole(site.own(&format!("agents/{}.md", agent.name)), text));
    }
    for order in &guide::ORDERS {
        let front = [("description", order.description)];
        let text = guide::with_front(&front, &DIALECT.order(order));
        pieces.push(whole(
            site.own(&format!("commands/{}.md", order.name)),
            text,
        ));
    }
    pieces
}

/// The tools that a sub-agent may use, by name.
fn tools(may: May) -> String {
    let (own, asked): (&str, &[&str]) = match may {
        May::Look => ("Read, Grep, Glob, Bash", &guide::READING),
        May::Edit => ("Read, Grep, Glob, Bash, Edit, Write", &guide::TOOLS),
    };
    let asked = asked.iter().map(|tool| format!("{}{tool}", DIALECT.prefix));
    let all: Vec<String> = std::iter::once(own.to_owned()).chain(asked).collect();
    all.join(", ")
}
