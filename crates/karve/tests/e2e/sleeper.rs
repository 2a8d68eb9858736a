//! A kernel that was kept and then slows down, so that its successors look faster than they are.

use crate::e2e::lab::Lab;

/// The first kernel is twice as fast as the original until the agent wakes it in round 2: from then
/// on it takes as long as the original did. The second one is slower than it really is, the third
/// as fast, and the fourth faster.
fn sleeper() -> Lab {
    let lab = Lab::new("gains");
    std::fs::remove_dir_all(lab.path("script")).unwrap();
    let awake = lab.beside("awake");
    let awake = awake.display();
    let claim = |round: &str| format!("claim \"change {round}\" \"reason {round}\" 2.0");
    let steps = [
        ("1", format!("edit s/TIME=.*/TIME=50/\necho '[ ! -e {awake} ] || TIME=100' >>kernel.sh")),
        ("2", format!("touch {awake}\nedit '/awake/d'\nedit s/TIME=.*/TIME=55/")),
        ("3", "edit s/TIME=.*/TIME=50/".to_owned()),
        ("4", "edit s/TIME=.*/TIME=40/".to_owned()),
    ];
    for (round, edit) in steps {
        lab.script(round, "propose", &claim(round));
        lab.script(round, "implement", &format!("{edit}\necho done"));
    }
    lab.unconfined().commit();
    lab
}

#[test]
fn a_sleeper_is_shown_at_its_true_speed_before_the_final_duel() {
    let lab = sleeper();
    lab.karve(&["run", "--yes"]).ends(0).shows(&[
        "1.82x  keep      now 3.64x in total, last keep not yet checked against the original",
        "1.38x  keep      now 2.50x in total, self-reported",
    ]);
    assert_eq!(lab.verdicts(), ["keep", "keep", "inflated", "keep"]);
    let checked = lab.events("block_measured");
    let checked: Vec<u64> = checked
        .iter()
        .filter(|event| event["duel"]["duel"] == "original")
        .filter_map(|event| event["duel"]["round"].as_u64())
        .collect();
    assert_eq!(checked, [[3; 9], [4; 9]].concat());
    lab.karve(&["show", "3"]).ends(0).shows(&[
        "no gain over the original: 2.000x against the original",
        "the kept gains multiply to 4.000x",
    ]);
    let fourth = lab.karve(&["show", "4", "--json"]).ends(0).json();
    assert_eq!(fourth["unchecked_keeps"], 0);
    for (figure, want) in [(&fourth["cumulative_ratio"], 2.5), (&fourth["check"]["claimed"], 5.0)] {
        assert!((figure.as_f64().unwrap() - want).abs() < 1e-9, "{figure}");
    }
    lab.karve(&["verify"]).ends(0);
}

#[test]
fn every_screen_says_which_gains_are_not_checked() {
    let lab = sleeper();
    let note = "last keep not yet checked against the original";
    // It dies before the third hypothesis is stated.
    let proposed = |events: &[serde_json::Value]| {
        let mut rounds = events.iter().map(|record| &record["event"]);
        rounds.position(|event| event["type"] == "proposed" && event["round"] == 3).unwrap()
    };
    lab.karve(&["run", "--yes"]).ends(0);
    let at = proposed(&lab.log());
    let lab = sleeper();
    lab.dies(&format!("before:{at}"));
    lab.karve(&["status"]).ends(0).shows(&["3.636x", note]);
    lab.karve(&["list"]).ends(0).shows(&["3.636x", note]);
    lab.karve(&["best"]).ends(0).shows(&["3.636x", note]);
    lab.karve(&["report"]).ends(0).shows(&["about 3.636x", note]);
    let status = lab.karve(&["status", "--json"]).ends(0).json();
    assert_eq!((&status["unchecked_keeps"], &status["speedup_note"]), (&1.into(), &note.into()));
    for path in ["logs/optimize.md", "logs/performance_trend.md"] {
        let text = std::fs::read_to_string(lab.campaign(path)).unwrap();
        assert!(text.contains(note), "{path}: {text}");
    }
    // It goes on where it was and finds the sleeper.
    lab.karve(&["run"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep", "keep", "inflated", "keep"]);
}
