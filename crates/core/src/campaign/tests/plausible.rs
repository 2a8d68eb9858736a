//! What is too good to be true is dropped or noted, and what is merely good is not.

use super::*;
use crate::campaign::plausible::is_unproven;
use crate::campaign::{CountingReason, KeepEvidence};
use crate::integrity::{
    AuditFinding, CallCost, CaseWork, CountedRun, MutantCheck, Severity, WorkCounts,
};
use crate::verdict::{DropReason, KeepNote};
use karve_numerics::contract::{
    Arg, ArgKind, CallWork, Contract, Kernel, Precision, PythonRuntime, Reference,
};
use karve_numerics::roof::{ByteRate, Roof};
use karve_numerics::tensor::Dtype;

/// The ideas of an agent that are this much faster.
fn by_agent(speeds: &[f64]) -> CampaignScript {
    let mut script = script(speeds);
    script.charter.agent = "claude".into();
    script
}

/// One idea that is this much faster. The larger case takes 20 ms at first.
fn scripted(speed: f64, flops: f64) -> CampaignScript {
    let mut script = by_agent(&[speed]);
    script.roof = Some(Roof { flops: Some(flops), rates: Vec::new(), ..Roof::default() });
    script
}

/// The same under a contract.
fn under_contract(speed: f64, flops: f64) -> CampaignScript {
    let mut script = scripted(speed, flops);
    let output = ArgKind::Output { shape: vec!["M".into(), "M".into()] };
    script.charter.contract = Some(Box::new(Contract {
        setup: None,
        timing: Default::default(),
        undeclared: Vec::new(),
        kernel: Kernel::Library { path: "kernel.so".into(), entry: "f".into() },
        args: vec![Arg { name: "c".into(), dtype: Dtype::F32, kind: output }],
        reference: Reference::Library {
            path: "reference.so".into(),
            entry: "g".into(),
            precision: Precision::Wide,
        },
        accuracy: Default::default(),
        reduction: None,
        deterministic: true,
        threads: 1,
        hostile: Vec::new(),
        mixture: Vec::new(),
        shapes: karve_numerics::contract::CheckedShapes::default(),
        modules: PythonRuntime::default(),
        work: CallWork { flops: Some("2*M*M*M".into()), bytes: None },
    }));
    script
}

fn verdict_of(script: &CampaignScript) -> Verdict {
    let (campaign, log) = play(script);
    // What was judged once is judged the same when the log is read again.
    assert_eq!(fold(&log).rounds(), campaign.rounds());
    campaign.rounds()[0].verdict.clone()
}

fn is_doubtful(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Keep { notes } => {
            notes.iter().any(|note| matches!(note, KeepNote::NearImpossible { .. }))
        }
        _ => false,
    }
}

/// 33.6 million operations at 2 GFLOPS take 16.8 ms.
const FLOPS: f64 = 2e9;

#[test]
fn a_gain_within_the_roofline_is_kept_without_a_word() {
    for script in [scripted(1.3, FLOPS), under_contract(1.3, FLOPS)] {
        let verdict = verdict_of(&script);
        assert!(verdict.keeps() && !is_doubtful(&verdict), "{verdict:?}");
    }
}

#[test]
fn a_gain_a_little_beyond_the_roofline_is_noted_under_a_contract_and_unproven_without() {
    assert!(is_doubtful(&verdict_of(&under_contract(1.6, FLOPS))));
    let verdict = verdict_of(&scripted(1.6, FLOPS));
    assert!(is_unproven(&verdict), "{verdict:?}");
}

#[test]
fn more_than_ten_times_in_one_round_needs_a_proof_under_every_preset() {
    for preset in Preset::ALL {
        let mut script = by_agent(&[12.0]);
        script.charter.policy = preset.policy();
        let verdict = verdict_of(&script);
        assert!(!verdict.keeps(), "{preset:?}: {verdict:?}");
    }
    let verdict = verdict_of(&by_agent(&[12.0]));
    assert!(is_unproven(&verdict), "{verdict:?}");
    let why = verdict.describe(&|case| case.to_string());
    assert!(why.contains("above 10x") && why.contains("karve answer \"allow 1\""), "{why}");
    assert!(verdict_of(&by_agent(&[8.0])).keeps());
    // Every timed call of a contract has fresh inputs, and its outputs are verified.
    assert!(verdict_of(&under_contract(12.0, 1e15)).keeps());
    // karve's own strategy writes no caches.
    assert!(verdict_of(&script(&[12.0])).keeps());
}

