//! The whole path from text to charter, and every error with its line and its hint.

use super::{
    AgendaOption, AgendaRequest, CharterTime, LoadedConfig, Overrides, parse, schema_json,
};
use karve_agents::api;
use karve_agents::api::{ApiConfig, KeySource};
use karve_agents::cli::CliConfig;
use karve_agents::cli::CliKind;
use karve_agents::config::{AgentConfig, AgentLaunch, agent_named};
use karve_core::asking::budget;
use karve_core::charter::{
    Better, Branch, ClockLock, DeviceRule, Goal, Limits, Pin, Target, WorkMode,
};
use karve_core::integrity::{AuditMode, AuditRule};
use karve_core::policy::{FullWhen, Preset, ProfileWhen, SmallGain, StopRule, StreakAction};
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::space::{Delivery, KnobDeclaration};
use karve_os::error::ErrorKind;
use karve_os::sandbox::AllowedHost;
use karve_os::sandbox::NetworkAccess;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

/// A file with every table and nearly every key.
const FULL: &str = include_str!("tests/full.toml");
/// The shortest file that is accepted; the tables are on known lines.
const SHORT: &str = include_str!("tests/short.toml");

/// Every error in a single value, as a table.
const FAULTS: &str = include_str!("tests/faults.txt");

fn read(text: &str) -> Result<LoadedConfig, karve_os::error::CommandError> {
    let now = CharterTime { minute: "2025-11-02 08:30".into() };
    parse(text, Path::new("/project"), &Overrides::default(), &now)
}

/// A copy of the short file with one piece replaced.
fn short_with(from: &str, to: &str) -> String {
    assert_eq!(SHORT.matches(from).count(), 1, "{from} must be there once");
    SHORT.replacen(from, to, 1)
}

/// The file is refused on that line, and the error contains each of the pieces.
fn refuse(text: &str, line: usize, pieces: &[&str]) {
    let error = read(text).expect_err(text);
    assert_eq!(error.kind, ErrorKind::Usage);
    let shown = error.to_string();
    assert!(shown.contains(&format!("karve.toml:{line}: ")), "line {line}: {shown}");
    for piece in pieces {
        assert!(shown.contains(piece), "{piece:?} is not in: {shown}");
    }
    assert_eq!(error.hints.len(), 1, "{shown}");
    for jargon in ["untagged", "variant", "serde", "f64", "u32", "struct", "Option", "invalid type"]
    {
        assert!(!shown.contains(jargon), "{jargon} in: {shown}");
    }
}

fn case(name: &str, params: &[(&str, &str)], set: CaseSet) -> Case {
    let params = params.iter().map(|(key, value)| ((*key).into(), (*value).into()));
    Case { name: name.into(), params: params.collect(), set, minor: false, halve: None }
}

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

#[test]
fn the_full_file_gives_the_expected_target_and_commands() {
    let LoadedConfig { charter, root, dir, agents, agenda: asked, remotes } = read(FULL).unwrap();
    assert!(remotes.is_empty());
    let target = Target {
        project_skill: None,
        op: "matmul".into(),
        backend: "c".into(),
        language: "c".into(),
        device: "cpu".into(),
        goal: Some(Goal::PeakShare { share: 0.6 }),
        constraints: texts(&["no intrinsics"]),
    };
    assert_eq!((charter.target.clone(), asked), (target, None));
    assert_eq!(charter.editable, texts(&["kernel.c", "flags.mk"]));
    assert_eq!(charter.commands.build.as_deref(), Some("make -s"));
    assert_eq!(charter.commands.test, "./build/test {case} {seed}");
    assert_eq!(charter.commands.bench, "./build/bench {case} {seed} > {out}");
    assert_eq!(charter.commands.quick_test.as_deref(), Some("./build/test {case} 1"));
    assert_eq!(charter.commands.artifacts, texts(&["build/kernel.o"]));
    let env = BTreeMap::from([("OMP_NUM_THREADS".to_owned(), "1".to_owned())]);
    assert_eq!(charter.commands.env, env);
    assert!(charter.output.from_file);
    assert_eq!(charter.output.format, "metric");
    assert_eq!(charter.output.label.as_deref(), Some("Cutile"));
    let WorkMode::Workspace { files, integration } = &charter.mode else { panic!("a workspace") };
    assert_eq!(*files, texts(&["src/**"]));
    assert_eq!(integration.bench, "make bench > {out}");
    assert_eq!(integration.env, env);
    assert_eq!(root, Path::new("/project/.karve"));
    assert_eq!(dir, Path::new("/project"));
    let mine = AgentConfig {
        runs: AgentLaunch::Line("python3 agent.py".into()),
        env: BTreeMap::new(),
        pass: Vec::new(),
        learn: false,
        reach: NetworkAccess::Usual,
    };
    assert_eq!(agents, BTreeMap::from([("mine".to_owned(), mine)]));
}

