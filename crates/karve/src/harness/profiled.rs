//! The benchmark of one case under a profiler.

use super::{Harness, Purpose, fresh_seed};
use crate::config::{expand, quote};
use crate::error::Result;
use crate::process::{self, Run};
use crate::profilers::run::{DIR_VARIABLE, Output, Start};
use karve_core::charter::Case;
use std::path::Path;

/// Where a profiler writes, below the directory of the commands; nothing of it stays.
pub const PROFILE_DIR: &str = "karve-profile.tmp";
/// Bytes of a profiler's output that are taken.
const OUTPUT_BYTES_MAX: usize = 64 << 20;

impl Harness {
    /// The words that bench one case; nothing where the project has no such command, and a shell
    /// where it needs one.
    pub fn bench_words(&self, tree: &Path, case: &Case) -> Result<Option<Vec<String>>> {
        if self.is_under_contract() || self.commands.bench.is_empty() {
            return Ok(None);
        }
        let values = self.placeholders(tree, fresh_seed()?, Some(Path::new("/dev/null")));
        let line = expand(&self.commands.bench, Some(case), &values)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || " _-./=,:+@%".contains(c);
        Ok(Some(match line.chars().all(plain) {
            true => line.split_whitespace().map(str::to_owned).collect(),
            false => vec!["sh".to_owned(), "-c".to_owned(), line],
        }))
    }

    /// Runs a profiler; its output is on the standard output of the run, what it said on the other.
    pub fn run_profiler(&self, tree: &Path, start: &Start) -> Result<Run> {
        let dir = PROFILE_DIR;
        let mut line = format!("mkdir -p {dir} || exit 125\n");
        line.push_str(&format!("export {DIR_VARIABLE}=\"$PWD/{dir}\"\n"));
        for (name, value) in &start.environment {
            line.push_str(&format!("export {name}={}\n", quote(value)));
        }
        let last = start.commands.len().saturating_sub(1);
        for (number, words) in start.commands.iter().enumerate() {
            let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
            let to = match (&start.output, number == last) {
                (Output::Stdout, true) => "",
                _ => " >/dev/null",
            };
            line.push_str(&format!("{}{to} || exit $?\n", words.join(" ")));
        }
        match &start.output {
            Output::File(path) => {
                line.push_str(&format!("cat {}\n", quote(&path.to_string_lossy())));
            }
            Output::FileOfEach(begins) => {
                line.push_str(&format!("cat {dir}/{}*\n", quote(begins)));
            }
            Output::Stdout => {}
        }
        let line = format!("(\n{line})\nstatus=$?\nrm -rf {dir}\nexit $status");
        let trial = self.trial(tree, Purpose::Profile)?;
        let command = self.within(&line, tree, trial.as_ref());
        process::run(&command.capture_bytes(OUTPUT_BYTES_MAX), &self.stop)
    }
}
