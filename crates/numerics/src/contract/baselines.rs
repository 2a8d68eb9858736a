//! Named baselines: other kernels for the same contract, which ours is measured against.

use serde::{Deserialize, Serialize};

/// A kernel of the project that is not optimized, but measured next to the one that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedBaseline {
    /// Its name.
    pub name: String,
    /// What is called.
    pub kernel: BaselineKernel,
}

/// What is called as a baseline. It takes and gives the same as the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BaselineKernel {
    /// A function of a shared object that the build of the unchanged project makes.
    Library {
        /// Its path, relative to the directory of `karve.toml`.
        path: String,
        /// The name of the function.
        entry: String,
    },
    /// A function or a model of a Python module.
    Python {
        /// The file, relative to the directory of `karve.toml`.
        path: String,
        /// The name of the function or the model.
        entry: String,
        /// How `torch.compile` compiles it, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compile: Option<CompileMode>,
    },
}

/// How `torch.compile` compiles a function or a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompileMode {
    /// As by default.
    Default,
    /// With a search for the best kernels. Calls are launched as those of any other kernel.
    MaxAutotune,
}

impl CompileMode {
    /// The mode as PyTorch calls it.
    pub fn in_torch(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::MaxAutotune => "max-autotune-no-cudagraphs",
        }
    }
}

impl BaselineKernel {
    /// Its file, relative to the directory of `karve.toml`.
    pub fn path(&self) -> &str {
        let (Self::Library { path, .. } | Self::Python { path, .. }) = self;
        path
    }

    /// One line.
    pub fn describe(&self) -> String {
        match self {
            Self::Library { path, entry } | Self::Python { path, entry, compile: None } => {
                format!("{entry} of {path}")
            }
            Self::Python { path, entry, compile: Some(CompileMode::Default) } => {
                format!("torch.compile of {entry} of {path}")
            }
            Self::Python { path, entry, compile: Some(CompileMode::MaxAutotune) } => {
                format!("torch.compile with max-autotune of {entry} of {path}")
            }
        }
    }
}
