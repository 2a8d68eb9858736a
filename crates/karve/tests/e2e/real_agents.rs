//! The real agents, where `testing/agents.sh` has installed them: each goes through a campaign of
//! three rounds against a scripted model on loopback. Those that need seconds of CPU for each turn
//! (Gemini, OpenCode) play one round by default, `KARVE_TEST_ALL=1` all three.

use crate::e2e::lab::{Lab, PATH, Said, by_default, source};
use crate::e2e::model::{Model, Script, Step, TOKENS_IN, TOKENS_OUT};
use crate::e2e::tidy::is_tidy;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The value of a key; the model takes any.
const KEY: &str = "sk-scripted-0123456789";

/// An agent, if it is installed.
fn installed(name: &str) -> Option<PathBuf> {
    let dir = std::env::var_os("KARVE_AGENTS_DIR").map(PathBuf::from);
    let dir = dir.unwrap_or_else(|| source("target/agents"));
    let path = dir.join("node_modules/.bin").join(name);
    match fs::canonicalize(dir).ok().filter(|_| path.exists()) {
        Some(dir) => Some(dir.join("node_modules/.bin").join(name)),
        None => {
            println!("skipped: {name} is not installed; run testing/agents.sh");
            None
        }
    }
}

fn say(text: &str) -> Step {
    Step::Say(text.to_owned())
}

fn claim(title: &str) -> Vec<Step> {
    vec![say(&format!(
        "I read the kernel.\n```json\n{{\"title\": \"{title}\", \"mechanism\": \"{title} helps\", \
         \"expected_ratio\": 2.0}}\n```"
    ))]
}

fn shell(line: &str) -> Vec<Step> {
    vec![Step::Shell(line.to_owned()), say("```json\n{\"summary\": \"done as claimed\"}\n```")]
}

/// One gain, one wrong result, one harness that is edited.
fn script() -> Script {
    let stays = || vec![say("{\"summary\": \"it is right as it is\"}")];
    Script::from([
        ((1, "propose"), claim("halve the work")),
        ((1, "implement"), shell("sed -i 's/^TIME=.*/TIME=50/' kernel.sh")),
        ((2, "propose"), claim("multiply less")),
        ((2, "implement"), shell("sed -i 's/2 \\* 3/2 * 4/; s/^TIME=.*/TIME=20/' kernel.sh")),
        ((2, "repair"), stays()),
        ((3, "propose"), claim("unroll by four")),
        (
            (3, "implement"),
            shell("sed -i 's/7/8/' test.sh && sed -i 's/^TIME=.*/TIME=10/' kernel.sh"),
        ),
        // Who insists is dropped.
        ((3, "repair"), shell("sed -i 's/7/9/' test.sh")),
    ])
}

/// One round whose wrong result is repaired: what an agent of many seconds for each turn plays by
/// default.
fn short_script() -> Script {
    let wrong = "sed -i 's/2 \\* 3/2 * 4/; s/^TIME=.*/TIME=50/' kernel.sh";
    Script::from([
        ((1, "propose"), claim("halve the work")),
        ((1, "implement"), shell(wrong)),
        ((1, "repair"), shell("sed -i 's/2 \\* 4/2 * 3/' kernel.sh")),
    ])
}

/// A project with one agent, and what it needs to reach the model.
struct Stage {
    lab: Lab,
    model: Model,
    variables: Vec<(&'static str, String)>,
}

impl Stage {
    fn new(name: &str, path: &std::path::Path, script: Script) -> Self {
        let lab = Lab::new("gains");
        fs::remove_dir_all(lab.path("script")).unwrap();
        let model = Model::start(script);
        let table = format!("[agents.{name}]\nprogram = \"{}\"", path.display());
        let rounds = "rounds = 3";
        lab.replace("karve.toml", "name = \"script\"", &format!("name = \"{name}\""))
            .replace("karve.toml", "[agents.script]\ncommand = \"sh agent.sh\"", &table)
            .replace("karve.toml", "rounds = 10", rounds)
            .replace("karve.toml", "agent_s = 20", "agent_s = 300")
            .replace(
                "karve.toml",
                "[policy.accept]",
                "[policy]\ndebug_retries = 1\n\n[policy.accept]",
            );
        fs::create_dir(lab.beside("home")).unwrap();
        Self { lab, model, variables: Vec::new() }
    }

    fn set(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.lab.command(args);
        command.env("HOME", self.lab.beside("home")).env("PATH", PATH);
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }

    fn karve(&self, args: &[&str]) -> Said {
        self.lab.commit();
        Said::of(&self.command(args).output().unwrap())
    }

    /// The whole campaign, and what must hold after it.
    #[track_caller]
    fn goes_through(&self) {
        self.plays(&["keep", "wrong_result", "out_of_scope"], 2);
    }

    /// The short script by default, the whole one in a full run.
    #[track_caller]
    fn goes_through_briefly(&self) {
        if by_default(false, true) {
            return self.goes_through();
        }
        self.lab.replace("karve.toml", "rounds = 3", "rounds = 1");
        self.plays(&["keep"], 1);
    }

