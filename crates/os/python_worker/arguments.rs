//! The arguments of calls: what karve says about them, and the objects that a kernel gets.
//!
//! ```text
//! setup     input stride 8, output stride 8, slots to prepare for 8, then for each argument:
//!           kind 1, value 8 (an integer, the bits of a float64, or the offset of a tensor),
//!           and for a tensor: type 1 (its name's length), name, rank 1, extents 8 each
//! kinds     0 integer, 1 float64, 2 float32, 3 input, 4 output, 5 read and written,
//!           6 an input of the setup
//! ```

use crate::api::{Attempt, PyRef, PythonFailure, refused};
use crate::host::SharedMapping;
use crate::torch::{TorchCalls, TorchElement};
use std::ffi::CString;

/// A type of elements: karve's name, bytes, NumPy's name and PyTorch's.
pub(crate) type ElementRow = (&'static str, u8, &'static str, &'static str);

/// The types. Those that NumPy lacks are passed as integers with the same bits.
pub(crate) const ELEMENTS: [ElementRow; 15] = [
    ("f64", 8, "float64", "float64"),
    ("f32", 4, "float32", "float32"),
    ("f16", 2, "float16", "float16"),
    ("bf16", 2, "uint16", "bfloat16"),
    ("f8e4m3", 1, "uint8", "float8_e4m3fn"),
    ("f8e5m2", 1, "uint8", "float8_e5m2"),
    ("i64", 8, "int64", "int64"),
    ("i32", 4, "int32", "int32"),
    ("i16", 2, "int16", "int16"),
    ("i8", 1, "int8", "int8"),
    ("u64", 8, "uint64", "uint64"),
    ("u32", 4, "uint32", "uint32"),
    ("u16", 2, "uint16", "uint16"),
    ("u8", 1, "uint8", "uint8"),
    ("bool", 1, "bool", "bool"),
];

/// What makes arrays: objects implemented in C, taken before a candidate is loaded.
pub(crate) struct NumpyCalls {
    pub(crate) ndarray: PyRef,
    /// NumPy's types, in the order of `ELEMENTS`.
    dtypes: Vec<PyRef>,
}

impl NumpyCalls {
    /// From the type of arrays and a dictionary of the types of elements.
    pub(crate) fn new(ndarray: PyRef, dtypes: &PyRef) -> Option<Self> {
        let of = |(name, ..): &ElementRow| dtypes.entry(&CString::new(*name).ok()?);
        Some(Self { ndarray, dtypes: ELEMENTS.iter().map(of).collect::<Option<_>>()? })
    }
}

/// What the objects of arguments are made of.
pub(crate) struct ArgObjects<'a> {
    pub(crate) memory: &'a [SharedMapping; 2],
    pub(crate) is_on_device: bool,
    pub(crate) numpy: &'a NumpyCalls,
    pub(crate) torch: Option<&'a TorchCalls>,
}

/// The arguments of all following calls.
pub(crate) struct CallPlan {
    input_stride: u64,
    output_stride: u64,
    /// Slots that the setup is called for; 0 without one.
    pub(crate) prepared_slots: u32,
    args: Vec<PlannedArg>,
}

enum PlannedArg {
    /// The same object in every call.
    Number(PyRef),
    Tensor(PlannedTensor),
}

