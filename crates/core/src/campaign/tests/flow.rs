//! The flow of a round: which sets are measured, what is fixed, what is refused.

use super::{dropped, edit, varied, verdicts};
use crate::campaign::{Campaign, DuelName, Event, HostTally, Record, RoundPhase, Step, StopReason};
use crate::charter::EXTERNAL;
use crate::measurement::{Conditions, Gate, Pause, PauseReason};
use crate::policy::{FirstVerdict, Preset, ProfileWhen};
use crate::profile::{Profile, ProfileDepth};
use crate::testing::policy;
use crate::testing::script::{
    CampaignScript, ScriptedAnswer, ScriptedAttempt, build_failed, fold, play, play_until, script,
    wrong_result,
};
use crate::verdict::{DropReason, Verdict};
use karve_numerics::case::CaseSet;

const QUICK: CaseSet = CaseSet::Quick;
const FULL: CaseSet = CaseSet::Full;

/// What the rounds of a log did, in order, one word per step; blocks of one duel are one word.
fn words(log: &[Record]) -> Vec<String> {
    let mut words: Vec<String> = log
        .iter()
        .map(|record| match &record.event {
            Event::Gated { set, .. } => format!("gate {set:?}"),
            Event::BlockMeasured { duel: DuelName::Round { set, .. }, .. } => {
                format!("measure {set:?}")
            }
            Event::BlockMeasured { .. } => "final".to_owned(),
            other => other.name().to_owned(),
        })
        .collect();
    words.dedup();
    words
}

/// The sets on which a script of one round is measured, and whether it is kept.
fn check_sets(script: &CampaignScript, want: &[CaseSet], kept: bool) {
    let (campaign, log) = play(script);
    let measured: Vec<String> =
        words(&log).into_iter().filter(|word| word.starts_with("measure")).collect();
    let want: Vec<String> = want.iter().map(|set| format!("measure {set:?}")).collect();
    assert_eq!(measured, want);
    assert_eq!(campaign.rounds()[0].verdict.keeps(), kept);
}

/// One round under a preset, the first case named quick.
fn with_quick(preset: Preset, speed: f64) -> CampaignScript {
    let mut script = script(&[speed]);
    script.charter.policy = policy(preset);
    script.charter.cases[0].set = QUICK;
    script
}

#[test]
fn blocks_on_a_busy_host_are_counted_and_waits_added() {
    let (_, mut log) = play(&with_quick(Preset::Strict, 1.3));
    let mut blocks = 0;
    for record in &mut log {
        if let Event::BlockMeasured { block, .. } = &mut record.event {
            blocks += 1;
            let pause = Pause { why: PauseReason::Pressure, waited_ms: 100 };
            let pressure = Some(if blocks <= 3 { 50.1 } else { 50.0 });
            let pauses = if blocks == 2 { vec![pause] } else { Vec::new() };
            block.conditions =
                Some(Box::new(Conditions { pressure, pauses, ..Conditions::default() }));
        }
    }
    let campaign = fold(&log);
    assert_eq!(campaign.host(), HostTally { waited_ms: 100, busy_blocks: 3, blocks });
    let round = campaign.rounds()[0].host;
    assert_eq!((round.waited_ms, round.busy_blocks), (100, 3));
    assert!(round.blocks < blocks, "the final duel has its own");
}

#[test]
fn a_round_goes_from_proposal_to_lesson_in_order() {
    let (_, log) = play(&with_quick(Preset::Strict, 1.3));
    let want = [
        "target_defined",
        "prepared",
        "mutation_checked",
        "tips_read",
        "baseline_measured",
        "proposed",
        "implemented",
        "gate Quick",
        "measure Quick",
        "gate Full",
        "measure Full",
        "gate Full",
        "settled",
        "learned",
        "proposal_refused",
        "final",
        "finished",
    ];
    assert_eq!(words(&log), want);
}

