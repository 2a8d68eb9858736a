//! Model APIs, asked by karve itself: each goes through a campaign against a scripted model on
//! loopback, and every fault has a name.

use crate::e2e::lab::{Lab, Said, by_default};
use crate::e2e::model::{Model, Script, Step, TOKENS_IN, TOKENS_OUT};
use crate::e2e::tidy::is_tidy;
use serde_json::{Value, json};
use std::fs;

/// The value of a key; it may be in nothing that is stored.
const KEY: &str = "sk-never-to-be-stored-0123456789";
/// The kinds, and how their addresses go on.
const KINDS: [(&str, &str); 4] =
    [("anthropic", ""), ("openai", "/v1"), ("openai-chat", "/v1"), ("google", "/v1beta")];

fn say(text: &str) -> Step {
    Step::Say(text.to_owned())
}

fn claim(title: &str) -> Step {
    say(&format!(
        "I read the kernel.\n```json\n{{\"title\": \"{title}\", \"mechanism\": \"{title} helps\", \
         \"expected_ratio\": 2.0}}\n```"
    ))
}

fn done() -> Step {
    say("```json\n{\"summary\": \"done as claimed\"}\n```")
}

fn edit(path: &str, old: &str, new: &str) -> Step {
    Step::Tool("edit", json!({"path": path, "old": old, "new": new}))
}

fn read(path: &str) -> Step {
    Step::Tool("read", json!({"path": path}))
}

/// A gain, after one proposal.
fn gain() -> Script {
    Script::from([
        ((1, "propose"), vec![claim("halve the work")]),
        ((1, "implement"), vec![edit("kernel.sh", "TIME=100", "TIME=50"), done()]),
    ])
}

/// A project with one API, and its model.
struct Stage {
    lab: Lab,
    model: Model,
}

impl Stage {
    fn new((kind, path): (&str, &str), script: Script) -> Self {
        let lab = Lab::new("gains");
        fs::remove_dir_all(lab.path("script")).unwrap();
        let model = Model::start(script);
        let table = format!(
            "[agents.{kind}]\nmodel = \"scripted\"\nbase_url = \"{}{path}\"\n\
             key_env = \"SOME_MODEL_KEY\"\nprice = {{ input = 3.0, output = 15.0 }}\n\
             backoff_ms = 1\nretries = 2\n",
            model.url()
        );
        let command = "[agents.script]\ncommand = \"sh agent.sh\"";
        lab.replace("karve.toml", "name = \"script\"", &format!("name = \"{kind}\""))
            .replace("karve.toml", command, &table)
            .replace("karve.toml", "rounds = 10", "rounds = 3")
            .replace(
                "karve.toml",
                "[policy.accept]",
                "[policy]\ndebug_retries = 1\nproposal_tries = 1\n\n[policy.accept]",
            );
        Self { lab, model }
    }

    /// A campaign of one round with the first API.
    fn of_one_round(script: Script) -> Self {
        let stage = Self::new(KINDS[0], script);
        stage.lab.replace("karve.toml", "rounds = 3", "rounds = 1");
        stage
    }

    fn karve(&self, args: &[&str]) -> Said {
        self.lab.commit();
        let mut command = self.lab.command(args);
        Said::of(&command.env("SOME_MODEL_KEY", KEY).output().unwrap())
    }

    /// Why the change of each round failed.
    fn failures(&self) -> Vec<String> {
        let events = self.lab.events("not_implemented");
        let why = |event: &Value| event["why"].as_str().unwrap_or_default().to_owned();
        events.iter().map(why).collect()
    }

    /// The lines of the session log of an event.
    fn session_log(&self, kind: &str) -> Vec<Value> {
        let name = self.lab.events(kind)[0]["session_log"].clone();
        let path = self.lab.campaign("artifacts").join(name.as_str().unwrap());
        let text = fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What must hold after any campaign.
    #[track_caller]
    fn is_clean(&self) {
        is_tidy(&self.lab);
        let mut dirs = vec![self.lab.campaign("")];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    dirs.push(entry.path());
                } else {
                    let bytes = fs::read(entry.path()).unwrap();
                    let text = String::from_utf8_lossy(&bytes);
                    assert!(!text.contains(KEY), "{} has a key", entry.path().display());
                }
            }
        }
    }
}

