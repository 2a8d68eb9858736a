//! The messages between karve and a worker; text and bytes to data and back, nothing else.
//!
//! A worker runs the code of a candidate, so nothing that it sends is trusted: a reply must have
//! the right size, the right kind and the nonce of the request, and the only numbers in it are
//! cross-checked against karve's clocks. A message is one packet.
//!
//! ```text
//! request    kind 1 byte, nonce 8, then for the first one a JSON text, for a batch a number 8 and
//!            its slots, for fences the number of those in the inputs 8 and the start 8 and end 8
//!            of each, and for arguments: input stride 8, output stride 8, the slots that the
//!            setup is called for 8, and for each argument kind 1 (0 integer, 1 float64,
//!            2 float32, 3 input, 4 output, 5 both, 6 an input of the setup),
//!            value 8 (an integer, the bits of a float64, or the offset of a tensor), and for
//!            a tensor: length of the type's name 1, name, rank 1, extents 8 each
//! reply      kind 1 byte, nonce 8, then for a finished batch:
//!            wall ns 8, CPU ns 8, flags 4, device ns 8
//! ```

use karve_numerics::contract::{ArgKind, CallLayout, Contract, PlacedArg, SlotRange};
use karve_numerics::tensor::Dtype;
use karve_os::process::ReadableTree;
use serde::{Deserialize, Serialize};

/// Maximum size of a message, in bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 128 << 10;

/// Maximum number of calls in one batch.
pub(super) const CALLS_MAX: usize = 8_192;

/// The rounding mode of the worker's thread has changed.
pub(super) const FLAG_MODE_CHANGED: u32 = 1;

/// A result is an input, part of one, or in the memory of another result.
pub(super) const FLAG_ALIAS: u32 = 2;

/// The first message to a worker, together with the descriptors of both memories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorkerHello {
    /// The shared object or the module.
    pub(super) path: String,
    /// The function, or the name of a class.
    pub(super) entry: String,
    /// Bytes of the memory that is read.
    pub(super) input_bytes: u64,
    /// Bytes of the memory that is written.
    pub(super) output_bytes: u64,
    /// What the worker may read.
    #[serde(default)]
    pub(super) tree: ReadableTree,
    /// The function that prepares for calls, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) setup: Option<String>,
    /// How a module is loaded; not needed for a shared object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) module: Option<ModuleOptions>,
    /// The memory on a device, instead of descriptors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<DeviceHello>,
}

/// The memory on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeviceHello {
    /// What the memory that is read and the memory that is written are opened with.
    pub(super) handles: [String; 2],
    /// Whether the calls of a batch are captured and then launched at once.
    pub(super) captures: bool,
    /// Whether everything is read before the calls, so that it is in the cache.
    pub(super) warms: bool,
}

/// How a module is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ModuleOptions {
    /// The device that its tensors are on, if not the host.
    pub(super) device: Option<String>,
    /// Whether its weights are float64.
    pub(super) wide: bool,
    /// Whether it is one file, which cannot find other files of the project.
    pub(super) alone: bool,
    /// Modules that it must not find.
    pub(super) hidden: Vec<String>,
    /// The seed of the weights, the same for all arms.
    pub(super) seed: u64,
    /// How `torch.compile` compiles it, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) compile: Option<String>,
    /// Whether it also finds the modules in the project's directory.
    #[serde(default)]
    pub(super) finds_project: bool,
}

/// The arguments of all following calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallSetup {
    /// Bytes from one slot of the memory that is read to the next.
    pub(super) input_stride: u64,
    /// The same for the memory that is written.
    pub(super) output_stride: u64,
    /// Slots that the setup is called for; 0 without one.
    pub(super) prepared_slots: u32,
    /// The arguments, in order.
    pub(super) args: Vec<WireArg>,
}

impl CallSetup {
    /// The arguments of a contract in a layout.
    pub(super) fn of(contract: &Contract, layout: &CallLayout) -> Self {
        let given = |(index, place): (usize, &PlacedArg)| {
            let tensor = |offset: u64| WireTensor {
                offset,
                shape: layout.extents[index].clone(),
                dtype: layout.dtypes[index].name().to_owned(),
            };
            match place {
                PlacedArg::Integer(value) => WireArg::Integer { value: *value },
                PlacedArg::Float(value) => WireArg::Float {
                    bits: value.to_bits(),
                    single: layout.dtypes[index] == Dtype::F32,
                },
                PlacedArg::Input(region) => WireArg::Input(tensor(region.offset)),
                PlacedArg::Output(region) => match contract.args[index].kind {
                    ArgKind::InOut { .. } => WireArg::InOut(tensor(region.offset)),
                    _ => WireArg::Output(tensor(region.offset)),
                },
            }
        };
        Self {
            input_stride: layout.input_bytes,
            output_stride: layout.output_bytes,
            prepared_slots: 0,
            args: layout.places.iter().enumerate().map(given).collect(),
        }
    }
}

