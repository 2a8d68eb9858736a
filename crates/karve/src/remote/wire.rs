//! The messages between karve and a karve on another machine, and how they travel.
//!
//! A message is a JSON text followed by its attachments: log lines, packs of git objects,
//! artifacts. Everything travels in frames, `kind, length, bytes`, so that a relay can pass on
//! whole frames only, and a message that was cut off by a dropped line is recognized.

use super::copies::{CopyName, FarCopy};
use super::exec::{ExecRun, ExecTask};
pub use super::wire_error::WireError;
use karve_core::campaign::Event;
use karve_core::hypothesis::PartShare;
use karve_core::measurement::{Environment, Gate};
use karve_core::profile::{Profile, ProfileDepth};
use karve_core::variants::VariantTrial;
use karve_numerics::contract::Arg;
use karve_numerics::space::KnobSetting;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// The longest frame, in bytes.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// The longest text of a message, in bytes: an event of a large campaign.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// The most that the attachments of one message may have, in bytes.
const ATTACHED_BYTES_MAX: u64 = 1 << 30;
/// The most attachments of one message.
const ATTACHMENTS_MAX: usize = 4_096;

/// What the near side says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ToFar {
    /// The first message on a line.
    Hello(Hello),
    /// Something to do. Attachments: those of its `sync`, in order.
    Task(Box<Task>),
    /// The line was lost; the end of this task is wanted again.
    Resume { id: u64 },
    /// The user wants to stop immediately.
    Stop,
    /// A command of an agent is no longer wanted.
    Cancel,
    /// The work is over; nothing that must be undone stays behind.
    Goodbye,
}

/// Who calls, and about what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The project, by a digest of where it is.
    pub project: String,
    /// The campaign, if there is one.
    pub campaign: Option<String>,
    /// Seconds of a pause, in place of the charter's.
    pub patience_s: Option<u64>,
    /// The worker that the near side knows; empty if none.
    pub instance: String,
    /// A shell line that gives the device back, in case the near side is gone for good.
    pub will: Option<String>,
}

/// One piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Counts from 1 on a session.
    pub id: u64,
    /// What must be there first.
    pub sync: Sync,
    /// What to do.
    pub work: Work,
}

/// What the far side needs before it can work. The attachments come in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sync {
    /// Where the attached lines of the log start; no lines are attached if absent.
    pub log_from: Option<u64>,
    /// Packs of git objects.
    pub packs: Vec<PackNote>,
    /// Artifacts, by hash.
    pub artifacts: Vec<String>,
}

/// Which of the two repositories of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepoRole {
    /// The user's.
    Upstream,
    /// The workspace that was extracted from it.
    Workspace,
}

/// What an attached pack is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackNote {
    /// For this repository.
    pub role: RepoRole,
    /// The commits in it.
    pub commits: Vec<String>,
    /// Refs to set, with their commits.
    pub refs: Vec<(String, String)>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Work {
    /// The step that the log says is due.
    Step,
    /// Inspect the host, and ask the reference for its arguments.
    Inspect { base: String },
    /// Profile a commit.
    Profile { commit: String, depth: ProfileDepth },
    /// Profile the candidate of the round, and measure its parts.
    Learn,
    /// Build and test a variant, and read it interleaved with the incumbent.
    Variant { variant: u32 },
    /// Run karve itself with some arguments on the files of a commit.
    Karve { head: String, files: String, args: Vec<String>, dir: String },
    /// Run a shell line in the checkout of a commit.
    Shell { head: String, files: String, line: String, dir: String, limit_s: u64 },
    /// Build and test the kernel as it is handed back.
    Accept { commit: String },
    /// Run a command of the campaign's agent.
    Exec { task: ExecTask },
    /// Who holds which device.
    Leases,
    /// What copies of projects, campaigns and karve take.
    Copies,
    /// Remove some of them.
    RemoveCopies { names: Vec<CopyName> },
    /// What the host is.
    Environment,
    /// Get ready to try settings of knobs.
    OpenTuner { source: TunerSource },
    /// Build, test and read a setting; or only read it again.
    Try { setting: KnobSetting, again: bool },
    /// Test a setting on the hidden cases.
    Judge { setting: KnobSetting },
    /// Build a setting, for the digest of its artifacts.
    Digest { setting: KnobSetting },
}

