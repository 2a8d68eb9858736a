//! How long a turn took, and what counts as its time.

use super::protocol::WorkerTiming;
use std::time::Duration;

/// One turn, by karve's clocks and by the worker's report.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchTiming {
    /// From the request to the reply.
    pub(super) wall: Duration,
    /// CPU time of all threads from when they were resumed until the request.
    pub(super) woken: Duration,
    /// CPU time of all threads from when they were resumed until they were frozen.
    pub(super) cpu: Duration,
    /// CPU time beyond what the allowed threads could use until the reply.
    pub(super) late: Duration,
    /// What the worker's own clocks reported.
    pub(super) worker_timing: WorkerTiming,
    /// How long preparing before the batch took: CPU time, or wall time with a device.
    pub(super) before: Duration,
    /// How long copying results on a device took, after the batch.
    pub(super) after: Duration,
    /// How long a device was kept busy first.
    pub(super) cover: Duration,
    /// How long work was left running on a device.
    pub(super) left: Duration,
}

impl BatchTiming {
    /// How long the turn took: from the request to the reply, plus work before and after it.
    pub(super) fn time(&self) -> Duration {
        self.wall + self.woken + self.late + self.left
    }

    /// How long the kernel worked: CPU time, which a busy host cannot stretch, or on a device the
    /// time there as its own clock shows it.
    pub(super) fn work(&self) -> Duration {
        match self.worker_timing.device_ns {
            0 => self.cpu,
            ns => Duration::from_nanos(ns),
        }
    }

    /// Charges for work that went on after the reply, or in more threads than allowed: a turn takes
    /// at least as long as its CPU time, spread over these threads. A system call that cannot be
    /// interrupted, for example, runs on until it ends, and only then does the process stop.
    pub(super) fn charge_late(&mut self, threads: u32) {
        let least = self.cpu / threads.max(1);
        self.late = least.saturating_sub(self.wall + self.woken);
    }

    /// How long preparing the batch and returning its outputs took.
    pub(super) fn around(&self) -> Duration {
        self.before + self.after
    }

    /// Adds part of the work done before the request.
    pub(super) fn count_before(&mut self, time: Duration) {
        self.woken += time;
        self.cpu += time;
    }
}
