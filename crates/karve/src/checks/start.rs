//! Whether a campaign can start with a charter: a file is editable, and the branch is free.

use crate::project::charter_in;
use karve_core::charter::{Branch, Charter, GpuPlace, WorkMode};
use karve_core::policy::Preset;
use karve_harness::git::{Oid, Repo};
use karve_harness::{project_file, runner};
use karve_numerics::contract::{BaselineKernel, NamedBaseline};
use karve_os::device::gpu;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use std::path::Path;

/// Refuses a charter that no campaign can start with, before anything is written: a charter in the
/// log can no longer be fixed.
pub fn can_start(upstream: &Repo, charter: &Charter) -> Result<()> {
    check_editable(upstream, upstream.head()?.oid(), charter)?;
    check_baselines(upstream, upstream.head()?.oid(), charter)?;
    check_gpu(charter)?;
    match charter.mode {
        WorkMode::Repo => check_branch(upstream, charter),
        WorkMode::Workspace { .. } => Ok(()),
    }
}

/// tilegym measures on a GPU: refuses a target whose GPU does not answer, or is another one.
fn check_gpu(charter: &Charter) -> Result<()> {
    let is_here = charter.device.gpu == GpuPlace::Here && charter.remote.is_none();
    let is_due = charter.policy.preset == Preset::Tilegym && is_here;
    if !is_due || !gpu::is_gpu(&charter.target) {
        return Ok(());
    }
    let mut monitor = gpu::GpuMonitor::new(charter);
    let found = monitor.ask(&StopFlag::new()).map(|said| said.name.clone());
    let wanted = &charter.target.device;
    let fault = match found {
        None => format!("no GPU answers here, and the target is {wanted}"),
        Some(name) if !is_named(&name, wanted) => format!("the GPU here is {name}, not {wanted}"),
        Some(_) => return Ok(()),
    };
    let hint = "set target.device in karve.toml to the GPU that is here; if only your commands \
                reach it, set device.gpu = \"elsewhere\"";
    Err(CommandError::environment(fault).hint(hint))
}

/// Whether a GPU's name can be the device of a target; one that is named by its architecture, or
/// only as a GPU, can be any.
fn is_named(name: &str, wanted: &str) -> bool {
    let plain = |text: &str| -> String {
        text.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect()
    };
    let (name, wanted) = (plain(name), plain(wanted));
    let is_model = wanted.chars().any(|c| c.is_ascii_digit())
        && !["sm", "gfx", "gpu", "cuda"].iter().any(|prefix| wanted.starts_with(prefix));
    !is_model || name.contains(&wanted)
}

/// Refuses a checked-out branch, which would change under the user.
pub(crate) fn check_branch(repo: &Repo, charter: &Charter) -> Result<()> {
    let Branch::Named { name } = &charter.branch else {
        return Ok(());
    };
    let Some(path) = repo.checked_out(name)? else {
        return Ok(());
    };
    Err(CommandError::usage(format!("the branch {name} is checked out in {}", path.display()))
        .hint("switch that checkout to another branch, or set git.branch in karve.toml"))
}

/// At least one file must be editable, or no candidate can exist.
pub fn check_editable(repo: &Repo, base: &Oid, charter: &Charter) -> Result<()> {
    let globs = project_file::glob_set(&charter.editable)?;
    if repo.list_files(base)?.iter().any(|file| globs.is_match(file)) {
        return Ok(());
    }
    Err(CommandError::usage(format!(
        "no committed file matches sources.editable ({})",
        charter.editable.join(", ")
    ))
    .hint("commit the kernel, or fix sources.editable in karve.toml"))
}

/// Baselines are taken from the base, so their files and their tables must be there: a log is
/// compared with them later.
pub fn check_baselines(repo: &Repo, base: &Oid, charter: &Charter) -> Result<()> {
    if charter.baselines.is_empty() {
        return Ok(());
    }
    let committed = charter_in(repo, base, &charter.workdir)?;
    if committed.is_none_or(|committed| committed.baselines != charter.baselines) {
        let message = "[baselines] of karve.toml is not committed as it is";
        return Err(
            CommandError::usage(message).hint("commit karve.toml; a campaign starts from HEAD")
        );
    }
    let files = repo.list_files(base)?;
    for NamedBaseline { name, kernel } in &charter.baselines {
        let path = Path::new(&charter.workdir).join(kernel.path());
        let is_built =
            matches!(kernel, BaselineKernel::Library { .. }) && charter.commands.build.is_some();
        if !is_built && !files.iter().any(|file| Path::new(file) == path) {
            return Err(runner::no_baseline(name, kernel));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_the_device_of_a_target_by_its_model() {
        assert!(is_named("NVIDIA H200", "H200") && is_named("NVIDIA GeForce RTX 5090", "rtx-5090"));
        assert!(is_named("NVIDIA H200", "sm_90") && is_named("AMD Instinct MI300X", "gfx942"));
        assert!(!is_named("NVIDIA H200", "B200"));
    }
}
