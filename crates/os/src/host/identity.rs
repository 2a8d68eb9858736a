//! Which facts of an environment affect the numbers, and which only say how busy the host was.

use karve_core::basis::{Basis, engine_of};
use karve_core::charter::Charter;
use karve_core::measurement::Environment;
use std::collections::{BTreeMap, BTreeSet};

/// Facts about the device and its system.
const DEVICE: [&str; 4] = ["cpu", "kernel", "nvidia", "amd"];

/// Words of a project's language, files and commands that show that it uses a compiler for C.
const C: &[&str] = &[
    "c", "cc", "c++", "cpp", "cxx", "h", "hpp", "g++", "gcc", "clang", "clang++", "make", "cmake",
    "meson", "ninja", "cuda", "cu", "hip",
];

/// Tools that build or run a kernel, and words that show that a project uses them.
pub(super) const TOOLS: [(&str, &[&str]); 8] = [
    ("cc", C),
    ("gcc", C),
    ("clang", C),
    ("rustc", &["rust", "rs", "cargo", "rustc"]),
    ("nvcc", &["cuda", "cu", "cuh", "nvcc"]),
    ("hipcc", &["hip", "hipcc"]),
    ("python3", &["python", "python3", "py", "pytest", "triton", "cutile", "cute", "pallas"]),
    ("make", &["make", "cmake"]),
];

/// The facts of that environment that the numbers of a campaign depend on.
pub fn basis_of(charter: &Charter, harness_hash: &str, environment: &Environment) -> Basis {
    let chosen = |names: &[&str]| -> BTreeMap<String, String> {
        let facts = environment.facts.iter();
        facts
            .filter(|(name, _)| names.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), lasting(name, value)))
            .collect()
    };
    let (target, commands) = (&charter.target, &charter.commands);
    let named = [&target.language, &target.backend, &commands.test, &commands.bench];
    let more = [&commands.build, &commands.quick_test, &commands.quick_bench, &commands.condition];
    let texts = named.into_iter().chain(more.into_iter().flatten()).chain(&charter.editable);
    let used = tools_of(texts.map(String::as_str));
    Basis {
        metric: charter.metric.clone(),
        engine: engine_of(&charter.metric, &charter.output),
        tools: chosen(&used),
        device: chosen(&DEVICE),
        harness_hash: harness_hash.to_owned(),
    }
}

/// The tools of a project with these words; all of them if no word shows what it uses.
fn tools_of<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'static str> {
    let words: BTreeSet<String> = texts
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '+'))
        .map(str::to_ascii_lowercase)
        .collect();
    let is_used = |(_, signs): &(&str, &[&str])| signs.iter().any(|sign| words.contains(*sign));
    let used: Vec<&str> = TOOLS.into_iter().filter(is_used).map(|(tool, _)| tool).collect();
    if used.is_empty() { TOOLS.map(|(tool, _)| tool).to_vec() } else { used }
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
    fn only_the_tools_that_a_project_uses_are_part_of_its_basis() {
        let uses = |texts: &[&str]| tools_of(texts.iter().copied()).join(" ");
        assert_eq!(uses(&["c++", "cmake --build build", "src/*.cpp"]), "cc gcc clang make");
        assert_eq!(uses(&["c", "./build.sh", "kernel.c"]), "cc gcc clang");
        assert_eq!(uses(&["Rust", "cargo build", "src/lib.rs"]), "rustc");
        assert_eq!(uses(&["python", "true", "kernel.py"]), "python3");
        assert_eq!(uses(&["c", "python3 setup.py build", "k.c"]), "cc gcc clang python3");
        assert_eq!(uses(&["./run"]).split(' ').count(), TOOLS.len());
    }

    #[test]
    fn the_clock_of_a_device_is_no_part_of_what_it_is() {
        let want = "NVIDIA H200, 550.54.15";
        assert_eq!(lasting("nvidia", "NVIDIA H200, 550.54.15, 1980 MHz"), want);
        assert_eq!(lasting("nvidia", "NVIDIA H200, 550.54.15"), want);
        assert_eq!(lasting("cpu", "a, b, c"), "a, b, c");
    }
}
