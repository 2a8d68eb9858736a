//! A campaign that somebody drives from outside: by commands, and through MCP.

use crate::e2e::lab::Lab;
use crate::e2e::tidy::is_tidy;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// How often a test looks whether a call was let in.
const PATIENCE: u32 = 3_000;

fn lab() -> Lab {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.commit();
    lab
}

fn idea(title: &str) -> String {
    json!({"title": title, "mechanism": "half of it is not needed", "expected_ratio": 2.0})
        .to_string()
}

fn lab_workspace(lab: &Lab) -> String {
    fs::read_to_string(lab.campaign("agent-workspace").join("kernel.sh")).unwrap()
}

fn propose(lab: &Lab, title: &str) {
    propose_as(lab, &idea(title));
}

pub(crate) fn propose_as(lab: &Lab, idea: &str) {
    fs::write(lab.beside("idea.json"), idea).unwrap();
    let file = lab.beside("idea.json").to_string_lossy().into_owned();
    let turn = lab.karve(&["propose", &file, "--json"]).ends(0).json();
    assert_eq!(turn["turn"], "implement", "{turn}");
}

#[test]
fn an_answer_goes_to_no_other_campaign_than_the_one_that_is_meant() {
    let lab = lab();
    lab.karve(&["next", "--yes"]).ends(0);
    lab.karve(&["next", "--new", "--yes"]).ends(0);
    fs::write(lab.beside("idea.json"), idea("halve the work")).unwrap();
    let file = lab.beside("idea.json").to_string_lossy().into_owned();
    let names = ["2 campaigns are not finished", "--campaign toy-2\"", "--campaign toy\""];
    lab.karve(&["next"]).ends(2).complains(&names);
    lab.karve(&["propose", &file]).ends(2).complains(&names);
    lab.karve(&["submit"]).ends(2).complains(&names);
    let turn = lab.karve(&["propose", &file, "--campaign", "toy", "--json"]).ends(0).json();
    assert_eq!((&turn["turn"], &turn["campaign"]), (&json!("implement"), &json!("toy")));
    lab.karve(&["clean", "toy-2", "--yes"]).ends(0);
    lab.karve(&["next"]).ends(0);
}

#[test]
fn without_a_terminal_each_step_is_named_on_standard_error() {
    let lab = lab();
    let opening = ["step      before round 1, 2 of 5: prepare the repository\n"];
    lab.karve(&["next", "--yes"]).ends(0).complains(&opening);
    propose(&lab, "halve the work");
    let tree = lab.campaign("agent-workspace");
    let kernel = lab_workspace(&lab).replace("TIME=100", "TIME=50");
    fs::write(tree.join("kernel.sh"), kernel).unwrap();
    let said = lab.karve(&["submit", "--json"]).ends(0);
    let steps: Vec<&str> = said.stderr.lines().filter(|line| line.starts_with("step  ")).collect();
    let place = |part: &str| steps.iter().position(|line| line.contains(part)).unwrap();
    assert!(place("round 1: gate") < place("round 1: measure, block 1 of at most"), "{steps:?}");
    assert!(place("round 1: measure, block 1 of") < place("round 1: settle"), "{steps:?}");
    assert!(steps.len() < 30, "{steps:?}");
    assert_eq!(said.json()["last"]["verdict"], "keep", "{said:?}");
}

