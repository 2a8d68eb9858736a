//! An agent that lists guesses of hidden cases reads all of them again, or none: the one that was
//! replaced, or written once more by karve, would be the hidden case.

use crate::e2e::external::Client;
use crate::e2e::lab::Lab;
use crate::e2e::web::serve;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The third is the hidden case.
const GUESSES: [&str; 4] = ["n=311", "n=313", "n=317", "n=331"];

/// What is shown of a campaign, and who shows it.
#[derive(Default)]
struct Shown {
    texts: Vec<(String, String)>,
}

impl Shown {
    fn add(&mut self, by: impl Into<String>, text: impl Into<String>) {
        self.texts.push((by.into(), text.into()));
    }

    fn call(&mut self, client: &mut Client, tool: &str, arguments: Value) -> Value {
        let (text, _) = client.call(tool, arguments);
        self.add(format!("tool {tool}"), &text);
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    fn run(&mut self, lab: &Lab, args: &[&str]) {
        let said = lab.karve(args);
        self.add(format!("{args:?}"), format!("{}\n{}", said.stdout, said.stderr));
    }

    /// The files below a directory, without those of karve itself.
    fn read(&mut self, dir: &Path) {
        let own = ["events.jsonl", "artifacts", "worktrees", "worker-output", "tmp", "repo.git"];
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
            match path.is_dir() {
                _ if own.contains(&name.as_str()) => {}
                true => self.read(&path),
                false => {
                    let text = fs::read(&path).unwrap();
                    self.add(path.display().to_string(), String::from_utf8_lossy(&text));
                }
            }
        }
    }

    /// Fails if one guess is anywhere more or less often than the others; returns how many texts
    /// have them.
    fn tell_nothing(&self) -> usize {
        let mut told = 0;
        for (by, text) in &self.texts {
            let count = GUESSES.map(|guess| text.matches(guess).count());
            assert!(count.iter().all(|n| *n == count[0]), "{by}: {count:?}\n{text}");
            told += usize::from(count[0] > 0);
        }
        told
    }
}

#[test]
fn no_output_treats_the_name_of_a_hidden_case_in_a_list_of_guesses_differently() {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.replace("karve.toml", "hidden = [\"n=3\"]", "hidden = [\"n=317\"]").commit();
    let guesses = GUESSES.join(" ");
    let mut shown = Shown::default();
    let mut client = Client::start(&lab, &["mcp", "--yes"]);
    shown.call(&mut client, "next", json!({}));
    shown.call(&mut client, "propose", json!({"title": guesses, "mechanism": ""}));
    let idea = json!({
        "title": format!("halve the work on {guesses}"),
        "mechanism": format!("half of it is not needed on {guesses}"),
        "bottleneck": guesses, "counters": [guesses], "alternatives": [guesses],
        "expected_ratio": 2.0,
    });
    let turn = shown.call(&mut client, "propose", idea);
    let path = format!("{}/kernel.sh", turn["workspace"].as_str().unwrap());
    let kernel = fs::read_to_string(&path).unwrap();
    // Wrong where it is called with the visible case, then with the hidden one only.
    let said = format!("echo {guesses}; result=8");
    for wrong in [
        format!("{kernel}BROKEN {guesses}\n"),
        format!("{kernel}{said}\n"),
        format!("{kernel}[ \"$1\" = 1 ] || {{ echo \"n=$1 differs\" >&2; result=8; }}\n"),
    ] {
        fs::write(&path, wrong).unwrap();
        let turn =
            shown.call(&mut client, "submit", json!({"summary": format!("as on {guesses}")}));
        if turn["turn"] != "implement" {
            let again = json!({"title": format!("drop the loop of {guesses}"),
                "mechanism": guesses, "expected_ratio": 2.0});
            shown.call(&mut client, "propose", again);
        }
    }
    let faster = kernel.replace("TIME=100", "TIME=50");
    fs::write(&path, format!("# {guesses}\n{faster}")).unwrap();
    shown.call(&mut client, "submit", json!({"summary": format!("as on {guesses}")}));
    for tool in ["next", "status", "tried", "trend", "report", "profile"] {
        shown.call(&mut client, tool, json!({}));
    }
    for round in 1..=3 {
        shown.call(&mut client, "verdict", json!({"round": round}));
        shown.call(&mut client, "why", json!({"round": round}));
    }
    shown.call(&mut client, "knowledge", json!({"text": guesses}));
    shown.run(&lab, &["answer", &guesses]);
    shown.run(&lab, &["next", "--json"]);
    shown.call(&mut client, "propose", json!({"exhausted": format!("nothing for {guesses}")}));
    drop(client);
    let gates: Vec<String> = lab.events("gated").iter().map(|e| e["gate"].to_string()).collect();
    assert!(gates.iter().any(|gate| gate.contains("a hidden case")), "{gates:?}");
    assert!(lab.verdicts().contains(&"keep".to_owned()), "{:?}", lab.verdicts());
    looked_at(&lab, &mut shown);
    assert!(shown.tell_nothing() > 20);
}

/// What commands, pages and files show of the finished campaign.
fn looked_at(lab: &Lab, shown: &mut Shown) {
    for args in [&["status"][..], &["status", "--json"], &["log"], &["report"], &["verify"]] {
        shown.run(lab, args);
    }
    for args in [&["report", "--json"][..], &["list", "--json"], &["queue"], &["next", "--json"]] {
        shown.run(lab, args);
    }
    for round in ["1", "2", "3"] {
        for command in ["show", "why", "diff"] {
            shown.run(lab, &[command, round]);
            shown.run(lab, &[command, round, "--json"]);
        }
        shown.run(lab, &["show", round, "--transcript"]);
    }
    shown.run(lab, &["export", "autoresearch", "--out", &lab.beside("export").to_string_lossy()]);
    shown.run(lab, &["report", "--html", &lab.beside("report.html").to_string_lossy()]);
    shown.add("html", fs::read_to_string(lab.beside("report.html")).unwrap());
    let served = serve(lab, &[]);
    for page in ["", "/payload.json", "/round/1", "/round/1/payload.json", "/round/2", "/with/toy"]
    {
        let (_, text) = served.gets(&format!("/c/toy{page}"));
        shown.add(page, text);
    }
    drop(served);
    shown.read(&lab.path(".karve"));
}
