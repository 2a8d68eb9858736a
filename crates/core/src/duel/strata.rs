//! The devices of a duel. Both arms of a block run on one device, so how fast a device is cancels
//! out in each block. How much faster the candidate is may still differ from device to device, and
//! readings of two devices are not readings of one: each device is a stratum.

use super::Duel;
use crate::comparison::{DeviceEstimate, Estimate, INTERVAL_ALPHA};
use crate::measurement::Block;
use karve_numerics::stats;

/// The devices that a duel ran on.
#[derive(Clone, Debug, Default)]
pub struct DeviceStrata {
    /// What they call themselves, in the order of their first blocks.
    names: Vec<String>,
    /// The device of each block that counts.
    of_block: Vec<usize>,
    /// The device of the last block.
    last: usize,
}

/// The device of a block, if the log says it.
fn device_of(block: &Block) -> Option<String> {
    let conditions = block.conditions.as_ref()?;
    let gpu = conditions.gpu.as_ref();
    let id = gpu.map(|gpu| gpu.id.as_ref().unwrap_or(&gpu.name).clone());
    let driver = gpu.and_then(|gpu| Some(format!("driver {}", gpu.driver.as_ref()?)));
    let parts: Vec<String> = conditions.host.clone().into_iter().chain(id).chain(driver).collect();
    conditions.host.as_ref().map(|_| parts.join(", "))
}

impl DeviceStrata {
    /// Whether no block ran on the device of this one, and some ran on another.
    pub(super) fn is_new(&self, block: &Block) -> bool {
        let name = device_of(block);
        !self.names.is_empty() && name.is_some_and(|name| !self.names.contains(&name))
    }

    /// Takes in a block. What an older log does not say ran where the block before it did.
    pub(super) fn saw(&mut self, block: &Block) {
        let Some(name) = device_of(block) else {
            return;
        };
        let known = self.names.iter().position(|one| *one == name);
        self.last = known.unwrap_or(self.names.len());
        if known.is_none() {
            self.names.push(name);
        }
    }

    /// The block counts.
    pub(super) fn counts(&mut self) {
        self.of_block.push(self.last);
    }

    /// The names of the devices; none if no block says where it ran.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What was read in each block that counts, device by device.
    pub fn split<T: Clone>(&self, values: &[T]) -> Vec<Vec<T>> {
        let mut strata = vec![Vec::new(); self.names.len().max(1)];
        for (value, at) in values.iter().zip(&self.of_block) {
            strata[*at].push(value.clone());
        }
        strata
    }

    /// p90 of the candidate's times over the parent's; of several devices, their geometric mean,
    /// by the number of their blocks.
    pub(super) fn tail_ratio(&self, values: &[(f64, f64)], time: impl Fn(f64) -> f64) -> f64 {
        let of_device = |values: &Vec<(f64, f64)>| {
            let p90 = |pick: fn(&(f64, f64)) -> f64| {
                let times: Vec<f64> = values.iter().map(|pair| time(pick(pair))).collect();
                stats::quantile(&times, 0.9).unwrap_or(f64::NAN)
            };
            p90(|pair| pair.1) / p90(|pair| pair.0)
        };
        let strata = self.split(values);
        match &strata[..] {
            [only] => of_device(only),
            _ => {
                let filled = strata.iter().filter(|values| !values.is_empty());
                let sum = filled.map(|values| values.len() as f64 * of_device(values).ln());
                (sum.sum::<f64>() / values.len() as f64).exp()
            }
        }
    }

    /// The values of the device with the most blocks, the first of them.
    pub(super) fn largest<T: Clone>(&self, values: &[T]) -> Vec<T> {
        let strata = self.split(values);
        let most = strata.iter().map(Vec::len).max();
        strata.into_iter().find(|values| Some(values.len()) == most).unwrap_or_default()
    }
}

impl Duel {
    /// The log speedup that a clock shows, with each device as a stratum.
    pub fn location(&self, ln_speedups: &[f64]) -> Option<f64> {
        stats::stratified_location(&self.strata.split(ln_speedups))
    }

    /// The estimate from log speedups, one per block. The signs of all blocks test the same
    /// statement on each device; where devices differ, the interval spans those that do.
    pub(super) fn estimate(&self, ln_speedups: &[f64]) -> Estimate {
        let mut all = Estimate::of(ln_speedups);
        let strata = self.strata.split(ln_speedups);
        if let Some((lower, upper)) = stats::differing_strata(&strata, INTERVAL_ALPHA) {
            let least = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.min(b));
            let most = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.max(b));
            all.low = least(all.low, Estimate::of(&strata[lower]).low);
            all.high = most(all.high, Estimate::of(&strata[upper]).high);
        }
        all
    }

    /// What each device showed by the metric, if there were several.
    pub(super) fn device_estimates(&self) -> Vec<DeviceEstimate> {
        if self.strata.names.len() < 2 {
            return Vec::new();
        }
        let strata = self.strata.split(&self.main().ln_speedups);
        let effect = stats::differing_strata(&strata, INTERVAL_ALPHA);
        let named = self.strata.names.iter().zip(&strata).enumerate();
        named
            .map(|(at, (device, ln_speedups))| DeviceEstimate {
                device: device.clone(),
                blocks: u32::try_from(ln_speedups.len()).unwrap_or(u32::MAX),
                overall: Estimate::of(ln_speedups),
                differs: effect.is_some_and(|(lower, upper)| at == lower || at == upper),
            })
            .collect()
    }
}
