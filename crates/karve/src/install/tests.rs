//! What is written can be read by its tool, names nothing that does not exist, and can be removed
//! without a trace.

use super::edit::{EditRefusal, PlannedContent, PlannedWrite, take};
use super::jsonc::JsoncDocument;
use super::record::{InstallRecord, WrittenFile};
use super::{
    InstallOwner, InstallScope, InstallSite, InstallTarget, OverwritePolicy, install, tools,
    uninstall,
};
use crate::commands::Cli;
use crate::mcp::McpServer;
use clap::{CommandFactory, ValueEnum};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

/// All texts of a tool, for a project and for a user.
fn texts(tool: InstallTarget) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for reach in [InstallScope::Project, InstallScope::User, InstallScope::Led] {
        let site = InstallSite { root: "/nowhere".into(), own: ".own".to_owned(), reach };
        let pieces = tool.pieces(&site).unwrap().into_iter();
        texts.extend(pieces.map(|piece| (piece.path.clone(), piece.shown())));
    }
    texts
}

#[test]
fn every_tool_that_is_named_is_one_of_the_servers() {
    let mut names = McpServer::tool_names();
    names.sort();
    let manifest = tools::manifest().unwrap();
    let mut known = manifest.tools.clone();
    known.sort();
    assert_eq!(names, known);
    assert!(manifest.reading.iter().all(|tool| known.contains(tool)));
    for tool in InstallTarget::value_variants() {
        let prefix = tool.spec().unwrap().prefix.as_str();
        for (path, text) in texts(*tool) {
            assert!(!text.contains("{{ ") && !text.contains("{%"), "{path}: {text}");
            if prefix.is_empty() {
                continue;
            }
            for (at, _) in text.match_indices(prefix) {
                let name = text[at + prefix.len()..].chars();
                let name: String =
                    name.take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                assert!(names.contains(&name), "{path}: {prefix}{name}");
            }
        }
    }
}

