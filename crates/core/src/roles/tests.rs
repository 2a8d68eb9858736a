//! Routing, rule by rule; what a role table must contain; what the five signals say.

use super::*;
use crate::agenda::{Agenda, AgendaItem, AgendaSource, ItemOutcome};
use crate::campaign::signals_of;
use crate::campaign::{Event, Step};
use crate::hypothesis::tests::hypothesis;
use crate::measurement::WrongLanguageFile;
use crate::profile::CounterValues;
use crate::testing::fixed;
use crate::testing::script::{play, play_until, script};
use proptest::prelude::*;

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn role(name: &str, language: Option<&str>, may: &[Duty]) -> Role {
    Role {
        name: name.into(),
        system: "b".into(),
        title: format!("the {name}"),
        may: may.to_vec(),
        language: language.map(str::to_owned),
        writes: match may.contains(&Duty::Implement) {
            true => words(&["**/*.py"]),
            false => Vec::new(),
        },
        ..Role::default()
    }
}

fn language(name: &str, named: &[&str], at_least: u32) -> Language {
    Language {
        name: name.into(),
        words: words(named),
        marks: vec![format!("import {name}")],
        needs: vec![LanguageNeed {
            family: "sm".into(),
            at_least,
            why: "its compiler says so".into(),
            ..LanguageNeed::default()
        }],
        note: format!("{name} is {name}."),
        ..Language::default()
    }
}

/// Three languages, one of which is built on another, and the roles that write them.
pub(crate) fn role_table() -> RoleTable {
    use Duty::{Implement, Profile, Propose, Review};
    let both = [Propose, Implement];
    let mut tile = language("tile", &["tile ir", "enable_tile"], 100);
    tile.built_on = Some("tri".into());
    let mut cute = language("cute", &["cute dsl"], 80);
    cute.needs.push(LanguageNeed {
        op: words(&["gemm"]),
        family: "sm".into(),
        at_least: 100,
        not: vec![120, 121],
        why: "its matrix kernels need what 120 does not have".into(),
    });
    let mut ctile = language("ctile", &["ctile"], 80);
    ctile.leave.push(LanguageFallback {
        when: "occupancy_pct < 15 && eligible_warps < 1 && stall.barrier > 20".into(),
        to: "cute".into(),
        why: "no warp can be told to wait".into(),
    });
    let mut graphs = role("graphs", None, &both);
    graphs.intents = words(&["graph capture"]);
    let mut profiler = role("profiler", None, &[Profile, Propose]);
    profiler.intents = words(&["profile"]);
    profiler.topics = words(&["measure"]);
    profiler.aka = words(&["perf-profiler"]);
    RoleTable {
        by_item: true,
        role: vec![
            role("designer", None, &both),
            role("triwriter", Some("tri"), &both),
            role("tiler", Some("tile"), &both),
            role("cuter", Some("cute"), &both),
            role("ctiler", Some("ctile"), &both),
            graphs,
            profiler,
            role("reviewer", None, &[Review]),
            role("planner", None, &[Duty::Plan, Propose]),
        ],
        language: vec![language("tri", &["tri"], 80), tile, cute, ctile],
        call: vec![RoleTrigger {
            when: "launch_api_pct > 10 && small_kernels_pct > 50".into(),
            role: "graphs".into(),
            why: "launching costs more than working".into(),
        }],
        usual: vec![
            DefaultLanguage {
                family: "sm".into(),
                at_least: 100,
                language: "tile".into(),
                why: "new enough for tile".into(),
            },
            DefaultLanguage {
                family: "sm".into(),
                at_least: 80,
                language: "tri".into(),
                why: "tri runs there".into(),
            },
        ],
    }
}

fn asked(intent: &str, arch: &str, kernel: &str) -> RoleRequest {
    RoleRequest {
        intent: intent.into(),
        arch: arch.into(),
        op: "softmax".into(),
        kernel: kernel.into(),
        ..RoleRequest::default()
    }
}

#[track_caller]
fn check(request: &RoleRequest, steps: &[&str], rules: &[&str]) {
    let decision = route(&role_table(), request).unwrap();
    assert_eq!(decision.steps, steps, "{decision:#?}");
    for rule in rules {
        let spoke = decision.why.iter().any(|reason| reason.rule == *rule);
        assert!(spoke, "{rule} in {decision:#?}");
    }
}

