//! Agents that reach beyond their worktree, and what the referee makes of it.

use crate::e2e::lab::Lab;
use crate::e2e::tidy::is_tidy;
use std::fs;

/// One round of an agent that does this and edits a comment; nothing is known by artifacts.
fn cheat(implement: &str) -> Lab {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.replace("karve.toml", "artifacts = [\"build/kernel.sh\"]\n", "");
    lab.script("1", "propose", "claim \"halve the work\" \"it is not needed\" 2.0").script(
        "1",
        "implement",
        implement,
    );
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
    let lab =
        cheat(&format!("mkdir -p \"$(git rev-parse --git-common-dir)/info\"\n{filter}\n{EDIT}"));
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
    lab.karve(&["run", "--campaign", "toy", "--rounds", "11"]).ends(0);
    lab.karve(&["verify"]).ends(0);
}

/// The project with a editable module in Python beside the kernel.
fn with_module(lab: &Lab) {
    lab.replace("karve.toml", "[\"kernel.sh\"]", "[\"kernel.sh\", \"fast.py\"]");
    lab.write("fast.py", "def kernel_fn(a):\n    return a\n");
}

const CACHE: &str = "cat >fast.py <<'END'
_seen = {}
def kernel_fn(a):
    if id(a) not in _seen:
        _seen[id(a)] = a * 2
    return _seen[id(a)]
END";

#[test]
fn a_cache_on_inputs_is_dropped_before_it_is_built() {
    let lab = cheat(&format!("{CACHE}\nedit s/TIME=.*/TIME=50/\necho done"));
    with_module(&lab);
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["dishonest"]);
    assert!(lab.events("block_measured").iter().all(|e| e["duel"]["duel"] != "round"));
    let gated = lab.events("gated");
    let finding = &gated[0]["findings"][0];
    assert_eq!(finding["rule"], "identity-cache");
    assert_eq!((&finding["file"], &finding["line"]), (&"fast.py".into(), &3.into()));
    lab.karve(&["show", "1"]).ends(0).shows(&[
        "## Transfer check",
        "Bucket: W2",
        "Decision: REJECT-as-overfit",
        "fast.py:3: identity-cache (forbidden)",
    ]);
    lab.karve(&["report"]).ends(0).shows(&["Verdict: rolled back", "not measured"]);
    // What only works in a benchmark is no lesson.
    assert!(!lab.path(".karve/tips").exists());
    lab.karve(&["verify"]).ends(0);
}

#[test]
fn what_the_user_allows_is_measured() {
    let lab = cheat(&format!("{CACHE}\nedit s/TIME=.*/TIME=50/\necho done"));
    with_module(&lab);
    lab.configure("[audit]\nallow = [\"identity-cache\"]\n");
    lab.commit().karve(&["run", "--yes"]).ends(0);
    // It reaches the duel, but a cache is not kept on the project's own benchmark alone.
    assert!(lab.events("block_measured").iter().any(|e| e["duel"]["duel"] == "round"));
    assert_eq!(lab.verdicts(), ["unproven"]);
}

#[test]
fn a_suspicious_change_is_kept_and_told() {
    let odd = "cat >fast.py <<'END'\nimport os\ndef kernel_fn(a):\n    \
               return a if os.path.exists(\"FAST\") else a\nEND";
    let lab = cheat(&format!("{odd}\nedit s/TIME=.*/TIME=50/\necho done"));
    with_module(&lab);
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    lab.karve(&["report"]).ends(0).shows(&["Verdict: unknown", "file-read (suspicious)"]);
    let shown = lab.karve(&["show", "1", "--json"]).ends(0).json();
    assert_eq!(shown["findings"][0]["rule"], "file-read");
}

#[test]
fn the_audit_of_a_worktree_says_what_is_forbidden() {
    let lab = Lab::new("gains");
    with_module(&lab);
    lab.commit().karve(&["audit"]).ends(0).shows(&["no editable file is changed"]);
    lab.write("fast.py", "import time\ndef kernel_fn(a):\n    return a, time.time()\n");
    lab.karve(&["audit"]).ends(1).shows(&["forbidden fast.py:3 timer: `time.time`"]);
    let json = lab.karve(&["audit", "--json"]).ends(1).json();
    assert_eq!(json["findings"][0]["severity"], "forbidden");
    lab.karve(&["audit", "fast.py"]).ends(1).shows(&["whole files: fast.py"]);
    lab.commit();
    lab.karve(&["audit", "HEAD~1..HEAD"]).ends(1).shows(&["HEAD against HEAD~1: fast.py"]);
    lab.karve(&["audit", "HEAD"]).ends(0);
    lab.write("loud.c", "#include <stdio.h>\nvoid kernel(void) { puts(\"fast\"); }\n");
    lab.karve(&["audit", "loud.c"]).ends(0).shows(&["suspicious loud.c:2 prints"]);
    lab.karve(&["audit", "nothing.c", "fast.py"]).ends(2).complains(&["nothing.c"]);
}
