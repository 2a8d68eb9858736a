//! The tables `[baselines.NAME]`: other kernels for the contract, which ours is measured against.

use super::contract::{entry_of, inside};
use super::contract_file::BaselineTable;
use super::file::ConfigFile;
use super::source::ConfigSource;
use karve_harness::project_file::glob_set;
use karve_numerics::contract::{
    BaselineKernel, Contract, Kernel, NamedBaseline, PythonStyle, Reference,
};
use karve_os::error::{CommandError, Result};
use karve_os::text::shown;

/// The baselines of a file, in the order of the file.
pub(super) fn baselines_of(
    source: &ConfigSource<'_>,
    file: &ConfigFile,
    contract: Option<&Contract>,
) -> Result<Vec<NamedBaseline>> {
    let Some(contract) = contract else {
        return match file.baselines.is_empty() {
            true => Ok(Vec::new()),
            false => Err(source
                .error_at("baselines", "[baselines] needs a [contract]")
                .hint("karve calls baselines itself: describe the call in [contract]")),
        };
    };
    let editable = glob_set(&file.sources.editable)?;
    let mut baselines = Vec::new();
    for name in source.keys_in_order(&[super::source::PathSegment::Key("baselines")]) {
        let Some(table) = file.baselines.get(&name) else { continue };
        let place = BaselinePlace { source, table, key: format!("baselines.{name}") };
        place.check_name(&name)?;
        let kernel = place.kernel(contract)?;
        if editable.is_match(kernel.path()) {
            let message = format!("candidates could change {}", shown(kernel.path()));
            return Err(source
                .error_at(&place.key, message)
                .hint("leave the files of baselines out of sources.editable"));
        }
        baselines.push(NamedBaseline { name, kernel });
    }
    Ok(baselines)
}

/// One of the tables.
struct BaselinePlace<'a> {
    source: &'a ConfigSource<'a>,
    table: &'a BaselineTable,
    key: String,
}

impl BaselinePlace<'_> {
    fn error(&self, message: impl AsRef<str>) -> CommandError {
        self.source.error_at(&self.key, message)
    }

    fn check_name(&self, name: &str) -> Result<()> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match (1..=40).contains(&name.len()) && name.chars().all(plain) {
            true => Ok(()),
            false => Err(self
                .error(format!("`{}` is not a valid name of a baseline", shown(name)))
                .hint("use 1 to 40 letters, digits, -, _ and . in the name of [baselines.NAME]")),
        }
    }

    fn kernel(&self, contract: &Contract) -> Result<BaselineKernel> {
        let BaselineTable { python, function, compile, library, entry } = self.table;
        let key = &self.key;
        if let Some(path) = library {
            if python.is_some() || function.is_some() || compile.is_some() {
                return Err(self
                    .error(format!("[{key}] names a library and a Python file"))
                    .hint(format!("remove library, or python, function and compile, in [{key}]")));
            }
            return Ok(BaselineKernel::Library {
                path: inside(self.source, &format!("{key}.library"), path)?,
                entry: entry_of(self.source, key, entry.as_ref())?,
            });
        }
        if entry.is_some() {
            return Err(self
                .error("`entry` is a function of a library")
                .hint(format!("name the function of a Python file with function in [{key}]")));
        }
        if python.is_none() && function.is_none() && compile.is_none() {
            return Err(self
                .error(format!("[{key}] must name a kernel"))
                .hint(format!("write python, compile, or library with its entry in [{key}]")));
        }
        if compile.is_some() && !contract.is_on_device() {
            return Err(self
                .error("`compile` is for kernels on a GPU: torch.compile starts compilers")
                .hint(format!(
                    "remove compile from [{key}], or write device = \"cuda\" in [contract]"
                )));
        }
        let (reference, names) = names_of(contract);
        let path = match (python, reference) {
            (Some(path), _) => inside(self.source, &format!("{key}.python"), path)?,
            (None, Some(reference)) => reference.to_owned(),
            (None, None) => {
                return Err(self
                    .error("the reference is not a Python file that could be a baseline")
                    .hint(format!("name the file with python in [{key}]")));
            }
        };
        let is_reference = reference == Some(path.as_str());
        let usual = if is_reference { names.reference } else { names.kernel };
        Ok(BaselineKernel::Python {
            path,
            entry: function.clone().unwrap_or_else(|| usual.to_owned()),
            compile: *compile,
        })
    }
}

/// What the Python files of a contract define.
struct DefinedNames {
    kernel: &'static str,
    reference: &'static str,
}

/// The file of the reference, if that is in Python, and what files define.
fn names_of(contract: &Contract) -> (Option<&str>, DefinedNames) {
    let reference = match &contract.reference {
        Reference::Python { path, .. } => Some(path.as_str()),
        Reference::Library { .. } | Reference::Command { .. } => None,
    };
    let names = match contract.kernel {
        Kernel::Python { style: PythonStyle::Models, .. } => {
            DefinedNames { kernel: "ModelNew", reference: "Model" }
        }
        Kernel::Python { .. } | Kernel::Library { .. } => {
            DefinedNames { kernel: "kernel_fn", reference: "reference_fn" }
        }
    };
    (reference, names)
}
