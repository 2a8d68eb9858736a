//! Tensors on a device: drawn, poisoned, summed up and compared there by kernels of karve's own.
//!
//! Only the process that owns the memory uses this; no code of a candidate runs in it. What it
//! shares is one allocation for inputs and one for outputs; everything else stays its own.

mod clock;
mod cuda;
mod nvml;
mod shared;

pub use clock::{ClockOptions, DeviceBatch, GpuClock};
pub use cuda::{Gpu, GpuAddress, GpuError, GpuFailure, GpuHandle, GpuResult};

pub use nvml::{GpuReading, GpuSensors};
pub use shared::{GpuMemory, SharedStage};

use cuda::{BLOCK_THREADS, GpuGrid, GpuKernel};
use karve_numerics::accuracy::{
    self, AgreeRequest, CompareLimits, ComparePass, FIGURES, PassItem, RunPass,
};
use karve_numerics::draw::{ElementDraw, dtype_number};
use karve_numerics::tensor::Dtype;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The kernels, for any driver since CUDA 10; testing/stage.sh makes them from stage.cu.
const KERNELS: &str = include_str!("gpu/stage.ptx");

/// Blocks of all items, unless there are more items: enough to keep a large device busy until its
/// end, though some items take ten times as long as others.
const BLOCKS_MAX: u64 = 33_792;

/// Elements that a thread takes before a grid gets another block.
const ELEMENTS_OF_THREAD: u64 = 4;

/// Items of one launch, at most.
const ITEMS_MAX: usize = 32_768;

/// Blocks of a comparison of all pairs, unless there are more pairs.
const COMPARE_BLOCKS: u64 = 1_056;

/// Pairs that are compared in one launch, at most.
const COMPARED_MAX: usize = 4_096;

/// How long the canary occupies the device, in cycles: about ten microseconds.
const CANARY_CYCLES: u64 = 15_000;

/// Canaries that show how long one takes when nothing else runs, and how much longer one may take:
/// as a factor, and at least this long. Processes take turns of about a millisecond.
const CANARIES: u32 = 20;
const CANARY_FACTOR: u32 = 3;
const CANARY_MORE: Duration = Duration::from_micros(200);

/// Inputs that have more than this part of the memory of a device are there only once.
const LARGE_PART: u64 = 5;

/// What is known about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFacts {
    /// Its name.
    pub name: String,
    /// Its generation.
    pub architecture: String,
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of its largest cache.
    pub cache_bytes: u64,
    /// All bytes of its memory.
    pub memory_bytes: u64,
}

/// A tensor on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuTensor {
    /// Where it is.
    pub at: GpuAddress,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its elements.
    pub count: u64,
}

/// A tensor that is to be drawn.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorDraw {
    /// Where it is.
    pub at: GpuAddress,
    /// Its elements.
    pub count: u64,
    /// How they are drawn.
    pub draw: ElementDraw,
}

/// Bytes on the device, with a key of their own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KeyedBytes {
    /// Where they are.
    pub at: GpuAddress,
    /// How many.
    pub bytes: u64,
    /// The secret that random bytes come from, or that a checksum is made with.
    pub key: u64,
}

/// A copy in another type.
#[derive(Clone, Copy, Debug)]
pub struct TensorCopy {
    /// What is copied.
    pub from: GpuTensor,
    /// Where it goes.
    pub to: GpuAddress,
    /// The type that it gets.
    pub dtype: Dtype,
    /// By how much every element is changed, up or down by a coin toss, and the secret of that.
    pub nudge: Option<(f64, u64)>,
}

#[repr(C)]
struct RawCopy {
    from: u64,
    to: u64,
    n: u64,
    key: u64,
    from_dtype: u32,
    to_dtype: u32,
    nudge: f64,
}

#[repr(C)]
struct RawCompare {
    out: u64,
    reference: u64,
    n: u64,
    out_dtype: u32,
    reference_dtype: u32,
    limits: CompareLimits,
}

/// The variables that say which devices a process sees.
pub const VISIBLE: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"];

/// The number, for this process, of the first device that a process with this list sees.
pub fn number_of(visible: Option<&str>) -> u32 {
    let own = VISIBLE.iter().find_map(|name| std::env::var(name).ok());
    number_among(own.as_deref(), visible)
}