#[test]
fn a_reported_gain_that_the_own_clock_does_not_see_needs_a_proof() {
    let mut lies = by_agent(&[3.0]);
    assert!(verdict_of(&lies).keeps());
    lies.clock_lies = true;
    let verdict = verdict_of(&lies);
    assert!(is_unproven(&verdict), "{verdict:?}");
    let why = verdict.describe(&|case| case.to_string());
    assert!(why.contains("by karve's own clock the command takes"), "{why}");
    // Not even for the changes of karve's own strategy.
    let mut own = script(&[3.0]);
    own.clock_lies = true;
    assert!(is_unproven(&verdict_of(&own)));
    // A metric that is karve's own clock claims nothing else.
    lies.charter.metric.name = "wall_time".into();
    assert!(verdict_of(&lies).keeps());
}

/// A run with equal calls, and the first one dearer by this much.
fn counted(call: u64, first: u64) -> CountedRun {
    let cost = |instructions| CallCost { instructions, accesses: instructions };
    let mut calls = vec![cost(call); 20];
    calls[0] = cost(call + first);
    CountedRun { calls, instructions: 1_000 + 20 * call + first }
}

#[test]
fn counted_work_proves_a_large_gain_and_refuses_a_cache() {
    let mut script = by_agent(&[12.0]);
    let mut judged = |new: &CountedRun| {
        let cases = vec![CaseWork::of(1, &counted(80_000, 0), new)];
        script.work = Some(WorkCounts::Counted { cases });
        verdict_of(&script)
    };
    assert!(judged(&counted(8_000, 100)).keeps());
    let verdict = judged(&counted(8_000, 72_000));
    assert!(is_unproven(&verdict), "{verdict:?}");
    let why = verdict.describe(&|case| case.to_string());
    assert!(why.contains("counting its work does not show it either: equal calls"), "{why}");
    // A gain beyond the roofline stays impossible, whatever was counted.
    let mut beyond = scripted(12.0, FLOPS);
    let cases = vec![CaseWork::of(1, &counted(80_000, 0), &counted(8_000, 0))];
    beyond.work = Some(WorkCounts::Counted { cases });
    assert!(is_unproven(&verdict_of(&beyond)));
}

#[test]
fn a_buffer_that_holds_results_by_its_work_counts_is_state() {
    let mut script = by_agent(&[3.0]);
    script.findings = vec![AuditFinding {
        rule: "static-buffer".into(),
        severity: Severity::Advice,
        bucket: None,
        file: "kernel.c".into(),
        line: 2,
        what: "w outlives a call and is written".into(),
    }];
    assert!(verdict_of(&script).keeps());
    let mut judged = |new: &CountedRun| {
        let cases = vec![CaseWork::of(1, &counted(80_000, 0), new)];
        script.work = Some(WorkCounts::Counted { cases });
        verdict_of(&script)
    };
    assert!(judged(&counted(30_000, 20_000)).keeps());
    let verdict = judged(&counted(30_000, 50_000));
    assert!(is_unproven(&verdict), "{verdict:?}");
    let why = verdict.describe(&|case| case.to_string());
    assert!(why.contains("static-buffer") && why.contains("of equal calls, one has"), "{why}");
    // Without counts there is no more than a mention.
    script.work = Some(WorkCounts::NotCounted { why: "install it".into() });
    assert!(verdict_of(&script).keeps());
}

#[test]
fn a_buffer_where_work_is_not_counted_is_not_kept_whatever_else_changes() {
    let mut script = by_agent(&[2.0]);
    let finding = |file: &str| AuditFinding {
        rule: "static-buffer".into(),
        severity: Severity::Advice,
        bucket: None,
        file: file.into(),
        line: 3,
        what: "_X outlives a call and is written".into(),
    };
    script.findings = vec![finding("kernel.c"), finding("kernel.py")];
    let (campaign, _) = play(&script);
    let why = campaign.round_view(&campaign.rounds()[0]).why;
    assert!(why.starts_with("not proven: state outlives a call: kernel.py:3"), "{why}");
    script.findings.truncate(1);
    assert!(verdict_of(&script).keeps());
}

