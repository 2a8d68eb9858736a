//! The turns of an agent that is asked for an answer in a form: once more with every error listed,
//! if its answer cannot be read.

use super::AgentUsage;
use serde::{Deserialize, Serialize};

/// How often an agent is asked.
const TURNS_MAX: usize = 2;

/// A turn whose answer could not be read, so that the agent was asked again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreadableAnswer {
    /// What was wrong with it.
    pub errors: Vec<String>,
    /// What it used.
    pub usage: AgentUsage,
    /// The artifact with the session log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_log: Option<String>,
}

/// What the last turn used: the total minus the earlier turns.
pub fn last_usage(all: AgentUsage, earlier: &[UnreadableAnswer]) -> AgentUsage {
    earlier.iter().fold(all, |left, turn| left.minus(turn.usage))
}

/// What came of one turn.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnAnswer<T> {
    /// An answer.
    Read(T),
    /// An answer that cannot be read, and everything that is wrong with it.
    Unreadable(Vec<String>),
    /// No answer, and why. The agent is not asked again.
    Missing(String),
}

/// The turns of an agent about one question.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerTurns<T> {
    answer: Option<T>,
    is_missing: bool,
    turns: Vec<UnreadableAnswer>,
}

/// What is left when no further turn is due.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedTurns<T> {
    /// The answer, if one could be read.
    pub answer: Option<T>,
    /// Why there is none.
    pub why: String,
    /// What all turns used.
    pub usage: AgentUsage,
    /// The session log of the last turn.
    pub session_log: Option<String>,
    /// The turns before the last one.
    pub earlier: Vec<UnreadableAnswer>,
}

impl<T> Default for AnswerTurns<T> {
    fn default() -> Self {
        Self { answer: None, is_missing: false, turns: Vec::new() }
    }
}

impl<T> AnswerTurns<T> {
    /// Whether the agent is asked, for the first time or again.
    pub fn is_due(&self) -> bool {
        self.answer.is_none() && !self.is_missing && self.turns.len() < TURNS_MAX
    }

    /// What was wrong with the last answer.
    pub fn errors(&self) -> &[String] {
        self.turns.last().map_or(&[], |turn| &turn.errors)
    }

    /// What all turns used.
    pub fn usage(&self) -> AgentUsage {
        self.turns.iter().fold(AgentUsage::default(), |sum, turn| sum.plus(turn.usage))
    }

    /// Adds a turn.
    pub fn add(&mut self, reply: TurnAnswer<T>, usage: AgentUsage, session_log: Option<String>) {
        let errors = match reply {
            TurnAnswer::Read(answer) => {
                self.answer = Some(answer);
                Vec::new()
            }
            TurnAnswer::Unreadable(errors) => errors,
            TurnAnswer::Missing(why) => {
                self.is_missing = true;
                vec![why]
            }
        };
        self.turns.push(UnreadableAnswer { errors, usage, session_log });
    }

    /// What came of them.
    pub fn end(mut self) -> EndedTurns<T> {
        let (usage, why) = (self.usage(), self.errors().join("; "));
        let last = self.turns.pop();
        EndedTurns {
            answer: self.answer,
            why,
            usage,
            session_log: last.and_then(|turn| turn.session_log),
            earlier: self.turns,
        }
    }
}