fn number_among(own: Option<&str>, visible: Option<&str>) -> u32 {
    let first = |list: &str| list.split(',').next().unwrap_or_default().trim().to_owned();
    match (own, visible.map(first)) {
        (_, None) => 0,
        (None, Some(first)) => first.parse().unwrap_or(0),
        (Some(own), Some(first)) => {
            let at = own.split(',').position(|name| name.trim() == first);
            at.unwrap_or(0) as u32
        }
    }
}

/// A device and the kernels of the stage.
pub struct GpuStage {
    gpu: Arc<Gpu>,
    facts: GpuFacts,
    draw: GpuKernel,
    fill: GpuKernel,
    checksum: GpuKernel,
    convert: GpuKernel,
    compare: GpuKernel,
    agree: GpuKernel,
    canary: GpuKernel,
    /// Where the lists of a launch go.
    list: GpuRoom,
    /// Where results of a launch are.
    results: GpuRoom,
    /// What is written so that the caches hold nothing else.
    flushed: GpuRoom,
    /// How long a canary takes at most when nothing else runs.
    calm: Duration,
    /// Memory of inputs for which there is no room twice, as long as somebody has it.
    large: Weak<GpuMemory>,
}

/// Memory that grows as needed.
struct GpuRoom {
    at: GpuAddress,
    bytes: u64,
}

impl GpuRoom {
    fn at_least(&mut self, gpu: &Gpu, bytes: u64) -> GpuResult<GpuAddress> {
        if self.bytes < bytes {
            if self.bytes > 0 {
                gpu.free(self.at)?;
            }
            self.bytes = 0;
            self.at = gpu.alloc(bytes.next_power_of_two())?;
            self.bytes = bytes.next_power_of_two();
        }
        Ok(self.at)
    }
}

impl GpuStage {
    /// Opens a device by its number among those that are visible.
    pub fn open(number: u32) -> GpuResult<Self> {
        let gpu = Arc::new(Gpu::open(number)?);
        let names = [c"draw", c"fill", c"checksum", c"convert", c"compare", c"agree", c"canary"];
        let [draw, fill, checksum, convert, compare, agree, canary] =
            gpu.kernels(KERNELS, names)?;
        let facts = GpuFacts {
            name: gpu.name()?,
            architecture: gpu.architecture()?,
            multiprocessors: gpu.multiprocessors()?,
            cache_bytes: gpu.cache_bytes()?,
            memory_bytes: gpu.memory()?.1,
        };
        let [list, results, flushed] = [const { GpuRoom { at: 0, bytes: 0 } }; 3];
        let mut stage = Self {
            gpu,
            facts,
            draw,
            fill,
            checksum,
            convert,
            compare,
            agree,
            canary,
            list,
            results,
            flushed,
            calm: Duration::ZERO,
            large: Weak::new(),
        };
        let mut shortest = Duration::MAX;
        for _ in 0..CANARIES {
            shortest = stage.canary()?.min(shortest);
        }
        stage.calm = (shortest * CANARY_FACTOR).max(shortest + CANARY_MORE);
        Ok(stage)
    }

    /// What is known about the device.
    pub fn facts(&self) -> &GpuFacts {
        &self.facts
    }

    /// The device, for memory.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Whether inputs of this size are in memory that others have, too, one after the other.
    pub fn is_large(&self, bytes: u64) -> bool {
        bytes > self.facts.memory_bytes / LARGE_PART
    }

    /// Memory for inputs. There is no room for large ones twice, so all who need them get the same
    /// memory, and must draw their inputs again when others have used it.
    pub fn input_memory(&mut self, bytes: u64) -> GpuResult<Arc<GpuMemory>> {
        let is_large = self.is_large(bytes);
        let kept = self.large.upgrade().filter(|kept| is_large && kept.bytes() >= bytes);
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let memory = Arc::new(GpuMemory::new(&self.gpu, bytes)?);
        if is_large {
            self.large = Arc::downgrade(&memory);
        }
        Ok(memory)
    }

    /// Draws tensors.
    pub fn draw(&mut self, tensors: &[TensorDraw]) -> GpuResult<()> {
        let longest = tensors.iter().map(|one| one.count).max().unwrap_or(0);
        self.launch_list(self.draw, tensors, longest, None)
    }

    /// Fills with random bytes.
    pub fn randomize(&mut self, parts: &[KeyedBytes]) -> GpuResult<()> {
        let longest = parts.iter().map(|one| one.bytes.div_ceil(8)).max().unwrap_or(0);
        self.launch_list(self.fill, parts, longest, None)
    }

