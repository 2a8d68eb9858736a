//! Controls, layouts, and continued duels.

use super::{dropped, edit, verdicts};
use crate::campaign::{
    Campaign, ControlKind, DuelName, Event, Record, RemoteDevice, Step, StopReason,
};
use crate::policy::{Controls, ErrorRule, FirstVerdict, Preset};
use crate::testing::script::{
    CampaignScript, ScriptedAnswer, fold, idea, play, play_until, resume, script,
};
use crate::verdict::{DropReason, Verdict};

fn controlled(speeds: &[f64]) -> CampaignScript {
    let mut script = script(speeds);
    script.charter.policy.controls = Controls { every: 2, blocks: 10 };
    script.charter.policy.first_verdict = FirstVerdict::AfterChecks;
    script
}

/// The duels of a log, each once, in order.
fn duels(log: &[Record]) -> Vec<DuelName> {
    let mut duels: Vec<DuelName> = log
        .iter()
        .filter_map(|record| match &record.event {
            Event::BlockMeasured { duel, .. } => Some(*duel),
            _ => None,
        })
        .collect();
    duels.dedup();
    duels
}

fn n_blocks(log: &[Record], wanted: impl Fn(&DuelName) -> bool) -> usize {
    let measured = |record: &&Record| match &record.event {
        Event::BlockMeasured { duel, .. } => wanted(duel),
        _ => false,
    };
    log.iter().filter(measured).count()
}

#[test]
fn the_measurement_is_checked_at_the_baseline_and_at_the_stated_cadence() {
    let (campaign, log) = play(&controlled(&[1.0, 1.2, 1.0, 1.0, 1.3]));
    let after: Vec<u32> = campaign.controls().iter().map(|c| c.control.after).collect();
    assert_eq!(after, vec![0, 2, 4]);
    let blocks = n_blocks(&log, |duel| matches!(duel, DuelName::Control(_)));
    // Ten that count and the warm-up, three times.
    assert_eq!(blocks, 33);
    assert!(matches!(duels(&log)[0], DuelName::Control(_)));
    assert!(campaign.controls().iter().all(|c| c.suspicion.is_none()));
}

#[test]
fn equal_kernels_that_differ_twice_in_a_row_end_the_campaign() {
    let mut script = controlled(&[1.2]);
    script.copy_speed = 1.01;
    let (campaign, log) = play(&script);
    assert!(matches!(campaign.stop_reason(), Some(StopReason::MeasurementInvalid { .. })));
    assert!(campaign.rounds().is_empty());
    // Identical signs reach the limit after seven blocks; each attempt has its warm-up.
    assert_eq!(n_blocks(&log, |_| true), 16);
    let text = campaign.stop_reason().unwrap().describe();
    assert!(text.starts_with("measurement invalid"), "{text}");
}

#[test]
fn where_karve_times_the_command_a_slower_copy_follows_the_equal_one() {
    let mut script = controlled(&[1.2]);
    script.charter.metric.name = "wall_time".into();
    let (campaign, _) = play(&script);
    let kinds: Vec<ControlKind> = campaign.controls().iter().map(|c| c.control.kind).collect();
    assert_eq!(kinds, vec![ControlKind::Same, ControlKind::Slower]);
    let shown = campaign.controls()[1].comparison.overall.ratio;
    assert!((shown * 1.03 - 1.0).abs() < 0.01, "{shown}");
    assert_eq!(campaign.rounds().len(), 1);
}

#[test]
fn the_extra_work_of_a_slower_copy_is_a_share_of_the_time_at_the_baseline() {
    let (campaign, _) = play(&controlled(&[1.2]));
    let readings = campaign.baseline().unwrap().readings.iter();
    let times: Vec<u64> = readings.filter(|r| r.case == 0).map(|r| r.sample.cpu_us).collect();
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!((*least..=*most).contains(&campaign.spin_us(0, 1.0).unwrap()));
    assert_eq!(campaign.spin_us(0, 0.0), Some(0));
    assert_eq!(campaign.spin_us(99, 1.0), None);
}

/// A campaign of one round whose device changes after three blocks of its duel.
fn with_another_device(script: &CampaignScript, replaces: bool) -> (Campaign, Vec<Record>) {
    let fourth = |step: &Step| match step {
        Step::Measure(step) => step.block == 3 && matches!(step.duel, DuelName::Round { .. }),
        _ => false,
    };
    let (_, mut log) = play_until(script, &fourth);
    for (allocation, replaces) in [("7", false), ("8", replaces)] {
        let device = Box::new(RemoteDevice {
            remote: "cluster".to_owned(),
            host: "n1".to_owned(),
            allocation: Some(allocation.to_owned()),
            sandbox: String::new(),
            price_per_hour: None,
        });
        log.push(script.record(log.len(), Event::DeviceAcquired { device, replaces }));
    }
    resume(script, &log)
}