#[test]
fn the_language_follows_from_the_backend_unless_it_is_named() {
    for (backend, language) in [
        ("TRITON", "Triton"),
        ("CK", "HIP"),
        ("hipblaslt", "HIP"),
        ("TURBO", "HIP"),
        ("FLYDSL", "FlyDSL"),
        ("cutile", "cutile"),
    ] {
        let text = short_with("backend = \"ck\"", &format!("backend = \"{backend}\""));
        assert_eq!(read(&text).unwrap().charter.target.language, language, "{backend}");
        let named = text.replace("[target]", "[target]\nlanguage = \"C++\"");
        assert_eq!(read(&named).unwrap().charter.target.language, "C++");
    }
}

#[test]
fn the_audit_is_as_the_file_says() {
    let rule = AuditRule {
        mode: AuditMode::On,
        allow: texts(&["threads"]),
        forbid: texts(&["prints", "fast-math"]),
        weights: texts(&["b"]),
        weight_share: Some(0.015),
    };
    assert_eq!(read(FULL).unwrap().charter.audit, rule);
    assert_eq!(read(SHORT).unwrap().charter.audit, AuditRule::default());
}

#[test]
fn the_device_is_kept_quiet_as_the_file_says() {
    let rule = DeviceRule {
        pin: Pin::Cpus { cpus: vec![0, 2] },
        pressure_max: 20.0,
        pause_max_s: 10,
        lease_wait_s: 60,
        clocks: Some(ClockLock {
            lock: "nvidia-smi -lgc 1500,1500".into(),
            unlock: "nvidia-smi -rgc".into(),
        }),
        gpu: karve_core::charter::GpuPlace::Here,
        member: None,
    };
    assert_eq!(read(FULL).unwrap().charter.device, rule);
    assert_eq!(read(SHORT).unwrap().charter.device, DeviceRule::default());
    let auto = format!("{SHORT}\n[device]\npin = \"auto\"\n");
    assert_eq!(read(&auto).unwrap().charter.device.pin, Pin::Auto);
}

#[test]
fn the_full_file_gives_the_expected_cases() {
    let charter = read(FULL).unwrap().charter;
    let with_b = |s: &str| {
        let name = format!("t=4096,b=32,s={s}");
        let mut case = case(&name, &[("b", "32"), ("s", s), ("t", "4096")], CaseSet::Full);
        case.halve = Some("b".into());
        case
    };
    let mnk = |m, n, k| [("M", m), ("N", n), ("K", k)];
    let mut odd = case("odd", &mnk("129", "200", "77"), CaseSet::Quick);
    odd.minor = true;
    let want = vec![
        case("M=192,N=192,K=192", &mnk("192", "192", "192"), CaseSet::Full),
        odd,
        with_b("1"),
        with_b("16"),
        case("M=100,N=50,K=60", &mnk("100", "50", "60"), CaseSet::Hidden),
    ];
    assert_eq!(charter.cases, want);
}

