//! One turn: the model is asked, its tool calls are executed, and so on until it is done.
//!
//! Every request is checked before it is sent: whether the conversation fits the model's context,
//! and whether it fits the money, tokens and time that are left.

use super::advice::advice;
use super::conversation::{ApiConversation, ConversationItem, ToolCall, ToolOutput};
use super::http::{RequestLimit, ResponseError, ResponsePart};
use super::reply::ModelReply;
use super::reply_reader::ReplyReader;
use super::retry::ApiFailure;
use super::tools::{ToolRights, ToolWorkspace};
use super::{ApiModel, ApiQuestion, ApiRequest};
use crate::cli::turn_output::{TurnFailure, message};
use crate::session_log::{SessionLog, VERSION};
use crate::turn::TurnTask;
use karve_core::asking::budget::{
    BudgetShortfall, PromptCaching, RemainingBudget, TokenCounts, TokenPrice,
};
use karve_core::asking::context_window::ContextWindow;
use karve_core::asking::retry::{RetryDecision, RetryRule, RetryState};
use karve_core::spending::AgentUsage;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use karve_os::random::secret;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Most tool calls in one turn.
const CALLS_MAX: usize = 100;
/// Most characters of a tool's output that are kept.
const TOOL_OUTPUT_CHARS_MAX: usize = 32_000;

/// The system prompt.
const SYSTEM: &str = include_str!("../../prompts/system.md").trim_ascii_end();

/// Where and for how long a turn takes place.
#[derive(Debug)]
pub(super) struct ApiTurnContext<'a> {
    pub(super) task: TurnTask,
    pub(super) session_log: &'a Path,
    pub(super) stop: &'a StopFlag,
    pub(super) until: Instant,
    pub(super) limit_s: u64,
    pub(super) left: RemainingBudget,
}

/// The result of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ApiTurnResult {
    /// The final reply.
    pub(super) text: String,
    /// What it used.
    pub(super) usage: AgentUsage,
    /// Why it failed, if so.
    pub(super) failure: Option<TurnFailure>,
}

/// Why a turn ends without a reply.
enum TurnStop {
    /// It failed, which is its outcome.
    Failed(TurnFailure),
    /// karve cannot continue.
    Broken(CommandError),
}

