//! What several users of a device share: its stage, and memory that other processes open.

use super::{Gpu, GpuAddress, GpuHandle, GpuResult, GpuStage};
use crate::sync::locked;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes of the largest pages of a device.
const LARGE_PAGE_BYTES: u64 = 2 << 20;

/// Memory of a device, until this is dropped.
pub struct GpuMemory {
    gpu: Arc<Gpu>,
    at: GpuAddress,
    bytes: u64,
}

impl GpuMemory {
    /// Allocates it, in whole pages of the largest kind if it has that many bytes: with smaller
    /// ones, kernels wait for addresses that the device does not remember.
    pub fn new(gpu: &Arc<Gpu>, bytes: u64) -> GpuResult<Self> {
        gpu.use_here()?;
        let rounded = match bytes < LARGE_PAGE_BYTES {
            true => bytes,
            false => bytes.next_multiple_of(LARGE_PAGE_BYTES),
        };
        Ok(Self { gpu: Arc::clone(gpu), at: gpu.alloc(rounded)?, bytes })
    }

    /// Where it is.
    pub fn at(&self) -> GpuAddress {
        self.at
    }

    /// How large it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What another process opens it with.
    pub fn share(&self) -> GpuResult<GpuHandle> {
        self.gpu.share(self.at)
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        // A device that was lost has freed it.
        let _ = self.gpu.use_here().and_then(|()| self.gpu.free(self.at));
    }
}

impl fmt::Debug for GpuMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x}", self.bytes, self.at)
    }
}

/// The stage of a device, opened once by this process.
#[derive(Clone)]
pub struct SharedStage(Arc<Mutex<GpuStage>>);

/// The stages of this process, by the numbers of their devices.
static STAGES: Mutex<BTreeMap<u32, SharedStage>> = Mutex::new(BTreeMap::new());

impl SharedStage {
    /// Opens a device, unless that has been done and it still works.
    pub fn open(number: u32) -> GpuResult<Self> {
        let mut stages = locked(&STAGES);
        if let Some(stage) = stages.get(&number) {
            if stage.here().is_ok() {
                return Ok(stage.clone());
            }
            locked(&stage.0).gpu().reset()?;
        }
        let stage = Self(Arc::new(Mutex::new(GpuStage::open(number)?)));
        stages.insert(number, stage.clone());
        Ok(stage)
    }

    /// The stage, for the calling thread, if the device still works.
    pub fn here(&self) -> GpuResult<MutexGuard<'_, GpuStage>> {
        let stage = locked(&self.0);
        stage.gpu.use_here()?;
        stage.gpu.synchronize()?;
        Ok(stage)
    }
}

impl fmt::Debug for SharedStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a stage")
    }
}
