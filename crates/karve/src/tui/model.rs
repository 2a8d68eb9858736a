//! What a screen knows about a campaign: its log so far, and artifacts that are opened on demand.

use super::details::{campaign_log, current_log, diff_lines, note, round_log, text_lines};
use super::state::{DetailTab, RowId};
use super::theme::TonedLine;
use crate::transcript;
use karve_core::campaign::Record;
use karve_core::payload::{Follower, Payload};
use karve_harness::store::{self, CampaignDir, LogTail};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;

/// Records that are taken in before the screen is drawn again.
const RECORDS_MAX: usize = 2_000;
/// A patch is shown up to this size.
const PATCH_BYTES_MAX: u64 = 4 << 20;

/// A campaign as far as its log was read.
#[derive(Debug)]
pub(super) struct WatchModel {
    dir: CampaignDir,
    tail: LogTail,
    pub(super) follower: Follower,
    /// What all pages show, as of the last record.
    pub(super) payload: Payload,
    /// Why the log is no longer followed.
    pub(super) trouble: Option<String>,
    is_reading: bool,
    cached: Option<CachedText>,
}

/// The text of a tab, which may need a file.
#[derive(Debug)]
struct CachedText {
    row: RowId,
    tab: DetailTab,
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

    /// Takes in what was added to the log; whether there is anything new to show.
    pub(super) fn poll(&mut self) -> bool {
        if self.trouble.is_some() {
            self.is_reading = false;
            return false;
        }
        match self.take_news() {
            Ok(is_new) => is_new,
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.is_reading = false;
                true
            }
        }
    }

    fn take_news(&mut self) -> Result<bool> {
        let news = self.tail.poll(RECORDS_MAX)?;
        self.is_reading = news.more;
        if news.restarted {
            self.follower = Follower::default();
        }
        for record in &news.records {
            self.take(record)?;
        }
        let is_new = news.restarted || !news.records.is_empty();
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

    /// The text of a tab for a row.
    pub(super) fn text(&mut self, row: RowId, tab: DetailTab) -> &[TonedLine] {
        let events = self.payload.events;
        let is_fresh = self.cached.as_ref().is_some_and(|cached| {
            let holds = cached.events.is_none_or(|then| then == events);
            (cached.row, cached.tab) == (row, tab) && holds
        });
        if !is_fresh {
            let lines = self.read_text(row, tab);
            let is_over = matches!(row, RowId::Round(number) if self.is_settled(number));
            let events = (!is_over).then_some(events);
            self.cached = Some(CachedText { row, tab, events, lines });
        }
        self.cached.as_ref().map_or(&[], |cached| &cached.lines)
    }

    fn read_text(&self, row: RowId, tab: DetailTab) -> Vec<TonedLine> {
        match (row, tab) {
            (RowId::Campaign, DetailTab::Log | DetailTab::Evidence) => campaign_log(self),
            (RowId::Campaign, DetailTab::Diff) => {
                note("\"karve diff\" shows the change from the original to the best kernel.")
            }
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
        // The log is data: a name that is not a hash could point anywhere.
        if !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return note("The log names no artifact with the change; see \"karve verify\".");
        }
        let path = self.dir.join("artifacts").join(&hash);
        match files::read(&path, PATCH_BYTES_MAX).context(|| "cannot show the change".to_owned()) {
            Ok(bytes) => diff_lines(&String::from_utf8_lossy(&bytes)),
            Err(error) => note(&format!("{error}; \"karve diff {number}\" may show it")),
        }
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