    /// A campaign with these verdicts and a repair in a round.
    #[track_caller]
    fn plays(&self, verdicts: &[&str], repaired_in: u32) {
        let said = self.karve(&["run", "--yes"]);
        let log = self.lab.log();
        assert_eq!(said.code, 0, "{said:#?} {log:#?}");
        assert_eq!(self.lab.verdicts(), verdicts, "{log:#?}");
        let one = TOKENS_IN + TOKENS_OUT;
        assert_eq!(self.lab.events("proposed")[0]["usage"]["tokens"], one);
        assert_eq!(self.lab.events("implemented")[0]["usage"]["tokens"], 2 * one);
        // A round is one conversation: the second brief comes after the first.
        let asked = self.model.asked();
        let repaired = asked.iter().find(|asked| asked.task == "repair").unwrap();
        assert_eq!((repaired.round, repaired.briefs), (repaired_in, 3), "{asked:#?}");
        is_tidy(&self.lab);
        self.keeps_its_key();
        self.can_be_read();
        let changed = self.lab.git(&["diff", "--name-only", "main", "optimize/toy"]);
        assert_eq!(changed, "kernel.sh");
    }

    /// What was said in the first round is shown: words, the shell with its line, what came of it.
    #[track_caller]
    fn can_be_read(&self) {
        let said = self.lab.karve(&["show", "1", "--transcript"]).ends(0);
        said.shows(&[
            "turn 1: propose by",
            "agent   I read the kernel.",
            "outcome stated \"halve the work\"",
            "turn 2: implement by",
            "  tool    ",
            "TIME=50/",
            "done as claimed",
            "outcome changed kernel.sh",
        ]);
    }

    /// The first turn asked the model once, the second one twice; none counts what another cost.
    #[track_caller]
    fn costs_what_was_asked(&self) {
        let usd = |kind: &str| self.lab.events(kind)[0]["usage"]["usd"].as_f64().unwrap();
        let (once, twice) = (usd("proposed"), usd("implemented"));
        assert!(once > 0.0 && (twice - 2.0 * once).abs() < 1e-9, "{once} {twice}");
    }

    #[track_caller]
    fn keeps_its_key(&self) {
        let log = fs::read_to_string(self.lab.campaign("events.jsonl")).unwrap();
        assert!(!log.contains(KEY));
        for entry in fs::read_dir(self.lab.campaign("artifacts")).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains(KEY));
        }
    }

    /// Why the first proposal was refused.
    #[track_caller]
    fn first_refusal(&self) -> String {
        self.karve(&["run", "--yes"]);
        let refused = self.lab.events("proposal_refused");
        let log = self.lab.log();
        let first = refused.first().unwrap_or_else(|| panic!("{log:#?}"));
        first["refusal"]["why"].as_str().unwrap_or_default().to_owned()
    }
}

fn claude(script: Script) -> Option<Stage> {
    let stage = Stage::new("claude", &installed("claude")?, script);
    let url = stage.model.url();
    Some(
        stage
            .set("ANTHROPIC_BASE_URL", url)
            .set("ANTHROPIC_API_KEY", KEY)
            .set("CLAUDE_CODE_MAX_RETRIES", "1"),
    )
}

fn codex(script: Script) -> Option<Stage> {
    let stage = Stage::new("codex", &installed("codex")?, script);
    let home = stage.lab.beside("home/.codex");
    fs::create_dir_all(&home).unwrap();
    let url = stage.model.url();
    let config = format!(
        "model = \"scripted\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\n\
         name = \"scripted\"\nbase_url = \"{url}/v1\"\nenv_key = \"OPENAI_API_KEY\"\n\
         wire_api = \"responses\"\nrequest_max_retries = 1\nstream_max_retries = 1\n"
    );
    fs::write(home.join("config.toml"), config).unwrap();
    Some(stage.set("OPENAI_API_KEY", KEY))
}

fn gemini(script: Script) -> Option<Stage> {
    let stage = Stage::new("gemini", &installed("gemini")?, script);
    let home = stage.lab.beside("home/.gemini");
    fs::create_dir_all(&home).unwrap();
    let settings = "{\"security\":{\"auth\":{\"selectedType\":\"gemini-api-key\"}},\
                    \"general\":{\"enableAutoUpdate\":false},\
                    \"privacy\":{\"usageStatisticsEnabled\":false}}";
    fs::write(home.join("settings.json"), settings).unwrap();
    let url = stage.model.url();
    let table = "[agents.gemini]\n";
    stage.lab.replace("karve.toml", table, &format!("{table}model = \"gemini-2.5-pro\"\n"));
    Some(stage.set("GOOGLE_GEMINI_BASE_URL", url).set("GEMINI_API_KEY", KEY))
}