impl CallSetup {
    /// Gives the inputs of the setup to that, for this many slots.
    pub(super) fn prepare(&mut self, contract: &Contract, n_slots: u32) {
        self.prepared_slots = n_slots;
        for (index, arg) in self.args.iter_mut().enumerate() {
            if let (WireArg::Input(tensor), true) = (&*arg, contract.is_prepared(index)) {
                *arg = WireArg::Prepared(tensor.clone());
            }
        }
    }
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WireArg {
    /// An integer.
    Integer {
        /// Its value.
        value: i64,
    },
    /// A floating-point number, as the bits of a float64.
    Float {
        /// Its bits.
        bits: u64,
        /// Whether the function takes a float32.
        single: bool,
    },
    /// A tensor that is read.
    Input(WireTensor),
    /// A tensor that is written.
    Output(WireTensor),
    /// A tensor that is read and written.
    InOut(WireTensor),
    /// A tensor that the setup reads.
    Prepared(WireTensor),
}

impl WireArg {
    /// Makes an output an argument that is read and written.
    pub(super) fn pass(&mut self) {
        if let Self::Output(tensor) = self {
            *self = Self::InOut(tensor.clone());
        }
    }
}

/// Where a tensor is, and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WireTensor {
    /// Bytes from the start of the slot.
    pub(super) offset: u64,
    /// Its extents.
    pub(super) shape: Vec<u64>,
    /// The name of its type.
    pub(super) dtype: String,
}

/// One call of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallSlot {
    /// The slot of the memory that is read.
    pub(super) input: u32,
    /// The slot of the memory that is written.
    pub(super) output: u32,
}

/// A request of karve.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WorkerRequest {
    /// Load the kernel.
    Hello(WorkerHello),
    /// Take these arguments from now on.
    Setup(CallSetup),
    /// Are you awake?
    Ping,
    /// Prepare these calls: the part that is not timed.
    Fill {
        /// The calls.
        slots: Vec<CallSlot>,
        /// A secret that decides where both memories go; 0 if they stay where they are.
        place: u64,
    },
    /// Make these parts of both memories inaccessible, and all others accessible again.
    Fence([Vec<SlotRange>; 2]),
    /// Copy the results of the last batch to karve's memory on the device.
    Fetch,
    /// Call the kernel once for each slot, and then work for a while.
    Batch {
        /// The calls.
        slots: Vec<CallSlot>,
        /// What else it does.
        extra: BatchExtra,
    },
}

/// What a worker does in a batch besides calling its kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchExtra {
    /// Plain work after each call, for a control.
    pub(super) spin_ns: u64,
    /// For how long it keeps its device busy first, so that calls are launched meanwhile.
    pub(super) cover_ns: u64,
    /// How many results stay alive beside the newest one, where a kernel returns them on a host.
    pub(super) alive: u64,
}

/// A worker's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorkerReply {
    /// It did what was requested.
    Done,
    /// It called the kernel, with the readings of its own clocks.
    Finished(WorkerTiming),
    /// It could not, and why.
    Failed(String),
}

