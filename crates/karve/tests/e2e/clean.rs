//! `karve clean`: shows what campaigns take, removes what is named, and nothing else.

use crate::e2e::lab::{Lab, wait_until};
use std::fs;

#[test]
fn a_campaign_is_removed_with_its_refs_and_the_branch_stays() {
    let lab = Lab::new("gains");
    lab.commit();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let name = lab.campaign("").file_name().unwrap().to_str().unwrap().to_owned();
    let listed = lab.karve(&["clean"]).ends(0);
    listed.shows(&[&name, "finished", "refs, branch optimize/", "in all"]);
    assert!(lab.campaign("events.jsonl").exists(), "nothing is removed without a name");

    // A name that is not there, and no terminal to agree on.
    lab.karve(&["clean", "nope"]).ends(2).complains(&["there is no campaign \"nope\""]);
    lab.karve(&["clean", "../.."]).ends(2).complains(&["there is no campaign"]);
    lab.karve(&["clean", &name]).ends(2).complains(&["nothing was removed", "--yes"]);
    assert!(lab.campaign("events.jsonl").exists());

    lab.karve(&["clean", &name, "--yes"]).ends(0).shows(&["removed", "stays"]);
    assert_eq!(lab.git(&["for-each-ref", "refs/karve"]), "");
    assert!(lab.git(&["for-each-ref", "refs/heads"]).contains("optimize/"));
    lab.karve(&["clean"]).ends(0).shows(&["there is nothing to remove"]);

    // What cargo built for all campaigns is listed, and goes when it is named.
    lab.write(".karve/cargo-seed/target/crate", "four");
    lab.karve(&["clean"]).ends(0).shows(&["cargo-seed", "builds", "4 B in all"]);
    lab.karve(&["clean", "--finished", "--yes"]).ends(0).shows(&["cargo-seed"]);
    lab.karve(&["clean", "cargo-seed", "--yes"]).ends(0).shows(&["removed cargo-seed, 4 B"]);
    assert!(!lab.path(".karve/cargo-seed").exists());
}

#[test]
fn a_running_campaign_is_not_removed_and_refs_without_one_are_found() {
    let lab = Lab::new("gains");
    let wait = "touch ../../waiting\nwhile [ ! -e ../../enough ]; do sleep 0.01; done\n\
                claim \"halve the work\" \"half of it is not needed\" 2.0";
    lab.script("1", "propose", wait).unconfined().commit();
    let running = lab.start(&["run", "--yes", "--rounds", "1"]);
    wait_until("the agent waits", || lab.campaign("waiting").exists());
    let name = lab.campaign("").file_name().unwrap().to_str().unwrap().to_owned();
    lab.karve(&["clean", &name, "--yes"]).ends(4).complains(&["already running"]);
    fs::write(lab.campaign("enough"), "").unwrap();
    running.wait().ends(0);

    fs::remove_dir_all(lab.campaign("")).unwrap();
    lab.karve(&["clean"]).ends(0).shows(&[&name, "removed", "refs"]);
    lab.karve(&["clean", "--finished", "--branch", "--yes"]).ends(0);
    assert_eq!(lab.git(&["for-each-ref", "refs/karve"]), "");
}

/// Worktrees behind a link would not be where the sandbox looks for them.
#[test]
fn a_link_in_place_of_the_directory_of_campaigns_is_refused() {
    let lab = Lab::new("gains");
    fs::create_dir(lab.beside("large")).unwrap();
    std::os::unix::fs::symlink(lab.beside("large"), lab.path(".karve")).unwrap();
    let said = lab.karve(&["run", "--yes", "--rounds", "1"]).ends(2);
    said.complains(&["it is a symbolic link", "in [campaign] of karve.toml"]);
    assert_eq!(fs::read_dir(lab.beside("large")).unwrap().count(), 0);
    fs::remove_file(lab.path(".karve")).unwrap();
    let root = format!("[campaign]\nroot = {:?}", lab.beside("large").to_str().unwrap());
    lab.replace("karve.toml", "[campaign]", &root).commit();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert!(lab.beside("large/toy/events.jsonl").exists());
}
