//! `karve bench` and `karve noise` on commands and revisions.
//!
//! Most commands print their own time, so that a test has no noise; two are timed for real.

use crate::e2e::lab::{Lab, Said};
use std::fs;
use std::process::Command;

/// Options that read what a command prints.
const PRINTED: [&str; 3] = ["bench", "--metric", "time_us"];

fn bench(lab: &Lab, options: &[&str], commands: [&str; 2]) -> Said {
    let mut args = PRINTED.to_vec();
    args.extend(options);
    args.push("--");
    args.extend(commands);
    lab.karve(&args)
}

fn prints(time: &str) -> String {
    format!("echo METRIC time_us={time}")
}

fn compare(lab: &Lab, options: &[&str], times: [&str; 2]) -> Said {
    let [a, b] = times.map(prints);
    bench(lab, options, [&a, &b])
}

#[test]
fn commands_are_faster_slower_or_the_same() {
    let lab = Lab::unversioned("gains");
    for (times, words) in [
        (["100", "80"], "B is 25.0% faster than A"),
        (["80", "100"], "B is 25.0% slower than A"),
        (["100", "100"], "no difference of 2% or more"),
        (["100", "101"], "no difference of 2% or more"),
    ] {
        let said = compare(&lab, &[], times).ends(0);
        assert_eq!(said.stdout.lines().next(), Some(words), "{said:#?}");
        said.shows(&["ratio ", "A median", "four times out of five", "host "]);
    }
    compare(&lab, &["--min-effect", "30%"], ["100", "80"])
        .ends(0)
        .shows(&["no difference of 30% or more"]);
}

#[test]
fn a_command_that_leaves_a_process_behind_is_not_measured() {
    let lab = Lab::unversioned("gains");
    // It leaves its control group if it may, its session and its environment.
    let leave = "for g in /sys/fs/cgroup /sys/fs/cgroup/unified; do \
                 echo $$ > $g/cgroup.procs 2>/dev/null; done; echo $$ > pid; exec sleep 1000";
    lab.write("leave.sh", leave);
    let b = "(setsid env -i /bin/sh leave.sh >/dev/null 2>&1 &); \
             until [ -s pid ]; do sleep 0.01; done; echo METRIC time_us=50";
    let said = bench(&lab, &[], [&prints("100"), b]);
    said.ends(3).complains(&["left other processes running"]);
    let pid = lab.read("pid");
    let comm = fs::read_to_string(format!("/proc/{}/comm", pid.trim())).unwrap_or_default();
    assert_ne!(comm.trim(), "sleep", "it was ended");
}

#[test]
fn cases_fill_the_commands_and_each_has_its_row() {
    let lab = Lab::unversioned("gains");
    let line = |factor: u32| format!("echo METRIC time_us=$(({{n}} * {factor}))");
    let cases = ["--case", "n=3", "--case", "n=5"];
    let said = bench(&lab, &cases, [&line(10), &line(5)]).ends(0);
    said.shows(&["100.0% faster", "n=3  ", "n=5  "]);
    let twice = bench(&lab, &["--case", "x", "--case", "x"], ["a {case}", "b"]);
    twice.ends(2).complains(&["given twice"]);
    let blind = lab.karve(&["bench", "--case", "n=1", "--", "true", "true"]);
    blind.ends(2).complains(&["does not use the case"]);
    let missing = lab.karve(&["bench", "--", "echo {case}", "true"]);
    missing.ends(2).complains(&["--case NAME"]);
}

#[test]
fn a_case_without_a_finding_points_at_every_case() {
    let lab = Lab::unversioned("gains");
    let slow = "case {n} in 1) t=200;; *) t=$((100 + {seed} % 7));; esac; echo METRIC time_us=$t";
    let fast = "case {n} in 1) t=20;; *) t=$((100 + {seed} % 5));; esac; echo METRIC time_us=$t";
    let cases = ["--case", "n=1", "--case", "n=2"];
    let said = bench(&lab, &cases, [slow, fast]).ends(0);
    said.shows(&["x as fast as A", "--every-case continues"]);
}

#[test]
fn a_rate_is_better_when_it_is_higher() {
    let lab = Lab::unversioned("gains");
    let line = |rate: u32| format!("echo METRIC speed={rate}");
    let (a, b) = (line(10), line(12));
    let args = |extra: &[&'static str]| {
        let mut args = vec!["bench", "--metric", "speed"];
        args.extend(extra);
        args.extend(["--"]);
        args
    };
    let mut unclear = args(&[]);
    unclear.extend([a.as_str(), b.as_str()]);
    lab.karve(&unclear).ends(2).complains(&["--better"]);
    let mut clear = args(&["--better", "higher"]);
    clear.extend([a.as_str(), b.as_str()]);
    lab.karve(&clear).ends(0).shows(&["20.0% faster"]);
}

