//! What `karve init` offers besides the project's own commands: a contract for a function, and the
//! files of a task of KernelBench.

use super::write_new;
use crate::commands::contract::ContractArgs;
use crate::config;
use crate::detect::{self, ConfigProposal, ModelTask, ProjectFiles};
use crate::project::{CONFIG, ProjectArgs};
use crate::ui;
use karve_audit::{ParamType, SignatureError, signature};
use karve_os::error::Result;
use std::path::Path;

/// The function of the kernel's file that a contract can call, as `FILE:FUNCTION`.
pub(super) fn callable(found: &ProjectFiles, proposal: &ConfigProposal) -> Option<String> {
    let file = proposal.editable.first()?;
    let (_, text) = found.files.iter().find(|(path, _)| path == file)?;
    let Err(SignatureError::NotFound(names)) = signature(file, text, "") else {
        return None;
    };
    let is_callable = |name: &&String| {
        signature(file, text, name).is_ok_and(|of| {
            let is_known = |kind: &ParamType| *kind != ParamType::Unknown;
            let takes_numbers = of.params.iter().all(|param| is_known(&param.kind));
            let has_tensor =
                of.params.iter().any(|param| matches!(param.kind, ParamType::Tensor { .. }));
            takes_numbers && has_tensor
        })
    };
    let mut callable: Vec<&String> = names.iter().filter(is_callable).collect();
    let stem = detect::name_of(file).split('.').next().unwrap_or_default();
    callable.sort_by_key(|name| (name.as_str() != stem, !name.contains(&proposal.op)));
    callable.first().map(|name| format!("{file}:{name}"))
}

/// Whether karve finds out by itself how such a function is called.
pub(super) fn is_seen_by_karve(target: &str) -> bool {
    [".c:", ".cc:", ".cpp:", ".cxx:"].iter().any(|end| target.contains(end))
}

/// A sentence on the contract of a function.
pub(super) fn sentence(target: &str) -> String {
    let more = match target.contains(".rs:") {
        true => " --shape …",
        false => "",
    };
    format!(
        "\"karve contract {target}{more}\" would let karve choose the inputs, check the results \
         and time the function itself."
    )
}

/// Declares a contract for a function instead of commands.
pub(super) fn declare(target: String, print: bool, place: &ProjectArgs) -> Result<()> {
    ui::note(&format!("found: {target} can be called by karve itself, so it gets a contract."));
    ContractArgs::of_function(target, print).run(place)
}

/// Writes the files of a task.
pub(super) fn write_task(task: &ModelTask, print: bool, dir: &Path) -> Result<()> {
    for why in &task.why {
        ui::note(&format!("found: {why}"));
    }
    let text = detect::render_model_task(task);
    if print {
        ui::out(&text);
        return Ok(());
    }
    config::check(&text, dir, "write it by hand: see docs/contract.md")?;
    if let Some(added) = &task.added {
        write_new(&dir.join(&task.kernel), added)?;
        ui::outln(&format!("wrote {}", task.kernel));
    }
    write_new(&dir.join(CONFIG), &text)?;
    ui::outln(&format!("wrote {}", dir.join(CONFIG).display()));
    ui::outln("next: commit both, then \"karve doctor\", then \"karve run\"");
    Ok(())
}
