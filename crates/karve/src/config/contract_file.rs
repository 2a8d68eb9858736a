//! The tables `[contract]` and `[baselines.NAME]` as written.

use super::values::Scalar;
use karve_numerics::accuracy::AccuracyRuleSet;
use karve_numerics::contract::{
    CacheState, CheckedShapes, CompileMode, LaunchMode, Precision, PythonStyle,
};
use karve_numerics::draw::InputPattern;
use karve_numerics::tensor::Dtype;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// A kernel that karve calls itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContractTable {
    /// The shared object with the kernel, made by the build.
    #[schemars(length(min = 1))]
    pub(super) library: Option<String>,
    /// The function in the shared object.
    #[schemars(length(min = 1))]
    pub(super) entry: Option<String>,
    /// The Python file with `kernel_fn`, instead of a shared object.
    #[schemars(length(min = 1))]
    pub(super) python: Option<String>,
    /// Which names the Python file defines; `functions` by default.
    #[schemars(with = "Option<StyleName>")]
    pub(super) style: Option<PythonStyle>,
    /// What runs Python files: a name on the `PATH`, or a full path; `python3` by default.
    #[schemars(length(min = 1))]
    pub(super) interpreter: Option<String>,
    /// Where tensors are; `cpu` by default.
    pub(super) device: Option<DeviceName>,
    /// What the cache of a GPU holds when a call begins; `cold` by default.
    #[schemars(with = "Option<CacheName>")]
    pub(super) cache: Option<CacheState>,
    /// How calls on a GPU are launched; `stream` by default.
    #[schemars(with = "Option<LaunchName>")]
    pub(super) launch: Option<LaunchMode>,
    /// How a kernel in Python gives its outputs; `returned` by default.
    pub(super) outputs: Option<OutputsName>,
    /// The arguments of the call, in order.
    #[serde(default)]
    #[schemars(length(min = 1, max = 24))]
    pub(super) args: Vec<ArgTable>,
    /// Where the arguments come from, instead of `args`.
    pub(super) inputs: Option<InputsName>,
    /// The reference that defines the correct result.
    pub(super) reference: ReferenceTable,
    /// A function that prepares for calls, and is not timed.
    pub(super) setup: Option<SetupTable>,
    /// How close a result must be; `default` by default.
    pub(super) accuracy: Option<AccuracyName>,
    /// How far an element may be from the reference, instead of `accuracy`.
    pub(super) tolerance: Option<ToleranceTable>,
    /// How many terms are summed for one element of the result, such as `K`; 1 by default.
    pub(super) reduction: Option<Scalar>,
    /// Minimum floating-point operations of a call, such as `2*M*N*K`.
    pub(super) flops: Option<Scalar>,
    /// Minimum bytes that a call reads or writes; by default those of its outputs.
    pub(super) bytes: Option<Scalar>,
    /// Whether equal inputs must give equal bits; true by default.
    pub(super) deterministic: Option<bool>,
    /// Threads that the kernel may use; 1 by default.
    #[schemars(range(min = 1, max = 4_096))]
    pub(super) threads: Option<u32>,
    /// Further draws of all floating-point inputs that are also checked; none by default.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub(super) hostile: Vec<DrawValue>,
    /// Patterns that some calls have in their inputs, timed ones too; all by default.
    #[schemars(with = "Option<Vec<PatternName>>", length(max = 11))]
    pub(super) mixture: Option<Vec<InputPattern>>,
    /// On which shapes a kernel must be right and not much slower: `any` also checks shapes near
    /// the listed ones, where the incumbent is right; `any` by default.
    #[schemars(with = "Option<ShapesName>")]
    pub(super) shapes: Option<CheckedShapes>,
}

