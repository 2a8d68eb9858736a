//! Where a project is, in all words that are true there.

use karve_core::charter::Target;
use karve_core::knowledge::Situation;

/// Languages by other names of theirs, and by what they are made for.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("c", &["c99", "c11", "c17", "c23", "gcc", "clang"]),
    ("c++", &["cpp", "cxx", "cc", "g++"]),
    ("rust", &["rs"]),
    ("cuda", &["cu", "nvcc", "cuda-c", "ptx"]),
    ("hip", &["ck", "hipkittens", "hipblaslt", "turbo"]),
    ("triton", &["tileir", "nvtriton"]),
    ("cutile", &["cutile-dsl"]),
    ("cute", &["cute-dsl", "cutlass"]),
    ("flydsl", &[]),
];

/// What a backend runs on, where it says so.
const RUNS_ON: &[(&str, &[&str])] = &[
    ("c", &["cpu"]),
    ("c++", &["cpu"]),
    ("rust", &["cpu"]),
    ("cuda", &["gpu", "cuda", "nvidia"]),
    ("cutile", &["gpu", "cuda", "nvidia"]),
    ("cute", &["gpu", "cuda", "nvidia"]),
    ("hip", &["gpu", "amd", "rocm"]),
    ("flydsl", &["gpu", "amd", "rocm"]),
    ("triton", &["gpu"]),
];

/// Devices by words in their names.
const DEVICES: &[(&[&str], &[&str])] = &[
    (
        &["h100", "h200", "gh200"],
        &["hopper", "sm90", "sm_90", "cuda", "nvidia", "gpu"],
    ),
    (
        &["a100", "a800"],
        &["ampere", "sm80", "sm_80", "cuda", "nvidia", "gpu"],
    ),
    (
        &["b100", "b200", "b300", "gb200"],
        &["blackwell", "sm100", "sm_100", "cuda", "nvidia", "gpu"],
    ),
    (
        &["l40s", "l40", "4090"],
        &["ada", "sm89", "sm_89", "cuda", "nvidia", "gpu"],
    ),
    (
        &["5090", "5080"],
        &["blackwell", "sm120", "sm_120", "cuda", "nvidia", "gpu"],
    ),
    (
        &["mi300x", "mi300a", "gfx942"],
        &["cdna3", "gfx942", "amd", "rocm", "gpu"],
    ),
    (
        &["mi355x", "mi350x", "gfx950"],
        &["cdna4", "gfx950", "amd", "rocm", "gpu"],
    ),
    (
        &["cpu", "x86_64", "epyc", "xeon", "ryzen", "core"],
        &["cpu"],
    ),
    (
        &["aarch64", "arm64", "neoverse", "graviton", "grace"],
        &["cpu", "arm"],
    ),
];

/// Where a target is.
pub fn situation_of(target: &Target) -> Situation {
    of_words(
        &target.op,
        &target.backend,
        &target.language,
        &target.device,
    )
}

/// Where somebody is who says these words.
pub fn of_words(op: &str, backend: &str, language: &str, device: &str) -> Situation {
    let backends = with_names(backend);
    let mut languages = with_names(language);
    languages.extend(backends.iter().cloned());
    let mut devices = vec![device.to_lowercase()];
    let words: Vec<String> = device
        .to_lowercase()
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map(str::to_owned)
        .collect();
    for (names, also) in DEVICES {
        if names
            .iter()
            .any(|name| words.iter().any(|word| word == name))
        {
            devices.extend(also.iter().map(|word| (*word).to_owned()));
        }
    }
    for (language, also) in RUNS_ON {
        let speaks = languages.iter().any(|word| word == language);
        if speaks && !device.trim().is_empty() {
            devices.extend(also.iter().map(|word| (*word).to_owned()));
        }
    }
    if devices.iter().any(|word| word == "cpu") {
        devices.push(std::env::consts::ARCH.to_owned());
    }
    Situation::new(
        op,
        &borrowed(&backends),
        &borrowed(&languages),
        &borrowed(&devices),
    )
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// A word, and the language whose other name it is.
fn with_names(word: &str) -> Vec<String> {
    let lower = word.trim().to_lowercase();
    if lower.is_empty() {
        return Vec::new();
    }
    let of = LANGUAGES
        .iter()
        .filter(|(name, others)| *name == lower || others.contains(&lower.as_str()));
    let mut words: Vec<String> = of.map(|(name, _)| (*name).to_owned()).collect();
    words.push(lower);
    words
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
}