#[test]
fn a_change_that_prints_or_shadows_is_not_kept_on_the_word_of_the_benchmark() {
    for rule in ["prints", "shadowing"] {
        let mut script = by_agent(&[2.0]);
        script.findings = vec![AuditFinding {
            rule: rule.into(),
            severity: Severity::Suspicious,
            bucket: None,
            file: "kernel.c".into(),
            line: 2,
            what: "printf".into(),
        }];
        let (campaign, _) = play(&script);
        let why = campaign.round_view(&campaign.rounds()[0]).why;
        assert!(why.starts_with("not proven: the benchmark's figures could be its own"), "{why}");
    }
}

#[test]
fn a_keep_says_that_a_person_should_look_at_it() {
    let mut script = by_agent(&[2.0, 0.5]);
    let finding = |severity| AuditFinding {
        rule: "fast-math".into(),
        severity,
        bucket: None,
        file: "kernel.c".into(),
        line: 2,
        what: "-ffast-math".into(),
    };
    script.findings = vec![finding(Severity::Suspicious), finding(Severity::Advice)];
    let (campaign, _) = play(&script);
    let why = |round: usize| campaign.round_view(&campaign.rounds()[round]).why;
    assert_eq!(why(0), "faster; 1 suspicious finding");
    assert!(!why(1).contains("suspicious"), "{}", why(1));
    script.findings.push(finding(Severity::Suspicious));
    let (campaign, _) = play(&script);
    assert!(campaign.round_view(&campaign.rounds()[0]).why.ends_with("2 suspicious findings"));
}

#[test]
fn a_gain_that_is_gone_with_overwritten_memory_needs_a_proof() {
    let mut script = by_agent(&[2.4]);
    // Overwriting costs both arms more than a call takes, so their ratio says little.
    for left in [2.4, 1.5, 5.0] {
        script.overwritten = Some(left);
        assert!(verdict_of(&script).keeps(), "{left}");
    }
    script.overwritten = Some(1.02);
    let verdict = verdict_of(&script);
    assert!(is_unproven(&verdict), "{verdict:?}");
    let why = verdict.describe(&|case| case.to_string());
    assert!(why.contains("2.40x depends on what freed or fresh memory holds"), "{why}");
    assert!(why.contains(", 3% of the saved time is left"), "{why}");
    // An honest kernel that allocates much does its work in every call.
    let mut judged = |new: &CountedRun| {
        let cases = vec![CaseWork::of(1, &counted(80_000, 0), new)];
        script.work = Some(WorkCounts::Counted { cases });
        verdict_of(&script)
    };
    assert!(judged(&counted(30_000, 0)).keeps());
    assert!(is_unproven(&judged(&counted(30_000, 50_000))));
}

#[test]
fn memory_is_overwritten_only_where_the_benchmark_alone_speaks_for_a_keep() {
    let due = |script: &CampaignScript, evidence: &KeepEvidence| -> Vec<bool> {
        let (_, log) = play(script);
        let mut campaign = Campaign::new();
        let mut seen = Vec::new();
        for record in &log {
            if matches!(campaign.next_step(), Some(Step::Gate { .. })) {
                seen.push(campaign.stale_memory_due(evidence));
            }
            campaign.record(record).unwrap();
        }
        seen
    };
    let none = KeepEvidence::default();
    assert_eq!(due(&by_agent(&[2.0, 3.0]), &none), [false, true, false, true]);
    assert_eq!(due(&script(&[2.0]), &none), [false, false]);
    assert_eq!(due(&under_contract(2.0, 1e15), &none), [false, false]);
    // What cannot be kept anyway is not measured.
    assert_eq!(due(&scripted(12.0, FLOPS), &none), [false, false]);
}

