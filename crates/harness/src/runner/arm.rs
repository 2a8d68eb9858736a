//! One arm of the kernel runner: a worker with a kernel, and the memory that the kernel writes.
//!
//! A turn is: wake it, check that it is awake, start the clock, send the request, wait for the
//! reply, stop the clock, freeze it. Nothing of it runs between two turns. Its CPU time is that of
//! all its threads, read by karve when they are frozen, so work deferred past the reply counts too:
//! a turn takes at least that long. What it does while waking up, before the clock starts, is added
//! to the time: the inputs are already there, and a signal handler could compute all results. A
//! module on a device prepares its arguments before the timed part and returns its outputs after
//! it; karve times both, since work could be hidden there.

use super::batch_timing::BatchTiming;
use super::census::census_of;
use super::fork_servers;
use super::memory::ArmMemory;
use super::protocol::{
    BatchExtra, CallSetup, CallSlot, MESSAGE_BYTES_MAX, ModuleOptions, WireArg, WorkerHello,
    WorkerReply, WorkerRequest,
};
use super::worker_failure::{WorkerFailure, WorkerResult};
use super::worker_text::{self, WorkerNames};
use karve_core::measurement::Gate;
use karve_numerics::contract::{CallLayout, Contract, SlotRange};
use karve_os::error::{Result, WithContext};
use karve_os::process::{
    ChildProcess, Command, Exit, ReadableTree, ReceiveResult, StopFlag, StopResult,
};
use karve_os::random::secret;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a worker may take to load its kernel.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The same if the limit of a command is shorter: an interpreter with its libraries needs this.
const START_LIMIT_MIN: Duration = Duration::from_secs(20);

/// All waits of one case together have the limit of a command. If that is short, they have up to
/// this many times more, but not more than this long.
const SHORT_LIMIT_FACTOR: u32 = 6;
const SHORT_LIMIT_TOTAL: Duration = Duration::from_secs(120);

/// How long a process that has closed its connection may take to end, so that its exit is known.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// How long it may take to wake up.
const WAKE_LIMIT: Duration = Duration::from_secs(10);

/// A worker with its memory.
#[derive(Debug)]
pub(super) struct KernelWorker {
    child: ChildProcess,
    buffer: Vec<u8>,
    limit: Duration,
    /// How long karve has waited for it since `renew_limit`.
    waited: Duration,
    phases: BatchMode,
    passes_outputs: bool,
    has_setup: bool,
    addresses: SlotAddresses,
    names: WorkerNames,
}

/// Where a module finds the memory of its next calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotAddresses {
    /// Somewhere else than ever before: what it kept of earlier arguments is gone.
    Fresh,
    /// Where it was.
    Kept,
}

/// The parts of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchMode {
    /// A batch.
    Batch,
    /// A worker prepares, then runs a batch.
    Staged,
    /// A worker prepares, then runs a batch on a device, then copies the results to karve's memory.
    OnDevice,
}

/// What is loaded.
#[derive(Clone, Debug)]
pub(super) struct WorkerProgram {
    /// What starts the worker.
    pub(super) command: Command,
    /// The shared object or module, as the worker finds it.
    pub(super) path: String,
    /// The same as `karve.toml` names it.
    pub(super) shown: String,
    /// The function.
    pub(super) entry: String,
    /// The function that prepares for calls, if there is one.
    pub(super) setup: Option<String>,
    /// How a module is loaded; none for a shared object.
    pub(super) module: Option<ModuleOptions>,
    /// Whether the kernel gets its outputs as arguments, as a function of a shared object does.
    pub(super) passes_outputs: bool,
    /// What the worker is forked from instead, if anything.
    pub(super) server: Option<Command>,
    /// What it may read.
    pub(super) tree: ReadableTree,
    /// Where its text is kept for the user.
    pub(super) scratch: PathBuf,
}

impl WorkerProgram {
    fn names(&self) -> WorkerNames {
        WorkerNames {
            path: self.path.clone(),
            shown: self.shown.clone(),
            entry: self.entry.clone(),
            setup: self.setup.clone(),
            scratch: self.scratch.clone(),
        }
    }