#[test]
fn the_strict_preset_shows_a_gain_on_the_quick_set_and_then_on_the_full_set() {
    check_sets(&with_quick(Preset::Strict, 1.3), &[QUICK, FULL], true);
    check_sets(&with_quick(Preset::Strict, 0.9), &[QUICK], false);
    let mut overfit = with_quick(Preset::Strict, 1.3);
    edit(&mut overfit, 1).speed = vec![1.3, 0.9];
    check_sets(&overfit, &[QUICK, FULL], false);
}

#[test]
fn a_promising_quick_duel_needs_fewer_blocks_than_a_keep() {
    let (campaign, _) = play(&with_quick(Preset::Strict, 1.3));
    let round = &campaign.rounds()[0];
    assert_eq!(round.quick.as_ref().unwrap().blocks, 8);
    assert_eq!(round.comparison.as_ref().unwrap().blocks, 15);
    let (campaign, _) = play(&with_quick(Preset::Primus, 1.3));
    assert_eq!(campaign.rounds()[0].quick.as_ref().unwrap().blocks, 15);
}

#[test]
fn the_primus_preset_believes_the_quick_set_from_five_percent_on() {
    check_sets(&with_quick(Preset::Primus, 1.08), &[QUICK], true);
    check_sets(&with_quick(Preset::Primus, 1.03), &[QUICK, FULL], true);
    check_sets(&with_quick(Preset::Primus, 0.99), &[QUICK], false);
}

#[test]
fn what_is_timed_on_the_quick_set_alone_is_still_tested_on_every_case() {
    let (_, log) = play(&with_quick(Preset::Primus, 1.08));
    let words = words(&log);
    let gated = words.iter().position(|word| word == "gate Full").unwrap();
    assert_eq!(words[gated - 1], "measure Quick");
    assert_eq!(words[gated + 1], "settled");
}

#[test]
fn the_primus_preset_wants_the_full_set_for_a_high_risk() {
    let mut risky = with_quick(Preset::Primus, 1.3);
    edit(&mut risky, 1).hypothesis.high_risk = true;
    check_sets(&risky, &[QUICK, FULL], true);
    let (campaign, _) = play(&risky);
    assert_eq!(campaign.rounds()[0].quick.as_ref().unwrap().blocks, 8);
    assert_eq!(campaign.rounds()[0].comparison.as_ref().unwrap().blocks, 15);
}

#[test]
fn up_to_five_cases_without_a_quick_one_are_all_measured_at_once() {
    let mut script = script(&[1.3]);
    check_sets(&script, &[FULL], true);
    let (campaign, _) = play(&script);
    assert_eq!(campaign.cases_of(QUICK), vec![0, 1]);
    // Naming every visible case quick is the same as naming none.
    script.charter.cases[0].set = QUICK;
    script.charter.cases[1].set = QUICK;
    check_sets(&script, &[FULL], true);
}

#[test]
fn of_more_than_five_cases_representative_ones_come_first() {
    let mut script = script(&[1.3]);
    let pattern = script.charter.cases[0].clone();
    for number in 0..6 {
        let mut case = pattern.clone();
        case.name = format!("more{number}");
        script.charter.cases.push(case);
    }
    check_sets(&script, &[QUICK, FULL], true);
    let (campaign, _) = play(&script);
    let quick = campaign.cases_of(QUICK);
    assert_eq!(quick.len(), 5);
    // The smallest, the middle and the largest are among them, the hidden one is not.
    assert!([0, 4, 8].iter().all(|case| quick.contains(case)), "{quick:?}");
    assert!(!quick.contains(&2));
}

/// The verdict of the first round, and its repair attempts.
fn check_first(script: &CampaignScript, want: &Verdict, retries: u32) {
    let (campaign, _) = play(script);
    let round = &campaign.rounds()[0];
    assert_eq!((&round.verdict, round.retries), (want, retries));
}

fn gate_drop(gate: Gate) -> Verdict {
    dropped(DropReason::Gate { gate })
}