#[test]
fn sub_agents_are_started_with_the_prompts_of_hyper_mla() {
    let mut seen = 0;
    for tool in InstallTarget::value_variants() {
        let all = texts(*tool).into_iter();
        let named = |path: &str| path.contains("karve-optimize") && !path.contains("agents/");
        for (path, text) in all.filter(|(path, _)| named(path)) {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in [
                "Profile <kernel> <version> at <cases>. Answer in the form of",
                "`karve messages hyper-mla/profile`",
                "Create <kernel> <new version> from <current version> in <language>.",
                "`karve messages hyper-mla/summary`",
            ] {
                assert!(text.contains(part), "{path}: no {part} in {text}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 3, "{seen}");
}

/// The commands in a text: code spans that start with karve.
fn commands(text: &str) -> Vec<Vec<&str>> {
    let spans = text.split('`').skip(1).step_by(2);
    let words = spans.map(|span| span.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| words.first() == Some(&"karve") && words.len() > 1).collect()
}

#[test]
fn every_command_that_is_named_is_there_with_its_flags() {
    let cli = Cli::command();
    let mut seen = BTreeSet::new();
    for tool in InstallTarget::value_variants() {
        for (path, text) in texts(*tool) {
            for words in commands(&text) {
                let mut command = &cli;
                for word in &words[1..] {
                    if let Some(flag) = word.strip_prefix("--") {
                        let mut flags = command.get_arguments().filter_map(|arg| arg.get_long());
                        assert!(flags.any(|long| long == flag), "{path}: {words:?}");
                    } else if command.has_subcommands() {
                        let found = command.find_subcommand(word);
                        command = found.unwrap_or_else(|| panic!("{path}: {words:?}"));
                    }
                }
                seen.insert(words[1].to_owned());
            }
        }
    }
    // The check is not vacuous.
    for name in ["next", "propose", "submit", "mcp", "profile", "verify"] {
        assert!(seen.contains(name), "{seen:?}");
    }
}

/// The skill that a sub-agent preloads, and those of languages.
const LANGUAGE_SKILLS: [&str; 5] = [
    "karve-design-cutile-dsl-kernel",
    "karve-design-cute-dsl-kernel",
    "karve-design-triton-kernel",
    "karve-design-hip-kernel",
    "karve-design-flydsl-kernel",
];

#[test]
fn skills_are_preloaded_and_those_of_a_language_are_loaded_on_demand() {
    let pages = crate::library::catalog::built_in();
    for tool in InstallTarget::value_variants() {
        let all = texts(*tool);
        let of = |name: &str| all.iter().find(|(path, _)| path.contains(name));
        let Some((_, designer)) = of("agents/karve-kernel-designer") else {
            continue;
        };
        assert!(designer.contains("the skill `karve-design-kernel`"), "{designer}");
        let (path, skill) = of("/karve-design-kernel").unwrap();
        for name in LANGUAGE_SKILLS {
            assert!(skill.contains(name), "{path}: {name}");
            let (path, text) = of(name).unwrap();
            assert!(text.contains("Load it only when the kernel is written in"), "{path}");
            let shown =
                commands(text).into_iter().filter(|words| words[1..3] == ["knowledge", "show"]);
            let named: Vec<&str> = shown.map(|words| words[3]).collect();
            assert!(named.len() > 2, "{path}: {named:?}");
            for id in named {
                assert!(pages.iter().any(|entry| entry.id == id), "{path}: {id}");
            }
        }
    }
    // Where a tool can preload, only the skills that every language needs are.
    let claude = texts(InstallTarget::Claude);
    for (agent, skill) in [
        ("karve-profiler", "karve-profile-kernel"),
        ("karve-kernel-designer", "karve-design-kernel"),
    ] {
        let path = format!(".own/agents/{agent}.md");
        let (_, text) = claude.iter().find(|(found, _)| *found == path).unwrap();
        assert!(text.contains(&format!("\nskills: \"{skill}\"\n---\n")), "{text}");
    }
    let (_, plain) = claude.iter().find(|(path, _)| path.ends_with("karve-reviewer.md")).unwrap();
    assert!(!plain.contains("skills:"), "{plain}");
}

#[test]
fn files_are_in_the_form_that_their_readers_know() {
    for tool in InstallTarget::value_variants() {
        for (path, text) in texts(*tool) {
            if path.ends_with(".toml") {
                let table: toml::Table = text.parse().unwrap();
                let long = ["prompt", "developer_instructions"];
                let has_text = |key: &&str| table.get(*key).is_some_and(|v| v.is_str());
                let is_config = path.ends_with("config.toml");
                assert!(is_config || long.iter().any(has_text), "{path}");
            } else if path.ends_with(".json") {
                assert!(serde_json::from_str::<Value>(&text).unwrap().is_object());
            } else if let Some(rest) = text.strip_prefix("---\n") {
                let (front, body) = rest.split_once("\n---\n").unwrap();
                let front: Value = serde_saphyr::from_str(front).unwrap();
                assert!(front["description"].is_string(), "{path}: {front}");
                assert!(body.trim().len() > 100, "{path}");
            } else {
                assert!(path.contains("/commands/") || text.starts_with("<!-- karve"), "{path}");
            }
            let wide = text.lines().filter(|line| !line.starts_with('|'));
            for line in wide.filter(|line| !line.starts_with("description")) {
                assert!(line.chars().count() <= 400, "{path}: {line}");
            }
        }
    }
}

fn json_piece() -> PlannedWrite {
    PlannedWrite {
        path: "settings.json".to_owned(),
        how: PlannedContent::Json {
            within: "mcpServers".to_owned(),
            value: json!({"command": "karve", "args": ["mcp"]}),
        },
    }
}

fn toml_piece(lines: &str) -> PlannedWrite {
    PlannedWrite {
        path: "config.toml".to_owned(),
        how: PlannedContent::Toml { within: "mcp_servers".to_owned(), lines: lines.to_owned() },
    }
}

fn section_piece(text: &str) -> PlannedWrite {
    PlannedWrite { path: "AGENTS.md".to_owned(), how: PlannedContent::Section(text.to_owned()) }
}

/// Adds a piece, checks that adding it again changes nothing, and removes it: the text is
/// restored. Returns the text in between.
#[track_caller]
fn there_and_back(piece: &PlannedWrite, before: Option<&str>) -> (String, WrittenFile) {
    let (after, written) = piece.put(before, None, OverwritePolicy::Unchanged).unwrap();
    assert_ne!(Some(after.as_str()), before);
    let written = written.unwrap();
    let again = piece.put(Some(&after), Some(&written), OverwritePolicy::Unchanged);
    assert_eq!(again, Ok((after.clone(), Some(written.clone()))));
    let gone = take(&written, &after, OverwritePolicy::Unchanged).unwrap();
    assert_eq!(gone.as_deref(), before, "{after}");
    (after, written)
}

#[test]
fn an_entry_goes_into_json_and_out_of_it_without_a_trace() {
    there_and_back(&json_piece(), None);
    for before in [
        "{}",
        "{}\n",
        "{\n}\n",
        "{\"a\":1}",
        "{ \"a\" : [1, {\"b\": \"}\"}] }",
        "{\n    \"a\": 1,\n    \"mcpServers\": {\n        \"other\": {}\n    }\n}\n",
        "{\n\t\"mcpServers\": {}\n}",
        "\u{feff}{\"mcpServers\": {\"x\": 1}}",
        "// mine\n{ // a\n  /* b, } */ \"a\": \"// no\", // c\n  \"mcpServers\": {\n\
         \"o\": 1,\n  },\n}\n",
    ] {
        let (after, _) = there_and_back(&json_piece(), Some(before));
        let value = JsoncDocument::read(&after).unwrap().value;
        assert_eq!(value["mcpServers"]["karve"]["command"], "karve", "{after}");
    }
    let (after, _) = there_and_back(&json_piece(), Some("{\n  \"a\": 1\n}\n"));
    let want = "{\n  \"mcpServers\": {\n    \"karve\": {\n      \"args\": [\n        \"mcp\"\n\
                \x20     ],\n      \"command\": \"karve\"\n    }\n  },\n  \"a\": 1\n}\n";
    assert_eq!(after, want);
}

#[test]
fn what_somebody_wrote_differently_since_is_found_all_the_same() {
    let (_, written) = there_and_back(&json_piece(), Some("{\n  \"a\": 1\n}\n"));
    let check = |text: &str, want: &str| {
        let gone = take(&written, text, OverwritePolicy::Unchanged);
        assert_eq!(gone, Ok(Some(want.to_owned())));
    };
    let ours = "\"karve\":{\"command\":\"karve\",\"args\":[\"mcp\"]}";
    check(&format!("{{\"a\":1,\"mcpServers\":{{{ours}}}}}"), "{\"a\":1}");
    let others = format!("{{\"mcpServers\":{{\"x\":1, // his\n{ours}, }}, \"a\":1}}");
    check(&others, "{\"mcpServers\":{\"x\":1 // his\n }, \"a\":1}");
    let first = format!("{{\"mcpServers\":{{ // his\n{ours} /* too */, \"x\":1}}}}");
    check(&first, "{\"mcpServers\":{ // his\n /* too */\"x\":1}}");
}

#[test]
fn a_file_that_is_not_as_karve_left_it_is_refused_unless_forced() {
    let piece = json_piece();
    let foreign = "{\"mcpServers\": {\"karve\": {\"command\": \"mine\"}}}";
    let refused = piece.put(Some(foreign), None, OverwritePolicy::Unchanged);
    assert_eq!(refused, Err(EditRefusal::Changed));
    let (forced, _) = piece.put(Some(foreign), None, OverwritePolicy::Force).unwrap();
    assert!(forced.contains("\"mcp\""));
    let (_, written) = there_and_back(&piece, None);
    let gone = take(&written, foreign, OverwritePolicy::Unchanged);
    assert_eq!(gone, Err(EditRefusal::Changed));
    for bad in ["", "{", "[]", "{\"a\":}", "{\"mcpServers\": []}", "{/*", "{\"a\":1 \"b\":2}"] {
        let refused = piece.put(Some(bad), None, OverwritePolicy::Force);
        assert!(matches!(refused, Err(EditRefusal::Malformed(_))), "{bad}: {refused:?}");
    }
    let twice = "{\"mcpServers\": {}, \"mcpServers\": {}}";
    let refused = piece.put(Some(twice), None, OverwritePolicy::Force);
    assert!(matches!(refused, Err(EditRefusal::Malformed(_))), "{refused:?}");
}

#[test]
fn a_table_goes_into_toml_and_out_of_it_without_a_trace() {
    let piece = toml_piece("command = \"karve\"\n");
    there_and_back(&piece, None);
    for before in [
        "model = \"x\"",
        "# mine\nmodel = \"x\"   # yes\n",
        "[mcp_servers.other]\ncommand = \"o\"\n\n\n",
        "[mcp_servers]\n[tui]\na = 1\n",
    ] {
        there_and_back(&piece, Some(before));
    }
    // It is written on one line, so nothing can be added after it.
    let inline = "mcp_servers = { o = { command = \"o\" } }\n";
    let refused = piece.put(Some(inline), None, OverwritePolicy::Unchanged);
    assert!(matches!(refused, Err(EditRefusal::Malformed(_))), "{refused:?}");
    let refused = piece.put(Some("a = ["), None, OverwritePolicy::Force);
    assert!(matches!(refused, Err(EditRefusal::Malformed(_))), "{refused:?}");
    // The user added a table after it and blanks inside it.
    let (_, written) = there_and_back(&piece, Some("a = 1\n"));
    let text = "a = 1\n\n[mcp_servers.karve]\ncommand   = \"karve\"\n\n[b]\nc = 1\n";
    let gone = take(&written, text, OverwritePolicy::Unchanged);
    assert_eq!(gone, Ok(Some("a = 1\n\n[b]\nc = 1\n".to_owned())));
    let other = text.replace("karve\"", "mine\"");
    let gone = take(&written, &other, OverwritePolicy::Unchanged);
    assert_eq!(gone, Err(EditRefusal::Changed));
}

#[test]
fn a_section_goes_into_markdown_and_out_of_it_without_a_trace() {
    let piece = section_piece("# karve\n");
    for before in ["# Mine", "# Mine\n", "# Mine\n\n", ""] {
        there_and_back(&piece, Some(before));
    }
    let (after, written) = there_and_back(&piece, None);
    // Another version replaces it; the text around it stays.
    let around = format!("before\n{after}behind\n");
    let newer = section_piece("# karve, newer\n");
    let (text, _) = newer.put(Some(&around), Some(&written), OverwritePolicy::Unchanged).unwrap();
    assert!(text.contains("before\n") && text.contains("behind\n") && text.contains("newer"));
    let mine = after.replace("# karve", "# karve is mine");
    let refused = newer.put(Some(&mine), Some(&written), OverwritePolicy::Unchanged);
    assert_eq!(refused, Err(EditRefusal::Changed));
    let half = after.replace("<!-- karve: end -->\n", "");
    let refused = newer.put(Some(&half), Some(&written), OverwritePolicy::Force);
    assert!(matches!(refused, Err(EditRefusal::Malformed(_))), "{refused:?}");
}

#[test]
fn a_record_that_leads_elsewhere_is_not_believed() {
    let (_, written) = there_and_back(&json_piece(), None);
    let parse = |path: &str, what: &str| {
        let text = format!(
            "{{\"version\":1,\"dirs\":[],\"written\":[{{\"path\":\"{path}\",\"made\":true,\
             \"what\":{{\"what\":\"{what}\",\"digest\":\"0\",\"text\":\"\"}}}}]}}"
        );
        InstallRecord::parse(&text, "record").is_ok()
    };
    assert!(parse("a/karve-x.md", "whole") && parse("AGENTS.md", "section"));
    for bad in ["../karve", "/karve", "a/../karve", "", "src/main.rs"] {
        assert!(!parse(bad, "whole"), "{bad}");
    }
    assert!(!parse("../AGENTS.md", "section"));
    let installed = InstallRecord { written: vec![written], ..InstallRecord::default() };
    assert_eq!(InstallRecord::parse(&installed.render(), "record"), Ok(installed));
}

/// JSON as people write it: with blanks, comments and trailing commas.
fn written_json() -> impl Strategy<Value = String> {
    let blank = prop::sample::select(vec!["", " ", "\n", "\n  ", "\t", "// c, }\n", "/* \" */"]);
    let leaf = prop::sample::select(vec!["1", "true", "null", "\"a\\\"}\"", "[]", "{}", "-1.5e3"]);
    let value = leaf.prop_map(str::to_owned).prop_recursive(3, 12, 4, {
        let blank = blank.clone();
        move |inner| {
            let member = ("[a-d]", inner.clone(), blank.clone());
            let object = (prop::collection::vec(member, 0..4), any::<bool>(), blank.clone());
            object.prop_map(|(members, trailing, blank)| object_of(&members, trailing, blank))
        }
    });
    let root = prop::collection::vec(("[a-d]", value, blank.clone()), 0..4);
    (root, any::<bool>(), blank).prop_map(|(members, trailing, blank)| {
        let mut members = members;
        if let Some(first) = members.first_mut().filter(|(_, v, _)| v.starts_with('{')) {
            first.0 = "mcpServers".to_owned();
        }
        object_of(&members, trailing, blank)
    })
}

fn object_of(members: &[(String, String, &str)], trailing: bool, blank: &str) -> String {
    let mut seen = BTreeSet::new();
    let members = members.iter().filter(|(key, ..)| seen.insert(key.clone()));
    let members: Vec<String> = members
        .map(|(key, value, blank)| format!("{blank}\"{key}\":{blank}{value}{blank}"))
        .collect();
    let comma = if trailing && !members.is_empty() { "," } else { "" };
    format!("{{{}{comma}{blank}}}", members.join(","))
}

proptest! {
    #[test]
    fn whatever_somebody_wrote_stays_as_it_was(text in written_json()) {
        let before = JsoncDocument::read(&text).unwrap().value;
        let (after, written) = there_and_back(&json_piece(), Some(&text));
        let mut value = JsoncDocument::read(&after).unwrap().value;
        value["mcpServers"].as_object_mut().unwrap().remove("karve");
        if before.get("mcpServers").is_none() {
            value.as_object_mut().unwrap().remove("mcpServers");
        }
        prop_assert_eq!(&value, &before);
        // The same if a program has rewritten the file since.
        let anew = JsoncDocument::read(&after).unwrap().value.to_string();
        let gone = take(&written, &anew, OverwritePolicy::Unchanged).unwrap();
        if let Some(text) = gone {
            prop_assert_eq!(JsoncDocument::read(&text).unwrap().value, before);
        }
    }

    #[test]
    fn no_text_makes_it_fall_over(text in "[{}\\[\\]\",:/*a \\\\\n]{0,40}") {
        let _ = json_piece().put(Some(&text), None, OverwritePolicy::Force);
        let _ = toml_piece("a = 1\n").put(Some(&text), None, OverwritePolicy::Force);
        let _ = section_piece("a\n").put(Some(&text), None, OverwritePolicy::Force);
    }
}

#[test]
fn a_section_that_two_tools_share_stays_while_one_of_them_is_installed() {
    for (first, second) in [
        (InstallTarget::Codex, InstallTarget::AgentsMd),
        (InstallTarget::AgentsMd, InstallTarget::Codex),
    ] {
        for own_words in [None, Some("# Mine\n")] {
            let root = tempfile::tempdir().unwrap();
            let file = root.path().join("AGENTS.md");
            if let Some(text) = own_words {
                fs::write(&file, text).unwrap();
            }
            let whom = InstallOwner::Project(root.path().to_owned());
            for tool in [first, second] {
                install(tool, &whom, OverwritePolicy::Unchanged).unwrap();
            }
            let both = fs::read_to_string(&file).unwrap();
            assert_eq!(both.matches("karve: begin").count(), 1, "{both}");
            uninstall(first, &whom, OverwritePolicy::Unchanged).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), both, "{first:?}");
            // Installing again in between changes nothing.
            install(first, &whom, OverwritePolicy::Unchanged).unwrap();
            uninstall(first, &whom, OverwritePolicy::Unchanged).unwrap();
            uninstall(second, &whom, OverwritePolicy::Unchanged).unwrap();
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), own_words);
            let left: Vec<_> = fs::read_dir(root.path()).unwrap().collect();
            assert_eq!(left.len(), usize::from(own_words.is_some()), "{left:?}");
        }
    }
}