    /// A checksum of each part. Without its key, no one can change bytes and keep the sum.
    pub fn checksums(&mut self, parts: &[KeyedBytes]) -> GpuResult<Vec<u64>> {
        let longest = parts.iter().map(|one| one.bytes.div_ceil(8)).max().unwrap_or(0);
        let mut sums = Vec::with_capacity(parts.len());
        for parts in parts.chunks(ITEMS_MAX) {
            let bytes = 8 * parts.len() as u64;
            let to = self.results.at_least(&self.gpu, bytes)?;
            self.gpu.zero(to, bytes)?;
            self.launch_list(self.checksum, parts, longest, Some(to))?;
            let mut found = vec![0; bytes as usize];
            self.gpu.to_host(to, &mut found)?;
            sums.extend(found.as_chunks().0.iter().map(|eight| u64::from_ne_bytes(*eight)));
        }
        Ok(sums)
    }

    /// Copies tensors in other types.
    pub fn convert(&mut self, copies: &[TensorCopy]) -> GpuResult<()> {
        let raw = |one: &TensorCopy| RawCopy {
            from: one.from.at,
            to: one.to,
            n: one.from.count,
            key: one.nudge.map_or(0, |(_, key)| key),
            from_dtype: dtype_number(one.from.dtype),
            to_dtype: dtype_number(one.dtype),
            nudge: one.nudge.map_or(0.0, |(by, _)| by),
        };
        let longest = copies.iter().map(|one| one.from.count).max().unwrap_or(0);
        let copies: Vec<RawCopy> = copies.iter().map(raw).collect();
        self.launch_list(self.convert, &copies, longest, None)
    }

    /// How far a tensor is from another, which is a reference.
    pub fn measure(
        &mut self,
        out: GpuTensor,
        reference: GpuTensor,
        tolerance: &accuracy::Tolerance,
    ) -> GpuResult<accuracy::ErrorStats> {
        let pairs = [[out, reference]];
        let mut passes = GpuPasses { stage: self, pairs: &pairs };
        accuracy::measure_on(out.count as usize, tolerance, &mut passes)
    }

    /// How much a reference depends on the last bits of its inputs.
    pub fn sensitivity(
        &mut self,
        nudged: GpuTensor,
        reference: GpuTensor,
        epsilon: f64,
    ) -> GpuResult<accuracy::Sensitivity> {
        let pairs = [[nudged, reference]];
        let mut passes = GpuPasses { stage: self, pairs: &pairs };
        accuracy::sensitivity_on(nudged.count as usize, epsilon, &mut passes)
    }

    /// Whether the tensors of each pair are the same within its bound.
    pub fn agree(
        &mut self,
        pairs: &[[GpuTensor; 2]],
        bounds: &[accuracy::CrossBound],
    ) -> GpuResult<Vec<accuracy::CrossCheckResult>> {
        let request = |(pair, bound): (&[GpuTensor; 2], &accuracy::CrossBound)| AgreeRequest {
            n: pair[0].count as usize,
            dtype: pair[0].dtype,
            bound: *bound,
        };
        let requests: Vec<AgreeRequest> = pairs.iter().zip(bounds).map(request).collect();
        accuracy::agree_on(&requests, &mut GpuPasses { stage: self, pairs })
    }

    /// Replaces what is in the caches of the device, and waits until everything is done.
    pub fn flush_cache(&mut self) -> GpuResult<()> {
        let bytes = 2 * self.facts.cache_bytes;
        let at = self.flushed.at_least(&self.gpu, bytes)?;
        self.gpu.zero(at, bytes)?;
        self.gpu.synchronize()
    }

    /// Waits until nothing else runs on the device, about this long at most; returns how long that
    /// took, and whether it was successful.
    pub fn wait_until_idle(&mut self, limit: Duration) -> GpuResult<(Duration, bool)> {
        let start = Instant::now();
        loop {
            let waited = start.elapsed();
            let is_idle = self.canary()? <= self.calm;
            if is_idle || waited >= limit {
                return Ok((waited, is_idle));
            }
        }
    }

    /// How long a kernel that occupies the whole device takes until its end is known here. It is
    /// much longer if something else runs there.
    fn canary(&mut self) -> GpuResult<Duration> {
        let to = self.results.at_least(&self.gpu, 8)?;
        self.gpu.synchronize()?;
        let start = Instant::now();
        let grid = GpuGrid { blocks: self.facts.multiprocessors, items: 1 };
        self.gpu.launch(self.canary, grid, &[CANARY_CYCLES, to])?;
        self.gpu.synchronize()?;
        Ok(start.elapsed())
    }