#[test]
fn the_full_file_gives_the_expected_rules() {
    let charter = read(FULL).unwrap().charter;
    let mut policy = Preset::Primus.policy();
    policy.debug_retries = 5;
    policy.round_minutes = Some(30);
    policy.full_when = FullWhen::Borderline { ratio: 1.05 };
    policy.profile_when = ProfileWhen::OnChange;
    policy.profile_again = true;
    policy.on_streak = vec![(2, StreakAction::Review), (3, StreakAction::InspectCode)];
    policy.stop = vec![
        StopRule::TargetMet,
        StopRule::NoGain { rounds: 3 },
        StopRule::HardwareLimit { share: 0.95 },
        StopRule::Rounds,
        StopRule::WallTime,
        StopRule::AgentCost,
        StopRule::ProposalsExhausted,
        StopRule::SmallGainKept,
    ];
    policy.accept.effect_ratio = 1.03;
    policy.accept.case_regress_ratio = None;
    policy.accept.small_gain = SmallGain::AcceptNote;
    assert_eq!(charter.policy, policy);
    let limits = Limits {
        rounds: 40,
        wall_s: Some(28_800),
        command_s: 900,
        agent_s: 3_600,
        duel_s: 3_600,
        agent_usd: Some(20.0),
        final_blocks: 200,
    };
    assert_eq!(charter.limits, limits);
    assert_eq!(charter.metric.better, Better::Lower);
    assert_eq!(charter.agent, "mine");
    assert_eq!(charter.name, "tiles");
    assert_eq!(charter.created, "2025-11-02 08:30");
    assert_eq!(charter.seed, 1);
    assert_eq!(charter.branch, Branch::Named { name: "optimize/tiles".into() });
    let knob = KnobDeclaration {
        name: "TILE".into(),
        values: texts(&["8", "16"]),
        file: "kernel.c".into(),
        flags: Vec::new(),
        deliver: Delivery::Source,
        key: None,
        when: None,
    };
    assert_eq!(charter.knobs, vec![knob]);
}

#[test]
fn what_is_left_out_has_a_default() {
    let loaded = read(SHORT).unwrap();
    let charter = loaded.charter;
    assert_eq!(charter.name, "gemm_ck_cpu_202511020830");
    assert_eq!(charter.branch, Branch::Named { name: "optimize/gemm_ck_cpu_202511020830".into() });
    assert_eq!(charter.target.language, "HIP");
    assert_eq!(charter.policy, Preset::Strict.policy());
    assert_eq!(charter.limits.rounds, 119);
    assert_eq!(charter.limits.wall_s, None);
    assert_eq!(charter.limits.command_s, 900);
    assert_eq!(charter.agent, "builtin");
    assert_eq!(charter.mode, WorkMode::Repo);
    assert_eq!(charter.metric.unit, "ms");
    assert!(!charter.output.from_file);
    assert_eq!(loaded.root, Path::new("/project/.karve"));
}

#[test]
fn a_campaign_is_asked_for_one_thing_by_the_file_or_by_a_flag() {
    let asking = |keys: &str| format!("{SHORT}\n[campaign]\n{keys}");
    let asked = |keys: &str| read(&asking(keys)).unwrap().agenda;
    let of = |wish: AgendaOption, tries: u32, by_flag: bool| {
        Some(AgendaRequest { option: wish, tries, by_flag })
    };
    assert_eq!(asked("autopilot = false\n"), None);
    let plan = AgendaOption::Plan("/project/a.md".into());
    assert_eq!(asked("plan = \"a.md\"\nitem_tries = 3\n"), of(plan, 3, false));
    let text = asking("autopilot = true\nonly = \"x\"\n");
    let line = text.lines().position(|line| line.starts_with("autopilot"));
    refuse(&text, line.unwrap() + 1, &["both `only` and `autopilot`", "campaign.only"]);
    let overrides =
        Overrides { agenda: Some(AgendaOption::Only("A=1".into())), ..Overrides::default() };
    let now = CharterTime { minute: "2025-11-02 08:30".into() };
    let loaded = parse(&asking("autopilot = true\n"), Path::new("/p"), &overrides, &now);
    assert_eq!(loaded.unwrap().agenda, of(AgendaOption::Only("A=1".into()), 2, true));
}

#[test]
fn a_flag_counts_more_than_the_file() {
    let now = CharterTime { minute: "2025-11-02 08:30".into() };
    let read = |overrides: &Overrides| parse(FULL, Path::new("/p"), overrides, &now);
    let wanted = Overrides {
        agent: Some("replay:logs/a".into()),
        rounds: Some(7),
        hours: Some(0.5),
        ..Overrides::default()
    };
    let charter = read(&wanted).unwrap().charter;
    assert_eq!(charter.agent, "replay:logs/a");
    assert_eq!((charter.limits.rounds, charter.limits.wall_s), (7, Some(1_800)));
    let unknown = |agent: &str| Overrides { agent: Some(agent.into()), ..Overrides::default() };
    let error = read(&unknown("mien")).unwrap_err().to_string();
    assert!(error.contains("--agent") && error.contains("did you mean `mine`?"), "{error}");
    assert!(error.contains("`builtin`, `external`, `replay:<directory>`, `mine`"), "{error}");
    assert!(read(&unknown("replay:")).is_err());
    for (rounds, hours) in [(Some(0), None), (Some(100_001), None), (None, Some(-1.0))] {
        assert!(read(&Overrides { rounds, hours, ..Overrides::default() }).is_err());
    }
}

