//! How the profilers are started, and what it means when one fails. Nothing is started here.

use super::ProfilerTool;
use karve_core::profile::ProfileDepth;
use karve_harness::commands::{DIR_VARIABLE, PRINTED, ProfilerOutput, ProfilerStart, StdoutWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The shortest time limit of a profiler: starting one takes time, whatever it profiles.
const LIMIT_MIN: Duration = Duration::from_secs(30);
/// The longest time limit.
const LIMIT_MAX: Duration = Duration::from_secs(300);

/// How many launches Nsight Compute profiles; it replays each many times.
const NCU_LAUNCHES: &str = "8";
/// Events that `perf stat` counts first.
const PERF_LIGHT: &str = "task-clock,page-faults,context-switches,cpu-migrations,duration_time,\
    cycles,instructions,branches,branch-misses";
/// Events that it adds at full depth.
const PERF_MORE: &str = "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses,\
    cache-references,cache-misses,dTLB-loads,dTLB-load-misses";

/// Why a profiler failed, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfilerHint {
    /// One sentence without a full stop.
    pub problem: String,
    /// What to do; each names a command, a flag or a file.
    pub hints: Vec<String>,
}

/// The time limit of a tool: a multiple of the program's own time, within bounds. Counting costs
/// little, a trace more; simulating or replaying is far slower.
pub fn limit_of(tool: ProfilerTool, alone: Duration) -> Duration {
    let times = match tool {
        ProfilerTool::Perf => 10,
        ProfilerTool::Nsys | ProfilerTool::Rocprof => 30,
        ProfilerTool::Ncu
        | ProfilerTool::RocprofCompute
        | ProfilerTool::Cachegrind
        | ProfilerTool::Callgrind
        | ProfilerTool::Ptxas
        | ProfilerTool::Torch => 200,
    };
    alone.saturating_mul(times).clamp(LIMIT_MIN, LIMIT_MAX)
}

/// How many times as long a program takes under a simulator, at least.
const SIMULATED_TIMES: u32 = 20;

/// Why a tool would be killed before it is through with a program that takes this long alone.
pub fn too_long(tool: ProfilerTool, alone: Duration, limit: Duration) -> Option<String> {
    let simulates = matches!(tool, ProfilerTool::Callgrind | ProfilerTool::Cachegrind);
    (simulates && alone.saturating_mul(SIMULATED_TIMES) > limit).then(|| {
        format!(
            "it was not started: the benchmark takes {:.1} s alone, at least {SIMULATED_TIMES} \
             times as long under it, and {:.0} s are allowed",
            alone.as_secs_f64(),
            limit.as_secs_f64()
        )
    })
}

