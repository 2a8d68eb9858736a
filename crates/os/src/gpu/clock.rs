//! The clock of a device, for a worker: how long the work of a batch takes there.
//!
//! It depends on nothing but the driver, so that the worker for Python can use it, too.

use super::cuda::{
    BLOCK_THREADS, Gpu, GpuAddress, GpuError, GpuEvent, GpuFailure, GpuGrid, GpuHandle, GpuKernel,
    GpuResult, GpuStream,
};
use std::time::Instant;

/// What comes before the work: one kernel reads from every page of a memory, whose addresses the
/// device forgets while another process uses it; the other one keeps the device busy while calls
/// are launched, with one thread of a block that counts and others that wait for it.
const BEFORE: &str = "
.version 6.0
.target sm_50
.address_size 64
.visible .entry touch(.param .u64 at, .param .u64 pages, .param .u64 bytes)
{
    .reg .pred %p;
    .reg .u32 %thread, %threads, %word;
    .reg .u64 %at, %pages, %bytes, %page, %step, %offset;
    ld.param.u64 %at, [at];
    ld.param.u64 %pages, [pages];
    ld.param.u64 %bytes, [bytes];
    mov.u32 %thread, %tid.x;
    mov.u32 %threads, %ntid.x;
    cvt.u64.u32 %page, %thread;
    cvt.u64.u32 %step, %threads;
NEXT:
    setp.ge.u64 %p, %page, %pages;
    @%p bra DONE;
    mul.lo.u64 %offset, %page, %bytes;
    add.u64 %offset, %offset, %at;
    ld.volatile.global.u32 %word, [%offset];
    add.u64 %page, %page, %step;
    bra NEXT;
DONE:
    ret;
}
.visible .entry spin(.param .u64 cycles)
{
    .reg .pred %p, %waits;
    .reg .u32 %thread;
    .reg .u64 %cycles, %start, %now, %passed;
    ld.param.u64 %cycles, [cycles];
    mov.u32 %thread, %tid.x;
    setp.ne.u32 %waits, %thread, 0;
    @%waits bra END;
    mov.u64 %start, %clock64;
AGAIN:
    mov.u64 %now, %clock64;
    sub.u64 %passed, %now, %start;
    setp.lt.u64 %p, %passed, %cycles;
    @%p bra AGAIN;
END:
    bar.sync 0;
    ret;
}
";

/// Bytes of a page: of the smallest that a device has for large memory; and of a line of its cache.
const PAGE_BYTES: u64 = 1 << 16;
const LINE_BYTES: u64 = 1 << 7;

/// Blocks that read from every page: one for each multiprocessor, and more, since each remembers
/// addresses of its own.
const TOUCH_BLOCKS: u32 = 264;

/// For how long it is kept busy at least. A process that was frozen takes that long to launch its
/// first kernel, and never equally long.
const SPIN_NS: u64 = 300_000;

/// And at most.
const SPIN_NS_MAX: u64 = 50_000_000;

/// How much later than its last event the device may become idle: in nanoseconds, and as a part of
/// the work.
const BESIDE_NS_MAX: u64 = 100_000;
const BESIDE_SHARE: u64 = 20;

/// Cycles of a nanosecond, about.
const CYCLES_PER_NS: u64 = 2;

/// What a worker does on a device besides calling its kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOptions {
    /// Whether the calls of a batch are captured first, and then launched at once.
    pub captures: bool,
    /// Whether everything is read before the work, so that it is in the cache.
    pub warms: bool,
}

/// What a batch took on a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceBatch {
    /// The work on the device, in nanoseconds.
    pub device_ns: u64,
    /// Launching it, on the host.
    pub launch_ns: u64,
}

/// A device that times the work of a worker.
pub struct GpuClock {
    /// The device.
    pub gpu: Gpu,
    touch: GpuKernel,
    spin: GpuKernel,
    first: GpuEvent,
    last: GpuEvent,
    idle: GpuEvent,
    /// Where the work reads and writes, and how many bytes.
    memories: Vec<(GpuAddress, u64)>,
    /// Blocks that leave no room on the device for others.
    blocks: u32,
    /// Every how many bytes it is read before the work.
    step: u64,
    /// The stream that is captured, if one is.
    stream: Option<GpuStream>,
}