#[test]
fn an_agent_reaches_the_hosts_of_its_table() {
    let with = |hosts: &str| read(&format!("{SHORT}\n[agents.claude]\nhosts = {hosts}\n"));
    let reach = |hosts: &str| with(hosts).unwrap().agents["claude"].reach.clone();
    let only = vec![
        AllowedHost::parse("api.example.com").unwrap(),
        AllowedHost::parse("localhost:8080").unwrap(),
    ];
    assert_eq!(reach("[\"api.example.com\", \"localhost:8080\"]"), NetworkAccess::Only(only));
    assert_eq!(reach("[\"a.b\", \"*\"]"), NetworkAccess::All);
    for bad in ["[\"a b\"]", "[\"localhost\"]", "[\"*.\"]"] {
        let error = with(bad).unwrap_err();
        assert!(format!("{error:?}").contains("agents.claude.hosts"), "{bad}");
    }
}

#[test]
fn an_agent_is_what_its_table_says_or_what_it_is_called() {
    let with = |table: &str| read(&format!("{SHORT}\n{table}\n"));
    let agents = |table: &str| with(table).unwrap().agents;
    let cli = |kind, model: Option<&str>| {
        AgentLaunch::Cli(CliConfig { model: model.map(str::to_owned), ..CliConfig::of(kind) })
    };
    let bare = agents("[agents.claude]\nmodel = \"m\"");
    assert_eq!(bare["claude"].runs, cli(CliKind::Claude, Some("m")));
    let named = agents("[agents.mine]\nkind = \"codex\"\nenv = { A = \"1\" }");
    assert_eq!(named["mine"].runs, cli(CliKind::Codex, None));
    assert_eq!(named["mine"].env["A"], "1");
    let line = agents("[agents.claude]\ncommand = \"sh mine.sh\"");
    assert_eq!(line["claude"].runs, AgentLaunch::Line("sh mine.sh".into()));
    for kind in CliKind::ALL {
        let overrides = Overrides { agent: Some(kind.name().into()), ..Overrides::default() };
        let now = CharterTime { minute: String::new() };
        let loaded = parse(SHORT, Path::new("/project"), &overrides, &now).unwrap();
        assert_eq!(loaded.charter.agent, kind.name());
    }
    let check = |table: &str, part: &str| {
        let error = with(table).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    check("[agents.mine]", "has no command and no kind");
    check("[agents.mine]\nkind = \"command\"", "has no command");
    check(
        "[agents.mine]\ncommand = \"a\"\nmodel = \"m\"",
        "`model` is for a kind, not for a command",
    );
    check("[agents.mine]\nkind = \"codex\"\ncommand = \"a\"", "takes no command");
    check("[agents.mine]\nkind = \"codec\"", "codex");
    check("[agents.claude]\nretries = 2", "`retries` is not for command-line agents");
    let learns = |table: &str| with(table).unwrap().agents["claude"].learn;
    assert!(learns("[agents.claude]\nlearn = true"));
    assert!(!learns("[agents.claude]"));
}

#[test]
fn a_model_api_is_a_table_or_a_kind_with_its_model() {
    let with = |table: &str| read(&format!("{SHORT}\n{table}\n"));
    let table = "[agents.local]\nkind = \"openai-chat\"\nmodel = \"m\"\n\
                 base_url = \"http://127.0.0.1:11434/v1\"\nkey_command = \"pass show k\"\n\
                 price = { input = 1, output = 2.5 }\ntokens_max = 9";
    let agents = with(table).unwrap().agents;
    let want = ApiConfig {
        model: Some("m".into()),
        base_url: Some("http://127.0.0.1:11434/v1".into()),
        key: KeySource::Command("pass show k".into()),
        price: Some(budget::TokenPrice { input: 1.0, output: 2.5, cached: 1.0 }),
        tokens_max: Some(9),
        ..ApiConfig::of(api::ApiKind::OpenaiChat)
    };
    assert_eq!(agents["local"].runs, AgentLaunch::Api(want.clone()));
    let named = |name: &str| agent_named(name, &agents).map(|config| config.runs);
    let other = ApiConfig { model: Some("qwen3:8b".into()), ..want };
    assert_eq!(named("local:qwen3:8b"), Some(AgentLaunch::Api(other)));
    let bare =
        ApiConfig { model: Some("some-model".into()), ..ApiConfig::of(api::ApiKind::Google) };
    assert_eq!(named("google:some-model"), Some(AgentLaunch::Api(bare)));
    for name in ["google:", "claude:m", "nobody:m", ":m"] {
        assert_eq!(named(name), None, "{name}");
    }
    let check = |table: &str, part: &str| {
        let error = with(table).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let of = |line: &str| format!("[agents.anthropic]\n{line}");
    check(&of("program = \"x\""), "`program` is not for model APIs");
    check(&of("command = \"x\"\nkind = \"openai\""), "takes no command");
    check(&of("base_url = \"ftp://x\""), "is not a server URL");
    check(&of("base_url = \"https://k@x\""), "is not a server URL");
    check(&of("base_url = \"http://example.com\""), "the key would be sent over the network");
    check(&of("key_env = \"A\"\nkey_command = \"b\""), "not from both");
    check(&of("model = \"a b\""), "cannot be the name of a model");
    check(&of("max_tokens = 4_000\ncontext_tokens = 4_000"), "does not fit into");
    check(&of("price = { input = -1, output = 2 }"), "price.input");
    check("[agents.mine]\ncommand = \"a\"\nretries = 1", "not for a command");
}

#[test]
fn every_fault_is_reported_with_its_line_and_a_hint() {
    let mut count = 0;
    for row in FAULTS.lines().filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let row = row.replace("\\n", "\n");
        let columns: Vec<&str> = row.split('¦').map(|column| column.trim_matches(' ')).collect();
        let [from, to, line, pieces] = columns[..] else { panic!("four columns: {row}") };
        let text = match from {
            "+" => format!("{SHORT}{to}\n"),
            _ => short_with(from, to),
        };
        let pieces: Vec<&str> = pieces.split(" & ").collect();
        refuse(&text, line.parse().expect(&row), &pieces);
        count += 1;
    }
    assert!(count > 90, "{count} faults");
}

#[test]
fn an_empty_file_or_case_list_is_refused() {
    refuse("", 1, &["is missing", "karve init"]);
    let (before, _) = SHORT.split_once("list = [").unwrap();
    refuse(&format!("{before}list = []\n"), 20, &["there is no case", "cases.list"]);
    let ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let matrix = format!("matrix = {{ a = {ten}, b = {ten}, c = {ten}, d = [1, 2] }}");
    let text = format!("{before}{matrix}\n");
    refuse(&text, 20, &["2000 cases, more than 1000", "cases.matrix"]);
}

#[test]
fn hyper_mla_has_its_trial_matrix_where_the_file_names_no_case() {
    let (before, _) = SHORT.split_once("list = [").unwrap();
    let text = before.replace("work = \"2*M*N*K\"", "");
    let text = format!("{text}list = []\n\n[policy]\npreset = \"hyper-mla\"\n");
    let cases = read(&text).unwrap().charter.cases;
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["b=32,s=1,t=4096", "b=32,s=16,t=4096"]);
    assert!(cases.iter().all(|case| case.halve.as_deref() == Some("b")));
    let own = text.replace("list = []", "list = [\"b=8\"]");
    assert_eq!(read(&own).unwrap().charter.cases.len(), 1, "cases of the file replace it");
    let third = text.replace("list = []", "list = []\nstress = [\"b=32,s=32,t=4096\"]");
    let charter = read(&third).unwrap().charter;
    assert_eq!((charter.visible_cases(), charter.stress_cases()), (vec![0, 1], vec![2]));
    assert_eq!(charter.cases[2].halve.as_deref(), Some("b"));
}