fn opencode(script: Script) -> Option<Stage> {
    let stage = Stage::new("opencode", &installed("opencode")?, script);
    for dir in [".config/opencode", ".local/share/opencode"] {
        fs::create_dir_all(stage.lab.beside("home").join(dir)).unwrap();
    }
    let url = stage.model.url();
    let config = serde_json::json!({
        "autoupdate": false,
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": "{env:OPENAI_API_KEY}"},
            "models": {"scripted": {"name": "scripted", "tool_call": true,
                "limit": {"context": 128_000, "output": 8_192},
                "cost": {"input": 3, "output": 15}}},
        }},
    });
    let file = stage.lab.beside("home/.config/opencode/opencode.json");
    fs::write(file, config.to_string()).unwrap();
    Some(stage.set("OPENAI_API_KEY", KEY).set("OPENCODE_DISABLE_MODELS_FETCH", "1"))
}

#[test]
fn claude_code_goes_through_a_campaign() {
    if let Some(stage) = claude(script()) {
        stage.goes_through();
        stage.costs_what_was_asked();
    }
}

#[test]
fn codex_goes_through_a_campaign() {
    if let Some(stage) = codex(script()) {
        stage.goes_through();
    }
}

#[test]
fn gemini_cli_goes_through_a_campaign() {
    if let Some(stage) = gemini(by_default(short_script(), script())) {
        stage.goes_through_briefly();
    }
}

#[test]
fn opencode_goes_through_a_campaign() {
    if let Some(stage) = opencode(by_default(short_script(), script())) {
        stage.goes_through_briefly();
        stage.costs_what_was_asked();
    }
}

#[test]
fn a_model_that_fails_is_told_by_name() {
    let failing = |step: Step| Script::from([((1, "propose"), vec![step])]);
    for step in [Step::Error(401), Step::Error(529), Step::Garbage, Step::Broken] {
        for make in [claude, codex] {
            let Some(stage) = make(failing(step.clone())) else {
                return;
            };
            stage.lab.replace("karve.toml", "[policy]\n", "[policy]\nproposal_tries = 1\n");
            stage.lab.replace("karve.toml", "rounds = 3", "rounds = 1");
            let why = stage.first_refusal();
            println!("{step:?}: {why}");
            assert!(why.starts_with("api error") || why.starts_with("no result"), "{why}");
            is_tidy(&stage.lab);
        }
    }
}

#[test]
fn what_a_real_agent_started_ends_with_it() {
    // Its program is a wrapper around another one, and that starts the shell. It asks its model
    // again when a command takes long.
    let hangs = Step::Shell("setsid tail -f /dev/null & tail -f /dev/null".into());
    let script =
        Script::from([((1, "propose"), claim("wait")), ((1, "implement"), vec![hangs; 100])]);
    if let Some(stage) = codex(script) {
        stage.lab.replace("karve.toml", "agent_s = 300", "agent_s = 25");
        stage.lab.replace("karve.toml", "rounds = 3", "rounds = 1");
        stage.karve(&["run", "--yes"]);
        let events = stage.lab.events("not_implemented");
        let why = events.first().map(|event| event["why"].clone());
        let log = stage.lab.log();
        let over = "timeout: the agent ran for more than 25 s";
        assert_eq!(why, Some(over.into()), "{log:#?}");
        is_tidy(&stage.lab);
    }
}

#[test]
fn a_trial_says_which_agents_work() {
    if let Some(stage) = claude(script()) {
        stage.lab.commit();
        let said = Said::of(&stage.command(&["agents", "--trial", "--json"]).output().unwrap());
        let all = said.ends(0).json();
        let all = all.as_array().unwrap();
        let claude = all.iter().find(|one| one["name"] == "claude").unwrap();
        assert_eq!(claude["trial"]["works"], true, "{claude:#?}");
        assert!(claude["version"].as_str().unwrap().starts_with("2."));
    }
}

/// What a tool says about the servers that it knows, after karve was installed for a user.
fn servers(name: &str, args: &[&str]) -> Option<Said> {
    let program = installed(name)?;
    let lab = Lab::new("gains");
    let home = lab.beside("home");
    fs::create_dir(&home).unwrap();
    let mut install = lab.command(&["install", name, "--user"]);
    Said::of(&install.env("HOME", &home).output().unwrap()).ends(0);
    let karve = std::path::Path::new(env!("CARGO_BIN_EXE_karve"));
    let path = format!("{}:{PATH}", karve.parent().unwrap().display());
    let mut list = lab.command_of(&program.to_string_lossy());
    list.args(args).env("HOME", &home).env("PATH", path);
    list.env("DISABLE_AUTOUPDATER", "1")
        .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
        .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
        .stdin(std::process::Stdio::null());
    Some(Said::of(&list.output().unwrap()))
}

#[test]
fn real_tools_see_the_server_that_was_installed() {
    for (name, args) in [
        ("claude", &["mcp", "list"][..]),
        ("codex", &["mcp", "list", "--json"]),
        ("gemini", &["mcp", "list"]),
        ("opencode", &["mcp", "list"]),
    ] {
        if let Some(said) = servers(name, args) {
            println!("{name}: {}", said.stdout);
            let all = format!("{}{}", said.stdout, said.stderr);
            assert_eq!(said.code, 0, "{name}: {all}");
            assert!(all.contains("karve"), "{name}: {all}");
            // Codex does not try it out.
            let is_tried = name != "codex";
            assert!(!is_tried || all.to_lowercase().contains("connected"), "{name}: {all}");
        }
    }
}