/// A tensor, and how its object is made.
pub(crate) struct PlannedTensor {
    use_of: TensorUse,
    offset: u64,
    bytes: u64,
    pub(crate) shape: Vec<isize>,
    pub(crate) element: ElementRow,
    shape_object: PyRef,
    /// NumPy's type.
    dtype: PyRef,
    /// PyTorch's type, if the kernel gets tensors.
    pub(crate) of_torch: Option<TorchElement>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TensorUse {
    Input,
    Output,
    InOut,
    Prepared,
}

/// What the setup left for a slot.
pub(crate) struct PreparedSlot {
    state: PyRef,
    /// What it may refer to: karve's own memory moves.
    _copies: Vec<Vec<u8>>,
}

/// Bytes that the start of an array is a multiple of.
const ALIGNMENT: usize = 64;

/// A call that only has to be made.
pub(crate) struct ReadyCall {
    pub(crate) args: PyRef,
    pub(crate) targets: Vec<ResultTarget>,
}

/// Where a result goes.
pub(crate) struct ResultTarget {
    /// Its place among the arguments.
    pub(crate) index: usize,
    pub(crate) address: *mut u8,
}

impl CallPlan {
    pub(crate) fn parse(
        body: &[u8],
        numpy: &NumpyCalls,
        torch: Option<&TorchCalls>,
    ) -> Attempt<Self> {
        let mut fields = Fields(body);
        let (input_stride, output_stride) = (fields.number()?, fields.number()?);
        let prepared_slots = u32::try_from(fields.number()?).map_err(|_| out_of_order())?;
        let mut args = Vec::new();
        while !fields.0.is_empty() {
            let (kind, value) = (fields.byte()?, fields.number()?);
            args.push(match kind {
                0 => PlannedArg::Number(PyRef::of_integer(value as i64)?),
                1 => PlannedArg::Number(PyRef::of_float(f64::from_bits(value))?),
                2 => {
                    let single = f64::from_bits(value) as f32;
                    PlannedArg::Number(PyRef::of_float(f64::from(single))?)
                }
                3..=6 => {
                    let use_of = match kind {
                        3 => TensorUse::Input,
                        4 => TensorUse::Output,
                        6 => TensorUse::Prepared,
                        _ => TensorUse::InOut,
                    };
                    PlannedArg::Tensor(fields.tensor(use_of, value, numpy, torch)?)
                }
                _ => return refused("order"),
            });
        }
        Ok(Self { input_stride, output_stride, prepared_slots, args })
    }

    /// A tensor of the arguments.
    pub(crate) fn tensor(&self, index: usize) -> Attempt<&PlannedTensor> {
        match self.args.get(index) {
            Some(PlannedArg::Tensor(tensor)) => Ok(tensor),
            _ => refused("order"),
        }
    }

    /// Calls the setup for a slot, with its inputs and all numbers. On the host it gets copies.
    pub(crate) fn set_up(
        &self,
        setup: &PyRef,
        slot: u32,
        objects: &ArgObjects<'_>,
    ) -> Attempt<PreparedSlot> {
        let (mut args, mut copies) = (Vec::new(), Vec::new());
        for arg in &self.args {
            match arg {
                PlannedArg::Number(number) => args.push(number.clone()),
                PlannedArg::Tensor(tensor) if tensor.use_of == TensorUse::Prepared => {
                    let mut address = self.address(tensor, [slot, slot], objects.memory)?;
                    if !objects.is_on_device {
                        address = copied(address, tensor.bytes as usize, &mut copies);
                    }
                    args.push(tensor.object(address, objects)?);
                }
                PlannedArg::Tensor(_) => {}
            }
        }
        Ok(PreparedSlot { state: setup.call(&PyRef::tuple(args)?)?, _copies: copies })
    }

    /// Where a tensor is in these slots of both memories.
    fn address(
        &self,
        tensor: &PlannedTensor,
        [input, output]: [u32; 2],
        memory: &[SharedMapping; 2],
    ) -> Attempt<*mut u8> {
        let (mapping, start) = match tensor.use_of {
            TensorUse::Input | TensorUse::Prepared => {
                (&memory[0], self.input_stride.checked_mul(input.into()))
            }
            TensorUse::Output | TensorUse::InOut => {
                (&memory[1], self.output_stride.checked_mul(output.into()))
            }
        };
        let start = start.and_then(|start| start.checked_add(tensor.offset));
        let place = start.and_then(|start| mapping.part(start, tensor.bytes));
        place.map_or_else(|| refused("order"), Ok)
    }