#[test]
fn a_device_that_replaces_another_in_a_duel_is_tested_before_the_next_block() {
    let is_control =
        |duel: &DuelName| matches!(duel, DuelName::Control(control) if control.device == 2);
    let script = controlled(&[1.3]);
    let (undisturbed, _) = play(&script);
    let (campaign, log) = with_another_device(&script, true);
    let duels = duels(&log);
    let at = duels.iter().position(is_control).unwrap();
    assert_eq!(duels[at - 1], duels[at + 1], "the duel goes on after it");
    assert_eq!(n_blocks(&log, is_control), 11);
    assert_eq!(verdicts(&campaign), verdicts(&undisturbed));
    for prefix in 0..=log.len() {
        fold(&log[..prefix]);
    }
    // Devices that are given back on purpose are tested before the next round.
    let (campaign, log) = with_another_device(&script, false);
    assert_eq!(n_blocks(&log, is_control), 0);
    assert_eq!(verdicts(&campaign), verdicts(&undisturbed));
    // Without controls nothing is tested.
    let mut without = script.clone();
    without.charter.policy.controls.every = 0;
    assert_eq!(n_blocks(&with_another_device(&without, true).1, is_control), 0);
    // One that cannot be trusted keeps nothing.
    let mut biased = script;
    biased.charter.policy.controls.every = 100;
    biased.charter.policy.first_verdict = FirstVerdict::Soon;
    biased.copy_speed = 1.01;
    let (campaign, _) = with_another_device(&biased, true);
    assert!(matches!(campaign.stop_reason(), Some(StopReason::MeasurementInvalid { .. })));
    assert!(campaign.rounds().is_empty() && campaign.lineage().best().is_none());
}

/// One idea of 3%, in three layouts.
fn layouts(others: [f64; 2]) -> (Vec<Verdict>, Vec<DuelName>) {
    let mut script = script(&[1.05]);
    script.charter.commands.build = Some("make LAYOUT={layout}".into());
    edit(&mut script, 1).layouts = others;
    let (campaign, log) = play(&script);
    (verdicts(&campaign), duels(&log))
}

#[test]
fn a_gain_must_hold_in_other_layouts_of_the_same_code() {
    let (verdicts, duels) = layouts([0.99, 1.02]);
    assert!(verdicts[0].keeps(), "{verdicts:?}");
    let variants: Vec<u32> = duels
        .iter()
        .filter_map(|duel| match duel {
            DuelName::Layout { variant, .. } => Some(*variant),
            _ => None,
        })
        .collect();
    assert_eq!(variants, vec![1, 2]);
    for lucky in [[0.94, 1.0], [0.96, 0.96]] {
        let (verdicts, _) = layouts(lucky);
        let lucky = matches!(
            &verdicts[0],
            Verdict::Drop {
                reason: DropReason::LayoutLuck { ratios }
            } if ratios.len() == 3
        );
        assert!(lucky, "{verdicts:?}");
    }
}

/// Two rounds with the very same source, too noisy for the blocks of one.
fn undecided_twice(blocks_max: u32) -> CampaignScript {
    let mut script = script(&[1.03, 1.03]);
    script.charter.policy.accept.blocks_max = blocks_max;
    script.noise = 0.12;
    edit(&mut script, 1).attempts[0].tree = Some("t-same".into());
    script.rounds[1] = script.rounds[0].clone();
    script
}

#[test]
fn an_undecided_duel_goes_on_with_the_same_evidence() {
    let (campaign, log) = play(&undecided_twice(20));
    let blocks: Vec<u32> =
        campaign.rounds().iter().map(|round| round.comparison.as_ref().unwrap().blocks).collect();
    assert!(matches!(verdicts(&campaign)[0], Verdict::Undecided { blocks: 20 }));
    assert_eq!(blocks[0], 20);
    assert!(blocks[1] > 20, "{blocks:?}");
    let in_second = n_blocks(&log, |duel| matches!(duel, DuelName::Round { round: 2, .. }));
    // The warm-up is run again, the twenty that counted are not.
    assert_eq!(blocks[1] as usize, 20 + in_second - 1);
}

