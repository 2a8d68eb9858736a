//! karve is made known to other tools, in directories that hold what is somebody's own: that stays,
//! and what was written can be taken away again.

use crate::e2e::lab::{Lab, Said};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const TOOLS: [&str; 6] = ["claude", "codex", "gemini", "opencode", "cursor", "agents-md"];

/// Every file and directory below a directory, with its rights and what it holds.
fn tree(dir: &Path) -> BTreeMap<String, (u32, Option<Vec<u8>>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(dir).unwrap().to_string_lossy();
            let bytes = meta.is_file().then(|| fs::read(&path).unwrap());
            found.insert(name.into_owned(), (meta.permissions().mode(), bytes));
            if meta.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

/// A directory with settings of somebody in it, as these tools have them.
fn inhabited() -> Lab {
    let lab = Lab::empty();
    for (path, text) in [
        (
            ".mcp.json",
            "{\n    \"mcpServers\": {\n        \"other\": { \"command\": \"o\" }\n    }\n}\n",
        ),
        (".claude.json", "{\"numStartups\":3,\"projects\":{}}"),
        (".claude/settings.json", "{}\n"),
        (".claude/agents/mine.md", "---\nname: mine\n---\nHello.\n"),
        (".codex/config.toml", "# mine\nmodel = \"x\"   # yes\n\n[tui]\na = 1"),
        (".gemini/settings.json", "{ \"theme\": \"dark\", /* so */ \"mcpServers\": {} }"),
        ("opencode.jsonc", "// mine\n{\n  \"model\": \"x\", // fast\n}\n"),
        (".config/opencode/opencode.json", "{\n  \"mcp\": {\n    \"o\": {}\n  }\n}\n"),
        (".cursor/mcp.json", "{}"),
        ("AGENTS.md", "# Rules\n\nBe kind.\n"),
        ("GEMINI.md", "# Rules"),
    ] {
        lab.write(path, text);
    }
    fs::create_dir_all(lab.path(".claude/commands")).unwrap();
    let secret = fs::Permissions::from_mode(0o600);
    fs::set_permissions(lab.path(".claude.json"), secret).unwrap();
    lab
}

/// For a project, or for the user whose home is the same directory.
fn karve(lab: &Lab, args: &[&str], reach: &str) -> Said {
    let mut all = vec!["install"];
    all.extend(args);
    if reach == "user" {
        all.push("--user");
    }
    let mut command = lab.command(&all);
    Said::of(&command.env("HOME", lab.path("")).output().unwrap())
}

/// Whether all that somebody had is still there, as bytes or as members.
#[track_caller]
fn keeps(before: &BTreeMap<String, (u32, Option<Vec<u8>>)>, lab: &Lab) {
    let after = tree(&lab.path(""));
    for (path, (mode, bytes)) in before {
        let (now, text) = &after[path];
        assert_eq!(mode, now, "{path}");
        let (Some(bytes), Some(text)) = (bytes, text) else {
            continue;
        };
        let text = String::from_utf8_lossy(text);
        for line in String::from_utf8_lossy(bytes).lines() {
            let parts = line.split_whitespace();
            assert!(
                parts.into_iter().all(|part| {
                    let part = part.trim_matches(['{', '}']);
                    text.contains(part)
                }),
                "{path} has lost {line:?}: {text}"
            );
        }
    }
}

#[test]
fn installing_twice_changes_nothing_and_uninstalling_leaves_no_trace() {
    for make in [Lab::empty, inhabited] {
        for tool in TOOLS {
            for reach in ["project", "user"] {
                if (tool, reach) == ("agents-md", "user") {
                    continue;
                }
                let lab = make();
                let before = tree(&lab.path(""));
                karve(&lab, &[tool], reach).ends(0).shows(&["wrote", "next"]);
                let installed = tree(&lab.path(""));
                assert_ne!(before, installed, "{tool} {reach}");
                keeps(&before, &lab);
                karve(&lab, &[tool], reach).ends(0).shows(&["nothing to do"]);
                assert_eq!(installed, tree(&lab.path("")), "{tool} {reach}");
                karve(&lab, &[tool, "--uninstall"], reach).ends(0);
                assert_eq!(before, tree(&lab.path("")), "{tool} {reach}");
                karve(&lab, &[tool, "--uninstall"], reach)
                    .ends(0)
                    .shows(&["nothing to do: karve is not installed"]);
            }
        }
    }
}

#[test]
fn all_tools_side_by_side_do_not_disturb_each_other() {
    let lab = inhabited();
    let before = tree(&lab.path(""));
    for tool in TOOLS {
        karve(&lab, &[tool], "project").ends(0);
    }
    for tool in TOOLS {
        karve(&lab, &[tool], "project").ends(0).shows(&["nothing to do"]);
    }
    for tool in TOOLS {
        karve(&lab, &[tool, "--uninstall"], "project").ends(0);
    }
    assert_eq!(before, tree(&lab.path("")));
}

#[test]
fn what_is_printed_is_what_is_written() {
    for tool in TOOLS {
        let lab = Lab::empty();
        let said = karve(&lab, &[tool, "--print"], "project").ends(0);
        assert!(tree(&lab.path("")).is_empty(), "{tool}");
        karve(&lab, &[tool], "project").ends(0);
        let mut files = 0;
        for (path, (_, bytes)) in tree(&lab.path("")) {
            let record = path.ends_with("karve-install.json") || path.starts_with(".karve-");
            let (Some(bytes), false) = (bytes, record) else {
                continue;
            };
            files += 1;
            assert!(said.stdout.contains(&format!("==> {path} <==")), "{path}");
            let text = String::from_utf8(bytes).unwrap();
            assert!(said.stdout.contains(text.trim()), "{path}");
        }
        assert_eq!(files, said.stdout.matches("==> ").count());
    }
}

#[test]
fn what_somebody_changed_or_broke_is_refused_and_nothing_is_half_done() {
    let refused = |lab: &Lab, args: &[&str], parts: &[&str]| {
        let before = tree(&lab.path(""));
        karve(lab, args, "project").ends(2).complains(parts);
        assert_eq!(before, tree(&lab.path("")), "{args:?}");
    };
    let lab = inhabited();
    lab.write(".gemini/settings.json", "{ \"theme\": ");
    let broken = ["cannot be read, and nothing was changed", "hint: fix"];
    refused(&lab, &["gemini"], &broken);
    refused(&lab, &["gemini", "--force"], &broken);
    lab.write(".codex/config.toml", "mcp_servers = { a = { command = \"b\" } }\n");
    refused(&lab, &["codex"], &["mcp_servers is not a table"]);
    let own = "{\"mcpServers\": {\"karve\": {\"command\": \"mine\"}}}";
    lab.write(".mcp.json", own);
    refused(&lab, &["claude"], &[".mcp.json is not as karve wrote it", "--force"]);
    karve(&lab, &["claude", "--force"], "project").ends(0);
    assert!(lab.read(".mcp.json").contains("--yes"));

    // A file of karve's that somebody made their own.
    let skill = ".claude/skills/karve/SKILL.md";
    let ours = lab.read(skill);
    lab.write(skill, &format!("{ours}\nAnd be kind.\n"));
    refused(&lab, &["claude"], &["SKILL.md is not as karve wrote it"]);
    refused(&lab, &["claude", "--uninstall"], &["SKILL.md is not as karve wrote it"]);
    karve(&lab, &["claude", "--force"], "project").ends(0).shows(&[skill]);
    assert_eq!(lab.read(skill), ours);

    // A record that leads out of the directory.
    let record = ".claude/karve-install.json";
    let text = lab.read(record).replace(skill, "../karve-else.md");
    lab.write(record, &text);
    fs::write(lab.beside("karve-else.md"), &ours).unwrap();
    refused(&lab, &["claude", "--uninstall"], &["is not as karve wrote it"]);
    assert!(lab.beside("karve-else.md").exists());
}

#[test]
fn nothing_is_written_through_a_link() {
    let lab = Lab::empty();
    fs::create_dir(lab.beside("else")).unwrap();
    symlink(lab.beside("else"), lab.path(".claude")).unwrap();
    karve(&lab, &["claude"], "project").ends(2).complains(&["is a link", "--project DIR"]);
    assert!(tree(&lab.beside("else")).is_empty());
    assert!(!lab.path(".mcp.json").exists());
    fs::remove_file(lab.path(".claude")).unwrap();
    fs::write(lab.beside("mcp.json"), "{}").unwrap();
    symlink(lab.beside("mcp.json"), lab.path(".mcp.json")).unwrap();
    karve(&lab, &["claude"], "project").ends(2).complains(&["is a link"]);
    assert_eq!(fs::read_to_string(lab.beside("mcp.json")).unwrap(), "{}");
    assert!(!lab.path(".claude").exists());
}

#[test]
fn wrong_places_are_told() {
    let lab = Lab::empty();
    karve(&lab, &["agents-md"], "user").ends(2).complains(&["--project DIR"]);
    karve(&lab, &["claude", "--project", "nowhere"], "project")
        .ends(3)
        .complains(&["cannot open", "--project DIR"]);
    karve(&lab, &["emacs"], "project").ends(2).complains(&["agents-md"]);
}

#[test]
fn an_agent_that_karve_drives_does_not_drive_karve() {
    let lab = Lab::new("gains");
    let refused = ["an agent of a campaign cannot drive another campaign"];
    let mut command = lab.command(&["mcp", "--yes"]);
    let output = command.env("KARVE_TASK", "implement").output().unwrap();
    Said::of(&output).ends(2).complains(&refused);
    let tree = lab.path(".karve/toy/worktrees/agent");
    fs::create_dir_all(&tree).unwrap();
    fs::copy(lab.path("karve.toml"), tree.join("karve.toml")).unwrap();
    let tree = tree.to_string_lossy().into_owned();
    lab.karve(&["-C", &tree, "mcp"]).ends(2).complains(&refused);
}