#[test]
fn a_failure_is_repaired_inside_the_round() {
    let mut script = script(&[1.3]);
    edit(&mut script, 1).attempts = vec![
        ScriptedAttempt::fails(&build_failed()),
        ScriptedAttempt::fails(&wrong_result("small")),
        ScriptedAttempt::passes(),
    ];
    check_first(&script, &Verdict::Keep { notes: Vec::new() }, 2);
    let (campaign, log) = play(&script);
    assert_eq!(campaign.rounds().len(), 1);
    let n_gates = log.iter().filter(|r| r.event.name() == "gated").count();
    // Two failures, a pass, and the last check before the keep.
    assert_eq!(n_gates, 4);
}

#[test]
fn repair_attempts_are_bounded_and_then_the_gate_decides() {
    let mut script = script(&[1.3]);
    edit(&mut script, 1).attempts = vec![ScriptedAttempt::fails(&build_failed())];
    let retries = script.charter.policy.debug_retries;
    check_first(&script, &gate_drop(build_failed()), retries);
    script.charter.policy.debug_retries = 0;
    check_first(&script, &gate_drop(build_failed()), 0);
}

#[test]
fn an_agent_that_cannot_repair_leaves_the_verdict_to_the_gate() {
    let mut script = script(&[1.3]);
    edit(&mut script, 1).attempts =
        vec![ScriptedAttempt::fails(&wrong_result("small")), ScriptedAttempt::absent()];
    check_first(&script, &gate_drop(wrong_result("small")), 0);
    edit(&mut script, 1).attempts = vec![ScriptedAttempt::absent()];
    let why = "gave up".into();
    check_first(&script, &dropped(DropReason::NoCandidate { why }), 0);
}

#[test]
fn what_a_limit_or_a_lie_ended_is_not_repaired() {
    for gate in
        [Gate::TimedOut { what: "test".into() }, Gate::Dishonest { why: "it sleeps".into() }]
    {
        let mut script = script(&[1.3]);
        edit(&mut script, 1).attempts = vec![ScriptedAttempt::fails(&gate)];
        check_first(&script, &gate_drop(gate), 0);
    }
}

#[test]
fn source_that_failed_is_not_tested_again_in_the_hope_of_better_luck() {
    let tree = |name: &str, attempt: ScriptedAttempt| ScriptedAttempt {
        tree: Some(name.into()),
        ..attempt
    };
    let mut script = script(&[1.3]);
    edit(&mut script, 1).attempts = vec![
        tree("racy", ScriptedAttempt::fails(&wrong_result("small"))),
        tree("other", ScriptedAttempt::fails(&wrong_result("large"))),
        tree("racy", ScriptedAttempt::passes()),
    ];
    check_first(&script, &gate_drop(wrong_result("large")), 2);
    // Changed read-only files are not in the tree, so the tree may stay the same.
    let outside = Gate::OutOfScope {
        paths: vec!["test.c".into()],
        wrong_framework: Vec::new(),
        unstated: Vec::new(),
    };
    edit(&mut script, 1).attempts = vec![
        tree("same", ScriptedAttempt::fails(&outside)),
        tree("same", ScriptedAttempt::passes()),
    ];
    check_first(&script, &Verdict::Keep { notes: Vec::new() }, 1);
}

#[test]
fn results_of_an_earlier_candidate_are_not_reported_for_the_repaired_one() {
    let mut script = with_quick(Preset::Strict, 1.3);
    edit(&mut script, 1).attempts = vec![
        ScriptedAttempt { full: wrong_result("large"), ..ScriptedAttempt::passes() },
        ScriptedAttempt::fails(&build_failed()),
    ];
    let (campaign, _) = play(&script);
    let round = &campaign.rounds()[0];
    assert_eq!(round.verdict, gate_drop(build_failed()));
    assert_eq!(round.ratio(), None);
}

#[test]
fn a_block_that_cannot_be_read_drops_the_candidate() {
    let mut script = script(&[1.3]);
    edit(&mut script, 1).fails_at = Some(4);
    let what = "bench".into();
    check_first(&script, &gate_drop(Gate::TimedOut { what }), 0);
}