#[test]
fn what_cannot_be_measured_is_named_and_ends_with_3() {
    let lab = Lab::unversioned("gains");
    let good = prints("100");
    for (bad, parts) in [
        ("echo METRIC time_us=nan", &["B", "cannot be measured"][..]),
        ("echo METRIC time_us=0", &["time_us is 0"]),
        ("echo METRIC time_us=-5", &["is -5; it must not be negative"]),
        ("echo METRIC other=5", &["has no time_us"]),
        ("true", &["cannot be measured"]),
        ("echo METRIC time_us=9e12", &["the whole command took"]),
        ("echo oops; exit 3", &["exit code 3", "oops"]),
        ("kill -9 $$", &["signal 9"]),
        ("./is-not-there", &["exit code 127", "is-not-there"]),
    ] {
        bench(&lab, &[], [&good, bad]).ends(3).complains(parts);
        bench(&lab, &[], [bad, &good]).ends(3).complains(&["A (", "cannot"]);
    }
    // A case list that changes on the way.
    let flips = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; \
                 if [ $n -lt 3 ]; then echo METRIC time_us=1; else echo METRIC x=1; fi";
    bench(&lab, &[], [&good, flips]).ends(3).complains(&["B (n=$(cat n", "cannot be measured"]);
}

#[test]
fn wrong_use_is_explained() {
    let lab = Lab::unversioned("gains");
    for (args, part) in [
        (&["bench"][..], "two sides"),
        (&["bench", "--", "true"], "two sides"),
        (&["bench", "--", "a", "b", "c"], "quote each"),
        (&["bench", "--time", "soon", "--", "a", "b"], "60s"),
        (&["bench", "--alpha", "2", "--", "a", "b"], "alpha"),
        (&["bench", "--min-effect", "0.1%", "--", "a", "b"], "from 1% to 1000%"),
        (&["bench", "--min-effect", "0", "--", "a", "b"], "from 1% to"),
        (&["bench", "--", "./old {m}", "./new {m}"], "--case m=64"),
        (&["bench", "--case", "n=1", "--", "a {n} {m}", "b {n}"], "not every case has it"),
        (&["bench", "--unit", "kg", "--", "a", "b"], "--unit s"),
        (&["bench", "--metric", "t_ms", "--format", "xml", "--", "a", "b"], "--format csv"),
        (&["bench", "--load", "karve.toml"], "is not a saved bench"),
        (&["bench", "--load", "nowhere"], "cannot read nowhere"),
        (&["noise", "--", "a", "b"], "one command"),
    ] {
        lab.karve(args).ends(2).complains(&[part]);
    }
}

#[test]
fn scripts_get_the_exit_codes_they_ask_for() {
    let lab = Lab::unversioned("gains");
    let check = |options: &[&str], times, code| {
        compare(&lab, options, times).ends(code);
    };
    check(&["--fail-if-slower", "2%"], ["100", "110"], 1);
    check(&["--fail-if-slower", "20%"], ["100", "110"], 0);
    check(&["--fail-if-slower", "2%"], ["100", "90"], 0);
    check(&["--fail-if-slower", "0%"], ["100", "101"], 1);
    check(&["--fail-unless-faster"], ["100", "90"], 0);
    check(&["--fail-unless-faster"], ["100", "100"], 1);
    check(&["--fail-unless-faster"], ["90", "100"], 1);
    // Too few pairs to prove anything are no reason to fail, but no proof of being faster either.
    check(&["--fail-if-slower", "2%", "--pairs", "8"], ["100", "200"], 0);
    check(&["--fail-unless-faster", "--pairs", "8"], ["200", "100"], 1);
}

#[test]
fn a_bench_that_is_decided_many_times_counts_its_findings() {
    let lab = Lab::unversioned("gains");
    let found = compare(&lab, &["--repeat", "3", "--json"], ["100", "80"]).ends(0).json();
    assert_eq!((&found["faster"], &found["slower"]), (&3.into(), &0.into()));
    assert_eq!(found["seconds"].as_array().map(Vec::len), Some(3));
    compare(&lab, &["--repeat", "2"], ["100", "100"])
        .ends(0)
        .shows(&["decided   2 times: 0 faster, 0 slower, 2 no difference, 0 undecided"]);
    compare(&lab, &["--repeat", "2", "--save", "x.json"], ["100", "100"]).ends(2);
}

