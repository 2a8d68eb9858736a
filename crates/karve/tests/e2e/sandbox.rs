//! What agents and candidates try in a whole campaign, and what they find.

use crate::e2e::lab::{KILLED, Lab, PATH, Said, wait_until};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The size of the hidden case, which nobody may find, and a pattern that does not find itself.
const SECRET: &str = "90731";
const PATTERN: &str = "9073[1]";

/// A project with a hidden case, a history and one round of an agent.
fn lab(implement: &str) -> Lab {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.replace("karve.toml", "n=3", &format!("n={SECRET}"));
    lab.script("1", "propose", "claim \"less\" \"it is not needed\" 2.0")
        .script("1", "implement", implement)
        .commit();
    lab
}

fn has_namespaces() -> bool {
    karve_os::sandbox::HostSupport::of_host().no_namespace.is_none()
}

#[test]
fn an_agent_does_not_find_the_hidden_cases_nor_the_past() {
    if !has_namespaces() {
        return;
    }
    let look = format!(
        "found=$(grep -rl {PATTERN} . ../.. 2>/dev/null | head -1 || true)\n\
         past=$(git rev-list --all | xargs -n1 git grep -l {PATTERN} 2>/dev/null || true)\n\
         commits=$(git rev-list HEAD | wc -l)\n\
         edit s/TIME=.*/TIME=50/\n\
         echo \"found=$found past=$past commits=$commits\""
    );
    let lab = lab(&look);
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let summary = lab.events("implemented")[0]["candidate"]["summary"].clone();
    let summary = summary.as_str().unwrap();
    assert_eq!(summary.trim(), "found= past= commits=1");
    // It is no change of the agent's that the file was another one for it.
    assert_eq!(lab.verdicts(), ["keep"]);
    assert!(lab.git(&["show", "optimize/toy:karve.toml"]).contains(SECRET));
}

