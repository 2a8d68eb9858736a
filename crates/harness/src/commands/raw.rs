//! The output of a benchmark, kept in full, up to a limit: always if its numbers could not be used,
//! and otherwise if a step asks for it.
//!
//! The harness leaves it in the scratch directory, and the step that failed stores it. The next
//! failure overwrites it.

use super::Harness;
use crate::runner::WORKER_OUTPUT;
use karve_os::files;
use karve_os::process::CommandOutcome;
use std::fs;
use std::path::Path;

/// The most that is kept of one run.
pub const RAW_BYTES_MAX: usize = 1 << 20;

/// The most that is kept of standard error, or of standard output if there is also a file.
const SIDE_BYTES_MAX: usize = RAW_BYTES_MAX / 4;

/// Space for the lines between the parts.
const LINES_BYTES_MAX: usize = 1_000;

/// The file in the scratch directory.
const NAME: &str = "raw-output";

/// The file with the output of runs that could be used.
const USABLE: &str = "usable-output";

impl Harness {
    /// The same harness, which also keeps the output that it could use.
    #[must_use]
    pub fn keeping_output(mut self) -> Self {
        self.keeps_output = true;
        self
    }

    /// Appends the output of a run that could be used, if that is wanted.
    pub(super) fn keep_usable(&self, run: &CommandOutcome, file: Option<&str>) {
        let path = self.scratch.join(USABLE);
        let before = fs::metadata(&path).map_or(0, |meta| meta.len());
        if !self.keeps_output || before >= RAW_BYTES_MAX as u64 {
            return;
        }
        let mut text = fs::read(&path).unwrap_or_default();
        text.extend(render(run, file));
        text.truncate(RAW_BYTES_MAX);
        let _ = fs::create_dir_all(&self.scratch).and_then(|()| fs::write(path, text));
    }
}

/// Takes the output of the runs that could be used and were kept.
pub fn take_usable(scratch: &Path) -> Option<Vec<u8>> {
    take_file(&scratch.join(USABLE))
}

/// Takes the text that a benchmark wrote to a file; empty if it is not a plain file.
pub(super) fn taken_text(path: &Path) -> String {
    // A pipe would never end, and a link could point anywhere.
    let is_plain = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    let bytes = is_plain.then(|| files::read(path, files::RESULT_BYTES_MAX).ok()).flatten();
    let _ = fs::remove_file(path);
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

fn take_file(path: &Path) -> Option<Vec<u8>> {
    let bytes = fs::read(path).ok();
    let _ = fs::remove_file(path);
    bytes
}

/// Saves a run's output in the scratch directory; a full disk is reported elsewhere.
pub(super) fn keep(scratch: &Path, run: &CommandOutcome, file: Option<&str>) {
    let text = render(run, file);
    let _ = fs::create_dir_all(scratch).and_then(|()| fs::write(scratch.join(NAME), text));
}

/// Takes the output of the last failed run, if a run failed: of a benchmark, or of the process of a
/// kernel.
pub fn take(scratch: &Path) -> Option<Vec<u8>> {
    let take = |name: &str| take_file(&scratch.join(name));
    let (of_kernel, of_benchmark) = (take(WORKER_OUTPUT), take(NAME));
    of_benchmark.or(of_kernel)
}

fn render(run: &CommandOutcome, file: Option<&str>) -> Vec<u8> {
    let main_max = RAW_BYTES_MAX - 2 * SIDE_BYTES_MAX - LINES_BYTES_MAX;
    let stdout = run.stdout.text();
    let stderr = run.stderr.text();
    let stdout_max = if file.is_some() { SIDE_BYTES_MAX } else { main_max };
    let mut text = format!("[the benchmark: {}]\n", run.exit.describe());
    let parts = [
        ("the file of {out}", file.unwrap_or_default(), main_max),
        ("standard output", stdout.as_ref(), stdout_max),
        ("standard error", stderr.as_ref(), SIDE_BYTES_MAX),
    ];
    for (name, part, bytes_max) in parts {
        let is_meant = name != parts[0].0 || file.is_some();
        if is_meant {
            text.push_str(&format!("[{name}, {} bytes]\n", part.len()));
            text.push_str(&bounded(part, bytes_max));
            if !part.is_empty() && !part.ends_with('\n') {
                text.push('\n');
            }
        }
    }
    text.into_bytes()
}

/// The first and the last part of a text, if it is too long.
fn bounded(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(bytes_max / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - bytes_max / 2)..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[{left_out} bytes left out]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(bounded("short", 10), "short");
        let text = format!("begin{}end", "é".repeat(1_000));
        let kept = bounded(&text, 100);
        assert!(kept.starts_with("begin") && kept.ends_with("end"), "{kept}");
        assert!(kept.contains("bytes left out]"), "{kept}");
        assert!(kept.len() < 150, "{}", kept.len());
    }

    #[test]
    fn what_is_taken_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(take(dir.path()), None);
        fs::write(dir.path().join(NAME), "x").unwrap();
        assert_eq!(take(dir.path()), Some(b"x".to_vec()));
        assert_eq!(take(dir.path()), None);
    }
}
