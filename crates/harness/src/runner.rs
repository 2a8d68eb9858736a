//! The kernel runner: runs two kernels in workers that karve owns.
//!
//! karve derives the inputs from a secret, different for every call and the same bytes for both
//! arms; it times the calls; it checks the outputs, on every timed call against the other arm,
//! and on a few secretly chosen ones against the reference. An arm that is not called is frozen.
//!
//! ```text
//! setup     where kernel and reference come from, and how a worker is started
//! buffers   buffers: inputs, poison and guards, and the outputs that the arms write
//! memory    the memory behind them, on the host or on a device
//! arm       one worker: woken, called, timed, frozen
//! batch_timing how long a turn took
//! worker_failure why a worker can no longer be used
//! worker_text what may pass of what a worker says
//! reference the reference
//! check     whether an output is correct
//! correctness the correctness check: everything that must hold before a kernel is timed
//! duel      the pairs of a duel        clocks   whether all clocks agree
//! block_cost  the batches of a block   affinity the CPU affinity of both arms
//! arms      both workers of a duel     ahead    whether a kernel works for later calls
//! census    the threads and open files of a worker
//! memory_growth whether a candidate keeps ever more memory
//! overhead_charge what a candidate is charged for the time around its batches
//! protocol  the messages        worker   the worker's side of the protocol
//! python    the worker for modules in Python, and how it is started; its side of the protocol is
//!           in crates/os/python_worker
//! inputs    asks the reference's module for its arguments
//! play      plays one case as a program, for a profiler
//! probe     how far a function reaches into its arguments
//! ```

mod affinity;
mod ahead;
mod arm;
mod arms;
mod batch_timing;
mod block_cost;
mod buffers;
mod census;
mod check;
mod clocks;
mod correctness;
mod duel;
mod duel_case;
mod fork_servers;
mod hogging;
mod inputs;
mod launch_cover;
mod left_running;
mod memory;
mod memory_growth;
mod overhead_charge;
mod play;
mod probe;
mod protocol;
mod python;
mod reference;
mod setup;
mod solo;
mod start;
mod worker;
mod worker_failure;
mod worker_text;

pub use correctness::{check_beside_original, check_kernel};
pub use duel::KernelRunner;
pub use duel_case::{DuelCase, DuelTime};
pub use inputs::{ask_inputs, parse_inputs};
pub use play::{PLAYED_CALLS, PlayFiles, play, prepare as prepare_play};
pub use probe::{ProbeArg, ProbeReport, ProbeRequest, ProbedTensor, probe, serve_probe};
pub use setup::RunnerSetup;
pub use solo::{KernelScreen, SoloKernel, calls_for, handover, reading, solo_kernels};
pub use start::{check_baselines, no_baseline, no_reference};
pub use worker::{serve, serve_unconfined};
pub use worker_text::WORKER_OUTPUT;

/// For the fuzzing tests: whether a message can be read, as either side of the protocol reads it.
#[doc(hidden)]
pub fn reads_message(message: &[u8]) -> bool {
    let nonce = message.get(1..9).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let reply = protocol::WorkerReply::parse(message, nonce.unwrap_or_default());
    protocol::WorkerRequest::parse(message).is_ok() || reply.is_ok()
}