#[test]
fn a_duplicate_is_refused_with_the_round_that_tried_it() {
    let mut script = script(&[0.8, 0.8]);
    let twin = script.rounds[0][0].clone();
    script.rounds[1].insert(0, twin);
    let (campaign, log) = play(&script);
    assert_eq!(campaign.rounds().len(), 2);
    let refused = &campaign.rounds()[1].refused;
    assert_eq!(refused, &["\"Try change 1\" is a duplicate of round 1"]);
    let second = |step: &Step| matches!(step, Step::Propose { round: 2, try_no: 2, .. });
    let (campaign, _) = play_until(&script, &second);
    let Some(Step::Propose { brief, .. }) = campaign.next_step() else {
        panic!("{:?}", log.last());
    };
    assert_eq!(&brief.errors, refused);
}

#[test]
fn a_round_without_a_usable_proposal_is_dropped_after_its_tries() {
    let mut script = script(&[0.8]);
    let twin = script.rounds[0][0].clone();
    script.rounds.push(vec![twin.clone(), ScriptedAnswer::Unreadable, twin]);
    let (campaign, log) = play(&script);
    let why = "\"Try change 1\" is a duplicate of round 1".to_owned();
    assert_eq!(verdicts(&campaign)[1], dropped(DropReason::NoCandidate { why }));
    assert_eq!(campaign.rounds()[1].refused.len(), 3);
    let asked = |record: &&Record| matches!(record.event, Event::Proposed { round: 2, .. });
    assert_eq!(log.iter().filter(asked).count(), 2);
}

#[test]
fn an_idea_that_was_kept_may_be_repeated_on_the_new_parent() {
    let mut script = script(&[1.3, 1.6]);
    edit(&mut script, 2).hypothesis.title = "Try change 1".into();
    let (campaign, _) = play(&script);
    assert!(verdicts(&campaign).iter().all(Verdict::keeps));
}

#[test]
fn knob_settings_may_be_tried_again_only_when_the_kernel_around_them_changed() {
    let mut script = script(&[0.8, 1.3, 1.5]);
    for round in [1, 3] {
        let hypothesis = &mut edit(&mut script, round).hypothesis;
        hypothesis.config.insert("TILE".into(), "8".into());
    }
    let (campaign, _) = play(&script);
    assert_eq!(campaign.rounds()[2].refused, Vec::<String>::new());
    edit(&mut script, 2).speed = vec![0.9];
    let (campaign, _) =
        play_until(&script, &|step| matches!(step, Step::Propose { round: 3, try_no: 2, .. }));
    assert_eq!(campaign.current_round().unwrap().refused.len(), 1);
}

#[test]
fn the_same_source_is_not_judged_twice() {
    let mut script = script(&[1.3, 1.3, 1.0, 1.3]);
    let tree = |script: &mut CampaignScript, round, tree: &str| {
        edit(script, round).attempts[0].tree = Some(tree.into());
    };
    tree(&mut script, 2, "t-r1.0.0");
    tree(&mut script, 3, "t0");
    edit(&mut script, 4).attempts[0].same_artifact = true;
    let (campaign, _) = play(&script);
    let want = [
        Verdict::Keep { notes: Vec::new() },
        dropped(DropReason::NoChange),
        // The base itself was never a candidate, so it is measured, and it is slower.
        dropped(DropReason::Regressed { cases: vec![0, 1] }),
        dropped(DropReason::SameArtifact),
    ];
    assert_eq!(verdicts(&campaign), want);
    // What round 3 tried is known afterwards, whoever is the incumbent.
    tree(&mut script, 4, "t0");
    let (campaign, _) = play(&script);
    let tried = DropReason::AlreadyTried { round: 3 };
    assert_eq!(verdicts(&campaign)[3], dropped(tried));
}

