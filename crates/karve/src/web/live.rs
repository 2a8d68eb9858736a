//! What a campaign does right now: the process that runs it says so in a file beside the log.
//! Nothing is decided by that file, and it may be missing.

use super::campaigns::CampaignWatch;
use crate::ui::gauges::device_text;
use crate::ui::{Screen, describe_step};
use karve_core::campaign::{Campaign, Record, Step};
use karve_harness::commands::BUILD_OUTPUT;
use karve_harness::store::CampaignDir;
use karve_os::device::{Notice, NoticeSink, lease};
use karve_os::sync::locked;
use karve_os::{files, text};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The file.
pub const LIVE: &str = "live.json";

/// Bytes of the file that are read, and of the output.
const BYTES_MAX: u64 = 16 << 10;
const TAIL_BYTES: u64 = 4 << 10;
/// Characters of a message.
const SAID_CHARS: usize = 300;
/// Time between two messages in the file.
const PACE: Duration = Duration::from_millis(200);

/// What the running process says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LiveNote {
    pid: u32,
    step: String,
    said: String,
}

/// What a page shows of a campaign that is not finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct LiveView {
    /// `running` or `paused`.
    pub(super) state: &'static str,
    /// The step under way or due.
    pub(super) step: String,
    /// Blocks of the duel, and how many there are at most.
    pub(super) done: u32,
    /// See `done`; 0 outside of duels.
    pub(super) total: u32,
    /// The last message.
    pub(super) said: String,
    /// The state of the host at the last block.
    pub(super) host: String,
    /// Who holds a device, and who waits.
    pub(super) devices: Vec<String>,
    /// The end of what a command prints.
    pub(super) tail: String,
}

/// Whether a process works on a campaign now.
pub(super) fn is_running(dir: &CampaignDir) -> bool {
    // The number of a process that has ended may be that of another one now.
    let holder = files::read_text(&dir.join("lock"), BYTES_MAX).unwrap_or_default();
    read_note(dir).is_some_and(|note| {
        holder.starts_with(&format!("process {} ", note.pid))
            && Path::new(&format!("/proc/{}", note.pid)).exists()
    })
}

fn read_note(dir: &CampaignDir) -> Option<LiveNote> {
    let bytes = files::read(&dir.join(LIVE), BYTES_MAX).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// What a campaign does now; none if it is finished.
pub(super) fn view(watch: &CampaignWatch) -> Option<LiveView> {
    let campaign = watch.campaign();
    let step = campaign.next_step().filter(|_| !campaign.is_finished())?;
    let running = is_running(watch.dir());
    let note = read_note(watch.dir()).filter(|_| running).unwrap_or_default();
    let left = campaign.duel_left();
    let done = campaign.running_duel().map_or(0, |duel| duel.n_blocks());
    let tail = files::read_tail(&watch.dir().join(BUILD_OUTPUT), TAIL_BYTES).unwrap_or_default();
    let tail = String::from_utf8_lossy(&tail).into_owned();
    Some(LiveView {
        state: if running { "running" } else { "paused" },
        step: describe_step(campaign, &step),
        done,
        total: left.map_or(0, |left| left.blocks_max),
        said: text::safe(&note.said, SAID_CHARS),
        host: watch.follower().conditions().map(device_text).unwrap_or_default(),
        devices: lease_lines(),
        tail: match running {
            true => text::safe_lines(&tail, 40, 200).join("\n"),
            false => String::new(),
        },
    })
}

fn lease_lines() -> Vec<String> {
    let line =
        |(device, who): &(String, String)| text::safe(&format!("{device}: {who}"), SAID_CHARS);
    lease::held().iter().map(line).collect()
}

/// A screen that also tells pages what happens.
pub struct LiveScreen<'a> {
    inner: &'a mut dyn Screen,
    note: std::sync::Arc<LiveFile>,
}

/// When a change must be in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    AtOnce,
    /// With the next one, if the last was a moment ago.
    InTime,
}

struct LiveFile {
    path: PathBuf,
    state: Mutex<(LiveNote, Option<Instant>)>,
}

impl LiveFile {
    fn change(&self, urgency: Urgency, change: impl FnOnce(&mut LiveNote)) {
        let mut state = locked(&self.state);
        change(&mut state.0);
        let is_due = state.1.is_none_or(|last| last.elapsed() >= PACE);
        if urgency == Urgency::AtOnce || is_due {
            state.1 = Some(Instant::now());
            // Pages can do without it.
            if let Ok(bytes) = serde_json::to_vec(&state.0) {
                // A page never sees half of it.
                let new = self.path.with_extension("json.new");
                let _ = fs::write(&new, &bytes).and_then(|()| fs::rename(&new, &self.path));
            }
        }
    }
}

impl<'a> LiveScreen<'a> {
    /// The same screen, for a campaign in this directory.
    pub fn new(dir: &CampaignDir, inner: &'a mut dyn Screen) -> Self {
        let note = LiveNote { pid: std::process::id(), ..LiveNote::default() };
        let state = Mutex::new((note, None));
        let note = std::sync::Arc::new(LiveFile { path: dir.join(LIVE), state });
        Self { inner, note }
    }
}

impl Screen for LiveScreen<'_> {
    fn starts(&mut self, campaign: &Campaign, step: &Step) {
        let text = describe_step(campaign, step);
        let now = |note: &mut LiveNote| {
            note.step = text;
            note.said.clear();
        };
        let urgency = match step {
            Step::Measure(_) => Urgency::InTime,
            _ => Urgency::AtOnce,
        };
        self.note.change(urgency, now);
        self.inner.starts(campaign, step);
    }

    fn saw(&mut self, campaign: &Campaign, record: &Record) {
        self.inner.saw(campaign, record);
    }

    fn notices(&self) -> NoticeSink {
        let (inner, note) = (self.inner.notices(), std::sync::Arc::clone(&self.note));
        NoticeSink::new(move |said| {
            let text = text::safe(said.text(), SAID_CHARS);
            let urgency = match said {
                Notice::Lasting(_) => Urgency::AtOnce,
                Notice::Passing(_) => Urgency::InTime,
            };
            note.change(urgency, |note| note.said = text);
            inner.pass(said);
        })
    }
}

impl Drop for LiveScreen<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.note.path);
    }
}