#[test]
fn faults_between_cases_and_commands_are_named() {
    let text = short_with("name = \"odd\", M = 7, N = 8, K = 9", "name = \"odd\", M = 7");
    let text = text.replace("./b {case}", "./b {N}").replace("work = \"2*M*N*K\"", "");
    refuse(&text, 11, &["commands.bench uses {N}, which the case `odd` does not have", "[cases]"]);
    let text = short_with("\"odd\"", "\"$(odd)\"").replace("./b {case}", "./b '{case}'");
    refuse(&text, 11, &["cannot be used inside shell quotes", "karve quotes it"]);
    let text = short_with("[\"kernel.c\"]", "[\"runs/**\"]");
    let text = format!("{text}[campaign]\nroot = \"runs\"\n");
    refuse(&text, 6, &["would make runs editable"]);
}

#[test]
fn the_schema_in_the_repository_is_the_one_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../karve.schema.json");
    if std::env::var_os("KARVE_BLESS").is_some() {
        std::fs::write(path, schema_json()).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap();
    assert!(stored == schema_json(), "run the tests once with KARVE_BLESS=1");
}

#[test]
fn the_schema_documents_every_key_and_has_no_null() {
    let schema = super::schema::schema();
    let tables = schema["properties"].as_object().unwrap();
    assert_eq!(tables.len(), 23);
    assert!(!schema_json().contains("\"null\""));
    for (name, table) in tables {
        assert!(table["description"].is_string(), "{name}");
        for (key, property) in table["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].is_string(), "{name}.{key}");
        }
    }
}

