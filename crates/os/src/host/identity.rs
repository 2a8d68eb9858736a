//! Which facts of an environment affect the numbers, and which only say how busy the host was.

use karve_core::basis::{Basis, engine_of};
use karve_core::charter::Charter;
use karve_core::measurement::Environment;
use std::collections::BTreeMap;

/// Facts about the device and its system.
const DEVICE: [&str; 4] = ["cpu", "kernel", "nvidia", "amd"];

/// Tools that build or run a kernel.
pub(super) const TOOLS: [&str; 8] =
    ["cc", "gcc", "clang", "rustc", "nvcc", "hipcc", "python3", "make"];

/// The facts of that environment that the numbers of a campaign depend on.
pub fn basis_of(charter: &Charter, harness_hash: &str, environment: &Environment) -> Basis {
    let chosen = |names: &[&str]| -> BTreeMap<String, String> {
        let facts = environment.facts.iter();
        facts
            .filter(|(name, _)| names.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), lasting(name, value)))
            .collect()
    };
    Basis {
        metric: charter.metric.clone(),
        engine: engine_of(&charter.metric, &charter.output),
        tools: chosen(&TOOLS),
        device: chosen(&DEVICE),
        harness_hash: harness_hash.to_owned(),
    }
}

/// The stable part of a fact. Earlier logs have the clock after the name and the driver.
fn lasting(name: &str, value: &str) -> String {
    if name != "nvidia" {
        return value.to_owned();
    }
    let parts: Vec<&str> = value.split(',').take(2).map(str::trim).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_device_is_no_part_of_what_it_is() {
        let want = "NVIDIA H200, 550.54.15";
        assert_eq!(lasting("nvidia", "NVIDIA H200, 550.54.15, 1980 MHz"), want);
        assert_eq!(lasting("nvidia", "NVIDIA H200, 550.54.15"), want);
        assert_eq!(lasting("cpu", "a, b, c"), "a, b, c");
    }
}
