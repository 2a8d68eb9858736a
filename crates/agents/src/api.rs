//! Model APIs, called directly for users without an agent: karve asks the model itself and gives it
//! a few tools.
//!
//! One loop serves all APIs. An API is data: its address, and pure functions that write a request
//! and parse the events of a response. Retries, the cost of a request and what is left out of a
//! long conversation are decided in `karve_core::asking`.
//!
//! ```text
//! anthropic, openai, chat, google   one API each
//! conversation a conversation, independent of any API
//! reply    the part of a response received so far
//! sse      decodes events from bytes
//! reply_reader receives one response, in bounded memory
//! http     the client
//! advice   what the user can do about a refusal
//! retry    how a failure is classified, and whether it is transient
//! files    reads, searches and writes a worktree, and nothing else
//! tools    the tools that the model may call
//! turn     one turn, from the brief to the final reply
//! log_reader reads a session log for display
//! key      where the key comes from
//! trial    a small turn, to check that the API works from here
//! ```

mod advice;
mod anthropic;
mod chat;
mod config;
mod conversation;
mod files;
mod google;
mod http;
mod key;
mod log_reader;
mod openai;
mod reply;
mod reply_reader;
mod retry;
mod sse;
#[cfg(test)]
mod tests;
mod tools;
mod trial;
mod turn;

pub use self::config::{ApiConfig, KeySource, is_model};
pub use self::log_reader::SessionLogReader;
pub use self::trial::{has_key, run_trial};

use self::conversation::{ApiConversation, ConversationItem};
use self::files::WorkspaceFiles;
use self::http::ApiClient;
use self::reply::ModelReply;
use self::tools::{ToolRights, ToolSpec, ToolWorkspace};
use self::turn::ApiTurnContext;
use super::Workspace;
use super::cli::turn_output::TurnFailure;
use super::secrets::Secrets;
use super::session_log::SessionLog;
use super::turn::{FinishedTurn, TextAgent, TurnEnd, TurnRequest, UsageReport};
use karve_core::asking::budget::{RemainingBudget, TokenGauge};
use karve_core::charter::Charter;
use karve_core::spending::AgentUsage;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// A kind of model API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiKind {
    /// The Messages API of Anthropic.
    Anthropic,
    /// The Responses API of OpenAI.
    Openai,
    /// Chat Completions of OpenAI, and of compatible servers.
    OpenaiChat,
    /// The Gemini API of Google.
    Google,
}

impl ApiKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Openai, Self::OpenaiChat, Self::Google];

    /// The kind with a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name in `karve.toml` and for `--agent`.
    pub fn name(self) -> &'static str {
        self.wire().name
    }

    /// Its display name.
    pub fn title(self) -> &'static str {
        self.wire().title
    }

    /// The variable that usually holds its key.
    pub fn key_env(self) -> &'static str {
        self.wire().key_env
    }

    /// Its default address.
    pub fn base_url(self) -> &'static str {
        self.wire().base_url
    }

    /// The default token limit of a response.
    pub fn max_tokens(self) -> u32 {
        self.wire().max_tokens
    }

    /// The default context size of its models, in tokens.
    pub fn context_tokens(self) -> u64 {
        self.wire().context_tokens
    }

    fn wire(self) -> &'static WireFormat {
        match self {
            Self::Anthropic => &anthropic::WIRE,
            Self::Openai => &openai::WIRE,
            Self::OpenaiChat => &chat::WIRE,
            Self::Google => &google::WIRE,
        }
    }
}

/// An API as data.
#[derive(Debug)]
struct WireFormat {
    name: &'static str,
    title: &'static str,
    key_env: &'static str,
    base_url: &'static str,
    max_tokens: u32,
    context_tokens: u64,
    /// Whether writing input to the cache has a price.
    writes_cache: bool,
    /// The headers of every request, with the key if there is one.
    headers: fn(Option<&str>) -> Vec<(&'static str, String)>,
    /// Writes a request.
    post: fn(&ApiQuestion<'_>) -> ApiRequest,
    /// Processes one event of a response.
    read: fn(&mut ModelReply, &Value),
    /// Turns the parts of a complete response into text, calls and the content to send back.
    settle: fn(&mut ModelReply),
}

/// A key in the form that most servers expect.
fn bearer(key: Option<&str>) -> Vec<(&'static str, String)> {
    let key = key.map(|key| ("authorization", format!("Bearer {key}")));
    key.into_iter().collect()
}

/// What an API needs to write a request.
struct ApiQuestion<'a> {
    model: &'a str,
    max_tokens: u32,
    system: &'a str,
    tools: &'a [&'static ToolSpec],
    items: &'a [ConversationItem],
    /// Whether it goes to the vendor's own server.
    is_usual: bool,
}

/// A request.
struct ApiRequest {
    path: String,
    body: Value,
}

/// A model, ready for requests.
#[derive(Debug)]
struct ApiModel {
    config: ApiConfig,
    wire: &'static WireFormat,
    name: String,
    client: ApiClient,
    secrets: Secrets,
    gauge: TokenGauge,
}