/// A worker's clock readings for a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkerTiming {
    /// Wall time.
    pub(super) wall_ns: u64,
    /// How long launching the calls on a device took; 0 without one.
    pub(super) launch_ns: u64,
    /// What else it noticed.
    pub(super) flags: u32,
    /// The time on the device, between two of its events; 0 without a device.
    pub(super) device_ns: u64,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProtocolError(pub(super) &'static str);

const UNREADABLE: ProtocolError = ProtocolError("an unreadable request");

impl WorkerRequest {
    /// The message.
    pub(super) fn render(&self, nonce: u64) -> Vec<u8> {
        let (kind, body) = match self {
            Self::Hello(hello) => (b'H', json(hello)),
            Self::Setup(setup) => (b'S', render_setup(setup)),
            Self::Ping => (b'P', Vec::new()),
            Self::Fetch => (b'O', Vec::new()),
            Self::Fence(fences) => (b'F', render_fences(fences)),
            Self::Fill { slots, place } => (b'I', render_slots(&[*place], slots)),
            Self::Batch { slots, extra } => {
                (b'B', render_slots(&[extra.spin_ns, extra.cover_ns, extra.alive], slots))
            }
        };
        let mut message = vec![kind];
        message.extend(nonce.to_le_bytes());
        message.extend(body);
        message
    }

    /// Parses a message, as a worker does.
    pub(super) fn parse(message: &[u8]) -> Result<(u64, Self), ProtocolError> {
        let (kind, nonce, body) = head(message)?;
        let question = match kind {
            b'H' => Self::Hello(from_json(body)?),
            b'S' => Self::Setup(parse_setup(body)?),
            b'P' if body.is_empty() => Self::Ping,
            b'O' if body.is_empty() => Self::Fetch,
            b'F' => Self::Fence(parse_fences(body)?),
            b'I' => {
                let ([place], slots) = parse_slots(body)?;
                Self::Fill { slots, place }
            }
            b'B' => {
                let ([spin_ns, cover_ns, alive], slots) = parse_slots(body)?;
                Self::Batch { slots, extra: BatchExtra { spin_ns, cover_ns, alive } }
            }
            _ => return Err(ProtocolError("an unknown request")),
        };
        Ok((nonce, question))
    }
}

impl WorkerReply {
    /// The message.
    pub(super) fn render(&self, nonce: u64) -> Vec<u8> {
        let (kind, body) = match self {
            Self::Done => (b'd', Vec::new()),
            Self::Finished(reported) => {
                let mut body = reported.wall_ns.to_le_bytes().to_vec();
                body.extend(reported.launch_ns.to_le_bytes());
                body.extend(reported.flags.to_le_bytes());
                body.extend(reported.device_ns.to_le_bytes());
                (b'f', body)
            }
            Self::Failed(why) => (b'e', why.as_bytes().to_vec()),
        };
        let mut message = vec![kind];
        message.extend(nonce.to_le_bytes());
        message.extend(body);
        message
    }

    /// Parses a message, which may be anything, as the reply to the request with this nonce.
    pub(super) fn parse(message: &[u8], nonce: u64) -> Result<Self, ProtocolError> {
        let (kind, given, body) = head(message)?;
        if given != nonce {
            return Err(ProtocolError("a reply to another request"));
        }
        Ok(match kind {
            b'd' if body.is_empty() => Self::Done,
            b'f' => {
                let size = ProtocolError("a reply of the wrong size");
                let (wall, rest) = body.split_first_chunk().ok_or(size)?;
                let (launch, rest) = rest.split_first_chunk().ok_or(size)?;
                let (flags, rest) = rest.split_first_chunk().ok_or(size)?;
                Self::Finished(WorkerTiming {
                    wall_ns: u64::from_le_bytes(*wall),
                    launch_ns: u64::from_le_bytes(*launch),
                    flags: u32::from_le_bytes(*flags),
                    device_ns: rest.try_into().map(u64::from_le_bytes).map_err(|_| size)?,
                })
            }
            b'e' => Self::Failed(String::from_utf8_lossy(body).into_owned()),
            _ => return Err(ProtocolError("an unknown reply")),
        })
    }
}

fn render_setup(setup: &CallSetup) -> Vec<u8> {
    let mut body = setup.input_stride.to_le_bytes().to_vec();
    body.extend(setup.output_stride.to_le_bytes());
    body.extend(u64::from(setup.prepared_slots).to_le_bytes());
    for arg in &setup.args {
        let (kind, value, tensor) = match arg {
            WireArg::Integer { value } => (0, *value as u64, None),
            WireArg::Float { bits, single } => (1 + u8::from(*single), *bits, None),
            WireArg::Input(tensor) => (3, tensor.offset, Some(tensor)),
            WireArg::Output(tensor) => (4, tensor.offset, Some(tensor)),
            WireArg::InOut(tensor) => (5, tensor.offset, Some(tensor)),
            WireArg::Prepared(tensor) => (6, tensor.offset, Some(tensor)),
        };
        body.push(kind);
        body.extend(value.to_le_bytes());
        if let Some(WireTensor { dtype, shape, .. }) = tensor {
            body.push(dtype.len() as u8);
            body.extend(dtype.as_bytes());
            body.push(shape.len() as u8);
            body.extend(shape.iter().flat_map(|extent| extent.to_le_bytes()));
        }
    }
    body
}

fn parse_setup(body: &[u8]) -> Result<CallSetup, ProtocolError> {
    let mut fields = SetupFields(body);
    let (input_stride, output_stride) = (fields.number()?, fields.number()?);
    let prepared_slots = u32::try_from(fields.number()?).map_err(|_| UNREADABLE)?;
    let mut args = Vec::new();
    while !fields.0.is_empty() {
        let (kind, value) = (fields.byte()?, fields.number()?);
        args.push(match kind {
            0 => WireArg::Integer { value: value as i64 },
            1 | 2 => WireArg::Float { bits: value, single: kind == 2 },
            3 => WireArg::Input(fields.tensor(value)?),
            4 => WireArg::Output(fields.tensor(value)?),
            5 => WireArg::InOut(fields.tensor(value)?),
            6 => WireArg::Prepared(fields.tensor(value)?),
            _ => return Err(UNREADABLE),
        });
    }
    Ok(CallSetup { input_stride, output_stride, prepared_slots, args })
}

/// What is left of the arguments.
struct SetupFields<'a>(&'a [u8]);