impl Work {
    /// Whether it uses the tuner that is open.
    pub fn is_for_tuner(&self) -> bool {
        matches!(self, Self::Try { .. } | Self::Judge { .. } | Self::Digest { .. })
    }
}

/// Whose knobs are tuned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum TunerSource {
    /// Those of a project's commit, with the `karve.toml` in this directory of it.
    Project { base: String, dir: String },
    /// Those of a candidate of the campaign; the incumbent is read this often.
    Candidate { base: String, incumbent_readings: usize },
}

impl TunerSource {
    /// The commit with the default setting.
    pub fn base(&self) -> &str {
        match self {
            Self::Project { base, .. } | Self::Candidate { base, .. } => base,
        }
    }
}

/// What the far side says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum FromFar {
    /// The answer to a hello.
    Welcome(Box<Welcome>),
    /// It cannot serve the project, for this reason; tasks will fail.
    Refused { error: WireError },
    /// It is alive.
    Beat,
    /// Something for the user.
    Notice { lasting: bool, text: String },
    /// What a command printed; attached.
    Output { stderr: bool },
    /// The end of a task. Attachments: a pack if there are refs, the artifacts, the files.
    End(Box<TaskEnd>),
    /// It does not know the task that is asked for.
    Unknown { id: u64 },
}

/// What is already there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Differs for each process.
    pub instance: String,
    /// Its name.
    pub host: String,
    /// How much of the campaign's log it has, and a digest of that.
    pub log: (u64, String),
    /// Commits that it has, by repository.
    pub commits: Vec<(RepoRole, String)>,
    /// Artifacts that it has.
    pub artifacts: Vec<String>,
    /// What the sandbox can do there.
    pub sandbox: String,
}

impl Welcome {
    /// Says nothing but who it is.
    pub fn short(instance: &str) -> Self {
        Self {
            instance: instance.to_owned(),
            host: String::new(),
            log: (0, String::new()),
            commits: Vec::new(),
            artifacts: Vec::new(),
            sandbox: String::new(),
        }
    }
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// Which one.
    pub id: u64,
    /// What came of it.
    pub outcome: Result<Outcome, WireError>,
    /// How long it waited for the device.
    pub waited_ms: u64,
    /// Refs that it set, with their commits.
    pub refs: Vec<(String, String)>,
    /// Artifacts that it made.
    pub artifacts: Vec<String>,
    /// Other files for the user, below the campaign's directory or the project's.
    pub files: Vec<String>,
}

