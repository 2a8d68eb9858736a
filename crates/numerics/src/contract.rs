//! The duel contract: a kernel as a function with declared arguments, which karve calls itself.
//!
//! karve owns the inputs, the clock, the reference and the comparison; the project owns the
//! function. Shapes and scalars are expressions over the parameters of a case. This module lays
//! everything out in memory; the kernel runner decides what is called, and when.
//!
//! ```text
//! one slot of memory:   guard | tensor | guard | tensor | ... | guard
//!                       a guard is never written to by an honest kernel
//! ```

mod aliasing;
mod baselines;
mod extent;
mod fences;
mod mixture;
mod runtime;
mod scalars;
mod shapes;
mod wider;
mod work;

pub use aliasing::{ALIASING_STEPS, AliasingStep};
pub use baselines::{BaselineKernel, CompileMode, NamedBaseline};
pub use extent::{TouchedExtent, fit_shape};
pub use fences::{SlotRange, TensorEdge};
pub use mixture::{CallInputs, ChosenPattern};
pub use runtime::{CacheState, DeviceTiming, LaunchMode, PythonRuntime, SetupCall};
pub use scalars::ScalarChange;
pub use shapes::CheckedShapes;
pub use work::CallWork;

use crate::accuracy::{AccuracyRuleSet, ErrorStats};
use crate::case::Case;
use crate::draw::{Draw, InputPattern};
use crate::expr::parse_expr;
use crate::tensor::Dtype;
use serde::{Deserialize, Serialize};

/// A tensor starts at a multiple of this many bytes.
pub const ALIGNMENT: u64 = 64;
/// Guard bytes before and after each tensor; no kernel may write to them.
pub const GUARD_BYTES: u64 = 256;
/// Bytes of all inputs of one call at most, and of all outputs; and the same on a device.
const CALL_BYTES_MAX: u64 = 8 << 30;
const DEVICE_CALL_BYTES_MAX: u64 = 128 << 30;
/// Integers and pointers that an entry point may take.
pub const INTEGERS_MAX: usize = 16;
/// Floating-point scalars that it may take.
pub const FLOATS_MAX: usize = 8;

/// What karve calls, with which arguments, and which result is right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// What is called.
    pub kernel: Kernel,
    /// Its arguments, in call order.
    pub args: Vec<Arg>,
    /// The reference: what defines the right result.
    pub reference: Reference,
    /// How close the result must be.
    #[serde(default)]
    pub accuracy: AccuracyRuleSet,
    /// How many terms are summed for one element of the result, an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduction: Option<String>,
    /// Whether the same input must give the same bits.
    #[serde(default = "yes")]
    pub deterministic: bool,
    /// Threads that the kernel may use.
    #[serde(default = "one")]
    pub threads: u32,
    /// Inputs whose draw is a default, so that no range is declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undeclared: Vec<String>,
    /// Additional draws of every floating-point input; their results must be right too.
    #[serde(default)]
    pub hostile: Vec<Draw>,
    /// Patterns that some calls have in their inputs, timed ones too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mixture: Vec<InputPattern>,
    /// The shapes on which a kernel must be right.
    #[serde(default, skip_serializing_if = "CheckedShapes::is_default")]
    pub shapes: CheckedShapes,
    /// What runs Python modules, and the device of their tensors.
    #[serde(default, skip_serializing_if = "PythonRuntime::is_default")]
    pub modules: PythonRuntime,
    /// The least work of a call, as far as it is declared.
    #[serde(default, skip_serializing_if = "CallWork::is_default")]
    pub work: CallWork,
    /// What prepares for calls, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetupCall>,
    /// How calls on a device are timed.
    #[serde(default, skip_serializing_if = "DeviceTiming::is_default")]
    pub timing: DeviceTiming,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

/// What is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kernel {
    /// A function of a shared object that the build makes.
    Library {
        /// Its path, relative to the directory of `karve.toml`.
        path: String,
        /// The name of the function.
        entry: String,
    },
    /// Functions of a Python module.
    Python {
        /// The file, relative to the directory of `karve.toml`.
        path: String,
        /// Which names it defines.
        style: PythonStyle,
    },
}

