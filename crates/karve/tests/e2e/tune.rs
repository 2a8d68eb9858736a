//! `karve tune` on a kernel whose time is a function of its knobs.

use crate::e2e::lab::{KILLED, Lab, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// 5 x 8 settings, of which 38 are valid and one is wrong; A=4 and B=5 is the best.
pub(crate) const KERNEL: &str = "# karve: knob A in 1..16*2
A=1
# karve: knob B in 1..8
B=1
# karve: restrict A * B <= 96
result=$((3 + 4 + (A == 16 && B == 1)))
TIME=$((100 + (A - 4) * (A - 4) * 3 + (B - 5) * (B - 5) * 7))
";

pub(crate) fn lab(kernel: &str) -> Lab {
    let lab = Lab::new("gains");
    lab.write("kernel.sh", kernel);
    lab.commit();
    lab
}

/// The lines of the journal, without the first.
pub(crate) fn journal(lab: &Lab) -> Vec<Value> {
    let Ok(entries) = fs::read_dir(lab.path(".karve/tune")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| !path.ends_with("old.jsonl")).collect();
    paths.sort();
    let Some(path) = paths.first() else {
        return Vec::new();
    };
    let text = fs::read_to_string(path).unwrap();
    let whole = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    whole.skip(1).collect()
}

#[test]
fn readings_are_remembered_if_only_the_values_of_knobs_have_changed() {
    let lab = lab(KERNEL);
    lab.karve(&["tune", "--budget", "8"]).ends(0);
    lab.replace("kernel.sh", "B=1", "B=3");
    lab.commit();
    let said = lab.karve(&["tune", "--budget", "10"]).ends(0);
    assert!(said.stderr.contains("resuming after 8 settings"), "{said:#?}");
    let lines = journal(&lab);
    assert!((10..=11).contains(&settings(&lines).len()), "{lines:?}");
    // Other code has readings of its own.
    lab.replace("kernel.sh", "TIME=$((100", "TIME=$((120");
    lab.commit();
    let said = lab.karve(&["tune", "--budget", "4"]).ends(0);
    assert!(!said.stderr.contains("resuming"), "{said:#?}");
}

fn settings(lines: &[Value]) -> BTreeSet<String> {
    lines.iter().map(|line| line["config"].to_string()).collect()
}

#[test]
fn the_best_setting_is_found_proven_and_remembered() {
    let lab = lab(KERNEL);
    let said = lab.karve(&["tune", "--budget", "24", "--svg", "plots"]).ends(0);
    for plot in ["convergence", "importance", "pairs"] {
        let text = lab.read(&format!("plots/{plot}.svg"));
        assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"), "{text}");
    }
    fs::remove_dir_all(lab.path("plots")).unwrap();
    said.shows(&[
        "importance: ",
        "A=1 B=1",
        "24 of 38 settings tried",
        "A=4 B=5",
        "A is the default, B the best setting",
        "x as fast as A",
        "git cherry-pick refs/karve/tune/",
        " us   best ",
        "again, reading 2",
        "need not add up",
    ]);
    let lines = journal(&lab);
    assert_eq!(settings(&lines).len(), 24);
    assert_eq!(lines[0]["config"], serde_json::json!({"A": "1", "B": "1"}));
    let refs = lab.git(&["for-each-ref", "--format=%(refname)", "refs/karve/tune"]);
    lab.git(&["cherry-pick", refs.trim()]);
    let kernel = lab.read("kernel.sh");
    assert!(kernel.contains("A=4\n") && kernel.contains("B=5\n"), "{kernel}");
}

#[test]
fn a_second_run_goes_on_and_repeats_nothing() {
    let lab = lab(KERNEL);
    lab.karve(&["tune", "--budget", "6"]).ends(0);
    let before = journal(&lab);
    let said = lab.karve(&["tune", "--budget", "9"]).ends(0);
    assert!(said.stderr.contains("resuming after 6 settings"), "{said:#?}");
    let after = journal(&lab);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(settings(&after).len(), 9);
    lab.karve(&["tune", "--budget", "9"]).ends(0);
    assert_eq!(journal(&lab).len(), after.len());
    lab.karve(&["tune", "--budget", "2", "--fresh"]).ends(0);
    assert_eq!(settings(&journal(&lab)).len(), 2);
}

#[test]
fn a_run_that_was_killed_loses_nothing() {
    let lab = lab(KERNEL);
    let running = lab.start(&["tune", "--budget", "20"]);
    wait_until("some readings are there", || journal(&lab).len() >= 6);
    assert_eq!(running.kill().code, KILLED);
    let before = journal(&lab);
    // As if it had died in the middle of a line.
    let dir = fs::read_dir(lab.path(".karve/tune")).unwrap();
    let path = dir.map(|entry| entry.unwrap().path()).next().unwrap();
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("{\"kind\":\"read\",\"conf");
    fs::write(&path, text).unwrap();
    lab.karve(&["tune", "--budget", "20"]).ends(0).shows(&["20 of 38"]);
    let after = journal(&lab);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(settings(&after).len(), 20);
    let trees = lab.git(&["worktree", "list"]);
    assert_eq!(trees.lines().count(), 1, "{trees}");
}

#[test]
fn a_kernel_that_cannot_be_tuned_as_it_stands_is_told() {
    let lab = lab(&KERNEL.replace("in 1..8", "in 8..1"));
    lab.karve(&["tune"]).ends(2).complains(&["a knob is declared like", "kernel.sh"]);
    lab.write("kernel.sh", &KERNEL.replace("A=1\n", "A=16\n"));
    lab.commit();
    lab.karve(&["tune"]).ends(3).complains(&["the unchanged kernel fails its gate", "karve check"]);
}

#[test]
fn what_cannot_be_tuned_is_refused_before_anything_runs() {
    for (from, to, parts) in [
        ("A * B <= 96", "A > 16", ["no setting satisfies `A > 16`", "karve: restrict"]),
        ("A * B <= 96", "A * C <= 96", ["`C` is not a knob; there are A, B", "kernel.sh"]),
        ("A * B <= 96", "A * (B <= 96", ["a `)` is missing", "karve: restrict"]),
        ("# karve: knob", "# a knob", ["declare no knobs", "karve: knob TILE"]),
    ] {
        let lab = lab(&KERNEL.replace(from, to));
        let said = lab.karve(&["tune"]).ends(2);
        let reported = parts[0];
        assert!(said.stderr.contains(reported), "{reported}: {said:#?}");
        assert!(journal(&lab).is_empty());
    }
    let lab = lab(&KERNEL.replace("A * B <= 96", "A % (B - 1) == 0"));
    let said = lab.karve(&["tune", "--budget", "2"]).ends(0);
    for part in ["divides by zero", "a restriction forbids the default"] {
        assert!(said.stderr.contains(part), "{said:#?}");
    }
}

#[test]
fn knobs_that_change_nothing_are_told() {
    let idle = KERNEL.replace("A=1\n", "# A 1\n").replace("B=1\n", "# B 1\n");
    let lab = lab(&idle.replace("result=", "A=1\nB=1\nresult="));
    let said = lab.karve(&["tune", "--budget", "8"]).ends(0);
    assert!(said.stderr.contains("no knob changed the build output"), "{said:#?}");
    said.shows(&["the default is the best", "too few to rely on it"]);
}

#[test]
fn a_value_that_changes_nothing_of_what_is_built_stays_as_it_was() {
    let idle = KERNEL.replace("B=1\n", "# B 1\n");
    let lab = lab(&idle.replace("result=", "B=5\nresult="));
    lab.karve(&["tune", "--budget", "16"]).ends(0);
    let refs = lab.git(&["for-each-ref", "--format=%(refname)", "refs/karve/tune"]);
    lab.git(&["cherry-pick", refs.trim()]);
    let kernel = lab.read("kernel.sh");
    assert!(kernel.contains("A=4\n") && kernel.contains("# B 1\n"), "{kernel}");
}

#[test]
fn where_the_duel_sees_no_difference_the_default_stays() {
    // Two settings of which neither is faster; which looks better is chance.
    let kernel = "# karve: knob A in 1,2\nA=1\nresult=7\n\
                  TIME=$((1000 + (A == 1) + $(od -An -N1 -tu1 /dev/urandom) % 3))\n";
    let lab = lab(kernel);
    let said = lab.karve(&["tune", "--budget", "2"]).ends(0);
    let stays = said.stdout.contains("the default stays: the duel")
        || said.stdout.contains("the default is the best");
    assert!(stays, "{said:#?}");
    assert!(!said.stdout.contains("apply it with"), "{said:#?}");
    assert!(!said.stdout.contains("more --pairs"), "{said:#?}");
}

/// The same with the best settings wrong where nobody looks before the end.
fn wrong_on_hidden(settings: &str) -> String {
    KERNEL.replace(
        "result=$((3 + 4 +",
        &format!("result=$((3 + 4 + ({settings}) * (${{1#n=}} == 3) +"),
    )
}

#[test]
fn the_next_best_is_taken_where_the_best_is_wrong_on_a_hidden_case() {
    let lab = lab(&wrong_on_hidden("A == 4 && B == 5"));
    let said = lab.karve(&["tune", "--budget", "38"]).ends(0);
    assert!(said.stderr.contains("is wrong on a hidden case"), "{said:#?}");
    assert!(!said.stderr.contains("n=3"), "{said:#?}");
    let said = said.shows(&["38 of 38 settings tried, 2 failed", "apply it with"]);
    assert!(!said.stdout.contains("n=3"), "{said:#?}");
    let refs = lab.git(&["for-each-ref", "--format=%(refname)", "refs/karve/tune"]);
    lab.git(&["cherry-pick", refs.trim()]);
    // 3 * (2 - 4)^2 is more than 7 * (4 - 5)^2.
    let kernel = lab.read("kernel.sh");
    let next = kernel.contains("A=4\n") && !kernel.contains("B=5\n");
    assert!(next, "{kernel}");
    let reported = "it is wrong on a hidden case";
    assert!(journal(&lab).iter().any(|line| line["why"] == reported));
    // When all of the best are wrong, nothing is taken over.
    lab.write("kernel.sh", &wrong_on_hidden("A != 1 || B != 1"));
    lab.commit();
    let said = lab.karve(&["tune", "--budget", "8", "--fresh"]).ends(0);
    assert!(said.stderr.contains("3 settings that looked better"), "{said:#?}");
    assert!(!said.stdout.contains("apply it with"), "{said:#?}");
}

#[test]
fn in_a_campaign_the_next_best_is_taken_as_well() {
    let lab = ladder();
    lab.write("better.sh", &wrong_on_hidden("A == 4 && B == 5"));
    lab.commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    let kernel = lab.git(&["show", "optimize/toy:kernel.sh"]);
    assert!(kernel.contains("A=4\n"), "{kernel}");
    // What was set is told wherever the round is.
    let next = if kernel.contains("B=4\n") { "A=4, B=4" } else { "A=4, B=6" };
    lab.karve(&["log"]).ends(0).shows(&[&format!("set {next}")]);
    let message = lab.git(&["log", "-1", "--format=%B", "optimize/toy"]);
    assert!(message.contains(&format!("Set: {next}")), "{message}");
    let report = lab.karve(&["report"]).ends(0);
    assert!(report.stdout.contains("Round 1 sets A=4"), "{report:#?}");
}

#[test]
fn a_long_restriction_is_not_told_in_full() {
    let deep = format!("{}A{} <= 96", "(".repeat(50_000), ")".repeat(50_000));
    let lab = lab(&KERNEL.replace("A * B <= 96", &deep));
    let said = lab.karve(&["tune"]).ends(2);
    assert!(said.stderr.len() < 2_000, "{}", said.stderr.len());
}

#[test]
fn a_measured_space_needs_no_device() {
    let lab = Lab::unversioned("gains");
    let mut space = String::from("A,B,valid,time\n");
    for a in 1..=20 {
        for b in 1..=20 {
            let time = 1 + (a - 13_i32).pow(2) + (b - 4_i32).pow(2);
            space += &format!("{a},{b},{},{time}\n", u8::from(a + b < 38));
        }
    }
    lab.write("space.csv", &space);
    let play = |extra: &[&str]| {
        let mut args = vec!["tune", "--simulate", "space.csv", "--budget", "40"];
        args.extend(extra);
        lab.karve(&args)
    };
    play(&[]).ends(0).shows(&["400 settings", "at the end   100.0% of the optimum"]);
    play(&["--strategy", "random"]).ends(0).shows(&["by random"]);
    let more = ["tune", "--simulate", "space.csv", "--budget", "5000"];
    let said = lab.karve(&more).ends(0);
    let said = said.shows(&["400 settings, 400 of them tried", "after  256"]);
    assert!(!said.stdout.contains("after  512"), "{said:#?}");
    play(&["--strategy", "luck"]).ends(2).complains(&["auto, random, local"]);
    lab.write("space.csv", "A,B\n1,2\n");
    play(&[]).ends(2).complains(&["there is no column named time", "docs/tune.md"]);
}

#[test]
fn a_rate_is_shown_as_it_is_and_more_of_it_is_better() {
    let lab = lab(KERNEL);
    let rate = "unit = \"GFLOPS\"\nbetter = \"higher\"";
    lab.replace("karve.toml", "unit = \"us\"", rate).commit();
    let said = lab.karve(&["tune", "--budget", "12"]).ends(0);
    // Only settings with A=16 read above 500.
    let said = said.shows(&["A=16 ", "x as fast as A"]);
    let lines = said.stdout.lines();
    let first = lines.skip_while(|line| !line.contains("settings tried")).nth(2);
    assert!(
        first.is_some_and(|line| line.trim().starts_with("5") && line.contains("A=16")),
        "{said:#?}"
    );
}

/// One knob for each way in which a kernel gets to know it. All are best at 3, the flag when on.
const DELIVERED: &str = r#"
[[knobs]]
name = "BY_ENVIRONMENT"
values = ["1..3"]
file = "knobs.env"
deliver = "environment"

[[knobs]]
name = "BY_ARGUMENT"
values = [1, 2, 3]
file = "knobs.env"
deliver = "argument"

[[knobs]]
name = "BY_JSON"
values = [1, 2, 3]
file = "knobs.json"
deliver = "json"
key = "kernel.steps"

[[knobs]]
name = "BY_TEMPLATE"
values = [1, 2, 3]
file = "part.sh.in"
deliver = "placeholder"
when = "BY_JSON > 1"

[[knobs]]
name = "FLAGS"
flags = ["-fast"]
file = "knobs.env"

[tune]
restrictions = ["BY_ENVIRONMENT != 2"]
budget = 60
strategy = "random"
"#;

/// A kernel with a knob of each kind of delivery.
fn delivered() -> Lab {
    let lab = Lab::new("gains");
    lab.write(
        "kernel.sh",
        ". ./part.sh
json=$(sed -n 's/.*\"steps\": *\\([0-9]*\\).*/\\1/p' knobs.json)
slow=1; grep -q -e 'FLAGS=.*-fast' knobs.env && slow=0
result=7
TIME=$((100 + 40 * (12 - BY_ENVIRONMENT - given - json - part) + 40 * slow))
",
    );
    lab.write("part.sh.in", "part=@BY_TEMPLATE=1@ # not @OTHER@\n");
    lab.write("knobs.env", "BY_ENVIRONMENT=1\nBY_ARGUMENT=1\nFLAGS=-plain\n");
    lab.write("knobs.json", "{\"kernel\": {\"steps\": 1}}\n");
    let toml = lab.read("karve.toml");
    lab.write("karve.toml", &format!("{toml}{DELIVERED}"));
    lab.replace("karve.toml", "[\"kernel.sh\"", "[\"kernel.sh\", \"knobs.*\", \"part.sh.in\"");
    lab.replace("karve.toml", "[\"build/kernel.sh\"]", "[\"build/*\", \"part.sh\", \"knobs.env\"]");
    lab.replace("karve.toml", "test = \"", "test = \"given={BY_ARGUMENT} ");
    lab.replace("karve.toml", "bench = \"", "bench = \"given={BY_ARGUMENT} ");
    lab.commit();
    lab
}

#[test]
fn knobs_that_nothing_names_and_files_that_are_no_json_are_told() {
    let lab = delivered();
    let repaired = lab.read("karve.toml");
    lab.write("karve.toml", &repaired.replace("given={BY_ARGUMENT}", "given=1"));
    lab.commit();
    let said = lab.karve(&["tune", "--budget", "1"]);
    assert!(said.stderr.contains("no command uses {BY_ARGUMENT}"), "{said:#?}");
    let said = lab.karve(&["doctor"]);
    said.shows(&["no command uses {BY_ARGUMENT}"]);
    lab.write("karve.toml", &repaired);
    lab.write("knobs.json", "{\"kernel\": {\"steps\" 1}}\n");
    lab.commit();
    let said = lab.karve(&["tune"]).ends(2);
    said.complains(&["knobs.json is not valid JSON: expected `:` at line 1", "karve.toml"]);
}

#[test]
fn a_knob_reaches_the_kernel_in_every_way() {
    let lab = delivered();
    let said = lab.karve(&["tune"]).ends(0);
    // 2 x 3 x (1 + 2 x 3) x 2: the template's knob matters only where the other is above 1.
    said.shows(&["60 of 84 settings tried, 0 failed"]);
    let said = lab.karve(&["tune", "--budget", "84", "--resume"]).ends(0);
    let best = "BY_ARGUMENT=3 BY_ENVIRONMENT=3 BY_JSON=3 BY_TEMPLATE=3 FLAGS_fast=on";
    said.shows(&["84 of 84 settings tried, 0 failed", best, "x as fast as A"]);
    let refs = lab.git(&["for-each-ref", "--format=%(refname)", "refs/karve/tune"]);
    lab.git(&["cherry-pick", refs.trim()]);
    assert_eq!(lab.read("knobs.json"), "{\"kernel\": {\"steps\": 3}}\n");
    assert!(lab.read("part.sh.in").contains("@BY_TEMPLATE=3@ # not @OTHER@"));
    assert!(lab.read("knobs.env").contains("FLAGS=-plain -fast\n"));
    // A value that nobody declared is not passed on.
    lab.write("knobs.env", "BY_ENVIRONMENT=9\nBY_ARGUMENT=1\nFLAGS=-plain\n");
    lab.commit();
    lab.karve(&["check"]).ends(1).shows(&["BY_ENVIRONMENT", "of its values"]);
}

#[test]
fn several_devices_are_used_at_the_same_time_and_no_setting_twice() {
    // Both devices are needed at the same time: each waits for the other, once.
    let meets = "if [ ! -e \"$MEET/both\" ]; then
touch \"$MEET/$DEVICE\"
while [ ! -e \"$MEET/one\" ] || [ ! -e \"$MEET/two\" ]; do sleep 0.05; done
touch \"$MEET/both\"
fi
";
    let lab = Lab::new("gains");
    let place = lab.beside("meet");
    fs::create_dir_all(&place).unwrap();
    lab.write("kernel.sh", KERNEL);
    let bench = lab.read("bench.sh");
    lab.write("bench.sh", &format!("{meets}{bench}"));
    let pool = format!(
        "\n[sandbox]\nmode = \"off\"\n[commands.env]\nMEET = '{}'\n\
         [[tune.pool]]\ndevice = \"one\"\nenv = {{ DEVICE = \"one\" }}\n\
         [[tune.pool]]\ndevice = \"two\"\nenv = {{ DEVICE = \"two\" }}\n",
        place.display()
    );
    let toml = lab.read("karve.toml");
    lab.write("karve.toml", &format!("{toml}{pool}"));
    lab.commit();
    let said = lab.karve(&["tune", "--budget", "24"]).ends(0);
    let said = said.shows(&["24 of 38 settings tried", "A=4 B=5", "x as fast as A"]);
    assert!(said.stderr.contains("2 settings at the same time"), "{said:#?}");
    let lines = journal(&lab);
    assert_eq!(settings(&lines).len(), 24);
    let trees = lab.git(&["worktree", "list"]);
    assert_eq!(trees.lines().count(), 1, "{trees}");
    // Builds go on beside readings, and a second run goes on where the first was.
    let said = lab.karve(&["tune", "--budget", "30", "--jobs", "3"]).ends(0);
    said.shows(&["30 of 38 settings tried"]);
    let after = journal(&lab);
    assert_eq!(after[..lines.len()], lines[..]);
}

#[test]
fn what_was_best_elsewhere_is_tried_first() {
    let lab = lab(KERNEL);
    lab.write("space.csv", "A,B,valid,time\n4,5,1,100\n2,5,1,112\n16,1,1,900\n9,9,1,1\n");
    let said = lab.karve(&["tune", "--budget", "3", "--like", "space.csv"]).ends(0);
    let said = said.shows(&["A=4 B=5", "A=2 B=5", "3 of 38"]);
    assert!(said.stderr.contains("3 settings first that were best elsewhere"), "{said:#?}");
    // Another kernel with the same knobs begins with what was best for this one.
    lab.write("kernel.sh", &format!("{KERNEL}# another\n"));
    lab.commit();
    let said = lab.karve(&["tune", "--budget", "2"]).ends(0);
    said.shows(&["A=4 B=5", "2 of 38"]);
    let none = lab.karve(&["tune", "--like", "none.csv"]).ends(2);
    none.complains(&["none.csv", "docs/tune.md"]);
}

#[test]
fn few_settings_serve_many_cases() {
    let kernel = "# karve: knob A in 1,2,4,8\nA=8\nresult=7\nn=${1#n=}\n\
                  TIME=$((10 + (A - n) * (A - n)))\n";
    let lab = Lab::new("gains");
    lab.write("kernel.sh", kernel);
    lab.replace("karve.toml", "list = [\"n=1\"]", "list = [\"n=1\", \"n=2\", \"n=4\"]");
    lab.commit();
    let said = lab.karve(&["tune", "--budget", "4", "--portfolio", "8"]).ends(0);
    said.shows(&[
        "3 settings cover all cases: the worst at 100.0%",
        "A=1   for n=1",
        "A=2   for n=2",
        "A=4   for n=4",
    ]);
    // From what was read before. Alone, A=2 serves n=4 worst: 10 of 14.
    let args = ["tune", "--budget", "4", "--portfolio", "1", "--aim", "worst"];
    let said = lab.karve(&args).ends(0);
    said.shows(&["one setting covers all cases: the worst at 71.4%", "A=2   for n=1 n=2 n=4"]);
    lab.karve(&["tune", "--aim", "best", "--portfolio", "2"]).ends(2).complains(&["worst or mean"]);
}

#[test]
fn what_was_read_is_a_measured_space_for_others() {
    let lab = lab(KERNEL);
    for name in ["space.csv", "space.json", "space.t4.json.gz"] {
        lab.karve(&["tune", "--budget", "38", "--export", name]).ends(0);
        let said = lab.karve(&["tune", "--simulate", name, "--budget", "38"]).ends(0);
        said.shows(&["38 settings", "at the end   100.0% of the optimum"]);
    }
    let table = lab.read("space.csv");
    assert!(table.contains("\n4,5,1,0.1\n"), "milliseconds: {table}");
    assert!(table.contains("\n16,1,0,\n"), "no time: {table}");
    assert!(lab.read("space.json").contains("\"A\""));
    lab.karve(&["tune", "--export", "space.xls"]).ends(2).complains(&[".t4.json"]);
}

/// An agent's kernel with knobs, of which its own setting is not the best.
fn ladder() -> Lab {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.script("1", "propose", "claim tiles 'fewer misses' 1.2");
    lab.write("better.sh", KERNEL);
    lab.script("1", "implement", "cat better.sh >kernel.sh; echo done");
    lab.write("kernel.sh", "result=$((3 + 4))\nTIME=260\n");
    lab.commit();
    lab
}

#[test]
fn in_a_campaign_the_knobs_of_a_candidate_are_tuned_before_it_is_measured() {
    let lab = ladder();
    lab.karve(&["run", "--yes"]).ends(0).shows(&[
        "tuned     round 1: 38 settings",
        "the best looks 2.60x as fast as the incumbent",
    ]);
    assert_eq!(lab.verdicts(), ["keep"]);
    let rungs: Vec<String> = lab
        .events("tuned")
        .iter()
        .map(|event| event["tuned"]["rung"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(rungs, ["hand_picked", "few", "coarse"]);
    let kernel = lab.git(&["show", "optimize/toy:kernel.sh"]);
    assert!(kernel.contains("A=4\n") && kernel.contains("B=5\n"), "{kernel}");
    // The setting was gated like any other candidate, and measured once.
    let gated = lab.events("gated");
    assert!(gated.iter().all(|event| event["gate"]["gate"] == "passed"));
    assert_eq!(lab.events("proposed").len(), 1, "one sweep is one hypothesis");
    let trees = lab.git(&["worktree", "list"]);
    assert_eq!(trees.lines().count(), 1, "{trees}");
}

#[test]
fn a_campaign_that_was_killed_while_tuning_repeats_no_setting() {
    let lab = ladder();
    let readings = || {
        let dir = lab.path(".karve/toy/tune");
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        let lines: Vec<String> = texts
            .flat_map(|text| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>())
            .collect();
        lines
    };
    let running = lab.start(&["run", "--yes"]);
    wait_until("some settings were tried", || readings().len() >= 12);
    assert_eq!(running.kill().code, KILLED);
    let before = readings();
    lab.karve(&["run"]).ends(0);
    let after = readings();
    assert_eq!(after[..before.len()], before[..]);
    let first = |line: &&String| !line.contains("\"value\"") || line.contains("\"failed\"");
    assert_eq!(lab.verdicts(), ["keep"]);
    let parsed: Vec<Value> = after.iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(settings(&parsed).len(), 38);
    assert_eq!(after.iter().filter(first).count(), 1, "one setting is wrong, once");
}

#[test]
fn a_candidate_that_is_not_promising_is_not_tuned_and_the_share_may_be_none() {
    let lab = ladder();
    lab.write("better.sh", &KERNEL.replace("100 +", "450 +"));
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.events("tuned").len(), 1);
    assert_eq!(lab.verdicts(), ["regressed"], "{:?}", lab.events("settled"));
    let lab = ladder();
    let toml = lab.read("karve.toml");
    lab.write("karve.toml", &format!("{toml}\n[policy.tune]\nshare = 0.0\n"));
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.events("tuned").len(), 0);
}

#[test]
fn a_candidate_that_is_a_setting_is_measured_as_it_was_set() {
    let lab = lab(KERNEL);
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.script("1", "propose", "claim set 'fewer misses' 1.2");
    lab.script("1", "implement", "edit s/^B=.*/B=4/; echo done");
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.events("tuned").len(), 0);
    assert_eq!(lab.verdicts(), ["keep"]);
    assert!(lab.git(&["show", "optimize/toy:kernel.sh"]).contains("A=1\n"));
}

#[test]
fn the_built_in_strategy_tunes_all_knobs_in_one_round() {
    let lab = lab(KERNEL);
    lab.karve(&["run", "--yes", "--agent", "builtin", "--rounds", "2"])
        .ends(0)
        .shows(&["tune all 2 knobs", "tuned     round 1: 38 settings"]);
    assert_eq!(lab.verdicts()[0], "keep");
    let kernel = lab.git(&["show", "optimize/toy:kernel.sh"]);
    assert!(kernel.contains("A=4\n") && kernel.contains("B=5\n"), "{kernel}");
}

#[test]
fn a_build_that_cannot_go_on_from_an_earlier_one_is_not_trusted_with_it() {
    // Settings that are built from nothing, of 20: those that were compared, or all.
    let check = |build: &str, stale: bool| {
        let lab = lab(KERNEL);
        let built = lab.beside("built");
        lab.write("build.sh", &format!("pwd >>'{}'\n{build}\n", built.display()));
        let toml = lab.read("karve.toml");
        lab.write("karve.toml", &format!("{toml}\n[sandbox]\nmode = \"off\"\n"));
        lab.commit();
        let said = lab.karve(&["tune", "--budget", "20"]).ends(0);
        let said = said.shows(&["20 of 38 settings tried", "A=4 B=5", "x as fast as A"]);
        let reported = said.stderr.contains("built from scratch");
        assert_eq!(reported, stale, "{said:#?}");
        let built = fs::read_to_string(built).unwrap();
        let copies = built.lines().filter(|path| path.contains("/copies/")).count();
        (copies, built.lines().count() - copies)
    };
    let sound = "mkdir -p build && cp kernel.sh build/kernel.sh";
    let (copies, others) = check(sound, false);
    assert!(copies > 15 && others < 12, "{copies} {others}");
    let stale = "mkdir -p build && test -e build/kernel.sh || cp kernel.sh build/kernel.sh";
    let (copies, others) = check(stale, true);
    assert!(copies < 4 && others > 18, "{copies} {others}");
}
