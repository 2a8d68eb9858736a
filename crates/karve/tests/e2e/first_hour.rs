//! The first hour with a project that was not made for karve: from `karve init` to a `karve.toml`
//! that passes `karve doctor` without an edit, and on to a kept gain.
//!
//! By default, whole campaigns run where building and measuring takes little; `KARVE_TEST_ALL=1`
//! takes every project through doctor, and all of them whose kernel a test can make faster to a
//! branch.

use crate::e2e::lab::{Lab, Said, by_default};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A project that runs on a CPU, and what `karve init` must find.
struct CpuProject {
    name: &'static str,
    /// What must be there to build and run it.
    needs: &'static [Need],
    /// Parts of its `karve.toml`.
    has: &'static [&'static str],
}

/// What a project needs.
enum Need {
    Program(&'static str),
    Module(&'static str),
    File(&'static str),
    /// Crates that cargo can use without a network.
    Crates,
}

impl Need {
    /// What is missing here, if it is.
    fn missing(&self, lab: &Lab) -> Option<String> {
        let (is_there, what) = match self {
            Self::Program(name) => {
                let found = ["/usr/bin", "/usr/local/bin"];
                (found.iter().any(|dir| Path::new(dir).join(name).exists()), *name)
            }
            Self::Module(name) => {
                let import = ["-c", &format!("import {name}")];
                let said = Command::new("/usr/bin/python3").args(import).output();
                (said.is_ok_and(|said| said.status.success()), *name)
            }
            Self::File(path) => (Path::new(path).exists(), *path),
            Self::Crates => {
                let mut fetch = Command::new(env!("CARGO"));
                fetch.args(["fetch", "--locked", "--offline", "--manifest-path"]);
                let said = fetch.arg(lab.path("Cargo.toml")).output();
                (said.is_ok_and(|said| said.status.success()), "the crates of Cargo.lock")
            }
        };
        (!is_there).then(|| what.to_owned())
    }
}

const CMAKE: CpuProject = CpuProject {
    name: "cmake-gbench",
    needs: &[Need::Program("cmake"), Need::File("/usr/include/benchmark/benchmark.h")],
    has: &[
        "editable = [\"src/box_filter.cpp\"]",
        "test = \"ctest --test-dir build --output-on-failure\"",
        "bench = \"./build/bench/box_filter_bench --benchmark_format=json",
        "format = \"google-benchmark\"",
        "list = [\"BM_BoxFilter/128\", \"BM_BoxFilter/512\"]",
    ],
};

const MAKE: CpuProject = CpuProject {
    name: "make",
    needs: &[],
    has: &[
        "editable = [\"matvec.c\"]",
        "test = \"make -s check\"",
        "bench = \"./bench\"",
        "pattern = \"matvec {case} {time_us} us{}checksum {checksum}{}\"",
        "list = [\"256x256\", \"512x512\"]",
    ],
};

const CRITERION: CpuProject = CpuProject {
    name: "cargo-criterion",
    needs: &[Need::Crates],
    has: &[
        "editable = [\"src/histogram.rs\"]",
        "bench = \"cargo bench -q --bench histogram -- --noplot",
        "format = \"criterion\"",
        "list = [\"histogram/4096\", \"histogram/65536\"]",
    ],
};

const CARGO: CpuProject = CpuProject {
    name: "cargo-plain",
    needs: &[],
    has: &[
        "op = \"distance\"",
        "editable = [\"src/lib.rs\"]",
        "bench = \"cargo bench -q --bench distance\"",
        "pattern = \"distance/{case}: {time_us} us{}result {checksum}{}\"",
        "list = [\"200\", \"600\"]",
    ],
};

const PYTEST: CpuProject = CpuProject {
    name: "pytest-benchmark",
    needs: &[Need::Module("numpy"), Need::Module("pytest_benchmark")],
    has: &[
        "editable = [\"src/neighbors/pairwise.py\"]",
        "test = \"python3 -m pytest -q --benchmark-disable\"",
        "--benchmark-json={out}",
        "env = { PYTHONPATH = \"src\" }",
        "format = \"pytest-benchmark\"",
        "tests/test_pairwise.py::test_speed[64]",
    ],
};

const NUMPY: CpuProject = CpuProject {
    name: "numpy-script",
    needs: &[Need::Module("numpy")],
    has: &[
        "editable = [\"stencil.py\"]",
        "test = \"python3 -m unittest discover -s . -t .\"",
        "bench = \"python3 bench_stencil.py\"",
        "list = [\"32x32\", \"96x96\"]",
    ],
};

const PLAIN_C: CpuProject = CpuProject {
    name: "plain-c",
    needs: &[],
    has: &[
        "editable = [\"saxpby.c\"]",
        "[contract]",
        "{ name = \"y\", kind = \"inout\", dtype = \"f32\", shape = [\"n\"] }",
    ],
};

/// A karve command in the project, with cargo on the `PATH`.
fn karve(lab: &Lab, args: &[&str]) -> Said {
    let cargo = Path::new(env!("CARGO")).parent().expect("a directory");
    let mut command = lab.command(args);
    command.env("PATH", format!("{}:{}", cargo.display(), crate::e2e::lab::PATH));
    if let Some(home) = std::env::var_os("CARGO_HOME")
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo").into_os_string()))
    {
        command.env("CARGO_HOME", home);
    }
    Said::of(&command.output().unwrap())
}

/// The project after `karve init`, with everything committed; none if a tool is missing.
fn initialized(project: &CpuProject) -> Option<Lab> {
    let lab = Lab::of_project(project.name);
    if let Some(what) = project.needs.iter().find_map(|need| need.missing(&lab)) {
        println!("skipped: {} needs {what}", project.name);
        return None;
    }
    karve(&lab, &["init", "--yes"]).ends(0).complains(&["found: "]);
    let text = lab.read("karve.toml");
    for part in project.has {
        assert!(text.contains(part), "no {part} in {text}");
    }
    lab.commit();
    Some(lab)
}

fn passes_doctor(project: &CpuProject) -> Option<Lab> {
    let lab = initialized(project)?;
    let said = karve(&lab, &["doctor"]).ends(0);
    if !project.has.contains(&"[contract]") {
        said.shows(&["the tests killed "]);
    }
    Some(lab)
}

/// Submits a change of a file in a round that is driven by hand.
fn submitted(lab: &Lab, file: &str, from: &str, to: &str) -> Said {
    karve(lab, &["next", "--yes"]).ends(0);
    let workspace = fs::read_dir(lab.path(".karve")).unwrap();
    let campaign = workspace.flatten().find(|entry| entry.path().join("agent-workspace").exists());
    let kernel = campaign.expect("a campaign").path().join("agent-workspace").join(file);
    let idea = serde_json::json!({
        "title": "walk along rows",
        "mechanism": "the cache lines are used whole",
        "expected_ratio": 1.5,
    });
    fs::write(lab.beside("idea.json"), idea.to_string()).unwrap();
    let idea = lab.beside("idea.json").to_string_lossy().into_owned();
    karve(lab, &["propose", &idea]).ends(0);
    let text = fs::read_to_string(&kernel).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&kernel, text.replace(from, to)).unwrap();
    karve(lab, &["submit", "--json"])
}

/// Drives one round by hand, and takes the gain to a branch.
fn gains(lab: &Lab, file: &str, from: &str, to: &str) {
    let turn = submitted(lab, file, from, to).ends(0).json();
    assert_eq!(turn["last"]["verdict"], "keep", "{turn}");
    karve(lab, &["run", "--yes", "--rounds", "1"]).ends(0);
    karve(lab, &["report"])
        .ends(0)
        .shows(&["Mutation check before the baseline: the tests killed "]);
    karve(lab, &["apply", "--branch", "faster"]).ends(0);
    assert!(lab.git(&["show", &format!("faster:{file}")]).contains(to.trim()));
}

#[test]
fn a_makefile_project_goes_from_init_to_a_branch() {
    let Some(lab) = passes_doctor(&MAKE) else {
        return;
    };
    let from = "    for (j = 0; j < cols; j++)
        for (i = 0; i < rows; i++)
            y[i] += a[i * cols + j] * x[j];";
    let to = "    for (i = 0; i < rows; i++) {
        const double *row = a + i * cols;
        double sum[4] = {0.0, 0.0, 0.0, 0.0};

        for (j = 0; j + 4 <= cols; j += 4) {
            sum[0] += row[j] * x[j];
            sum[1] += row[j + 1] * x[j + 1];
            sum[2] += row[j + 2] * x[j + 2];
            sum[3] += row[j + 3] * x[j + 3];
        }
        for (; j < cols; j++)
            sum[0] += row[j] * x[j];
        y[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }";
    gains(&lab, "matvec.c", from, to);
}

#[test]
fn a_wrong_result_that_the_tests_miss_shows_in_the_checksum_of_the_benchmark() {
    let lab = initialized(&MAKE).expect("it needs nothing");
    // The tests have no more than 64 columns.
    let (from, to) = ("j < cols; j++", "j < cols - (cols > 64); j++");
    let said = submitted(&lab, "matvec.c", from, to).ends(1);
    let turn = said.json();
    assert_eq!((&turn["turn"], &turn["retry"]), (&"implement".into(), &1.into()), "{turn}");
    for part in ["the benchmark's checksum is ", "the tests did not notice"] {
        assert!(said.stdout.contains(part), "no {part} in {said:#?}");
    }
}

#[test]
fn a_crate_with_a_plain_benchmark_passes_doctor() {
    passes_doctor(&CARGO);
}

#[test]
fn what_a_benchmark_prints_is_found_by_running_it() {
    let lab = Lab::of_project("cargo-plain");
    let bench = "benches/distance.rs";
    lab.replace(bench, "distance/{n}: {:.1} us", "distance of {n} letters: {:.1} us").commit();
    let said = karve(&lab, &["init", "--yes"]).ends(0);
    said.complains(&["prints lines like \"distance of {case} letters: {time_us} us"]);
    assert!(!lab.read("karve.toml").contains("must print METRIC"));
    // The same for a table.
    let lab = Lab::of_project("cargo-plain");
    lab.replace(bench, "for n in [", "println!(\"n,time_us\");\n    for n in [");
    let line = "distance/{n}: {:.1} us per call (result {last})\", best * 1e6";
    lab.replace(bench, line, "{n},{:.1}\", best * 1e6 + 0.0 * last as f64").commit();
    let said = karve(&lab, &["init", "--yes"]).ends(0);
    said.complains(&["The benchmark's output is read as \"csv\": time_us in us."]);
    assert!(!lab.read("karve.toml").contains("must print METRIC"));
}

#[test]
fn a_numpy_script_passes_doctor() {
    by_default(initialized as fn(&CpuProject) -> Option<Lab>, passes_doctor)(&NUMPY);
}

#[test]
fn a_cmake_project_with_google_benchmark_gets_its_cases() {
    let lab = by_default(initialized as fn(&CpuProject) -> Option<Lab>, passes_doctor)(&CMAKE);
    if let Some(lab) = lab.filter(|_| by_default(false, true)) {
        let from = "    for (long x = 0; x < w; ++x) {\n        for (long y = 0; y < h; ++y) {";
        let to = "    for (long y = 0; y < h; ++y) {\n        for (long x = 0; x < w; ++x) {";
        gains(&lab, "src/box_filter.cpp", from, to);
    }
}

#[test]
fn a_project_with_pytest_benchmark_gets_its_cases() {
    by_default(initialized as fn(&CpuProject) -> Option<Lab>, passes_doctor)(&PYTEST);
}

#[test]
fn a_plain_function_gets_a_contract() {
    by_default(initialized as fn(&CpuProject) -> Option<Lab>, passes_doctor)(&PLAIN_C);
}

#[test]
fn a_crate_with_criterion_needs_no_command_that_prints_its_files() {
    if by_default(false, true) {
        passes_doctor(&CRITERION);
        return;
    }
    // Building criterion takes a minute; what is detected does not need it.
    let lab = Lab::of_project(CRITERION.name);
    karve(&lab, &["init", "--yes", "--no-run"]).ends(0).complains(&["uses criterion"]);
    let text = lab.read("karve.toml");
    let found = CRITERION.has.iter().filter(|part| text.contains(*part)).count();
    assert_eq!(found, CRITERION.has.len() - 1, "{text}");
}

/// Projects that run on a GPU, and parts of their `karve.toml`.
const ON_GPU: [(&str, &[&str]); 6] = [
    (
        "triton-main",
        &[
            "bench = \"python3 softmax.py\"",
            "format = \"triton\"",
            "label = \"softmax-performance\"",
            "name = \"Triton\"",
            "unit = \"GB/s\"",
            "list = [\"N=256\", \"N=1280\", \"N=2048\"]",
        ],
    ),
    (
        "cuda-nvcc",
        &[
            "editable = [\"transpose.cu\"]",
            "build = \"make -s\"",
            "test = \"make -s test\"",
            "bench = \"make -s bench\"",
            "pattern = \"n = {case}: {time_ms} ms{}\"",
            "list = [\"1024\", \"2048\", \"4096\"]",
        ],
    ),
    (
        "cute-dsl",
        &[
            "test = \"python3 elementwise_mul.py --M {M} --N {N}\"",
            "bench = \"python3 elementwise_mul.py --M {M} --N {N} --benchmark\"",
            "pattern = \"Average execution time: {time_ms} ms{}\"",
            "list = [\"M=1024,N=1024\"]",
        ],
    ),
    (
        "tilegym",
        &[
            "op = \"silu_and_mul\"",
            "-k \"test_perf and cutile\" --print-record -v",
            "env = { PYTHONPATH = \"src\" }",
            "preset = \"tilegym\"",
        ],
    ),
    (
        "primus",
        &[
            "test = \"python3 -m pytest -q tests/pytorch/ops/test_gemm.py\"",
            "bench = \"python3 benchmark/ops/bench_gemm_turbo.py --output {out}\"",
            "env = { PYTHONPATH = \".\" }",
            "name = \"Forward TFLOPS\"",
            "\"M=4096,N=12288,K=4096\"",
            "preset = \"primus\"",
        ],
    ),
    (
        "kernelbench",
        &[
            "editable = [\"kernel.py\"]",
            "style = \"models\"",
            "device = \"cuda\"",
            "inputs = \"from-module\"",
            "python = \"23_Softmax.py\"",
        ],
    ),
];

#[test]
fn projects_for_a_gpu_get_their_commands_and_doctor_says_that_it_is_missing() {
    if Path::new("/dev/nvidiactl").exists() || Path::new("/dev/kfd").exists() {
        println!("skipped: a GPU is here");
        return;
    }
    for (name, has) in ON_GPU {
        let lab = Lab::of_project(name);
        lab.karve(&["init", "--yes"]).ends(0);
        let text = lab.read("karve.toml");
        for part in has {
            assert!(text.contains(part), "{name}: no {part} in {text}");
        }
        lab.commit();
        let said = lab.karve(&["doctor"]).ends(1);
        said.shows(&["FAILED  gpu         no GPU answers here"]).complains(&["1 check failed"]);
    }
}

#[test]
fn what_does_not_work_is_said_and_nothing_is_guessed_twice() {
    let lab = Lab::of_project("make");
    lab.replace("bench.c", "int main(void)\n{", "int main(void)\n{\n    return 3;").commit();
    let said = karve(&lab, &["init", "--yes"]).ends(0);
    said.complains(&["The benchmark does not work here", "not everything works as proposed"]);

    // A benchmark that prints nothing is timed by karve's own clock.
    let lab = Lab::of_project("make");
    lab.replace("bench.c", "    printf(\"matvec", "    if (y[0] > 9e9) printf(\"matvec").commit();
    karve(&lab, &["init", "--yes"]).ends(0).complains(&["karve's own clock"]);
    assert!(lab.read("karve.toml").contains("name = \"wall_time\""));

    // Without a commit nothing can be run.
    let lab = Lab::of_project("make");
    fs::remove_dir_all(lab.path(".git")).unwrap();
    karve(&lab, &["init", "--yes"]).ends(0).complains(&["Nothing was run", "git init"]);
}
