//! The log, the artifacts and the lock of a campaign; the only file that writes the log.
//!
//! ```text
//! <root>/<campaign>/events.jsonl    one record a line, synced before it counts
//!                   artifacts/      files named by their SHA-256
//!                   lock            names its holder; the lock is released when the holder dies
//!                   worktrees/      candidates; removed at the end of a round
//!                   logs/ rounds/   derived, can be deleted and rebuilt
//! ```

mod tail;

pub use tail::{LogNews, LogTail};

use karve_core::campaign::{Campaign, Event, LOG_VERSION, Record};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files::{self, remove_temporary, sha256_file, sha256_hex, write_atomic};
use karve_os::text;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const LOG: &str = "events.jsonl";
const LOCK: &str = "lock";
/// Where to die, in tests.
const DIE: &str = "KARVE_TEST_DIE";
/// Maximum length of a log line; karve writes no longer one.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Largest artifact that is read.
const ARTIFACT_BYTES_MAX: u64 = 256 << 20;
/// The number of records in which the base of a campaign is found.
const FIRST_RECORDS: usize = 8;

/// The directory of one campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CampaignDir {
    path: PathBuf,
}

impl CampaignDir {
    /// The directory of the campaign with that name.
    pub fn new(root: &Path, name: &str) -> Self {
        Self { path: root.join(name) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path inside it.
    pub fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path.join(relative)
    }

    /// The log; only this file writes it.
    pub fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// The directory of the candidates' worktrees.
    pub fn worktrees(&self) -> PathBuf {
        self.path.join("worktrees")
    }

    /// The campaign's name.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether a campaign was started here.
    pub fn exists(&self) -> bool {
        self.path.join(LOG).is_file()
    }
}

/// All campaigns under a root, oldest first by their log's first record.
pub fn list(root: &Path) -> Result<Vec<CampaignDir>> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context(|| format!("cannot read {}", root.display())),
    };
    let mut found: Vec<(i64, CampaignDir)> = Vec::new();
    for entry in entries.flatten() {
        let dir = CampaignDir { path: entry.path() };
        if dir.exists() {
            found.push((started_at(&dir).unwrap_or(i64::MAX), dir));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.path.cmp(&b.1.path)));
    Ok(found.into_iter().map(|(_, dir)| dir).collect())
}

/// Whether a campaign has at least its first record.
pub fn has_records(dir: &CampaignDir) -> bool {
    started_at(dir).is_some()
}

/// The commit of the user's repository that a campaign started from; none until it is known.
pub fn base_of(dir: &CampaignDir) -> Option<String> {
    let file = File::open(dir.join(LOG)).ok()?;
    let mut reader = BufReader::new(file.take(LINE_BYTES_MAX));
    for _ in 0..FIRST_RECORDS {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).ok()?;
        if let Event::Prepared(preparation) = parse_line(&line).ok()?.event {
            // An extracted workspace has its own commits.
            let from = preparation.provenance.map(|from| from.commit);
            return Some(from.unwrap_or(preparation.base));
        }
    }
    None
}

/// Whether the last process that ran a campaign died, or is still running: one that exits normally
/// removes its name from the lock.
pub fn was_killed(dir: &CampaignDir) -> bool {
    fs::metadata(dir.join(LOCK)).is_ok_and(|lock| lock.len() > 0)
}

fn started_at(dir: &CampaignDir) -> Option<i64> {
    let mut line = String::new();
    let file = File::open(dir.join(LOG)).ok()?;
    BufReader::new(file.take(LINE_BYTES_MAX)).read_line(&mut line).ok()?;
    parse_line(line.as_bytes()).ok().map(|record| record.at_ms)
}

/// A campaign's log after reading.
#[derive(Debug)]
pub struct LoadedLog {
    /// The records in order.
    pub records: Vec<Record>,
    /// The state folded from them.
    pub campaign: Campaign,
    /// Size of an incomplete last line in bytes; 0 if there is none.
    pub torn_bytes: u64,
    /// Where the last complete line ends.
    good_bytes: u64,
}

/// Reads a campaign's log without taking the lock and without changing anything.
pub fn read(dir: &CampaignDir) -> Result<LoadedLog> {
    let path = dir.join(LOG);
    let file = File::open(&path).context(|| format!("cannot read {}", path.display()))?;
    let loaded = parse_log(&path, BufReader::with_capacity(1 << 16, file))?;
    match loaded.records.is_empty() && has_artifacts(dir) {
        true => Err(emptied(dir)),
        false => Ok(loaded),
    }
}

/// Artifacts belong to records: where they are, records were.
fn has_artifacts(dir: &CampaignDir) -> bool {
    fs::read_dir(dir.join("artifacts")).is_ok_and(|mut files| files.next().is_some())
}

fn emptied(dir: &CampaignDir) -> CommandError {
    let (path, name) = (dir.join(LOG), dir.name());
    let message = format!("the log {} has no records, but artifacts of some", path.display());
    CommandError::environment(message).cause("somebody emptied it").hint(format!(
        "restore {} from a copy, or remove the campaign: \"karve clean {name}\"",
        LOG
    ))
}

