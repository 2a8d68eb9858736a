//! Gains that are too good to be true, through a whole campaign. No kernel gets so far by itself,
//! so here the contract overstates the work: an honest kernel looks as if it skipped most of it.

use crate::e2e::lab::Lab;

/// A campaign in which a kernel that does everything eight times becomes one that does not.
fn campaign(flops: &str) -> Lab {
    let lab = Lab::new("cheats/project");
    let once = lab.read("kernel.c");
    lab.write("once.c", &once);
    let inner = once.replace("void product(", "static void once(");
    let slow = format!(
        "{inner}\nvoid product(int n, const float *a, const float *b, float *c) {{\n\
         for (int turn = 0; turn < 8; turn++) {{\n\
         once(n, a, b, c);\n__asm__ volatile(\"\" ::: \"memory\");\n}}\n}}\n"
    );
    lab.write("kernel.c", &slow);
    lab.script("1", "propose", "claim \"once\" \"once\" 2.0").script(
        "1",
        "implement",
        "cp once.c kernel.c\necho done",
    );
    lab.replace("karve.toml", "rounds = 100", "rounds = 1")
        .replace("karve.toml", "n=96", "n=48")
        .replace(
            "karve.toml",
            "reduction = \"n\"",
            &format!("reduction = \"n\"\nflops = \"{flops}\""),
        )
        .replace("karve.toml", "blocks_max = 24", "blocks_max = 60");
    lab.commit();
    lab
}

#[test]
fn a_kernel_that_is_faster_than_the_host_can_be_is_dropped() {
    // Far above the time of one kernel and below that of the other, on fast and on slow hosts.
    let lab = campaign("1360*n*n*n");
    lab.karve(&["run", "--yes"]).ends(0);
    let baseline = &lab.events("baseline_measured")[0];
    assert_eq!(lab.verdicts(), ["dishonest"], "{baseline}");
    lab.karve(&["show", "1"]).ends(0).shows(&["n=48", "below the roofline of this device"]);
    let roof = &baseline["roof"];
    assert!(roof["flops"].as_f64().unwrap() > 1e9, "{roof}");
}

#[test]
fn the_same_gain_is_kept_where_the_work_is_told_as_it_is() {
    let lab = campaign("2*n*n*n");
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    let settled = &lab.events("settled")[0];
    // How far it is from the reference is told wherever the round is.
    lab.karve(&["show", "1"]).ends(0).shows(&["Largest error", "Error vs parent", "| 1.000x |"]);
    let shown = lab.karve(&["show", "1", "--json"]).json();
    assert_eq!(shown["errors"][0]["tensor"], "c");
    assert!(shown["errors"][0]["beside"]["rms"].as_f64().unwrap() > 0.0);
    lab.karve(&["report"]).ends(0).shows(&["## Accuracy", "| c | n=48 |"]);
    assert!(!settled.to_string().contains("near_impossible"), "{settled}");
}

#[test]
fn work_that_is_no_amount_is_refused() {
    let lab = campaign("n - 1000");
    lab.karve(&["check"]).ends(2).complains(&["the work of the case `n=48`", "contract.flops"]);
}
