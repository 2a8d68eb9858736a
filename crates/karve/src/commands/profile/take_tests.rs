//! Profiles with tools that hang, and of programs that behave differently under a profiler.

use crate::config::{self, CharterTime, Overrides};
use karve_core::charter::Charter;
use karve_core::profile::DiagnosisRuleSet;
use karve_harness::commands::Harness;
use karve_os::process::StopFlag;
use karve_profile::profilers::ProfilerTool;
use karve_profile::profilers::collect::{
    CollectedProfile, DevicePlatform, ProfileRequest, ProfileTarget, take,
};
use karve_profile::profilers::editable::EditableFiles;
use karve_profile::profilers::run::limit_of;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tempfile::TempDir;

const PROJECT: &str = r#"
[target]
op = "toy"
backend = "sh"
device = "cpu"

[sources]
editable = ["kernel.sh"]

[commands]
test = "true"
bench = "sh bench.sh {case}"

[output]
format = "metric"

[metric]
name = "time_us"
unit = "us"

[cases]
list = ["n=1"]
"#;

/// Prints what perf prints to the file after `-o`; then runs the program.
const PERF: &str = "#!/bin/sh
echo perf >>ran
echo '1000,,instructions,276829,100.00,,' >\"$4\"
while [ \"$1\" != -- ]; do shift; done
shift
UNDER=1 \"$@\"
";

/// A project with its own tools, which come before those of the host.
struct Lab {
    dir: TempDir,
    charter: Charter,
}

impl Lab {
    fn new(bench: &str, tools: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("bench.sh"), bench).unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for (name, text) in tools {
            let path = bin.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let now = CharterTime { minute: "2026-01-01 00:00".into() };
        let loaded = config::parse(PROJECT, dir.path(), &Overrides::default(), &now).unwrap();
        let mut charter = loaded.charter;
        let path = format!("{}:/usr/bin:/bin", bin.display());
        charter.commands.env.insert("PATH".into(), path);
        Self { dir, charter }
    }

    fn take(&self, tool: Option<ProfilerTool>) -> CollectedProfile {
        let tree = self.dir.path();
        let harness = Harness::new(&self.charter, &tree.join("tmp"), "", &StopFlag::new());
        // Long enough for a benchmark that does nothing.
        let harness = harness.with_limit(Duration::from_secs(3));
        let subject = ProfileTarget {
            tree,
            case: &self.charter.cases[0],
            runs: DevicePlatform::Cpu,
            editable: &EditableFiles::default(),
        };
        let wish = ProfileRequest { tool, ..ProfileRequest::default() };
        take(&harness, subject, wish, DiagnosisRuleSet::Karve).unwrap()
    }

    fn ran(&self) -> String {
        fs::read_to_string(self.dir.path().join("ran")).unwrap_or_default()
    }
}

fn problem(taken: &CollectedProfile, tool: ProfilerTool) -> &str {
    let mut failed = taken.failed.iter().filter(|(failed, _)| *failed == tool);
    let (_, hint) = failed.next().unwrap_or_else(|| panic!("{taken:?}"));
    assert!(failed.next().is_none(), "{taken:?}");
    assert!(!hint.hints.is_empty());
    &hint.problem
}

#[test]
fn a_tool_that_hangs_is_ended_and_not_tried_again() {
    let hangs = "#!/bin/sh\necho perf >>ran\nsleep 1000 &\nwait\n";
    let fails = "#!/bin/sh\necho valgrind >>ran\nexit 1\n";
    let bench = "echo METRIC time_us=5\n";
    let lab = Lab::new(bench, &[("perf", hangs), ("valgrind", fails)]);
    let taken = lab.take(None);
    let why = problem(&taken, ProfilerTool::Perf);
    assert!(why.contains("was killed after"), "{why}");
    assert!(why.contains("the benchmark alone takes 0."), "{why}");
    // It runs twice, light and full, unless it hangs.
    assert_eq!(lab.ran(), "perf\nvalgrind\n");
    assert!(taken.parsed.kernels.is_empty());
}

#[test]
fn what_a_tool_says_is_believed_only_if_the_benchmark_did_what_it_does_alone() {
    let check = |bench: &str, want: Result<(), &str>| {
        let lab = Lab::new(bench, &[("perf", PERF)]);
        let taken = lab.take(Some(ProfilerTool::Perf));
        match want {
            Ok(()) => {
                assert!(taken.failed.is_empty(), "{taken:?}");
                assert_eq!(taken.parsed.kernels[0].value("instructions"), Some(1000.0));
                assert!(taken.alone.is_some_and(|alone| alone.is_ok()));
            }
            Err(words) => {
                let why = problem(&taken, ProfilerTool::Perf);
                assert!(why.contains(words), "{why}");
                assert!(taken.parsed.kernels.is_empty() && taken.raw.is_empty());
            }
        }
    };
    check("echo METRIC time_us=5\n", Ok(()));
    let silent = "[ -n \"$UNDER\" ] || echo METRIC time_us=5\n";
    check(silent, Err("was discarded"));
    let other = "[ -n \"$UNDER\" ] && echo METRIC time_us=0 || echo METRIC time_us=5\n";
    check(other, Err("was discarded"));
    let failing = "echo METRIC time_us=5\n[ -z \"$UNDER\" ]\n";
    check(failing, Err("fails under it: exit code 1"));
    // The output of the program is not mistaken for the output of the tool.
    let forged = "echo METRIC time_us=5\necho 7777,,instructions,1,100.00,,\n";
    check(forged, Ok(()));
}

#[test]
fn a_benchmark_that_fails_alone_is_not_profiled() {
    let lab = Lab::new("exit 4\n", &[("perf", PERF)]);
    let taken = lab.take(None);
    assert_eq!(lab.ran(), "");
    assert!(taken.parsed.notes[0].contains("the benchmark fails without a profiler"), "{taken:?}");
    assert!(taken.alone.is_some_and(|alone| alone.is_err()));
}

#[test]
fn a_tool_may_take_some_times_as_long_as_the_benchmark_within_bounds() {
    let check = |tool, alone_s: f64, want_s: u64| {
        let limit = limit_of(tool, Duration::from_secs_f64(alone_s));
        assert_eq!(limit, Duration::from_secs(want_s), "{tool:?} {alone_s}");
    };
    check(ProfilerTool::Perf, 0.001, 30);
    check(ProfilerTool::Perf, 5.0, 50);
    check(ProfilerTool::Callgrind, 0.5, 100);
    check(ProfilerTool::Callgrind, 60.0, 300);
    check(ProfilerTool::Nsys, 2.0, 60);
    check(ProfilerTool::Ncu, 1e12, 300);
}