    fn phases(&self) -> BatchMode {
        match &self.module {
            None => BatchMode::Batch,
            Some(ModuleOptions { device: None, .. }) => BatchMode::Staged,
            Some(ModuleOptions { device: Some(_), .. }) => BatchMode::OnDevice,
        }
    }
}

impl KernelWorker {
    /// Starts a worker and lets it load its kernel. It is frozen afterward.
    pub(super) fn start(
        program: &WorkerProgram,
        memory: &ArmMemory,
        limit: Duration,
        stop: &StopFlag,
    ) -> WorkerResult<Self> {
        Self::begin(program, memory, limit, stop)?.ready()
    }

    /// Starts a worker that loads its kernel in the background.
    pub(super) fn begin(
        program: &WorkerProgram,
        memory: &ArmMemory,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<StartingWorker> {
        let child = match &program.server {
            None => ChildProcess::start(&program.command, stop)?,
            Some(server) => fork_servers::forked(server, &program.command, stop)?,
        };
        let mut arm = Self {
            child,
            buffer: vec![0; MESSAGE_BYTES_MAX],
            limit,
            waited: Duration::ZERO,
            phases: program.phases(),
            passes_outputs: program.passes_outputs,
            has_setup: program.setup.is_some(),
            addresses: SlotAddresses::Fresh,
            names: program.names(),
        };
        let hello = WorkerRequest::Hello(WorkerHello {
            path: program.path.clone(),
            entry: program.entry.clone(),
            setup: program.setup.clone(),
            input_bytes: memory.sizes.input,
            output_bytes: memory.sizes.output,
            tree: program.tree.clone(),
            module: program.module.clone(),
            device: memory.device_hello(),
        });
        let nonce = secret()?;
        let sent = arm.child.send(&hello.render(nonce), &memory.fds());
        let sent = sent.map_err(|_| arm.ended());
        Ok(StartingWorker { arm, nonce, sent })
    }

    /// Kills its process.
    pub(super) fn end(&mut self) {
        self.child.end();
    }

    /// From now on it may again take the whole limit. All waits until then count together, so that
    /// many that are almost too long cannot delay a round.
    pub(super) fn renew_limit(&mut self) {
        self.waited = Duration::ZERO;
    }

    /// Sets where it finds the memory of following calls.
    pub(super) fn place(&mut self, addresses: SlotAddresses) {
        self.addresses = addresses;
    }

    /// How much longer karve waits for it.
    fn left(&self) -> Duration {
        let short = SHORT_LIMIT_TOTAL.min(self.limit * SHORT_LIMIT_FACTOR);
        self.limit.max(short).saturating_sub(self.waited).min(self.limit)
    }

    /// Sets the arguments of all following calls, in at most this many slots. A kernel with a setup
    /// prepares for all of them, from what is in their inputs now: the rest of these is drawn
    /// afterward.
    pub(super) fn set_up(
        &mut self,
        contract: &Contract,
        layout: &CallLayout,
        n_slots: u32,
    ) -> WorkerResult<()> {
        self.child.thaw();
        let mut setup = CallSetup::of(contract, layout);
        if self.passes_outputs {
            setup.args.iter_mut().for_each(WireArg::pass);
        }
        let mut limit = WAKE_LIMIT;
        if self.has_setup {
            setup.prepare(contract, n_slots);
            limit = self.limit;
        }
        self.ask(&WorkerRequest::Setup(setup), limit)?;
        self.freeze()
    }

    /// Makes these parts of both memories inaccessible to it, and all others accessible again.
    pub(super) fn fence(&mut self, fences: [Vec<SlotRange>; 2]) -> WorkerResult<()> {
        self.child.thaw();
        self.ask(&WorkerRequest::Fence(fences), WAKE_LIMIT)?;
        self.freeze()
    }

    /// Calls the kernel once for each slot.
    pub(super) fn run_batch(&mut self, slots: &[CallSlot]) -> WorkerResult<BatchTiming> {
        self.run_batch_with(slots, BatchExtra::default())
    }

    /// The same, with more to do.
    pub(super) fn run_batch_with(
        &mut self,
        slots: &[CallSlot],
        extra: BatchExtra,
    ) -> WorkerResult<BatchTiming> {
        let question = WorkerRequest::Batch { slots: slots.to_vec(), extra };
        let nonce = secret()?;
        let message = question.render(nonce);
        let cpu_asleep = self.cpu_time()?;
        self.wake()?;
        let cpu_awake = self.cpu_time()?;
        let before = self.fill(slots)?;
        let cpu_before = self.cpu_time()?;
        let limit = self.left();
        let start = Instant::now();
        self.child.send(&message, &[]).map_err(|_| self.ended())?;
        let heard = self.child.receive(&mut self.buffer, limit);
        let wall = start.elapsed();
        self.waited += wall;
        // Results on a device are copied before its process is frozen.
        let stood = (self.phases != BatchMode::OnDevice).then(|| self.stop());
        let reported = match self.read(heard, nonce)? {
            WorkerReply::Finished(reported) => reported,
            WorkerReply::Failed(said) => return Err(self.refused(said).into()),
            WorkerReply::Done => {
                return Err(WorkerFailure::Garbled("a reply of the wrong kind").into());
            }
        };
        stood.map(|stood| self.frozen(stood)).transpose()?;
        let cpu_after = self.cpu_time()?;
        let after = self.bring()?;
        self.expect_silence()?;
        let woken = cpu_awake.saturating_sub(cpu_asleep);
        Ok(BatchTiming {
            wall,
            woken,
            cpu: woken + cpu_after.saturating_sub(cpu_before),
            late: Duration::ZERO,
            worker_timing: reported,
            before,
            after,
            cover: Duration::from_nanos(extra.cover_ns),
            left: Duration::ZERO,
        })
    }

    fn cpu_time(&mut self) -> WorkerResult<Duration> {
        Ok(self.child.cpu_time().map_err(|_| self.ended())?)
    }

    /// Lets it prepare its arguments; returns how long that took.
    fn fill(&mut self, slots: &[CallSlot]) -> WorkerResult<Duration> {
        match self.phases {
            BatchMode::Batch => Ok(Duration::ZERO),
            BatchMode::Staged | BatchMode::OnDevice => {
                let place = match (self.phases, self.addresses) {
                    (BatchMode::Staged, SlotAddresses::Fresh) => secret()?.max(1),
                    _ => 0,
                };
                self.timed(&WorkerRequest::Fill { slots: slots.to_vec(), place })
            }
        }
    }

    /// Copies results on the device; returns how long that took. It is frozen afterward.
    fn bring(&mut self) -> WorkerResult<Duration> {
        if self.phases != BatchMode::OnDevice {
            return Ok(Duration::ZERO);
        }
        let took = self.timed(&WorkerRequest::Fetch)?;
        self.freeze()?;
        Ok(took)
    }

    /// Sends a request, and returns how long it took. Without a device that is CPU time, which a
    /// busy host cannot stretch.
    fn timed(&mut self, question: &WorkerRequest) -> WorkerResult<Duration> {
        let cpu = self.cpu_time()?;
        let start = Instant::now();
        self.ask(question, self.limit)?;
        Ok(match self.phases {
            BatchMode::OnDevice => start.elapsed(),
            BatchMode::Batch | BatchMode::Staged => self.cpu_time()?.saturating_sub(cpu),
        })
    }

    /// Lets it run without a request for a while, as one that defers its work would need.
    pub(super) fn idle(&mut self, time: Duration) -> WorkerResult<()> {
        self.wake()?;
        std::thread::sleep(time);
        self.freeze()
    }

    /// Stops all its threads.
    fn freeze(&mut self) -> WorkerResult<()> {
        let stood = self.stop();
        self.frozen(stood)
    }

    fn stop(&mut self) -> StopResult {
        let start = Instant::now();
        let stood = self.child.freeze();
        self.waited += start.elapsed();
        stood
    }

    fn frozen(&mut self, stood: StopResult) -> WorkerResult<()> {
        match stood {
            StopResult::Still => Ok(()),
            StopResult::Gone => Err(self.ended().into()),
            StopResult::Restless => {
                self.child.end();
                Err(WorkerFailure::Restless.into())
            }
        }
    }

    /// How many threads it has, and how many open files, while it is frozen.
    pub(super) fn census(&self) -> std::result::Result<(usize, usize), Gate> {
        census_of(self.child.pid())
    }

    /// Whether processes that it started still run: they are not frozen with it.
    pub(super) fn check_children(&self) -> std::result::Result<(), Gate> {
        match self.child.has_children() {
            false => Ok(()),
            true => {
                let why = "it left a process running: compilers must have ended with the call";
                Err(Gate::Dishonest { why: why.into() })
            }
        }
    }

    /// Bytes of its private memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.child.memory_bytes()
    }