#[test]
fn an_agent_finds_in_its_home_what_is_its_own_and_nothing_else() {
    if !has_namespaces() {
        return;
    }
    let lab = lab("ls -A \"$HOME\" | tr '\\n' ' ' > seen\n\
                   agent-tool >> seen\necho 2 > \"$HOME/.claude/told\"\n\
                   echo 3 > \"$HOME/other\"\nedit s/TIME=.*/TIME=50/\ncat seen\nrm seen");
    // Below a directory that is private in the room.
    let home = lab.beside("home");
    for dir in [".claude", ".ssh", ".config/other", "tools/node_modules/.bin"] {
        fs::create_dir_all(home.join(dir)).unwrap();
    }
    fs::write(home.join(".bash_history"), "secret").unwrap();
    let tools = home.join("tools/node_modules");
    fs::write(tools.join("tool.sh"), "#!/bin/sh\necho a tool\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(tools.join("tool.sh"), mode).unwrap();
    std::os::unix::fs::symlink("../tool.sh", tools.join(".bin/agent-tool")).unwrap();
    let mut command = lab.command(&["run", "--yes", "--rounds", "1"]);
    let path = format!("{}:{PATH}", tools.join(".bin").display());
    let output = command.env("HOME", &home).env("PATH", path).output();
    Said::of(&output.unwrap()).ends(0);
    let summary = lab.events("implemented")[0]["candidate"]["summary"].clone();
    let seen = summary.as_str().unwrap().trim();
    assert_eq!(seen, ".claude tools a tool");
    assert_eq!(fs::read_to_string(home.join(".claude/told")).unwrap(), "2\n");
    assert!(!home.join("other").exists());
}

#[test]
fn a_build_finds_the_crates_of_a_cargo_home_elsewhere_and_no_credentials() {
    if !has_namespaces() {
        return;
    }
    let lab = lab("edit s/TIME=.*/TIME=50/\necho done");
    let look = "test -e \"$CARGO_HOME/registry/crate\" || exit 8\n\
                if test -e \"$CARGO_HOME/credentials.toml\"; then exit 9; fi\n";
    lab.write("build.sh", &format!("{}\n{look}", lab.read("build.sh")));
    lab.commit();
    let hidden = tempfile::tempdir_in("/var/tmp").unwrap();
    let cargo = hidden.path();
    for dir in ["bin", "registry"] {
        fs::create_dir_all(cargo.join(dir)).unwrap();
    }
    for file in ["registry/crate", "credentials.toml"] {
        fs::write(cargo.join(file), "").unwrap();
    }
    let mut command = lab.command(&["run", "--yes", "--rounds", "1"]);
    let path = format!("{}:{PATH}", cargo.join("bin").display());
    let output = command.env("CARGO_HOME", cargo).env("PATH", path).output();
    Said::of(&output.unwrap()).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
}

#[test]
fn a_build_does_not_find_the_hidden_cases() {
    if !has_namespaces() {
        return;
    }
    let lab = lab("edit s/TIME=.*/TIME=50/\necho done");
    let build = lab.read("build.sh");
    let look = format!("if grep -rq {PATTERN} . ../..; then exit 9; fi\n");
    lab.write("build.sh", &format!("{build}\n{look}"));
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.script("1", "propose", "claim \"less\" \"it is not needed\" 2.0")
        .script("1", "implement", "edit s/TIME=.*/TIME=50/\necho done")
        .commit();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
}

#[test]
fn what_was_active_is_in_the_log_and_in_the_report() {
    let lab = lab("edit s/TIME=.*/TIME=50/\necho done");
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let facts = lab.events("prepared")[0]["environment"]["facts"].clone();
    let layers = facts["sandbox"].as_str().unwrap().to_owned();
    assert!(layers.contains("clean environment"), "{layers}");
    assert!(lab.read(".karve/toy/REPORT.md").contains(&layers));
    lab.karve(&["doctor"]).shows(&["sandbox"]);
}

#[test]
fn an_answer_that_a_run_leaves_is_gone_in_the_next() {
    // The kernel claims to be slow once and to know the answer from then on.
    let cheat = "edit 's|^TIME=.*|TIME=100; p=\". $HOME /tmp /var/tmp /dev/shm\"; \
                 for d in $p; do [ -e \"$d/known\" ] \\&\\& TIME=10; done; \
                 for d in $p; do touch \"$d/known\"; done 2>/dev/null|'\n\
                 echo done";
    let lab = lab(cheat);
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert_ne!(lab.verdicts(), ["keep"]);
    for place in ["/tmp/known", "/var/tmp/known", "/dev/shm/known"] {
        assert!(!Path::new(place).exists(), "{place}");
    }
}

#[test]
fn a_child_in_a_session_of_its_own_dies_with_a_killed_karve() {
    if !has_namespaces() {
        return;
    }
    let mark = format!("{}.5", 100_000 + std::process::id());
    let linger = format!("setsid env -i sleep {mark} &\nsleep 1000");
    let lab = lab(&linger);
    let running = lab.start(&["run", "--yes"]);
    let lives = || {
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let lines = pids.filter_map(|pid| fs::read(pid.path().join("cmdline")).ok());
        lines.into_iter().any(|line| {
            let mut words = line.split(|byte| *byte == 0);
            words.next() == Some(b"sleep".as_slice()) && words.next() == Some(mark.as_bytes())
        })
    };
    wait_until("the child sleeps", lives);
    running.kill().ends(KILLED);
    wait_until("it is dead", || !lives());
}

/// karve as root of a container that may not make namespaces; none if that cannot be had here.
fn without_namespaces(lab: &Lab, args: &[&str]) -> Option<Command> {
    use std::os::unix::fs::MetadataExt;
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let mut words = vec![];
    if !is_root {
        words.extend(["unshare", "--user", "--map-root-user"]);
    }
    words.extend(["setpriv", "--bounding-set=-sys_admin"]);
    words.push("--inh-caps=-sys_admin");
    let command = |rest: &[&str]| {
        let mut command = lab.command_of(words[0]);
        command.args(&words[1..]).args(rest);
        command
    };
    let works = command(&["true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        println!("skipped: setpriv cannot take a right away here");
        return None;
    }
    let mut all = vec![env!("CARGO_BIN_EXE_karve")];
    all.extend(args);
    Some(command(&all))
}

#[test]
fn without_namespaces_the_other_layers_hold_and_karve_says_so() {
    if karve_os::process::ConfinementSupport::ask().landlock == 0 {
        println!("skipped: this kernel has no Landlock");
        return;
    }
    let lab = lab("for f in ../../events.jsonl ../../../../secret; do \
                   if cat $f >/dev/null 2>&1; then echo \"read $f\"; fi; done > seen\n\
                   for f in ../../left ../../../../left /tmp/left-by-an-agent; do \
                   if echo 1 2>/dev/null >$f; then echo \"wrote $f\"; fi; done >> seen\n\
                   edit s/TIME=.*/TIME=50/\necho \"done $(cat seen)\"\nrm seen");
    lab.write("secret", "of the user");
    lab.commit();
    let Some(mut run) = without_namespaces(&lab, &["run", "--yes", "--rounds", "1"]) else {
        return;
    };
    Said::of(&run.output().unwrap())
        .ends(0)
        .complains(&["the sandbox is incomplete: no namespaces"]);
    assert_eq!(lab.verdicts(), ["keep"]);
    let summary = lab.events("implemented")[0]["candidate"]["summary"].clone();
    assert_eq!(summary.as_str().unwrap().trim(), "done");
    let report = lab.read(".karve/toy/REPORT.md");
    assert!(report.contains("without namespaces"), "{report}");
    let doctor = |code: i32| {
        let command = without_namespaces(&lab, &["doctor"]);
        Said::of(&command.unwrap().output().unwrap()).ends(code)
    };
    doctor(0).shows(&["no namespaces", "landlock"]);
    // Who requires all of it gets nothing less.
    lab.replace("karve.toml", "name = \"toy\"", "name = \"other\"");
    lab.configure("[sandbox]\nmode = \"require\"").commit();
    let run = without_namespaces(&lab, &["run", "--yes"]);
    Said::of(&run.unwrap().output().unwrap())
        .ends(3)
        .complains(&["the host cannot confine commands as required", "SYS_ADMIN"]);
    assert!(!lab.path(".karve/other/events.jsonl").exists());
    doctor(3).shows(&["FAILED  sandbox"]);
}

#[test]
fn an_agent_sees_the_script_that_its_command_names_and_nothing_beside_it() {
    if !has_namespaces() {
        return;
    }
    let lab = lab("edit s/TIME=.*/TIME=50/\nls -A \"$(dirname \"$0\")\" | tr '\\n' ' '");
    let home = lab.beside("agents of mine");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("keys"), "secret").unwrap();
    fs::rename(lab.path("agent.sh"), home.join("agent.sh")).unwrap();
    let command = format!("sh '{}/agent.sh'", home.display());
    lab.replace("karve.toml", "sh agent.sh", &command).commit();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let summary = lab.events("implemented")[0]["candidate"]["summary"].clone();
    assert_eq!(summary.as_str().unwrap().trim(), "agent.sh");
    lab.karve(&["agents"]).ends(0).shows(&["there    script"]);
    fs::remove_file(home.join("agent.sh")).unwrap();
    lab.karve(&["agents"])
        .ends(0)
        .shows(&["missing  script", "agents.script.command in karve.toml"]);
}