#[track_caller]
fn refuses(request: &RoleRequest, part: &str, right: Option<&str>) {
    let refused = route(&role_table(), request).unwrap_err();
    assert!(refused.why.contains(part), "{refused:#?}");
    assert_eq!(refused.right.as_deref(), right, "{refused:#?}");
}

#[test]
fn a_language_that_is_named_is_taken_and_one_built_on_another_in_two_steps() {
    check(&asked("use Tri here", "sm_90", ""), &["triwriter"], &["intent"]);
    check(&asked("a CuTe DSL kernel", "sm_90", ""), &["cuter"], &["intent"]);
    check(&asked("port to Tile-IR", "sm_100", ""), &["triwriter", "tiler"], &["intent", "kernel"]);
    // Only the second step, if the kernel of the first exists.
    check(&asked("set ENABLE_TILE=1", "sm_100", "tri"), &["tiler"], &["kernel"]);
    check(&asked("convert the Tri kernel to Tile IR", "sm_100", ""), &["tiler"], &["kernel"]);
    let file = "Add Tile IR configs to fused_gelu.py for Blackwell";
    check(&asked(file, "sm_100", ""), &["tiler"], &["kernel"]);
    // Tri and Tile IR together mean Tile IR.
    check(&asked("the Tri kernel with Tile IR", "sm_100", "tri"), &["tiler"], &["terminology"]);
}

#[test]
fn unrelated_languages_in_one_request_are_refused() {
    refuses(&asked("Tile IR or CuTe DSL", "sm_100", ""), "name one", None);
    // Only whole words match.
    check(&asked("tribal tiles", "sm_90", "tri"), &["triwriter"], &["kernel"]);
}

#[test]
fn the_architecture_is_held_and_100_is_not_120() {
    refuses(&asked("Tile IR", "sm_90", "tri"), "needs sm100", Some("triwriter"));
    refuses(&asked("CuTe DSL", "cpu", ""), "needs sm80", Some("designer"));
    check(&asked("Tile IR", "sm_120", "tri"), &["tiler"], &[]);
    let gemm = |arch: &str| RoleRequest { op: "matmul".into(), ..asked("CuTe DSL", arch, "") };
    check(&gemm("sm_100a"), &["cuter"], &[]);
    refuses(&gemm("sm_120"), "not 120", Some("triwriter"));
    refuses(&gemm("sm_90"), "needs sm100", Some("triwriter"));
    // A language may run on two families.
    let mut two = role_table();
    two.language[0].needs.push(LanguageNeed {
        family: "gfx".into(),
        at_least: 9,
        ..LanguageNeed::default()
    });
    assert!(route(&two, &asked("Tri", "gfx942", "tri")).is_ok());
    refuses(&asked("Tri", "gfx942", "tri"), "the device is gfx942", Some("triwriter"));
    // What is not known is reported, and does not count against anything.
    check(&gemm(""), &["cuter"], &["hardware"]);
}

#[test]
fn without_a_request_the_kernel_decides_and_then_the_architecture() {
    check(&asked("", "sm_100", "tri"), &["tiler"], &["kernel", "hardware"]);
    check(&asked("", "sm_90", "tri"), &["triwriter"], &["kernel"]);
    check(&asked("", "sm_100", "tile"), &["tiler"], &["kernel"]);
    // Nobody writes it, or an older charter: the kernel stays in its language.
    let mut table = role_table();
    table.role.retain(|role| role.name != "tiler");
    let steps = |table: &RoleTable| route(table, &asked("", "sm_100", "tri")).unwrap().steps;
    assert_eq!(steps(&table), ["triwriter"]);
    assert_eq!(steps(&RoleTable { by_item: false, ..role_table() }), ["triwriter"]);
    check(&asked("", "sm_100", ""), &["triwriter", "tiler"], &["hardware"]);
    check(&asked("", "sm_90", ""), &["triwriter"], &["hardware"]);
    check(&asked("", "sm_75", ""), &["designer"], &["role"]);
    check(&asked("", "cpu", "c"), &["designer"], &["kernel"]);
}