    fn wake(&mut self) -> WorkerResult<()> {
        self.expect_silence()?;
        self.child.thaw();
        self.ask(&WorkerRequest::Ping, WAKE_LIMIT)
    }

    /// Fails if it sent something that was not requested.
    fn expect_silence(&self) -> WorkerResult<()> {
        let thrown = self.child.discard_messages();
        match thrown.context(|| "cannot receive from a worker".to_owned())? {
            0 => Ok(()),
            _ => Err(WorkerFailure::Garbled("more messages than expected").into()),
        }
    }

    /// Sends a request, and waits until it is done.
    fn ask(&mut self, question: &WorkerRequest, limit: Duration) -> WorkerResult<()> {
        let nonce = secret()?;
        self.child.send(&question.render(nonce), &[]).map_err(|_| self.ended())?;
        let limit = limit.min(self.left());
        self.done(nonce, limit)
    }

    /// Waits for a reply without a value.
    fn done(&mut self, nonce: u64, limit: Duration) -> WorkerResult<()> {
        let start = Instant::now();
        let heard = self.child.receive(&mut self.buffer, limit);
        self.waited += start.elapsed();
        match self.read(heard, nonce)? {
            WorkerReply::Done => Ok(()),
            WorkerReply::Failed(said) => Err(self.refused(said).into()),
            WorkerReply::Finished(_) => {
                Err(WorkerFailure::Garbled("a reply of the wrong kind").into())
            }
        }
    }

