//! Facts about the host: the environment in which readings are taken.

mod identity;
mod roof;

pub use identity::basis_of;
pub use roof::roof_of;

use crate::process::{Command, StopFlag};
use crate::{files, process};
use karve_core::measurement::Environment;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Time limit of a query to a tool.
const LIMIT: Duration = Duration::from_secs(10);

/// Facts that change from minute to minute; all others identify the host.
const PASSING: [&str; 3] = ["governor", "load", "pressure"];

/// Digits of a fingerprint.
const FINGERPRINT_CHARS: usize = 16;

/// The name of this host. Several nodes of a cluster may share a machine.
pub fn name() -> String {
    let node = std::env::var("SLURMD_NODENAME").ok().filter(|node| !node.is_empty());
    node.or_else(|| first_line("/proc/sys/kernel/hostname")).unwrap_or_default()
}

/// What the machine reports about itself, without running any tool.
pub fn machine() -> Environment {
    let mut facts = BTreeMap::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value.chars().take(200).collect());
        }
    };
    add("cpu", cpu_model());
    let cores = std::thread::available_parallelism().ok().map(|n| n.get().to_string());
    add("cores", cores);
    add("kernel", first_line("/proc/sys/kernel/osrelease"));
    add("container", Some(container()));
    add("governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    add("load", first_line("/proc/loadavg"));
    add("pressure", first_line("/proc/pressure/cpu"));
    Environment { facts }
}

/// Everything that is queried at once.
pub fn environment(stop: &StopFlag) -> Environment {
    let mut facts = machine().facts;
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value.chars().take(200).collect());
        }
    };
    // Each takes a while to start, and none waits for another.
    let ask = |(name, line): (&'static str, String)| (name, command_output(&line, stop));
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            questions().map(|question| scope.spawn(move || ask(question))).collect();
        let answers = asked.into_iter().filter_map(|asked| asked.join().ok());
        answers.collect()
    });
    for (name, answer) in answers {
        add(name, answer);
    }
    Environment { facts }
}

/// Each query, with its name.
fn questions() -> impl Iterator<Item = (&'static str, String)> {
    let versions = identity::TOOLS.map(|(tool, _)| (tool, format!("{tool} --version")));
    let gpus = GPU_QUERIES.map(|(name, line)| (name, line.to_owned()));
    versions.into_iter().chain(gpus)
}

/// Where a GPU is, its name and driver.
const GPU_QUERIES: [(&str, &str); 2] = [
    ("nvidia", "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader"),
    ("amd", "rocm-smi --showproductname --csv"),
];

/// The first digits of a digest of everything that does not change while a host runs.
pub fn fingerprint(environment: &Environment) -> String {
    let lasting = environment.facts.iter().filter(|(name, _)| !PASSING.contains(&name.as_str()));
    let list: String = lasting.map(|(k, v)| format!("{k}={v}\n")).collect();
    let mut digits = files::sha256_hex(list.as_bytes());
    digits.truncate(FINGERPRINT_CHARS);
    digits
}

/// Which kind of container karve runs in, or `none`.
fn container() -> String {
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        return "kubernetes".into();
    }
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    let marked = marks.iter().find(|(mark, _)| Path::new(mark).exists());
    if let Some((_, name)) = marked {
        return (*name).into();
    }
    let said = first_line("/run/systemd/container").or_else(|| std::env::var("container").ok());
    let groups = fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    said.filter(|name| !name.is_empty()).unwrap_or_else(|| parse_container(&groups).into())
}

/// The container, according to the control groups of the first process.
fn parse_container(groups: &str) -> &'static str {
    let signs = [
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("libpod", "podman"),
        ("lxc", "lxc"),
        ("containerd", "containerd"),
    ];
    let found = signs.iter().find(|(sign, _)| groups.contains(sign));
    found.map_or("none", |(_, name)| name)
}

/// The CPU's model, if the host reports it.
pub fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_owned());
    Some(name.unwrap_or_else(|| std::env::consts::ARCH.to_owned()))
}

/// Whether hardware performance counters can be read: virtual machines often have none.
pub fn has_hardware_counters() -> bool {
    let Ok(entries) = fs::read_dir("/sys/bus/event_source/devices") else {
        return false;
    };
    let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.any(|name| name.starts_with("cpu") || name.contains("_pmu"))
}

/// The first line of a tool's `--version` output.
pub fn version(tool: &str, stop: &StopFlag) -> Option<String> {
    process::find_program(tool)?;
    command_output(&format!("{tool} --version"), stop)
}

fn command_output(line: &str, stop: &StopFlag) -> Option<String> {
    process::find_program(line.split(' ').next()?)?;
    let run = process::run(&Command::line(line, Path::new("/")).limit(LIMIT), stop).ok()?;
    let text = run.stdout.text().into_owned();
    run.exit.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

fn first_line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_tell_of_a_container() {
        let check = |groups: &str, want: &str| assert_eq!(parse_container(groups), want);
        check("0::/\n", "none");
        check("0::/init.scope\n", "none");
        check("12:pids:/docker/4c0f\n", "docker");
        check("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope\n", "kubernetes");
        check("0::/machine.slice/libpod-77.scope\n", "podman");
        check("0::/lxc.payload.web/init.scope\n", "lxc");
    }

    #[test]
    fn a_fingerprint_says_which_host_it_is_and_not_how_busy() {
        let facts = |pairs: &[(&str, &str)]| Environment {
            facts: pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        let one = fingerprint(&facts(&[("cpu", "x"), ("load", "0.1"), ("gcc", "12")]));
        let busy = fingerprint(&facts(&[("cpu", "x"), ("load", "9.9"), ("gcc", "12")]));
        let other = fingerprint(&facts(&[("cpu", "x"), ("load", "0.1"), ("gcc", "13")]));
        assert_eq!((one.len(), &one), (16, &busy));
        assert_ne!(one, other);
    }
}
