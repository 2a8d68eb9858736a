//! What a screen knows about a campaign: its log so far.

use super::state::{DetailTab, RowId};
use super::theme::TonedLine;
use karve_core::campaign::Record;
use karve_core::payload::{Follower, Payload};
use karve_harness::store::{CampaignDir, LogTail};
use karve_os::error::{CommandError, Result};
use std::fs;
use std::time::SystemTime;

/// Records that are taken in before the screen is drawn again.
const RECORDS_MAX: usize = 2_000;

/// A campaign as far as its log was read.
#[derive(Debug)]
pub(super) struct WatchModel {
    pub(super) dir: CampaignDir,
    tail: LogTail,
    pub(super) follower: Follower,
    /// What all pages show, as of the last record.
    pub(super) payload: Payload,
    /// Why the log cannot be followed now.
    pub(super) trouble: Option<String>,
    stamp: LogStamp,
    is_reading: bool,
    /// The last text that was made of it: see `tabs`.
    pub(super) cached: Option<CachedText>,
}

/// The size of a log and when it was written; none if there is none.
type LogStamp = Option<(u64, Option<SystemTime>)>;

fn stamp(dir: &CampaignDir) -> LogStamp {
    let meta = fs::metadata(dir.log()).ok()?;
    Some((meta.len(), meta.modified().ok()))
}

/// The text of a tab, which may need a file.
#[derive(Debug)]
pub(super) struct CachedText {
    pub(super) row: RowId,
    pub(super) tab: DetailTab,
    pub(super) columns: usize,
    /// The events at that time; none if later ones change nothing.
    pub(super) events: Option<u64>,
    pub(super) lines: Vec<TonedLine>,
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
        // What cannot be read at all is an error, not a screen; nor is there one without a record.
        model.take_news()?;
        if model.n_events() == 0 {
            let message = format!("{} has no records", model.dir.log().display());
            return Err(CommandError::usage(message)
                .hint("\"karve list\" shows the campaigns; \"karve run\" starts one"));
        }
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
        // What was read stays on the screen, as for a log that is damaged.
        if news.records.is_empty() && (news.restarted || self.trouble.is_some()) {
            return Err(CommandError::environment("the log was emptied")
                .cause("the screen shows what was read before")
                .hint("restore it from a copy; see \"karve verify\""));
        }
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

    fn n_events(&self) -> u64 {
        self.payload.events
    }

    pub(super) fn is_settled(&self, number: u32) -> bool {
        self.payload.rounds.iter().any(|round| round.view.round == number)
    }
}