    fn read(&mut self, heard: io::Result<ReceiveResult>, nonce: u64) -> WorkerResult<WorkerReply> {
        match heard {
            Ok(ReceiveResult::Message(bytes)) => {
                let answer = WorkerReply::parse(&self.buffer[..bytes], nonce);
                Ok(answer.map_err(|garbled| WorkerFailure::Garbled(garbled.0))?)
            }
            Ok(ReceiveResult::Nothing) => Err(WorkerFailure::TooLong.into()),
            Ok(ReceiveResult::TooMuch(limit)) => {
                let (_, stderr) = self.child.end();
                Err(self.ended_as(Exit::TooMuch(limit), &stderr).into())
            }
            Ok(ReceiveResult::Gone) | Err(_) => Err(self.ended().into()),
        }
    }

    fn ended(&mut self) -> WorkerFailure {
        self.child.wait_for_exit(EXIT_LIMIT);
        let (exit, stderr) = self.child.end();
        if let Some("numpy" | "native") = stderr.lines().next() {
            return self.refused(stderr);
        }
        self.ended_as(exit, &stderr)
    }

    fn ended_as(&self, exit: Exit, stderr: &str) -> WorkerFailure {
        let told = format!("{}\n{stderr}", exit.describe());
        WorkerFailure::Ended { exit, stderr: worker_text::kept(&self.names, &told) }
    }

    fn refused(&self, whole: String) -> WorkerFailure {
        let shown = worker_text::passed(&self.names, &whole);
        WorkerFailure::Refused { shown, whole: worker_text::kept(&self.names, &whole) }
    }
}

/// A worker that loads its kernel.
#[derive(Debug)]
pub(super) struct StartingWorker {
    arm: KernelWorker,
    nonce: u64,
    sent: std::result::Result<(), WorkerFailure>,
}

impl StartingWorker {
    /// Waits until it has loaded its kernel. It is frozen afterward.
    pub(super) fn ready(self) -> WorkerResult<KernelWorker> {
        let Self { mut arm, nonce, sent } = self;
        sent?;
        arm.done(nonce, START_LIMIT.min(arm.limit.max(START_LIMIT_MIN)))?;
        arm.freeze()?;
        arm.renew_limit();
        Ok(arm)
    }
}
