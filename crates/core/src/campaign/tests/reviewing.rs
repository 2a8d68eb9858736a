//! A review before the gate: recorded, fixed or dropped as the policy says, and never a pass.

use super::{edit, verdicts};
use crate::campaign::{Campaign, Event, Record, Step};
use crate::measurement::Gate;
use crate::policy::ReviewRule;
use crate::roles::{Review, ReviewAdvice};
use crate::spending::{AgentUsage, AnswerTurns, TurnAnswer, TurnPurpose, UnreadableAnswer};
use crate::testing::script::{CampaignScript, ScriptedAttempt, play, script, wrong_result};
use crate::verdict::{DropReason, Verdict};

/// One round whose candidate a reviewer looks at.
fn reviewed(rule: ReviewRule, advice: ReviewAdvice) -> CampaignScript {
    let mut script = script(&[1.3]);
    script.advice = advice;
    script.charter.policy.review = rule;
    let asks = &mut script.charter.asks;
    asks.role_table = Some(Box::new(crate::roles::tests::role_table()));
    asks.agents = [("reviewer".to_owned(), "second".to_owned())].into();
    script
}

fn names(log: &[Record]) -> Vec<&'static str> {
    let mut names: Vec<&str> = log.iter().map(|record| record.event.name()).collect();
    names.retain(|name| ["implemented", "reviewed", "gated", "settled"].contains(name));
    names
}

#[test]
fn advice_is_recorded_and_changes_nothing_by_itself() {
    for advice in ReviewAdvice::ALL {
        let (campaign, log) = play(&reviewed(ReviewRule::Record, advice));
        let round = &campaign.rounds()[0];
        assert!(round.verdict.keeps(), "{advice:?}");
        assert_eq!(round.reviews[0].advice, Some(advice));
        assert_eq!(names(&log)[..3], ["implemented", "reviewed", "gated"]);
    }
}

#[test]
fn no_advice_lets_a_candidate_pass_its_gate() {
    for rule in [ReviewRule::Record, ReviewRule::Repair, ReviewRule::Skip] {
        let mut script = reviewed(rule, ReviewAdvice::Agree);
        edit(&mut script, 1).attempts =
            vec![ScriptedAttempt::fails(&Gate::TimedOut { what: "the test".into() })];
        let (campaign, _) = play(&script);
        assert!(!campaign.rounds()[0].verdict.keeps(), "{rule:?}");
        edit(&mut script, 1).attempts = vec![ScriptedAttempt::fails(&wrong_result("small"))];
        script.charter.policy.debug_retries = 1;
        let (campaign, _) = play(&script);
        assert!(!campaign.rounds()[0].verdict.keeps(), "{rule:?}");
    }
}

#[test]
fn a_doubt_has_the_change_repaired_once_and_then_the_gate_is_asked() {
    let (campaign, log) = play(&reviewed(ReviewRule::Repair, ReviewAdvice::DowngradeToRollback));
    assert_eq!(names(&log)[..5], ["implemented", "reviewed", "implemented", "reviewed", "gated"]);
    assert!(campaign.rounds()[0].verdict.keeps());
    assert_eq!(campaign.rounds()[0].reviews.len(), 2);
    // If the agent cannot fix it, it is gated unchanged.
    let mut script = reviewed(ReviewRule::Repair, ReviewAdvice::DowngradeToRollback);
    edit(&mut script, 1).attempts = vec![ScriptedAttempt::passes(), ScriptedAttempt::absent()];
    let (campaign, log) = play(&script);
    assert_eq!(names(&log)[..3], ["implemented", "reviewed", "gated"]);
    assert!(campaign.rounds()[0].verdict.keeps());
}

#[test]
fn every_version_of_a_round_is_reviewed_however_often_it_is_repaired() {
    let mut script = reviewed(ReviewRule::Record, ReviewAdvice::Agree);
    let mut attempts = vec![ScriptedAttempt::fails(&wrong_result("small")); 6];
    attempts.push(ScriptedAttempt::passes());
    edit(&mut script, 1).attempts = attempts;
    script.charter.policy.debug_retries = 6;
    let (campaign, log) = play(&script);
    assert!(campaign.rounds()[0].verdict.keeps());
    assert_eq!(campaign.rounds()[0].reviews.len(), 7);
    let reviewed = names(&log).iter().filter(|name| **name == "reviewed").count();
    assert_eq!(reviewed, 7);
}

#[test]
fn a_policy_may_skip_what_a_reviewer_doubts() {
    let (campaign, log) = play(&reviewed(ReviewRule::Skip, ReviewAdvice::DowngradeToRollback));
    assert_eq!(names(&log)[..3], ["implemented", "reviewed", "settled"]);
    let Verdict::Drop { reason: DropReason::NoCandidate { why } } = &verdicts(&campaign)[0] else {
        panic!("{:?}", campaign.rounds()[0].verdict)
    };
    assert!(why.contains("DOWNGRADE_TO_ROLLBACK"), "{why}");
}

#[test]
fn a_person_is_called_where_the_reviewer_asks_for_one() {
    let (campaign, _) = play(&reviewed(ReviewRule::Record, ReviewAdvice::EscalateHuman));
    let asked = crate::campaign::strategy::queue(&campaign);
    assert!(asked.iter().any(|item| item.question.contains("asks for a human decision")));
}