#[test]
fn a_language_is_left_where_it_cannot_do_what_the_counters_ask_for() {
    let mut request = asked("", "sm_100", "ctile");
    check(&request, &["ctiler"], &["kernel"]);
    request.counters = CounterValues::from([
        ("occupancy_pct".into(), 12.0),
        ("eligible_warps".into(), 0.4),
        ("stall.barrier".into(), 35.0),
    ]);
    check(&request, &["cuter"], &["suitability"]);
    // Not if the other language does not run, nor against an explicit request.
    request.arch = "sm_120".into();
    request.op = "gemm".into();
    check(&request, &["ctiler"], &["suitability", "hardware"]);
    let named = RoleRequest { intent: "stay with ctile".into(), arch: "sm_100".into(), ..request };
    check(&named, &["ctiler"], &["suitability"]);
}

#[test]
fn words_and_counters_ask_for_roles_beside_the_language() {
    check(&asked("try graph capture", "sm_90", "tri"), &["graphs"], &["intent"]);
    check(&asked("measure it", "sm_90", "tri"), &["profiler", "triwriter"], &["intent"]);
    check(&asked("write and measure in tri", "sm_90", "tri"), &["triwriter"], &["intent"]);
    let decision = route(&role_table(), &asked("profile the Tri kernel", "sm_90", "tri")).unwrap();
    assert_eq!((&*decision.role, &*decision.implements), ("profiler", "triwriter"));
    let mut request = asked("", "sm_90", "tri");
    request.counters =
        CounterValues::from([("launch_api_pct".into(), 30.0), ("small_kernels_pct".into(), 90.0)]);
    check(&request, &["graphs"], &["profile"]);
}

#[test]
fn a_message_to_the_wrong_role_is_refused_with_the_right_one() {
    let wrong = |to: &str, request: &RoleRequest| {
        let refused = address(&role_table(), to, request).unwrap_err();
        (refused.why.clone(), refused.right.unwrap())
    };
    let tri = asked("a Tri kernel", "sm_90", "tri");
    let (why, right) = wrong("cuter", &tri);
    assert!(why.contains("writes cute") && right == "triwriter", "{why} {right}");
    let (why, right) = wrong("tiler", &asked("Tile IR", "sm_100", ""));
    assert!(why.contains("not tiler's turn yet") && right == "triwriter", "{why}");
    let (why, _) = wrong("profiler", &tri);
    assert!(why.contains("may not implement"), "{why}");
    let (why, _) = wrong("nobody", &tri);
    assert!(why.contains("there is no role"), "{why}");
    assert!(address(&role_table(), "triwriter", &tri).is_ok());
    let profile = RoleRequest { duty: Duty::Profile, ..tri };
    assert!(address(&role_table(), "perf-profiler", &profile).is_ok());
}

#[test]
fn a_file_in_another_language_than_asked_is_reported() {
    let file = |before: &str, after: &str| vec![("k.py".to_owned(), before.into(), after.into())];
    let found = |asked: &str, files: &[(String, String, String)]| {
        wrong_language_files(&role_table(), asked, files)
            .iter()
            .map(WrongLanguageFile::describe)
            .collect::<Vec<_>>()
    };
    let said = found("tri", &file("import tri\n", "import cute\nimport tri\n"));
    assert_eq!(said, ["k.py is written in cute (\"import cute\"), but tri was requested"]);
    // Earlier lines, a word inside a line, and the base of a language are not reported.
    for files in [
        file("import cute\n", "import cute\nimport tri\n"),
        file("", "# import cute\nx = 'import cute'\nimport cuteness\n"),
    ] {
        assert_eq!(found("tri", &files), Vec::<String>::new());
    }
    assert_eq!(found("tile", &file("", "import tri\n")), Vec::<String>::new());
    assert_eq!(found("latin", &file("", "import tri\n")), Vec::<String>::new());
}

#[test]
fn a_role_gets_what_is_shared_and_what_is_in_its_language() {
    let known = |language: &[&str]| KnownEntry {
        scope: Scope { language: words(language), ..Scope::default() },
        ..KnownEntry::default()
    };
    let mut tri = role("triwriter", Some("tri"), &[Duty::Implement]);
    tri.knowledge.language = words(&["Tri"]);
    assert!(tri.gets(&known(&[])) && tri.gets(&known(&["tri", "c"])));
    assert!(!tri.gets(&known(&["cute"])));
    assert!(role("any", None, &[Duty::Propose]).gets(&known(&["cute"])));
}

