//! The audit on honest and on dishonest text, on garbage, and on what parent and candidate share.

use super::rules::rules;
use super::*;
use karve_core::integrity::{AuditMode, STATE_RULES, Severity};
use karve_numerics::case::CaseSet;
use proptest::prelude::*;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/audit")
}

fn case(size: u32) -> Case {
    let sizes = ["M", "N", "K"].map(|name| (name.to_owned(), size.to_string()));
    Case {
        name: format!("{size}"),
        params: BTreeMap::from(sizes),
        set: CaseSet::Full,
        minor: false,
        halve: None,
    }
}

fn with_scene<T>(rule: &AuditRule, work: impl FnOnce(&AuditContext<'_>) -> T) -> T {
    let cases = [case(192), case(4_000)];
    let harness = ["reference", "check"].map(str::to_owned);
    let reads = BTreeSet::from(["HARNESS_REPEATS".to_owned()]);
    work(&AuditContext { cases: &cases, rule, harness: &harness, reads: &reads })
}

fn found(path: &str, before: Option<&str>, after: &str) -> Vec<AuditFinding> {
    let change = FileChange {
        path: path.to_owned(),
        before: before.map(|text| text.as_bytes().to_vec()),
        after: Some(after.as_bytes().to_vec()),
    };
    with_scene(&AuditRule::default(), |scene| audit(&[change], scene))
}

fn rules_of(findings: &[AuditFinding], wanted: Severity) -> BTreeSet<&str> {
    let those = findings.iter().filter(|finding| finding.severity == wanted);
    those.map(|finding| finding.rule.as_str()).collect()
}

/// Every file of a directory with its text, its parent's text, and the rules in its first line.
fn samples(dir: &str) -> Vec<(String, String, String, BTreeSet<String>)> {
    let mut samples = Vec::new();
    for entry in fs::read_dir(testdata().join(dir)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let (_, wanted) = text.lines().next().unwrap().split_once("audit: ").expect(&name);
        let wanted = wanted.split(", ").filter(|rule| *rule != "clean").map(str::to_owned);
        let wanted: BTreeSet<String> = wanted.collect();
        let end = name.rsplit('.').next().unwrap();
        let parent = fs::read_to_string(testdata().join(format!("parent.{end}"))).unwrap();
        samples.push((name, text, parent, wanted));
    }
    samples.sort();
    samples
}

fn listed(findings: &[AuditFinding]) -> String {
    findings.iter().fold(String::new(), |mut text, finding| {
        let _ = writeln!(text, "  {}", finding.describe());
        text
    })
}

#[test]
fn a_function_of_the_file_is_not_one_of_the_library_where_it_is_known() {
    let forbidden = |text: &str| {
        let findings = found("k.cpp", Some(""), text);
        rules_of(&findings, Severity::Forbidden).contains("file-write")
    };
    for own in [
        "void f(float *y) { auto write = [&](float v) { *y = v; }; write(1.0f); }",
        "namespace { void write(float *y) { *y = 1; } }\nvoid f(float *y) { write(y); }",
        "namespace a { void write(float *y) { *y = 1; } void f(float *y) { write(y); } }",
        "void write(float *y) { *y = 1; }\nvoid f(float *y) { ::write(y); }",
    ] {
        assert!(!forbidden(own), "{own}");
    }
    let declared = "extern \"C\" long write(int, const void *, unsigned long);\n";
    for foreign in [
        "void g() { auto write = [](int v) { return v; }; write(1); }\n\
         void f(float *y) { write(1, y, 4); }",
        "namespace a { void write(int) {} }\nvoid f(float *y) { ::write(1, y, 4); }",
        "struct A { void write(int) {} };\nvoid f(float *y) { write(1, y, 4); }",
    ] {
        assert!(forbidden(&format!("{declared}{foreign}")), "{foreign}");
    }
}

#[test]
fn every_cheat_is_found_by_the_rule_it_names() {
    let samples = samples("cheats");
    assert!(samples.len() >= 30, "{}", samples.len());
    let mut missed = String::new();
    for (name, text, parent, wanted) in &samples {
        let findings = found(name, Some(parent), text);
        let named: BTreeSet<String> = findings.iter().map(|f| f.rule.clone()).collect();
        if !wanted.is_subset(&named) {
            let _ = writeln!(missed, "{name}: {wanted:?} not in\n{}", listed(&findings));
        }
    }
    assert!(missed.is_empty(), "\n{missed}");
}

#[test]
fn an_argument_that_was_not_changed_before_stays_as_it_is() {
    let check = |path: &str, before: &str, after: &str, want: bool| {
        let found = found(path, Some(before), after);
        assert_eq!(found.iter().any(|found| found.rule == "replay"), want, "{after}\n{found:?}");
    };
    let plain = "import numpy as np\ndef kernel(x):\n    return np.sort(x)\n";
    let sorts = "import numpy as np\ndef kernel(x):\n    x.sort()\n    return x\n";
    check("k.py", plain, sorts, true);
    check("k.py", sorts, sorts, false);
    let copy = "import numpy as np\ndef kernel(x):\n    x = x.copy()\n    x.sort()\n    return x\n";
    check("k.py", plain, copy, false);
    // Through another name, or as the place that a function writes to.
    let kernel =
        |body: &str| format!("import numpy as np\ndef kernel(x, y):\n    {body}\n    return x\n");
    for marks in [
        "bits = x.view(\"i8\").reshape(-1)\n    bits[-1] |= 3",
        "bits = memoryview(x)\n    bits[0] = 3.0",
        "part = x[2:]\n    flat = np.ravel(part)\n    flat[0] = 3.0",
        "np.bitwise_or(x, 3, x)",
        "np.copyto(x, y)",
        "for v in np.nditer(x, op_flags=[\"readwrite\"]):\n        v[...] = 3.0",
        "for a, b in np.nditer([y, x], op_flags=flags):\n        b[...] = a",
        "for i, row in enumerate(x):\n        row[0] = i",
        "for row, other in zip(x, y):\n        row[0] = 3.0",
        "for i in range(4):\n        row = x[i]\n        row[0] = i",
        "whole = x[...]\n    whole[0] = 3.0",
        "left, right = np.split(x, 2)\n    left[0] = 3.0",
    ] {
        check("k.py", &kernel("pass"), &kernel(marks), true);
    }
    for own in [
        "flat = x.reshape(-1)\n    out = np.empty(9)\n    np.multiply(flat, flat, out)",
        "picked = x[x > 0]\n    picked[0] = 3.0",
        "rows = x.astype(float)\n    rows[0] = 3.0",
        "out = np.empty(9)\n    np.copyto(out, x)\n    np.where(out, y, x)",
        "flat = x.ravel()\n    flat = flat + 1\n    x = flat",
        "out = np.empty((4, 4))\n    for row, mine in zip(x, out):\n        mine[0] = row[0]",
        "out = np.empty(4)\n    for a, b in np.nditer([x, out], None, flags):\n        b[...] = a",
        "for i, v in enumerate(x):\n        i += 1",
        "mask = x > 0\n    picked = x[mask]\n    picked[0] = 3.0",
    ] {
        check("k.py", &kernel("pass"), &kernel(own), false);
    }
    let given = "import numpy as np\ndef kernel(x, y):\n    np.sin(x, out=y)\n";
    let other = "import numpy as np\ndef kernel(x, y):\n    y[:] = np.sin(x)\n";
    check("k.py", other, given, false);
    check("k.py", given, other, false);
}

#[test]
fn a_new_file_in_place_of_a_standard_one_is_forbidden() {
    for path in ["src/statistics.py", "src/numpy/__init__.py", "math.h", "include/chrono"] {
        let findings = found(path, None, "");
        assert_eq!(rules_of(&findings, Severity::Forbidden), ["patching"].into(), "{path}");
        assert!(found(path, Some(""), "").is_empty(), "{path} was there");
    }
    for path in ["src/blur.py", "src/blur/__init__.py", "src/__init__.py", "kernel.h"] {
        assert!(found(path, None, "").is_empty(), "{path}");
    }
}

#[test]
fn no_honest_kernel_is_forbidden_and_only_what_it_names_is_suspicious() {
    let samples = samples("honest");
    assert!(samples.len() >= 10, "{}", samples.len());
    let mut flagged = String::new();
    for (name, text, parent, wanted) in &samples {
        let findings = found(name, Some(parent), text);
        let forbidden = rules_of(&findings, Severity::Forbidden);
        let suspicious = rules_of(&findings, Severity::Suspicious);
        let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
        let unparsed = findings.iter().any(|finding| finding.rule == "unparsed");
        if !forbidden.is_empty() || suspicious != wanted || unparsed {
            let _ = writeln!(flagged, "{name}: wanted {wanted:?}\n{}", listed(&findings));
        }
    }
    assert!(flagged.is_empty(), "\n{flagged}");
}

/// The files of a zoo for a GPU with what the audit finds in each, and the rules in its first line.
fn gpu_zoo(dir: &str) -> Vec<(String, Vec<AuditFinding>, BTreeSet<String>)> {
    let zoo = testdata().join("..");
    let mut found = Vec::new();
    for entry in fs::read_dir(zoo.join(dir)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !(name.ends_with(".py") || name.ends_with(".cu")) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let (_, head) = text.lines().next().unwrap().split_once("audit: ").expect(&name);
        let (rules, _) = head.split_once("; ").expect(&name);
        let rules = rules.split(", ").filter(|rule| *rule != "clean").map(str::to_owned).collect();
        let plain = fs::read(zoo.join("cheats/gpu/project/kernel.py")).unwrap();
        let before = name.ends_with(".py").then_some(plain);
        let change = FileChange { path: name.clone(), before, after: Some(text.into_bytes()) };
        let scene = AuditContext {
            cases: &[case(1_024), case(2_048)],
            rule: &AuditRule::default(),
            harness: &["reference".to_owned()],
            reads: &BTreeSet::new(),
        };
        found.push((name, audit(&[change], &scene), rules));
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

#[test]
fn every_cheat_for_a_gpu_is_found_by_the_rules_it_names() {
    let (mut cheats, native) = (gpu_zoo("cheats/gpu"), gpu_zoo("cheats/gpu/native"));
    cheats.extend(gpu_zoo("cheats/gpu/graph"));
    assert!(cheats.len() >= 30 && native.len() >= 5, "{} {}", cheats.len(), native.len());
    let mut wrong = String::new();
    for (name, findings, wanted) in cheats.iter().chain(&native) {
        let worth = findings.iter().filter(|finding| finding.severity != Severity::Advice);
        let is_clean = worth.count() == 0;
        let named: BTreeSet<String> = findings.iter().map(|f| f.rule.clone()).collect();
        let unparsed = named.contains("unparsed");
        if !wanted.is_subset(&named) || (wanted.is_empty() && !is_clean) || unparsed {
            let _ = writeln!(wrong, "{name}: {wanted:?}, found\n{}", listed(findings));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn no_honest_kernel_for_a_gpu_is_forbidden() {
    let honest = gpu_zoo("honest/gpu");
    assert!(honest.len() >= 20, "{}", honest.len());
    let mut wrong = String::new();
    for (name, findings, wanted) in &honest {
        let forbidden = rules_of(findings, Severity::Forbidden);
        let suspicious = rules_of(findings, Severity::Suspicious);
        let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
        let unparsed = findings.iter().any(|finding| finding.rule == "unparsed");
        if !forbidden.is_empty() || suspicious != wanted || unparsed {
            let _ = writeln!(wrong, "{name}: {wanted:?}, found\n{}", listed(findings));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn no_honest_style_is_flagged() {
    let mut wrong = String::new();
    for end in ["c", "cpp", "rs", "py"] {
        let path = testdata().join(format!("../styles/kernels.{end}"));
        let text = fs::read_to_string(path).unwrap();
        let sections: Vec<&str> = text.split("# style: ").collect();
        for section in sections.iter().skip(usize::from(sections.len() > 1)) {
            let (head, kernel) = section.split_once('\n').unwrap();
            let except = head.split_once("; audit: ").map_or("", |(_, except)| except);
            let findings = found(&format!("k.{end}"), None, kernel);
            let worth = |f: &&AuditFinding| f.severity != Severity::Advice && f.rule != except;
            for finding in findings.iter().filter(worth) {
                let _ = writeln!(wrong, "{end}: {head}: {}", finding.describe());
            }
        }
    }
    for entry in fs::read_dir(testdata().join("../honest")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !path.is_file() {
            continue;
        }
        let findings = found(&name, None, &fs::read_to_string(&path).unwrap());
        for finding in findings.iter().filter(|f| f.severity != Severity::Advice) {
            let _ = writeln!(wrong, "{}", finding.describe());
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn small_kernels_are_judged_as_they_say() {
    let text = fs::read_to_string(testdata().join("snippets.txt")).unwrap();
    let mut wrong = String::new();
    for snippet in text.split("\n== ").skip(1) {
        let (head, code) = snippet.split_once('\n').unwrap();
        let (path, rest) = head.split_once(' ').unwrap();
        let (wanted, _) = rest.split_once(": ").unwrap();
        let findings = found(path, None, code);
        let forbidden = rules_of(&findings, Severity::Forbidden);
        let suspicious = rules_of(&findings, Severity::Suspicious);
        let is_right = match wanted.strip_prefix("suspicious ") {
            Some(rule) => forbidden.is_empty() && suspicious == BTreeSet::from([rule]),
            None if wanted == "state" => {
                let named = forbidden.union(&suspicious);
                named.into_iter().any(|rule| STATE_RULES.contains(rule))
            }
            None if wanted == "clean" => forbidden.is_empty() && suspicious.is_empty(),
            None => forbidden.contains(wanted),
        };
        if !is_right {
            let _ = writeln!(wrong, "{head}\n{}", listed(&findings));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn what_the_parent_has_does_not_count_unless_there_is_more_of_it() {
    let once = "void k(float *c) { struct timespec t; clock_gettime(1, &t); c[0] = 1; }";
    let moved = format!("/* moved */\nint unrelated;\n{once}");
    assert_eq!(found("k.c", Some(once), &moved), []);
    let twice = format!("{once}\nvoid l(void) {{ clock_gettime(1, 0); }}");
    let more = found("k.c", Some(once), &twice);
    assert_eq!(rules_of(&more, Severity::Forbidden), BTreeSet::from(["timer"]));
    assert_eq!(more.first().map(|f| f.line), Some(2), "{more:?}");
}

#[test]
fn spliced_lines_keep_their_numbers() {
    let text = "int a;\n#define B \\\n  1\nvoid k(void) { clock_get\\\r\ntime(1, 0); }\n\
                void l(void) { system(0); }\n";
    let lines: Vec<(String, u32)> =
        found("k.c", None, text).into_iter().map(|found| (found.rule, found.line)).collect();
    assert_eq!(lines, [("timer".to_owned(), 4), ("process".to_owned(), 6)]);
}

#[test]
fn state_in_another_file_is_found() {
    let rules = |files: [(&str, &str); 2]| -> BTreeSet<String> {
        let change = |(path, text): (&str, &str)| FileChange {
            path: path.to_owned(),
            before: None,
            after: Some(text.as_bytes().to_vec()),
        };
        let changes = files.map(change);
        let found = with_scene(&AuditRule::default(), |scene| audit(&changes, scene));
        found.into_iter().filter(|f| f.severity != Severity::Advice).map(|f| f.rule).collect()
    };
    let state = BTreeSet::from(["static-state".to_owned()]);
    let kernel = "from notes import seen, put\ndef kernel(x):\n    if seen:\n        return x\n    \
                  put(x)\n    return x * 2\n";
    let notes = "seen = {}\ndef put(x):\n    seen[0] = x\n";
    assert_eq!(rules([("kernel.py", kernel), ("notes.py", notes)]), state);
    let kernel = "int has(void); void put(float);\nvoid kernel(const float *x, float *z) \
                  { if (has()) return; z[0] = x[0]; put(x[0]); }";
    let notes = "static float seen;\nint has(void) { return seen != 0; }\n\
                 void put(float v) { seen = v; }";
    assert_eq!(rules([("kernel.c", kernel), ("notes.c", notes)]), state);
    let table = "from sizes import TILE, fits\ndef kernel(x):\n    if x.size > TILE and \
                 fits(x.size):\n        return x\n    return x * 2\n";
    let sizes = "TILE = 64\ndef fits(n):\n    return n % TILE == 0\n";
    assert_eq!(rules([("kernel.py", table), ("sizes.py", sizes)]), BTreeSet::new());
}

#[test]
fn what_moves_to_another_file_is_not_new() {
    let timer = b"void k(void) { clock_gettime(1, 0); }".to_vec();
    let changes = [
        FileChange {
            path: "a.c".into(),
            before: Some(timer.clone()),
            after: Some(b"int a;".to_vec()),
        },
        FileChange { path: "b.c".into(), before: None, after: Some(timer) },
    ];
    let found = with_scene(&AuditRule::default(), |scene| audit(&changes, scene));
    assert_eq!(found, []);
}

#[test]
fn a_library_of_the_incumbent_may_be_called_otherwise() {
    let old = "import numpy as np\ndef kernel_fn(a, b):\n    return np.dot(a, b)\n";
    let new = "import numpy as np\ndef kernel_fn(a, b):\n    return np.matmul(a, b)\n";
    assert_eq!(found("k.py", Some(old), new), []);
}

#[test]
fn a_tolerance_may_become_tighter_but_not_looser() {
    let with = |value: &str| format!("static const float rtol = {value}f;\n");
    let rules = |old: &str, new: &str| {
        let findings = found("k.c", Some(&with(old)), &with(new));
        findings.first().map(|finding| finding.rule.clone())
    };
    assert_eq!(rules("1e-3", "1e-4"), None);
    assert_eq!(rules("1e-3", "1e-2").as_deref(), Some("tolerance"));
    assert_eq!(
        found("k.c", None, &with("1e-3")).first().map(|f| f.rule.as_str()),
        Some("new-tolerance")
    );
}

#[test]
fn fewer_launches_are_a_fusion() {
    let text = |name: &str| fs::read_to_string(testdata().join(name)).unwrap();
    let findings = found("k.cu", Some(&text("parent.cu")), &text("honest/fused.cu"));
    let classified = karve_core::integrity::classify(&findings, None);
    assert_eq!(classified.bucket, Some(karve_core::integrity::Bucket::K3), "{findings:?}");
}

#[test]
fn cuda_parses_as_cpp() {
    for name in ["parent.cu", "honest/fused.cu", "honest/warp_reduce.cu", "cheats/side_stream.cu"] {
        let text = fs::read_to_string(testdata().join(name)).unwrap();
        let tree = tree::parse(AuditLanguage::Cuda, &text).unwrap();
        assert_eq!(tree.broken, None, "{name}");
    }
}

#[test]
fn nothing_hides_in_what_only_cuda_knows() {
    for hidden in [
        "void f() { k<<<g, (system(\"x\"), 1)>>>(x); }",
        "// __launch_bounds__(\nvoid f() { system(\"x\"); }\n// )\n",
        "const char *s = \"__maxnreg__(\"; void f() { system(\"x\"); } const char *t = \")\";",
        "#define __cluster_dims__(x) x\nvoid f() { __cluster_dims__(system(\"x\")); }",
        "void f(int n) { __launch_bounds__(system(\"x\")); }",
        "__global__ void __launch_bounds__(256, system(\"x\")) k() {}",
        "__global__ void __launch_bounds__(256 /*(*/) k() { system(\"x\"); } //)",
        "__global__ void __launch_bounds__('(' ? 256 : 0) k() { system(\"x\"); } //)",
        "#define MAX __maxnreg__(\nvoid f() { system(\"x\"); }\n//)",
        "#define __shared__ system\nvoid f() { __shared__(\"x\"); }",
        "/**/ #define __host__ \\\n system\nvoid f() { __host__(\"x\"); }",
        "#define __launch_bounds__(n) system(\"x\")\nvoid f() { __launch_bounds__(1); }",
    ] {
        for name in ["k.cu", "k.hip"] {
            let findings = found(name, None, hidden);
            assert!(findings.iter().any(|finding| finding.rule == "process"), "{hidden}");
        }
    }
}

#[test]
fn the_user_decides_about_rules() {
    let threads = "#include <pthread.h>\nvoid k(void) { pthread_create(0, 0, 0, 0); }";
    let change =
        FileChange { path: "k.c".into(), before: None, after: Some(threads.as_bytes().to_vec()) };
    let severities = |rule: &AuditRule| -> Vec<Severity> {
        let findings = with_scene(rule, |scene| audit(std::slice::from_ref(&change), scene));
        findings.iter().map(|finding| finding.severity).collect()
    };
    let named = || vec!["threads".to_owned()];
    let forbid = AuditRule { forbid: named(), ..AuditRule::default() };
    let allow = AuditRule { allow: named(), ..AuditRule::default() };
    let off = AuditRule { mode: AuditMode::Off, ..forbid.clone() };
    assert_eq!(severities(&AuditRule::default()), [Severity::Advice]);
    assert_eq!(severities(&forbid), [Severity::Forbidden]);
    assert_eq!(severities(&allow), []);
    assert_eq!(severities(&off), []);
    // State that outlives a call is reported under every setting.
    let state = "static float s; static int have;
        float k(const float *x) { if (have) return s; have = 1; return s = x[0]; }";
    let cached =
        FileChange { path: "k.c".into(), before: None, after: Some(state.as_bytes().to_vec()) };
    let of_state = |rule: &AuditRule| -> Vec<(String, Severity)> {
        let findings = with_scene(rule, |scene| audit(std::slice::from_ref(&cached), scene));
        findings.into_iter().map(|finding| (finding.rule, finding.severity)).collect()
    };
    let memo = |severity| ("result-memo".to_owned(), severity);
    assert_eq!(of_state(&AuditRule::default()).first(), Some(&memo(Severity::Forbidden)));
    let weakest = AuditRule {
        mode: AuditMode::Off,
        allow: rule_names().map(str::to_owned).collect(),
        ..AuditRule::default()
    };
    assert_eq!(of_state(&weakest).first(), Some(&memo(Severity::Suspicious)));
    let weights = AuditRule { weights: vec!["b".to_owned()], ..AuditRule::default() };
    let kept = "static const float *of; static int of_version;
        void k(const float *b, int version) {
          if (b != of || version != of_version) { of = b; of_version = version; }
        }";
    let change =
        FileChange { path: "k.c".into(), before: None, after: Some(kept.as_bytes().to_vec()) };
    let of = |rule: &AuditRule| {
        let findings = with_scene(rule, |scene| audit(std::slice::from_ref(&change), scene));
        findings.first().map(|finding| finding.rule.clone())
    };
    assert_eq!(of(&AuditRule::default()).as_deref(), Some("identity-cache"));
    assert_eq!(of(&weights).as_deref(), Some("weight-cache"));
}

#[test]
fn odd_files_are_findings_and_never_errors() {
    let rule_of = |path: &str, bytes: &[u8]| {
        let change =
            FileChange { path: path.to_owned(), before: None, after: Some(bytes.to_vec()) };
        let found = with_scene(&AuditRule::default(), |scene| audit(&[change], scene));
        found.first().map(|finding| (finding.rule.clone(), finding.severity))
    };
    let unparsed = Some(("unparsed".to_owned(), Severity::Advice));
    let unaudited = Some(("unaudited".to_owned(), Severity::Suspicious));
    assert_eq!(rule_of("k.c", b"void k( { ) ["), unparsed);
    assert_eq!(rule_of("k.py", b"def def def"), unparsed);
    assert_eq!(rule_of("k.c", b"int a;\0\x01"), unaudited);
    assert_eq!(rule_of("k.rs", &vec![b' '; tree::BYTES_MAX + 1]), unaudited);
    assert_eq!(rule_of("notes.txt", b"anything"), None);
    assert_eq!(rule_of("k.c", b""), None);
}

#[test]
fn deep_and_wide_text_is_read_in_bounded_time() {
    let deep = format!("int k(int a) {{ return {}a{}; }}", "(".repeat(50_000), ")".repeat(50_000));
    let nested = "def f():\n".to_owned()
        + &(1..300).map(|n| format!("{}def f():\n", " ".repeat(n))).collect::<String>();
    let wide =
        format!("static int s; void k(int *p) {{ {} }}", "if (p[s] == s) s = p[0];".repeat(9_000));
    for (path, text) in [("k.c", deep), ("k.py", nested), ("k.cpp", wide)] {
        let _ = found(path, None, &text);
    }
}

#[test]
fn the_documentation_lists_every_rule() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/audit.md");
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(rules().len(), 59);
    let lines = include_str!("rules.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines.filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let rule = rule(words[0]).unwrap();
        let bucket = rule.bucket.map_or("", |bucket| bucket.name());
        let (severity, finds) = (rule.severity.name(), words[3..].join(" "));
        let row = format!("| `{}` | {severity} | {bucket} | {finds} |", rule.name);
        assert!(text.contains(&row), "docs/audit.md lacks: {row}");
    }
}

/// Where something is cut out, how much, and what is put there.
fn cut() -> impl Strategy<Value = (proptest::sample::Index, usize, u8)> {
    (any::<proptest::sample::Index>(), 0_usize..40, any::<u8>())
}

const PATHS: [&str; 8] = ["k.c", "k.cpp", "k.cu", "k.py", "k.rs", "Makefile", "build.rs", "k.ptx"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn random_bytes_do_no_harm(
        path in proptest::sample::select(PATHS.to_vec()),
        before in proptest::collection::vec(any::<u8>(), 0..400),
        after in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let change = FileChange {
            path: path.to_owned(),
            before: Some(before),
            after: Some(after.clone()),
        };
        let found = with_scene(&AuditRule::default(), |scene| audit(&[change], scene));
        prop_assert!(found.len() <= karve_core::integrity::FINDINGS_MAX);
        // Nothing changed, nothing found.
        let same = FileChange {
            path: path.to_owned(),
            before: Some(after.clone()),
            after: Some(after),
        };
        prop_assert_eq!(with_scene(&AuditRule::default(), |scene| audit(&[same], scene)), []);
    }

    #[test]
    fn mutated_sources_do_no_harm(
        which in any::<proptest::sample::Index>(),
        cuts in proptest::collection::vec(cut(), 0..6),
    ) {
        let mut samples = samples("cheats");
        samples.extend(self::samples("honest"));
        let (name, text, parent, _) = &samples[which.index(samples.len())];
        let mut bytes = text.clone().into_bytes();
        for (at, length, byte) in cuts {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, [byte]);
        }
        let change = FileChange {
            path: name.clone(),
            before: Some(parent.clone().into_bytes()),
            after: Some(bytes),
        };
        let _ = with_scene(&AuditRule::default(), |scene| audit(&[change], scene));
    }
}