/// Which names a Python module defines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PythonStyle {
    /// `kernel_fn`, and in the reference `reference_fn`.
    #[default]
    Functions,
    /// `ModelNew`, and in the reference `Model` and `get_init_inputs`.
    Models,
}

/// The reference: what defines the right result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reference {
    /// A function of a shared object that the build of the unchanged project makes.
    Library {
        /// Its path.
        path: String,
        /// The name of the function.
        entry: String,
        /// The precision it computes in.
        precision: Precision,
    },
    /// A command that reads the inputs from files and writes the outputs to files.
    Command {
        /// The command line; `{dir}` is the directory of the files, one per tensor.
        line: String,
        /// The precision it computes in.
        precision: Precision,
    },
    /// A Python module.
    Python {
        /// The file.
        path: String,
        /// The precision it computes in.
        precision: Precision,
    },
}

impl Reference {
    /// The precision it computes in.
    pub fn precision(&self) -> Precision {
        let (Self::Library { precision, .. }
        | Self::Command { precision, .. }
        | Self::Python { precision, .. }) = self;
        *precision
    }
}

/// The precision a reference computes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// Every floating-point tensor and scalar is a float64.
    #[default]
    Wide,
    /// As the contract declares the arguments.
    Native,
}

/// One argument of the entry point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arg {
    /// Its name, for messages and files.
    pub name: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// What it is.
    pub kind: ArgKind,
}

/// What an argument is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ArgKind {
    /// A number, an expression over the parameters of the case.
    Scalar {
        /// The expression.
        value: String,
        /// Whether a kernel may rely on it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fixed: bool,
    },
    /// A tensor that the kernel only reads.
    Input {
        /// Its extents, expressions over the parameters.
        shape: Vec<String>,
        /// What it is filled with.
        draw: Draw,
    },
    /// A tensor that the kernel writes, all of it.
    Output {
        /// Its extents.
        shape: Vec<String>,
    },
    /// A tensor that the kernel reads and writes.
    InOut {
        /// Its extents.
        shape: Vec<String>,
        /// What it is filled with.
        draw: Draw,
    },
}

/// The largest error of a kernel on one tensor of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseTensorError {
    /// The name of the case.
    pub case: String,
    /// The name of the tensor.
    pub tensor: String,
    /// How far it was from the reference.
    pub error: ErrorStats,
    /// How far the incumbent's was on the same inputs, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<ErrorStats>,
}

impl CaseTensorError {
    /// The error as a multiple of the incumbent's, if that had one.
    pub fn ratio(&self) -> Option<f64> {
        let beside = self.beside.as_ref()?;
        let ratio = self.error.rms / beside.rms;
        ratio.is_finite().then_some(ratio)
    }
}

/// One argument of one call, with its place in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlacedArg {
    /// An integer, in two's complement.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A tensor in the memory that is only read.
    Input(TensorRegion),
    /// A tensor in the memory that is written.
    Output(TensorRegion),
}

/// The place of a tensor in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorRegion {
    /// Bytes from the start of the slot.
    pub offset: u64,
    /// Its elements.
    pub elements: u64,
    /// Its size.
    pub bytes: u64,
}

/// The memory layout of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallLayout {
    /// The arguments, in order.
    pub places: Vec<PlacedArg>,
    /// How many terms are summed for one element, if the contract says so.
    pub reduction: Option<u64>,
    /// Extents of each argument; none for a scalar.
    pub extents: Vec<Vec<u64>>,
    /// The types of the elements in memory.
    pub dtypes: Vec<Dtype>,
    /// Bytes of a slot of the memory that is read.
    pub input_bytes: u64,
    /// Bytes of a slot of the memory that is written.
    pub output_bytes: u64,
}

impl Arg {
    fn shape(&self) -> Option<&[String]> {
        match &self.kind {
            ArgKind::Scalar { .. } => None,
            ArgKind::Input { shape, .. }
            | ArgKind::Output { shape }
            | ArgKind::InOut { shape, .. } => Some(shape),
        }
    }

