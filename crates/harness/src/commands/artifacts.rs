//! The output of a build, as one digest: equal digests mean that nothing changed.

use super::Harness;
use crate::placeholders::quote;
use globset::{Glob, GlobSetBuilder};
use karve_numerics::space::{Delivery, KnobDeclaration};
use karve_os::error::{CommandError, Result};
use karve_os::process::CommandOutcome;
use karve_os::sandbox::CommandPurpose;
use karve_os::{files, process};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum number of files that artifact globs may match.
const ARTIFACTS_MAX: usize = 10_000;

/// Maximum number of files whose code is shown, and bytes of it.
const SHOWN_MAX: usize = 4;
/// The same where functions are searched for, and names of those.
const SEARCHED_MAX: usize = 16;
const NAMES_MAX: usize = 64;
const CODE_BYTES_MAX: usize = 1 << 20;

/// Maximum number of files that are read from disk again at the start of a duel.
const FRESH_MAX: usize = 64;

impl Harness {
    /// One digest of everything the build produced; `None` if the charter names no artifacts.
    ///
    /// The knobs that a running kernel can see are part of it.
    pub fn artifacts_digest(&self, tree: &Path) -> Result<Option<String>> {
        let knobs = [Delivery::Environment, Delivery::Argument]
            .map(|delivery| self.knobs_by(delivery, tree));
        let read_at_run_time = |knob: &&KnobDeclaration| knob.deliver == Delivery::Json;
        let json = self.knobs.iter().filter(read_at_run_time);
        let json: BTreeSet<PathBuf> = json.map(|knob| tree.join(&knob.file)).collect();
        let tree = &tree.join(&self.workdir);
        let files = self.artifacts(tree)?;
        if files.is_empty() {
            return Ok(None);
        }
        let mut list = String::new();
        for file in files {
            let hash = files::sha256_file(&tree.join(&file))?;
            list.push_str(&format!("{hash} {}\n", file.display()));
        }
        for path in json.iter().filter(|path| path.is_file()) {
            list.push_str(&format!("{}\n", files::sha256_file(path)?));
        }
        for (name, value) in knobs.iter().flatten() {
            list.push_str(&format!("{name}={value}\n"));
        }
        Ok(Some(files::sha256_hex(list.as_bytes())))
    }

    /// The generated code of what the build produced: the artifacts that the charter names, or else
    /// compiled files, those of the benchmark's command first and then the newest; none if there
    /// are none. With names, only the functions whose symbols contain one: a linked program has
    /// thousands.
    pub fn assembly(&self, tree: &Path, names: &[&str]) -> Result<Option<CommandOutcome>> {
        let home = tree.join(&self.workdir);
        let mut files = self.artifacts(&home)?;
        if files.is_empty() {
            files = self.compiled(&home);
        }
        let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let names: Vec<&str> = names.iter().copied().filter(is_plain).take(NAMES_MAX).collect();
        let (shown, only) = match names.is_empty() {
            true => (SHOWN_MAX, String::new()),
            // A function is a paragraph, and only its first line ends like that.
            false => {
                let those = quote(&format!("/<[^>]*({})[^>]*>:/", names.join("|")));
                (SEARCHED_MAX, format!(" | awk -v RS= -v 'ORS=\n\n' {those}"))
            }
        };
        let lines = files.iter().take(shown).map(|file| {
            let name = quote(&file.to_string_lossy());
            match file.extension().and_then(|end| end.to_str()) {
                Some("s" | "ptx" | "amdgcn" | "sass") => format!("cat -- {name}\n"),
                Some("cubin" | "fatbin") => format!("cuobjdump -sass {name}\n"),
                Some("hsaco" | "co") => format!("llvm-objdump -d --no-show-raw-insn {name}\n"),
                _ => format!("LC_ALL=C objdump -d -w --no-show-raw-insn -- {name}{only}\n"),
            }
        });
        let line: String = lines.collect();
        if line.is_empty() {
            return Ok(None);
        }
        let trial = self.trial(tree, CommandPurpose::Profile)?;
        let command = self.within(&format!("{line}exit 0\n"), tree, trial.as_ref());
        process::run(&command.capture_bytes(CODE_BYTES_MAX), &self.stop).map(Some)
    }

    /// Compiled files of a tree.
    fn compiled(&self, tree: &Path) -> Vec<PathBuf> {
        let words: Vec<PathBuf> =
            self.commands.bench.split_whitespace().map(PathBuf::from).collect();
        let is_named = |file: &Path| words.iter().any(|word| tree.join(word) == tree.join(file));
        let mut found = Vec::new();
        let mut n_seen = 0;
        walk(tree, Path::new(""), &mut |relative| {
            n_seen += 1;
            let path = tree.join(relative);
            if n_seen <= ARTIFACTS_MAX && is_elf(&path) {
                let changed = fs::metadata(&path).and_then(|data| data.modified()).ok();
                found.push((is_named(relative), changed, relative.to_owned()));
            }
        });
        found.sort();
        found.into_iter().rev().map(|(_, _, file)| file).collect()
    }

    /// The files that the build produced, in order.
    fn artifacts(&self, tree: &Path) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        if self.commands.artifacts.is_empty() {
            return Ok(files);
        }
        let mut globs = GlobSetBuilder::new();
        for pattern in &self.commands.artifacts {
            let glob = Glob::new(pattern).map_err(|error| {
                CommandError::usage(format!("commands.artifacts has a bad glob {pattern:?}"))
                    .cause(error)
                    .hint("fix it in karve.toml")
            })?;
            globs.add(glob);
        }
        let globs = globs.build().map_err(|error| {
            CommandError::usage("commands.artifacts cannot be used").cause(error)
        })?;
        walk(tree, Path::new(""), &mut |relative| {
            if globs.is_match(relative) && files.len() < ARTIFACTS_MAX {
                files.push(relative.to_owned());
            }
        });
        files.sort();
        Ok(files)
    }

    /// Makes the next run read the benchmark's programs from disk, so that both arms of a duel have
    /// the same memory layout: the build's output, and the files that the command names.
    pub fn fresh_pages(&self, tree: &Path) -> Result<()> {
        let tree = &tree.join(&self.workdir);
        let named = self.commands.bench.split_whitespace().map(PathBuf::from);
        let files = named.chain(self.artifacts(tree)?).take(FRESH_MAX);
        for file in files {
            process::forget_pages(&tree.join(file));
        }
        Ok(())
    }
}

/// Whether a file is a program, a library or an object that objdump reads.
fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

/// Calls `visit` with the path of every plain file in a tree, except git's own.
fn walk(tree: &Path, below: &Path, visit: &mut dyn FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(tree.join(below)) else {
        return;
    };
    for entry in entries.flatten() {
        let relative = below.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && entry.file_name() != ".git" => {
                walk(tree, &relative, visit);
            }
            Ok(kind) if kind.is_file() => visit(&relative),
            Ok(_) | Err(_) => {}
        }
    }
}
