//! A campaign with an agenda: one item at a time, each with what became of it.

use super::{check_resume, edit};
use crate::agenda::{Agenda, AgendaItem, AgendaSource, ItemAction, ItemEffort, ItemOutcome};
use crate::campaign::{Campaign, StopReason};
use crate::knowledge::{Action, KnownEntry};
use crate::profile::{KernelProfile, ProfileSource};
use crate::testing::script::{CampaignScript, ScriptedAnswer, idea, play, script};

fn item(id: &str, expected_ratio: f64) -> AgendaItem {
    AgendaItem {
        id: id.into(),
        title: format!("do {id}"),
        expected_ratio,
        effort: ItemEffort::Low,
        ..AgendaItem::default()
    }
}

fn with_plan(mut script: CampaignScript, items: Vec<AgendaItem>) -> CampaignScript {
    script.charter.agenda = Some(Box::new(Agenda {
        wanted: AgendaSource::Plan { bottleneck: String::new(), items },
        tries: 2,
    }));
    script
}

/// A script of one idea per round, each about an item.
fn about(tasks: &[(&str, f64)]) -> CampaignScript {
    let speeds: Vec<f64> = tasks.iter().map(|(_, speed)| *speed).collect();
    let mut script = script(&speeds);
    for (number, (task, _)) in tasks.iter().enumerate() {
        edit(&mut script, number + 1).hypothesis.task = Some((*task).to_owned());
    }
    script
}

fn ends(script: &CampaignScript, kept: u32, items: u32) -> Campaign {
    let (campaign, log) = play(script);
    let through = StopReason::AgendaThrough { kept, items };
    assert_eq!(campaign.stop_reason(), Some(&through));
    for prefix in 0..=log.len() {
        check_resume(script, &log, prefix);
    }
    campaign
}

#[test]
fn one_item_at_a_time_is_kept_dropped_or_skipped() {
    let script = about(&[("a", 1.3), ("b", 1.0), ("b", 0.9)]);
    let mut third = item("c", 1.1);
    third.needs = vec!["b".into()];
    let script = with_plan(script, vec![item("b", 1.2), third, item("a", 1.5)]);
    let campaign = ends(&script, 1, 3);
    let tasks: Vec<&str> =
        campaign.rounds().iter().filter_map(|round| round.task.as_deref()).collect();
    assert_eq!(tasks, ["a", "b", "b"]);
    let fates = campaign.fates();
    assert_eq!(fates[0], ItemOutcome::Dropped { rounds: vec![2, 3] });
    assert_eq!(fates[1], ItemOutcome::Skipped { why: "it needs b, which was dropped".into() });
    assert!(matches!(fates[2], ItemOutcome::Kept { round: 1, .. }));
    let view = campaign.view();
    let states: Vec<(&str, &str)> =
        view.agenda.iter().map(|item| (item.id.as_str(), item.state)).collect();
    assert_eq!(states, [("a", "kept"), ("b", "dropped"), ("c", "skipped")]);
    assert!(view.agenda[0].ratio.is_some_and(|ratio| ratio > 1.2));
    assert!(campaign.final_comparison().is_some());
}

#[test]
fn a_proposal_must_name_the_item_that_is_due() {
    let mut script = about(&[("a", 1.3)]);
    let right = script.rounds[0][0].clone();
    let mut other = idea(7, &[1.3]);
    other.hypothesis.task = Some("b".into());
    let without = idea(8, &[1.3]);
    script.rounds[0] = vec![ScriptedAnswer::Idea(without), ScriptedAnswer::Idea(other), right];
    let campaign = ends(&with_plan(script, vec![item("a", 1.5)]), 1, 1);
    let refused = &campaign.rounds()[0].refused;
    assert!(
        refused[0].contains("\"task\" is missing: this round is for item \"a\""),
        "{refused:?}"
    );
    assert!(refused[1].contains("not \"b\""), "{refused:?}");
}