#[test]
fn under_primus_a_grouped_operation_needs_a_skewed_shape_among_the_representative_ones() {
    let text = short_with("\"gemm\"", "\"grouped_gemm\"");
    let primus = format!("{text}[policy]\npreset = \"primus\"\n");
    refuse(&primus, 20, &["grouped operation include no skewed one", "cases.list"]);
    assert!(read(&text).is_ok());
    let skewed = primus.replace("name = \"odd\"", "name = \"skewed\"");
    assert!(read(&skewed).is_ok());
    let quick = skewed.replace("# The tests add", "quick = [\"M=1,N=2,K=3\"]\n# The tests add");
    refuse(&quick, 20, &["include no skewed one", "cases.quick"]);
}

#[test]
fn every_value_of_a_policy_has_a_key() {
    let schema = super::schema::schema();
    let check = |path: &str, value: &serde_json::Value| {
        let keys = schema.pointer(path).unwrap()["properties"].as_object().unwrap();
        for key in value.as_object().unwrap().keys() {
            assert!(keys.contains_key(key), "{path} has no {key}");
        }
    };
    let mut policy = Preset::Tilegym.policy();
    policy.best_of = 2;
    policy.first_round = 2;
    policy.stagnation_directions = 2;
    let policy = serde_json::to_value(policy).unwrap();
    check("/properties/policy", &policy);
    for table in ["accept", "playbook", "controls", "tune"] {
        check(&format!("/properties/policy/properties/{table}"), &policy[table]);
    }
    let text = "[policy.playbook]\nmemory_below = 5\ncompute = \"GD\"\n";
    let playbook = read(&format!("{SHORT}{text}")).unwrap().charter.policy.playbook.unwrap();
    assert_eq!((playbook.memory_below, playbook.compute_above), (5.0, 50.0));
    assert_eq!((playbook.memory.as_str(), playbook.compute.as_str()), ("ABCFGEH", "GD"));
}