#[test]
fn a_saved_bench_is_judged_again_and_drawn() {
    let lab = Lab::unversioned("gains");
    let options = ["--json", "--save", "saved.json", "--svg", "plots"];
    let first = compare(&lab, &options, ["100", "80"]).ends(0).json();
    let again = lab.karve(&["bench", "--load", "saved.json", "--json"]).ends(0);
    assert_eq!(first, again.json());
    lab.karve(&["bench", "--load", "saved.json", "--fail-unless-faster"]).ends(0);
    lab.karve(&["bench", "--load", "saved.json", "--markdown"]).ends(0).shows(&[
        "| case | finding |",
        "| command | faster | 1.250x |",
        "**overall**",
    ]);
    let saved = lab.read("saved.json");
    for part in ["\"warm_up\"", "\"first\"", "\"seed\"", "\"cpu_us\"", "\"pad\""] {
        assert!(saved.contains(part), "no {part} in {saved}");
    }
    for name in ["plots/evidence.svg", "plots/ratios.svg"] {
        well_formed(&lab.read(name));
    }
}

/// Every tag is closed, in order.
fn well_formed(svg: &str) {
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap();
        assert!(!text.contains(['"', '&']), "{text}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{svg}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_json_keeps_its_shape() {
    let lab = Lab::unversioned("gains");
    let json = compare(&lab, &["--json", "--fail-if-slower", "5%"], ["100", "80"]).json();
    let keys = |value: &serde_json::Value| -> String {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(
        keys(&json),
        "a b cases clocks discarded end environment finding limit metric own_share pairs rule \
         seconds smallest_percent unit version warnings words"
    );
    assert_eq!(keys(&json["finding"]), "by finding");
    assert_eq!(keys(&json["clocks"][0]["estimate"]), "high low ratio");
    assert_eq!(keys(&json["cases"][0]), "a_mean a_median b_mean b_median by case estimate finding");
    assert_eq!(
        keys(&json["rule"]),
        "alpha evidence_needed min_effect_percent null_percent pairs_max same_needed"
    );
    assert_eq!(json["finding"]["finding"], "faster");
    assert_eq!(json["limit"]["state"], "within");
    assert_eq!(json["end"], "found");
    assert_eq!(json["version"], 1);
}

#[test]
fn revisions_and_worktrees_are_built_tested_and_compared() {
    let lab = Lab::new("gains");
    lab.replace("kernel.sh", "TIME=100", "TIME=80").commit();
    lab.karve(&["bench", "HEAD~1", "HEAD"]).ends(0).shows(&[
        "B is 25.0% faster than A",
        "HEAD~1 (",
        "n=1",
        "a bench audits nothing: run \"karve audit",
    ]);
    lab.replace("kernel.sh", "TIME=80", "TIME=160");
    lab.karve(&["bench", "HEAD", "."])
        .ends(0)
        .shows(&["B is 100.0% slower than A", "with changes to kernel.sh"]);
    let left = fs::read_dir(lab.beside("tmp")).unwrap().count();
    assert_eq!(left, 0, "no worktree is left behind");
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
    lab.replace("kernel.sh", "* 3 + 1", "* 3 + 2");
    lab.karve(&["bench", "HEAD", "."]).ends(3).complains(&["B (.) fails its gate", "mismatch"]);
    lab.karve(&["bench", "HEAD", ".", "--no-test"]).ends(0);
    lab.karve(&["bench", "HEAD", "nope"]).ends(2).complains(&["is not a commit"]);
    lab.karve(&["bench", "HEAD", ".", "--case", "n=9"]).ends(2).complains(&["n=1"]);
    lab.karve(&["bench", "HEAD", ".", "--unit", "s"]).ends(2).complains(&["karve.toml"]);
}

#[test]
fn revisions_with_different_harnesses_are_refused_until_one_is_chosen() {
    let lab = Lab::new("gains");
    lab.replace("kernel.sh", "TIME=100", "TIME=80");
    lab.replace("bench.sh", "echo", "TIME=$((TIME / 2)); echo").commit();
    lab.karve(&["bench", "HEAD~1", "HEAD"]).ends(2).complains(&[
        "cannot be compared",
        "the harness: ",
        "bench.sh",
        "--harness A",
    ]);
    for side in ["A", "B"] {
        lab.karve(&["bench", "HEAD~1", "HEAD", "--harness", side])
            .ends(0)
            .shows(&["B is 25.0% faster than A"]);
    }
    lab.replace("karve.toml", "name = \"time_us\"", "name = \"other_us\"").commit();
    lab.karve(&["bench", "HEAD~1", "HEAD"]).ends(2).complains(&[
        "cannot be compared",
        "the metric: time_us for A, other_us for B",
        "--harness",
    ]);
}

#[test]
fn ctrl_c_ends_with_what_is_known_so_far() {
    let lab = Lab::unversioned("gains");
    let line = "echo x >> runs; sleep 0.02";
    let running = lab.start(&["bench", "--", line, line]);
    crate::e2e::lab::wait_until("some pairs", || {
        fs::read_to_string(lab.path("runs")).is_ok_and(|text| text.lines().count() > 6)
    });
    running.interrupt("showing the results so far");
    let said = running.wait().ends(130);
    said.shows(&["could not tell", "stopped after"]);
}

/// A program that spins, timed as a whole; `None` without a compiler.
fn spinner(lab: &Lab, name: &str, steps: u32) -> Option<String> {
    let source = format!(
        "int main(void) {{ volatile unsigned s = 1; \
         for (long i = 0; i < {steps}; i++) s = s * 5 + 1; return 0; }}"
    );
    lab.write("spin.c", &source);
    let path = lab.path(name);
    let mut cc = Command::new("cc");
    let made = cc.arg("-O1").arg(lab.path("spin.c")).arg("-o").arg(&path).status();
    made.is_ok_and(|status| status.success()).then(|| format!("./{name}"))
}

#[test]
fn real_programs_are_told_apart_and_a_byte_copy_is_not() {
    let lab = Lab::unversioned("gains");
    let (Some(slow), Some(fast)) =
        (spinner(&lab, "slow", 40_000_000), spinner(&lab, "fast", 4_000_000))
    else {
        println!("skipped: there is no C compiler");
        return;
    };
    let said = lab.karve(&["bench", "--", &slow, &fast]).ends(0);
    said.shows(&["x as fast as A"]);
    fs::copy(lab.path("fast"), lab.path("copy")).unwrap();
    let json = lab.karve(&["bench", "--pairs", "40", "--json", "--", &fast, "./copy"]);
    let found = json.ends(0).json()["finding"]["finding"].clone();
    assert!(found != "faster" && found != "slower", "{found}");
}

#[test]
fn noise_says_what_could_be_seen_and_advises_only_what_helped() {
    let lab = Lab::new("gains");
    let json = lab.karve(&["noise", "--quick", "--json"]).ends(0).json();
    assert_eq!(json["clocks"][0]["smallest"], 1.02, "{json:#}");
    assert_eq!(json["clocks"][0]["power"].as_array().unwrap().len(), 4);
    assert_eq!(json["pairs"], 30);
    let said = lab.karve(&["noise", "--quick", "--time", "20s", "--", "true"]).ends(0);
    said.shows(&["wall time", "CPU time", "at 5% ", "advice    "]);
    let said = lab.karve(&["noise", "--", "false"]).ends(3);
    let said = said.complains(&["error: \"false\" cannot be measured"]);
    assert!(!said.stderr.contains("A ("), "{said:#?}");
}

#[test]
fn confined_commands_see_the_directory_and_nothing_else() {
    if karve_os::sandbox::HostSupport::of_host().no_namespace.is_some() {
        println!("skipped: this host has no namespaces");
        return;
    }
    let lab = Lab::unversioned("gains");
    lab.write("time", "METRIC time_us=80\n");
    lab.write(".karve/old/events.jsonl", "a campaign\n");
    fs::write(lab.beside("secret"), "of the user").unwrap();
    // It prints its time only where it is confined.
    let secret = lab.beside("secret");
    let look = format!(
        "test ! -e {} && test -z \"$(ls -A .karve)\" && ! touch left 2>/dev/null && \
         touch /tmp/x && cat time",
        secret.display()
    );
    let said = bench(&lab, &["--sandbox"], [&look, &look]).ends(0);
    said.shows(&["no difference of 2% or more", "sandbox: namespaces"]);
    bench(&lab, &[], [&look, &look]).ends(3);
    assert!(!lab.path("left").exists());
    // A project that turned its sandbox off can be confined all the same.
    let lab = Lab::new("gains");
    lab.unconfined().commit();
    let json = |args: &[&str]| lab.karve(args).ends(0).json();
    let usual = json(&["bench", "HEAD", "HEAD", "--json"]);
    assert_eq!(usual["environment"]["sandbox"], serde_json::Value::Null);
    let confined = json(&["bench", "HEAD", "HEAD", "--json", "--sandbox"]);
    let layers = confined["environment"]["sandbox"].as_str().unwrap();
    assert!(layers.contains("namespaces"), "{layers}");
}