/// Round 1 also changed a read-only file, and round 2 submits the same source without that.
fn once_outside() -> CampaignScript {
    let outside = Gate::OutOfScope {
        paths: vec!["bench.c".into()],
        wrong_framework: Vec::new(),
        unstated: Vec::new(),
    };
    let mut script = script(&[1.3, 1.3]);
    script.charter.policy.debug_retries = 0;
    edit(&mut script, 1).attempts = vec![ScriptedAttempt::fails(&outside)];
    edit(&mut script, 1).attempts[0].tree = Some("t-good".into());
    edit(&mut script, 2).attempts[0].tree = Some("t-good".into());
    script
}

#[test]
fn source_that_was_never_built_may_come_back() {
    let mut script = once_outside();
    let (campaign, _) = play(&script);
    assert_eq!(verdicts(&campaign)[1], Verdict::Keep { notes: Vec::new() });
    // The gate's result for the source itself stands.
    edit(&mut script, 1).attempts[0].full = wrong_result("small");
    let (campaign, _) = play(&script);
    let tried = DropReason::AlreadyTried { round: 1 };
    assert_eq!(verdicts(&campaign)[1], dropped(tried));
}

#[test]
fn a_log_of_the_time_when_it_might_not_come_back_still_loads() {
    let script = once_outside();
    let gate = |step: &Step| matches!(step, Step::Gate { round: 2, .. });
    let (mut campaign, log) = play_until(&script, &gate);
    let settled = |verdict: Verdict| Event::Settled { round: 2, verdict, commit: None };
    let seq = log.len();
    for other in [
        Verdict::Keep { notes: Vec::new() },
        dropped(DropReason::NotFaster),
        dropped(DropReason::AlreadyTried { round: 2 }),
    ] {
        let record = script.record(seq, settled(other));
        assert!(campaign.clone().record(&record).is_err());
    }
    let tried = dropped(DropReason::AlreadyTried { round: 1 });
    campaign.record(&script.record(seq, settled(tried))).unwrap();
    assert!(matches!(campaign.next_step(), Some(Step::Learn { .. })));
}

#[test]
fn a_gated_hypothesis_is_kept_behind_its_predicate() {
    let mut script = script(&[1.3]);
    edit(&mut script, 1).hypothesis.gate = Some("M >= 64".into());
    let want = Verdict::KeepGated { predicate: "M >= 64".into(), notes: Vec::new() };
    check_first(&script, &want, 0);
    let (campaign, _) = play(&script);
    assert_eq!(campaign.lineage().kept().len(), 1);
    assert!(campaign.final_comparison().is_some());
}

#[test]
fn three_rounds_without_a_candidate_end_the_campaign() {
    let mut script = script(&[0.8]);
    let silent =
        vec![ScriptedAnswer::AgentFails, ScriptedAnswer::AgentFails, ScriptedAnswer::Unreadable];
    script.rounds.extend([silent.clone(), silent.clone(), silent.clone(), silent]);
    script.charter.limits.rounds = 20;
    let (campaign, _) = play(&script);
    assert_eq!(campaign.rounds().len(), 4);
    assert_eq!(campaign.stop_reason(), Some(&StopReason::AgentUnusable { rounds: 3 }));
}

#[test]
fn a_round_past_its_time_is_dropped_unless_it_is_decided() {
    let mut script = script(&[1.3]);
    script.charter.policy.round_minutes = Some(1);
    // Four blocks are read when the minute is over.
    script.spent_ms = 10_000;
    check_first(&script, &dropped(DropReason::RoundTimeUp), 0);
    // The verdict of the nineteenth event comes before the time is up.
    script.spent_ms = 60_000 / 19;
    check_first(&script, &Verdict::Keep { notes: Vec::new() }, 0);
}

#[test]
fn a_duel_whose_time_is_up_is_undecided_even_after_the_warm_up_alone() {
    let mut script = script(&[1.3]);
    script.charter.limits.duel_s = 0;
    check_first(&script, &Verdict::Undecided { blocks: 0 }, 0);
    let (campaign, _) = play(&script);
    // Nothing was measured, so there is no ratio and no NaN.
    assert_eq!(campaign.rounds()[0].ratio(), None);
    assert_eq!(campaign.view(), campaign.view());
    script.charter.limits.duel_s = 1;
    check_first(&script, &Verdict::Undecided { blocks: 9 }, 0);
}

