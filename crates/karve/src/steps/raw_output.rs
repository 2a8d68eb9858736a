//! The output of a benchmark, kept as an artifact: of the first block and of the baseline, and
//! wherever it could not be used.

use super::context::Context;
use karve_core::campaign::Event;
use karve_harness::commands::{take_raw, take_usable};
use karve_harness::runner::WORKER_OUTPUT;
use karve_harness::store;
use karve_os::error::{CommandError, Result};
use karve_os::files;

/// Drops the raw output of an earlier step, so that it is not blamed on this one.
pub(super) fn discard(context: &Context) {
    let tmp = context.dir.join("tmp");
    let _ = (take_raw(&tmp), take_usable(&tmp));
}

/// Stores the benchmark's output: what could not be used, or what was kept.
pub(super) fn store_with(context: &Context, mut event: Event) -> Result<Event> {
    let raw = match &mut event {
        Event::BlockMeasured { raw, .. } | Event::BlockFailed { raw, .. } => raw,
        Event::BaselineMeasured(baseline) => &mut baseline.raw,
        _ => return Ok(event),
    };
    let tmp = context.dir.join("tmp");
    let (failed, usable) = (take_raw(&tmp), take_usable(&tmp));
    if let Some(bytes) = failed.or(usable) {
        *raw = Some(store::put_artifact(&context.dir, &bytes)?);
    }
    Ok(event)
}

/// Keeps what the process of a kernel said in a file for the user. No event names it and no agent
/// gets it: it may tell about hidden cases. A full disk is reported elsewhere.
pub(super) fn keep_for_user(context: &Context, round: u32) {
    if let Some(bytes) = take_raw(&context.dir.join("tmp")) {
        let path = context.dir.join(WORKER_OUTPUT).join(format!("round-{round}.txt"));
        let _ = files::write_derived(&path, &bytes);
    }
}

/// Stores the output of the incumbent's benchmark, and says where.
pub(super) fn name_in_error(context: &Context, error: CommandError) -> CommandError {
    let stored = take_raw(&context.dir.join("tmp"))
        .and_then(|bytes| store::put_artifact(&context.dir, &bytes).ok());
    match stored {
        Some(hash) => {
            let path = context.dir.join("artifacts").join(hash);
            error.cause(format!("its output is in {}", path.display()))
        }
        None => error,
    }
}
