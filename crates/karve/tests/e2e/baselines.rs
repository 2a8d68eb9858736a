//! Named baselines: measured beside the kernel, and held to the same contract.

use crate::e2e::lab::Lab;
use std::os::unix::fs::symlink;

/// The example of docs/contract.md, and one that is not right.
const CONTRACT: &str = include_str!("../../../../docs/contract.md");
const WRONG: &str = "
[baselines.wrong]
python = \"baselines/rows.py\"
function = \"wrong_fn\"
";

/// Softmax, row by row: slower than the reference; and one that forgets the last row.
const ROWS: &str = "import numpy as np
from reference import reference_fn


def kernel_fn(x):
    return np.stack([reference_fn(row[None, :])[0] for row in x])


def wrong_fn(x):
    y = reference_fn(x)
    y[-1] = 0
    return y
";

fn example() -> &'static str {
    let (_, from) = CONTRACT.split_once("## Baselines").expect("a section");
    let (_, code) = from.split_once("```toml\n").expect("an example");
    code.split_once("```").expect("its end").0
}

/// A project of a template, with the Python that has NumPy.
pub(super) fn project() -> Option<Lab> {
    let lab = Lab::empty();
    let numpy =
        std::process::Command::new("/usr/bin/python3").args(["-c", "import numpy"]).output();
    if !numpy.is_ok_and(|ran| ran.status.success()) {
        println!("skipped: /usr/bin/python3 has no NumPy");
        return None;
    }
    lab.karve(&["new", "--template", "python-numpy", "."]).ends(0);
    lab.unprofiled().configure("[device]\npressure_max = 100\n");
    let config = lab.read("karve.toml").replace("M=512,N=256", "M=64,N=64");
    let config = config.replace(
        "python = \"kernel.py\" ",
        "interpreter = \"/usr/bin/python3\"\npython = \"kernel.py\" ",
    );
    lab.write("karve.toml", &format!("{config}\n{}{WRONG}", example()));
    lab.write("baselines/rows.py", ROWS);
    lab.commit();
    Some(lab)
}

#[test]
fn a_bench_measures_every_baseline_and_names_the_fastest_correct_one() {
    let Some(lab) = project() else { return };
    let args = ["bench", "--baselines", "--pairs", "8", "--json", "--fail-unless-faster"];
    let found = lab.karve(&args).ends(1).complains(&["was not found faster"]).json();
    assert_eq!(found["fastest"], "eager");
    let [eager, rows, wrong] = &found["baselines"].as_array().unwrap()[..] else {
        panic!("{found}");
    };
    assert_eq!(eager["what"], "reference_fn of reference.py");
    let speedup = |of: &serde_json::Value| of["speedup"]["ratio"].as_f64().unwrap();
    assert!(speedup(rows) > speedup(eager), "{found}");
    assert_eq!(found["headline"], eager["speedup"]);
    assert_eq!(found["benches"]["rows"]["a"]["label"], "rows");
    assert_eq!((&eager["state"], &rows["state"]), (&"fastest".into(), &"measured".into()));
    assert!(wrong["state"] == "not correct" && wrong["speedup"].is_null(), "{wrong}");
    assert!(wrong["why"].as_str().unwrap().contains("wrong on M=64,N=64"), "{wrong}");
}

