//! The texts that agents read, once for all tools. They are in `crates/karve/guides`; each tool
//! fills in its names for karve's tools and its placeholder for a command's arguments.

use super::edit::PlannedContent;
use serde_json::{Value, json};

/// What the server offers, by its own names.
pub(super) const TOOLS: [&str; 10] = [
    "next",
    "propose",
    "submit",
    "status",
    "verdict",
    "tried",
    "trend",
    "profile",
    "knowledge",
    "report",
];

/// Those that only read.
pub(super) const READING: [&str; 7] =
    ["status", "verdict", "tried", "trend", "profile", "knowledge", "report"];

/// When to use the skill, in one line.
pub(super) const SKILL: &str = "Optimize a compute kernel under karve, the referee: propose one \
                                hypothesis, make one change, get the verdict. Use when a project \
                                has a karve.toml, or when the user asks to make a kernel faster.";

/// The longest a tool call takes: building, testing and measuring one round, in seconds.
pub(super) const CALL_S: u64 = 3_600;

/// What a sub-agent may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubAgentAccess {
    /// Read files, run karve's commands and call its server.
    Look,
    /// Also change files.
    Edit,
}

/// A sub-agent.
#[derive(Debug)]
pub(super) struct SubAgent {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) may: SubAgentAccess,
    text: &'static str,
}

/// A slash command.
#[derive(Debug)]
pub(super) struct SlashCommand {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    text: &'static str,
}

/// What differs between tools.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolDialect {
    /// The prefix of the server's tool names.
    pub(super) prefix: &'static str,
    /// The placeholder for a command's arguments.
    pub(super) arguments: &'static str,
}

macro_rules! guide {
    ($($path:literal),+) => {
        include_str!(concat!("../../guides/", $($path),+))
    };
}

macro_rules! sub_agents {
    ($($file:literal, $may:ident, $description:literal;)+) => {
        [$(SubAgent {
            name: concat!("karve-", $file),
            description: $description,
            may: SubAgentAccess::$may,
            text: guide!("agents/", $file, ".md"),
        }),+]
    };
}

macro_rules! orders {
    ($($file:literal, $description:literal;)+) => {
        [$(SlashCommand {
            name: concat!("karve-", $file),
            description: $description,
            text: guide!("commands/", $file, ".md"),
        }),+]
    };
}

/// The sub-agents.
pub(super) const SUB_AGENTS: [SubAgent; 8] = sub_agents! {
    "profiler", Look, "Says why a kernel is slow, from karve's profile; changes nothing.";
    "kernel-designer", Edit, "Makes the one change of a hypothesis in the workspace files.";
    "reviewer", Look, "Reviews a change before it is submitted to karve; changes nothing.";
    "cuda-graph", Edit, "Removes launch overhead with CUDA graphs, in a karve campaign.";
    "triton", Edit, "Writes and changes Triton kernels, in a karve campaign.";
    "tileir", Edit, "Adapts a Triton kernel to its TileIR backend, in a karve campaign.";
    "cute-dsl", Edit, "Writes CuTe DSL kernels, in a karve campaign.";
    "distributed", Edit, "Works on communication and overlap, in a karve campaign.";
};

/// The slash commands.
pub(super) const ORDERS: [SlashCommand; 5] = orders! {
    "optimize", "Run a karve campaign until it is finished";
    "round", "Run one round of the karve campaign, in a given direction";
    "status", "Show the state of the karve campaign";
    "profile", "Explain why the kernel is slow, from karve's profile";
    "report", "Show what the karve campaign achieved";
};

impl ToolDialect {
    fn fill(&self, text: &str) -> String {
        let mut text = text.replace("<args>", self.arguments);
        for tool in TOOLS {
            let name = format!("{}{tool}", self.prefix);
            text = text.replace(&format!("<tool:{tool}>"), &name);
        }
        text
    }

    /// The text of the skill.
    pub(super) fn skill(&self) -> String {
        self.fill(guide!("skill.md"))
    }

    /// A skill in the open standard's format.
    pub(super) fn skill_file(&self) -> String {
        with_front(&[("name", "karve"), ("description", SKILL)], &self.skill())
    }

    /// The short version, for a file that is read in every conversation.
    pub(super) fn section(&self) -> PlannedContent {
        PlannedContent::Section(self.fill(guide!("snippet.md")))
    }

    /// The text of a sub-agent.
    pub(super) fn sub_agent(&self, agent: &SubAgent) -> String {
        self.fill(agent.text)
    }

    /// The text of a command.
    pub(super) fn order(&self, order: &SlashCommand) -> String {
        self.fill(order.text)
    }
}

/// Markdown with front matter. A JSON string is a YAML string too.
pub(super) fn with_front(fields: &[(&str, &str)], text: &str) -> String {
    let line = |(key, value): &(&str, &str)| format!("{key}: {}\n", Value::from(*value));
    let fields: String = fields.iter().map(line).collect();
    format!("---\n{fields}---\n\n{text}")
}

/// How to start the server, for tools that take program and arguments separately.
pub(super) fn server() -> Value {
    json!({"command": "karve", "args": ["mcp", "--yes"]})
}
