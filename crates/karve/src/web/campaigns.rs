//! A campaign that a page shows: its log is followed, and what the log names is read on demand.

use super::guard;
use crate::patches::read_patch;
use crate::plots;
use crate::transcript::{self, TurnView};
use crate::tuner::earlier::journals;
use crate::tuner::plots::of_ranking;
use karve_core::campaign::Campaign;
use karve_core::payload::{Follower, Payload, RoundPayload};
use karve_harness::store::{CampaignDir, LogTail};
use karve_os::error::{CommandError, Result};
use karve_os::text;
use serde::Serialize;
use std::path::Path;

/// Records that are taken in at once.
const RECORDS_MAX: usize = 10_000;
/// How much of a turn of an agent is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnLimits {
    /// Characters of a message.
    chars: usize,
    /// Messages.
    messages: usize,
}

impl TurnLimits {
    /// On the page of a round.
    pub(super) const PAGE: Self = Self { chars: 20_000, messages: 200 };
    /// Among many rounds in one file.
    pub(super) const FILE: Self = Self { chars: 600, messages: 8 };
}

/// A campaign, as far as its log was read.
#[derive(Debug)]
pub struct CampaignWatch {
    dir: CampaignDir,
    follower: Follower,
    /// How far the log was read.
    tail: LogTail,
    /// How often another log took its place.
    n_replaced: u32,
}

/// What the page of a round shows beside its payload.
#[derive(Debug)]
pub(super) struct RoundExtras {
    /// The change.
    pub(super) patch: String,
    /// What the agents said.
    pub(super) transcript: Vec<ShownTurn>,
}

/// A turn of an agent, bounded.
#[derive(Debug, Default, Serialize)]
pub(super) struct ShownTurn {
    /// What the address of its place ends with.
    id: String,
    /// Why there is nothing to show.
    missing: &'static str,
    task: String,
    agent: String,
    model: Option<String>,
    brief: String,
    lines: Vec<ShownMessage>,
}

/// A message, bounded.
#[derive(Debug, Serialize)]
struct ShownMessage {
    who: String,
    text: String,
}

impl CampaignWatch {
    /// Reads the log of a campaign.
    pub fn open(dir: CampaignDir) -> Result<Self> {
        let tail = LogTail::new(&dir);
        let mut watch = Self { dir, follower: Follower::default(), tail, n_replaced: 0 };
        watch.refresh()?;
        Ok(watch)
    }

    /// Takes in what was added to the log. Returns whether there was anything. After an error the
    /// log is read anew, for it may have been repaired or replaced.
    pub fn refresh(&mut self) -> Result<bool> {
        let taken = self.take_news();
        if taken.is_err() {
            self.tail = LogTail::new(&self.dir);
            self.follower = Follower::default();
        }
        taken
    }

    fn take_news(&mut self) -> Result<bool> {
        let mut changed = false;
        loop {
            let news = self.tail.poll(RECORDS_MAX)?;
            if news.restarted {
                self.n_replaced += 1;
                self.follower = Follower::default();
            }
            for record in &news.records {
                self.follower.take(record).map_err(|error| {
                    let log = self.dir.log();
                    CommandError::usage(format!("the log {} is damaged", log.display()))
                        .cause(error)
                        .hint("\"karve verify\" shows where")
                })?;
                changed = true;
            }
            if !news.more {
                break;
            }
        }
        // Also one that had some, and was emptied.
        if self.campaign().n_events() == 0 {
            let log = self.dir.log();
            return Err(CommandError::usage(format!("{} has no records", log.display()))
                .hint("\"karve list\" shows the campaigns; \"karve run\" starts one"));
        }
        Ok(changed)
    }

    /// The campaign.
    pub fn campaign(&self) -> &Campaign {
        self.follower.campaign()
    }

    /// How often its log was replaced while it was followed.
    pub(super) fn n_replaced(&self) -> u32 {
        self.n_replaced
    }

    /// Its directory.
    pub(super) fn dir(&self) -> &CampaignDir {
        &self.dir
    }

    /// What its page shows.
    pub fn payload(&self) -> Payload {
        guard::for_plots(self.follower.payload())
    }

    /// What is known of the evidence while a duel is under way.
    pub(super) fn follower(&self) -> &Follower {
        &self.follower
    }

    /// A settled round.
    pub fn round(&self, number: u32) -> Option<RoundPayload> {
        self.follower.round(number)
    }

    /// That the log was judged again: it is, record by record, whenever it is read.
    pub(super) fn verified(&self) -> Option<(bool, String)> {
        let events = self.campaign().n_events();
        let text = "every verdict was judged again from its readings when this page was made";
        if let Some(misstated) = self.campaign().misstatements().first() {
            let what = misstated.describe();
            return Some((false, format!("Do not trust this page: the log was changed: {what}.")));
        }
        let size = std::fs::metadata(self.dir.log()).map_or(0, |meta| meta.len());
        match size.saturating_sub(self.tail.offset()) {
            0 => Some((true, format!("{events} events: {text}."))),
            torn => Some((
                false,
                format!(
                    "{events} events: {text}; {torn} bytes at the end of the \
                log are not a record (or are being written)."
                ),
            )),
        }
    }

