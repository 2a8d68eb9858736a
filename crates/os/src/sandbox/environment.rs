//! Which variables of karve's own environment a confined command sees.
//!
//! Variables that tell a compiler or a library where things are get passed on. Those that could
//! make a program load code, hold secrets, or point to shared caches do not.

use crate::process::EnvPolicy;
use karve_core::charter::SandboxRule;

/// Names that are passed on; a trailing star matches anything.
const PASSED: [&str; 61] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "CC",
    "CXX",
    "CPP",
    "FC",
    "AR",
    "AS",
    "LD",
    "NM",
    "RANLIB",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "FFLAGS",
    "RUSTFLAGS",
    "RUSTUP_*",
    "CARGO_HOME",
    "CARGO_BUILD_*",
    "CARGO_PROFILE_*",
    "PKG_CONFIG_PATH",
    "CMAKE_*",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "PYENV_*",
    "VIRTUAL_ENV",
    "CONDA_*",
    "JAVA_HOME",
    "GOROOT",
    "GOPATH",
    "NIX_*",
    "MODULEPATH",
    "SOURCE_DATE_EPOCH",
    "CUDA_*",
    "CUDNN_*",
    "NVCC_*",
    "NVIDIA_*",
    "HIP_*",
    "HSA_*",
    "ROCM_*",
    "ROCR_*",
    "OMP_*",
    "GOMP_*",
    "KMP_*",
    "MKL_*",
    "OPENBLAS_*",
    "JULIA_*",
    "SPACK_*",
];

/// What every agent's program also needs: its home, and network settings.
const PASSED_TO_PROGRAMS: [&str; 12] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
    "SSL_CERT_*",
    "NODE_EXTRA_CA_CERTS",
];

/// What a particular agent's program also needs: the address of its model, and its credentials.
const PASSED_TO_AGENTS: [&str; 20] = [
    "ANTHROPIC_*",
    "CLAUDE_*",
    "OPENAI_*",
    "AZURE_*",
    "CODEX_*",
    "GEMINI_*",
    "GOOGLE_*",
    "AWS_*",
    "OPENROUTER_*",
    "DEEPSEEK_*",
    "MISTRAL_*",
    "OLLAMA_*",
    "OPENCODE_*",
    "AIDER_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
    "SSL_CERT_*",
    "NODE_EXTRA_CA_CERTS",
];

/// What a command of the project sees.
pub(super) fn of_command(rule: &SandboxRule, set: &[(String, String)]) -> EnvPolicy {
    variables(rule, &[], set)
}

/// What an agent sees. Its home is the real one, where its program keeps its credentials.
pub(super) fn of_agent(rule: &SandboxRule, set: &[(String, String)]) -> EnvPolicy {
    let own = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
    let set: Vec<_> =
        set.iter().filter(|(name, _)| !own.contains(&name.as_str())).cloned().collect();
    variables(rule, &[&own[..], &PASSED_TO_AGENTS].concat(), &set)
}

/// What is passed on to an agent of a known kind, which needs its own variables and none of
/// another agent's.
pub(super) fn of_kind(more: &[String], own: &[&str]) -> EnvPolicy {
    let usual = PASSED.iter().chain(&PASSED_TO_PROGRAMS).chain(own);
    let usual = usual.map(|name| (*name).to_owned());
    EnvPolicy { passed: usual.chain(more.iter().cloned()).collect(), set: Vec::new() }
}

fn variables(rule: &SandboxRule, more: &[&str], set: &[(String, String)]) -> EnvPolicy {
    let usual = PASSED.iter().chain(more).map(|name| (*name).to_owned());
    EnvPolicy { passed: usual.chain(rule.env.iter().cloned()).collect(), set: set.to_vec() }
}