#[test]
fn the_varied_script_is_what_it_claims_to_be() {
    let (campaign, log) = play(&varied());
    let kept: Vec<bool> = verdicts(&campaign).iter().map(Verdict::keeps).collect();
    assert_eq!(kept, [true, false, true, false, false, true]);
    assert_eq!(campaign.rounds()[1].retries, 2);
    assert!(log.len() < 400, "{}", log.len());
    assert!(campaign.view().headline.is_some());
}

#[test]
fn the_base_meets_the_incumbent_on_all_cases_at_the_end() {
    let mut script = script(&[1.3, 1.6, 0.9]);
    let last = |step: &Step| matches!(step, Step::Measure(step) if step.duel == DuelName::Final);
    let (campaign, log) = play_until(&script, &last);
    let Some(Step::Measure(step)) = campaign.next_step() else {
        panic!("{:?}", log.last());
    };
    assert_eq!((step.parent.as_str(), step.candidate.as_str()), ("base", "r2.0.0"));
    assert_eq!((step.cases, step.block), (vec![0, 1, 2], 0));
    assert_eq!(campaign.view().headline, None);
    let (campaign, log) = play(&script);
    assert_eq!(log.last().unwrap().event.name(), "finished");
    let headline = campaign.view().headline.unwrap();
    assert!((headline.ratio - 1.6).abs() < 0.01, "{headline:?}");
    let comparison = campaign.final_comparison().unwrap();
    assert_eq!((comparison.blocks, comparison.cases.len()), (10, 3));
    assert!(campaign.view().inflation_percent.unwrap().abs() < 1.0);
    // Without a bound there is still a headline.
    script.charter.limits.final_blocks = 0;
    let (campaign, _) = play(&script);
    assert_eq!(campaign.final_comparison().unwrap().blocks, 8);
}

#[test]
fn a_final_duel_stops_at_its_time_but_not_before_the_fewest_blocks() {
    let mut script = script(&[1.3]);
    script.charter.limits.final_blocks = 100;
    script.charter.limits.duel_s = 2;
    let (campaign, _) = play(&script);
    assert_eq!(campaign.final_comparison().unwrap().blocks, 19);
    script.spent_ms = 120;
    let (campaign, _) = play(&script);
    assert_eq!(campaign.final_comparison().unwrap().blocks, 16);
}

#[test]
fn nothing_is_measured_at_the_end_when_nothing_was_kept() {
    let (campaign, log) = play(&script(&[0.9, 1.0]));
    assert!(!words(&log).contains(&"final".to_owned()));
    assert!(campaign.is_finished() && campaign.final_comparison().is_none());
    assert_eq!(campaign.view().headline, None);
    assert_eq!(campaign.incumbent(), "base");
}

#[test]
fn a_final_duel_that_fails_ends_the_campaign_without_a_headline() {
    let script = script(&[1.3]);
    let last = |step: &Step| matches!(step, Step::Measure(step) if step.duel == DuelName::Final);
    let (mut campaign, log) = play_until(&script, &last);
    let event = Event::BlockFailed { duel: DuelName::Final, gate: build_failed(), raw: None };
    campaign.record(&script.record(log.len(), event)).unwrap();
    assert!(matches!(campaign.next_step(), Some(Step::Finish { .. })));
    assert_eq!(campaign.final_comparison(), None);
}

/// The stage of the round under way.
fn stage(campaign: &Campaign) -> &'static str {
    campaign.current_round().map_or("none", |round| RoundPhase::name(&round.phase))
}

