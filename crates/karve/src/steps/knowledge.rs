//! What a campaign reads from the knowledge library.

use super::context::Context;
use crate::library::recall::{known_in, name_entries};
use crate::library::situation::situation_of;
use crate::library::{Layer, LibraryLayers, PROJECT_DIR};
use karve_core::campaign::strategy;
use karve_core::knowledge::{KnownEntry, LibraryQuery};
use karve_core::profile::classify::with_derived;
use karve_core::profile::{Diagnosis, KernelProfile};
use karve_harness::git::Oid;
use karve_harness::project_file;
use karve_os::error::Result;

/// The layers as the campaign sees them.
pub(super) fn library_layers(context: &Context) -> LibraryLayers {
    let mut layers = LibraryLayers::of_user();
    let project = context.repos.upstream.root().join(&context.charter.workdir);
    layers.put(Layer::Project, project.join(PROJECT_DIR));
    let campaigns = context.dir.path().parent().unwrap_or(context.dir.path());
    layers.put(Layer::Staged, campaigns.join(PROJECT_DIR));
    layers
}

/// The entries that apply to the target as it is at a commit.
pub(super) fn recall(context: &Context, commit: &str) -> Result<Vec<KnownEntry>> {
    let library = library_layers(context).load()?;
    let globs = project_file::glob_set(&context.charter.editable)?;
    let files = context.repos.work.read_matching(&Oid::named(commit)?, &globs)?;
    let texts = files.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes));
    let at = texts.fold(situation_of(&context.charter), |at, text| at.with_source(&text));
    let mut known = known_in(&library, &at);
    // The campaign's own findings are in its rounds.
    let own = strategy::found_prefix(&context.charter.name);
    known.retain(|known| !known.id.starts_with(&own));
    Ok(known)
}

/// Names the library entry for each opportunity; none if the library cannot be read.
pub(super) fn name_library_entries(
    context: &Context,
    kernel: &KernelProfile,
    diagnosis: &mut Diagnosis,
) {
    let Ok(library) = library_layers(context).load() else {
        return;
    };
    let situation = situation_of(&context.charter).with_op_in(&kernel.name);
    let values = with_derived(kernel);
    let query = LibraryQuery {
        situation: Some(&situation),
        values: Some(&values),
        ..LibraryQuery::default()
    };
    name_entries(&library, &query, diagnosis);
    // The campaign's own findings are in its rounds.
    let own = strategy::found_prefix(&context.charter.name);
    for opportunity in &mut diagnosis.opportunities {
        opportunity.entry.take_if(|id| id.starts_with(&own));
    }
}