#[test]
fn a_decided_source_is_not_judged_again() {
    let mut script = script(&[1.0, 1.0]);
    edit(&mut script, 1).attempts[0].tree = Some("t-same".into());
    edit(&mut script, 2).attempts[0].tree = Some("t-same".into());
    let (campaign, _) = play(&script);
    let again = dropped(DropReason::AlreadyTried { round: 1 });
    assert_eq!(verdicts(&campaign)[1], again);
}

#[test]
fn each_keep_eases_the_next_where_false_discoveries_are_bounded() {
    let blocks_of = |errors| {
        let mut script = script(&[1.2, 1.44, 1.73]);
        script.charter.policy.accept.errors = errors;
        script.rounds.push(vec![ScriptedAnswer::Idea(idea(4, &[2.1]))]);
        let (campaign, _) = play(&script);
        let rounds = campaign.rounds().iter();
        let blocks = rounds.map(|round| round.comparison.as_ref().unwrap().blocks);
        blocks.collect::<Vec<u32>>()
    };
    let family = blocks_of(ErrorRule::FamilyWise);
    assert_eq!(family, vec![15; 4]);
    let discovery = blocks_of(ErrorRule::FalseDiscovery);
    assert_eq!(discovery[0], 15);
    assert!(discovery[3] < 15, "{discovery:?}");
}

#[test]
fn without_a_contract_a_gain_is_self_reported() {
    let mut script = controlled(&[1.2]);
    let shown = |script: &CampaignScript| script.charter.self_reported().unwrap();
    assert_eq!(shown(&script), "self-reported by the project's own benchmark");
    script.charter.metric.name = "wall_time".into();
    assert_eq!(shown(&script), "self-reported: karve's clock, the project's own inputs");
    let (campaign, _) = play(&script);
    assert_eq!(campaign.view().self_reported, script.charter.self_reported());
}

/// The order of some steps: the A/A test, the profile, and the verdict of each round.
fn order(script: &CampaignScript) -> Vec<String> {
    let (_, log) = play(script);
    let mut order: Vec<String> = log
        .iter()
        .filter_map(|record| match &record.event {
            Event::BlockMeasured { duel: DuelName::Control(_), .. } => Some("control".into()),
            Event::Profiled { .. } => Some("profile".into()),
            Event::Settled { round, .. } => Some(format!("verdict {round}")),
            Event::FinalProfiled { .. } => Some("last profile".into()),
            _ => None,
        })
        .collect();
    order.dedup();
    order
}

#[test]
fn the_first_verdict_comes_before_the_control_and_the_profile_where_nothing_needs_them() {
    let mut script = script(&[1.0, 1.3]);
    script.charter.policy = Preset::Strict.policy();
    script.charter.commands.profile = Some("./profile".into());
    script.charter.limits.rounds = 2;
    script.charter.agent = "builtin".into();
    assert_eq!(order(&script), ["verdict 1", "control", "profile", "verdict 2", "last profile"]);
    // An agent with ideas of its own proposes better with a profile.
    script.charter.agent = "claude".into();
    let with_profile = ["profile", "verdict 1", "control", "verdict 2", "last profile"];
    assert_eq!(order(&script), with_profile);
    // The published workflows profile and check first.
    let checked = ["control", "profile", "verdict 1", "verdict 2", "last profile"];
    script.charter.agent = "builtin".into();
    script.charter.policy.first_verdict = FirstVerdict::AfterChecks;
    assert_eq!(order(&script), checked);
    for preset in [Preset::Primus, Preset::Tilegym, Preset::Trtllm, Preset::HyperMla] {
        assert_eq!(preset.policy().first_verdict, FirstVerdict::AfterChecks);
    }
}

#[test]
fn nothing_is_kept_without_a_control() {
    let mut script = script(&[1.3]);
    script.charter.policy = Preset::Strict.policy();
    script.charter.limits.rounds = 1;
    assert_eq!(order(&script), ["verdict 1", "control"]);
    script.copy_speed = 1.01;
    let (campaign, _) = play(&script);
    assert!(matches!(campaign.stop_reason(), Some(StopReason::MeasurementInvalid { .. })));
    // There is nothing to doubt if nothing was kept.
    let mut script = crate::testing::script::script(&[0.8]);
    script.charter.policy = Preset::Strict.policy();
    script.charter.limits.rounds = 1;
    assert_eq!(order(&script), ["verdict 1"]);
}
