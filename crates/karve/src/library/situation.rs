//! The situation of a project: all the words that describe its target.

use karve_core::charter::{Charter, Target};
use karve_core::knowledge::{Scope, Situation};
use karve_profile::devices::DeviceCatalog;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Words for the same target: `situation.toml` explains them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TargetWords {
    languages: BTreeMap<String, Vec<String>>,
    runs_on: BTreeMap<String, Vec<String>>,
    kin: BTreeMap<String, String>,
}

static WORDS: LazyLock<TargetWords> =
    LazyLock::new(|| toml::from_str(include_str!("../../data/situation.toml")).unwrap_or_default());

/// The built-in device table, read once.
static DEVICES: LazyLock<DeviceCatalog> =
    LazyLock::new(|| DeviceCatalog::built_in().unwrap_or_default());

/// All words that describe a device.
fn device_words(device: &str) -> Vec<String> {
    let lower = device.to_lowercase();
    let is_part = |c: char| !(c.is_alphanumeric() || c == '_');
    let named = |word: &str| lower.split(is_part).any(|own| own == word);
    let mut words = DEVICES.words(device);
    for (_, kin) in WORDS.kin.iter().filter(|(word, _)| named(word)) {
        words.extend(DEVICES.words(kin));
    }
    words.insert(lower);
    words.into_iter().collect()
}

/// The situation of a campaign.
pub fn situation_of(charter: &Charter) -> Situation {
    let target = &charter.target;
    let mut at = of_words(&target.op, &target.backend, &target.language, &target.device);
    let threads = charter.contract.as_ref().map(|contract| contract.threads);
    let threads = threads.filter(|_| at.device.contains("cpu"));
    at.threads = match threads {
        None => BTreeSet::new(),
        Some(0 | 1) => ["one".to_owned()].into(),
        Some(_) => ["many".to_owned()].into(),
    };
    at
}

/// The situation that these words describe.
pub fn of_words(op: &str, backend: &str, language: &str, device: &str) -> Situation {
    let backends = with_names(backend);
    let mut languages = with_names(language);
    languages.extend(backends.iter().cloned());
    let mut devices = device_words(device);
    for (_, also) in WORDS.runs_on.iter().filter(|(language, _)| languages.contains(language)) {
        if !device.trim().is_empty() {
            devices.extend(also.iter().cloned());
        }
    }
    if devices.iter().any(|word| word == "cpu") {
        devices.push(std::env::consts::ARCH.to_owned());
    }
    Situation::new(op, &borrowed(&backends), &borrowed(&languages), &borrowed(&devices))
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// A word, and the language that it is an alias of.
fn with_names(word: &str) -> Vec<String> {
    let lower = word.trim().to_lowercase();
    if lower.is_empty() {
        return Vec::new();
    }
    let is = |(name, others): &(&String, &Vec<String>)| **name == lower || others.contains(&lower);
    let mut words: Vec<String> =
        WORDS.languages.iter().filter(is).map(|(name, _)| name.clone()).collect();
    words.push(lower);
    words
}

/// The situation of a target, as the scope of what is found there.
pub fn scope_of(target: &Target) -> Scope {
    let named = |text: &str| -> Vec<String> {
        let text = text.trim().to_lowercase();
        if text.is_empty() { Vec::new() } else { vec![text] }
    };
    Scope {
        device: named(&target.device),
        backend: named(&target.backend),
        op: named(&target.op),
        ..Scope::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_and_a_backend_are_known_by_all_their_words() {
        let at = of_words("sgemm", "CK", "HIP", "MI300X");
        assert!(at.language.contains("hip") && at.device.contains("gfx942"));
        assert!(at.op.contains("gemm") && at.device.contains("amd"));
        let at = of_words("softmax", "triton", "Triton", "NVIDIA H200");
        assert!(at.device.contains("sm90") && at.language.contains("triton"));
        let at = of_words("matmul", "c", "C", "cpu");
        assert!(at.device.contains("cpu") && !at.device.contains("gpu"));
        assert!(at.language.contains("c") && !at.language.contains("cuda"));
    }

    #[test]
    fn a_device_is_known_by_what_the_file_of_devices_says() {
        let check = |device: &str, with: &[&str], without: &[&str]| {
            let words = device_words(device);
            let has = |word: &&str| words.iter().any(|own| own == word);
            assert!(with.iter().all(has), "{device}: {words:?}");
            assert!(!without.iter().any(has), "{device}: {words:?}");
        };
        let hopper = ["hopper", "sm90", "sm_90", "cuda", "nvidia", "gpu"];
        for name in ["H100", "NVIDIA H200", "NVIDIA H100 NVL", "GH200", "sm_90"] {
            check(name, &hopper, &["cpu", "ampere"]);
        }
        check("GH200", &[], &["h100", "h200"]);
        check("A800", &["ampere", "sm80"], &["a100"]);
        check("GB200", &["blackwell", "sm100"], &["b200", "sm120"]);
        for name in ["RTX 4090", "4090", "NVIDIA GeForce RTX 4090 Laptop GPU", "L40"] {
            check(name, &["ada", "sm89", "gpu"], &["blackwell"]);
        }
        check("RTX 5080", &["blackwell", "sm120"], &["sm100", "rtx5090"]);
        check("MI300A", &["cdna3", "gfx942", "amd", "rocm"], &["mi300x", "nvidia"]);
        check("blackwell", &["cuda", "gpu"], &["sm100", "sm120"]);
        check("cpu", &["cpu"], &["gpu", "x86", "arm"]);
        check("AMD EPYC 9654 96-Core Processor", &["zen4", "avx512", "cpu"], &["gpu", "rocm"]);
        check("AMD EPYC 9124", &["cpu", "x86"], &["zen4", "avx512", "gpu"]);
        check("Intel Xeon", &["cpu", "x86"], &["amx", "avx512"]);
        check("aarch64", &["cpu", "arm"], &["sve", "gpu"]);
        check("NVIDIA", &[], &["gpu", "cpu"]);
        check("", &[], &["gpu", "cpu"]);
    }
}