#[test]
fn the_parent_is_profiled_when_it_changed_or_the_ladder_asks() {
    let mut script = script(&[1.3, 0.9, 0.9, 0.9]);
    script.charter.commands.profile = Some("./profile".into());
    let profiled = |script: &CampaignScript| -> Vec<(u32, &'static str)> {
        let (_, log) = play(script);
        let depth = |record: &Record| match &record.event {
            Event::Profiled { round, profile } => Some((*round, profile.depth.name())),
            _ => None,
        };
        log.iter().filter_map(depth).collect()
    };
    let mut want = vec![(1, "light"), (2, "light"), (4, "full"), (5, "code")];
    script.charter.policy.first_verdict = FirstVerdict::AfterChecks;
    assert_eq!(profiled(&script), want);
    script.charter.policy.first_verdict = FirstVerdict::Soon;
    let first = want.remove(0);
    assert_eq!(profiled(&script), want);
    // An external agent can ask for a profile; what older logs say stays as it was.
    script.charter.agent = EXTERNAL.to_owned();
    script.charter.policy.first_verdict = FirstVerdict::AtOnce;
    assert_eq!(profiled(&script), want);
    script.charter.policy.first_verdict = FirstVerdict::Soon;
    want.insert(0, first);
    assert_eq!(profiled(&script), want);
    script.charter.policy = policy(Preset::HyperMla);
    assert_eq!(profiled(&script).len(), 5);
    script.charter.policy = policy(Preset::Tilegym);
    // Its class is known from the work; a round without a gain asks the profiler.
    assert_eq!(profiled(&script), [(3, "full")]);
    let (campaign, _) = play_until(&script, &|step| matches!(step, Step::Propose { .. }));
    assert_eq!(stage(&campaign), "propose");
}

#[test]
fn a_kernel_is_profiled_once_at_each_depth_unless_an_older_log_says_otherwise() {
    let mut script = script(&[1.3, 0.9, 0.9, 0.9, 0.9, 0.9]);
    script.charter.commands.profile = Some("./profile".into());
    script.charter.policy.first_verdict = FirstVerdict::AfterChecks;
    script.charter.limits.rounds = 6;
    let mut check = |profiles_again: bool, want: &[u32]| {
        script.charter.policy.profile_again = profiles_again;
        let (campaign, log) = play(&script);
        let round = |record: &Record| match &record.event {
            Event::Profiled { round, .. } => Some(*round),
            _ => None,
        };
        let seen: Vec<u32> = log.iter().filter_map(round).collect();
        assert_eq!((campaign.rounds().len(), &seen[..]), (6, want));
    };
    check(false, &[1, 2, 4, 5]);
    check(true, &[1, 2, 4, 5, 6]);
}

#[test]
fn a_look_at_the_code_needs_no_profilers_after_a_full_profile_of_the_same_kernel() {
    let script = script(&[0.9]);
    let (mut campaign, _) = play(&script);
    let check = |campaign: &Campaign, commit: &str, depth, want: bool| {
        assert_eq!(campaign.profile_but_code(commit, depth).is_some(), want, "{commit} {depth:?}");
    };
    let full = script.profile("seen", ProfileDepth::Full);
    campaign.set_profile(full.clone());
    check(&campaign, "seen", ProfileDepth::Code, true);
    check(&campaign, "seen", ProfileDepth::Full, false);
    check(&campaign, "another", ProfileDepth::Code, false);
    campaign.set_profile(Profile { skipped: Some("no profiler".into()), ..full.clone() });
    check(&campaign, "seen", ProfileDepth::Code, false);
    campaign.set_profile(Profile { depth: ProfileDepth::Light, ..full });
    check(&campaign, "seen", ProfileDepth::Code, false);
}

#[test]
fn a_kept_candidate_goes_on_under_its_final_commit() {
    let script = script(&[1.3, 1.6]);
    let settles = |step: &Step| matches!(step, Step::Settle { round: 1, .. });
    let (mut campaign, log) = play_until(&script, &settles);
    let event = Event::Settled {
        round: 1,
        verdict: Verdict::Keep { notes: Vec::new() },
        commit: Some("final".into()),
    };
    campaign.record(&script.record(log.len(), event)).unwrap();
    let learns = script.answer(&campaign.next_step().unwrap());
    let record = script.record(log.len() + 1, learns);
    campaign.record(&record).unwrap();
    assert_eq!(campaign.incumbent(), "final");
    assert_eq!(campaign.incumbent_tree(), "t-r1.0.0");
}

