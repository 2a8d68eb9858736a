//! What a campaign reads from the knowledge library, and what it adds to it.

use super::World;
use super::agent_turn::TurnOutcome;
use crate::library::recall::{known_in, name_entries};
use crate::library::situation::situation_of;
use crate::library::{Layer, LibraryLayers, PROJECT_DIR, learn};
use karve_agents::{LessonAnswer, LessonQuestion};
use karve_core::campaign::strategy;
use karve_core::campaign::{Campaign, Event, RoundPhase};
use karve_core::knowledge::{KnownEntry, Learning, LibraryQuery, PredictedCounter, Scope};
use karve_core::profile::classify::with_derived;
use karve_core::profile::{Diagnosis, KernelProfile};
use karve_core::spending::AgentUsage;
use karve_os::error::{CommandError, ErrorKind, Result};

/// Characters of the reason why an agent gave no lesson.
const UNSAID_CHARS: usize = 300;
/// Tools whose version a piece of evidence names, by language.
const TOOLCHAINS: &[(&str, &[&str])] = &[
    ("rust", &["rustc"]),
    ("cuda", &["nvcc"]),
    ("hip", &["hipcc"]),
    ("triton", &["python3"]),
    ("python", &["python3"]),
];

impl World {
    /// The layers as the campaign sees them.
    fn library_layers(&self) -> LibraryLayers {
        let mut shelves = LibraryLayers::of_user();
        let project = self.upstream.root().join(&self.charter.workdir);
        shelves.put(Layer::Project, project.join(PROJECT_DIR));
        let campaigns = self.dir.path().parent().unwrap_or(self.dir.path());
        shelves.put(Layer::Staged, campaigns.join(PROJECT_DIR));
        shelves
    }

    /// The entries that apply to the target.
    pub(super) fn recall(&self) -> Result<Vec<KnownEntry>> {
        let stock = self.library_layers().load()?;
        let mut known = known_in(&stock, &situation_of(&self.charter));
        // The campaign's own findings are in its rounds.
        let own = strategy::found_prefix(&self.charter.name);
        known.retain(|known| !known.id.starts_with(&own));
        Ok(known)
    }

    /// Names the library entry for each opportunity; none if the library cannot be read.
    pub(super) fn name_entries(&self, kernel: &KernelProfile, diagnosis: &mut Diagnosis) {
        let Ok(stock) = self.library_layers().load() else {
            return;
        };
        let situation = situation_of(&self.charter).with_op_in(&kernel.name);
        let values = with_derived(kernel);
        let query = LibraryQuery {
            situation: Some(&situation),
            values: Some(&values),
            ..LibraryQuery::default()
        };
        name_entries(&stock, &query, diagnosis);
        // The campaign's own findings are in its rounds.
        let own = strategy::found_prefix(&self.charter.name);
        for opportunity in &mut diagnosis.opportunities {
            opportunity.entry.take_if(|id| id.starts_with(&own));
        }
    }

    /// What changed in the library since the campaign last read it, before a proposal is requested.
    pub(super) fn new_knowledge(&self, campaign: &Campaign) -> Result<Option<Event>> {
        let stage = campaign.current_round().map(|round| &round.phase);
        if !matches!(stage, Some(RoundPhase::Proposing { .. })) {
            return Ok(None);
        }
        let now = self.recall()?;
        let before = campaign.known();
        let gone = before
            .iter()
            .filter(|old| !now.iter().any(|new| new.id == old.id));
        let gone: Vec<String> = gone.map(|old| old.id.clone()).collect();
        let known: Vec<KnownEntry> = now
            .into_iter()
            .filter(|new| !before.contains(new))
            .collect();
        let same = known.is_empty() && gone.is_empty();
        Ok((!same).then_some(Event::KnowledgeRead { known, gone }))
    }

    pub(super) fn learn(&mut self, round: u32, campaign: &Campaign) -> Result<Event> {
        let after = self.profile_after(campaign)?;
        let mut lesson = strategy::lesson(campaign, after.as_ref());
        let mut usage = AgentUsage::default();
        let mut exchange = None;
        if let Some(learning) = &mut lesson.learning {
            learning.evidence.toolchain = self.toolchain(campaign);
            let (said, kept) =
                self.in_words(campaign, (&lesson.text, &lesson.predicted), learning)?;
            learning.words = said.words;
            learning.unsaid = said.failed.chars().take(UNSAID_CHARS).collect();
            usage = said.usage;
            exchange = kept;
            learning.became = learn::take_in(&self.library_layers(), learning, &self.here())?;
        }
        Ok(Event::Learned {
            round,
            lesson,
            usage,
            session_log: exchange,
        })
    }

    /// The agent's lesson from a round, if it is asked for one; with the artifact of its session
    /// log.
    fn in_words(
        &mut self,
        campaign: &Campaign,
        (lesson, foretold): (&str, &[PredictedCounter]),
        learning: &Learning,
    ) -> Result<(LessonAnswer, Option<String>)> {
        let Some(round) = campaign.current_round() else {
            return Ok(Default::default());
        };
        let route = round.route.as_ref();
        let role = route.map(|route| route.implements.as_str());
        let asked = round.hypothesis.as_ref();
        let Some(hypothesis) = asked.filter(|_| self.agent.learns(role)) else {
            return Ok(Default::default());
        };
        let taught = LessonQuestion {
            round: round.number,
            role,
            hypothesis,
            lesson,
            predicted: foretold,
            learning,
        };
        let setting = self.setting(campaign);
        let came = self.turn_at(&round.parent, &setting, |agent, desk| {
            agent.learn(&taught, desk)
        });
        came.or_else(unsaid)
    }

    /// The campaign's situation, as the scope of its findings.
    fn here(&self) -> Scope {
        let target = &self.charter.target;
        let named = |text: &str| -> Vec<String> {
            let text = text.trim().to_lowercase();
            if text.is_empty() {
                Vec::new()
            } else {
                vec![text]
            }
        };
        Scope {
            device: named(&target.device),
            backend: named(&target.backend),
            op: named(&target.op),
            ..Scope::default()
        }
    }

    /// What the kernel was built with.
    fn toolchain(&self, campaign: &Campaign) -> String {
        let target = &self.charter.target;
        let words = [
            target.language.to_lowercase(),
            target.backend.to_lowercase(),
        ];
        let tools = TOOLCHAINS
            .iter()
            .find(|(language, _)| words.iter().any(|word| word == language))
            .map_or(&["gcc", "cc", "clang"][..], |(_, tools)| tools);
        let facts = campaign.preparation().map(|p| &p.environment.facts);
        let named = tools.iter().find_map(|tool| facts?.get(*tool));
        named
            .cloned()
            .unwrap_or_else(|| "not reported by the host".to_owned())
    }
}

/// An agent that cannot be asked gives no lesson; the round is settled anyway.
fn unsaid(error: CommandError) -> Result<TurnOutcome<LessonAnswer>> {
    match error.kind {
        ErrorKind::Interrupted | ErrorKind::Bug => Err(error),
        ErrorKind::Negative | ErrorKind::Usage | ErrorKind::Environment | ErrorKind::Busy => {
            let said = LessonAnswer {
                failed: error.message,
                ..LessonAnswer::default()
            };
            Ok((said, None))
        }
    }
}
