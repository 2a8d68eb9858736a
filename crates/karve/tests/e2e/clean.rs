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
