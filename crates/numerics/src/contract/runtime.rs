//! What runs the kernels of a contract, and how calls on a device are timed.

use serde::{Deserialize, Serialize};

/// What runs the Python modules of a contract, and the device of all tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonRuntime {
    /// The interpreter; `python3` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// The device that tensors are on, as modules call it; the host by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Whether the reference is asked for the arguments, once, before a campaign starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// Whether a kernel gets its outputs as arguments, instead of returning them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes_outputs: bool,
}

impl PythonRuntime {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A call that prepares for all following ones, and is not timed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupCall {
    /// The function, where the kernel is.
    pub entry: String,
    /// The inputs that it gets, besides all scalars. The kernel gets its result instead of them.
    pub inputs: Vec<String>,
}

/// How calls on a device are timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTiming {
    /// What its cache holds when a call begins.
    pub cache: CacheState,
    /// How calls are launched.
    pub launch: LaunchMode,
}

impl DeviceTiming {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What the cache of a device holds when a call begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Nothing of its inputs.
    #[default]
    Cold,
    /// Its inputs, as far as those of a batch fit.
    Warm,
}

/// How calls on a device are launched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchMode {
    /// One after the other, by the kernel's own code on the host.
    #[default]
    Stream,
    /// All calls of a batch are captured first, and then launched at once.
    Graph,
}