impl GpuClock {
    /// Opens the first device that is visible.
    pub fn open(options: ClockOptions) -> GpuResult<Self> {
        let gpu = Gpu::open(0)?;
        let [touch, spin] = gpu.kernels(BEFORE, [c"touch", c"spin"])?;
        let (first, last, idle) = (gpu.event()?, gpu.event()?, gpu.event()?);
        let stream = options.captures.then(|| gpu.stream()).transpose()?;
        let step = if options.warms { LINE_BYTES } else { PAGE_BYTES };
        let blocks = gpu.multiprocessors()? * gpu.threads_per_multiprocessor()? / BLOCK_THREADS;
        Ok(Self { gpu, touch, spin, first, last, idle, memories: Vec::new(), blocks, step, stream })
    }

    /// Opens memory of another process, of this many bytes, by the text of its handle.
    pub fn open_shared(&mut self, text: &str, bytes: u64) -> GpuResult<GpuAddress> {
        let unreadable = || GpuError {
            kind: GpuFailure::Missing,
            code: 0,
            text: "a handle of memory is unreadable".to_owned(),
        };
        let at = self.gpu.open_shared(GpuHandle::parse(text).ok_or_else(unreadable)?)?;
        self.memories.push((at, bytes));
        Ok(at)
    }

    /// The stream that the kernel must use, if not the default one.
    pub fn stream(&self) -> u64 {
        self.stream.map_or(0, |stream| stream.0 as u64)
    }

    /// Runs the calls of a batch, and returns how long they took. The device is kept busy for this
    /// long before its work begins, and no other work fits on it meanwhile: what is launched beside
    /// a capture must wait, too.
    pub fn time<E: From<GpuError>>(
        &self,
        cover_ns: u64,
        calls: impl FnOnce() -> Result<(), E>,
    ) -> Result<DeviceBatch, E> {
        self.start(cover_ns)?;
        let start = Instant::now();
        let Some(stream) = self.stream else {
            calls()?;
            let launch_ns = start.elapsed().as_nanos() as u64;
            return Ok(DeviceBatch { device_ns: self.finish()?, launch_ns });
        };
        self.gpu.begin_capture(stream)?;
        let called = calls();
        // A failed call ends the capture as well.
        let graph = self.gpu.end_capture(stream);
        called?;
        let graph = graph?;
        let launched = self.gpu.launch_graph(&graph, stream);
        let launch_ns = start.elapsed().as_nanos() as u64;
        let timed = launched.and_then(|()| self.finish());
        self.gpu.destroy(graph)?;
        Ok(DeviceBatch { device_ns: timed?, launch_ns })
    }

    /// Adds work to the calls that takes this long.
    pub fn spin(&self, ns: u64) -> GpuResult<()> {
        let cycles = ns.min(SPIN_NS_MAX) * CYCLES_PER_NS;
        let stream = self.stream.unwrap_or(GpuStream(0));
        self.gpu.launch_on(stream, self.spin, GpuGrid { blocks: 1, items: 1 }, &[cycles])
    }

    /// The work begins after a while in which it can be launched.
    fn start(&self, cover_ns: u64) -> GpuResult<()> {
        for (at, bytes) in &self.memories {
            let grid = GpuGrid { blocks: TOUCH_BLOCKS, items: 1 };
            self.gpu.launch(self.touch, grid, &[*at, bytes / self.step, self.step])?;
        }
        let cycles = SPIN_NS.saturating_add(cover_ns).min(SPIN_NS_MAX) * CYCLES_PER_NS;
        self.gpu.launch(self.spin, GpuGrid { blocks: self.blocks, items: 1 }, &[cycles])?;
        self.gpu.record(self.first)
    }

    /// Waits for the work of all streams, and returns how long it took in nanoseconds. An event
    /// does not wait for all of them, so there is another one when nothing runs any more; that is
    /// less precise.
    fn finish(&self) -> GpuResult<u64> {
        self.gpu.record(self.last)?;
        self.gpu.synchronize()?;
        self.gpu.record(self.idle)?;
        self.gpu.synchronize()?;
        let work = self.gpu.elapsed_ns(self.first, self.last)?;
        let all = self.gpu.elapsed_ns(self.first, self.idle)?;
        let late = BESIDE_NS_MAX.max(work / BESIDE_SHARE);
        Ok(if all > work + late { all } else { work })
    }
}