#[test]
fn a_external_realizes_a_hypothesis_as_often_as_is_asked_for() {
    let lab = lab();
    lab.replace("karve.toml", "[policy.accept]", "[policy]\nbest_of = 2\n\n[policy.accept]")
        .commit();
    lab.karve(&["next", "--yes"]).ends(0);
    let workspace = lab.campaign("agent-workspace").join("kernel.sh");
    let kernel = fs::read_to_string(lab.path("kernel.sh")).unwrap();
    let submit = |text: &str, code: i32| {
        fs::write(&workspace, text).unwrap();
        lab.karve(&["submit", "--json"]).ends(code).json()
    };
    let wrong = |time: &str| kernel.replace("2 * 3", "2 * 4").replace("100", time);

    // Each begins with the parent's files; if none is right, the first one is repaired.
    propose(&lab, "halve the work");
    let turn = submit(&wrong("60"), 0);
    assert_eq!((&turn["turn"], &turn["retry"]), (&json!("implement"), &json!(0)));
    assert!(turn["brief"].as_str().unwrap().contains("Candidate 2 of 2"));
    assert_eq!(fs::read_to_string(&workspace).unwrap(), kernel);
    let turn = submit(&wrong("70"), 1);
    assert_eq!(turn["retry"], 1, "{turn}");
    assert_eq!(fs::read_to_string(&workspace).unwrap(), wrong("60"));
    let turn = submit(&kernel.replace("100", "60"), 0);
    assert_eq!(turn["last"]["verdict"], "keep", "{turn}");

    // Of two that are right, the faster one goes on.
    propose(&lab, "unroll the loop by four");
    submit(&kernel.replace("100", "50"), 0);
    let turn = submit(&kernel.replace("100", "30"), 0);
    assert_eq!(turn["last"]["verdict"], "keep", "{turn}");
    assert_eq!(lab.events("chosen")[1]["first"], 1);
    is_tidy(&lab);
}

/// A patch that makes the kernel wrong.
fn wrong(kernel: &str) -> String {
    let mut patch = "--- a/kernel.sh\n+++ b/kernel.sh\n@@ -1,3 +1,3 @@\n".to_owned();
    for line in kernel.lines() {
        patch += &match line.starts_with("result=") {
            true => format!("-{line}\n+result=8\n"),
            false => format!(" {line}\n"),
        };
    }
    patch
}

/// Hands in a wrong kernel until the round is over.
fn hand_in_wrong(lab: &Lab) -> Value {
    propose(lab, "answer without looking");
    let patch =
        wrong(&fs::read_to_string(lab.campaign("agent-workspace").join("kernel.sh")).unwrap());
    fs::write(lab.beside("wrong.patch"), patch).unwrap();
    let file = lab.beside("wrong.patch").to_string_lossy().into_owned();
    let args = ["submit", "--diff", &file, "--json"];
    let refused = lab.karve(&args).ends(1).json();
    assert_eq!(refused["turn"], "implement", "{refused}");
    // The same again is not tested again, and the round is over.
    lab.karve(&args).ends(0).json()
}

/// What is no change is not taken, and costs no round.
fn hand_in_nothing(lab: &Lab) {
    let file = lab.beside("bad.patch").to_string_lossy().into_owned();
    for (patch, why) in [
        ("--- a/no.c\n+++ b/no.c\n@@ -1 +1 @@\n-a\n+b\n", "the patch does not apply"),
        ("\n", "nothing differs from the parent"),
    ] {
        fs::write(&file, patch).unwrap();
        lab.karve(&["submit", "--diff", &file]).ends(1).complains(&[
            why,
            "round 1 is still waiting",
            "--give-up",
        ]);
    }
    lab.karve(&["submit"]).ends(1).complains(&["nothing differs from the parent"]);
    lab.karve(&["submit", "--diff", "/dev/null"]).ends(3).complains(&["karve submit --diff FILE"]);
}

#[test]
fn the_last_refused_proposal_fails_and_ends_its_round() {
    let lab = lab();
    lab.karve(&["next", "--yes"]).ends(0);
    fs::write(lab.beside("bad.json"), "{\"title\": \"no more\"}").unwrap();
    let bad = lab.beside("bad.json").to_string_lossy().into_owned();
    let tries = lab.log()[0]["event"]["charter"]["policy"]["proposal_tries"].as_u64().unwrap();
    for _ in 1..tries {
        lab.karve(&["propose", &bad]).ends(1).complains(&["the proposal was refused"]);
    }
    lab.karve(&["propose", &bad]).ends(1).complains(&[
        "round 1 ended without a hypothesis",
        "mechanism is missing",
        "karve propose FILE",
    ]);
    let turn = lab.karve(&["next", "--json"]).ends(0).json();
    assert_eq!((&turn["turn"], &turn["round"]), (&json!("propose"), &json!(2)));
}