    /// What it is filled with before a call, if anything.
    pub fn draw(&self) -> Option<&Draw> {
        match &self.kind {
            ArgKind::Input { draw, .. } | ArgKind::InOut { draw, .. } => Some(draw),
            ArgKind::Scalar { .. } | ArgKind::Output { .. } => None,
        }
    }

    /// Fills it with something else; what is not filled stays as it is.
    pub fn set_draw(&mut self, other: Draw) {
        if let ArgKind::Input { draw, .. } | ArgKind::InOut { draw, .. } = &mut self.kind {
            *draw = other;
        }
    }

    /// Whether the kernel writes it.
    pub fn is_written(&self) -> bool {
        matches!(self.kind, ArgKind::Output { .. } | ArgKind::InOut { .. })
    }
}

impl Contract {
    /// Bytes of all inputs of one call at most, and of all outputs.
    pub fn call_bytes_max(&self) -> u64 {
        if self.is_on_device() { DEVICE_CALL_BYTES_MAX } else { CALL_BYTES_MAX }
    }

    /// Whether tensors are on a device, and not in the memory of the host.
    pub fn is_on_device(&self) -> bool {
        self.modules.device.is_some()
    }

    /// The memory layout of a call of the kernel on a case.
    pub fn layout(&self, case: &Case) -> Result<CallLayout, String> {
        self.layout_in(case, Precision::Native)
    }

    /// The same for a reference of some precision.
    pub fn layout_in(&self, case: &Case, precision: Precision) -> Result<CallLayout, String> {
        let mut layout = CallLayout {
            places: Vec::new(),
            reduction: self.reduction_on(case)?,
            extents: Vec::new(),
            dtypes: Vec::new(),
            input_bytes: GUARD_BYTES,
            output_bytes: GUARD_BYTES,
        };
        for arg in &self.args {
            let wide = precision == Precision::Wide && arg.dtype.is_float();
            let dtype = if wide { Dtype::F64 } else { arg.dtype };
            let named = |why: String| format!("the argument `{}`: {why}", arg.name);
            let (place, extents) = layout.place(arg, dtype, case).map_err(named)?;
            if layout.input_bytes.max(layout.output_bytes) > self.call_bytes_max() {
                return Err(named(format!("the tensors of {} are too large in total", case.name)));
            }
            layout.places.push(place);
            layout.extents.push(extents);
            layout.dtypes.push(dtype);
        }
        layout.check()?;
        Ok(layout)
    }

    fn reduction_on(&self, case: &Case) -> Result<Option<u64>, String> {
        let Some(text) = &self.reduction else {
            return Ok(None);
        };
        let wrong = || format!("the reduction `{text}` is not a size on {}", case.name);
        let extent = extent_of(value_of(text, case)?).filter(|n| *n > 0);
        extent.map(Some).ok_or_else(wrong)
    }

    /// Whether an argument goes to the setup, and not to the kernel.
    pub fn is_prepared(&self, index: usize) -> bool {
        let name = self.args.get(index).map(|arg| &arg.name);
        let setup = self.setup.as_ref();
        setup.zip(name).is_some_and(|(setup, name)| setup.inputs.contains(name))
    }

    /// The tensors that the kernel writes.
    pub fn written(&self) -> impl Iterator<Item = (usize, &Arg)> {
        self.args.iter().enumerate().filter(|(_, arg)| arg.is_written())
    }

    /// The contract with every floating-point input drawn as `other`.
    #[must_use]
    pub fn drawn_as(&self, other: &Draw) -> Self {
        let mut contract = self.clone();
        for arg in contract.args.iter_mut().filter(|arg| arg.dtype.is_float()) {
            arg.set_draw(other.clone());
        }
        contract
    }
}

