//! One small project of each kind; karve must accept every proposed file.

use super::{ConfigProposal, ProjectFiles, apply_answer, propose, questions, render_karve_toml};
use crate::config::{self, CharterTime, LoadedConfig, Overrides};
use karve_core::charter::Better;
use proptest::prelude::*;
use std::path::Path;

const MAKE: &str = "all: build/test build/bench\nbuild/test: test.o\nbuild/bench: bench.o\n";

/// Paths of any quality.
const ANY_PATH: &str = "[a-z_./\"' {}$]{1,14}(\\.py|\\.c|\\.cu|\\.rs|)";

pub(super) fn found(files: &[(&str, &str)]) -> ProjectFiles {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    ProjectFiles { files: files.collect(), kernel: None }
}

fn accepted(proposal: &ConfigProposal) -> LoadedConfig {
    let text = render_karve_toml(proposal);
    let now = CharterTime { minute: "2025-11-02 08:30".into() };
    let loaded = config::parse(&text, Path::new("/p"), &Overrides::default(), &now);
    loaded.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Makes a proposal for the files, checks that karve accepts it, and compares the main parts.
fn check(files: &[(&str, &str)], want: [&str; 6]) -> ConfigProposal {
    let proposal = propose(&found(files));
    let charter = accepted(&proposal).charter;
    assert_eq!(charter.editable, proposal.editable);
    assert_eq!(charter.commands.test, proposal.test);
    let text = render_karve_toml(&proposal);
    assert!(!text.contains("TODO"));
    assert!(text.lines().all(|line| line.chars().count() <= 100 || !line.starts_with('#')));
    let build = proposal.build.as_deref().unwrap_or("none");
    let (op, backend) = (proposal.op.as_str(), proposal.backend.as_str());
    let got = [op, backend, &proposal.editable[0], build, &proposal.test, &proposal.bench];
    assert_eq!(got, want, "{:#?}", proposal.why);
    assert!(!proposal.why.is_empty());
    proposal
}

#[test]
fn a_project_like_our_examples_is_recognized() {
    let bench = "int main(void) { printf(\"METRIC gemm_gflops=%f case=%s\\n\", x, name); }";
    let files = [
        ("Makefile", MAKE),
        ("kernel.c", "void matmul(void) { for (;;) {} }"),
        ("kernel.h", ""),
        ("flags.mk", "OPT = -O2"),
        ("bench.c", bench),
        ("test.c", "int main(void) { for (;;) {} }"),
    ];
    let (test, bench) = ("./build/test {case} {seed}", "./build/bench {case} {seed}");
    let proposal = check(&files, ["matmul", "c", "kernel.c", "make -s", test, bench]);
    assert_eq!(proposal.editable, ["kernel.c", "flags.mk"]);
    assert_eq!(proposal.metric_name, "gemm_gflops");
    assert_eq!((proposal.metric_unit.as_str(), proposal.better), ("gflops", Better::Higher));
    assert_eq!(proposal.cases[0], "M=256,N=256,K=256");
}

#[test]
fn targets_of_a_makefile_are_used() {
    let files = [
        ("Makefile", "check: all\n\t./run $(CASE)\nbench: all\n\t./run -b $(CASE)\n"),
        ("src/softmax.cpp", "void f() { for (;;) {} }"),
    ];
    let want = [
        "softmax",
        "cpp",
        "src/softmax.cpp",
        "make -s",
        "make -s check CASE={case}",
        "make -s bench CASE={case}",
    ];
    check(&files, want);
    let one = [("Makefile", "test: all\n\t./t\n"), ("k.c", "for (;;)")];
    check(&one, ["k", "c", "k.c", "make -s", "make -s test", "./build/bench {case} {seed}"]);
}

#[test]
fn cmake_and_cargo_are_recognized() {
    let lists = "enable_testing()\nadd_executable(fft_bench bench.cc)\nadd_test(NAME t)\n";
    let files = [("CMakeLists.txt", lists), ("fft.cc", "for (;;)"), ("bench.cc", "for (;;)")];
    let want = [
        "fft",
        "cpp",
        "fft.cc",
        "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build -j",
        "ctest --test-dir build --output-on-failure",
        "./build/fft_bench {case} {seed}",
    ];
    check(&files, want);
    let files = [
        ("Cargo.toml", "[package]\nname = \"x\"\n"),
        ("src/lib.rs", "pub mod scan;"),
        ("src/scan.rs", "pub fn scan() { for x in 0..3 {} }"),
        ("benches/scan.rs", "fn main() { for x in 0..3 {} }"),
    ];
    let test = "cargo test --release -q";
    let proposal = check(
        &files,
        [
            "scan",
            "rust",
            "src/scan.rs",
            "cargo build --release -q && cargo bench -q --no-run --bench scan",
            test,
            "cargo bench -q --bench scan",
        ],
    );
    assert_eq!(proposal.cases, ["default"]);
    assert!(render_karve_toml(&proposal).contains("[sandbox]"));
    let charter = accepted(&proposal).charter;
    assert_eq!(charter.sandbox.write, ["target"]);
}

#[test]
fn a_crate_that_needs_others_is_told_to_commit_its_lock_file() {
    let told = |manifest: &str, lock: Option<(&'static str, &'static str)>| {
        let files = [("Cargo.toml", manifest), ("src/lib.rs", "pub fn scan() {}")];
        let files: Vec<(&str, &str)> = files.into_iter().chain(lock).collect();
        let why = propose(&found(&files)).why;
        why.iter().any(|why| why.contains("Cargo.lock is not committed"))
    };
    let needs = "[package]\nname = \"x\"\n[dev-dependencies]\ncriterion = \"0.5\"\n";
    assert!(told(needs, None));
    assert!(!told(needs, Some(("Cargo.lock", "version = 4\n"))));
    assert!(!told("[package]\nname = \"x\"\n[dependencies]\n", None));
}

#[test]
fn cuda_without_a_build_system_is_compiled_directly() {
    let kernel = "__global__ void reduce(float *x) {}";
    let files = [("reduce.cu", kernel), ("test_reduce.cu", "int main() {}"), ("bench.cu", "main")];
    let build = "mkdir -p build && nvcc -O3 -o build/test test_reduce.cu reduce.cu && \
                 nvcc -O3 -o build/bench bench.cu reduce.cu";
    let (test, bench) = ("./build/test {case} {seed}", "./build/bench {case} {seed}");
    let proposal = check(&files, ["reduce", "cuda", "reduce.cu", build, test, bench]);
    assert_eq!(proposal.device, "gpu");
}

#[test]
fn python_projects_are_recognized() {
    let cutile = "import cuda.tile as ct\n@ct.kernel\ndef k(): pass\n";
    let files = [
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("Makefile", "lint:\n\truff\n"),
        ("src/ops/attention.py", cutile),
        ("src/ops/__init__.py", ""),
        ("tests/test_attention.py", "import torch\ndef test_perf(): pass\n"),
    ];
    let test = "python3 -m pytest -q";
    let bench = "python3 -m pytest -q -k test_perf --print-record";
    let file = "src/ops/attention.py";
    let proposal = check(&files, ["attention", "cutile", file, "none", test, bench]);
    assert_eq!(
        (proposal.format.as_str(), proposal.metric_name.as_str()),
        ("pytest", "forward.mean")
    );

    let triton = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(): pass\n";
    let files = [("rms_norm.py", triton), ("benchmark.py", "import rms_norm"), ("check.py", "")];
    let test = "python3 rms_norm.py --check {case} {seed}";
    let bench = "python3 benchmark.py {case} {seed}";
    check(&files, ["rmsnorm", "triton", "rms_norm.py", "none", test, bench]);

    let files = [
        ("stencil.py", "import numpy as np\ndef step(a): return a\n"),
        ("bench.py", "print(\"METRIC time_us=%f\")"),
        ("test_stencil.py", "def test_it(): pass"),
    ];
    let (test, bench) = ("python3 -m pytest -q", "python3 bench.py {case} {seed}");
    let proposal = check(&files, ["stencil", "numpy", "stencil.py", "none", test, bench]);
    assert_eq!(proposal.metric_name, "time_us");
}

#[test]
fn the_kernel_is_what_the_benchmark_measures_not_what_a_test_calls_by_its_name() {
    let trigger = "import numpy as np\n\ndef sta_lta(x):\n    return x\n";
    let picks = "import numpy as np\ndef picks(ratio):\n    main()\ndef main():\n    return 1\n";
    let bench = "from seismo import sta_lta\ndef main():\n    pass\n\
                 def test_it(benchmark):\n    benchmark(sta_lta, x)\n";
    let files = [
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("src/seismo/__init__.py", "from .trigger import sta_lta\nfrom .picks import picks\n"),
        ("src/seismo/picks.py", picks),
        ("src/seismo/trigger.py", trigger),
        ("tests/test_trigger.py", "def test_it():\n    picks(sta_lta(x))\n"),
        ("benchmarks/bench_trigger.py", bench),
    ];
    assert_eq!(propose(&found(&files)).editable, ["src/seismo/trigger.py"]);
}

#[test]
fn languages_of_gpus_are_told_apart() {
    let of = |file: &str, text: &str| {
        let proposal = propose(&found(&[(file, text), ("test_it.py", "def test_it(): pass")]));
        accepted(&proposal);
        (proposal.backend.clone(), proposal.language.clone(), proposal.why.join("\n"))
    };
    for (file, text, backend, language) in [
        ("softmax.py", "import triton\nimport cuda.tile as ct\n@ct.kernel\n", "cutile", "cuTile"),
        ("softmax.py", "from cuda import tile\n", "cutile", "cuTile"),
        ("gemm.py", "import torch\nimport cutlass\n@cute.jit\n", "cute-dsl", "CuTe DSL"),
        ("gemm.py", "import cutlass.cute as cute\n", "cute-dsl", "CuTe DSL"),
        ("gemm.py", "from cutlass import cute\n", "cute-dsl", "CuTe DSL"),
        ("gemm.py", "import flydsl.compiler as flyc\n@flyc.kernel\n", "flydsl", "FlyDSL"),
        ("gemm.py", "import torch\nimport triton\n@triton.jit\n", "triton", "Triton"),
        ("gemm.hip", "__global__ void k();", "hip", "HIP"),
        ("gemm.cpp", "#include <hip/hip_runtime.h>\n__global__ void k();", "hip", "HIP"),
        ("gemm.cu", "#include \"hip/hip_runtime.h\"\n__global__ void k();", "hip", "HIP"),
        ("gemm.cpp", "#include \"ck_tile/ops/gemm.hpp\"\n", "hip", "HIP"),
        ("gemm.cpp", "#include <ck/library/utility/device_memory.hpp>\n", "hip", "HIP"),
        ("gemm.cu", "__global__ void k();", "cuda", "CUDA"),
    ] {
        let (own, named, why) = of(file, text);
        assert_eq!((own.as_str(), named.as_str()), (backend, language), "{text}");
        assert!(why.contains(&format!("karve new --template {backend}")), "{why}");
        let is_amd = ["hip", "flydsl"].contains(&backend);
        assert_eq!(why.contains("cannot call kernels on AMD GPUs"), is_amd, "{why}");
    }
    // A module that only mentions one is plain Python.
    let (plain, _, why) = of("softmax.py", "# like cuda.tile, but slower\ndef softmax(x): pass\n");
    assert_eq!(plain, "python");
    assert!(!why.contains("--template"), "{why}");
}

const RMS_NORM: &str = "import cuda.tile as ct\nfrom tilegym.backend import register_impl\n\
    @ct.kernel(occupancy=2)\ndef _rms_kernel(x, y): pass\n\
    def _rms_autotune_configs():\n    yield SimpleNamespace(TILE=128)\n\
    @register_impl(\"rms_norm\", backend=\"cutile\")\ndef rms_norm(x):\n\
    ct.launch(stream, grid, _rms_kernel, (x, y))\n";

#[test]
fn a_kernel_of_tilegym_gets_the_workflow_of_tilegym() {
    let mut files = found(&[
        (
            "src/tilegym/ops/cutile/attention.py",
            "import cuda.tile as ct\n@ct.kernel\ndef k(): pass",
        ),
        ("src/tilegym/ops/cutile/rms_norm.py", RMS_NORM),
        ("src/tilegym/suites/liger/cutile/rms_norm.py", RMS_NORM),
        ("tests/ops/test_rms_norm.py", "def test_perf(): pass"),
        ("tests/suites/liger/test_rms_norm.py", "def test_perf(): pass"),
    ]);
    files.kernel = Some("src/tilegym/ops/cutile/rms_norm.py".into());
    let mut proposal = propose(&files);
    assert_eq!((&*proposal.op, &*proposal.preset), ("rms_norm", "tilegym"));
    let run = "python3 -m pytest tests/ops/test_rms_norm.py -k";
    assert_eq!(proposal.test, format!("{run} \"test_ and cutile and not test_perf\" -v"));
    assert_eq!(proposal.bench, format!("{run} \"test_perf and cutile\" --print-record -v"));
    let why = proposal.why.join("\n");
    for part in [
        "@ct.kernel: _rms_kernel.",
        "Launched by ct.launch in line 9.",
        "@register_impl: rms_norm.",
        "Lines with autotune configurations: 5, 6.",
        "as in \"karve init attention\"",
    ] {
        assert!(why.contains(part), "no {part} in {why}");
    }
    super::take_cases(
        &mut proposal,
        "tests/ops/test_rms_norm.py::T::test_perf[cutile-persistent-1024]\n\
         tests/ops/test_rms_norm.py::T::test_perf[cutile-persistent-2048]\n\n2 tests collected\n",
    );
    let charter = accepted(&proposal).charter;
    assert_eq!(charter.policy.preset.name(), "tilegym");
    assert_eq!(charter.output.label.as_deref(), Some("Cutile"));
    let names: Vec<&str> = charter.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["cutile-persistent-1024", "cutile-persistent-2048"]);
    assert_eq!(
        charter.branch,
        karve_core::charter::Branch::Named { name: "cutile-perf-rms_norm-20251102".into() }
    );
    files.kernel = Some("src/tilegym/suites/liger/cutile/rms_norm.py".into());
    assert!(propose(&files).test.contains(" tests/suites/liger/test_rms_norm.py "));
}