#[test]
fn a_review_of_another_tree_is_refused() {
    let script = reviewed(ReviewRule::Record, ReviewAdvice::Agree);
    let (_, log) = play(&script);
    let mut campaign = crate::campaign::Campaign::new();
    for record in log {
        let mut record = record.clone();
        if let Event::Reviewed { review, .. } = &mut record.event {
            review.tree = "another".into();
            assert!(campaign.record(&record).is_err());
            return;
        }
        campaign.record(&record).unwrap();
    }
    panic!("no review");
}

#[test]
fn every_turn_of_a_reviewer_is_counted_with_what_it_used() {
    let usage = |tokens, usd| AgentUsage { tokens, usd, estimated: false };
    let (before, mut log) = play(&reviewed(ReviewRule::Record, ReviewAdvice::Agree));
    let mut campaign = Campaign::new();
    for record in &mut log {
        if let Event::Reviewed { usage: all, earlier, .. } = &mut record.event {
            *all = usage(30, 0.75);
            *earlier = vec![UnreadableAnswer {
                errors: vec!["review_reason is missing".into()],
                usage: usage(10, 0.25),
                session_log: Some("first".into()),
            }];
        }
        campaign.record(record).unwrap();
    }
    let spent = campaign.spending().of(TurnPurpose::Review);
    assert_eq!((spent.turns, spent.tokens, spent.usd), (2, 30, 0.75));
    let others = before.rounds()[0].usage;
    let want = usage(others.tokens + 30, others.usd + 0.75);
    assert_eq!(campaign.rounds()[0].usage, want);
    let named = log.iter().flat_map(|record| record.event.artifacts());
    assert!(named.into_iter().any(|name| name == "first"));
}

/// Why the review of some replies failed, and how many turns came before the last; every reply
/// must be asked for.
fn asked(replies: Vec<TurnAnswer<Review>>) -> (String, usize) {
    let (_, log) = play(&reviewed(ReviewRule::Record, ReviewAdvice::Agree));
    let mut campaign = Campaign::new();
    for record in &log {
        let Some(Step::Review(step)) = campaign.next_step() else {
            campaign.record(record).unwrap();
            continue;
        };
        let mut turns = AnswerTurns::default();
        for (reply, tokens) in replies.into_iter().zip(1..) {
            assert!(turns.is_due(), "{turns:?}");
            let usage = AgentUsage { tokens, usd: 0.5, estimated: tokens > 1 };
            turns.add(reply, usage, Some(format!("log-{tokens}")));
        }
        assert!(!turns.is_due());
        let n = turns.usage().tokens;
        let Event::Reviewed { review, usage, session_log, earlier, .. } = turns.into_event(&step)
        else {
            panic!("a review");
        };
        assert_eq!((usage.tokens, usage.estimated), (n, earlier.len() == 1));
        assert_eq!(session_log, Some(format!("log-{}", earlier.len() + 1)));
        assert_eq!(review.tree, step.candidate.tree);
        return (review.failed, earlier.len());
    }
    panic!("no review was due");
}

#[test]
fn a_reviewer_whose_reply_cannot_be_read_is_asked_once_more() {
    let bad = |why: &str| TurnAnswer::Unreadable(vec![why.to_owned(), "more".to_owned()]);
    let good = || TurnAnswer::Read(Review { tree: "t-r1.0.0".into(), ..Review::default() });
    let silent = || TurnAnswer::Missing("it crashed".into());
    assert_eq!(asked(vec![good()]), (String::new(), 0));
    assert_eq!(asked(vec![bad("a"), good()]), (String::new(), 1));
    assert_eq!(asked(vec![bad("a"), bad("b")]), ("b; more".into(), 1));
    assert_eq!(asked(vec![bad("a"), silent()]), ("it crashed".into(), 1));
    assert_eq!(asked(vec![silent()]), ("it crashed".into(), 0));
}

#[test]
fn after_the_duel_a_review_can_downgrade_a_keep_and_nothing_else() {
    let check = |advice, want: &str| {
        let (campaign, log) = play(&reviewed(ReviewRule::Downgrade, advice));
        assert_eq!(names(&log), ["implemented", "gated", "gated", "reviewed", "settled"]);
        let round = &campaign.rounds()[0];
        let why = round.verdict.describe(&|_| String::new());
        assert!(why.contains(want), "{advice:?}: {why}");
        round.verdict.keeps()
    };
    assert!(check(ReviewAdvice::Agree, ""));
    assert!(check(ReviewAdvice::EscalateHuman, ""));
    assert!(check(ReviewAdvice::DowngradeToNoiseBound, "the reviewer takes it for noise"));
    assert!(!check(ReviewAdvice::DowngradeToRollback, "the reviewer: DOWNGRADE_TO_ROLLBACK"));
    // What is not faster is not reviewed at all.
    let mut script = reviewed(ReviewRule::Downgrade, ReviewAdvice::Agree);
    edit(&mut script, 1).speed = vec![0.9];
    assert!(!names(&play(&script).1).contains(&"reviewed"));
}

#[test]
fn a_review_after_the_duel_sees_its_figures() {
    let script = reviewed(ReviewRule::Downgrade, ReviewAdvice::Agree);
    let is_review = |step: &Step| matches!(step, Step::Review(_));
    let (campaign, _) = crate::testing::script::play_until(&script, &is_review);
    let Some(Step::Review(step)) = campaign.next_step() else { panic!() };
    assert_eq!(step.figures.len(), 5);
}
