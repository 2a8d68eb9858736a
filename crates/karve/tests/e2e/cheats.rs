//! Agents that reach beyond their worktree, and what the referee makes of it.

use crate::lab::Lab;
use crate::tidy::is_tidy;
use std::fs;

/// One round of an agent that does this and edits a comment; nothing is known by artifacts.
fn cheat(implement: &str) -> Lab {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.replace("karve.toml", "artifacts = [\"build/kernel.sh\"]\n", "");
    lab.script(
        "1",
        "propose",
        "claim \"halve the work\" \"it is not needed\" 2.0",
    )
    .script("1", "implement", implement);
    lab
}

const EDIT: &str = "edit 's/^# The kernel/# A kernel/'\necho done";

#[test]
fn slowing_the_incumbent_down_gains_nothing() {
    let slow = "for other in ../*/build/kernel.sh; do\n\
                [ -f \"$other\" ] && sed -i s/TIME=.*/TIME=200/ \"$other\"\ndone";
    let lab = cheat(&format!("{slow}\n{EDIT}"));
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["not_faster"]);
}

#[test]
fn a_filter_in_the_repository_gains_nothing() {
    let filter = "git config filter.evil.smudge 'sed s/=.TIME/=1/'\n\
                  echo 'bench.sh filter=evil' \
                  >>\"$(git rev-parse --git-common-dir)/info/attributes\"";
    let lab = cheat(&format!(
        "mkdir -p \"$(git rev-parse --git-common-dir)/info\"\n{filter}\n{EDIT}"
    ));
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["not_faster"]);
}

#[test]
fn an_answer_that_is_a_pipe_is_no_answer() {
    let lab = cheat("edit s/TIME=.*/TIME=50/\nmkfifo \"$KARVE_ANSWER\"");
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["no_candidate"]);
    is_tidy(&lab);
}

#[test]
fn a_deleted_ref_is_missed_and_made_anew() {
    let lab = cheat("edit s/TIME=.*/TIME=50/\necho done");
    lab.commit().karve(&["run", "--yes"]).ends(0);
    lab.git(&["update-ref", "-d", "refs/karve/toy/best"]);
    lab.karve(&["verify"]).ends(1);
    lab.karve(&["run", "--campaign", "toy", "--rounds", "11"])
        .ends(0);
    lab.karve(&["verify"]).ends(0);
}
