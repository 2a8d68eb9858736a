//! Repositories in every state: handled, or refused with a hint before anything is changed.

use crate::e2e::lab::{Lab, git_in};
use crate::e2e::tidy::is_tidy;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file of a directory with its bytes, git's index too, but not what karve may write.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if name == ".karve" {
            continue;
        }
        if name == ".git" {
            for name in ["index", "HEAD", "config"] {
                files.insert(path.join(name), fs::read(path.join(name)).unwrap_or_default());
            }
        } else if path.is_dir() {
            files.extend(snapshot(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

#[test]
fn a_dirty_checkout_is_not_touched_and_not_measured() {
    let lab = Lab::new("gains");
    lab.write("kernel.sh", "result=$((2 * 3 + 1))\nTIME=7 # not committed\n");
    lab.write("staged.txt", "staged");
    lab.git(&["add", "staged.txt"]);
    lab.write("untracked.txt", "untracked");
    lab.write("build/old.o", "ignored");
    fs::remove_file(lab.path(".gitignore")).unwrap();
    let before = snapshot(&lab.path(""));
    let said = lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let said = said.complains(&["uncommitted changes are not part of the campaign", "kernel.sh"]);
    said.shows(&["baseline  time_us = 100"]);
    assert_eq!(snapshot(&lab.path("")), before);
    assert_eq!(lab.verdicts(), ["keep"]);
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_detached_head_is_where_the_campaign_starts() {
    let lab = Lab::new("gains");
    let base = lab.git(&["rev-parse", "HEAD"]);
    lab.replace("kernel.sh", "TIME=100", "TIME=200").commit();
    lab.git(&["checkout", "-q", "--detach", &base]);
    let said = lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    said.complains(&["HEAD is detached"]).shows(&["baseline  time_us = 100"]);
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), base);
    assert_eq!(lab.verdicts(), ["keep"]);
    is_tidy(&lab);
}

#[test]
fn a_submodule_is_filled_from_the_checkout() {
    let lab = Lab::new("gains");
    let part = lab.beside("part");
    fs::create_dir(&part).unwrap();
    git_in(&part, &["init", "-q", "-b", "main"]);
    fs::write(part.join("seven"), "7\n").unwrap();
    git_in(&part, &["add", "-A"]);
    git_in(&part, &["commit", "-q", "-m", "seven"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
    lab.git(&[&add[..], &[part.to_str().unwrap(), "part"]].concat());
    lab.replace("test.sh", "!= 7 ]", "!= \"$(cat part/seven)\" ]").commit();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    is_tidy(&lab);
}

#[test]
fn what_is_no_checkout_with_a_commit_is_refused() {
    let bare = Lab::new("gains");
    let clone = bare.beside("bare.git");
    bare.git(&["clone", "-q", "--bare", ".", clone.to_str().unwrap()]);
    fs::copy(bare.path("karve.toml"), clone.join("karve.toml")).unwrap();
    let said = bare.karve(&["-C", clone.to_str().unwrap(), "run", "--yes"]);
    said.ends(2).complains(&["bare", "hint: "]);
    assert!(!clone.join(".karve").exists());

    let unborn = Lab::unversioned("gains");
    unborn.git(&["init", "-q", "-b", "main"]);
    unborn.karve(&["run", "--yes"]).ends(2).complains(&["no commit", "hint: ", "git commit"]);
    assert!(!unborn.path(".karve").exists());

    let plain = Lab::unversioned("gains");
    plain.karve(&["run", "--yes"]).ends(2).complains(&["not in a git repository", "git init"]);
    assert!(!plain.path(".karve").exists());
}

#[test]
fn a_missing_or_mistaken_contract_is_refused_before_anything_changes() {
    let lab = Lab::new("gains");
    let good = lab.read("karve.toml");
    let refuse = |from: &str, to: &str, parts: &[&str]| {
        assert!(good.contains(from), "{from}");
        lab.write("karve.toml", &good.replace(from, to));
        lab.karve(&["run", "--yes"]).ends(2).complains(parts).complains(&["hint: "]);
    };
    refuse("op = \"toy\"", "opp = \"toy\"", &["karve.toml:5:", "opp"]);
    refuse("rounds = 10", "rounds = \"ten\"", &["karve.toml", "rounds"]);
    refuse("list = [\"n=1\"]", "list = []", &["there is no case"]);
    refuse("{n}", "{m}", &["{m}"]);
    refuse("name = \"script\"", "name = \"nobody\"", &["nobody"]);
    refuse("editable = [\"kernel.sh\"]", "editable = [\"nothing.c\"]", &["sources.editable"]);
    fs::remove_file(lab.path("karve.toml")).unwrap();
    lab.karve(&["run", "--yes"]).ends(2).complains(&["there is no karve.toml", "karve init"]);
    lab.karve(&["status"]).ends(2).complains(&["there is no karve.toml"]);
    lab.write("karve.toml", &good);
    lab.karve(&["run"]).ends(2).complains(&["no terminal to agree", "--yes"]);
    lab.karve(&["status"]).ends(2).complains(&["no campaign", "karve run"]);
    assert_eq!(lab.git(&["for-each-ref"]).lines().count(), 1);
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_branch_that_is_in_use_is_refused() {
    let lab = Lab::new("gains");
    lab.configure("[git]\nbranch = \"faster\"").commit();
    lab.git(&["switch", "-q", "-c", "faster"]);
    lab.karve(&["run", "--yes"]).ends(2).complains(&["faster is checked out in", "git.branch"]);
    lab.git(&["switch", "-q", "main"]);
    lab.replace("test.sh", "the kernel must", "the kernel has to").commit();
    // It is free, but it is not new and somebody may need what is on it.
    lab.karve(&["run", "--yes"]).ends(3).complains(&["refs/heads/faster", "hint: "]);
    lab.git(&["branch", "-q", "-D", "faster"]);
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert!(lab.git(&["show", "faster:kernel.sh"]).contains("TIME=50"));
    is_tidy(&lab);
}

#[test]
fn a_branch_that_somebody_moved_is_not_overwritten() {
    let lab = Lab::new("gains");
    lab.dies("after:12");
    lab.replace("test.sh", "the kernel must", "the kernel has to").commit();
    lab.git(&["branch", "-q", "-f", "optimize/toy", "main"]);
    let moved = lab.git(&["rev-parse", "optimize/toy"]);
    lab.karve(&["run", "--yes"]).ends(3).complains(&["another process moved", "optimize/toy"]);
    assert_eq!(lab.git(&["rev-parse", "optimize/toy"]), moved);
}

#[test]
fn projects_that_share_a_root_have_campaigns_of_their_own() {
    let (one, other) = (Lab::new("gains"), Lab::new("gains"));
    let root = one.beside("shared");
    let named = format!("name = \"toy\"\nroot = {:?}", root.display().to_string());
    for (lab, text) in [(&one, "one"), (&other, "other")] {
        lab.replace("karve.toml", "name = \"toy\"", &named);
        lab.write("README", text);
        lab.commit();
    }
    one.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    other.karve(&["status"]).ends(2).complains(&["there is no campaign under", "karve run"]);
    other.karve(&["list"]).ends(0).complains(&["1 campaigns of other projects"]);
    other.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let campaign = |lab: &Lab| lab.karve(&["status", "--json"]).json()["campaign"].take();
    assert_eq!(campaign(&other), "toy-2");
    assert_eq!(campaign(&one), "toy");
    one.karve(&["diff"]).ends(0);
}