/// A campaign with this role table, in these words.
fn campaign_with(intent: &str) -> crate::testing::script::CampaignScript {
    let mut script = script(&[1.3, 1.3]);
    script.charter.target.language = "Tri".into();
    script.charter.target.backend = "tri".into();
    script.charter.asks.role_table = Some(Box::new(role_table()));
    script.charter.asks.arch = "sm_100".into();
    script.charter.asks.intent = intent.into();
    script
}

#[test]
fn a_campaign_asks_the_role_that_routing_chose() {
    let asked = |script: &_| {
        let until = |step: &Step| matches!(step, Step::Propose { .. });
        let (campaign, _) = play_until(script, &until);
        crate::campaign::strategy::in_role(&campaign).unwrap()
    };
    assert_eq!(asked(&campaign_with("")).implements.name, "tiler");
    assert_eq!(asked(&campaign_with("Tri")).implements.name, "triwriter");
    // A role that plans states the hypothesis, if it has an agent, and writes nothing.
    let mut script = campaign_with("Tri");
    script.charter.asks.agents.insert("planner".into(), "a".into());
    let planned = asked(&script);
    assert_eq!((&*planned.proposes.name, &*planned.implements.name), ("planner", "triwriter"));
    assert!(!planned.proposes.may(Duty::Implement));
    let tile = asked(&campaign_with("Tile IR"));
    assert_eq!(tile.proposes.name, "tiler");
    assert!(tile.route.lines().iter().any(|line| line.starts_with("kernel: ")));
    // A request that can no longer be met goes to the fallback role.
    let mut script = campaign_with("Tile IR");
    script.charter.asks.arch = "sm_80".into();
    assert_eq!(asked(&script).implements.name, "designer");
    assert!(crate::campaign::strategy::in_role(&play(&script_without()).0).is_none());
}

/// A plan whose items name different kinds of work.
fn plan(items: &[(&str, &str)]) -> Box<Agenda> {
    let item = |(id, title): &(&str, &str)| AgendaItem {
        id: (*id).into(),
        title: (*title).into(),
        expected_ratio: 1.4,
        ..AgendaItem::default()
    };
    let items = items.iter().map(item).collect();
    Box::new(Agenda { wanted: AgendaSource::Plan { bottleneck: String::new(), items }, tries: 1 })
}

#[test]
fn each_item_of_a_plan_goes_to_its_own_role_and_what_the_device_cannot_do_is_skipped() {
    let implementer = |items: &[(&str, &str)], intent: &str, arch: &str| {
        let mut script = campaign_with(intent);
        script.charter.asks.arch = arch.into();
        script.charter.agenda = Some(plan(items));
        let until = |step: &Step| matches!(step, Step::Propose { .. });
        let (campaign, _) = play_until(&script, &until);
        let roles = crate::campaign::strategy::in_role(&campaign).unwrap();
        (roles.proposes.name, roles.implements.name, campaign.fates())
    };
    let of = |title: &str, intent: &str| {
        let (proposes, implements, _) = implementer(&[("x", title)], intent, "sm_100");
        format!("{proposes}, {implements}")
    };
    assert_eq!(of("Apply graph capture", "Tri"), "graphs, graphs");
    assert_eq!(of("Write a CuTe DSL kernel", "Tri"), "cuter, cuter");
    assert_eq!(of("Use Tile IR", "Tri"), "tiler, tiler");
    assert_eq!(of("Measure it first", "Tri"), "profiler, tiler");
    // Words that are for nobody in particular go where the campaign asks.
    assert_eq!(of("Unroll the loop", "Tri"), "triwriter, triwriter");
    let items = [("a", "Use Tile IR"), ("b", "Unroll the loop")];
    let (_, implements, fates) = implementer(&items, "Tri", "sm_90");
    assert_eq!(implements, "triwriter");
    let ItemOutcome::Skipped { why } = &fates[0] else { panic!("{fates:?}") };
    assert!(why.contains("needs sm100"), "{why}");
}