impl ContractTable {
    /// How close a result must be.
    pub(super) fn accuracy_rules(&self) -> AccuracyRuleSet {
        if let Some(ToleranceTable { absolute, relative }) = self.tolerance {
            return AccuracyRuleSet::Custom {
                absolute,
                relative,
                scaled: 0.0,
                snr_db_min: None,
                error_ratio_max: None,
            };
        }
        match self.accuracy {
            None | Some(AccuracyName::Default) => AccuracyRuleSet::Default,
            Some(AccuracyName::Primus) => AccuracyRuleSet::Primus,
            Some(AccuracyName::Torch) => AccuracyRuleSet::Torch,
            Some(AccuracyName::Stable) => AccuracyRuleSet::Stable,
            Some(AccuracyName::Compensated) => AccuracyRuleSet::Compensated,
            Some(AccuracyName::Bitwise) => AccuracyRuleSet::Bitwise,
        }
    }
}

/// How far an element may be from the reference: `absolute + relative * |reference|`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToleranceTable {
    /// In units of the output.
    #[schemars(range(min = 0))]
    pub(super) absolute: f64,
    /// Relative to the element of the reference.
    #[schemars(range(min = 0))]
    pub(super) relative: f64,
}

/// A function that prepares for calls, and is not timed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetupTable {
    /// Its name, where the kernel is.
    #[schemars(length(min = 1))]
    pub(super) entry: String,
    /// The inputs that it gets, besides all scalars. The kernel gets its result instead of them.
    #[schemars(length(min = 1, max = 24))]
    pub(super) inputs: Vec<String>,
}

/// The shapes on which a kernel must be right.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is used")]
enum ShapesName {
    /// Also on shapes near the listed ones.
    Any,
    /// Only on those that are listed.
    Listed,
}

/// What the cache of a GPU holds when a call begins.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is used")]
enum CacheName {
    /// Nothing of its inputs.
    Cold,
    /// Its inputs: a batch has only as many calls as fit into half of the cache.
    Warm,
}

/// How calls on a GPU are launched.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is used")]
enum LaunchName {
    /// One after the other, by the kernel's own code on the host.
    Stream,
    /// All calls of a batch are captured into a graph, which is then launched: for kernels that
    /// are shorter than their launch.
    Graph,
}

/// A pattern in otherwise nominal inputs.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is used")]
enum PatternName {
    /// A few hostile elements, at random places.
    Outliers,
    /// A nominal start and a hostile rest.
    Prefix,
    /// Nominal numbers, scaled toward the magnitude of hostile ones.
    Scaled,
    /// Hostile elements in one lane.
    Lane,
    /// A few different values in every row.
    Ties,
    /// A few clusters of nearly equal values in every row.
    Clusters,
    /// Large terms of both signs in every row, with a small sum.
    Cancellation,
    /// A few different rows.
    Repeated,
    /// Sorted rows.
    Sorted,
    /// Masks and zeros in runs of different lengths.
    Masks,
    /// Exact zeros: rows of them, at both ends of rows, and among other numbers.
    Zeros,
}

/// Which names a Python file defines.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is used")]
enum StyleName {
    /// `kernel_fn`, and in the reference `reference_fn`.
    Functions,
    /// `ModelNew`, and in the reference `Model` and `get_init_inputs`.
    Models,
}

/// Where the arguments come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum InputsName {
    /// From `get_inputs` of the reference, called once: types and extents, but no values.
    FromModule,
}

/// How a kernel in Python gives its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OutputsName {
    /// It returns them.
    Returned,
    /// It gets them as arguments, and writes to them.
    Arguments,
}

/// Where tensors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DeviceName {
    /// In host memory, as NumPy arrays or PyTorch tensors.
    Cpu,
    /// On the GPU, as PyTorch tensors; transfers are not timed.
    Cuda,
    /// On an AMD GPU. karve cannot call such kernels yet, and says so.
    Hip,
}