impl From<TurnFailure> for TurnStop {
    fn from(failure: TurnFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<CommandError> for TurnStop {
    fn from(error: CommandError) -> Self {
        Self::Broken(error)
    }
}

/// A running turn.
struct ApiTurn<'a, 'b> {
    model: &'a mut ApiModel,
    conversation: &'a mut ApiConversation,
    bench: Option<&'a mut ToolWorkspace<'b>>,
    place: &'a ApiTurnContext<'a>,
    log: SessionLog,
    used: TokenCounts,
    /// Whether karve estimated some of it.
    is_estimated: bool,
    /// Requests that were sent, with all retries.
    n_requests: u32,
}

/// Runs one turn, in a conversation whose last item is the brief.
pub(super) fn run(
    model: &mut ApiModel,
    talk: &mut ApiConversation,
    bench: Option<&mut ToolWorkspace<'_>>,
    place: &ApiTurnContext<'_>,
) -> Result<ApiTurnResult> {
    let log = SessionLog::open(place.session_log, &model.secrets)?;
    let mut turn = ApiTurn {
        model,
        conversation: talk,
        bench,
        place,
        log,
        used: TokenCounts::default(),
        is_estimated: false,
        n_requests: 0,
    };
    turn.begin()?;
    let (text, fault) = match turn.go() {
        Ok(text) => {
            let fault = turn.examine(&text);
            (text, fault)
        }
        Err(TurnStop::Failed(fault)) => (String::new(), Some(fault)),
        Err(TurnStop::Broken(error)) => return Err(error),
    };
    let usage = turn.usage();
    turn.note(&json!({
        "karve": "end",
        "fault": fault.as_ref().map(TurnFailure::describe),
        "questions": turn.n_requests,
        "tokens": usage.tokens,
        "usd": usage.usd,
        "estimated": usage.estimated,
        "answer": text,
    }))?;
    turn.log.finish()?;
    Ok(ApiTurnResult { text, usage, failure: fault })
}

/// A refusal by the server, with what the user can do about it.
fn advised(fault: TurnFailure, advice: Option<String>) -> TurnFailure {
    match (fault, advice) {
        (TurnFailure::Api(said), Some(advice)) => TurnFailure::Api(format!("{said}; {advice}")),
        (fault, _) => fault,
    }
}

fn refused(call: &ToolCall, why: &str) -> ToolOutput {
    ToolOutput { id: call.id.clone(), name: call.name.clone(), text: why.to_owned(), failed: true }
}

impl ApiTurn<'_, '_> {
    fn note(&mut self, value: &Value) -> Result<()> {
        self.log.note(value)
    }

    fn usage(&self) -> AgentUsage {
        AgentUsage { estimated: self.is_estimated, ..self.used.usage(self.price()) }
    }

    fn price(&self) -> Option<TokenPrice> {
        self.model.config.price
    }

    /// Logs the brief first.
    fn begin(&mut self) -> Result<()> {
        let brief = match self.conversation.items.last() {
            Some(ConversationItem::Prompt(brief)) => brief.clone(),
            _ => String::new(),
        };
        let tools = ToolRights::of(self.place.task).tools();
        let tools: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let note = json!({
            "karve": "brief",
            "version": VERSION,
            "agent": self.model.config.kind.name(),
            "task": self.place.task.name(),
            "model": self.model.name,
            "system": SYSTEM,
            "tools": tools,
            "earlier": self.conversation.items.len().saturating_sub(1),
            "brief": brief,
        });
        self.note(&note)
    }

    /// Asks and returns tool output, until the model is done.
    fn go(&mut self) -> Result<String, TurnStop> {
        let mut calls = 0;
        loop {
            let reply = self.answer()?;
            self.conversation.items.push(ConversationItem::Reply(reply.message()));
            if reply.calls.is_empty() {
                return Ok(reply.text);
            }
            calls += reply.calls.len();
            if calls > CALLS_MAX {
                let why = format!("there were more than {CALLS_MAX} tool calls");
                return Err(TurnFailure::MaxTurns(why).into());
            }
            let mut given = Vec::new();
            for call in &reply.calls {
                self.unless(self.patience().is_over())?;
                let done = match (reply.masks(call), &mut self.bench) {
                    // With the key replaced, the input is not what the model meant.
                    (true, _) => refused(call, "the arguments contain the value of a key"),
                    (false, Some(bench)) => bench.perform(call)?,
                    (false, None) => refused(call, "no tools are available now"),
                };
                given.push(self.give(call, done)?);
            }
            self.conversation.items.push(ConversationItem::Given(given));
        }
    }

    /// A tool's output, as it is logged and returned.
    fn give(&mut self, call: &ToolCall, mut given: ToolOutput) -> Result<ToolOutput> {
        // A build may print anything it finds; no key goes to a model.
        let text = self.model.secrets.redact(&given.text);
        given.text = text.chars().take(TOOL_OUTPUT_CHARS_MAX).collect();
        self.note(&json!({
            "karve": "tool",
            "name": message(&call.name),
            "input": call.input,
            "failed": given.failed,
            "text": given.text,
        }))?;
        Ok(given)
    }

    /// Goes on, unless the turn was interrupted.
    fn unless(&self, lost: Option<ResponseError>) -> Result<(), TurnFailure> {
        match lost {
            Some(lost) => Err(ApiFailure::from(lost).into_turn_failure(self.place.limit_s, 0)),
            None => Ok(()),
        }
    }

    fn patience(&self) -> RequestLimit<'_> {
        RequestLimit { stop: self.place.stop, until: self.place.until }
    }

    fn post(&self) -> (ApiRequest, usize) {
        let config = &self.model.config;
        let post = (self.model.wire.post)(&ApiQuestion {
            model: &self.model.name,
            max_tokens: config.max_tokens,
            system: SYSTEM,
            tools: &ToolRights::of(self.place.task).tools(),
            items: &self.conversation.items,
            is_usual: config.base_url.is_none(),
        });
        let bytes = post.body.to_string().len();
        (post, bytes)
    }

    /// One response, with as many retries as the policy allows.
    fn answer(&mut self) -> Result<ModelReply, TurnStop> {
        let rule = RetryRule {
            retries: self.model.config.retries,
            base: Duration::from_millis(self.model.config.backoff_ms),
        };
        self.fit_context()?;
        let (mut tried, mut was_full) = (0, false);
        loop {
            let (post, bytes) = self.post();
            self.weigh(bytes)?;
            let (failure, status) = match self.ask(&post, bytes)? {
                (reply, None) => return Ok(reply),
                (reply, Some(failure)) => (failure, reply.status),
            };
            self.note(&json!({"karve": "failed", "why": format!("{failure:?}")}))?;
            if matches!(failure, ApiFailure::Full(_)) && !was_full {
                was_full = true;
                if self.compact(self.conversation.bytes() / 2)? {
                    continue;
                }
            }
            let moment = RetryState {
                tried,
                chance: secret()? as f64 / u64::MAX as f64,
                left: self.place.until.saturating_duration_since(Instant::now()),
            };
            let RetryDecision::AskAgain(wait) = rule.next(failure.missed(), moment) else {
                let advice = advice(status, &failure, &self.model.config);
                let fault = failure.into_turn_failure(self.place.limit_s, tried);
                return Err(advised(fault, advice).into());
            };
            tried += 1;
            self.unless(self.patience().wait(wait))?;
        }
    }

    /// Sends one request.
    fn ask(&mut self, post: &ApiRequest, bytes: usize) -> Result<(ModelReply, Option<ApiFailure>)> {
        self.n_requests += 1;
        let note = json!({
            "karve": "question",
            "number": self.n_requests,
            "items": self.conversation.items.len(),
            "bytes": bytes,
        });
        self.note(&note)?;
        let patience = RequestLimit { stop: self.place.stop, until: self.place.until };
        let body = post.body.to_string().into_bytes();
        let mut hearing = ReplyReader::new(self.model.wire, &self.model.secrets, &mut self.log);
        let take = &mut |came: ResponsePart<'_>| hearing.take(&came);
        let ended = self.model.client.post(&post.path, body, patience, take);
        let (reply, failure) = hearing.finish(ended)?;
        // The usage counts, whatever the result.
        let (counted, is_estimated) = reply.believed(bytes);
        self.is_estimated |= is_estimated;
        self.used.add(counted);
        self.model.gauge.learn(bytes, counted.all_input());
        Ok((reply, failure))
    }

    /// Fails if the budget does not allow the next request.
    fn weigh(&self, bytes: usize) -> Result<(), TurnFailure> {
        let caching = match self.model.wire.writes_cache {
            true => PromptCaching::Written,
            false => PromptCaching::Free,
        };
        let output = self.model.config.max_tokens.into();
        let next = TokenCounts::at_most(self.model.gauge.tokens(bytes), output, caching);
        let left = self.place.left.after(self.usage());
        left.refuses(next, self.price()).map_or(Ok(()), |short| Err(budget_failure(short)))
    }

    /// Makes the conversation fit the model's context before a request.
    fn fit_context(&mut self) -> Result<()> {
        let (_, sent) = self.post();
        let room = ContextWindow {
            context_tokens: self.model.config.context_tokens,
            answer_tokens: self.model.config.max_tokens.into(),
        };
        match room.needs_cut(&self.model.gauge, sent, self.conversation.bytes()) {
            Some(bytes_max) => self.compact(bytes_max).map(|_| ()),
            None => Ok(()),
        }
    }

    fn compact(&mut self, bytes_max: usize) -> Result<bool> {
        let before = self.conversation.bytes();
        let is_less = self.conversation.compact(bytes_max);
        let after = self.conversation.bytes();
        self.note(&json!({"karve": "compacted", "bytes": before, "to": after}))?;
        Ok(is_less)
    }

    /// Why a turn that ended normally is still a failure, if so.
    fn examine(&self, text: &str) -> Option<TurnFailure> {
        let bench = self.bench.as_ref();
        let has_changed = bench.is_some_and(|bench| bench.has_changed);
        let denied = bench.map(|bench| bench.denied.clone()).unwrap_or_default();
        let works = ToolRights::of(self.place.task) == ToolRights::Work;
        match (works && !has_changed, text.trim().is_empty()) {
            (true, _) if !denied.is_empty() => Some(TurnFailure::Denied(denied)),
            (_, true) if !has_changed => Some(TurnFailure::NoOutput),
            (true | false, true | false) => None,
        }
    }
}

/// The message for a request that is too expensive.
fn budget_failure(short: BudgetShortfall) -> TurnFailure {
    TurnFailure::Budget(match short {
        BudgetShortfall::Usd { next, left } => format!(
            "the next request may cost ${next:.4}, and ${left:.4} of limits.agent_usd is left"
        ),
        BudgetShortfall::Tokens { next, left } => {
            format!("the next request may take {next} tokens, and {left} of tokens_max are left")
        }
    })
}