#[test]
fn a_person_with_an_editor_is_an_agent_too() {
    let lab = lab();
    lab.karve(&["next"]).ends(2).complains(&["no terminal to agree", "karve next --yes"]);
    let first = lab.karve(&["next", "--yes"]).ends(0);
    let workspace = lab.campaign("agent-workspace");
    let at = format!("Read the editable files in {}", workspace.display());
    first.shows(&["# Round 1: state one hypothesis", "karve propose FILE", &at]);
    assert!(workspace.join("kernel.sh").is_file());
    // A change before a hypothesis is not taken.
    lab.karve(&["submit"]).ends(2).complains(&["is waiting for a proposal"]);
    fs::write(lab.beside("bad.json"), "{\"title\": \"no more\"}").unwrap();
    let bad = lab.beside("bad.json").to_string_lossy().into_owned();
    lab.karve(&["propose", &bad])
        .ends(1)
        .complains(&["the proposal was refused", "mechanism is missing"]);
    propose(&lab, "halve the work");
    let kernel = fs::read_to_string(workspace.join("kernel.sh")).unwrap();
    hand_in_nothing(&lab);
    let fast = kernel.replace("TIME=100", "TIME=50");
    fs::write(workspace.join("kernel.sh"), fast).unwrap();
    // The workspace belongs to the external agent: to look again undoes nothing.
    let turn = lab.karve(&["next", "--json"]).ends(0).json();
    assert_eq!(turn["turn"], "implement");
    let turn = lab.karve(&["submit", "--json"]).ends(0).json();
    assert_eq!(turn["last"]["verdict"], "keep", "{turn}");
    assert_eq!((&turn["turn"], &turn["round"]), (&json!("propose"), &json!(2)));
    // What is to be read is the incumbent.
    assert_eq!(turn["workspace"], workspace.to_string_lossy().as_ref());
    assert!(lab_workspace(&lab).contains("TIME=50"));

    // An attempt on the harness is refused, and can be repaired or given up.
    propose(&lab, "skip the test");
    let kernel = fs::read_to_string(workspace.join("kernel.sh")).unwrap();
    let faster = kernel.replace("TIME=50", "TIME=40");
    fs::write(workspace.join("kernel.sh"), faster).unwrap();
    fs::write(workspace.join("test.sh"), "exit 0\n").unwrap();
    let turn = lab.karve(&["submit", "--json"]).ends(1).json();
    assert_eq!((&turn["turn"], &turn["retry"]), (&json!("implement"), &json!(1)));
    let brief = turn["brief"].as_str().unwrap();
    assert!(brief.contains("read-only files changed: test.sh"));
    let turn = lab.karve(&["submit", "--json", "--give-up", "it was no good idea"]).ends(0).json();
    assert_eq!(turn["last"]["verdict"], "drop", "{turn}");

    // A patch, of a kernel that is wrong.
    let turn = hand_in_wrong(&lab);
    assert_eq!(turn["last"]["verdict"], "drop", "{turn}");
    assert_eq!(lab.verdicts(), ["keep", "out_of_scope", "wrong_result"]);
    lab.karve(&["show", "2", "--transcript"]).ends(0).shows(&[
        "propose by external",
        "outcome changed read-only files: test.sh",
        "agent   it was no good idea",
    ]);
    is_tidy(&lab);
}