/// One gain after a look at the files and a test, one wrong result, one file that is not editable.
fn script() -> Script {
    let implement = vec![
        read("kernel.sh"),
        edit("kernel.sh", "TIME=100", "TIME=50"),
        Step::Tool("test", json!({})),
        done(),
    ];
    Script::from([
        (
            (1, "propose"),
            vec![Step::Tool("search", json!({"pattern": "^TIME="})), claim("halve the work")],
        ),
        ((1, "implement"), implement),
        ((2, "propose"), vec![claim("multiply less")]),
        (
            (2, "implement"),
            vec![
                edit("kernel.sh", "2 * 3", "2 * 4"),
                edit("kernel.sh", "TIME=50", "TIME=20"),
                done(),
            ],
        ),
        // It stays as it is, which is wrong.
        ((2, "repair"), vec![edit("kernel.sh", "2 * 4", "2 * 5"), done()]),
        ((3, "propose"), vec![claim("unroll by four")]),
        ((3, "implement"), vec![edit("test.sh", "7", "8"), read("../../../karve.toml"), done()]),
    ])
}

#[track_caller]
fn goes_through(kind: (&str, &str)) {
    let stage = Stage::new(kind, script());
    let said = stage.karve(&["run", "--yes"]);
    let log = stage.lab.log();
    assert_eq!(said.code, 0, "{said:#?} {log:#?}");
    let verdicts = stage.lab.verdicts();
    assert_eq!(verdicts[..2], ["keep", "wrong_result"], "{log:#?}");
    let denied = "denied: it is not allowed to use edit of test.sh, and changed nothing";
    assert_eq!(stage.failures(), [denied]);
    // Tokens and money are those of every question.
    let one = TOKENS_IN + TOKENS_OUT;
    let usage = |kind: &str| stage.lab.events(kind)[0]["usage"].clone();
    assert_eq!(usage("proposed")["tokens"], 2 * one);
    assert_eq!(usage("implemented")["tokens"], 4 * one);
    let usd = usage("proposed")["usd"].as_f64().unwrap();
    let want = 2.0 * (TOKENS_IN as f64 * 3.0 + TOKENS_OUT as f64 * 15.0) / 1e6;
    assert!((usd - want).abs() < 1e-9, "{usd} {want}");
    // A round is one conversation, and to propose is to read.
    let asked = stage.model.asked();
    let repaired = asked.iter().find(|asked| asked.task == "repair").unwrap();
    assert_eq!((repaired.round, repaired.briefs), (2, 3), "{asked:#?}");
    assert_eq!(asked[0].tools, ["read", "search"]);
    assert_eq!(repaired.tools.len(), 6);
    let session_log = stage.session_log("implemented");
    let given = |name: &str| {
        let of = session_log.iter().find(|line| line["name"] == name).unwrap();
        of["text"].as_str().unwrap().to_owned()
    };
    assert!(given("read").contains("TIME=100"));
    assert_eq!(given("test"), "the test passed on 1 visible cases");
    assert_eq!(session_log[0]["karve"], "brief");
    assert_eq!(session_log.last().unwrap()["karve"], "end");
    let escaped = stage.session_log("not_implemented");
    let escaped = escaped.iter().find(|line| line["name"] == "read").unwrap();
    assert_eq!(escaped["failed"], true, "{escaped:#?}");
    stage.is_clean();
    let changed = stage.lab.git(&["diff", "--name-only", "main", "optimize/toy"]);
    assert_eq!(changed, "kernel.sh");
}

#[test]
fn realizations_of_one_hypothesis_are_conversations_of_their_own() {
    let script = Script::from([
        ((1, "propose"), vec![claim("halve the work")]),
        ((1, "implement"), vec![edit("kernel.sh", "TIME=100", "TIME=50"), done()]),
    ]);
    let stage = Stage::of_one_round(script);
    let said = stage.karve(&["run", "--yes", "--best-of", "2"]);
    assert_eq!(said.code, 0, "{said:#?}");
    assert_eq!(stage.lab.verdicts(), ["keep"]);
    let asked = stage.model.asked();
    let implement = asked.iter().filter(|asked| asked.task == "implement");
    let briefs: Vec<usize> = implement.map(|asked| asked.briefs).collect();
    // The first goes on where the proposal ended; the second knows nothing of it.
    assert_eq!(briefs, [2, 2, 1, 1], "{asked:#?}");
}

