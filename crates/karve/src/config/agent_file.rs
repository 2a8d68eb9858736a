//! `[agent]`, `[agents.NAME]` and `[roles.NAME]` of `karve.toml` as written.

use super::values::Scalar;
use karve_core::asking::budget;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The kind of an agent.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is used; the shape of a file is checked first")]
enum AgentKind {
    /// Any program that follows docs/agents.md.
    Command,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// aider.
    Aider,
    /// The Messages API of Anthropic.
    Anthropic,
    /// The Responses API of OpenAI.
    Openai,
    /// The Chat Completions API of OpenAI and compatible servers.
    #[serde(rename = "openai-chat")]
    OpenaiChat,
    /// The Gemini API of Google.
    Google,
}

/// A program that can be selected as the agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentProgram {
    /// Its kind; `command` if there is a command, otherwise its name.
    #[schemars(with = "Option<AgentKind>")]
    pub(super) kind: Option<String>,
    /// The command line of a program that follows docs/agents.md.
    #[schemars(length(min = 1))]
    pub(super) command: Option<String>,
    /// Added to its environment.
    #[serde(default)]
    pub(super) env: BTreeMap<String, Scalar>,
    /// Variables with keys that are passed to a program; `NAME*` matches a prefix. None by
    /// default.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) pass: Vec<String>,
    /// Whether it is asked, after an informative round, to write up what was learned; false by
    /// default.
    #[serde(default)]
    pub(super) learn: bool,
    /// The program of a command-line agent, if not the default one.
    #[schemars(length(min = 1))]
    pub(super) program: Option<String>,
    /// The model that a command-line agent or a model API should use.
    #[schemars(length(min = 1))]
    pub(super) model: Option<String>,
    /// Extra arguments of a command-line agent.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// The hosts that it may reach, such as `api.example.com` or `localhost:8080`; `*` for all. By
    /// default those of its model, if its kind defines them.
    #[schemars(length(min = 1, max = 64))]
    pub(super) hosts: Option<Vec<String>>,
    /// The base URL of a model API, if not the default.
    #[schemars(length(min = 1))]
    pub(super) base_url: Option<String>,
    /// The variable with the key of a model API, if not the default one.
    #[schemars(length(min = 1))]
    pub(super) key_env: Option<String>,
    /// A command that prints the key of a model API.
    #[schemars(length(min = 1))]
    pub(super) key_command: Option<String>,
    /// What a million tokens of a model API cost, in US dollars.
    pub(super) price: Option<PriceSetting>,
    /// Maximum number of tokens in one reply of a model API.
    #[schemars(range(min = 256, max = 1_000_000))]
    pub(super) max_tokens: Option<u32>,
    /// The context window of the model of a model API, in tokens.
    #[schemars(range(min = 1_024, max = 100_000_000))]
    pub(super) context_tokens: Option<u64>,
    /// Maximum number of tokens that a campaign may use; no limit by default.
    #[schemars(range(min = 1))]
    pub(super) tokens_max: Option<u64>,
    /// How often a failed request to a model API is retried; 6 by default.
    #[schemars(range(min = 0, max = 20))]
    pub(super) retries: Option<u32>,
    /// Milliseconds before the first retry, doubled for each further one; 1000 by default.
    #[schemars(range(min = 1, max = 60_000))]
    pub(super) backoff_ms: Option<u64>,
}

/// Who proposes and implements.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentTable {
    /// `builtin`, `external`, `replay:<directory>`, a kind of command-line agent or model API, or
    /// one of `[agents]`; `builtin` by default.
    #[schemars(length(min = 1))]
    pub(super) name: Option<String>,
    /// The request in words, such as `port it to TileIR`; it selects the role.
    #[schemars(length(min = 1, max = 400))]
    pub(super) intent: Option<String>,
    /// Maximum tokens of a brief, each counted as four bytes; 6000 by default.
    #[schemars(range(min = 1_000, max = 200_000))]
    pub(super) brief_tokens: Option<u32>,
}

/// Which agent takes a role.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RoleAgentTable {
    /// The agent that takes it, named as in `agent.name`; the campaign's agent by default.
    #[schemars(length(min = 1))]
    pub(super) agent: Option<String>,
    /// Whether the role is used at all; true by default.
    pub(super) enabled: Option<bool>,
    /// Globs of the editable files that it may change, instead of the role's defaults.
    #[schemars(length(min = 1))]
    pub(super) writes: Option<Vec<String>>,
}

/// What tokens cost, in US dollars per million.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceSetting {
    /// A million input tokens.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// A million output tokens.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// A million cached input tokens; the same as `input` by default.
    #[schemars(range(min = 0))]
    pub cached: Option<f64>,
}

impl From<PriceSetting> for budget::TokenPrice {
    fn from(price: PriceSetting) -> Self {
        Self {
            input: price.input,
            output: price.output,
            cached: price.cached.unwrap_or(price.input),
        }
    }
}
