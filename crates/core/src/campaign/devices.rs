//! Devices on other machines: which ones a campaign used, and for how long.
//!
//! Both arms of a block run on one device, so a change of the device between two blocks cannot
//! favor an arm. It can change how well the device measures, so an A/A test follows it: before the
//! next block if the device took the place of one that was to be held on, and before the next round
//! if devices are given back on purpose, which may be after every block.

use super::Campaign;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most uses that are remembered one by one; the times of all others are added to the last.
const USES_MAX: usize = 1_000;

/// When an allocation is given up for another one, before it ends within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalRule {
    /// It is renewed when it has no more left than this.
    margin: Duration,
    /// How often the time that is left is asked for.
    pub every: Duration,
}

impl RenewalRule {
    /// For allocations of this length.
    pub fn of(time: Duration) -> Self {
        let margin = Duration::from_secs(120).min(time / 4);
        Self { margin, every: Duration::from_secs(30).min(margin / 3) }
    }

    /// Whether it is renewed now. What does not say how long it lasts is kept.
    pub fn is_due(self, left: Option<Duration>) -> bool {
        left.is_some_and(|left| left <= self.margin)
    }
}

/// A device on another machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoteDevice {
    /// `[remote.NAME]`.
    pub remote: String,
    /// The host, as it names itself.
    pub host: String,
    /// The allocation, if the host is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<String>,
    /// What confines candidates there.
    pub sandbox: String,
    /// What an hour costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<f64>,
}

impl RemoteDevice {
    /// Where it is, in one line.
    pub fn describe(&self) -> String {
        let place = self.allocation.as_ref().map(|id| format!(", allocation {id}"));
        format!("{}: {}{}", self.remote, self.host, place.unwrap_or_default())
    }
}

/// A device while it was held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceUse {
    /// Which one.
    pub device: RemoteDevice,
    /// How long it was held.
    pub held_ms: u64,
    /// How long it worked.
    pub busy_ms: u64,
    /// Blocks that were measured on it.
    pub blocks: u32,
}

impl DeviceUse {
    /// What it cost, if that is known.
    pub fn price(&self) -> Option<f64> {
        Some(self.device.price_per_hour? * self.held_ms as f64 / 3.6e6)
    }
}

/// The devices of a campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DeviceUses {
    pub(super) uses: Vec<DeviceUse>,
    /// Devices that only helped to tune.
    helpers: Vec<DeviceUse>,
    /// Whether the device was another one at the last control.
    pub(super) control_due: bool,
    /// Whether that control comes before the next block.
    pub(super) interrupts: bool,
}

impl DeviceUses {
    pub(super) fn acquired(&mut self, device: &RemoteDevice, is_measured: bool) {
        let place = |one: &RemoteDevice| (one.host.clone(), one.allocation.clone());
        let before = self.uses.last().map(|used| place(&used.device));
        let is_other = before.is_some_and(|before| before != place(device));
        self.control_due |= is_other && is_measured;
        if self.uses.len() < USES_MAX {
            let device = device.clone();
            self.uses.push(DeviceUse { device, held_ms: 0, busy_ms: 0, blocks: 0 });
        }
    }

    pub(super) fn released(&mut self, held_ms: u64, busy_ms: u64) {
        if let Some(last) = self.uses.last_mut() {
            last.held_ms = last.held_ms.saturating_add(held_ms);
            last.busy_ms = last.busy_ms.saturating_add(busy_ms);
        }
    }

    pub(super) fn helped(&mut self, device: &RemoteDevice, held_ms: u64, busy_ms: u64) {
        let device = device.clone();
        if self.helpers.len() < USES_MAX {
            self.helpers.push(DeviceUse { device, held_ms, busy_ms, blocks: 0 });
        }
    }

    pub(super) fn measured(&mut self) {
        if let Some(last) = self.uses.last_mut() {
            last.blocks = last.blocks.saturating_add(1);
        }
    }
}

impl Campaign {
    /// Where the kernel runs and how an agent can run something there, if that is another machine.
    pub(super) fn remote_note(&self) -> Option<String> {
        let device = &self.devices.uses.last()?.device;
        Some(format!(
            "{}; karve builds, tests and measures there, in worktrees of its own; \"karve exec -- \
             COMMAND\" runs a command there on your files as they are, in this allocation and in a \
             sandbox, for at most ten minutes; its output comes back, and ignored files stay \
             there for the next command",
            device.describe()
        ))
    }

    /// The devices on other machines that it used, in order; empty if it was measured here.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceUse> + Clone {
        self.devices.uses.iter().chain(&self.devices.helpers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(host: &str, allocation: &str) -> RemoteDevice {
        RemoteDevice {
            remote: "cluster".to_owned(),
            host: host.to_owned(),
            allocation: Some(allocation.to_owned()),
            sandbox: String::new(),
            price_per_hour: Some(2.0),
        }
    }

    #[test]
    fn an_allocation_is_renewed_in_time_and_looked_at_often_enough() {
        let seconds = Duration::from_secs;
        for time in [60, 600, 3_600, 86_400].map(seconds) {
            let rule = RenewalRule::of(time);
            assert!(
                !rule.is_due(None) && !rule.is_due(Some(time)) && rule.is_due(Some(seconds(1)))
            );
            let first = (0..=time.as_secs()).rev().find(|left| rule.is_due(Some(seconds(*left))));
            // Even if it is looked at as late as possible, some time is left.
            assert!(seconds(first.unwrap()) >= rule.every * 2, "{time:?}");
        }
    }

    #[test]
    fn another_device_demands_a_control_once_something_was_measured() {
        let mut uses = DeviceUses::default();
        uses.acquired(&device("n1", "7"), false);
        uses.acquired(&device("n2", "8"), false);
        assert!(!uses.control_due, "nothing was measured yet");
        uses.acquired(&device("n2", "8"), true);
        assert!(!uses.control_due, "it is the same device");
        uses.acquired(&device("n2", "9"), true);
        assert!(uses.control_due);
        uses.released(1_800_000, 900_000);
        uses.measured();
        let last = uses.uses.last().unwrap();
        assert_eq!((last.held_ms, last.busy_ms, last.blocks), (1_800_000, 900_000, 1));
        assert_eq!(last.price(), Some(1.0));
    }
}