#[test]
fn anthropic_goes_through_a_campaign() {
    goes_through(KINDS[0]);
}

#[test]
fn openai_goes_through_a_campaign() {
    goes_through(KINDS[1]);
}

#[test]
fn openai_chat_goes_through_a_campaign() {
    goes_through(KINDS[2]);
}

#[test]
fn google_goes_through_a_campaign() {
    goes_through(KINDS[3]);
}

/// A campaign of one round whose change ends like this.
#[track_caller]
fn ends(kind: (&str, &str), steps: Vec<Step>, want: &str) -> Stage {
    let mut script = gain();
    script.insert((1, "implement"), steps);
    let stage = Stage::new(kind, script);
    stage.lab.replace("karve.toml", "rounds = 3", "rounds = 1");
    let said = stage.karve(&["run", "--yes"]).ends(0);
    match want {
        "keep" => assert_eq!(stage.lab.verdicts(), ["keep"], "{:?}", stage.failures()),
        want => {
            let why = stage.failures();
            assert!(why.len() == 1 && why[0].starts_with(want), "{why:?} {said:?}");
        }
    }
    stage.is_clean();
    stage
}

#[test]
fn what_a_server_refuses_has_a_name_and_what_passes_is_tried_again() {
    for kind in KINDS {
        let asked = |stage: &Stage| {
            let asked = stage.model.asked();
            asked.iter().filter(|one| one.task == "implement").count()
        };
        let change = || edit("kernel.sh", "TIME=100", "TIME=50");
        let flaky = Step::Flaky(429, 2, Box::new(change()));
        let stage = ends(kind, vec![flaky, done()], "keep");
        assert_eq!(asked(&stage), 4);
        let stage = ends(kind, vec![Step::Error(401)], "api error: 401");
        assert_eq!(asked(&stage), 1);
        // The kinds share what is tried again; each has its own way to say what it refuses.
        let all = kind == KINDS[0] || by_default(false, true);
        let statuses: &[u16] = if all { &[429, 500, 529] } else { &[429] };
        for &status in statuses {
            let want = format!("api error: {status}");
            let stage = ends(kind, vec![Step::Error(status)], &want);
            assert_eq!(asked(&stage), 3);
        }
    }
}

#[test]
fn what_a_stream_should_not_hold_has_a_name() {
    for kind in KINDS {
        ends(kind, vec![Step::Broken], "no result: the stream stopped in the middle");
        ends(kind, vec![Step::Garbage], "malformed: not an event");
        ends(kind, vec![Step::Huge(3 << 20)], "too long");
        // The turns of all kinds are counted in one place.
        if kind == KINDS[0] || by_default(false, true) {
            let endless = vec![read("kernel.sh"); 200];
            ends(kind, endless, "max turns: there were more than 100 tool calls");
        }
    }
}

#[test]
fn a_server_that_hangs_is_left_when_the_time_is_over() {
    let mut script = gain();
    script.insert((1, "implement"), vec![Step::Hang]);
    let stage = Stage::of_one_round(script);
    stage.lab.replace("karve.toml", "agent_s = 20", "agent_s = 2");
    stage.karve(&["run", "--yes"]).ends(0);
    assert_eq!(stage.failures(), ["timeout: the agent ran for more than 2 s"]);
    stage.is_clean();
}

#[test]
fn a_second_ctrl_c_ends_a_question_at_once_and_nothing_is_lost() {
    let mut script = gain();
    script.insert((1, "implement"), vec![Step::Hang]);
    let stage = Stage::of_one_round(script);
    stage
        .lab
        .replace("karve.toml", "agent_s = 20", "agent_s = 3600")
        .replace("karve.toml", "key_env = \"SOME_MODEL_KEY\"", "key_command = \"echo some-key\"")
        .commit();
    let running = stage.lab.start(&["run", "--yes"]);
    crate::e2e::lab::wait_until("the model is asked", || {
        stage.model.asked().iter().any(|asked| asked.task == "implement")
    });
    running.interrupt("finishing this step");
    running.interrupt("stopping immediately");
    running.wait().ends(130);
    assert_eq!(stage.lab.events("proposed").len(), 1);
    assert_eq!(stage.lab.events("not_implemented").len(), 0);
    is_tidy(&stage.lab);
}

