//! The text of each tab; files that it needs are opened on demand.

use super::details::{campaign_log, current_log, diff_lines, note, round_log, text_lines};
use super::model::{CachedText, WatchModel};
use super::state::{DetailTab, RowId};
use super::theme::TonedLine;
use crate::patches::read_patch;
use crate::transcript;
use crate::ui::style::Tone;
use karve_harness::store;

/// Kept rounds whose changes are shown together, the last.
const KEPT_MAX: usize = 50;

impl WatchModel {
    /// The text of a tab for a row, wrapped to so many columns; a change is not wrapped.
    pub(super) fn text(&mut self, row: RowId, tab: DetailTab, columns: usize) -> &[TonedLine] {
        let events = self.payload.events;
        let is_fresh = self.cached.as_ref().is_some_and(|cached| {
            let holds = cached.events.is_none_or(|then| then == events);
            (cached.row, cached.tab, cached.columns) == (row, tab, columns) && holds
        });
        if !is_fresh {
            let lines = self.read_text(row, tab);
            let lines = match tab {
                DetailTab::Diff => lines,
                _ => lines.iter().flat_map(|line| line.wrapped(columns)).collect(),
            };
            let is_over = matches!(row, RowId::Round(number) if self.is_settled(number));
            let events = (!is_over).then_some(events);
            self.cached = Some(CachedText { row, tab, columns, events, lines });
        }
        self.cached.as_ref().map_or(&[], |cached| &cached.lines)
    }

    fn read_text(&self, row: RowId, tab: DetailTab) -> Vec<TonedLine> {
        match (row, tab) {
            (RowId::Campaign, DetailTab::Log | DetailTab::Evidence) => campaign_log(self),
            (RowId::Campaign, DetailTab::Diff) => self.kept_diffs(),
            (RowId::Campaign, DetailTab::Transcript) => note("Select a round with the arrow keys."),
            (RowId::Round(number), DetailTab::Log | DetailTab::Evidence) => {
                match self.follower.round(number) {
                    Some(round) => round_log(self, &round),
                    None => current_log(self),
                }
            }
            (RowId::Round(number), DetailTab::Diff) => self.diff(number),
            (RowId::Round(number), DetailTab::Transcript) => self.transcript(number),
        }
    }

    fn diff(&self, number: u32) -> Vec<TonedLine> {
        let round = self.follower.round(number);
        let Some(hash) = round.and_then(|round| round.patch) else {
            return note("There is no candidate yet, or the round has none.");
        };
        match read_patch(&self.dir, &hash) {
            Ok(patch) => diff_lines(&patch),
            Err(error) => note(&format!("{error}; \"karve diff {number}\" may show it")),
        }
    }

    /// The changes of the kept rounds, one after the other.
    fn kept_diffs(&self) -> Vec<TonedLine> {
        let rounds = self.payload.rounds.iter().map(|round| &round.view);
        let kept: Vec<_> = rounds.filter(|view| view.verdict.starts_with("keep")).collect();
        if kept.is_empty() {
            return note("Nothing was kept yet.");
        }
        let mut lines = note("Each kept round; \"karve diff\" shows all of them as one change.");
        for view in kept.into_iter().rev().take(KEPT_MAX).rev() {
            lines.push(TonedLine::new(""));
            let title = format!("round {}: {}", view.round, view.title);
            lines.push(TonedLine::toned(&title, Tone::Strong));
            lines.extend(self.diff(view.round));
        }
        lines
    }

    fn transcript(&self, number: u32) -> Vec<TonedLine> {
        let read = store::read(&self.dir)
            .and_then(|loaded| transcript::read(&self.dir, &loaded.records, number));
        match read {
            Ok(transcript) => text_lines(&transcript::render_transcript(&transcript, false)),
            Err(error) => note(&error.to_string()),
        }
    }
}