/// Reads a log; the path is for messages.
pub fn parse_log(path: &Path, mut reader: impl BufRead) -> Result<LoadedLog> {
    let mut loaded =
        LoadedLog { records: Vec::new(), campaign: Campaign::new(), torn_bytes: 0, good_bytes: 0 };
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = (&mut reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .context(|| format!("cannot read {}", path.display()))?;
        if n == 0 {
            return Ok(loaded);
        }
        let last = reader.fill_buf().is_ok_and(<[u8]>::is_empty);
        match parse_line(&line) {
            Ok(record) => {
                loaded
                    .campaign
                    .record(&record)
                    .map_err(|error| damaged(path, loaded.records.len() + 1, &error))?;
                loaded.records.push(record);
                loaded.good_bytes += n as u64;
            }
            Err(_) if is_other_format(&line) => return Err(other_format(path)),
            Err(_) if last => {
                loaded.torn_bytes = n as u64;
                return Ok(loaded);
            }
            Err(error) => return Err(damaged(path, loaded.records.len() + 1, &error)),
        }
    }
}

/// One line of a log, with its end.
pub fn parse_line(line: &[u8]) -> Result<Record, String> {
    if line.last() != Some(&b'\n') {
        return Err("the line is incomplete".into());
    }
    let text = std::str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
    let record: Record = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if record.v != LOG_VERSION {
        return Err(format!("it has format {}, not {LOG_VERSION}", record.v));
    }
    Ok(record)
}

/// A log in another format is not damaged; it must not be truncated.
pub fn is_other_format(line: &[u8]) -> bool {
    let value: Option<serde_json::Value> = serde_json::from_slice(line).ok();
    let version = value.and_then(|value| value.get("v")?.as_u64());
    version.is_some_and(|version| version != u64::from(LOG_VERSION))
}

fn other_format(path: &Path) -> CommandError {
    let message = format!(
        "the log {} was written by another version of karve: this one reads format {LOG_VERSION}",
        path.display()
    );
    CommandError::usage(message)
        .hint("read it with the karve that wrote it; \"karve --version\" names this one")
}

fn damaged(path: &Path, line: usize, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::environment(format!(
        "the log {} is damaged at line {line}",
        path.display()
    ))
    .cause(error)
    .hint(format!(
        "keep a copy of {}, truncate it before line {line} with \"head -n {}\", and resume with \
             \"karve run\"",
        path.display(),
        line - 1
    ))
}

/// The open log of a campaign: the lock is held until it is dropped.
#[derive(Debug)]
pub struct Store {
    dir: CampaignDir,
    log: File,
    length: u64,
    next_seq: u64,
    lock: File,
}

impl Store {
    /// Takes the lock, cuts off an incomplete last line, and reads the log. Creates the campaign if
    /// it does not exist yet.
    pub fn open(dir: &CampaignDir, holder: &str) -> Result<(Self, LoadedLog)> {
        make_dirs(dir)?;
        let lock = take_lock(&dir.join(LOCK), holder)?;
        remove_temporary(&dir.join("artifacts"));
        let path = dir.join(LOG);
        let cannot = || format!("cannot open {}", path.display());
        let new = !path.exists();
        let mut log = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .context(cannot)?;
        if new {
            sync_dir(dir.path())?;
        }
        let loaded = read(dir)?;
        if loaded.torn_bytes > 0 {
            log.set_len(loaded.good_bytes).context(cannot)?;
            log.sync_all().context(cannot)?;
        }
        log.seek(SeekFrom::End(0)).context(cannot)?;
        let store = Self {
            dir: dir.clone(),
            log,
            length: loaded.good_bytes,
            next_seq: loaded.records.len() as u64,
            lock,
        };
        Ok((store, loaded))
    }

    /// The campaign's directory.
    pub fn dir(&self) -> &CampaignDir {
        &self.dir
    }

    /// Makes an event durable. When this returns, it counts; when it fails, it never happened.
    pub fn append(
        &mut self,
        event: Event,
        by: Option<String>,
        at_ms: i64,
        spent_ms: u64,
    ) -> Result<Record> {
        let record = Record { v: LOG_VERSION, seq: self.next_seq, at_ms, spent_ms, by, event };
        let mut line = serde_json::to_vec(&record)
            .map_err(|e| CommandError::new(ErrorKind::Bug, "cannot write an event").cause(e))?;
        line.push(b'\n');
        // An unreadable record would make the campaign unusable, so it is never written.
        if parse_line(&line).as_ref() != Ok(&record) {
            return Err(CommandError::new(
                ErrorKind::Bug,
                "cannot write an event that cannot be read back",
            )
            .cause(record.event.name())
            .hint("resume with \"karve run\": the log is unchanged"));
        }
        self.die_if_requested("before", &[]);
        self.die_if_requested("torn", &line[..line.len() / 2]);
        let written = self.log.write_all(&line).and_then(|()| self.log.sync_data());
        if let Err(error) = written {
            // A half-written line must not be followed by a complete one.
            let _ = self.log.set_len(self.length);
            let _ = self.log.seek(SeekFrom::Start(self.length));
            return Err(CommandError::environment(format!(
                "cannot write {}",
                self.dir.join(LOG).display()
            ))
            .cause(error)
            .hint("free disk space, then resume with \"karve run\": nothing is lost"));
        }
        self.die_if_requested("after", &[]);
        self.length += line.len() as u64;
        self.next_seq += 1;
        Ok(record)
    }

