//! What `karve doctor` reports about the device: pressure, lease, pinning, clocks, throttling.

use super::{DoctorReport, FindingLevel};
use crate::config::LoadedConfig;
use crate::ui;
use karve_core::charter::{Charter, Pin};
use karve_harness::store;
use karve_os::device;
use karve_os::device::clocks::{DeviceClocks, LeftoverLock};
use karve_os::device::cpu::CpuFiles;
use karve_os::device::lease::Lease;
use karve_os::device::{NoticeSink, cpu, gpu, lease};
use karve_os::error::{ErrorKind, Result};
use karve_os::process::StopFlag;
use std::path::Path;
use std::time::Duration;

/// Checks the device of a charter, and unlocks clocks that a dead campaign left locked.
pub(super) fn examine(
    loaded: &LoadedConfig,
    root: &Path,
    stop: &StopFlag,
    findings: &mut DoctorReport,
) -> Result<()> {
    let charter = &loaded.charter;
    examine_pressure(charter, findings);
    examine_lease(charter, findings);
    examine_pin(charter, findings);
    examine_gpu(charter, stop, findings);
    for dir in store::list(&loaded.root)? {
        if !dir.join(device::clocks::NOTE).exists() {
            continue;
        }
        let read = store::read(&dir)?;
        let Some(clocks) = read.campaign.charter().and_then(|charter| {
            DeviceClocks::new(charter, dir.path(), &root.join(&charter.workdir))
        }) else {
            continue;
        };
        let name = dir.name();
        match clocks.undo_leftover(Duration::ZERO, &NoticeSink::default())? {
            LeftoverLock::Nothing => {}
            LeftoverLock::Undone => {
                let detail = format!("{name} left them locked; they are unlocked now");
                findings.add(FindingLevel::Note, "clocks", detail, None);
            }
            LeftoverLock::InUse => {
                findings.fine("clocks", format!("locked by {name}, which is running"))
            }
            LeftoverLock::Locked => {
                let hint = "run device.unlock of karve.toml by hand";
                findings.failed("clocks", format!("{name} left them locked"), hint);
            }
        }
    }
    Ok(())
}

fn examine_pressure(charter: &Charter, findings: &mut DoctorReport) {
    let max = charter.device.pressure_max;
    match CpuFiles::default().pressure() {
        None => {
            let hint = "boot Linux with psi=1 to make blocks wait while the host is busy; see \
            device.pressure_max in docs/karve-toml.md";
            let detail = "Linux does not report it, so blocks do not wait for an idle host";
            findings.add(FindingLevel::Note, "pressure", detail, Some(hint));
        }
        Some(now) => {
            let detail =
                format!("{:.0}% in the last ten seconds; a block waits above {max:.0}%", now.avg10);
            let level = if now.avg10 > max { FindingLevel::Note } else { FindingLevel::Fine };
            let hint = Some("see what uses the CPUs with \"top\"");
            findings.add(level, "pressure", detail, hint);
        }
    }
}

fn examine_lease(charter: &Charter, findings: &mut DoctorReport) {
    let device = &charter.target.device;
    match lease::holder_of(device) {
        None => findings.fine("lease", format!("{device} is free")),
        Some(holder) => {
            let detail = format!("{device} is held by {}", holder.describe());
            let hint = "measurements wait for it, for at most device.lease_wait_s in karve.toml";
            findings.add(FindingLevel::Note, "lease", detail, Some(hint));
        }
    }
}

/// Holds the device until it is dropped.
pub(super) struct DeviceHold {
    _lease: Option<Lease>,
}

/// Leases the device for measurements. If another karve holds it for too long, says so and
/// measures nothing.
pub(super) fn hold_device(
    charter: &Charter,
    stop: &StopFlag,
    findings: &mut DoctorReport,
) -> Result<Option<DeviceHold>> {
    match device::lease_for(charter, "karve doctor", stop, &ui::notices()) {
        Ok(lease) => Ok(Some(DeviceHold { _lease: lease })),
        Err(error) if error.kind == ErrorKind::Busy => {
            let detail = format!("not measured: {}", error.message);
            let hint = "run \"karve doctor\" again when it is free, or raise device.lease_wait_s";
            findings.add(FindingLevel::Note, "benchmark", detail, Some(hint));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn examine_pin(charter: &Charter, findings: &mut DoctorReport) {
    let n = cpu::allowed().len();
    match (&charter.device.pin, device::cpus_of(&charter.device.pin)) {
        (_, Err(error)) => {
            let hint = error.hints.first().cloned().unwrap_or_default();
            findings.failed("pin", error.message, &hint);
        }
        (Pin::No, Ok(_)) => findings.fine("pin", format!("off; karve may use {n} CPUs")),
        (Pin::Auto, Ok(cpus)) if cpus.is_empty() => {
            findings.fine("pin", "off: there is only one CPU");
        }
        (Pin::Auto | Pin::Cpus { .. }, Ok(cpus)) => {
            let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
            findings.fine("pin", format!("benchmarks run on CPU {}", list.join(", ")));
        }
    }
}

fn examine_gpu(charter: &Charter, stop: &StopFlag, findings: &mut DoctorReport) {
    if !gpu::is_gpu(&charter.target) {
        return;
    }
    if gpu::is_missing(charter, stop) {
        let detail = format!(
            "no GPU answers here, and the target runs on one ({}), so nothing was built, tested \
             or measured",
            charter.target.device
        );
        let hint = "run karve on the machine with the GPU and its driver; if only your commands \
                    reach it, set device.gpu = \"elsewhere\" in karve.toml";
        findings.failed("gpu", detail, hint);
        return;
    }
    let mut watch = gpu::GpuMonitor::new(charter);
    match watch.look(stop) {
        None => {
            let hint = "put nvidia-smi or rocm-smi on the PATH to record clocks and throttling";
            findings.add(FindingLevel::Note, "gpu", "no tool reports on it", Some(hint));
        }
        Some(said) if said.throttle.is_empty() => findings.fine("gpu", said.name.clone()),
        Some(said) => {
            let detail = format!("{}: throttled by {}", said.name, said.throttle.join(", "));
            let hint = "see \"nvidia-smi -q -d PERFORMANCE\"; a block waits until it cools down";
            findings.add(FindingLevel::Note, "gpu", detail, Some(hint));
        }
    }
}