#[test]
fn work_is_counted_where_it_can_be_the_proof_or_show_a_cache() {
    use CountingReason::{Proof, Sample};
    // At each gate, why its step counts.
    let due = |script: &CampaignScript| -> Vec<Option<CountingReason>> {
        let (_, log) = play(script);
        let mut campaign = Campaign::new();
        let mut seen = Vec::new();
        for record in &log {
            if matches!(campaign.next_step(), Some(Step::Gate { .. })) {
                seen.push(campaign.work_due(&KeepEvidence::default()));
            }
            campaign.record(record).unwrap();
        }
        seen
    };
    // The first gate comes before the duel, the second one after it.
    assert_eq!(due(&by_agent(&[12.0])), [None, Some(Proof)]);
    assert_eq!(due(&by_agent(&[2.0])), [None, Some(Sample)]);
    assert_eq!(due(&script(&[12.0])), [None, None]);
    assert_eq!(due(&under_contract(12.0, 1e15)), [None, None]);
    assert_eq!(due(&scripted(12.0, FLOPS)), [None, None]);
}

#[test]
fn results_in_memory_of_the_caller_are_state_by_their_work_counts() {
    let mut script = by_agent(&[3.0]);
    let mut judged = |new: &CountedRun| {
        let cases = vec![CaseWork::of(1, &counted(80_000, 0), new)];
        script.work = Some(WorkCounts::Counted { cases });
        verdict_of(&script)
    };
    assert!(judged(&counted(30_000, 20_000)).keeps());
    let verdict = judged(&counted(30_000, 50_000));
    assert!(is_unproven(&verdict), "{verdict:?}");
    let why = verdict.describe(&|case| case.to_string());
    assert!(why.contains("state outlives a call: of equal calls, one has"), "{why}");
}

#[test]
fn bugs_are_planted_in_the_candidate_of_the_first_keep_and_only_there() {
    let due = |script: &CampaignScript| -> Vec<bool> {
        let (_, log) = play(script);
        let mut campaign = Campaign::new();
        let mut seen = Vec::new();
        for record in &log {
            if matches!(campaign.next_step(), Some(Step::Gate { .. })) {
                seen.push(campaign.mutants_due(&KeepEvidence::default()));
            }
            campaign.record(record).unwrap();
        }
        seen
    };
    // Each kept candidate has a gate before its duel and one after it.
    assert_eq!(due(&by_agent(&[2.0, 3.0])), [false, true, false, false]);
    // What is not kept for want of a proof is not checked either.
    assert_eq!(due(&by_agent(&[12.0, 2.0])), [false, false, false, true]);
    assert_eq!(due(&under_contract(2.0, 1e15)), [false, false]);
}

#[test]
fn a_keep_says_that_the_tests_notice_no_bug() {
    let mut script = by_agent(&[2.0]);
    for (mutants, want) in [
        (Some(MutantCheck { tested: 5, noticed: false }), true),
        (Some(MutantCheck { tested: 1, noticed: true }), false),
        // None of them could be built.
        (Some(MutantCheck { tested: 0, noticed: false }), false),
        (None, false),
    ] {
        script.mutants = mutants;
        let verdict = verdict_of(&script);
        assert!(verdict.keeps(), "{verdict:?}");
        let why = verdict.describe(&|case| case.to_string());
        assert_eq!(why.contains("the tests do not notice a broken kernel"), want, "{why}");
    }
}

#[test]
fn a_person_may_allow_what_nothing_proves_and_the_log_says_so() {
    let mut script = by_agent(&[12.0, 12.0]);
    edit(&mut script, 2).attempts[0].tree = Some("t-r1.0.0".into());
    let (campaign, log) = play(&script);
    assert!(verdicts(&campaign).iter().all(is_unproven), "{:?}", verdicts(&campaign));
    let learned = |record: &Record| matches!(record.event, Event::Learned { .. });
    let settled = log.iter().position(learned).unwrap() + 1;
    let mut stored = log[..settled].to_vec();
    let answer = Event::Answered { round: 1, text: "allow 1: I read the diff".into() };
    stored.push(Record { seq: settled as u64, event: answer, ..log[settled - 1].clone() });
    // It is stated again as it was, which is no duplicate now.
    let stated = edit(&mut script, 1).hypothesis.clone();
    edit(&mut script, 2).hypothesis = stated;
    let (campaign, _) = resume(&script, &stored);
    assert!(is_unproven(&verdicts(&campaign)[0]));
    assert!(verdicts(&campaign)[1].keeps(), "{:?}", verdicts(&campaign));
    assert_eq!(campaign.rounds()[1].refused, Vec::<String>::new());
}

