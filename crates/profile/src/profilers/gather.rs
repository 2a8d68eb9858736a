//! From launches to kernels: launches of one kernel are merged, the longest kernel comes first.

use karve_core::profile::{KERNELS_MAX, KernelProfile, ProfileSource, QUOTE_CHARS};
use std::collections::BTreeMap;

/// The most notes from a parser.
const NOTES_MAX: usize = 32;
/// The most characters of a note.
const NOTE_CHARS: usize = 300;

/// What a reader should know besides the values, without duplicates and bounded.
#[derive(Debug, Default)]
pub(super) struct ProfileNotes {
    notes: Vec<String>,
    more: usize,
}

impl ProfileNotes {
    /// Adds a note, unless it is there.
    pub(super) fn add(&mut self, note: impl Into<String>) {
        let note: String = note.into().chars().take(NOTE_CHARS).collect();
        if self.notes.contains(&note) {
            return;
        }
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        } else {
            self.more += 1;
        }
    }

    /// All of them.
    pub(super) fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.notes.push(format!("{} more notes are not shown", self.more));
        }
        self.notes
    }
}

/// A kernel under its full name, with its weight for sorting.
#[derive(Debug)]
pub(super) struct WeightedKernel {
    /// Its name, not shortened.
    pub(super) name: String,
    /// Its time in all launches, or another sort key.
    pub(super) weight: f64,
    /// Its counters.
    pub(super) profile: KernelProfile,
}

/// The heaviest kernels, each under a unique name.
pub(super) fn heaviest(
    mut kernels: Vec<WeightedKernel>,
    notes: &mut ProfileNotes,
) -> Vec<KernelProfile> {
    kernels.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.name.cmp(&b.name)));
    if kernels.len() > KERNELS_MAX {
        let left = kernels.len() - KERNELS_MAX;
        notes.add(format!("{left} shorter kernels are not shown"));
        kernels.truncate(KERNELS_MAX);
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let named = kernels.into_iter().map(|kernel| {
        let mut profile = kernel.profile;
        profile.name = kernel.name.chars().take(QUOTE_CHARS).collect();
        let again = seen.entry(profile.name.clone()).or_default();
        *again += 1;
        // Two long names may have the same prefix.
        if *again > 1 {
            profile.name = format!("{} #{again}", profile.name);
        }
        profile
    });
    named.collect()
}

/// One launch of a kernel.
#[derive(Debug)]
pub(super) struct KernelLaunch {
    /// The kernel's name, not shortened.
    pub(super) name: String,
    /// Its counters.
    pub(super) profile: KernelProfile,
}

/// Merges the launches of one kernel: all values are those of the launch with the median time
/// (the shorter one of two), and `launches` is their number.
pub(super) fn by_kernel(
    launches: Vec<KernelLaunch>,
    tool: &str,
    notes: &mut ProfileNotes,
) -> Vec<WeightedKernel> {
    let mut groups: BTreeMap<String, Vec<KernelProfile>> = BTreeMap::new();
    for launch in launches {
        groups.entry(launch.name).or_default().push(launch.profile);
    }
    let time = |profile: &KernelProfile| profile.value("duration_us").unwrap_or(0.0);
    let mut kernels = Vec::new();
    for (name, mut group) in groups {
        let n = group.len();
        let weight = group.iter().map(time).sum();
        // A launch without a time is ignored, unless there are no others.
        if group.iter().any(|profile| profile.value("duration_us").is_some()) {
            group.retain(|profile| profile.value("duration_us").is_some());
        }
        group.sort_by(|a, b| time(a).total_cmp(&time(b)));
        let mut profile = group.swap_remove((group.len() - 1) / 2);
        let quote = format!("{n} launches of {name}");
        profile.set("launches", exact(n), ProfileSource::at(tool, 0, &quote));
        if n > 1 {
            let short: String = name.chars().take(80).collect();
            notes.add(format!(
                "{short} was launched {n} times: the values are from the median launch"
            ));
        }
        kernels.push(WeightedKernel { name, weight, profile });
    }
    kernels
}

/// A count as a value.
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(super) fn exact(n: usize) -> f64 {
    n as f64
}