    /// The objects of one call, in these slots of both memories.
    pub(crate) fn prepare(
        &self,
        slots: [u32; 2],
        objects: &ArgObjects<'_>,
        prepared: &[PreparedSlot],
    ) -> Attempt<ReadyCall> {
        let mut args = Vec::with_capacity(self.args.len());
        let mut targets = Vec::new();
        if self.prepared_slots > 0 {
            let slot = prepared.get(slots[0] as usize).ok_or_else(out_of_order)?;
            args.push(slot.state.clone());
        }
        for (index, arg) in self.args.iter().enumerate() {
            let tensor = match arg {
                PlannedArg::Number(number) => {
                    args.push(number.clone());
                    continue;
                }
                PlannedArg::Tensor(tensor) => tensor,
            };
            let address = self.address(tensor, slots, objects.memory)?;
            match tensor.use_of {
                TensorUse::Output => targets.push(ResultTarget { index, address }),
                TensorUse::Input | TensorUse::InOut => {
                    args.push(tensor.object(address, objects)?);
                }
                TensorUse::Prepared => {}
            }
        }
        Ok(ReadyCall { args: PyRef::tuple(args)?, targets })
    }
}

impl PlannedTensor {
    /// An object that shares exactly the memory of the tensor. An array seems to be writable, as
    /// in use; where it is not, a write ends the process.
    fn object(&self, address: *mut u8, objects: &ArgObjects<'_>) -> Attempt<PyRef> {
        if let (Some(torch), Some(element)) = (objects.torch, &self.of_torch) {
            return torch.tensor(address, &self.shape, self.bytes as usize, element);
        }
        let memory = PyRef::of_memory(address, self.bytes as usize)?;
        let args = PyRef::tuple(vec![self.shape_object.clone(), self.dtype.clone(), memory])?;
        objects.numpy.ndarray.call(&args)
    }

    /// The place of a result as a tensor of PyTorch.
    pub(crate) fn home(&self, address: *mut u8, torch: &TorchCalls) -> Attempt<PyRef> {
        match &self.of_torch {
            Some(element) => torch.tensor(address, &self.shape, self.bytes as usize, element),
            None => refused("element"),
        }
    }
}

/// Copies bytes to memory of the worker; returns where they are.
fn copied(from: *const u8, bytes: usize, copies: &mut Vec<Vec<u8>>) -> *mut u8 {
    let mut copy = vec![0_u8; bytes + ALIGNMENT];
    let start = copy.as_ptr().align_offset(ALIGNMENT);
    let to = copy.as_mut_ptr().wrapping_add(start);
    // SAFETY: the source is inside a mapping, as `part` checked, and the copy has that many bytes
    // after its aligned start.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    copies.push(copy);
    to
}

/// The fields of a message.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn part<const N: usize>(&mut self) -> Attempt<[u8; N]> {
        let (part, rest) = self.0.split_first_chunk().ok_or_else(out_of_order)?;
        self.0 = rest;
        Ok(*part)
    }

    fn byte(&mut self) -> Attempt<u8> {
        self.part::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Attempt<u64> {
        self.part().map(u64::from_le_bytes)
    }

    fn tensor(
        &mut self,
        use_of: TensorUse,
        offset: u64,
        numpy: &NumpyCalls,
        torch: Option<&TorchCalls>,
    ) -> Attempt<PlannedTensor> {
        let length = usize::from(self.byte()?);
        let (name, rest) = self.0.split_at_checked(length).ok_or_else(out_of_order)?;
        self.0 = rest;
        let at = ELEMENTS.iter().position(|(own, ..)| own.as_bytes() == name);
        let at = at.ok_or_else(out_of_order)?;
        let element = ELEMENTS[at];
        let rank = self.byte()?;
        let extents = (0..rank).map(|_| self.number()).collect::<Attempt<Vec<u64>>>()?;
        let count = extents.iter().try_fold(1_u64, |product, n| product.checked_mul(*n));
        let bytes = count.and_then(|count| count.checked_mul(u64::from(element.1)));
        let objects = extents.iter().map(|n| PyRef::of_integer(*n as i64));
        let of_torch = torch.map(|torch| torch.element(element.0, element.1, element.3));
        Ok(PlannedTensor {
            use_of,
            offset,
            bytes: bytes.ok_or_else(out_of_order)?,
            shape: extents.iter().map(|n| *n as isize).collect(),
            element,
            shape_object: PyRef::tuple(objects.collect::<Attempt<_>>()?)?,
            dtype: numpy.dtypes.get(at).ok_or_else(out_of_order)?.clone(),
            of_torch: of_torch.transpose()?,
        })
    }
}

fn out_of_order() -> PythonFailure {
    PythonFailure::Refused("order".into())
}