impl ApiModel {
    /// Gets the key from its source.
    fn open(agent: &str, config: &ApiConfig, stop: &StopFlag) -> Result<Self> {
        let wire = config.kind.wire();
        let key = key::key_of(agent, config, stop)?;
        let url = config.base_url.as_deref().unwrap_or(wire.base_url);
        let reported = key.as_ref().map(|key| ("API_KEY".to_owned(), key.reveal().to_owned()));
        let reported: Vec<(String, String)> = reported.into_iter().collect();
        Ok(Self {
            config: config.clone(),
            wire,
            name: config.model_for(agent)?.to_owned(),
            client: ApiClient::new(url, key.as_ref(), wire.headers)?,
            secrets: Secrets::of(reported.iter().map(|(name, value)| (name, value))),
            gauge: TokenGauge::default(),
        })
    }
}

/// A model API as an agent.
#[derive(Debug)]
pub struct ApiAgent {
    name: String,
    config: ApiConfig,
    learns: bool,
    limit_s: u64,
    usd_max: Option<f64>,
    /// Created on first use, because a command may have to provide the key.
    model: Option<ApiModel>,
    conversation: Option<ApiConversation>,
}

impl ApiAgent {
    /// A model API under a name, with its budget.
    pub fn new(name: &str, config: ApiConfig, learns: bool, charter: &Charter) -> Result<Self> {
        // This is the name of the table, whatever model was given with it.
        let name = name.split(':').next().unwrap_or(name);
        config.model_for(name)?;
        key::check(name, &config)?;
        let limits = &charter.limits;
        if limits.agent_usd.is_some() && config.price.is_none() {
            return Err(CommandError::usage(format!(
                "limits.agent_usd cannot be enforced: the agent {name} has no price"
            ))
            .hint(format!(
                "set agents.{name}.price = {{ input = …, output = … }} in karve.toml, in US \
                 dollars per million tokens; a local server costs 0.0"
            )));
        }
        if !charter.sandbox.agent_network && !config.is_loopback() {
            return Err(CommandError::usage(format!(
                "the agent {name} needs the network, which it may not use"
            ))
            .hint("set sandbox.agent_network = true in karve.toml, or name a local server"));
        }
        Ok(Self {
            name: name.to_owned(),
            config,
            learns,
            limit_s: limits.agent_s,
            usd_max: limits.agent_usd,
            model: None,
            conversation: None,
        })
    }

    /// What is left, given what the campaign has used.
    fn remaining_budget(&self, spent: AgentUsage) -> RemainingBudget {
        let all = RemainingBudget { usd: self.usd_max, tokens: self.config.tokens_max };
        all.after(spent)
    }
}

impl TextAgent for ApiAgent {
    const ANSWER_TO: &'static str = "as your last message, in one fenced `json` block";

    /// One turn, in the conversation of its round if there is one.
    fn run_turn(
        &mut self,
        request: TurnRequest<'_>,
        workspace: &Workspace<'_>,
    ) -> Result<FinishedTurn> {
        let task = request.task;
        let limit_s = task.limit_s(self.limit_s);
        let until = Instant::now() + Duration::from_secs(limit_s);
        let mut model = match self.model.take() {
            Some(model) => model,
            None => ApiModel::open(&self.name, &self.config, workspace.stop)?,
        };
        let last = match ToolRights::of(task) {
            // Without tools, a conversation that used some cannot continue.
            ToolRights::Answer => None,
            ToolRights::Read | ToolRights::Work => self.conversation.take(),
        };
        let mut talk = ApiConversation::going_on(last, (request.round, request.variant));
        talk.items.push(ConversationItem::Prompt(model.secrets.redact(request.brief)));
        let place = ApiTurnContext {
            task,
            session_log: workspace.session_log,
            stop: workspace.stop,
            until,
            limit_s,
            left: self.remaining_budget(workspace.spent),
        };
        let secrets = model.secrets.clone();
        let files = WorkspaceFiles::new(workspace.tree, request.editable, &secrets)?;
        let mut bench = ToolWorkspace::new(workspace, ToolRights::of(task), files, until);
        let reported = turn::run(&mut model, &mut talk, Some(&mut bench), &place)?;
        self.model = Some(model);
        // After a failure the next brief starts a new conversation; it has all that matters.
        self.conversation = reported.failure.is_none().then_some(talk);
        Ok(FinishedTurn {
            ended: match reported.failure {
                // Asking again would not help.
                Some(fault @ TurnFailure::Budget(_)) => TurnEnd::Spent(fault.describe()),
                Some(fault) => TurnEnd::Failed(fault.describe()),
                None => TurnEnd::Replied(reported.text),
            },
            used: UsageReport::Counted(reported.usage),
        })
    }

    fn is_asked_for_lessons(&self) -> bool {
        self.learns
    }

    fn key_variable(&self) -> Option<&str> {
        key::variable_of(&self.config)
    }

    fn has_key_in(&self, bytes: &[u8]) -> bool {
        let model = self.model.as_ref();
        model.is_some_and(|model| model.secrets.are_in(bytes))
    }
}

/// For the fuzzing tests: whether bytes are the stream of a complete response; `log` is written.
#[doc(hidden)]
pub fn reads_stream(kind: ApiKind, bytes: &[u8], log: &Path) -> Result<bool> {
    let secrets = Secrets::default();
    let mut log = SessionLog::open(log, &secrets)?;
    let mut reader = reply_reader::ReplyReader::new(kind.wire(), &secrets, &mut log);
    reader.take(&http::ResponsePart::Head(200, None));
    // A response arrives in pieces.
    let more = bytes.chunks(1_000).all(|piece| reader.take(&http::ResponsePart::Piece(piece)));
    let (reply, failure) = reader.finish(Ok(()))?;
    reply.believed(bytes.len());
    reply.message();
    Ok(more && failure.is_none())
}
