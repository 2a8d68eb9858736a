//! What the host says of itself: the environment that readings are taken on and with.

mod identity;

pub use identity::basis_of;

use crate::process::{self, Command, StopFlag};
use karve_core::measurement::Environment;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A question to a tool may take this long.
const LIMIT: Duration = Duration::from_secs(10);

/// Everything that is found out at once.
pub fn environment(stop: &StopFlag) -> Environment {
    let mut facts = BTreeMap::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value.chars().take(200).collect());
        }
    };
    add("cpu", cpu_model());
    let cores = std::thread::available_parallelism()
        .ok()
        .map(|n| n.get().to_string());
    add("cores", cores);
    add("kernel", first_line("/proc/sys/kernel/osrelease"));
    add(
        "governor",
        first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    );
    add("load", first_line("/proc/loadavg"));
    add("pressure", first_line("/proc/pressure/cpu"));
    for tool in identity::TOOLS {
        add(tool, version(tool, stop));
    }
    for (name, line) in GPU_QUERIES {
        add(name, say(line, stop));
    }
    Environment { facts }
}

/// Where a GPU is, its name and driver.
const GPU_QUERIES: [(&str, &str); 2] = [
    (
        "nvidia",
        "nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader",
    ),
    ("amd", "rocm-smi --showproductname --csv"),
];

/// The CPU's model, if the host tells.
pub fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line
        .and_then(|line| line.split_once(':'))
        .map(|(_, name)| name.trim().to_owned());
    Some(name.unwrap_or_else(|| std::env::consts::ARCH.to_owned()))
}

/// The first line of what a tool says to `--version`.
pub fn version(tool: &str, stop: &StopFlag) -> Option<String> {
    process::find_program(tool)?;
    say(&format!("{tool} --version"), stop)
}

fn say(line: &str, stop: &StopFlag) -> Option<String> {
    process::find_program(line.split(' ').next()?)?;
    let run = process::run(&Command::shell(line, Path::new("/")).limit(LIMIT), stop).ok()?;
    let text = run.stdout.text().into_owned();
    run.exit
        .success()
        .then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

fn first_line(path: &str) -> Option<String> {
    Some(
        fs::read_to_string(path)
            .ok()?
            .lines()
            .next()?
            .trim()
            .to_owned(),
    )
}
