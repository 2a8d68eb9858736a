//! `karve new`: every template is whole, and those that this machine can run do run: by default
//! through every gate and a few blocks, one of them with its profile, in a full run all through
//! profiles and whole duels.

use crate::e2e::lab::{Lab, Said, by_default};
use std::process::Command;

/// As little evidence as the rules allow, so that a test takes seconds.
const HASTY: &str = "
[device]
pressure_max = 100

[campaign]
name = \"toy\"

[policy.accept]
alpha = 0.2
guard_evidence = 2.0
blocks_min = 1
";

/// A few blocks and nothing else that is measured: no A/A test, no tuning.
const FEW: &str = "blocks_max = 4\n[policy.controls]\nevery = 0\n[policy.tune]\nshare = 0";

/// The measurement as a user has it, with the shortest A/A test.
const WHOLE: &str = "[policy.controls]\nblocks = 8";

/// Makes a project of a template in an empty directory.
fn made(template: &str) -> Lab {
    let lab = Lab::empty();
    let said = lab.karve(&["new", "--template", template, "."]);
    said.ends(0).shows(&["with one commit", "next: cd . && "]);
    lab
}

/// Runs a round of a template, two in a full run, with some directories before the others on the
/// `PATH`.
#[track_caller]
fn runs(template: &str, path: &str) -> Lab {
    let lab = made(template);
    assert_eq!(lab.git(&["status", "--porcelain"]), "", "all is committed");
    if by_default(template != "c", false) {
        lab.unprofiled();
    }
    lab.replace("karve.toml", "rounds = 8", "rounds = 8\nfinal_blocks = 4");
    lab.configure(&format!("{HASTY}\n{}", by_default(FEW, WHOLE)));
    lab.commit();
    let rounds = by_default(1, 2);
    let mut command = lab.command(&["run", "--yes", "--rounds", &rounds.to_string()]);
    if !path.is_empty() {
        command.env("PATH", format!("{path}:/usr/bin:/bin"));
    }
    let said = Said::of(&command.output().unwrap());
    let ended = [0, 1].contains(&said.code) && lab.verdicts().len() == rounds;
    assert!(ended, "{said:#?}");
    for verdict in lab.verdicts() {
        // Whether a knob helps depends on the host; that it is an honest one does not.
        let gates = ["build_failed", "wrong_result", "out_of_scope", "timed_out", "dishonest"];
        assert!(!gates.contains(&verdict.as_str()), "{verdict}: {said:#?}");
    }
    lab
}

#[test]
fn the_template_in_c_runs() {
    runs("c", "");
}

#[test]
fn the_template_in_rust_runs() {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = String::from_utf8(output.unwrap().stdout).unwrap();
    runs("rust", &format!("{}/bin", sysroot.trim()));
}

#[test]
fn the_template_in_python_runs() {
    let mut python = Command::new("/usr/bin/python3");
    let output = python.args(["-c", "import numpy"]).output();
    if !output.is_ok_and(|output| output.status.success()) {
        println!("skipped: /usr/bin/python3 has no NumPy");
        return;
    }
    runs("python-numpy", "");
}

#[test]
fn templates_for_a_gpu_are_whole() {
    for template in ["triton", "cuda", "cutile", "cute-dsl"] {
        let lab = made(template);
        // Read, with every expression and path in it; the kernel has its knobs.
        lab.karve(&["doctor"]).complains(&[]);
        let files = lab.git(&["ls-files"]);
        for file in files.lines().filter(|file| file.ends_with(".py")) {
            let code = "import ast, sys; ast.parse(open(sys.argv[1]).read())";
            let mut python = Command::new("python3");
            let status = python.args(["-c", code]).arg(lab.path(file)).status();
            assert!(status.is_ok_and(|status| status.success()), "{file}");
        }
        let kernel = if template == "cuda" { "kernel.cu" } else { "kernel.py" };
        assert!(lab.read(kernel).contains("karve: knob "), "{template}");
    }
}

#[test]
fn a_template_that_karve_cannot_call_says_so() {
    for (template, kernel) in [("hip", "kernel.hip"), ("flydsl", "kernel.py")] {
        let lab = made(template);
        assert!(lab.read(kernel).contains("karve: knob "), "{template}");
        assert!(lab.read("README.md").contains("karve cannot call this kernel yet"), "{template}");
        let said = lab.karve(&["run", "--yes"]);
        said.ends(2).complains(&["cannot call kernels on an AMD GPU yet", "[commands]"]);
        let said = lab.karve(&["new", "--template", template, "again"]);
        said.ends(0).shows(&["read README.md"]);
    }
}

/// Compiles a file of a template, where the compiler is installed.
#[track_caller]
fn compiles(template: &str, compiler: &str, args: &[&str]) {
    let lab = made(template);
    match Command::new(compiler).args(args).current_dir(lab.path("")).output() {
        Ok(output) => {
            let said = Said::of(&output);
            assert_eq!(said.code, 0, "{said:#?}");
        }
        Err(_) => println!("skipped: there is no {compiler}"),
    }
}

#[test]
fn the_template_in_cuda_compiles_where_nvcc_is() {
    let args = ["-O3", "-arch=sm_80", "-ptx", "-o", "kernel.ptx", "kernel.cu"];
    compiles("cuda", "nvcc", &args);
}

#[test]
fn the_template_in_hip_compiles_where_hipcc_is() {
    for file in ["kernel.hip", "reference.hip"] {
        let args = ["-O3", "--offload-arch=gfx90a", "-shared", "-fPIC", "-o", "kernel.so", file];
        compiles("hip", "hipcc", &args);
    }
}

/// `KARVE_TEST_LANGUAGES` names a Python that has the packages of these languages; the usual one
/// rarely does.
#[test]
fn templates_in_languages_of_python_compile_without_a_gpu() {
    let python = std::env::var("KARVE_TEST_LANGUAGES").unwrap_or_else(|_| "python3".into());
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/languages.py");
    for template in ["cutile", "cute-dsl", "flydsl"] {
        let args = [tool, template, "."];
        compiles(template, &python, &args);
    }
    let entries = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/entries/compile.py");
    compiles("cutile", &python, &[entries, "sm_90"]);
}

#[test]
fn an_occupied_directory_is_left_alone_unless_forced() {
    let lab = made("c");
    lab.write("kernel.c", "mine");
    let said = lab.karve(&["new", "--template", "c", "."]);
    said.ends(2).complains(&["is not empty", "--force"]);
    assert_eq!(lab.read("kernel.c"), "mine");
    let said = lab.karve(&["new", "--template", "c", ".", "--force"]);
    said.ends(0).shows(&["git add . && git commit"]);
    assert!(lab.read("kernel.c").contains("sgemm"));
}

#[test]
fn in_a_repository_nothing_is_committed() {
    let lab = made("c");
    let said = lab.karve(&["new", "--template", "python-numpy"]);
    said.ends(0)
        .shows(&["wrote python-numpy", "git add python-numpy && git commit"])
        .complains(&["its files are not committed"]);
    assert_eq!(lab.git(&["log", "--oneline"]).lines().count(), 1);
    assert!(lab.read("python-numpy/kernel.py").contains("kernel_fn"));
}

#[test]
fn an_unknown_template_lists_those_there_are() {
    let said = Lab::empty().karve(&["new", "--template", "fortran"]);
    said.ends(2).complains(&["c, rust, python-numpy, triton, cuda, cutile, cute-dsl, hip, flydsl"]);
}
