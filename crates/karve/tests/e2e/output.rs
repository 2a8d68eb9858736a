//! Benchmarks whose output cannot be used: each ends its round with a reason, and is kept.

use crate::e2e::lab::Lab;
use crate::e2e::tidy::is_tidy;
use std::fs;

/// What a candidate makes of its benchmark, a part of the reason, and a part of what is kept.
const BAD: [[&str; 3]; 8] = [
    ["s/TIME=.*/TIME=NaN/", "is NaN", "METRIC time_us=NaN"],
    ["s/TIME=.*/TIME=0/", "time_us is 0, which is impossible", "METRIC time_us=0"],
    ["s/TIME=.*/TIME=-5/", "is -5; it must not be negative", "METRIC time_us=-5"],
    ["s/TIME=.*/TIME=/", "cannot read the benchmark's output: line 1", "METRIC time_us= case"],
    ["s/TIME=.*/TIME=50\\nset -- n=9/", "has no row for n=1, but one for \"n=9\"", "case=n=9"],
    [
        "s/TIME=.*/TIME=50\\nBENCH echo METRIC time_us=40 case=n=1/",
        "of the same case is already on line 1",
        "METRIC time_us=40",
    ],
    [
        "s/TIME=.*/TIME=50\\nBENCH echo half a line; BENCH kill -9 $$/",
        ": half a line",
        "half a line",
    ],
    [
        "s/TIME=.*/TIME=99000000/",
        "it reports 99000000 us, but the whole command took",
        "METRIC time_us=99000000",
    ],
];

#[test]
fn output_that_cannot_be_used_ends_the_round_with_a_reason_and_is_kept() {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    for (index, [edit, ..]) in BAD.iter().enumerate() {
        let round = (index + 1).to_string();
        let claim = format!("claim \"way {round} to lie\" \"reason {round} of its own\" 2.0");
        // What the kernel does in its benchmark, it does not do in its test.
        let edit = edit.replace("BENCH", "[ \"$0\" != bench.sh ] ||");
        lab.script(&round, "propose", &claim).script(
            &round,
            "implement",
            &format!("edit '{edit}'\necho done"),
        );
    }
    lab.commit().karve(&["run", "--yes"]).ends(0);
    let failed = lab.events("block_failed");
    assert_eq!(failed.len(), BAD.len(), "{failed:#?}");
    assert!(lab.verdicts().iter().all(|verdict| verdict != "keep"));
    for (index, ([_, reason, kept], event)) in BAD.iter().zip(&failed).enumerate() {
        let gate = event["gate"].to_string().replace("\\\"", "\"");
        assert!(gate.contains(reason), "{reason:?} is not in {gate}");
        let hash = event["raw"].as_str().expect("the output is kept");
        let raw = fs::read_to_string(lab.campaign("artifacts").join(hash)).unwrap();
        assert!(raw.contains(kept), "{kept:?} is not in {raw}");
        let derived = format!("rounds/round-{}/artifacts/raw_output.txt", index + 1);
        assert_eq!(fs::read_to_string(lab.campaign(&derived)).unwrap(), raw);
    }
    // Whether a shell stands between them decides how a death by signal is told.
    let killed = failed[6]["gate"]["excerpt"].as_str().unwrap();
    let reported = ["ended by signal 9", "exit code 137"];
    assert!(reported.iter().any(|how| killed.starts_with(how)), "{killed}");
    lab.karve(&["verify"]).ends(0);
    is_tidy(&lab);
    let lost = failed[0]["raw"].as_str().unwrap();
    fs::remove_file(lab.campaign("artifacts").join(lost)).unwrap();
    lab.karve(&["verify"]).ends(1).shows(&[lost]);
}

#[test]
fn output_of_the_unchanged_kernel_that_cannot_be_used_is_kept_too() {
    let lab = Lab::new("gains");
    lab.replace("bench.sh", "time_us=$TIME", "time_us=soon").commit();
    lab.karve(&["run", "--yes"]).ends(1).complains(&["the unchanged kernel fails", "line 1"]);
    let hash = lab.events("baseline_measured")[0]["raw"].clone();
    let raw = lab.campaign("artifacts").join(hash.as_str().unwrap());
    let raw = fs::read_to_string(raw).unwrap();
    assert!(raw.contains("METRIC time_us=soon"), "{raw}");
}

#[test]
fn more_than_a_mebibyte_of_output_is_not_kept() {
    let lab = Lab::new("gains");
    let flood = "if [ \"$TIME\" = 50 ]; then\n    head -c 3000000 /dev/zero | tr '\\0' x\n\
                 \x20   echo\n    TIME=NaN\nfi\necho";
    lab.replace("bench.sh", "\necho", &format!("\n{flood}"));
    lab.commit().karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let hash = lab.events("block_failed")[0]["raw"].clone();
    let raw = lab.campaign("artifacts").join(hash.as_str().unwrap());
    let raw = fs::read_to_string(raw).unwrap();
    assert!(raw.len() <= 1 << 20, "{}", raw.len());
    assert!(raw.contains("bytes left out]"));
    assert!(raw.contains("METRIC time_us=NaN"), "the end is there");
}
