//! Settings of knobs that several machines try at the same time.

use crate::e2e::lab::{Lab, wait_until};
use crate::e2e::modes::of_three;
use crate::e2e::remote::{Far, Ray, Slurm, kill};
use crate::e2e::tune::{KERNEL, journal, lab};
use serde_json::Value;

/// A kernel whose builds take a while, as those of a GPU do, and keep no CPU busy.
fn slow_lab(seconds: &str) -> Lab {
    let lab = lab(KERNEL);
    lab.replace("build.sh", "mkdir -p build", &format!("sleep {seconds}\nmkdir -p build"));
    lab.commit();
    lab
}

/// The settings of the journal, in order.
fn tried(lab: &Lab) -> Vec<String> {
    journal(lab).iter().map(|line| line["config"].to_string()).collect()
}

#[test]
fn several_devices_find_the_best_setting_and_prove_it_there() {
    let lab = lab(KERNEL);
    let far = Far::by_command(&lab);
    far.set("devices", "__4");
    let said = lab.karve(&["tune", "--on", "far", "--budget", "24"]).ends(0);
    assert!(said.stderr.contains("evaluating 4 settings at the same time"), "{said:#?}");
    said.shows(&["A=4 B=5", "x as fast as A", "git cherry-pick refs/karve/tune/"]);
    let settings: std::collections::BTreeSet<String> = tried(&lab).into_iter().collect();
    assert_eq!(settings.len(), 24);
    assert_eq!(far.running(), Vec::<String>::new());
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

#[test]
fn the_order_of_settings_does_not_depend_on_which_device_is_faster() {
    let mut orders = Vec::new();
    for delays in ["0.0", "0.$(($$ % 3))"] {
        let lab = lab(KERNEL);
        // The time of a build differs from build to build, and its result does not.
        let text = format!("sleep {delays}\nmkdir -p build");
        lab.replace("build.sh", "mkdir -p build", &text);
        lab.commit();
        let far = Far::by_command(&lab);
        far.set("devices", "__3");
        lab.karve(&["tune", "--on", "far", "--budget", "16"]).ends(0);
        orders.push(tried(&lab));
    }
    let [one, other] = &orders[..] else { panic!("two orders") };
    let firsts = |all: &[String]| {
        let mut seen = Vec::new();
        for setting in all {
            if !seen.contains(setting) {
                seen.push(setting.clone());
            }
        }
        seen
    };
    assert_eq!(firsts(one), firsts(other));
}

#[test]
fn a_device_that_is_lost_costs_only_its_own_work() {
    let lab = slow_lab("0.3");
    let far = Far::by_command(&lab);
    far.set("devices", "__3");
    let running = lab.start(&["tune", "--on", "far", "--budget", "20"]);
    wait_until("some settings are tried", || journal(&lab).len() > 3);
    // A process that a worker starts has the worker's name for a moment.
    wait_until("three devices work", || far.workers().len() == 3);
    kill(&far.workers()[1]);
    running.wait().ends(0).shows(&["20 of 38 settings tried"]);
    wait_until("nothing is left running", || far.running().is_empty());
}

#[test]
fn a_campaign_tunes_on_several_devices_and_measures_on_one() {
    let lab = lab(KERNEL);
    let far = Far::by_command(&lab);
    far.set("devices", "__3");
    let said = lab.karve(&["run", "--yes", "--on", "far", "--agent", "builtin", "--rounds", "2"]);
    said.ends(0);
    assert!(lab.git(&["show", "optimize/toy:kernel.sh"]).contains("B=5"));
    assert_eq!(lab.events("device_acquired").len(), 1);
    // One that gets ready when a sweep is over is given back.
    assert!(lab.events("device_helped").len() >= 2);
    lab.karve(&["verify"]).ends(0);
    wait_until("nothing is left running", || far.running().is_empty());
}

/// What a campaign of three variants chose and kept.
fn chosen_of_three(lab: &Lab) -> (Vec<String>, Value, Vec<Value>, String) {
    let chosen = &lab.events("chosen")[0];
    let tryouts = chosen["tryouts"].as_array().unwrap().iter();
    let gates = tryouts.map(|tryout| tryout["gate"].clone()).collect();
    (lab.verdicts(), chosen["first"].clone(), gates, lab.karve(&["diff"]).ends(0).stdout)
}

#[test]
fn variants_are_tried_on_several_devices_and_the_same_one_is_chosen_as_here() {
    let here = of_three();
    here.karve(&["run", "--yes"]).ends(0);
    let lab = of_three();
    let far = Far::by_command(&lab);
    far.set("devices", "__3");
    lab.karve(&["run", "--yes", "--on", "far"]).ends(0).shows(&["candidate 3 of 3"]);
    assert_eq!(chosen_of_three(&here), chosen_of_three(&lab));
    let tryouts = lab.events("chosen")[0]["tryouts"].clone();
    let times = |at: usize, key: &str| tryouts[at][key].as_array().map_or(0, Vec::len);
    // The wrong one was not read; the others were, beside the incumbent.
    assert_eq!((times(0, "values"), times(1, "values"), times(1, "incumbent")), (0, 3, 3));
    assert!(tryouts[2]["host"].as_str().is_some_and(|host| !host.is_empty()), "{tryouts}");
    assert_eq!(lab.events("device_helped").len(), 2, "each variant had a device");
    lab.karve(&["verify"]).ends(0);
    // A device that is lost while it builds costs only its own work.
    let lab = of_three();
    lab.replace("build.sh", "mkdir -p build", "sleep 0.5\nmkdir -p build");
    lab.commit();
    let far = Far::by_command(&lab);
    far.set("devices", "__3");
    let running = lab.start(&["run", "--yes", "--on", "far"]);
    wait_until("three devices work", || far.workers().len() == 3);
    kill(far.workers().last().unwrap());
    running.wait().ends(0);
    assert_eq!(chosen_of_three(&here), chosen_of_three(&lab));
    wait_until("nothing is left running", || far.running().is_empty());
}

#[test]
fn actors_of_ray_try_settings_at_the_same_time() {
    let Some(ray) = Ray::start(2) else { return };
    let lab = lab(KERNEL);
    let far = Far::by_ray(&lab, &ray, 2);
    let said = lab.karve(&["tune", "--on", "far", "--budget", "12"]).ends(0);
    said.shows(&["12 of 38 settings tried"]);
    wait_until("nothing is left running", || far.running().is_empty());
}

#[test]
fn eight_nodes_of_slurm_work_at_the_same_time() {
    let Some(slurm) = Slurm::start(8) else { return };
    let lab = slow_lab("0.6");
    let far = Far::by_slurm(&lab, &slurm, "args = [\"--exclusive\"]\n");
    // One more than there are: it waits in the queue, and nobody waits for it.
    far.set("devices", "__9");
    let running = lab.start(&["tune", "--on", "far", "--budget", "24"]);
    wait_until("all nodes work", || slurm.jobs().len() == 9 && far.workers().len() == 8);
    running.wait().ends(0).shows(&["24 of 38 settings tried"]);
    wait_until("the allocations are given back", || slurm.jobs().is_empty());
    assert_eq!(far.running(), Vec::<String>::new());
}
