//! Reads a bundle that somebody else may have made: into a temporary directory, within limits, and
//! only what its list of hashes names.

use super::archive::{ArchiveWriter, copy_entry, is_plain_path, next_entry};
use super::pack::log_name;
use super::{BundleFacts, FACTS, FILE_BYTES_MAX, FILES_MAX, FORMAT, PATCH, SUMS, TOTAL_BYTES_MAX};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use karve_harness::store::CampaignDir;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files::{self, sha256_file, sha256_hex};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use tempfile::TempDir;

/// The list of a full bundle is about 3 MiB.
const SUMS_BYTES_MAX: u64 = 8 << 20;
const FACTS_BYTES_MAX: u64 = 8 << 20;
const PATCH_BYTES_MAX: u64 = 256 << 20;

/// A bundle in a temporary directory, which goes with this value. Every file has the hash that the
/// bundle's own list says; nothing else about it is checked yet.
#[derive(Debug)]
pub struct UnpackedBundle {
    _home: TempDir,
    /// The files as the directory of a campaign.
    pub dir: CampaignDir,
    /// What the bundle says about itself.
    pub facts: BundleFacts,
    /// The patch from the original to the final kernel.
    pub patch: Vec<u8>,
    /// How many files were compared with their hashes.
    pub files: usize,
}

/// Unpacks a bundle, or copies one that was unpacked by other means, and compares every file with
/// its hash.
pub fn unpack(path: &Path) -> Result<UnpackedBundle> {
    let refused = |why: String| refusal(path, &why);
    let open = || {
        files::open(path)
            .context(|| format!("cannot read {}", path.display()))
            .map_err(|error| error.hint("name a file that \"karve report --bundle FILE\" wrote"))
    };
    let home = tempfile::Builder::new()
        .prefix("karve-bundle-")
        .tempdir()
        .context(|| "cannot create a temporary directory".to_owned())
        .map_err(|error| error.hint("set TMPDIR to a directory with free space"))?;
    let dir = CampaignDir::new(home.path(), "bundle");
    let files = match path.is_dir() {
        true => copy(path, &dir).map_err(|why| {
            refused(why).hint("\"karve verify --campaign NAME\" checks one of this project")
        })?,
        false => extract(BufReader::new(open()?), &dir).map_err(&refused)?,
    };
    let read = |name: &str, bytes_max: u64| {
        files::read(&dir.join(name), bytes_max).map_err(|error| refused(format!("{name}: {error}")))
    };
    let text = read(FACTS, FACTS_BYTES_MAX)?;
    let version: Option<u64> = serde_json::from_slice(&text)
        .ok()
        .and_then(|facts: serde_json::Value| facts.get("format")?.as_u64());
    if version.is_some_and(|version| version != u64::from(FORMAT)) {
        let message = format!("{} has another format than {FORMAT}", path.display());
        return Err(CommandError::usage(message)
            .hint("verify it with the karve that wrote it; \"karve --version\" names this one"));
    }
    let facts: BundleFacts =
        serde_json::from_slice(&text).map_err(|error| refused(format!("{FACTS}: {error}")))?;
    let patch = read(PATCH, PATCH_BYTES_MAX)?;
    if !dir.exists() {
        return Err(refused(format!("it has no {}", log_name(&dir))));
    }
    Ok(UnpackedBundle { _home: home, dir, facts, patch, files })
}

fn refusal(path: &Path, why: &str) -> CommandError {
    let why = karve_os::text::safe(why, 300);
    CommandError::new(ErrorKind::Negative, format!("{} is not a valid bundle", path.display()))
        .cause(why)
        .hint("get it again from the sender, and compare \"sha256sum FILE\" on both sides")
        .hint("\"karve report --bundle FILE\" writes one")
}

/// Unpacks the files in the order of the list, and returns how many there are.
fn extract(file: impl std::io::BufRead, dir: &CampaignDir) -> Result<usize, String> {
    let mut input = GzDecoder::new(file);
    let home = dir.join("");
    fs::create_dir_all(dir.join(super::ARTIFACTS)).map_err(|error| error.to_string())?;
    let first = next_entry(&mut input)?.filter(|entry| entry.path == SUMS);
    let first = first.ok_or_else(|| format!("its first file is not {SUMS}"))?;
    if first.bytes > SUMS_BYTES_MAX {
        return Err(format!("{SUMS} is longer than {SUMS_BYTES_MAX} bytes"));
    }
    let mut sums = Vec::new();
    copy_entry(&mut input, &first, |bytes| sums.write_all(bytes))?;
    let sums = parse_sums(&sums)?;
    let mut total = 0_u64;
    for (hash, path) in &sums {
        let entry = next_entry(&mut input)?.ok_or_else(|| format!("it has no {path}"))?;
        if entry.path != *path || entry.top != first.top {
            return Err(format!("it has {} where {SUMS} names {path}", entry.path));
        }
        total = total.saturating_add(entry.bytes);
        if entry.bytes > FILE_BYTES_MAX || total > TOTAL_BYTES_MAX {
            return Err(format!("{path} is larger than karve writes ({} bytes)", entry.bytes));
        }
        write_checked(&home, (hash, path), |out| {
            copy_entry(&mut input, &entry, |bytes| out.write_all(bytes))
        })?;
    }
    if next_entry(&mut input)?.is_some() {
        return Err(format!("it has files that {SUMS} does not name"));
    }
    let mut rest = [0];
    match input.into_inner().read(&mut rest) {
        Ok(0) => Ok(sums.len() + 1),
        Ok(_) | Err(_) => Err("there is something after the archive".to_owned()),
    }
}