/// A client of the server on its standard input and output.
pub(crate) struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Client {
    pub(crate) fn start(lab: &Lab, args: &[&str]) -> Self {
        let mut command = lab.command(args);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, input, output, id: 0 };
        let hello = client.ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {},
                   "clientInfo": {"name": "test", "version": "1"}}),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "karve");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
        self.input.flush().unwrap();
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        let id = self.id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The answer to a question, and how many messages of progress came before it.
    fn wait(&mut self, id: u64) -> (Value, usize) {
        let mut progress = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server is gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return (message, progress);
            }
            progress += usize::from(message["method"] == "notifications/progress");
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.wait(id).0
    }

    /// What a tool says, and whether it is an error.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        (text.to_owned(), result["isError"] == true)
    }

    pub(crate) fn turn(&mut self, tool: &str, arguments: Value) -> Value {
        let (text, error) = self.call(tool, arguments);
        assert!(!error, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_change_in_the_checkout_itself_can_be_handed_in() {
    let lab = lab();
    lab.karve(&["next", "--yes"]).ends(0);
    propose(&lab, "halve the work");
    lab.replace("kernel.sh", "TIME=100", "TIME=50");
    let submit = ["submit", "--tree", ".", "--json"];
    let turn = lab.karve(&submit).ends(0).json();
    assert_eq!(turn["last"]["verdict"], "keep", "{turn}");
}

fn has_all_tools(client: &mut Client) {
    let tools = client.ask("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in [
        "next",
        "propose",
        "submit",
        "verdict",
        "status",
        "tried",
        "trend",
        "profile",
        "knowledge",
        "report",
        "append_tip",
        "run_quick_validation",
        "parse_bench_csv",
        "explain",
        "why",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
}

/// The campaign comes to its end, which is told and stays one.
fn ends(client: &mut Client) {
    let turn = client.turn("propose", json!({"exhausted": "nothing is left"}));
    assert_eq!(turn["turn"], "finished");
    let (report, _) = client.call("report", json!({}));
    assert!(report.contains("hidden case 1"), "{report}");
    assert!(!report.contains("n=3"), "a hidden case is told: {report}");
    let status = client.turn("status", json!({}));
    assert!(status["headline"].is_number(), "{status}");
    for stands in [&turn, &status] {
        assert_eq!(stands["speedup_over_original"], status["headline"]);
        assert!(stands["speedup_over_baseline"].is_null() && stands["speedup"].is_null());
        assert!(stands["kept_gains"].is_number());
    }
    // Who asks on and on does not begin another one.
    let (text, error) = client.call("next", json!({}));
    assert!(error && text.contains("is finished"), "{text}");
}

#[test]
fn an_agent_drives_a_campaign_through_mcp() {
    let lab = lab();
    let mut shy = Client::start(&lab, &["mcp"]);
    let (text, error) = shy.call("next", json!({}));
    assert!(error && text.contains("karve next --yes"), "{text}");
    drop(shy);
    let mut client = Client::start(&lab, &["mcp", "--yes"]);
    has_all_tools(&mut client);
    let params = json!({"name": "next", "arguments": {}, "_meta": {"progressToken": "p"}});
    let id = client.begin("tools/call", params);
    let (answer, progress) = client.wait(id);
    assert!(progress >= 3, "{progress} messages of progress");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let turn: Value = serde_json::from_str(text).unwrap();
    assert_eq!(turn["turn"], "propose");
    assert!(!text.contains("n=3"), "a hidden case is told: {text}");
    let (text, error) = client.call("submit", json!({"diff": "x"}));
    assert!(error && text.contains("is waiting for a proposal"), "{text}");
    let (text, error) = client.call("propose", json!({"title": "no more", "task": "none"}));
    assert!(error && text.contains("mechanism is missing"), "{text}");
    let (text, error) = client.call("knowledge", json!({"query": "cache tiling"}));
    assert!(error && text.contains("no argument \"query\""), "{text}");
    let idea: Value = serde_json::from_str(&idea("halve the work")).unwrap();
    let turn = client.turn("propose", idea);
    let workspace = turn["workspace"].as_str().unwrap().to_owned();
    let kernel = fs::read_to_string(format!("{workspace}/kernel.sh")).unwrap();
    let time = kernel.lines().find(|line| line.starts_with("TIME=")).unwrap();
    fs::write(format!("{workspace}/kernel.sh"), kernel.replace(time, "TIME=50")).unwrap();
    let turn = client.turn("submit", json!({"summary": "half"}));
    assert_eq!(turn["last"]["verdict"], "keep", "{turn}");
    assert_eq!(client.turn("status", json!({}))["kept"], 1);
    assert_eq!(client.turn("verdict", json!({"round": 1}))["verdict"], "keep");
    assert_eq!(client.turn("trend", json!({})).as_array().unwrap().len(), 1);
    let found = client.turn("knowledge", json!({"text": "cache tiling"}));
    assert!(!found.as_array().unwrap().is_empty());
    let (report, _) = client.call("report", json!({}));
    assert!(report.contains("# Report") && !report.contains("n=3"), "{report}");
    ends(&mut client);
    drop(client);
    for args in [&["next", "--yes"][..], &["submit"]] {
        lab.karve(args)
            .ends(2)
            .complains(&["the campaign toy is finished", "karve next --new --yes"]);
    }
    assert!(!lab.path(".karve/toy-2").exists());
    is_tidy(&lab);
}

#[test]
fn the_tools_of_primus_s_program_are_there_and_decide_nothing() {
    let lab = lab();
    let mut client = Client::start(&lab, &["mcp", "--yes"]);
    client.turn("next", json!({}));
    let read = client.turn("run_quick_validation", json!({}));
    assert_eq!(read["cases"][0]["time_us"], 100.0, "{read}");
    let idea: Value = serde_json::from_str(&idea("halve the work")).unwrap();
    let turn = client.turn("propose", idea);
    let kernel = format!("{}/kernel.sh", turn["workspace"].as_str().unwrap());
    let text = fs::read_to_string(&kernel).unwrap();
    let time = text.lines().find(|line| line.starts_with("TIME=")).unwrap();
    fs::write(&kernel, text.replace(time, "TIME=50")).unwrap();
    let read = client.turn("run_quick_validation", json!({}));
    assert_eq!((&read["passed"], &read["cases"][0]["time_us"]), (&true.into(), &50.0.into()));
    assert!(!read.to_string().contains("n=3"), "a hidden case is told: {read}");
    let table =
        client.turn("parse_bench_csv", json!({"text": "METRIC time_us=1.5 case=small check=PASS"}));
    assert_eq!(table[0]["values"]["time_us"], 1.5, "{table}");
    let tip = json!({"context": "c", "signal": "s", "takeaway": " ", "applicability": "a"});
    let (text, error) = client.call("append_tip", tip);
    assert!(error && text.contains("the tip has no takeaway"), "{text}");
    let tip = json!({
        "context": "toy\n### forged", "signal": "s", "takeaway": "half the work",
        "applicability": "a",
    });
    let path = client.turn("append_tip", tip)["tips"].as_str().unwrap().to_owned();
    let tips = fs::read_to_string(path).unwrap();
    assert!(tips.contains("- Takeaway: half the work\n") && !tips.contains("\n### forged"));
    // Nothing of this is in the log, and the round is still due.
    assert_eq!(client.turn("status", json!({}))["rounds"], 0);
}

#[test]
fn an_agenda_is_carried_out_through_mcp() {
    let lab = lab();
    let asks = "[campaign]\nonly = \"halve the work\"\n";
    lab.replace("karve.toml", "[campaign]\n", asks).commit();
    let mut client = Client::start(&lab, &["mcp", "--yes"]);
    let turn = client.turn("next", json!({}));
    let brief = turn["brief"].as_str().unwrap();
    assert!(brief.contains("{\"task\": \"only\""), "{brief}");
    let mut idea: Value = serde_json::from_str(&idea("halve the work")).unwrap();
    let (text, error) = client.call("propose", idea.clone());
    assert!(error && text.contains("is missing: this round is for item"), "{text}");
    idea["task"] = "only".into();
    idea["question"] = "may the result be rounded?".into();
    assert_eq!(client.turn("propose", idea)["turn"], "implement");
    let turn = client.turn("submit", json!({"give_up": "it cannot be done"}));
    assert_eq!(turn["last"]["verdict"], "drop", "{turn}");
    drop(client);
    lab.karve(&["queue"]).ends(0).shows(&["may the result be rounded?"]);
    is_tidy(&lab);
}

#[test]
fn a_call_that_is_cancelled_ends_and_the_campaign_goes_on() {
    let lab = lab();
    let bench = lab.read("bench.sh");
    lab.write("bench.sh", &format!("sleep 0.2\n{bench}"));
    lab.commit();
    let mut client = Client::start(&lab, &["mcp", "--yes"]);
    let params = json!({"name": "next", "arguments": {}, "_meta": {"progressToken": 1}});
    let id = client.begin("tools/call", params);
    // Wait until it measures.
    let mut line = String::new();
    while !line.contains("measure the unchanged kernel") {
        line.clear();
        assert!(client.output.read_line(&mut line).unwrap() > 0, "the server is gone");
        assert!(!line.contains("\"result\""), "it ended before: {line}");
    }
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": id, "reason": "no more"}}));
    // It has let go as soon as another call is let in.
    let refused = (0..PATIENCE).find(|_| {
        let (text, _) = client.call("next", json!({}));
        std::thread::sleep(std::time::Duration::from_millis(20));
        !text.contains("another call is running")
    });
    assert!(refused.is_some(), "the call that was cancelled goes on");
    drop(client);
    is_tidy(&lab);
    lab.karve(&["status"]).ends(0);
}