impl SetupFields<'_> {
    fn byte(&mut self) -> Result<u8, ProtocolError> {
        let (byte, rest) = self.0.split_first().ok_or(UNREADABLE)?;
        self.0 = rest;
        Ok(*byte)
    }

    fn number(&mut self) -> Result<u64, ProtocolError> {
        let (number, rest) = self.0.split_first_chunk().ok_or(UNREADABLE)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn tensor(&mut self, offset: u64) -> Result<WireTensor, ProtocolError> {
        let length = usize::from(self.byte()?);
        let (name, rest) = self.0.split_at_checked(length).ok_or(UNREADABLE)?;
        self.0 = rest;
        let dtype = str::from_utf8(name).map_err(|_| UNREADABLE)?.to_owned();
        let rank = self.byte()?;
        let shape = (0..rank).map(|_| self.number()).collect::<Result<_, _>>()?;
        Ok(WireTensor { offset, shape, dtype })
    }
}

fn render_slots(numbers: &[u64], slots: &[CallSlot]) -> Vec<u8> {
    let mut body = Vec::with_capacity(8 * (numbers.len() + slots.len()));
    body.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    for slot in slots {
        body.extend(slot.input.to_le_bytes());
        body.extend(slot.output.to_le_bytes());
    }
    body
}

fn parse_slots<const N: usize>(body: &[u8]) -> Result<([u64; N], Vec<CallSlot>), ProtocolError> {
    let (words, rest) = body.as_chunks::<8>();
    let (numbers, slots) = words.split_first_chunk::<N>().ok_or(ProtocolError("a short batch"))?;
    if !rest.is_empty() || slots.len() > CALLS_MAX {
        return Err(ProtocolError("a batch of the wrong size"));
    }
    let slot = |bytes: &[u8; 8]| CallSlot {
        input: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        output: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
    };
    Ok((numbers.map(u64::from_le_bytes), slots.iter().map(slot).collect()))
}

fn render_fences([input, output]: &[Vec<SlotRange>; 2]) -> Vec<u8> {
    let mut body = (input.len() as u64).to_le_bytes().to_vec();
    let ends = input.iter().chain(output).flatten();
    body.extend(ends.flat_map(|end| end.to_le_bytes()));
    body
}

fn parse_fences(body: &[u8]) -> Result<[Vec<SlotRange>; 2], ProtocolError> {
    let mut fields = SetupFields(body);
    let (of_input, mut fences) = (fields.number()?, [Vec::new(), Vec::new()]);
    while !fields.0.is_empty() {
        let side = usize::from(fences[0].len() as u64 >= of_input);
        fences[side].push([fields.number()?, fields.number()?]);
    }
    Ok(fences)
}

fn head(message: &[u8]) -> Result<(u8, u64, &[u8]), ProtocolError> {
    let short = ProtocolError("a short message");
    let (kind, rest) = message.split_first().ok_or(short)?;
    let (nonce, body) = rest.split_first_chunk().ok_or(short)?;
    Ok((*kind, u64::from_le_bytes(*nonce), body))
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn from_json<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, ProtocolError> {
    serde_json::from_slice(body).map_err(|_| UNREADABLE)
}

#[cfg(test)]
mod tests;