#[test]
fn what_is_found_wrong_after_the_duel_is_not_kept() {
    let script = script(&[1.3]);
    let second = |step: &Step| matches!(step, Step::Settle { .. });
    let (_, log) = play_until(&script, &second);
    let mut campaign = Campaign::new();
    for record in &log[..log.len() - 1] {
        campaign.record(record).unwrap();
    }
    let mut last = log.last().unwrap().clone();
    let Event::Gated { gate, .. } = &mut last.event else {
        panic!("{last:?}");
    };
    *gate = wrong_result("small");
    campaign.record(&last).unwrap();
    assert!(!matches!(campaign.next_step(), Some(Step::Settle { verdict, .. }) if verdict.keeps()));
    assert!(campaign.current_round().unwrap().comparison.is_some());
}

/// A campaign of some rounds with a profile command, and the names of its last two events.
fn last_two(speeds: &[f64], when: ProfileWhen) -> (Vec<Record>, [&'static str; 2]) {
    let mut script = script(speeds);
    script.charter.commands.profile = Some("./profile".into());
    script.charter.policy.profile_when = when;
    script.charter.policy.first_verdict = FirstVerdict::AfterChecks;
    script.charter.limits.rounds = u32::try_from(speeds.len()).unwrap();
    let (campaign, log) = play(&script);
    let is_seen = campaign.profile().map(|profile| profile.commit.clone());
    let names: Vec<&str> = log.iter().map(|record| record.event.name()).collect();
    if when != ProfileWhen::OnEscalation {
        assert_eq!(is_seen.as_deref(), Some(campaign.incumbent()));
    }
    let last = [names[names.len() - 2], names[names.len() - 1]];
    (log, last)
}

#[test]
fn the_final_kernel_is_looked_at_before_the_end_unless_somebody_has() {
    let check = |speeds: &[f64], when, want| {
        assert_eq!(last_two(speeds, when).1[0], want, "{speeds:?} {when:?}");
    };
    check(&[1.3], ProfileWhen::OnChange, "final_profiled");
    check(&[0.8, 1.3], ProfileWhen::EveryRound, "final_profiled");
    // The round after the keep has profiled its parent.
    check(&[1.3, 0.8], ProfileWhen::OnChange, "block_measured");
    check(&[0.8], ProfileWhen::OnChange, "learned");
    check(&[1.3], ProfileWhen::OnEscalation, "block_measured");
}

#[test]
fn a_log_that_ends_without_the_last_look_is_read_as_before() {
    let (mut log, _) = last_two(&[1.3], ProfileWhen::OnChange);
    let seen = log.remove(log.len() - 2);
    let Event::FinalProfiled { profile } = &seen.event else {
        panic!("{:?}", seen.event);
    };
    log.last_mut().unwrap().seq -= 1;
    let campaign = fold(&log);
    assert!(campaign.is_finished());
    assert_ne!(campaign.profile(), Some(profile));
    // It belongs to the final kernel and no other.
    let mut campaign = fold(&log[..log.len() - 1]);
    let mut other = seen.clone();
    other.event =
        Event::FinalProfiled { profile: Profile { commit: "another".into(), ..profile.clone() } };
    assert!(campaign.record(&other).is_err());
    campaign.record(&seen).unwrap();
    assert!(campaign.record(&seen).is_err());
}

#[test]
fn an_idea_that_cannot_transfer_is_refused_before_it_is_implemented() {
    let mut script = script(&[1.3]);
    let mut cache = crate::testing::script::idea(9, &[1.9]);
    cache.hypothesis.bucket = Some(crate::integrity::Bucket::W2);
    script.rounds[0].insert(0, crate::testing::script::ScriptedAnswer::Idea(cache));
    let (campaign, _) = play(&script);
    let round = &campaign.rounds()[0];
    assert!(round.refused[0].starts_with("W2 (cache on inputs"), "{:?}", round.refused);
    assert!(round.verdict.keeps());
}
