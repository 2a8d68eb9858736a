//! A recorded agent: it repeats its replies and its changes. For `karve demo --agent scripted`,
//! which needs no model and no key. Its changes are built, gated and measured like any other
//! change.

use super::turn::{FinishedTurn, TurnEnd, TurnTask, UsageReport};
use super::{Agent, Implementation, Proposal, Workspace, prompt, session_log};
use karve_core::campaign::strategy::Brief;
use karve_core::campaign::{ImplementStep, ProposalRefusal};
use karve_core::spending::AgentUsage;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files;
use serde::Deserialize;
use serde_json::json;
use std::fs;
use std::path::Path;

/// The name of this agent in a charter.
pub const SCRIPTED: &str = karve_core::charter::SCRIPTED;

/// The recording.
const RECORDING: &str = include_str!("../recordings/matmul.toml");

/// The recorded agent.
#[derive(Debug)]
pub struct ScriptedAgent {
    recording: AgentRecording,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentRecording {
    turn: Vec<ScriptedTurn>,
}

/// One turn: the messages and the changes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedTurn {
    round: u32,
    task: String,
    lines: Vec<ScriptedLine>,
    #[serde(default)]
    edit: Vec<ScriptedEdit>,
}

impl ScriptedTurn {
    /// The last message: the answer.
    fn last_words(&self) -> &str {
        let said = self.lines.iter().rev();
        let mut words = said.filter_map(|said| said.text.as_deref());
        words.next().unwrap_or_default()
    }
}

/// Text, or a tool call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedLine {
    text: Option<String>,
    call: Option<String>,
    with: Option<String>,
    gives: Option<String>,
}

/// A part of a file, and its replacement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedEdit {
    file: String,
    old: String,
    new: String,
}

impl ScriptedAgent {
    /// Parses the recording.
    pub fn open() -> Result<Self> {
        let recording = toml::from_str(RECORDING).map_err(|error| {
            CommandError::new(ErrorKind::Bug, "the recording cannot be read").cause(error)
        })?;
        Ok(Self { recording })
    }

    /// Plays a turn: logs its messages, and replies with the last one.
    fn play(
        &self,
        turn: &ScriptedTurn,
        brief: &str,
        workspace: &Workspace<'_>,
    ) -> Result<FinishedTurn> {
        let mut lines = vec![json!({
            "karve": "brief",
            "version": session_log::VERSION,
            "agent": SCRIPTED,
            "task": turn.task,
            "brief": brief,
        })];
        for said in &turn.lines {
            lines.extend(said.text.iter().map(|text| json!({"karve": "says", "text": text})));
            let call = said.call.iter();
            lines
                .extend(call.map(|tool| json!({"karve": "call", "tool": tool, "with": said.with})));
            lines.extend(said.gives.iter().map(|text| json!({"karve": "gives", "text": text})));
        }
        lines.push(json!({"karve": "end", "fault": null}));
        session_log::write_lines(workspace.session_log, &lines)?;
        Ok(FinishedTurn {
            ended: TurnEnd::Replied(turn.last_words().to_owned()),
            used: UsageReport::Counted(AgentUsage::default()),
        })
    }

    fn turn(&self, round: u32, task: TurnTask) -> Option<&ScriptedTurn> {
        let mut turns = self.recording.turn.iter();
        turns.find(|turn| turn.round == round && turn.task == task.name())
    }
}

/// Repeats a change of a file; says why if that is not possible here.
fn change(tree: &Path, edit: &ScriptedEdit) -> Result<Option<String>> {
    let path = tree.join(&edit.file);
    let text = match files::read_text(&path, files::WRITTEN_BYTES_MAX) {
        Ok(text) => text,
        Err(error) => return Ok(Some(format!("cannot read {}: {error}", edit.file))),
    };
    if text.matches(&edit.old).count() != 1 {
        let why = format!("{} has changed since this was recorded", edit.file);
        return Ok(Some(why));
    }
    let text = text.replacen(&edit.old, &edit.new, 1);
    fs::write(&path, text).context(|| format!("cannot write {}", path.display()))?;
    Ok(None)
}

impl Agent for ScriptedAgent {
    fn propose(&mut self, brief: &Brief, workspace: &Workspace<'_>) -> Result<Proposal> {
        let Some(turn) = self.turn(brief.round, TurnTask::Propose) else {
            let why = format!("the recording has no round {}", brief.round);
            let refusal = ProposalRefusal::Exhausted { why };
            return Ok(Proposal::Refused(refusal, AgentUsage::default()));
        };
        let text = prompt::render_propose(brief, "as your last message")?;
        Ok(self.play(turn, &text, workspace)?.proposal())
    }

    fn implement(
        &mut self,
        step: &ImplementStep,
        workspace: &Workspace<'_>,
    ) -> Result<Implementation> {
        let not_done = |why| Ok(Implementation::NotDone { why, usage: AgentUsage::default() });
        let Some(turn) = self.turn(step.round, TurnTask::of(step)) else {
            return not_done("the recording has no such turn".to_owned());
        };
        let played = self.play(turn, &prompt::render_implement(step)?, workspace)?;
        for edit in &turn.edit {
            if let Some(why) = change(workspace.tree, edit)? {
                return not_done(why);
            }
        }
        Ok(played.implementation())
    }

    fn reads_worktree(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer;

    #[test]
    fn the_recording_can_be_played_on_the_example() {
        let scripted = ScriptedAgent::open().unwrap();
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/matmul");
        for turn in &scripted.recording.turn {
            let words = turn.last_words();
            match turn.task.as_str() {
                "propose" => {
                    answer::parse_proposal(words).unwrap();
                }
                "implement" => {
                    answer::parse_implementation(words).unwrap();
                    assert!(!turn.edit.is_empty());
                }
                task => {
                    assert_eq!(task, "repair");
                    answer::parse_implementation(words).unwrap_err();
                }
            }
            for edit in &turn.edit {
                let text = fs::read_to_string(example.join(&edit.file)).unwrap();
                assert_eq!(text.matches(&edit.old).count(), 1, "{edit:?}");
            }
        }
    }
}