#[test]
fn a_library_is_a_baseline_too() {
    let lab = Lab::empty();
    lab.karve(&["new", "--template", "c", "."]).ends(0);
    lab.configure("[device]\npressure_max = 100\n");
    let config = lab.read("karve.toml").replace("M=192,N=192,K=192", "M=32,N=32,K=32");
    let config = config.replace(
        " reference.c\"",
        " reference.c && cc -O2 -shared -fPIC -o build/baseline.so baseline.c\"",
    );
    let plain = "\n[baselines.plain]\nlibrary = \"build/baseline.so\"\nentry = \"plain\"\n";
    let gone = "[baselines.gone]\nlibrary = \"build/gone.so\"\nentry = \"plain\"\n";
    lab.write("karve.toml", &format!("{config}{plain}{gone}"));
    let plain = lab.read("reference.c").replace("double", "float");
    lab.write("baseline.c", &plain.replace("sgemm_reference", "plain"));
    lab.commit();
    let args = ["bench", "--baselines", ".", "--pairs", "8", "--markdown", "--no-test"];
    let lost = "there is no build/gone.so, which [baselines.gone] in karve.toml names";
    lab.karve(&args).ends(2).complains(&[lost, "hint: make it with commands.build"]);
    lab.karve(&["doctor"]).ends(1).shows(&[lost]);
    lab.replace("karve.toml", gone, "[baselines.file]\npython = \"gone.py\"\n").commit();
    let run = lab.karve(&["run", "--yes", "--json"]).ends(2);
    let error = run.complains(&["there is no gone.py", "write and commit gone.py"]).json();
    assert_eq!(
        (&error["error"]["kind"], &error["error"]["exit_code"]),
        (&"usage".into(), &2.into())
    );
    lab.replace("karve.toml", "[baselines.file]\npython = \"gone.py\"\n", "");
    lab.karve(&["run", "--yes"]).ends(2).complains(&["[baselines] of karve.toml is not committed"]);
    lab.commit();
    let shown = ["over plain, the fastest correct baseline", "| plain | "];
    lab.karve(&args).ends(0).shows(&shown);
    lab.karve(&["bench", "--baselines", ".", "HEAD"]).ends(2);
}

#[test]
fn a_project_without_baselines_is_told_how_to_name_one() {
    let lab = Lab::empty();
    lab.karve(&["new", "--template", "c", "."]).ends(0);
    lab.configure("[device]\npressure_max = 100\n");
    lab.commit();
    let said = lab.karve(&["bench", "--baselines", "--no-test"]).ends(2);
    said.complains(&["karve.toml names no baselines", "[baselines.eager]"]);
}

/// Keeps a change that takes all rows at once.
const AGENT: &str = "case $KARVE_TASK in
propose) echo '{\"title\": \"more rows\", \"mechanism\": \"fewer calls\", \"expected_ratio\": 3}' ;;
implement) sed -i 's/ROWS = 1/ROWS = 64/' kernel.py ;;
esac
";

