//! The memory that all arms of a duel share, on the host or on a device: idle arms are frozen, so
//! they do not interfere, and no arm is lucky with the pages that it got.

use super::protocol::DeviceHello;
use karve_numerics::contract::{CacheState, DeviceTiming, LaunchMode};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::gpu::{GpuError, GpuFailure, GpuMemory, GpuResult, SharedStage};
use karve_os::native::SharedMemory;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Bytes of the memory that is read and of the memory that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemorySizes {
    /// Read by all arms.
    pub(super) input: u64,
    /// Written by one.
    pub(super) output: u64,
}

/// Whether large inputs on a device are in memory that others have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputSharing {
    /// They have a copy of their own.
    Alone,
    /// All who read them in the same types have the same memory.
    Shared,
}

/// The memory of some arms.
#[derive(Debug)]
pub(super) struct ArmMemory {
    /// How large it is.
    pub(super) sizes: MemorySizes,
    /// Where it is.
    pub(super) place: MemoryPlace,
}

/// Where memory is.
#[derive(Debug)]
pub(super) enum MemoryPlace {
    /// In memory that processes map.
    Host(HostMemory),
    /// On a device.
    Device(DeviceMemory),
}

/// Memory that processes map.
#[derive(Debug)]
pub(super) struct HostMemory {
    /// Read by the kernels.
    pub(super) input: SharedMemory,
    /// Written by the kernels.
    pub(super) output: SharedMemory,
    /// Whether the operating system keeps workers from writing to the inputs.
    pub(super) sealed: bool,
}

/// Memory on a device, which processes open.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    /// What draws and compares there.
    pub(super) stage: SharedStage,
    /// Read by the kernels; if it is large, by a reference of the same precision, too.
    pub(super) input: Arc<GpuMemory>,
    /// Written by the kernels.
    pub(super) output: GpuMemory,
    hello: DeviceHello,
}

impl ArmMemory {
    /// Fresh memory: on a device if there is a stage.
    pub(super) fn new(
        sizes: MemorySizes,
        stage: Option<&SharedStage>,
        sharing: InputSharing,
    ) -> Result<Self> {
        Self::timed(sizes, stage, DeviceTiming::default(), sharing)
    }

    /// Whether others may have the same memory for their inputs, on a device: there is only one
    /// slot then.
    pub(super) fn is_large(&self) -> Result<bool> {
        match &self.place {
            MemoryPlace::Host(_) => Ok(false),
            MemoryPlace::Device(device) => {
                let opened = device.stage.here().map_err(gpu_failed)?;
                Ok(opened.is_large(self.sizes.input))
            }
        }
    }

    /// The same for calls that are timed in this way, on a device.
    pub(super) fn timed(
        sizes: MemorySizes,
        stage: Option<&SharedStage>,
        timing: DeviceTiming,
        sharing: InputSharing,
    ) -> Result<Self> {
        let place = match stage {
            None => MemoryPlace::Host(HostMemory::new(sizes)?),
            Some(stage) => {
                let memory = DeviceMemory::new(sizes, stage, timing, sharing);
                MemoryPlace::Device(memory.map_err(gpu_failed)?)
            }
        };
        Ok(Self { sizes, place })
    }

    /// The descriptors that a worker maps.
    pub(super) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match &self.place {
            MemoryPlace::Host(host) => vec![host.input.fd(), host.output.fd()],
            MemoryPlace::Device(_) => Vec::new(),
        }
    }

    /// What a worker opens on a device.
    pub(super) fn device_hello(&self) -> Option<DeviceHello> {
        match &self.place {
            MemoryPlace::Host(_) => None,
            MemoryPlace::Device(device) => Some(device.hello.clone()),
        }
    }
}

impl HostMemory {
    fn new(sizes: MemorySizes) -> Result<Self> {
        let part = |bytes: u64| {
            SharedMemory::new(bytes as usize)
                .context(|| "cannot allocate memory for kernels".to_owned())
                .map_err(|error| error.hint("use smaller cases in karve.toml"))
        };
        let (input, output) = (part(sizes.input)?, part(sizes.output)?);
        let sealed = input.seal_for_others();
        for shared in [&input, &output] {
            let done = shared.seal_as_it_is();
            done.context(|| "cannot seal memory for kernels".to_owned())?;
        }
        Ok(Self { input, output, sealed })
    }
}

impl DeviceMemory {
    /// Whether both have the same inputs.
    pub(super) fn shares_input(&self, other: &ArmMemory) -> bool {
        match &other.place {
            MemoryPlace::Host(_) => false,
            MemoryPlace::Device(other) => Arc::ptr_eq(&self.input, &other.input),
        }
    }

    fn new(
        sizes: MemorySizes,
        stage: &SharedStage,
        timing: DeviceTiming,
        sharing: InputSharing,
    ) -> GpuResult<Self> {
        let mut opened = stage.here()?;
        let input = match sharing {
            InputSharing::Alone => Arc::new(GpuMemory::new(opened.gpu(), sizes.input)?),
            InputSharing::Shared => opened.input_memory(sizes.input)?,
        };
        let output = GpuMemory::new(opened.gpu(), sizes.output)?;
        let hello = DeviceHello {
            handles: [input.share()?.text(), output.share()?.text()],
            captures: timing.launch == LaunchMode::Graph,
            warms: timing.cache == CacheState::Warm,
        };
        drop(opened);
        Ok(Self { stage: stage.clone(), input, output, hello })
    }
}

/// A device that failed in karve's own process.
pub(super) fn gpu_failed(error: GpuError) -> CommandError {
    let (what, hint) = match error.kind {
        GpuFailure::Missing => {
            ("there is no GPU", "contract.device in karve.toml needs a GPU and its driver")
        }
        GpuFailure::Memory => {
            let hint = "use smaller cases in karve.toml, or precision = \"native\" in \
                        [contract.reference]";
            ("the memory of the GPU is not enough", hint)
        }
        GpuFailure::Lost => (
            "the GPU failed",
            "run `nvidia-smi`, then `karve resume`; karve doctor checks the host",
        ),
    };
    CommandError::environment(what).cause(error.text).hint(hint)
}
