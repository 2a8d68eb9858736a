//! What changed since the last step and no step performs: the user's answers, the library, and
//! cases that are added on evidence.

use super::context::Context;
use super::knowledge;
use crate::inbox;
use karve_core::campaign::{Campaign, Event, RoundPhase};
use karve_core::knowledge::KnownEntry;
use karve_os::error::Result;
use std::fs;
use std::path::PathBuf;

/// The user's answers are read up to this size.
const ANSWER_BYTES_MAX: u64 = 16_384;

/// What changed since the last step, each as an event to record now.
pub fn news(context: &mut Context, campaign: &Campaign) -> Result<Vec<Event>> {
    if inbox::takes_stop(&context.dir) {
        context.stop.request();
    }
    context.renew_device()?;
    let mut events = context.device_events();
    events.extend(new_answers(context, campaign));
    events.extend(new_knowledge(context, campaign)?);
    events.extend(campaign.cases_due());
    Ok(events)
}

/// The user's answers that are not in the log yet.
fn new_answers(context: &Context, campaign: &Campaign) -> Vec<Event> {
    let Ok(entries) = fs::read_dir(inbox::of(&context.dir)) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // Another extension means that it is still being written.
    paths.retain(|path| path.extension().is_some_and(|end| end == "txt"));
    paths.sort();
    let mut events = Vec::new();
    for path in paths {
        let small = fs::metadata(&path).is_ok_and(|meta| meta.len() <= ANSWER_BYTES_MAX);
        let read = small.then(|| fs::read_to_string(&path).ok()).flatten();
        let Some(text) = read.map(|text| text.trim().to_owned()) else {
            // Too long, or not text: the user may want it back.
            let _ = fs::rename(&path, path.with_extension("unreadable"));
            continue;
        };
        if text.is_empty() || campaign.answers().contains(&text) {
            // It is already in the log, or it is empty.
            let _ = fs::remove_file(&path);
            continue;
        }
        let round = campaign.current_round().map_or(0, |round| round.number);
        events.push(Event::Answered { round, text });
    }
    events
}

/// What changed in the library since the campaign last read it, before a proposal is requested.
fn new_knowledge(context: &Context, campaign: &Campaign) -> Result<Option<Event>> {
    let phase = campaign.current_round().map(|round| &round.phase);
    if !matches!(phase, Some(RoundPhase::Proposing { .. })) {
        return Ok(None);
    }
    let now = knowledge::recall(context, campaign.base_commit())?;
    let before = campaign.known();
    let gone = before.iter().filter(|old| !now.iter().any(|new| new.id == old.id));
    let gone: Vec<String> = gone.map(|old| old.id.clone()).collect();
    let known: Vec<KnownEntry> = now.into_iter().filter(|new| !before.contains(new)).collect();
    let same = known.is_empty() && gone.is_empty();
    Ok((!same).then_some(Event::KnowledgeRead { known, gone }))
}