/// How a tool is started on a command for a depth, with a directory for its files. A tool that
/// does not support the depth, or that is part of a compiler or of the program, is not started.
pub fn start(
    tool: ProfilerTool,
    depth: ProfileDepth,
    command: &[String],
    dir: &Path,
) -> Option<ProfilerStart> {
    let file = |name: &str| dir.join(name);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let one = |words: Vec<String>, output: PathBuf| {
        Some(ProfilerStart {
            commands: vec![[words, command.to_vec()].concat()],
            environment: vec![("LC_ALL".to_owned(), "C".to_owned())],
            output: ProfilerOutput::File(output),
            printed: StdoutWriter::ByTheTool,
        })
    };
    match (tool, depth) {
        (ProfilerTool::Nsys, ProfileDepth::Light) => Some(nsys(command, dir)),
        (ProfilerTool::Ncu, ProfileDepth::Light) => {
            let out = file("ncu.csv");
            one(ncu("basic", &text(&out)), out)
        }
        (ProfilerTool::Ncu, ProfileDepth::Full | ProfileDepth::Code) => {
            let out = file("ncu.csv");
            one(ncu("full", &text(&out)), out)
        }
        (ProfilerTool::Perf, ProfileDepth::Light) => {
            let out = file("perf.csv");
            one(perf(PERF_LIGHT, &text(&out)), out)
        }
        (ProfilerTool::Perf, ProfileDepth::Full) => {
            let out = file("perf.csv");
            one(perf(&format!("{PERF_LIGHT},{PERF_MORE}"), &text(&out)), out)
        }
        (
            ProfilerTool::Cachegrind | ProfilerTool::Callgrind,
            ProfileDepth::Full | ProfileDepth::Code,
        ) => Some(valgrind(tool.name(), command)),
        (ProfilerTool::Rocprof, ProfileDepth::Light) => {
            let flags = "rocprofv3 --kernel-trace --output-format csv";
            let to = ["-d".to_owned(), text(dir), "-o".to_owned(), "karve".to_owned()];
            Some(ProfilerStart {
                commands: vec![[words(flags), to.to_vec(), words("--"), aside(command)].concat()],
                environment: vec![("LC_ALL".to_owned(), "C".to_owned())],
                output: ProfilerOutput::File(file("karve_kernel_trace.csv")),
                printed: StdoutWriter::ByItself,
            })
        }
        (ProfilerTool::RocprofCompute, ProfileDepth::Full) => Some(rocprof_compute(command, dir)),
        (ProfilerTool::Nsys | ProfilerTool::Rocprof, ProfileDepth::Full | ProfileDepth::Code)
        | (
            ProfilerTool::RocprofCompute | ProfilerTool::Callgrind | ProfilerTool::Cachegrind,
            ProfileDepth::Light,
        )
        | (ProfilerTool::RocprofCompute | ProfilerTool::Perf, ProfileDepth::Code)
        | (
            ProfilerTool::Ptxas | ProfilerTool::Torch,
            ProfileDepth::Light | ProfileDepth::Full | ProfileDepth::Code,
        ) => None,
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The same command with its output redirected to a file.
fn aside(command: &[String]) -> Vec<String> {
    let line = format!("exec \"$@\" >\"${DIR_VARIABLE}/{PRINTED}\"");
    let shell = ["sh".to_owned(), "-c".to_owned(), line, "sh".to_owned()];
    [shell.to_vec(), command.to_vec()].concat()
}

fn ncu(set: &str, log: &str) -> Vec<String> {
    let flags = "ncu --csv --page raw --print-units base --clock-control none --launch-count";
    let rest = [NCU_LAUNCHES, "--set", set, "--log-file", log];
    [words(flags), rest.map(str::to_owned).to_vec()].concat()
}

/// Follows the child processes of the command: it may be a shell, or make.
fn valgrind(name: &str, command: &[String]) -> ProfilerStart {
    let flags = "--cache-sim=yes --branch-sim=yes --trace-children=yes";
    // With the cost of each instruction, to find out what was vectorized.
    let more = match name {
        "callgrind" => words("--dump-instr=yes"),
        _ => Vec::new(),
    };
    let tool = [
        "valgrind".to_owned(),
        format!("--tool={name}"),
        format!("--{name}-out-file=%q{{{DIR_VARIABLE}}}/{name}.%p"),
    ];
    ProfilerStart {
        commands: vec![[tool.to_vec(), words(flags), more, command.to_vec()].concat()],
        environment: vec![("LC_ALL".to_owned(), "C".to_owned())],
        output: ProfilerOutput::FileOfEach(format!("{name}.")),
        printed: StdoutWriter::ByTheTool,
    }
}

fn perf(events: &str, out: &str) -> Vec<String> {
    let rest = ["-o", out, "-e", events, "--"];
    [words("perf stat -x,"), rest.map(str::to_owned).to_vec()].concat()
}

fn nsys(command: &[String], dir: &Path) -> ProfilerStart {
    let report = dir.join("karve.nsys-rep").to_string_lossy().into_owned();
    let out = dir.join("karve.sqlite");
    let to = out.to_string_lossy().into_owned();
    let profile = words("nsys profile --trace cuda,nvtx --force-overwrite true --output");
    let export = words("nsys export --type sqlite --force-overwrite true --output");
    ProfilerStart {
        commands: vec![
            [profile, vec![report.clone()], aside(command)].concat(),
            [export, vec![to, report]].concat(),
        ],
        environment: vec![("LC_ALL".to_owned(), "C".to_owned())],
        output: ProfilerOutput::File(out),
        printed: StdoutWriter::ByItself,
    }
}

fn rocprof_compute(command: &[String], dir: &Path) -> ProfilerStart {
    let dir = dir.to_string_lossy().into_owned();
    let profile = words("rocprof-compute profile -n karve -p");
    let analyze = [words("rocprof-compute analyze -p"), vec![dir.clone()]].concat();
    ProfilerStart {
        commands: vec![[profile, vec![dir], words("--"), aside(command)].concat(), analyze],
        environment: vec![("LC_ALL".to_owned(), "C".to_owned())],
        output: ProfilerOutput::Stdout,
        printed: StdoutWriter::ByItself,
    }
}

/// Why a tool failed, if that is known, from its exit code (none if it could not be started,
/// 128 plus the signal if it was killed by one) and its output.
pub fn diagnose_failure(tool: ProfilerTool, exit: Option<i32>, said: &str) -> Option<ProfilerHint> {
    let hint = |problem: &str, hints: &[&str]| {
        Some(ProfilerHint {
            problem: problem.to_owned(),
            hints: hints.iter().map(|hint| (*hint).to_owned()).collect(),
        })
    };
    if matches!(exit, None | Some(127)) {
        let problem = format!("{} is not installed or not in PATH", tool.program());
        return hint(&problem, &[install(tool)]);
    }
    if said.contains("ERR_NVGPUCTRPERM") {
        return hint(
            "the driver allows only administrators to read the GPU counters",
            &[
                "write \"options nvidia NVreg_RestrictProfilingToUserGroups=0\" to \
                 /etc/modprobe.d/nvidia-profiling.conf and reload the driver",
                "in a container, give it the capability: --cap-add SYS_ADMIN",
                "or ask the administrator of the host, and use --tool nsys until then",
            ],
        );
    }
    if said.contains("perf_event_paranoid") {
        return hint(
            "the kernel allows only administrators to count events",
            &[
                "run \"sysctl kernel.perf_event_paranoid=1\" as root",
                "in a container, give it the capability: --cap-add PERFMON",
            ],
        );
    }
    let illegal = ["SIGILL", "Illegal instruction", "illegal instruction", "unhandled instruction"];
    let is_valgrind = matches!(tool, ProfilerTool::Cachegrind | ProfilerTool::Callgrind);
    // Valgrind may still write a file, which then covers only the beginning.
    if is_valgrind && (exit == Some(132) || illegal.iter().any(|words| said.contains(words))) {
        return hint(
            "valgrind does not support an instruction of the program, such as AVX-512",
            &["build with -march=x86-64-v3 instead of -march=native, and profile that"],
        );
    }
    None
}

/// How to install a tool.
fn install(tool: ProfilerTool) -> &'static str {
    match tool {
        ProfilerTool::Ncu => {
            "install Nsight Compute: \"apt-get install nsight-compute\" (NVIDIA's packages)"
        }
        ProfilerTool::Nsys => {
            "install Nsight Systems: \"apt-get install nsight-systems\" (NVIDIA's packages)"
        }
        ProfilerTool::Ptxas => "install nvcc, which has ptxas: \"pip install nvidia-cuda-nvcc\"",
        ProfilerTool::Perf => {
            "install perf: \"apt-get install linux-perf\" (Ubuntu: linux-tools-generic)"
        }
        ProfilerTool::Cachegrind | ProfilerTool::Callgrind => {
            "install valgrind: \"apt-get install valgrind\""
        }
        ProfilerTool::Rocprof => {
            "install rocprofv3: \"apt-get install rocprofiler-sdk\" (AMD's packages)"
        }
        ProfilerTool::RocprofCompute => {
            "install rocprof-compute: \"apt-get install rocprofiler-compute\" (AMD's packages)"
        }
        ProfilerTool::Torch => "install PyTorch: \"pip install torch\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulator_is_not_started_where_it_would_be_killed() {
        let s = Duration::from_secs;
        let why = too_long(ProfilerTool::Callgrind, s(8), s(60)).unwrap();
        assert!(why.starts_with("it was not started: the benchmark takes 8.0 s alone"), "{why}");
        assert_eq!(too_long(ProfilerTool::Callgrind, s(2), s(60)), None);
        assert_eq!(too_long(ProfilerTool::Perf, s(8), s(60)), None);
    }
}