impl CallLayout {
    fn place(
        &mut self,
        arg: &Arg,
        dtype: Dtype,
        case: &Case,
    ) -> Result<(PlacedArg, Vec<u64>), String> {
        if let ArgKind::Scalar { value, .. } = &arg.kind {
            let value = value_of(value, case)?;
            return Ok((scalar_of(value, dtype)?, Vec::new()));
        }
        let mut extents = Vec::new();
        let mut elements = 1_u64;
        for text in arg.shape().unwrap_or_default() {
            let extent = extent_of(value_of(text, case)?).ok_or_else(|| {
                format!(
                    "`{text}` is not a size on {}: it must be a whole number, 0 or more",
                    case.name
                )
            })?;
            elements = elements
                .checked_mul(extent)
                .filter(|n| *n <= DEVICE_CALL_BYTES_MAX)
                .ok_or_else(|| format!("it is too large on {}", case.name))?;
            extents.push(extent);
        }
        let bytes = elements * dtype.bytes() as u64;
        let end = if arg.is_written() { &mut self.output_bytes } else { &mut self.input_bytes };
        let region = TensorRegion { offset: *end, elements, bytes };
        *end = (*end + bytes + GUARD_BYTES).next_multiple_of(ALIGNMENT);
        let place =
            if arg.is_written() { PlacedArg::Output(region) } else { PlacedArg::Input(region) };
        Ok((place, extents))
    }

    fn check(&self) -> Result<(), String> {
        let is_float = |place: &&PlacedArg| matches!(place, PlacedArg::Float(_));
        let floats = self.places.iter().filter(is_float).count();
        if floats > FLOATS_MAX {
            return Err(format!("more than {FLOATS_MAX} floating-point scalars"));
        }
        if self.places.len() - floats > INTEGERS_MAX {
            return Err(format!("more than {INTEGERS_MAX} pointers and integers"));
        }
        Ok(())
    }

    /// The regions that are written, with the number of their argument.
    pub fn outputs(&self) -> impl Iterator<Item = (usize, TensorRegion)> {
        let output = |(index, place): (usize, &PlacedArg)| match place {
            PlacedArg::Output(region) => Some((index, *region)),
            PlacedArg::Integer(_) | PlacedArg::Float(_) | PlacedArg::Input(_) => None,
        };
        self.places.iter().enumerate().filter_map(output)
    }

    /// The parts of a slot of the written memory that no tensor covers.
    pub fn guards(&self) -> Vec<(u64, u64)> {
        let mut guards = Vec::new();
        let mut from = 0;
        for (_, region) in self.outputs() {
            guards.push((from, region.offset));
            from = region.offset + region.bytes;
        }
        guards.push((from, self.output_bytes));
        guards
    }
}

fn value_of(text: &str, case: &Case) -> Result<f64, String> {
    let expr = parse_expr(text).map_err(|error| format!("`{text}`: {error}"))?;
    let text_of = |name: &&str| case.params.get(*name).filter(|v| v.parse::<f64>().is_err());
    if let Some((name, value)) = expr.names().iter().find_map(|n| Some((n, text_of(n)?))) {
        return Err(format!("`{text}`: `{name}` is `{value}`, which is not a number"));
    }
    let value = expr.evaluate_params(&case.params);
    value.map_err(|why| format!("`{text}`: {why}"))
}

fn extent_of(value: f64) -> Option<u64> {
    let whole = value.fract() == 0.0 && (0.0..=DEVICE_CALL_BYTES_MAX as f64).contains(&value);
    whole.then_some(value as u64)
}

fn scalar_of(value: f64, dtype: Dtype) -> Result<PlacedArg, String> {
    if dtype.is_float() {
        return match dtype {
            Dtype::F64 | Dtype::F32 => Ok(PlacedArg::Float(value)),
            _ => Err(format!("a scalar cannot be {}; use f32 or f64", dtype.name())),
        };
    }
    let whole = value.fract() == 0.0 && value.abs() <= (1_u64 << 53) as f64;
    if whole {
        Ok(PlacedArg::Integer(value as i64))
    } else {
        Err(format!("{value} is not a whole number"))
    }
}

#[cfg(test)]
mod tests;