/// Writes one file of the list, which must have its hash then.
fn write_checked(
    home: &Path,
    (hash, path): (&str, &str),
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), String>,
) -> Result<(), String> {
    let target = home.join(path);
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    }
    let mut out = BufWriter::new(File::create_new(&target).map_err(|error| error.to_string())?);
    fill(&mut out)?;
    out.flush().map_err(|error| error.to_string())?;
    match sha256_file(&target).map_err(|error| error.to_string())? == hash {
        true => Ok(()),
        false => Err(format!("{path} does not match its hash in {SUMS}")),
    }
}

/// Copies the files of a bundle that lies in a directory, and returns how many there are.
fn copy(from: &Path, dir: &CampaignDir) -> Result<usize, String> {
    let sums = files::read(&from.join(SUMS), SUMS_BYTES_MAX)
        .map_err(|error| format!("{SUMS} cannot be read: {error}"))?;
    let sums = parse_sums(&sums)?;
    let mut total = 0_u64;
    for (hash, path) in &sums {
        if !is_plain_path(path) {
            return Err(format!("the path {path:?} is not one that karve writes"));
        }
        let cannot = |error: std::io::Error| format!("{path}: {error}");
        let file = files::open(&from.join(path)).map_err(cannot)?;
        total = total.saturating_add(file.metadata().map_err(cannot)?.len());
        if total > TOTAL_BYTES_MAX {
            return Err(format!("{path} is larger than karve writes"));
        }
        write_checked(&dir.join(""), (hash, path), |out| {
            std::io::copy(&mut file.take(FILE_BYTES_MAX), out).map(drop).map_err(cannot)
        })?;
    }
    for part in ["", "artifacts/"] {
        for entry in fs::read_dir(from.join(part)).into_iter().flatten().flatten().take(FILES_MAX) {
            let path = format!("{part}{}", entry.file_name().to_string_lossy());
            let is_listed = sums.iter().any(|(_, listed)| *listed == path);
            if !is_listed && path != SUMS && path != super::ARTIFACTS {
                return Err(format!("it has {path:?}, which {SUMS} does not name"));
            }
        }
    }
    Ok(sums.len() + 1)
}

/// For the fuzzing tests: whether an archive, before it is compressed, can be unpacked.
#[doc(hidden)]
pub fn reads_archive(bytes: &[u8]) -> bool {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = packer.write_all(bytes).and_then(|()| packer.finish());
    let home = tempfile::tempdir();
    packed.ok().zip(home.ok()).is_some_and(|(packed, home)| {
        extract(&packed[..], &CampaignDir::new(home.path(), "bundle")).is_ok()
    })
}

/// For the fuzzing tests: an archive of some files with their list, before it is compressed.
#[doc(hidden)]
pub fn archive_of(files: &[(&str, &[u8])]) -> Option<Vec<u8>> {
    let line = |(path, bytes): &(&str, &[u8])| format!("{}  {path}\n", sha256_hex(bytes));
    let sums: String = files.iter().map(line).collect();
    let mut archive = ArchiveWriter::new(Vec::new(), "fuzz", 0);
    archive.add(SUMS, sums.as_bytes()).ok()?;
    for (path, bytes) in files {
        archive.add(path, bytes).ok()?;
    }
    archive.finish().ok()
}

/// `hash  path` in each line, sorted by path, as `sha256sum` writes it.
fn parse_sums(bytes: &[u8]) -> Result<Vec<(String, String)>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| format!("{SUMS} is not text"))?;
    let mut sums: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let parts = line.strip_suffix('\n').and_then(|line| line.split_once("  "));
        let is_hex = |hash: &str| {
            hash.len() == 64 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let (hash, path) = parts
            .filter(|(hash, _)| is_hex(hash))
            .ok_or_else(|| format!("{SUMS} has a line that is not \"hash  path\""))?;
        if sums.last().is_some_and(|(_, last)| last.as_str() >= path) {
            return Err(format!("{SUMS} is not sorted"));
        }
        if sums.len() >= FILES_MAX {
            return Err(format!("it has more than {FILES_MAX} files"));
        }
        sums.push((hash.to_owned(), path.to_owned()));
    }
    Ok(sums)
}