#[test]
fn nothing_at_all_still_gives_a_file_to_edit() {
    let (test, bench) = ("sh test.sh {case} {seed}", "sh bench.sh {case} {seed}");
    check(&[], ["kernel", "c", "kernel.c", "none", test, bench]);
}

#[test]
fn an_answer_changes_what_it_names_and_nothing_else() {
    let proposal = propose(&found(&[("Makefile", MAKE), ("kernel.c", "for (;;)")]));
    for question in questions(&proposal) {
        let mut same = proposal.clone();
        apply_answer(&mut same, question.key, &question.default).unwrap();
        apply_answer(&mut same, question.key, " ").unwrap();
        assert_eq!(same, proposal, "{}", question.key);
    }
    let mut changed = proposal.clone();
    for (key, answer) in [
        ("op", "say \"hi\"\\"),
        ("editable", "a.c b.c a.c"),
        ("build", "none"),
        ("better", "higher"),
        ("format", "csv"),
        ("cases", "N=1 N=2"),
    ] {
        apply_answer(&mut changed, key, answer).unwrap();
    }
    let charter = accepted(&changed).charter;
    assert_eq!(charter.target.op, "say \"hi\"\\");
    assert_eq!(charter.editable, ["a.c", "b.c"]);
    assert_eq!(charter.commands.build, None);
    assert_eq!(charter.metric.better, Better::Higher);
    assert_eq!(charter.cases[1].params["N"], "2");
    for (key, answer) in [("better", "faster"), ("format", "xml"), ("nothing", "x")] {
        assert!(apply_answer(&mut changed, key, answer).is_err(), "{key}");
    }
}

proptest! {
    #[test]
    fn every_listing_gives_a_file_that_karve_accepts(
        files in prop::collection::vec((ANY_PATH, ".{0,80}"), 0..5),
        system in prop::sample::select(vec!["Makefile", "CMakeLists.txt", "Cargo.toml", "x.py"]),
    ) {
        let mut files = files;
        files.push((system.to_owned(), "test: all\nadd_executable(bench{x} y)\n".to_owned()));
        accepted(&propose(&ProjectFiles { files, kernel: None }));
    }
}
