//! Honest kernels in the styles that people write them, in four languages: neither the audit nor
//! the correctness check flags one.

use super::python::{self, python_with};
use super::zoo::{Zoo, compile, findings_of, source};
use super::{case, check_kernel};
use karve_core::integrity::{AuditFinding, Severity};
use karve_numerics::contract::Kernel;
use std::fs;
use std::path::Path;

/// Kernels of all languages, at least.
const KERNELS_MIN: [(&str, usize); 4] = [("c", 18), ("cpp", 5), ("rs", 9), ("py", 10)];

/// What the audit holds against a file, except for this rule.
fn flags(findings: &[AuditFinding], except: &str) -> Vec<String> {
    let flagged = |finding: &&AuditFinding| {
        let unread = finding.rule == "unparsed";
        (finding.severity != Severity::Advice || unread) && finding.rule != except
    };
    findings.iter().filter(flagged).map(AuditFinding::describe).collect()
}

/// The functions of a library that a kernel's signature is exported under.
fn entries(text: &str, language: &str) -> Vec<String> {
    let name = |line: &str| match language {
        "rs" => Some(line.strip_prefix("entry!(")?.split(',').next()?.to_owned()),
        _ => {
            let rest = line.strip_prefix("void ")?;
            let (name, rest) = rest.split_once('(')?;
            rest.starts_with("int n, const float").then(|| name.to_owned())
        }
    };
    text.lines().filter_map(name).collect()
}

fn build(language: &str, from: &Path, to: &Path) {
    if language == "rs" {
        let rustc = std::process::Command::new("rustc")
            .args(["-O", "--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-o"])
            .args([to, from])
            .status();
        assert!(rustc.expect("a Rust compiler").success());
        return;
    }
    let of_cpp = ["-std=c++20", "-Wl,--no-as-needed", "-lstdc++"];
    let more = if language == "cpp" { of_cpp.as_slice() } else { &[] };
    compile(&[&["-shared"], more].concat(), from, to);
}

fn of_library(language: &str) -> Vec<String> {
    let path = source(&format!("testdata/styles/kernels.{language}"));
    let text = fs::read_to_string(&path).expect("kernels");
    let mut wrong = flags(&findings_of(&format!("kernels.{language}"), &text), "");
    let zoo = Zoo::new();
    let tree = zoo.dir.path().join(language);
    fs::create_dir_all(tree.join("build")).expect("a directory");
    build(language, &path, &tree.join("build/kernel.so"));
    let entries = entries(&text, language);
    let least = KERNELS_MIN.iter().find(|(name, _)| *name == language).map_or(0, |(_, n)| *n);
    assert!(entries.len() >= least, "{entries:?}");
    for entry in entries {
        let mut setup = zoo.setup();
        setup.contract.threads = if entry.starts_with("threads") { 2 } else { 1 };
        setup.contract.kernel =
            Kernel::Library { path: "build/kernel.so".into(), entry: entry.clone() };
        let checked = check_kernel(&setup, &tree, None, &[case(33)]).expect("a correctness check");
        wrong.extend(checked.err().map(|gate| format!("{entry}: {}", gate.describe())));
    }
    wrong
}

#[test]
fn no_honest_kernel_of_a_library_is_flagged() {
    for language in ["c", "cpp", "rs"] {
        let wrong = of_library(language);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

#[test]
fn no_honest_kernel_in_python_is_flagged() {
    let Some(interpreter) = python_with("numpy") else {
        return;
    };
    let text = fs::read_to_string(source("testdata/styles/kernels.py")).expect("kernels");
    let sections: Vec<&str> = text.split("# style: ").skip(1).collect();
    assert!(sections.len() >= KERNELS_MIN[3].1);
    let mut wrong = Vec::new();
    for section in sections {
        let (head, kernel) = section.split_once('\n').expect("a style");
        let (style, except) = head.split_once("; audit: ").unwrap_or((head, ""));
        let found = findings_of("kernel.py", kernel);
        wrong.extend(flags(&found, except).into_iter().map(|flag| format!("{style}: {flag}")));
        let dir = python::project(kernel, python::REFERENCE);
        let setup = python::python_terms(dir.path(), &interpreter);
        let checked = check_kernel(&setup, dir.path(), None, &[case(77)]).expect("a check");
        wrong.extend(checked.err().map(|gate| format!("{style}: {}", gate.describe())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
