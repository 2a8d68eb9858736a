//! The JSON of definitions and workloads.

use super::super::TaskFiles;
use super::super::ordered::InOrder;
use karve_numerics::tensor::Dtype;
use karve_os::text::one_line;
use serde::Deserialize;
use serde_json::Value as Json;

/// Most workloads that are read.
const WORKLOADS_MAX: usize = 10_000;

/// What an operation computes.
#[derive(Debug, Deserialize)]
pub(super) struct TraceDefinition {
    /// Its name.
    pub(super) name: String,
    /// The kind of operation.
    #[serde(default)]
    pub(super) op_type: Option<String>,
    /// The axes of its tensors.
    pub(super) axes: InOrder<AxisSpec>,
    /// The inputs, in order.
    pub(super) inputs: InOrder<TensorSpec>,
    /// The outputs, in order.
    pub(super) outputs: InOrder<TensorSpec>,
    /// Python with `run`.
    #[serde(default)]
    pub(super) reference: String,
    /// Conditions on the axes.
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) constraints: Vec<String>,
    /// The function of the reference that makes inputs.
    #[serde(default)]
    pub(super) custom_inputs_entrypoint: Option<String>,
}

/// An axis.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AxisSpec {
    /// The same in all workloads.
    Const {
        /// Its extent.
        value: i64,
    },
    /// Given by a workload.
    Var,
    /// Computed from others.
    Expr {
        /// The expression.
        expression: String,
    },
}

/// An input or output.
#[derive(Debug, Deserialize)]
pub(super) struct TensorSpec {
    /// The axes; none at all for a number.
    pub(super) shape: Option<Vec<String>>,
    /// The type of its elements.
    pub(super) dtype: String,
}

/// One set of inputs.
#[derive(Debug, Deserialize)]
pub(super) struct TraceWorkload {
    /// The extents of variable axes.
    pub(super) axes: InOrder<i64>,
    /// What each input is.
    pub(super) inputs: InOrder<TraceInput>,
    /// How close the results must be.
    #[serde(default)]
    pub(super) tolerance: Option<WorkloadTolerance>,
    /// All of it as it was written, for an export.
    #[serde(skip)]
    pub(super) written: Json,
}

/// What an input is.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum TraceInput {
    /// Random numbers.
    Random,
    /// A number.
    Scalar {
        /// Its value.
        value: Json,
    },
    /// A tensor in a file.
    Safetensors {
        /// The file.
        path: String,
        /// The tensor in it.
        tensor_key: String,
    },
    /// Made by a function of the reference.
    Custom,
}

/// How close the results of a workload must be.
#[derive(Debug, Deserialize)]
pub(super) struct WorkloadTolerance {
    pub(super) max_atol: Option<f64>,
    pub(super) max_rtol: Option<f64>,
    pub(super) required_matched_ratio: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct TraceLine {
    definition: String,
    workload: TraceWorkload,
}

/// A list that may be null.
fn or_empty<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(from)?.unwrap_or_default())
}

/// Reads a definition.
pub(super) fn definition(text: &str) -> Result<TraceDefinition, String> {
    serde_json::from_str(text).map_err(|error| format!("the definition: {}", shortened(&error)))
}

/// Reads workloads, one for each line.
pub(super) fn plain_workloads(text: &str) -> Result<Vec<TraceWorkload>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(n, line): (usize, &str)| {
        let wrong = |error| format!("workload.jsonl:{}: {}", n + 1, shortened(&error));
        let mut read: TraceWorkload = serde_json::from_str(line).map_err(wrong)?;
        read.written = serde_json::from_str(line).map_err(wrong)?;
        Ok(read)
    };
    lines.take(WORKLOADS_MAX).map(read).collect()
}

/// Reads the workloads of a definition from all files of a trace.
pub(super) fn wrapped_workloads(
    files: &TaskFiles,
    name: &str,
) -> Result<Vec<TraceWorkload>, String> {
    let mut workloads = Vec::new();
    let mark = format!("\"{name}\"");
    let all = files
        .ending(".jsonl")
        .filter(|(path, _)| path.starts_with("workloads/") || path.contains("/workloads/"));
    for (path, text) in all {
        for (n, line) in text.lines().enumerate().filter(|(_, line)| line.contains(&mark)) {
            let wrong = |error| format!("{path}:{}: {}", n + 1, shortened(&error));
            let mut read: TraceLine = serde_json::from_str(line).map_err(wrong)?;
            let mut whole: Json = serde_json::from_str(line).map_err(wrong)?;
            read.workload.written = whole["workload"].take();
            if read.definition == name && workloads.len() < WORKLOADS_MAX {
                workloads.push(read.workload);
            }
        }
    }
    Ok(workloads)
}

fn shortened(error: &serde_json::Error) -> String {
    one_line(&error.to_string(), 200)
}

/// The type that karve has for a name.
pub(super) fn element_type(name: &str) -> Option<Dtype> {
    Some(match name {
        "float64" => Dtype::F64,
        "float32" => Dtype::F32,
        "float16" => Dtype::F16,
        "bfloat16" => Dtype::Bf16,
        "float8_e4m3fn" => Dtype::F8E4m3,
        "float8_e5m2" => Dtype::F8E5m2,
        "int64" => Dtype::I64,
        "int32" => Dtype::I32,
        "int16" => Dtype::I16,
        "int8" => Dtype::I8,
        "uint8" => Dtype::U8,
        "bool" => Dtype::Bool,
        _ => return None,
    })
}
