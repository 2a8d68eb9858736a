//! `karve roofline` on this host, and on the cases of an example.

use crate::e2e::lab::{Lab, copy, source};
use serde_json::Value;

/// The same, with figures kept beside the project and not in the user's home.
fn karve(lab: &Lab, args: &[&str]) -> crate::e2e::lab::Said {
    let mut command = lab.command(args);
    command.env("XDG_CACHE_HOME", lab.beside("cache"));
    command.env("XDG_CONFIG_HOME", lab.beside("config"));
    crate::e2e::lab::Said::of(&command.output().unwrap())
}

fn best(pair: &Value, which: &str) -> f64 {
    pair[which]["best"].as_f64().unwrap()
}

#[test]
fn a_host_without_a_project_is_measured() {
    let lab = Lab::empty();
    let said = karve(&lab, &["roofline", "--quick", "--json"]).ends(0);
    let host = &said.json()["host"];
    let (one, all) = (best(&host["flops"], "one"), best(&host["flops"], "all"));
    assert!(one > 1e8 && one <= all * 1.2, "{one} {all}");
    let levels = host["levels"].as_array().unwrap();
    assert!(levels.len() >= 3);
    for kind in ["read", "copy", "triad"] {
        for which in ["one", "all"] {
            let rate = |level: &Value| best(&level[kind], which);
            let rates: Vec<f64> = levels.iter().map(rate).collect();
            assert!(rates.iter().all(|rate| *rate > 1e6), "{rates:?}");
            assert!(rates.first() >= rates.last(), "{rates:?}");
        }
    }
    assert_eq!(said.json()["cases"], serde_json::json!([]));
    // A quick look is not kept.
    assert!(!lab.beside("cache/karve/roofline.json").exists());
}

#[test]
fn the_cases_of_an_example_stand_under_the_roof() {
    let lab = Lab::empty();
    copy(&source("examples/matmul"), &lab.path(""));
    lab.git(&["init", "-q", "-b", "main"]);
    lab.commit();
    let args = ["roofline", "--quick", "--time", "--json", "--svg", "roof.svg"];
    let found = karve(&lab, &args).ends(0).json();
    let cases = found["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    let first = &cases[0]["ceiling"];
    assert_eq!(cases[0]["case"], "M=96,N=96,K=96");
    // 2 * 96^3 operations and three matrices of 96 x 96 floats.
    assert_eq!(first["intensity"].as_f64(), Some(16.0));
    for case in cases {
        let number = |name: &str| case["ceiling"][name].as_f64().unwrap();
        assert!(number("floor_s") > 0.0 && number("share") > 0.0);
        assert!(number("ceiling") > 0.0 && number("time_s") > 0.0);
    }
    let svg = lab.read("roof.svg");
    assert!(svg.starts_with("<svg") && svg.contains("M=96,N=96,K=96"), "{svg}");
    let text = karve(&lab, &["roofline", "--device", "h200"]).ends(0);
    let text = text.shows(&["under H200, fp32", "67.0 TFLOP/s", "datasheet", "M=96,N=96,K=96"]);
    assert!(!text.stdout.contains("host "), "{}", text.stdout);
    karve(&lab, &["roofline", "--device", "h2000"]).ends(2).complains(&["--device", "H200"]);
    lab.write(
        "devices.toml",
        "[[device]]\nname = \"X\"\nkind = \"gpu\"\n[[device.figures]]\n\
               source = \"us\"\nfp32 = -1.0\n",
    );
    let said = karve(&lab, &["roofline", "--quick"]).ends(2);
    said.complains(&["devices.toml", "`device.X.figures.fp32`"]);
}
