//! The commands and the agents that the documentation shows work as they stand there.

#![allow(clippy::unwrap_used, reason = "a test stops where something unexpected happens")]

use crate::e2e::lab::by_default;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The fenced blocks that follow a comment which begins with `mark`.
fn marked_blocks(path: &str, mark: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let mark = format!("<!-- {mark}");
    let parts = text.split(mark.as_str()).skip(1);
    parts
        .map(|part| {
            let (_, fenced) = part.split_once("```").unwrap();
            let (_, block) = fenced.split_once('\n').unwrap();
            block.split_once("\n```").unwrap().0.to_owned()
        })
        .collect()
}

/// Runs a script with `karve` on PATH and `home` as the home directory; it must succeed.
fn sh(script: &str, here: &Path, home: &Path) -> Output {
    let karve = Path::new(env!("CARGO_BIN_EXE_karve")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("sh")
        .args(["-e", "-c", script])
        .current_dir(here)
        .env("PATH", format!("{}:{path}", karve.display()))
        .env("HOME", home)
        .env("KARVE_LEASE_DIR", home.join("leases"))
        .env("KARVE_TEST_PRESSURE_FILE", root().join("testing/calm"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@example.com")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{said}\n{errors}");
    output
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_campaign_of_the_page_about_modes_tries_its_one_item() {
    let home = tempfile::tempdir().unwrap();
    let blocks = marked_blocks("docs/modes.md", "modes");
    assert_eq!(blocks.len(), 1);
    let said = stdout(&sh(&blocks[0], &root(), home.path()));
    for part in ["agenda    only knobs (LANES=8)", "the agenda is done", "item      knobs"] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
}

#[test]
fn the_first_campaign_of_the_book_runs_to_its_end() {
    let home = tempfile::tempdir().unwrap();
    let blocks = marked_blocks("docs/own-kernel.md", "first-campaign");
    assert_eq!(blocks.len(), 1);
    let said = stdout(&sh(&blocks[0], &root(), home.path()));
    for part in [
        "editable = [\"dot.c\"]",
        "the test caught a planted bug",
        "nothing was changed",
        "# Report: dot_c_cpu_",
        "every verdict matches its samples",
    ] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
    let dot = home.path().join("dot");
    let branches = stdout(&sh("git branch --list faster-dot", &dot, home.path()));
    assert_eq!(branches.trim(), "faster-dot");
    let dirt = stdout(&sh("git status --porcelain", &dot, home.path()));
    assert_eq!(dirt, "", "the checkout is not touched");
    let text = fs::read_to_string(home.path().join("pull-request.md")).unwrap();
    assert!(text.contains("Optimize dot"), "{text}");
    let blocks = marked_blocks("docs/watch.md", "watch");
    assert_eq!(blocks.len(), 1);
    let said = stdout(&sh(&blocks[0], &dot, home.path()));
    assert!(said.contains("1 log  2 evidence  3 diff  4 transcript"), "{said}");
    let blocks = marked_blocks("docs/report.md", "bundle");
    assert_eq!(blocks.len(), 1);
    let said = stdout(&sh(&blocks[0], &dot, home.path()));
    for part in ["sha256    ", "patch     the original with it is", "every verdict matches"] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
}

/// Makes the benchmark of the first campaign four times as short, which is still longer than its
/// start takes: the one that a reader sees is run by `the_first_campaign_of_the_book`.
const SHORT: &str = "sed -i s/4000000/1000000/";

#[test]
fn the_three_commands_of_the_readme_end_with_a_faster_kernel() {
    let home = tempfile::tempdir().unwrap();
    let blocks = marked_blocks("README.md", "three-commands");
    assert_eq!(blocks.len(), 1);
    let project = "cp -r docs/first-campaign ~/dot && cd ~/dot && rm karve.toml";
    let start = format!(
        "{project} && {SHORT} bench.c && git init -q && git add . && \
                         git commit -qm start"
    );
    sh(&start, &root(), home.path());
    // The final duel of 200 blocks takes most of the time, and docs/own-kernel.md has one as well.
    let few = "sed -i 's/^hours = .*/&\\nfinal_blocks = 8/' karve.toml\nkarve doctor";
    let commands = blocks[0].replace("karve doctor", by_default(few, "karve doctor"));
    let said = stdout(&sh(&commands, &home.path().join("dot"), home.path()));
    assert!(said.contains("  keep  "), "{said}");
}

#[test]
fn the_bench_of_the_book_finds_what_is_faster() {
    let home = tempfile::tempdir().unwrap();
    let blocks = marked_blocks("docs/bench.md", "bench");
    assert_eq!(blocks.len(), 1);
    let said = stdout(&sh(&blocks[0], &root(), home.path()));
    assert!(said.contains("| case | finding |"), "{said}");
    let reported = ["% faster than A", "x as fast as A"];
    assert!(reported.iter().any(|part| said.contains(part)), "{said}");
    for plot in ["evidence.svg", "ratios.svg"] {
        assert!(home.path().join("pair/plots").join(plot).is_file(), "{plot}");
    }
}

#[test]
fn the_tuning_of_the_book_tries_settings_and_proves_the_best() {
    let home = tempfile::tempdir().unwrap();
    let blocks = marked_blocks("docs/tune.md", "tune");
    assert_eq!(blocks.len(), 1);
    let said = stdout(&sh(&blocks[0], &root(), home.path()));
    for part in ["settings tried", "LANES=", "every reading: "] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
}

#[test]
fn the_agents_of_the_documentation_propose_and_implement() {
    let home = tempfile::tempdir().unwrap();
    let agents = marked_blocks("docs/agents.md", "agent");
    assert_eq!(agents.len(), 2);
    let dot = home.path().join("dot");
    let start = format!(
        "cp -r docs/first-campaign ~/dot && cd ~/dot && {SHORT} bench.c && \
                         git init -q && git add . && git commit -qm start"
    );
    sh(&start, &root(), home.path());
    let config = fs::read_to_string(dot.join("karve.toml")).unwrap();
    let mut config = config.replace("final_blocks = 40", "final_blocks = 8");
    // What lies among other temporary files is shown to an agent only if it is named.
    let shown = ["a", "b"].map(|name| format!("{:?}", home.path().join(name)));
    config.push_str(&format!("\n[sandbox]\nread = [{}]\n", shown.join(", ")));
    for (name, program, text) in [("a", "sh", &agents[0]), ("b", "python3", &agents[1])] {
        let file = home.path().join(name);
        fs::write(&file, text).unwrap();
        let command = format!("command = \"{program} {}\"", file.display());
        config.push_str(&format!("\n[agents.{name}]\n{command}\n"));
    }
    fs::write(dot.join("karve.toml"), config).unwrap();
    for (name, program) in [("a", "sh"), ("b", "python3")] {
        if Command::new(program).args(["-c", ""]).status().is_err() {
            println!("skipped: {program} is not on PATH");
            continue;
        }
        let run = format!("karve run --yes --new --agent {name} --campaign {name} --rounds 1");
        let said = stdout(&sh(&run, &dot, home.path()));
        assert!(said.contains("2 sums instead of 1"), "{said}");
        let shown = stdout(&sh(&format!("karve diff 1 --campaign {name}"), &dot, home.path()));
        assert!(shown.contains("+#define LANES 2"), "{shown}");
    }
}

#[test]
fn the_contract_of_the_documentation_holds() {
    let home = tempfile::tempdir().unwrap();
    let scale = home.path().join("scale");
    fs::create_dir(&scale).unwrap();
    for file in ["kernel.c", "reference.c", "karve.toml"] {
        let blocks = marked_blocks("docs/contract.md", &format!("contract {file}:"));
        assert_eq!(blocks.len(), 1, "{file}");
        fs::write(scale.join(file), &blocks[0]).unwrap();
    }
    let start = "printf '*.so\n' > .gitignore && git init -q && git add . && git commit -qm start";
    sh(start, &scale, home.path());
    let said = stdout(&sh("karve doctor", &scale, home.path()));
    assert!(said.contains("caught a planted bug"), "{said}");
}

#[test]
fn the_task_of_the_documentation_is_imported() {
    let here = tempfile::tempdir().unwrap();
    let [task] = marked_blocks("docs/tasks.md", "task 7_Row_scale.py").try_into().unwrap();
    fs::write(here.path().join("7_Row_scale.py"), task + "\n").unwrap();
    let [script] = marked_blocks("docs/tasks.md", "import:").try_into().unwrap();
    let [args] = marked_blocks("docs/tasks.md", "imported:").try_into().unwrap();
    let said = stdout(&sh(&script, here.path(), here.path()));
    assert!(said.contains("imported 1 of 1 tasks to tasks: 1 with a contract"), "{said}");
    assert!(said.contains(&args), "{said}");
}

#[test]
fn the_campaign_of_the_documentation_is_exported() {
    let home = tempfile::tempdir().unwrap();
    let [script] = marked_blocks("docs/tasks.md", "export:").try_into().unwrap();
    let said = stdout(&sh(&script, &root(), home.path()));
    assert!(said.contains("\ncommit\ttime_us\tmemory_gb\tstatus\tdescription\n"), "{said}");
    let metrics = fs::read_to_string(home.path().join("dot/metrics.json")).unwrap();
    assert!(metrics.contains("\"combined_score\": "), "{metrics}");
}

#[test]
fn the_suite_of_the_documentation_is_run() {
    let home = tempfile::tempdir().unwrap();
    let [script] = marked_blocks("docs/suite.md", "suite:").try_into().unwrap();
    // One knob instead of two: the book's first campaign tries all settings of both.
    let few = format!(
        "cd ~/tasks && {SHORT} */bench.c && \
         sed -i 's/^final_blocks = .*/final_blocks = 8/; /^\\[\\[knobs/,$d' */karve.toml &&"
    );
    let start = "cd ~/tasks &&";
    assert!(script.contains(start), "{script}");
    let script = script.replace(start, by_default(&few, start));
    let said = stdout(&sh(&script, &root(), home.path()));
    for part in ["[1/2] dot: started", "2 of 2 tasks finished", "| twin | finished | start "] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
}

#[test]
fn the_entry_point_of_the_documentation_is_that_of_the_template() {
    let template = "crates/karve/templates/cuda/kernel.cu";
    let blocks = marked_blocks("docs/contract.md", &format!("part of {template}"));
    let text = fs::read_to_string(root().join(template)).unwrap();
    assert_eq!(blocks.len(), 1);
    assert!(text.contains(blocks[0].trim_end()));
}

#[test]
fn the_report_of_the_documentation_is_what_is_written_and_keeps_the_contract() {
    let home = tempfile::tempdir().unwrap();
    let commands = marked_blocks("docs/profile.md", "report commands:");
    assert_eq!(commands.len(), 1);
    let said = stdout(&sh(&commands[0], &root(), home.path()));
    assert!(said.contains("valid     "), "{said}");
    let written = fs::read_to_string(home.path().join("REPORT.md")).unwrap();
    let shown = marked_blocks("docs/profile.md", "report text:");
    assert_eq!(shown, [written.trim_end()]);
}

#[test]
fn the_routes_of_the_documentation_are_those_of_the_rules() {
    let home = tempfile::tempdir().unwrap();
    let blocks = marked_blocks("docs/roles.md", "roles:");
    assert_eq!(blocks.len(), 1);
    let output = sh(&blocks[0], home.path(), home.path());
    let said = stdout(&output);
    let shown = marked_blocks("docs/roles.md", "roles answer:");
    assert!(said.starts_with(&shown[0]), "{said}");
    assert!(said.contains("routed to    tileir-specialist\n"), "{said}");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in ["not 120 or 121", "triton-specialist is the role for this"] {
        assert!(errors.contains(part), "{part:?} is not in:\n{errors}");
    }
}