#[test]
fn state_that_the_audit_suspects_is_not_kept_without_a_proof() {
    use crate::integrity::GainProof;
    let keep = || Verdict::Keep { notes: Vec::new() };
    let finding = |rule: &str| AuditFinding {
        rule: rule.into(),
        severity: Severity::Suspicious,
        bucket: None,
        file: "kernel.rs".into(),
        line: 3,
        what: "LAST".into(),
    };
    let judged = |rule: &str, proofs: &[GainProof]| {
        let doubts = crate::verdict::find_doubts(&keep(), &[finding(rule)], None);
        let state = crate::verdict::ProofState { proofs: proofs.to_vec(), work: None };
        crate::verdict::judge_proof(keep(), 4, doubts, state)
    };
    for rule in ["static-state", "replay", "identity-cache", "call-counter"] {
        assert!(is_unproven(&judged(rule, &[])), "{rule}");
        assert!(judged(rule, &[GainProof::Contract]).keeps(), "{rule}");
    }
    assert!(judged("env-read", &[]).keeps());
}

#[test]
fn what_an_earlier_karve_kept_without_a_proof_stays_kept() {
    let (_, log) = play(&by_agent(&[12.0]));
    let kept = log.iter().map(|record| match &record.event {
        Event::Settled { round, .. } => Record {
            event: Event::Settled {
                round: *round,
                verdict: Verdict::Keep { notes: Vec::new() },
                commit: Some("c-kept".into()),
            },
            ..record.clone()
        },
        _ => record.clone(),
    });
    let until = |record: &Record| !matches!(record.event, Event::Learned { .. });
    let kept: Vec<Record> = kept.take_while(until).collect();
    let _ = fold(&kept);
}

#[test]
fn a_gain_far_beyond_the_roofline_is_dropped_under_a_contract() {
    let (campaign, _) = play(&under_contract(3.0, FLOPS));
    let round = &campaign.rounds()[0];
    let Verdict::Drop { reason: DropReason::Gate { gate } } = &round.verdict else {
        panic!("{:?}", round.verdict);
    };
    assert!(gate.describe().contains("large: 6.6"), "{}", gate.describe());
    assert_eq!(round.gate.as_ref(), Some(gate));
    // It is unknown how many threads a declared peak is for.
    assert!(is_unproven(&verdict_of(&scripted(3.0, FLOPS))));
}

#[test]
fn a_roofline_that_the_unchanged_kernel_is_beyond_says_nothing() {
    let verdict = verdict_of(&under_contract(3.0, FLOPS / 2.0));
    assert!(verdict.keeps() && !is_doubtful(&verdict), "{verdict:?}");
}

#[test]
fn outputs_must_be_written_whatever_is_declared() {
    let mut script = under_contract(3.0, 1e15);
    // 256 KiB at so many bytes per second take 16 ms.
    let rate = |bytes| ByteRate { bytes, per_s: 16.4e6 };
    script.roof.as_mut().unwrap().rates = vec![rate(65_536)];
    assert!(!verdict_of(&script).keeps());
    // A rate says nothing about fewer bytes: they may be in a cache.
    script.roof.as_mut().unwrap().rates = vec![rate(65_537)];
    assert!(verdict_of(&script).keeps());
}

#[test]
fn a_gain_beyond_what_the_profile_leaves_is_dropped() {
    let mut script = by_agent(&[1.3]);
    script.charter.commands.profile = Some("./profile".into());
    script.share = Some(0.5);
    assert!(verdict_of(&script).keeps());
    // A tenth of the time can give 1.11x at most.
    script.share = Some(0.1);
    let verdict = verdict_of(&script);
    let why = verdict.describe(&|case| case.to_string());
    assert!(why.contains("small") && why.contains("1.111x"), "{why}");
}