    /// Launches a kernel on a list of items, the longest of which has this many elements.
    fn launch_list<T>(
        &mut self,
        kernel: GpuKernel,
        list: &[T],
        longest: u64,
        results: Option<GpuAddress>,
    ) -> GpuResult<()> {
        for items in list.chunks(ITEMS_MAX) {
            let bytes = bytes_of(items);
            let at = self.list.at_least(&self.gpu, bytes.len() as u64)?;
            // The copy waits for the launch before it, which may still read the list.
            self.gpu.to_device(at, bytes)?;
            let blocks = longest.div_ceil(u64::from(BLOCK_THREADS) * ELEMENTS_OF_THREAD);
            let most = (BLOCKS_MAX / items.len().max(1) as u64).max(1);
            let blocks = blocks.clamp(1, most) as u32;
            let grid = GpuGrid { blocks, items: items.len() as u32 };
            let args: Vec<u64> = [at].into_iter().chain(results).collect();
            self.gpu.launch(kernel, grid, &args)?;
        }
        Ok(())
    }
}

/// Pairs of tensors that are compared.
struct GpuPasses<'a> {
    stage: &'a mut GpuStage,
    pairs: &'a [[GpuTensor; 2]],
}

impl RunPass for GpuPasses<'_> {
    type Error = GpuError;

    fn run(&mut self, pass: ComparePass, items: &[PassItem]) -> GpuResult<Vec<[f64; FIGURES]>> {
        let raw = |item: &PassItem| {
            let [out, reference] = self.pairs[item.pair];
            RawCompare {
                out: out.at,
                reference: reference.at,
                n: out.count.min(reference.count),
                out_dtype: dtype_number(out.dtype),
                reference_dtype: dtype_number(reference.dtype),
                limits: item.limits,
            }
        };
        let given: Vec<RawCompare> = items.iter().map(raw).collect();
        let mut figures = Vec::with_capacity(items.len());
        for given in given.chunks(COMPARED_MAX) {
            figures.extend(self.stage.compared(pass, given)?);
        }
        Ok(figures)
    }
}

impl GpuStage {
    /// The figures of some pairs, in one launch.
    fn compared(
        &mut self,
        pass: ComparePass,
        given: &[RawCompare],
    ) -> GpuResult<Vec<[f64; FIGURES]>> {
        let longest = given.iter().map(|one| one.n).max().unwrap_or(0);
        let most = (COMPARE_BLOCKS / given.len().max(1) as u64).max(1);
        let blocks = longest.div_ceil(u64::from(BLOCK_THREADS)).clamp(1, most) as u32;
        let mut found = vec![0; given.len() * blocks as usize * FIGURES * 8];
        let to = self.results.at_least(&self.gpu, found.len() as u64)?;
        let bytes = bytes_of(given);
        let at = self.list.at_least(&self.gpu, bytes.len() as u64)?;
        self.gpu.to_device(at, bytes)?;
        let kernel = match pass {
            ComparePass::Squares | ComparePass::Cross => self.agree,
            ComparePass::Largest | ComparePass::Sums | ComparePass::Elements => self.compare,
        };
        let grid = GpuGrid { blocks, items: given.len() as u32 };
        self.gpu.launch(kernel, grid, &[at, pass as u64, to])?;
        self.gpu.to_host(to, &mut found)?;
        let values = found.as_chunks().0.iter().map(|eight| f64::from_ne_bytes(*eight));
        let values: Vec<f64> = values.collect();
        let of_item = |blocks: &[[f64; FIGURES]]| {
            let both = |one: [f64; FIGURES], other: [f64; FIGURES]| {
                std::array::from_fn(|figure| pass.combine(figure, one[figure], other[figure]))
            };
            blocks.iter().copied().reduce(both).unwrap_or_default()
        };
        Ok(values.as_chunks::<FIGURES>().0.chunks(blocks as usize).map(of_item).collect())
    }
}

/// The bytes of plain structures, as the kernels read them.
fn bytes_of<T>(items: &[T]) -> &[u8] {
    // SAFETY: they are read as bytes, and live as long as the slice. All of them consist of
    // integers and floats, whose sizes leave no gap.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), std::mem::size_of_val(items)) }
}

#[cfg(test)]
mod tests;