#[test]
fn a_conversation_that_is_too_long_is_made_shorter() {
    let long = "# a long line of a comment that says nothing\n".repeat(400);
    let change = edit("kernel.sh", "TIME=100", "TIME=50");
    // As much as three readings, and not four.
    let within = |step| Step::Within(75_000, Box::new(step));
    let mut steps: Vec<Step> = (0..5).map(|_| within(read("long.txt"))).collect();
    steps.extend([within(change), within(done())]);
    for kind in KINDS {
        let mut script = gain();
        script.insert((1, "implement"), steps.clone());
        let stage = Stage::new(kind, script);
        stage.lab.replace("karve.toml", "rounds = 3", "rounds = 1");
        stage.lab.write("long.txt", &long);
        stage.karve(&["run", "--yes"]).ends(0);
        assert_eq!(stage.lab.verdicts(), ["keep"], "{:?}", stage.failures());
        let session_log = stage.session_log("implemented");
        assert!(session_log.iter().any(|line| line["karve"] == "compacted"));
        stage.is_clean();
    }
    // Before it is even asked, where the size of the model is told.
    let mut script = gain();
    let free: Vec<Step> = (0..8).map(|_| read("long.txt")).collect();
    let change = edit("kernel.sh", "TIME=100", "TIME=50");
    script.insert((1, "implement"), [free, vec![change, done()]].concat());
    let stage = Stage::of_one_round(script);
    let small = "retries = 2\nmax_tokens = 1_000\ncontext_tokens = 24_000";
    stage.lab.replace("karve.toml", "retries = 2", small);
    stage.lab.write("long.txt", &long);
    stage.karve(&["run", "--yes"]).ends(0);
    assert_eq!(stage.lab.verdicts(), ["keep"], "{:?}", stage.failures());
    let largest = stage.model.asked().iter().map(|one| one.bytes).max();
    assert!(largest.is_some_and(|bytes| bytes < 8 * long.len()), "{largest:?}");
    // What cannot be made shorter ends by its name.
    let never = Step::Within(10, Box::new(done()));
    ends(KINDS[0], vec![never], "context: 413");
}

#[test]
fn money_and_tokens_stop_before_they_are_passed() {
    let check = |limits: &str, of_table: &str, part: &str| {
        let stage = Stage::new(KINDS[1], script());
        stage.lab.replace("karve.toml", "final_blocks = 2", limits);
        stage.lab.replace("karve.toml", "retries = 2", of_table);
        stage.karve(&["run", "--yes"]).ends(0);
        let refused = stage.lab.events("proposal_refused");
        let finished = &stage.lab.events("finished")[0].to_string();
        let last = refused.last().map(Value::to_string).unwrap_or_default();
        let failures = stage.failures().join(" ");
        let reported = format!("{last} {failures}");
        assert!(reported.contains(part), "{reported} {finished}");
        let log = stage.lab.log();
        let used: Vec<&Value> = log.iter().map(|record| &record["event"]["usage"]).collect();
        let usd: f64 = used.iter().filter_map(|usage| usage["usd"].as_f64()).sum();
        let tokens: u64 = used.iter().filter_map(|usage| usage["tokens"].as_u64()).sum();
        stage.is_clean();
        (usd, tokens)
    };
    let usd = "final_blocks = 2\nagent_usd = 0.05";
    let (used, _) = check(usd, "retries = 2\nmax_tokens = 1_000", "of limits.agent_usd is left");
    assert!(used > 0.0 && used <= 0.05, "{used}");
    let few = "retries = 2\nmax_tokens = 1_000\ntokens_max = 6_000";
    let (_, used) = check("final_blocks = 2", few, "of tokens_max are left");
    assert!(used > 0 && used <= 6_000, "{used}");
}