#[test]
fn the_words_of_the_schema_are_those_of_core() {
    fn check<T: serde::de::DeserializeOwned>(path: &str) {
        let schema = super::schema::schema();
        let words = schema.pointer(path).unwrap()["enum"].as_array().unwrap().clone();
        for word in words {
            assert!(serde_json::from_value::<T>(word.clone()).is_ok(), "{path}: {word}");
        }
    }
    let policy = "/properties/policy/properties";
    check::<Better>("/properties/metric/properties/better");
    check::<ProfileWhen>(&format!("{policy}/profile_when"));
    check::<SmallGain>(&format!("{policy}/accept/properties/small_gain"));
    check::<StreakAction>(&format!("{policy}/on_streak/additionalProperties"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(.{0,30}\n){0,8}") {
        let _ = read(&text);
    }

    #[test]
    fn a_damaged_file_is_read_or_refused(
        at in 0..FULL.len(),
        length in 0..40_usize,
        patch in "[\\[\\]{}\"'=,.a-z0-9 \n\\\\-]{0,6}",
    ) {
        let start = FULL.floor_char_boundary(at);
        let end = FULL.floor_char_boundary((at + length).min(FULL.len()));
        let text = format!("{}{patch}{}", &FULL[..start], &FULL[end..]);
        if let Err(error) = read(&text) {
            let shown = error.to_string();
            prop_assert!(shown.contains("karve.toml:"), "{}", shown);
            prop_assert!(!error.hints.is_empty(), "{}", shown);
            prop_assert!(!shown.contains("this value cannot be used here"), "{}", text);
        }
    }
}

/// A whole file with a contract.
const CONTRACT: &str = include_str!("tests/contract.toml");

#[test]
fn a_contract_needs_no_test_no_benchmark_and_no_metric() {
    let charter = read(CONTRACT).expect("a charter").charter;
    let contract = charter.contract.expect("a contract");
    assert_eq!(contract.args.len(), 4);
    assert_eq!(contract.hostile.len(), 2);
    assert_eq!(contract.threads, 1);
    assert_eq!(charter.metric.name, "wall_time");
    assert!(charter.commands.test.is_empty());
}

#[test]
fn a_contract_says_how_calls_on_a_device_are_timed() {
    use karve_numerics::contract::{CacheState, DeviceTiming, LaunchMode};
    let timing = |keys: &str| {
        let text = CONTRACT.replacen("args = [", &format!("{keys}args = ["), 1);
        read(&text).expect("a charter").charter.contract.expect("a contract").timing
    };
    assert_eq!(timing(""), DeviceTiming::default());
    assert_eq!(timing("device = \"cuda\"\n").cache, CacheState::Cold);
    let keys = "device = \"cuda\"\ncache = \"warm\"\nlaunch = \"graph\"\n";
    let both = DeviceTiming { cache: CacheState::Warm, launch: LaunchMode::Graph };
    assert_eq!(timing(keys), both);
    refuse_with("args = [", "launch = \"graph\"\nargs = [", 13, &["for kernels on a GPU", "cuda"]);
    refuse_with("args = [", "cache = \"hot\"\nargs = [", 13, &["`hot` is not a value", "`warm`"]);
}

#[track_caller]
fn refuse_with(from: &str, to: &str, line: usize, pieces: &[&str]) {
    let n = CONTRACT.matches(from).count();
    assert_eq!(n, 1, "{from} must be there once");
    refuse(&CONTRACT.replacen(from, to, 1), line, pieces);
}

#[test]
fn a_fault_in_an_argument_is_told_at_its_line() {
    let unknown = &["`a`", "`Q`", "contract.args"];
    refuse_with("\"M\", \"K\"", "\"M\", \"Q\"", 15, unknown);
    refuse_with("name = \"c\"", "name = \"a\"", 17, &["declared twice"]);
    let shaped = "value = \"M\", shape = []";
    let pieces = &["the scalar `m` has a shape", "contract.args"];
    refuse_with("value = \"M\"", shaped, 14, pieces);
    let pieces = &["did you mean `normal`?", "`uniform`"];
    refuse_with("draw = \"normal\"", "draw = \"norml\"", 15, pieces);
    let pieces = &["with kind = \"constant\" and its value"];
    refuse_with("draw = \"normal\"", "draw = \"constant\"", 15, pieces);
    let pieces = &["did you mean `denormals`?"];
    refuse_with("[\"denormals\"", "[\"denormal\"", 19, pieces);
    let pieces = &["`M` is `big`, which is not a number"];
    refuse_with("M=2,K=3", "M=big,K=3", 14, pieces);
}

#[test]
fn a_module_that_tells_its_inputs_has_one_case() {
    let text = CONTRACT.replace("library = \"k.so\"\nentry = \"f\"", "python = \"k.py\"");
    let text = text.replace("library = \"r.so\"\nentry = \"g\"", "python = \"r.py\"");
    let (before, rest) = text.split_once("args = [").expect("arguments");
    let (_, after) = rest.split_once("]\nhostile").expect("their end");
    let text = format!("{before}inputs = \"from-module\"\nhostile{after}");
    assert!(read(&text).is_ok());
    let two = text.replace("\"M=2,K=3\"", "\"M=2,K=3\", \"M=4,K=3\"");
    let pieces = &["there are 2 cases", "as given", "contract.args"];
    refuse(&two, 17, pieces);
}

#[test]
fn a_case_must_fit_in_float64_only_if_the_reference_computes_in_it() {
    let text = CONTRACT.replace("library = \"k.so\"\nentry = \"f\"", "python = \"k.py\"");
    let text = text.replace("library = \"r.so\"\nentry = \"g\"", "python = \"r.py\"");
    let text = text.replace("python = \"k.py\"", "python = \"k.py\"\ndevice = \"cuda\"");
    let large = text.replace("M=2,K=3", "M=200000,K=100000");
    let native = large.replace("python = \"r.py\"", "python = \"r.py\"\nprecision = \"native\"");
    let error = read(&large).expect_err("160 GB").to_string();
    assert!(error.contains("too large in total"), "{error}");
    assert!(read(&native).is_ok());
}

#[test]
fn a_contract_that_cannot_be_kept_is_refused() {
    refuse_with(
        "args = [",
        "inputs = \"from-module\"\nargs = [",
        13,
        &["only a Python file", "contract.args"],
    );
    refuse_with("draw = \"normal\"", "draw = \"norml\"", 15, &["not a known draw", "norml"]);
    refuse_with("entry = \"f\"\n", "", 10, &["`entry` is missing in [contract]"]);
    refuse_with("\"k.so\"", "\"../k.so\"", 11, &["is not inside the project"]);
    refuse_with("entry = \"g\"", "command = \"x\"", 20, &["one reference"]);
    refuse_with(", value = \"M\"", "", 14, &["neither a scalar nor a tensor"]);
    refuse_with("[cases]", "[metric]\nname = \"time_ms\"\n[cases]", 24, &["own clock"]);
}

#[test]
fn a_key_of_an_inner_table_is_sent_there() {
    let lines = SHORT.lines().count();
    let text = format!("{SHORT}[policy]\nblocks_max = 40\n");
    refuse(
        &text,
        lines + 2,
        &["unknown key `blocks_max` in [policy]", "it is a key of [policy.accept]"],
    );
}

#[test]
fn baselines_are_kernels_for_the_contract_in_the_order_of_the_file() {
    let python = CONTRACT.replace("library = \"k.so\"\nentry = \"f\"", "python = \"k.py\"");
    let python = python.replace("library = \"r.so\"\nentry = \"g\"", "python = \"r.py\"");
    let python = python.replace("args = [", "device = \"cuda\"\nargs = [");
    let text = python
        + "[baselines.plain]\npython = \"r.py\"\n[baselines.fused]\npython = \"b/f.py\"\n\
           [baselines.auto]\ncompile = \"max-autotune\"\n\
           [baselines.blas]\nlibrary = \"b.so\"\nentry = \"gemm\"\n";
    let baselines = read(&text).expect("a charter").charter.baselines;
    let told: Vec<String> =
        baselines.iter().map(|of| format!("{}: {}", of.name, of.kernel.describe())).collect();
    let want = [
        "plain: reference_fn of r.py",
        "fused: kernel_fn of b/f.py",
        "auto: torch.compile with max-autotune of reference_fn of r.py",
        "blas: gemm of b.so",
    ];
    assert_eq!(told, want);
}

#[test]
fn a_baseline_that_cannot_be_called_or_trusted_is_refused() {
    let after = CONTRACT.lines().count() + 1;
    let refused = |table: &str, pieces: &[&str]| {
        refuse(&format!("{CONTRACT}[baselines.x]\n{table}\n"), after, pieces);
    };
    refused("", &["[baselines.x] must name a kernel"]);
    refused("library = \"b.so\"", &["the key `entry` is missing in [baselines.x]"]);
    refused("python = \"b.py\"\nentry = \"f\"", &["`entry` is a function of a library"]);
    refused("library = \"b.so\"\nentry = \"f\"\ncompile = \"default\"", &["and a Python file"]);
    refused("compile = \"default\"", &["`compile` is for kernels on a GPU"]);
    refused("function = \"f\"", &["the reference is not a Python file"]);
    refused("library = \"kernel.c\"\nentry = \"f\"", &["candidates could change kernel.c"]);
    let named = format!("{CONTRACT}[baselines.\"a b\"]\npython = \"b.py\"\n");
    refuse(&named, after, &["`a b` is not a valid name of a baseline"]);
    let many: String = (0..17).map(|n| format!("[baselines.b{n}]\npython = \"b.py\"\n")).collect();
    refuse(&format!("{CONTRACT}{many}"), after, &["[baselines] has more than 16 tables"]);
    let alone = format!("{SHORT}[baselines.x]\npython = \"b.py\"\n");
    refuse(&alone, SHORT.lines().count() + 1, &["[baselines] needs a [contract]"]);
}
