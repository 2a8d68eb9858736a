//! The knowledge benchmark: is a library of 5,000 entries as quick to ask as a small one?
//!
//! `cargo bench --bench knowledge` writes 5,000 entries, made of those that karve brings, into a
//! directory. It reads them as a project's own, asks for what fits a real profile, a place and
//! some words, alone and together, and lints them from the files on. The exit code is 1 if a bound
//! is missed. A search is held to its bound in CPU time where that is less than the clock says.

#[path = "figures/shared.rs"]
mod figures;

use figures::{exit_code, tell, time};
use karve::library::situation::of_words;
use karve::library::{Layer, LibraryLayers, LoadedLibrary, catalog, markdown};
use karve_core::knowledge::{Entry, LibraryQuery, lint_all};
use karve_core::profile::CounterValues;
use karve_core::profile::classify::with_derived;
use karve_os::error::{CommandError, Result, WithContext};
use karve_profile::profilers::{self, ProfilerTool};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Entries that are written, beside those that karve brings.
const ENTRIES: usize = 5_000;
/// A search at most.
const MATCH_MS_MAX: f64 = 10.0;
/// Reading and linting all files at most.
const LINT_S_MAX: f64 = 2.0;
/// How often each search is timed: the median by the clock, the mean in CPU time.
const SEARCHES: usize = 51;
/// Every so many entries one is refuted, and one depends on it.
const REFUTED_EVERY: usize = 20;

fn main() -> ExitCode {
    exit_code(measure())
}

/// Measures everything and says whether all bounds hold.
fn measure() -> Result<bool> {
    let scratch = tempfile::tempdir().context(|| "cannot make a scratch directory".into())?;
    let bytes = write_entries(scratch.path())?;
    let mut layers = LibraryLayers::default();
    layers.put(Layer::Project, scratch.path().to_owned());
    let (loaded, load_s) = timed(|| layers.load())?;
    tell("entries", loaded.placed.len() as f64, "", None);
    tell("their files", bytes as f64 / 1e6, "MB", None);
    tell("reading and indexing them", load_s, "s", None);
    let mut held = search_all(&loaded)?;
    // What the command does: read all files, and look at each entry and at all together.
    let (n_complaints, lint_s) = timed(|| {
        let loaded = layers.load()?;
        let entries: Vec<Entry> = loaded.placed.into_values().map(|p| p.entry).collect();
        Ok(lint_all(&entries, &karve_os::clock::latest_day()).len() + loaded.unreadable.len())
    })?;
    tell("complaints", n_complaints as f64, "", None);
    held &= tell("lint, from the files on", lint_s, "s", Some(LINT_S_MAX));
    Ok(held)
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let begun = Instant::now();
    let made = work()?;
    Ok((made, begun.elapsed().as_secs_f64()))
}

/// Writes entries of as many texts, triggers and scopes as the built-in ones have, under names of
/// their own; gives their bytes.
fn write_entries(dir: &Path) -> Result<usize> {
    let seeds = catalog::built_in();
    let mut bytes = 0;
    for (number, seed) in seeds.iter().cycle().take(ENTRIES).enumerate() {
        let mut entry = seed.clone();
        entry.id = format!("{}-{number}", seed.id);
        entry.title = format!("{}, number {number}", seed.title);
        entry.interactions.depends_on.clear();
        if number % REFUTED_EVERY == 0 {
            entry.status = karve_core::knowledge::EntryStatus::Refuted;
        } else if number % REFUTED_EVERY == 1
            && let Some(before) = seeds.get((number - 1) % seeds.len())
        {
            let on = format!("{}-{}", before.id, number - 1);
            entry.interactions.depends_on.push(on);
        }
        let text = markdown::render_entry(&entry)
            .map_err(|why| CommandError::environment("cannot write an entry").cause(why))?;
        let path = dir.join(format!("{}.md", entry.id));
        fs::write(&path, &text).context(|| format!("cannot write {}", path.display()))?;
        bytes += text.len();
    }
    Ok(bytes)
}

/// The counters of a real kernel.
fn profile() -> Result<CounterValues> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/profiles/ncu_details.csv");
    let text = fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
    let unreadable = |why| CommandError::environment("the sample cannot be read").cause(why);
    let parsed = profilers::parse(ProfilerTool::Ncu, &text).map_err(unreadable)?;
    let kernel = parsed.kernels.first().map(with_derived);
    Ok(kernel.unwrap_or_default())
}

/// Times searches by trigger, by scope and by words; says whether all hold the bound.
fn search_all(loaded: &LoadedLibrary) -> Result<bool> {
    let values = profile()?;
    let at = of_words("strided copy", "cuda", "cuda", "NVIDIA H200");
    let text = "coalesce strided global memory accesses of neighboring threads";
    let whole = LibraryQuery { situation: Some(&at), values: Some(&values), text, refuted: false };
    let mut held = true;
    for (what, query) in [
        ("match by trigger", LibraryQuery { situation: None, text: "", ..whole.clone() }),
        ("match by trigger and scope", LibraryQuery { text: "", ..whole.clone() }),
        ("match by words", LibraryQuery { situation: None, values: None, ..whole.clone() }),
        ("match by trigger, scope and words", whole.clone()),
    ] {
        let mut hits = 0;
        let took = time(SEARCHES, || {
            hits = std::hint::black_box(loaded.library.search(&query)).len();
        });
        tell(&format!("{what}, by the clock"), took.clock_ms, "ms", None);
        let what = format!("{what}, {hits} hits");
        held &= tell(&what, took.own_ms(), "ms", Some(MATCH_MS_MAX));
    }
    Ok(held)
}