#[test]
fn a_limit_on_money_needs_a_price_and_a_model_a_name() {
    let stage = Stage::of_one_round(gain());
    let price = "price = { input = 3.0, output = 15.0 }";
    stage.lab.replace("karve.toml", price, "");
    let limits = "final_blocks = 2\nagent_usd = 1.0";
    stage.lab.replace("karve.toml", "final_blocks = 2", limits);
    stage
        .karve(&["run", "--yes"])
        .ends(2)
        .complains(&["has no price", "hint: set agents.anthropic.price"]);
    stage.lab.replace("karve.toml", limits, "final_blocks = 2");
    stage.lab.replace("karve.toml", "model = \"scripted\"", "");
    stage
        .karve(&["run", "--yes"])
        .ends(2)
        .complains(&["has no model", "karve run --agent anthropic:MODEL"]);
    // Named where it is run.
    stage.karve(&["run", "--yes", "--agent", "anthropic:scripted"]).ends(0);
    assert_eq!(stage.lab.verdicts(), ["keep"]);
    let bare = Lab::new("gains");
    bare.karve(&["run", "--yes", "--agent", "google:some-model"])
        .ends(3)
        .complains(&["GEMINI_API_KEY is not set", "hint: set GEMINI_API_KEY"]);
}

#[test]
fn a_key_reaches_the_server_and_nothing_else() {
    // Nothing confines the commands, and still they do not get the key.
    let mut script = gain();
    let steps =
        vec![edit("kernel.sh", "TIME=100", "TIME=50"), Step::Tool("build", json!({})), done()];
    script.insert((1, "implement"), steps);
    let stage = Stage::of_one_round(script);
    stage.lab.unconfined();
    let build = stage.lab.read("build.sh");
    let looks = "if env | grep -q never-to-be-stored; then echo \"$(env)\" >&2; exit 9; fi\n";
    stage.lab.write("build.sh", &format!("{looks}{build}"));
    stage.karve(&["run", "--yes"]).ends(0);
    assert_eq!(stage.lab.verdicts(), ["keep"], "{:?}", stage.failures());
    let heads = stage.model.heads();
    assert!(heads.iter().any(|head| head.contains(KEY)), "{heads:?}");
    stage.is_clean();
    // From a command, which is asked when it is needed.
    let stage = Stage::of_one_round(gain());
    let command = format!("key_command = \"echo {KEY}\"");
    stage.lab.replace("karve.toml", "key_env = \"SOME_MODEL_KEY\"", &command);
    stage.lab.commit().karve(&["run", "--yes"]).ends(0);
    assert!(stage.model.heads().iter().any(|head| head.contains(KEY)));
    let stage = Stage::of_one_round(gain());
    let command = "key_command = \"echo half-a-key; exit 3\"";
    stage.lab.replace("karve.toml", "key_env = \"SOME_MODEL_KEY\"", command);
    let said = stage.lab.commit().karve(&["run", "--yes"]).ends(3);
    assert!(!said.stderr.contains("half-a-key"), "{said:?}");
    said.complains(&["did not print a key", "agents.anthropic.key_command"]);
}

#[test]
fn what_is_there_is_listed_and_a_trial_says_what_works() {
    let stage = Stage::new(KINDS[2], Script::new());
    stage
        .karve(&["agents"])
        .ends(0)
        .shows(&["hint: set GEMINI_API_KEY to use the Google Gemini API", "model scripted"]);
    let all = stage.karve(&["agents", "--trial", "--json"]).ends(0).json();
    let all = all.as_array().unwrap();
    let chat = all.iter().find(|one| one["name"] == "openai-chat").unwrap();
    assert_eq!(chat["trial"]["works"], true, "{chat:#?}");
    assert_eq!(chat["trial"]["tokens"], TOKENS_IN + TOKENS_OUT);
    // Nobody is there.
    let url = format!("{}/v1", stage.model.url());
    stage.lab.replace("karve.toml", &url, "http://127.0.0.1:1/v1");
    stage.karve(&["agents", "--trial"]).ends(1).shows(&["FAILED", "cannot be reached: 127.0.0.1:"]);
}

#[test]
fn a_round_is_put_in_words_by_a_model_too() {
    let mut script = gain();
    let words = "```json\n{\"mechanism\": \"half of the work was for nothing\"}\n```";
    script.insert((1, "learn"), vec![say(words)]);
    let stage = Stage::of_one_round(script);
    stage.lab.replace("karve.toml", "retries = 2", "retries = 2\nlearn = true");
    stage.karve(&["run", "--yes"]).ends(0);
    let learned = stage.lab.events("learned")[0].to_string();
    assert!(learned.contains("half of the work was for nothing"), "{learned}");
    stage.is_clean();
}