/// One argument.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ArgTable {
    /// Its name.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// What it is.
    pub(super) kind: ArgKindName,
    /// The type of its elements, such as `f32`.
    #[schemars(with = "DtypeName")]
    pub(super) dtype: Dtype,
    /// The extents of a tensor, as expressions over the parameters of the case.
    pub(super) shape: Option<Vec<Scalar>>,
    /// What a tensor is filled with; by default normally distributed, or integers from 0 to 9.
    pub(super) draw: Option<DrawValue>,
    /// The value of a scalar, as an expression over the parameters of the case.
    pub(super) value: Option<Scalar>,
    /// Whether a kernel may rely on that value. Others of a floating-point scalar are tried too,
    /// where the incumbent is right.
    pub(super) fixed: Option<bool>,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ArgKindName {
    /// A number.
    Scalar,
    /// A tensor that is only read.
    Input,
    /// A tensor that is completely written.
    Output,
    /// A tensor that is read and written.
    Inout,
}

/// The type of elements.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is used")]
enum DtypeName {
    F64,
    F32,
    F16,
    Bf16,
    F8e4m3,
    F8e5m2,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
}

/// The reference that defines the correct result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferenceTable {
    /// The shared object with the reference, which the build makes from read-only files.
    #[schemars(length(min = 1))]
    pub(super) library: Option<String>,
    /// The function in the shared object.
    #[schemars(length(min = 1))]
    pub(super) entry: Option<String>,
    /// A command that reads and writes the files of `{dir}`, one for each tensor.
    #[schemars(length(min = 1))]
    pub(super) command: Option<String>,
    /// The Python file with `reference_fn`.
    #[schemars(length(min = 1))]
    pub(super) python: Option<String>,
    /// The precision of its floating-point inputs and outputs; `wide` by default.
    #[schemars(with = "Option<PrecisionName>")]
    pub(super) precision: Option<Precision>,
}

/// The precision a reference computes in.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is used")]
enum PrecisionName {
    /// Every floating-point tensor and scalar is a float64.
    Wide,
    /// As the arguments are declared.
    Native,
}

/// How close a result must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AccuracyName {
    /// By the type, and relative to the incumbent's own error.
    Default,
    /// The gates of the kernel-optimize workflow: tolerances, and signal to noise for 8 bits.
    Primus,
    /// The tolerances of PyTorch's own tests.
    Torch,
    /// As `default`, and no careless overflow, underflow or loss of digits on any magnitude.
    Stable,
    /// As `default`, and an error that does not grow with the number of terms.
    Compensated,
    /// The same bits as the reference.
    Bitwise,
}

/// A draw: its name, or a table with its kind and parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DrawValue(pub(super) serde_json::Value);

impl JsonSchema for DrawValue {
    fn schema_name() -> Cow<'static, str> {
        "Draw".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let any = serde_json::json!({
            "type": ["string", "number", "boolean", "object"],
            "additionalProperties": { "type": ["string", "number", "boolean", "object"] }
        });
        json_schema!({
            "anyOf": [
                { "type": "string", "minLength": 1 },
                {
                    "type": "object",
                    "properties": { "kind": { "type": "string", "minLength": 1 } },
                    "additionalProperties": any
                }
            ]
        })
    }
}

impl<'de> Deserialize<'de> for DrawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_json::Value::deserialize(deserializer).map(Self)
    }
}

/// Baselines of a project at most; the schema has it, so that no more are looked at.
pub(super) const BASELINES_MAX: usize = 16;

/// A kernel that ours is measured against.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BaselineTable {
    /// The Python file; by default that of the reference.
    #[schemars(length(min = 1))]
    pub(super) python: Option<String>,
    /// The function or the model in the Python file; by default what a kernel's file defines, and
    /// in the reference's file what that defines.
    #[schemars(length(min = 1))]
    pub(super) function: Option<String>,
    /// Compile the function or the model with `torch.compile`.
    #[schemars(with = "Option<CompileName>")]
    pub(super) compile: Option<CompileMode>,
    /// The shared object, made by the build.
    #[schemars(length(min = 1))]
    pub(super) library: Option<String>,
    /// The function in the shared object.
    #[schemars(length(min = 1))]
    pub(super) entry: Option<String>,
}

/// How `torch.compile` compiles.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used")]
enum CompileName {
    /// As by default.
    Default,
    /// With a search for the best kernels, and without CUDA graphs of its own.
    MaxAutotune,
}