fn script_without() -> crate::testing::script::CampaignScript {
    script(&[1.3])
}

#[test]
fn a_hypothesis_in_another_language_is_refused_with_the_right_role() {
    let until = |step: &Step| matches!(step, Step::Propose { .. });
    let (mut campaign, log) = play_until(&campaign_with("Tri"), &until);
    let route = crate::campaign::strategy::in_role(&campaign).unwrap().route;
    let event = Event::Proposed {
        round: 1,
        try_no: 1,
        hypothesis: Box::new(hypothesis("Rewrite it in the CuTe DSL", "I expect it")),
        usage: crate::spending::AgentUsage::default(),
        session_log: None,
        route: Some(Box::new(route)),
    };
    let record = crate::campaign::Record {
        v: crate::campaign::LOG_VERSION,
        seq: log.len() as u64,
        at_ms: 0,
        spent_ms: 0,
        by: None,
        event,
    };
    campaign.record(&record).unwrap();
    let refused = &campaign.current_round().unwrap().refused;
    assert!(refused[0].contains("cuter is the role for this"), "{refused:?}");
    assert!(matches!(campaign.next_step(), Some(Step::Propose { try_no: 2, .. })));
}

#[test]
fn the_five_signals_follow_from_the_figures() {
    let (campaign, _) = play(&script(&[1.3]));
    let mut round = campaign.rounds()[0].clone();
    let stances = |round: &crate::campaign::RoundSummary| -> Vec<Stance> {
        signals_of(round).iter().map(|said| said.stance).collect()
    };
    use Stance::{Fail, Pass, Unknown};
    assert_eq!(stances(&round), [Pass, Pass, Unknown, Pass, Pass]);
    let hypothesis = round.hypothesis.as_mut().unwrap();
    hypothesis.expected_ratio = 9.0;
    hypothesis.mechanism = "bit-identical results".into();
    hypothesis.files = words(&["other.c"]);
    round.quick = round.comparison.clone();
    let quick = round.quick.as_mut().unwrap();
    quick.overall.ratio = 0.9;
    let full = round.comparison.as_mut().unwrap();
    full.overall.low = Some(0.99);
    assert_eq!(stances(&round), [Fail, Fail, Fail, Fail, Unknown]);
    round.comparison = None;
    round.quick = None;
    assert_eq!(signals_of(&round), Vec::new());
}

proptest! {
    #![proptest_config(fixed(256))]

    /// For any request: the chosen role may do it, the same request gives the same answer, and no
    /// language is written that does not run on the device.
    #[test]
    fn every_answer_keeps_the_rules(
        intent in "(a |profile |tri |cute dsl |tile ir |graph capture |ctile ){0,3}",
        arch in prop_oneof!["(sm_)(75|80|90|100|120)", Just("cpu".to_owned()), Just(String::new())],
        kernel in prop_oneof![Just("tri"), Just("tile"), Just("ctile"), Just("c"), Just("")],
        op in prop_oneof![Just("matmul"), Just("softmax")],
        warps in 0.0..3.0_f64,
    ) {
        let table_of_roles = role_table();
        let request = RoleRequest {
            op: op.into(),
            counters: CounterValues::from([
                ("occupancy_pct".into(), 10.0),
                ("eligible_warps".into(), warps),
                ("stall.barrier".into(), 40.0),
            ]),
            ..asked(&intent, &arch, kernel)
        };
        let answer = route(&table_of_roles, &request);
        prop_assert_eq!(&answer, &route(&table_of_roles, &request));
        if let Ok(decision) = answer {
            prop_assert!(table_of_roles.role(&decision.role).unwrap().may(Duty::Propose));
            let writer = table_of_roles.role(&decision.implements).unwrap();
            prop_assert!(writer.may(Duty::Implement));
            prop_assert!(address(&table_of_roles, &decision.implements, &request).is_ok());
            let number = DeviceArch::parse(&arch).and_then(|arch| arch.number);
            if let (Some("tile"), Some(number)) = (writer.language.as_deref(), number) {
                // A kernel that already exists stays with its writer.
                prop_assert!(number >= 100 || kernel == "tile");
            }
        }
    }
}
