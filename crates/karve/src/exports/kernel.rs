//! The source of a Python kernel: which file it is, how it is called, and what it imports.

use super::ExportSource;
use karve_numerics::contract::{Kernel, PythonStyle};
use karve_os::error::{CommandError, Result};
use std::collections::BTreeSet;

/// Most modules of a kernel.
const MODULES_MAX: usize = 200;

/// How a Python kernel is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelForm {
    /// `ModelNew`, as in KernelBench.
    Models,
    /// `kernel_fn` with all inputs, which returns the outputs.
    Returning,
    /// `kernel_fn` with all inputs and outputs.
    Writing,
    /// `custom_kernel` with one tree of inputs, as in GPU MODE.
    Popcorn,
}

/// A Python kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelSource {
    /// Its file, relative to `karve.toml`.
    pub(super) path: String,
    /// Its text.
    pub(super) text: String,
    /// How it is called.
    pub(super) form: KernelForm,
    /// The modules of the project that it imports, directly or not.
    pub(super) modules: Vec<String>,
}

/// The Python kernel of a version.
pub(super) fn kernel_of(source: &ExportSource<'_>, format: &str) -> Result<KernelSource> {
    let (path, form) = entry_of(source, format)?;
    let Some(text) = source.files.get(&path).cloned() else {
        let message = format!("there is no {path} in version {}", source.figures.round);
        return Err(CommandError::usage(message)
            .hint("\"karve checkout VERSION DIR\" shows the files of a version"));
    };
    let modules = modules_of(source, &path);
    Ok(KernelSource { path, text, form, modules })
}

/// The file of the kernel and how it is called.
fn entry_of(source: &ExportSource<'_>, format: &str) -> Result<(String, KernelForm)> {
    let refuse = |what: &str, hint: &str| {
        let message = format!("{format} takes a kernel in Python, and {what}");
        Err(CommandError::usage(message).hint(hint.to_owned()))
    };
    let contract = source.charter.contract.as_deref();
    if contract.is_some_and(|contract| contract.setup.is_some()) {
        return refuse(
            "this one has a setup call besides",
            "remove contract.setup from karve.toml, or do its work in the kernel",
        );
    }
    match contract.map(|contract| (&contract.kernel, contract.modules.passes_outputs)) {
        Some((Kernel::Python { path, style: PythonStyle::Models }, _)) => {
            Ok((path.clone(), KernelForm::Models))
        }
        Some((Kernel::Python { path, style: PythonStyle::Functions }, passes)) => {
            Ok((path.clone(), if passes { KernelForm::Writing } else { KernelForm::Returning }))
        }
        Some((Kernel::Library { path, .. }, _)) => refuse(
            &format!("this one is a function of {path}"),
            "\"karve export autoresearch\" and \"karve export openevolve\" take any kernel",
        ),
        None => {
            let task = source.task();
            let form = match task["form"].as_str() {
                Some("models") => Some(KernelForm::Models),
                Some("functions") => Some(KernelForm::Returning),
                Some("gpumode") => Some(KernelForm::Popcorn),
                _ => None,
            };
            match (task["kernel"].as_str(), form) {
                (Some(path), Some(form)) => Ok((path.to_owned(), form)),
                _ => refuse(
                    "karve.toml does not say which function it is",
                    "write a [contract] with `python`, see \"karve contract\"",
                ),
            }
        }
    }
}

/// The files of the project that a module imports, directly or not, sorted.
fn modules_of(source: &ExportSource<'_>, path: &str) -> Vec<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop().filter(|_| found.len() < MODULES_MAX) {
        let text = source.files.get(&path).map(String::as_str).unwrap_or_default();
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        for name in imported(text) {
            for file in files_of(source, dir, &name) {
                if found.insert(file.clone()) {
                    open.push(file);
                }
            }
        }
    }
    found.remove(path);
    found.into_iter().collect()
}

/// The files of a module, beside its user or at the top of the project.
fn files_of(source: &ExportSource<'_>, dir: &str, name: &str) -> Vec<String> {
    let beside = if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
    for base in [beside, name.to_owned()] {
        let (module, package) = (format!("{base}.py"), format!("{base}/"));
        let is_part = |path: &&String| {
            **path == module || path.starts_with(&package) && path.ends_with(".py")
        };
        let files: Vec<String> = source.files.keys().filter(is_part).cloned().collect();
        if !files.is_empty() {
            return files;
        }
    }
    Vec::new()
}

/// The first parts of all names that a module imports.
fn imported(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.lines().map(str::trim) {
        let listed = match (line.strip_prefix("import "), line.strip_prefix("from ")) {
            (Some(rest), _) => rest.split(',').map(str::trim).collect(),
            // `from . import x` imports x.
            (None, Some(rest)) => match rest.trim_start_matches('.').trim_start() {
                after if rest.starts_with('.') && after.starts_with("import ") => {
                    after["import ".len()..].split(',').map(str::trim).collect()
                }
                module => vec![module],
            },
            (None, None) => Vec::new(),
        };
        for name in listed {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let name: String = name.chars().take_while(|c| is_part(*c)).collect();
            if !name.is_empty() {
                names.push(name);
            }
        }
    }
    names
}

impl KernelSource {
    /// Refuses a kernel that does not fit into one file, apart from files that a task has anyway.
    pub(super) fn in_one_file(&self, format: &str, is_given: &dyn Fn(&str) -> bool) -> Result<()> {
        match self.modules.iter().find(|module| !is_given(module)) {
            None => Ok(()),
            Some(module) => {
                let message =
                    format!("{} imports {module}, and {format} takes one file", self.path);
                Err(CommandError::usage(message)
                    .hint(format!("move what it needs into {}, in a round of its own", self.path))
                    .hint("\"karve export flashinfer\" takes several files"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_by_their_first_part() {
        let text = "import os, helper as h\nfrom .tiles.wide import x\n  from a import (\n  b)\n\
                    important = 1\nfrom . import y, z\n";
        assert_eq!(imported(text), ["os", "helper", "tiles", "a", "y", "z"]);
    }
}
