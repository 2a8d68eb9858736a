//! The device while it is measured: one karve at a time, on a calm host, with steady clocks.
//!
//! A [`DeviceSession`] wraps every block: it takes the lease, locks the clocks if the charter says
//! so, waits for a calm host within bounds, and records the conditions. Verdicts are valid without
//! any of it; it only adds statistical power, so nothing here ever refuses a measurable block.
//!
//! ```text
//! lease    one karve at a time on a device
//! clocks   commands that lock the clocks, undone whatever happens
//! pause    waits with a reason and a bound
//! cpu      load, pressure and frequency, from kernel files
//! gpu      clocks, temperature and throttling, from the vendor's tool
//! ```

pub mod clocks;
pub mod cpu;
pub mod gpu;
pub mod lease;
mod pause;

use crate::error::{CommandError, Result};
use crate::host;
use crate::process::StopFlag;
use clocks::{DeviceClocks, LeftoverLock};
use cpu::{CpuClock, CpuFiles};
use karve_core::charter::{Charter, DeviceRule, Pin};
use karve_core::measurement::{Conditions, Environment, Pause, PauseReason};
use karve_core::pause::PauseBudget;
use lease::{Lease, LeaseRequest};
use pause::{PauseBackoff, PressureLimit};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Something a person may want to know while a block is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// A status for a line that is overwritten: why nothing seems to happen.
    Passing(&'a str),
    /// A message that stays visible.
    Lasting(&'a str),
}

/// Where notices go.
#[derive(Clone)]
pub struct NoticeSink(Arc<dyn Fn(Notice<'_>) + Send + Sync>);

impl NoticeSink {
    /// Passes everything to `hear`.
    pub fn new(hear: impl Fn(Notice<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Passes a notice on as it is.
    pub fn pass(&self, said: Notice<'_>) {
        (self.0)(said);
    }

    /// Sends a status.
    pub fn mention(&self, text: &str) {
        (self.0)(Notice::Passing(text));
    }

    /// Sends a message that stays visible.
    pub fn notify(&self, text: &str) {
        (self.0)(Notice::Lasting(text));
    }
}

/// Discards everything.
impl Default for NoticeSink {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl Notice<'_> {
    /// The sentence.
    pub fn text(&self) -> &str {
        match self {
            Self::Passing(text) | Self::Lasting(text) => text,
        }
    }
}

impl fmt::Debug for NoticeSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}

/// The device of a campaign while it is measured.
#[derive(Debug)]
pub struct DeviceSession {
    rule: DeviceRule,
    device: String,
    holder: String,
    files: CpuFiles,
    clock: CpuClock,
    gpu: gpu::GpuMonitor,
    pinned: Vec<usize>,
    clocks: Option<DeviceClocks>,
    lease: Option<Lease>,
    budget: PauseBudget,
    pressure: PauseBackoff,
    throttling: PauseBackoff,
    environment: Option<String>,
    /// All waits since the last query.
    waited: Duration,
}

impl DeviceSession {
    /// The device of a charter. Commands that lock clocks run in `dir`; `campaign` is the
    /// campaign's directory. Clocks that an earlier process left locked are unlocked.
    pub fn new(
        charter: &Charter,
        campaign: &Path,
        dir: &Path,
        notices: &NoticeSink,
    ) -> Result<Self> {
        let files = CpuFiles::default();
        let pinned = cpus_of(&charter.device.pin)?;
        let clocks = DeviceClocks::new(charter, campaign, dir);
        if let Some(clocks) = &clocks
            && clocks.undo_leftover(clocks::LEFTOVER_LIMIT, notices)? == LeftoverLock::Undone
        {
            notices.notify("unlocked the clocks that an earlier karve process had left locked");
        }
        Ok(Self {
            rule: charter.device.clone(),
            device: charter.leased().to_owned(),
            holder: charter.name.clone(),
            clock: CpuClock::new(&files, pinned.first().copied().unwrap_or(0)),
            files,
            gpu: gpu::GpuMonitor::new(charter),
            pinned,
            clocks,
            lease: None,
            budget: PauseBudget::new(&charter.device),
            pressure: PauseBackoff::default(),
            throttling: PauseBackoff::default(),
            environment: None,
            waited: Duration::ZERO,
        })
    }

    /// Facts about the host that are already known and need not be queried again.
    pub fn knows(&mut self, environment: &Environment) {
        self.environment = Some(host::fingerprint(environment));
    }

    /// Starts a new duel, with its own pauses.
    pub fn begin_duel(&mut self) {
        self.budget.renew();
    }

    /// Prepares the device for a block, and returns its conditions. The lease is held until
    /// [`DeviceSession::after_block`].
    pub fn before_block(&mut self, stop: &StopFlag, notices: &NoticeSink) -> Result<Conditions> {
        let environment = match &self.environment {
            Some(known) => known.clone(),
            None => {
                self.knows(&host::environment(stop));
                self.environment.clone().unwrap_or_default()
            }
        };
        let mut pauses = Vec::new();
        let mut note = |why, waited: Duration| {
            let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            if waited_ms > 0 {
                pauses.push(Pause { why, waited_ms });
            }
        };
        if self.lease.is_none() {
            let wish = LeaseRequest {
                device: &self.device,
                holder: &self.holder,
                limit: Duration::from_secs(self.rule.lease_wait_s),
            };
            let (lease, waited) = lease::take(&wish, stop, notices)?;
            self.lease = lease;
            note(PauseReason::Lease, waited);
        }
        if let Some(clocks) = &mut self.clocks {
            clocks.lock(stop, notices)?;
        }
        note(PauseReason::Throttling, self.cool_down(stop, notices));
        let limit = PressureLimit { read: &|| self.files.pressure(), max: self.rule.pressure_max };
        let (backoff, budget) = (&mut self.pressure, &mut self.budget);
        let waited = pause::for_pressure(backoff, budget, &limit, stop, notices);
        note(PauseReason::Pressure, waited);
        let waited_ms = pauses.iter().map(|pause| pause.waited_ms).sum();
        self.waited += Duration::from_millis(waited_ms);
        Ok(self.conditions(environment, pauses, stop))
    }

    /// Releases the device to others.
    pub fn after_block(&mut self) {
        self.lease = None;
    }

    /// How long blocks have waited since the last call. This is not counted as campaign work.
    pub fn waited(&mut self) -> Duration {
        std::mem::take(&mut self.waited)
    }

    /// Releases everything; the next block acquires it again.
    pub fn close(&mut self, notices: &NoticeSink) {
        self.after_block();
        if let Some(clocks) = &mut self.clocks {
            clocks.unlock(notices);
        }
    }

    /// Waits while the GPU is throttled by heat or by its power supply.
    fn cool_down(&mut self, stop: &StopFlag, notices: &NoticeSink) -> Duration {
        let hot = |said: Option<&_>| {
            let reasons = said.map(gpu::worth_waiting).unwrap_or_default();
            (!reasons.is_empty()).then(|| format!("the GPU is throttled: {}", reasons.join(", ")))
        };
        if !self.throttling.is_awake() || hot(self.gpu.look(stop)).is_none() {
            return Duration::ZERO;
        }
        let gpu = &mut self.gpu;
        let holds = &mut || hot(gpu.ask(stop));
        self.throttling.wait(&mut self.budget, stop, notices, holds)
    }

    fn conditions(
        &mut self,
        environment: String,
        pauses: Vec<Pause>,
        stop: &StopFlag,
    ) -> Conditions {
        let (governor, cpu_mhz) = self.clock.look();
        Conditions {
            host: Some(host::name()),
            load: self.files.load(),
            pressure: self.files.pressure().map(|now| now.avg10),
            governor,
            cpu_mhz,
            gpu: self.gpu.look(stop).cloned(),
            pinned: self.pinned.clone(),
            pauses,
            environment: Some(environment),
        }
    }
}

/// The lease of a charter's device, for a command that measures outside a campaign. Waits for
/// another holder as long as the charter says.
pub fn lease_for(
    charter: &Charter,
    command: &str,
    stop: &StopFlag,
    notices: &NoticeSink,
) -> Result<Option<Lease>> {
    let wish = LeaseRequest {
        device: charter.leased(),
        holder: command,
        limit: Duration::from_secs(charter.device.lease_wait_s),
    };
    Ok(lease::take(&wish, stop, notices)?.0)
}

/// The lease of a device, for a command that measures without a project.
pub fn lease_of(
    device: &str,
    command: &str,
    stop: &StopFlag,
    notices: &NoticeSink,
) -> Result<Option<Lease>> {
    let wish = LeaseRequest {
        device,
        holder: command,
        limit: Duration::from_secs(DeviceRule::LEASE_WAIT_S),
    };
    Ok(lease::take(&wish, stop, notices)?.0)
}

/// The CPUs that a benchmark is pinned to; none if it may run on all. Refuses CPUs that karve may
/// not use.
pub fn cpus_of(pin: &Pin) -> Result<Vec<usize>> {
    let allowed = cpu::allowed();
    match pin {
        Pin::No => Ok(Vec::new()),
        Pin::Auto if allowed.len() < 2 => Ok(Vec::new()),
        Pin::Auto => Ok(allowed.last().copied().into_iter().collect()),
        Pin::Cpus { cpus } => match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            None => Ok(cpus.clone()),
            Some(cpu) => Err(CommandError::environment(format!("karve may not use CPU {cpu}"))
                .hint("fix device.pin in karve.toml; \"taskset -p $$\" shows the allowed CPUs")),
        },
    }
}

#[cfg(test)]
mod tests;
