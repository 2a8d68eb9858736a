//! What a screen knows about a campaign: its log so far, and artifacts that are opened on demand.

use super::details::{campaign_log, current_log, diff_lines, note, round_log, text_lines};
use super::state::{DetailTab, RowId};
use super::theme::TonedLine;
use crate::patches::read_patch;
use crate::transcript;
use crate::ui::style::Tone;
use karve_core::campaign::Record;
use karve_core::payload::{Follower, Payload};
use karve_harness::store::{self, CampaignDir, LogTail};
use karve_os::error::{CommandError, Result};
use std::fs;
use std::time::SystemTime;

/// Records that are taken in before the screen is drawn again.
const RECORDS_MAX: usize = 2_000;
/// Kept rounds whose changes are shown together, the last.
const KEPT_MAX: usize = 50;

/// A campaign as far as its log was read.
#[derive(Debug)]
pub(super) struct WatchModel {
    dir: CampaignDir,
    tail: LogTail,
    pub(super) follower: Follower,
    /// What all pages show, as of the last record.
    pub(super) payload: Payload,
    /// Why the log cannot be followed now.
    pub(super) trouble: Option<String>,
    stamp: LogStamp,
    is_reading: bool,
    cached: Option<CachedText>,
}

/// The size of a log and when it was written; none if there is none.
type LogStamp = Option<(u64, Option<SystemTime>)>;

fn stamp(dir: &CampaignDir) -> LogStamp {
    let meta = fs::metadata(dir.log()).ok()?;
    Some((meta.len(), meta.modified().ok()))
}

/// The text of a tab, which may need a file.
#[derive(Debug)]
struct CachedText {
    row: RowId,
    tab: DetailTab,
    columns: usize,
    /// The events at that time; none if later ones change nothing.
    events: Option<u64>,
    lines: Vec<TonedLine>,
}

impl WatchModel {
    /// Follows the campaign in a directory.
    pub(super) fn open(dir: CampaignDir) -> Result<Self> {
        let follower = Follower::default();
        let mut model = Self {
            tail: LogTail::new(&dir),
            dir,
            payload: follower.payload(),
            follower,
            trouble: None,
            stamp: None,
            is_reading: true,
            cached: None,
        };
        // What cannot be read at all is an error, not a screen.
        model.take_news()?;
        Ok(model)
    }

    /// Whether more of the log is there to be read now.
    pub(super) fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// Takes in what was added to the log; whether there is anything new to show. A log that cannot
    /// be read is looked at again when it has changed: it may have been repaired or replaced.
    pub(super) fn poll(&mut self) -> bool {
        let stamp = stamp(&self.dir);
        if self.trouble.is_some() && stamp == self.stamp {
            self.is_reading = false;
            return false;
        }
        self.stamp = stamp;
        match self.take_news() {
            Ok(is_new) => self.trouble.take().is_some() || is_new,
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.is_reading = false;
                self.tail = LogTail::new(&self.dir);
                true
            }
        }
    }

    fn take_news(&mut self) -> Result<bool> {
        let news = self.tail.poll(RECORDS_MAX)?;
        self.is_reading = news.more;
        // After trouble it is read from its first record too.
        let restarted = news.restarted || news.records.first().is_some_and(|first| first.seq == 0);
        if restarted {
            self.follower = Follower::default();
            self.cached = None;
        }
        for record in &news.records {
            self.take(record)?;
        }
        let is_new = restarted || !news.records.is_empty();
        if is_new {
            self.payload = self.follower.payload();
        }
        Ok(is_new)
    }

    fn take(&mut self, record: &Record) -> Result<()> {
        self.follower.take(record).map_err(|error| {
            CommandError::environment("the log is damaged")
                .cause(error)
                .hint("see \"karve verify\"")
        })
    }

    fn is_settled(&self, number: u32) -> bool {
        self.payload.rounds.iter().any(|round| round.view.round == number)
    }

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