#[test]
fn an_item_that_is_given_up_is_done_with_and_the_next_one_is_due() {
    let mut script = about(&[("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 1.3)]);
    for round in 0..3 {
        script.rounds[round] = vec![ScriptedAnswer::Exhausted];
    }
    let items = ["a", "b", "c", "d"].map(|id| item(id, 1.5));
    let campaign = ends(&with_plan(script, items.to_vec()), 1, 4);
    assert_eq!(campaign.rounds().len(), 4);
    assert_eq!(campaign.fates()[0], ItemOutcome::Dropped { rounds: vec![1] });
}

#[test]
fn another_try_of_an_entry_is_another_way_and_not_the_same_words() {
    let entry = AgendaItem { how: ItemAction::Entry { entry: "e".into() }, ..item("e", 1.5) };
    let mut script = about(&[("e", 1.0), ("e", 1.3)]);
    for round in [1, 2] {
        edit(&mut script, round).hypothesis.entry = Some("e".into());
    }
    let again = script.rounds[0][0].clone();
    script.rounds[1].insert(0, again);
    let campaign = ends(&with_plan(script, vec![entry]), 1, 1);
    assert!(campaign.rounds()[1].refused[0].contains("duplicate of round 1"));
}

fn missing_much() -> KernelProfile {
    let mut kernel = KernelProfile::named("k");
    kernel.set("l1_miss_pct", 9.0, ProfileSource::default());
    kernel
}

#[test]
fn a_profile_decides_about_conditions_before_the_first_proposal() {
    let mut fails = item("a", 1.5);
    fails.when = vec!["l1_miss_pct < 4".into()];
    let mut unknown = item("b", 1.2);
    unknown.when = vec!["waves < 1".into()];
    let mut script = with_plan(about(&[("b", 1.3)]), vec![fails, unknown]);
    script.charter.commands.profile = Some("./profile".into());
    script.kernels = vec![missing_much()];
    let campaign = ends(&script, 1, 2);
    let view = campaign.view();
    assert_eq!(view.agenda[0].state, "skipped");
    assert!(view.agenda[0].why.contains("l1_miss_pct=9"), "{:?}", view.agenda);
    // With nothing else to do there is no round at all.
    let mut alone = item("a", 1.5);
    alone.when = vec!["l1_miss_pct < 4".into()];
    let script = CampaignScript { rounds: Vec::new(), ..with_plan(script, vec![alone]) };
    assert_eq!(ends(&script, 0, 1).rounds().len(), 0);
}

#[test]
fn an_autopilot_takes_what_the_first_profile_and_the_library_suggest() {
    let entry = |id: &str, trigger: &str| KnownEntry {
        id: id.into(),
        title: format!("apply {id}"),
        triggers: vec![trigger.into()],
        expected_ratio: 1.3,
        apply: vec![Action::Top { line: "#pragma x".into(), files: vec!["*.c".into()] }],
        ..KnownEntry::default()
    };
    let mut script = about(&[("fires", 1.3), ("sweep", 1.0)]);
    script.charter.commands.profile = Some("./profile".into());
    script.kernels = vec![missing_much()];
    script.known = vec![entry("fires", "l1_miss_pct > 4"), entry("silent", "l1_miss_pct < 4")];
    script.charter.agenda = Some(Box::new(Agenda {
        wanted: AgendaSource::Autopilot { knobs: 2, by_machine: true },
        tries: 2,
    }));
    let campaign = ends(&script, 1, 2);
    let ids: Vec<&str> = campaign.items().iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids, ["fires", "sweep"]);
    // Having nothing to try is reported, too.
    script.known.clear();
    script.charter.agenda = Some(Box::new(Agenda {
        wanted: AgendaSource::Autopilot { knobs: 0, by_machine: true },
        tries: 2,
    }));
    assert_eq!(ends(&script, 0, 0).rounds().len(), 0);
}

#[test]
fn a_limit_ends_the_campaign_before_the_agenda_and_says_what_was_not_reached() {
    let mut script = with_plan(about(&[("a", 1.3)]), vec![item("a", 1.5), item("b", 1.2)]);
    script.charter.limits.rounds = 1;
    let (campaign, _) = play(&script);
    assert_eq!(campaign.stop_reason(), Some(&StopReason::RoundsUsed { rounds: 1 }));
    assert_eq!(campaign.view().agenda[1].state, "not reached");
}
