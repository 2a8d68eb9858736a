//! The outcome of the turns of an event, in words: as the campaign recorded it, not as the agent
//! described it.

use karve_core::campaign::{Campaign, Event, Record};
use karve_core::knowledge::Lesson;
use karve_core::spending::{AgentUsage, last_usage};

/// A turn that an event records.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TurnRecord<'a> {
    /// The artifact with the session log.
    pub(super) session_log: &'a str,
    /// The outcome.
    pub(super) outcome: String,
    /// What it used.
    pub(super) usage: AgentUsage,
    /// The name of the agent, if the log has it.
    pub(super) by: Option<String>,
    /// Which of several implementations, from 1.
    pub(super) variant: Option<u32>,
}

/// The turns of a round, in order. The log is replayed up to there: the campaign may have refused a
/// proposal because of what it knew at that point.
pub(super) fn turns_of(records: &[Record], round: u32) -> Vec<TurnRecord<'_>> {
    let several = records.iter().any(|record| {
        round_of(&record.event) == Some(round) && variant_of(&record.event) > Some(0)
    });
    let mut campaign = Campaign::new();
    let mut turns = Vec::new();
    for record in records {
        let refused = |campaign: &Campaign| campaign.current_round().map(|r| r.refused.clone());
        let before = refused(&campaign).unwrap_or_default().len();
        // Errors in the log were reported when it was opened.
        let _ = campaign.record(record);
        let event = &record.event;
        if round_of(event) != Some(round) {
            continue;
        }
        let after = refused(&campaign).unwrap_or_default();
        let why = after.get(before..).unwrap_or_default();
        let variant = variant_of(event).filter(|_| several);
        turns.extend(turn_records(event, why).into_iter().map(|reported| TurnRecord {
            by: record.by.clone(),
            variant: variant.map(|variant| variant.saturating_add(1)),
            ..reported
        }));
        if matches!(event, Event::Learned { .. }) {
            break;
        }
    }
    turns
}

fn round_of(event: &Event) -> Option<u32> {
    match event {
        Event::Proposed { round, .. }
        | Event::ProposalRefused { round, .. }
        | Event::Implemented { round, .. }
        | Event::NotImplemented { round, .. }
        | Event::Reviewed { round, .. }
        | Event::Profiled { round, .. }
        | Event::Learned { round, .. } => Some(*round),
        _ => None,
    }
}

fn variant_of(event: &Event) -> Option<u32> {
    match event {
        Event::Implemented { variant, .. } | Event::NotImplemented { variant, .. } => {
            Some(*variant)
        }
        _ => None,
    }
}

fn turn_records<'a>(event: &'a Event, refused: &[String]) -> Vec<TurnRecord<'a>> {
    let unread = event.unread().iter().filter_map(|turn| {
        Some(TurnRecord {
            session_log: turn.session_log.as_deref()?,
            outcome: format!("refused: {}", turn.errors.join("; ")),
            usage: turn.usage,
            by: None,
            variant: None,
        })
    });
    let (outcome, usage) = outcome(event, refused);
    let last = event.session_log().map(|log_file| TurnRecord {
        session_log: log_file,
        outcome,
        usage,
        by: None,
        variant: None,
    });
    unread.chain(last).collect()
}

/// The outcome of a turn, and what it used.
fn outcome(event: &Event, refused: &[String]) -> (String, AgentUsage) {
    match event {
        Event::Proposed { hypothesis, usage, .. } => {
            let expected = hypothesis.expected_ratio;
            let stated = format!("stated \"{}\", expects {expected:.3}x", hypothesis.title);
            let reported = match refused {
                [] => stated,
                why => format!("refused: {} (it {stated})", why.join("; ")),
            };
            (reported, *usage)
        }
        Event::ProposalRefused { refusal, usage, .. } => (refusal.describe(), *usage),
        Event::Implemented { candidate, usage, .. } => {
            let reported = match (candidate.files.as_slice(), candidate.out_of_scope.as_slice()) {
                ([], []) => "changed nothing".to_owned(),
                (files, []) => format!("changed {}", files.join(", ")),
                (_, orphans) => format!("changed read-only files: {}", orphans.join(", ")),
            };
            (reported, *usage)
        }
        Event::NotImplemented { why, usage, .. } => (format!("no change: {why}"), *usage),
        Event::Reviewed { review, usage, earlier, .. } => {
            (review.describe(), last_usage(*usage, earlier))
        }
        Event::Profiled { profile, .. } => match &profile.report {
            Some(report) => (report.describe(), last_usage(report.usage, &report.earlier)),
            None => (String::new(), AgentUsage::default()),
        },
        Event::Learned { lesson, usage, .. } => (taught(lesson), *usage),
        _ => (String::new(), AgentUsage::default()),
    }
}

/// What a round taught, as the agent reported it.
fn taught(lesson: &Lesson) -> String {
    let Some(learning) = &lesson.learning else {
        return "said nothing".to_owned();
    };
    if learning.words.is_empty() {
        return match learning.unsaid.as_str() {
            "" => "said nothing".to_owned(),
            why => format!("said nothing useful: {why}"),
        };
    }
    let parts = learning.words.named().into_iter();
    let parts = parts.map(|(name, text)| format!("{name}: {text}"));
    format!("taught {}", parts.collect::<Vec<_>>().join("; "))
}