    /// The plots of the largest sweep of knobs.
    pub(super) fn knob_plots(&self) -> Vec<String> {
        let sweeps = journals(&self.dir.join("tune"), Path::new(""));
        let largest = sweeps.into_iter().max_by_key(Vec::len).unwrap_or_default();
        let names = |config: karve_numerics::space::KnobSetting| {
            config.iter().map(|(name, value)| (text::plain(name), text::plain(value))).collect()
        };
        of_ranking(&largest.into_iter().map(|(config, value)| (names(config), value)).collect())
    }

    /// The change of a round and what its agents said; less of it among many rounds.
    pub(super) fn extras(&self, round: &RoundPayload, limits: &TurnLimits) -> RoundExtras {
        let patch = round.patch.as_ref().and_then(|hash| read_patch(&self.dir, hash).ok());
        let turn = |log: &String| match transcript::read_turn(&self.dir, log) {
            Ok(turn) => shown(&turn, limits),
            Err(_) => ShownTurn::missing("Its session log is not here or cannot be read."),
        };
        let transcript = with_ids(round, turn);
        RoundExtras { patch: patch.unwrap_or_default(), transcript }
    }

    /// The plots of the campaign and of each duel, by the name of their file.
    pub fn plot_files(&self) -> Vec<(String, String)> {
        let payload = self.payload();
        let all = plots::of_campaign(&payload);
        let mut files: Vec<(String, String)> =
            all.into_iter().map(|plot| (format!("{}.svg", plot.name), plot.svg)).collect();
        if let Some(svg) = crate::reports::render_roofline(self.campaign()) {
            files.push(("roofline.svg".to_owned(), svg));
        }
        for (at, svg) in self.knob_plots().into_iter().enumerate() {
            files.push((format!("knobs-{}.svg", at + 1), svg));
        }
        let (first, last) = payload.first_and_last_profile();
        files.extend(plots::kernels(first, last).map(|svg| ("kernels.svg".to_owned(), svg)));
        for row in &payload.rounds {
            let number = row.view.round;
            let title = format!("Round {number}, case by case");
            let compared = row.view.comparison.as_ref();
            let forest = compared.and_then(|shown| plots::forest(&payload, shown, &title));
            files.extend(forest.map(|svg| (format!("round-{number}-cases.svg"), svg)));
            let duels = self.follower.duels(number);
            for (at, trace) in duels.iter().enumerate() {
                let name = |kind: &str| format!("round-{number}-{}-{kind}.svg", at + 1);
                let drawn = [
                    ("evidence", plots::evidence(trace)),
                    ("blocks", plots::pairs(trace)),
                    ("readings", plots::ecdf(trace)),
                ];
                files.extend(drawn.into_iter().filter_map(|(kind, svg)| Some((name(kind), svg?))));
            }
        }
        files
    }
}

/// What an address of the place of a turn on a page ends with.
pub(super) fn turn_id(round: u32, log: &str) -> String {
    let log: String = log.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    format!("turn-{round}-{log}")
}

fn with_ids(round: &RoundPayload, turn: impl Fn(&String) -> ShownTurn) -> Vec<ShownTurn> {
    let id = |log: &String| turn_id(round.round.view.round, log);
    round.session_logs.iter().map(|log| ShownTurn { id: id(log), ..turn(log) }).collect()
}

impl RoundExtras {
    /// What a large file shows of a round.
    pub(super) fn left_out(round: &RoundPayload) -> Self {
        let why = "It is left out, since this file is large: see \"karve show\" with --transcript.";
        let transcript = with_ids(round, |_| ShownTurn::missing(why));
        Self { patch: String::new(), transcript }
    }
}

impl ShownTurn {
    fn missing(why: &'static str) -> Self {
        Self { missing: why, task: "turn".to_owned(), ..Self::default() }
    }
}

fn shown(turn: &TurnView, limits: &TurnLimits) -> ShownTurn {
    let cut = |text: &str| text.chars().take(limits.chars).collect::<String>();
    let line = |line: &crate::transcript::TranscriptLine| ShownMessage {
        who: match &line.tool {
            Some(tool) => format!("{:?} {tool}", line.who).to_lowercase(),
            None => format!("{:?}", line.who).to_lowercase(),
        },
        text: cut(&line.text),
    };
    ShownTurn {
        id: String::new(),
        missing: "",
        task: turn.task.clone(),
        agent: turn.name.clone().unwrap_or_else(|| turn.agent.clone()),
        model: turn.model.clone(),
        brief: cut(&turn.brief),
        lines: turn.lines.iter().take(limits.messages).map(line).collect(),
    }
}