impl TaskEnd {
    /// The end of a task that came to nothing so far.
    pub fn new(id: u64) -> Self {
        Self {
            id,
            outcome: Ok(Outcome::Exited { code: 0 }),
            waited_ms: 0,
            refs: Vec::new(),
            artifacts: Vec::new(),
            files: Vec::new(),
        }
    }
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Outcome {
    /// The event of a step.
    Event { event: Box<Event> },
    /// The host, and the arguments of the kernel.
    Inspected { environment: Environment, args: Vec<Arg> },
    /// A profile.
    Profiled { profile: Box<Profile> },
    /// The profile of the candidate, and the shares of its parts.
    Learned { after: Option<Box<Profile>>, shares: Vec<PartShare> },
    /// What a variant showed.
    Tryout { trial: VariantTrial },
    /// The exit code of a command.
    Exited { code: i32 },
    /// Whether the kernel can be handed back.
    Accepted { gate: Gate },
    /// What a command of an agent printed.
    Ran { ran: ExecRun },
    /// The devices, each with what its lease says.
    Leases { leases: Vec<(String, String)> },
    /// Copies that are there, or that were removed.
    Copies { copies: Vec<FarCopy> },
    /// What the host is.
    Environment { environment: Environment },
    /// Settings can be tried on this host.
    Tuner { incumbent: Vec<f64> },
    /// No tuner is open: the worker was started again.
    NoTuner,
    /// A setting was read, or failed in a way that the tuner has a name for.
    Tried {
        value: Option<f64>,
        cases: Vec<f64>,
        why: String,
        failure: Option<String>,
        artifacts: Option<String>,
    },
    /// Whether a setting is right.
    Judged { right: bool },
    /// The digest of its artifacts.
    Digest { artifacts: Option<String> },
}

/// A message with its attachments.
#[derive(Clone, Debug, PartialEq)]
pub struct WireMessage<T> {
    /// What is said.
    pub body: T,
    /// What comes with it.
    pub attached: Vec<Vec<u8>>,
}

impl<T> From<T> for WireMessage<T> {
    fn from(body: T) -> Self {
        Self { body, attached: Vec::new() }
    }
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameKind {
    /// The start of a message's text.
    Start,
    /// More of a text or an attachment.
    More,
}

/// The text of a message, as it travels.
#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    body: T,
    #[serde(default)]
    attached: Vec<u64>,
}

/// Writes a message.
pub fn write_message<T: Serialize>(
    to: &mut impl Write,
    message: &WireMessage<T>,
) -> io::Result<()> {
    let attached = message.attached.iter().map(|bytes| bytes.len() as u64).collect();
    let text = serde_json::to_vec(&Envelope { body: &message.body, attached })?;
    let mut kind = FrameKind::Start;
    // The length of the text comes first, so that its frames can be put together.
    let mut head = (text.len() as u64).to_be_bytes().to_vec();
    head.extend(text);
    for part in std::iter::once(&head).chain(&message.attached) {
        for bytes in part.chunks(FRAME_BYTES_MAX) {
            write_frame(to, kind, bytes)?;
            kind = FrameKind::More;
        }
    }
    to.flush()
}

fn write_frame(to: &mut impl Write, kind: FrameKind, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let mut head = [b'+', 0, 0, 0, 0];
    if kind == FrameKind::Start {
        head[0] = b'=';
    }
    head[1..].copy_from_slice(&length.to_be_bytes());
    to.write_all(&head)?;
    to.write_all(bytes)
}

/// Reads one whole frame, with its head; none at the end of the stream.
pub fn read_raw_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut frame = vec![0; 5];
    let mut got = 0;
    while got < frame.len() {
        match from.read(&mut frame[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_be_bytes([frame[1], frame[2], frame[3], frame[4]]) as usize;
    if !matches!(frame[0], b'=' | b'+') || length > FRAME_BYTES_MAX {
        return Err(garbled("what came is no frame"));
    }
    frame.resize(5 + length, 0);
    from.read_exact(&mut frame[5..])?;
    Ok(Some(frame))
}

fn garbled(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

/// Puts messages together from frames. A message that was cut off is dropped when the next one
/// starts.
#[derive(Debug, Default)]
pub struct MessageReader {
    /// A frame that starts the next message.
    next: Option<Vec<u8>>,
}

impl MessageReader {
    /// The next message; none at the end of the stream.
    pub fn read<T: DeserializeOwned>(
        &mut self,
        from: &mut impl Read,
    ) -> io::Result<Option<WireMessage<T>>> {
        loop {
            let start = match self.next.take() {
                Some(frame) => frame,
                None => match read_raw_frame(from)? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            // The rest of a message whose start went to another reader.
            if start[0] != b'=' {
                continue;
            }
            let mut parts = FrameBytes { frame: start, at: 5, next: None };
            match parts.message(from) {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => self.next = parts.next,
                Err(error) => return Err(error),
            }
        }
    }
}

/// The bytes of the frames of one message.
struct FrameBytes {
    frame: Vec<u8>,
    at: usize,
    next: Option<Vec<u8>>,
}

impl FrameBytes {
    /// The message; none if another one starts before its end.
    fn message<T: DeserializeOwned>(
        &mut self,
        from: &mut impl Read,
    ) -> io::Result<Option<WireMessage<T>>> {
        let Some(length) = self.take(8, from)? else {
            return Ok(None);
        };
        let length = length.try_into().map_or(u64::MAX, u64::from_be_bytes);
        if length > TEXT_BYTES_MAX as u64 {
            return Err(garbled("a message is too long"));
        }
        let Some(text) = self.take(length, from)? else {
            return Ok(None);
        };
        let envelope: Envelope<T> =
            serde_json::from_slice(&text).map_err(|_| garbled("a message cannot be read"))?;
        let total = envelope.attached.iter().fold(0_u64, |sum, len| sum.saturating_add(*len));
        if total > ATTACHED_BYTES_MAX || envelope.attached.len() > ATTACHMENTS_MAX {
            return Err(garbled("a message has too many attachments"));
        }
        let mut attached = Vec::new();
        for length in envelope.attached {
            let Some(bytes) = self.take(length, from)? else {
                return Ok(None);
            };
            attached.push(bytes);
        }
        Ok(Some(WireMessage { body: envelope.body, attached }))
    }

    /// So many bytes; none if another message starts first.
    fn take(&mut self, length: u64, from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < length {
            if self.at == self.frame.len() {
                let frame = read_raw_frame(from)?;
                let frame = frame.ok_or(io::ErrorKind::UnexpectedEof)?;
                if frame[0] == b'=' {
                    self.next = Some(frame);
                    return Ok(None);
                }
                (self.frame, self.at) = (frame, 5);
            }
            let wanted = usize::try_from(length).unwrap_or(usize::MAX) - bytes.len();
            let end = self.frame.len().min(self.at.saturating_add(wanted));
            bytes.extend(&self.frame[self.at..end]);
            self.at = end;
        }
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(message: &WireMessage<FromFar>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_message(&mut bytes, message).unwrap();
        bytes
    }

    fn all(bytes: &[u8]) -> io::Result<Vec<WireMessage<FromFar>>> {
        let (mut from, mut reader) = (bytes, MessageReader::default());
        let mut messages = Vec::new();
        while let Some(message) = reader.read(&mut from)? {
            messages.push(message);
        }
        Ok(messages)
    }

    fn output(sizes: &[usize]) -> WireMessage<FromFar> {
        let attached = sizes.iter().map(|size| vec![7; *size]).collect();
        WireMessage { body: FromFar::Output { stderr: true }, attached }
    }

    #[test]
    fn messages_arrive_whole_with_large_and_empty_attachments() {
        let sent = [output(&[0, 3, FRAME_BYTES_MAX + 1]), FromFar::Beat.into(), output(&[])];
        let bytes: Vec<u8> = sent.iter().flat_map(written).collect();
        assert_eq!(all(&bytes).unwrap(), sent);
    }

    #[test]
    fn a_message_that_was_cut_off_between_frames_is_dropped_and_the_next_one_read() {
        let long = written(&output(&[3 * FRAME_BYTES_MAX]));
        let mut bytes = Vec::new();
        let mut from = &long[..];
        bytes.extend(read_raw_frame(&mut from).unwrap().unwrap());
        bytes.extend(read_raw_frame(&mut from).unwrap().unwrap());
        bytes.extend(written(&FromFar::Beat.into()));
        // The rest of the long one, to a reader that never saw its start.
        let rest = from.to_vec();
        assert_eq!(all(&bytes).unwrap(), [FromFar::Beat.into()]);
        assert_eq!(all(&rest).unwrap(), []);
    }

    #[test]
    fn garbage_is_refused_and_never_believed() {
        assert!(all(b"Welcome to this machine\n").is_err());
        assert!(all(&[b'=', 255, 255, 255, 255]).is_err());
        let mut bytes = Vec::new();
        write_frame(&mut bytes, FrameKind::Start, &u64::MAX.to_be_bytes()).unwrap();
        assert!(all(&bytes).is_err());
        let mut lying = Vec::new();
        let text = br#"{"body":{"type":"beat"},"attached":[9999999999]}"#;
        let mut head = (text.len() as u64).to_be_bytes().to_vec();
        head.extend(text);
        write_frame(&mut lying, FrameKind::Start, &head).unwrap();
        assert!(all(&lying).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_end_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = all(&bytes);
        }

        #[test]
        fn a_stream_cut_anywhere_gives_a_prefix(cut in 0_usize..300) {
            let sent = [output(&[10, 20]), FromFar::Beat.into(), output(&[5])];
            let bytes: Vec<u8> = sent.iter().flat_map(written).collect();
            let (mut from, mut reader) = (&bytes[..cut.min(bytes.len())], MessageReader::default());
            let mut got = Vec::new();
            while let Ok(Some(message)) = reader.read::<FromFar>(&mut from) {
                got.push(message);
            }
            prop_assert!(sent.starts_with(&got));
        }
    }
}