#[test]
fn a_campaign_is_judged_by_the_fastest_correct_baseline() {
    let Some(lab) = project() else { return };
    let kernel = lab.read("kernel.py").replace("# karve: knob", "#");
    lab.write("kernel.py", &kernel);
    lab.write("agent.sh", AGENT);
    lab.replace("karve.toml", "rounds = 8", "rounds = 1\nfinal_blocks = 4").configure(
        "[agent]\nname = \"mine\"\n[agents.mine]\ncommand = \"sh agent.sh\"\n\
         [policy.accept]\nalpha = 0.2\nguard_evidence = 2.0\nblocks_min = 1\n\
         [policy.controls]\nblocks = 8\n[campaign]\nname = \"toy\"\n",
    );
    lab.commit();
    // As the only task of a suite.
    lab.write("tasks.txt", ".\n");
    let suite = ["suite", "tasks.txt", "--name", "toy", "--out", "../suite"];
    lab.karve(&suite).ends(0).shows(&["1 of 1 tasks finished"]);
    symlink(lab.path(".karve/toy-task"), lab.path(".karve/toy")).unwrap();
    let of = |name: &str| {
        let blocks = lab.events(name).into_iter();
        blocks.filter(|event| event["duel"]["duel"] == "baseline").count()
    };
    // Two of them beside the original and the final kernel, and the wrong one at either time.
    assert!(of("block_measured") >= 2 * 2 * 8, "{}", of("block_measured"));
    assert_eq!(of("block_failed"), 2);
    let status = lab.karve(&["status", "--json"]).ends(0).json();
    let rows = status["baselines"].as_array().unwrap();
    let state = |at: usize| rows[at]["state"].as_str().unwrap();
    assert_eq!([state(0), state(1), state(2)], ["fastest", "measured", "not correct"]);
    assert_eq!(status["headline_over"], "eager");
    assert_eq!(status["headline"], rows[0]["speedup"]);
    assert!(status["headline"]["low"].is_number(), "{status}");
    assert!(status["over_original"]["ratio"].as_f64().unwrap() > 1.5, "{status}");
    lab.karve(&["status"]).ends(0).shows(&["eager, the fastest correct baseline, against final"]);
    lab.karve(&["report"]).ends(0).shows(&["over eager, the fastest correct baseline", "baseline"]);
    let report = std::fs::read_to_string(lab.campaign("REPORT.md")).unwrap();
    for part in ["over eager, the fastest correct baseline; ", "## Baselines", "| rows | "] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(report.contains("not correct: wrong on M=64,N=64"), "{report}");
    let trend = std::fs::read_to_string(lab.campaign("trend.svg")).unwrap();
    assert!(trend.contains(">eager: ") && trend.contains(">rows: "), "{trend}");
    let page = lab.path("page.html");
    lab.karve(&["report", "--html", page.to_str().unwrap()]).ends(0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Speedup over eager") && page.contains("id=\"baselines\""));
    let figures = lab.karve(&[&suite[..], &["--report", "--json"]].concat()).ends(0).json();
    let figures = &figures["rows"][0]["figures"];
    assert_eq!(figures["speedup"], status["headline"], "{figures}");
    assert_eq!(figures["baselines"], status["baselines"], "{figures}");
    lab.karve(&["verify"]).ends(0).shows(&["cannot be seen in a log: \"karve bench"]);
    changed_logs_are_noticed(&lab, &suite);
}

/// Readings beside a baseline, and the baselines of the charter, as a forger would change them.
fn changed_logs_are_noticed(lab: &Lab, suite: &[&str]) {
    let path = lab.campaign("events.jsonl");
    let good = std::fs::read_to_string(&path).unwrap();
    let mut records = lab.log();
    for record in &mut records {
        let event = &mut record["event"];
        let duel = &event["duel"];
        let is_last = duel["duel"] == "baseline" && duel["after"] == 1;
        if event["type"] == "block_measured" && is_last {
            for pair in event["block"]["pairs"].as_array_mut().unwrap() {
                let value = pair["candidate"]["value"].as_f64().unwrap();
                pair["candidate"]["value"] = (value / 2.0).into();
            }
        }
    }
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(&path, lines).unwrap();
    let duel = "duel with baseline eager after round 1: stored";
    lab.karve(&["verify"]).ends(1).shows(&[duel, "baseline rows after round 1"]);
    lab.karve(&["status"]).ends(1).shows(&["CHANGED", duel]).complains(&["the log was changed"]);
    let page = lab.karve(&[suite, &["--report", "--json"]].concat()).ends(1).json();
    assert_eq!(page["rows"][0]["state"], "failed", "{page}");
    assert!(page["rows"][0]["why"].as_str().unwrap().contains("the log was changed"), "{page}");
    std::fs::write(&path, good.replacen("baselines/rows.py", "baselines/slow.py", 1)).unwrap();
    let other = "the charter has other baselines than karve.toml of the original commit";
    lab.karve(&["verify"]).ends(1).shows(&[other]);
    // A log that ends without a newline has lost its last record, for every reader.
    std::fs::write(&path, good.trim_end()).unwrap();
    let said =
        lab.karve(&["verify"]).ends(0).complains(&["the last line of the log is incomplete"]);
    said.shows(&["not checked  7 duels, such as the final duel"]);
    let said = lab.karve(&["status", "--json"]).ends(0).complains(&["incomplete"]);
    assert_eq!(said.json()["step"], "finish");
    std::fs::write(&path, good).unwrap();
}