    /// For the kill test: dies before, in the middle of or after the given record, as in
    /// `KARVE_TEST_DIE=torn:17`, just as if it had been killed there.
    fn die_if_requested(&mut self, point: &str, written: &[u8]) {
        let here = format!("{point}:{}", self.next_seq);
        if std::env::var_os(DIE).is_some_and(|reported| reported == here.as_str()) {
            let _ = self.log.write_all(written);
            let _ = signal_hook::low_level::raise(signal_hook::consts::SIGKILL);
        }
    }

    /// Stores bytes under their hash and returns the hash.
    pub fn put(&self, bytes: &[u8]) -> Result<String> {
        put_artifact(&self.dir, bytes)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The name of a dead holder would be misleading.
        let _ = self.lock.set_len(0);
    }
}

/// Stores bytes under their hash and returns the hash.
pub fn put_artifact(dir: &CampaignDir, bytes: &[u8]) -> Result<String> {
    let hash = sha256_hex(bytes);
    let path = dir.join("artifacts").join(&hash);
    if !path.exists() {
        write_atomic(&path, bytes)?;
    }
    Ok(hash)
}

/// Adds a file of the campaign to its artifacts, under its hash, and returns the hash.
pub fn take_artifact(dir: &CampaignDir, path: &Path) -> Result<String> {
    let hash = sha256_file(path)?;
    let target = dir.join("artifacts").join(&hash);
    File::open(path)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(path, &target))
        .context(|| format!("cannot write {}", target.display()))?;
    Ok(hash)
}

/// Where an artifact is. The log is data: a name that is not a hash could point anywhere, and so
/// could a link.
pub fn artifact_path(dir: &CampaignDir, hash: &str) -> Result<PathBuf> {
    if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let name = text::safe(hash, 80);
        return Err(CommandError::environment(format!("{name:?} is not the name of an artifact"))
            .hint("see what else is damaged with \"karve verify\""));
    }
    let path = dir.join("artifacts").join(hash);
    if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink()) {
        return Err(CommandError::environment(format!("{} is a link", path.display()))
            .hint("restore the file from a copy; \"karve verify\" lists what it affects"));
    }
    Ok(path)
}

/// Reads an artifact and checks it against the hash in its name.
pub fn get_artifact(dir: &CampaignDir, hash: &str) -> Result<Vec<u8>> {
    let path = artifact_path(dir, hash)?;
    let read = files::read(&path, ARTIFACT_BYTES_MAX);
    let bytes = read.context(|| format!("cannot read {}", path.display()))?;
    if sha256_hex(&bytes) != hash {
        return Err(CommandError::environment(format!(
            "{} does not match its hash",
            path.display()
        ))
        .hint("restore the file from a copy; \"karve verify\" lists what it affects"));
    }
    Ok(bytes)
}

fn make_dirs(dir: &CampaignDir) -> Result<()> {
    let cannot = || format!("cannot create {}", dir.path().display());
    fs::create_dir_all(dir.join("artifacts")).context(cannot)?;
    match dir.path().parent() {
        Some(root) => ignore_in_git(root),
        None => Ok(()),
    }
}

/// Makes the directory of all campaigns ignore itself, so that it never shows up in the user's
/// repository.
pub fn ignore_in_git(root: &Path) -> Result<()> {
    let ignore = root.join(".gitignore");
    if ignore.exists() {
        return Ok(());
    }
    fs::write(&ignore, "*\n").context(|| format!("cannot write {}", ignore.display()))
}

fn sync_dir(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|dir| dir.sync_all());
    synced.context(|| format!("cannot sync {}", path.display()))
}

/// Holds a campaign that will be removed, so that no other process continues it.
pub fn lock(dir: &CampaignDir, holder: &str) -> Result<File> {
    take_lock(&dir.join(LOCK), holder)
}

fn take_lock(path: &Path, holder: &str) -> Result<File> {
    let cannot = || format!("cannot lock {}", path.display());
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)
        .context(cannot)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut held_by = String::new();
            let _ = (&mut file).take(1_000).read_to_string(&mut held_by);
            let held_by =
                if held_by.trim().is_empty() { "another karve process" } else { held_by.trim() };
            return Err(CommandError::new(ErrorKind::Busy, "the campaign is already running")
                .cause(format!("held by {held_by}"))
                .hint("watch it with \"karve status\", or stop that process first"));
        }
        Err(TryLockError::Error(error)) => return Err(error).context(cannot),
    }
    file.set_len(0).context(cannot)?;
    file.write_all(holder.as_bytes()).context(cannot)?;
    Ok(file)
}
