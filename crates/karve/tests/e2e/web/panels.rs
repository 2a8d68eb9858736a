//! Panels of a campaign's page that lead further: turns of agents in the timeline, and families of
//! kernels in the profiles.

use super::browser::Browser;
use super::serve;
use crate::e2e::lab::{Lab, source};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// A campaign of two rounds, whose profile shows two kernels.
fn profiled() -> Lab {
    let lab = Lab::new("gains");
    let trace = fs::read_to_string(source("testdata/profiles/rocprofv3.csv")).unwrap();
    lab.write("trace.csv", &trace);
    lab.replace("karve.toml", "artifacts = ", "profile = \"cat trace.csv\"\nartifacts = ");
    lab.commit();
    lab.karve(&["run", "--yes", "--rounds", "2"]).ends(0);
    lab
}

/// What the links of the timeline lead to.
fn links(page: &str, place: &str) -> Vec<String> {
    let found = page.split("<a href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    found.filter(|to| to.starts_with(place) && to.contains("#turn-")).map(str::to_owned).collect()
}

#[test]
fn every_turn_of_an_agent_is_in_the_timeline_and_leads_to_its_transcript() {
    let lab = profiled();
    let (file, plots) = (lab.beside("report.html"), lab.beside("plots"));
    lab.karve(&["report", "--html", &file.display().to_string()]).ends(0);
    lab.karve(&["report", "--svg", &plots.display().to_string()]).ends(0);
    let served = serve(&lab, &[]);
    let (_, page) = served.gets("/c/toy");
    let found = links(&page, "/c/toy/round/");
    let logs: Vec<Value> =
        lab.log().into_iter().filter(|r| r["event"]["session_log"].is_string()).collect();
    assert!(logs.len() >= 4, "{logs:?}");
    assert_eq!(found.len(), logs.len(), "{found:?}");
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
    for to in &found {
        let (path, id) = to.split_once('#').unwrap();
        let (status, round) = served.gets(path);
        assert_eq!(status, 200, "{to}");
        assert_eq!(round.matches(&format!("id=\"{id}\"")).count(), 1, "{to}");
    }
    let report = fs::read_to_string(&file).unwrap();
    let inside = links(&report, "#turn-");
    assert_eq!(inside.len(), logs.len());
    for to in &inside {
        let id = format!("id=\"{}\"", to.trim_start_matches('#'));
        assert_eq!(report.matches(&id).count(), 1, "{to}");
    }
    // A picture by itself leads nowhere.
    assert!(!fs::read_to_string(plots.join("timeline.svg")).unwrap().contains("<a "));
    let Some(mut browser) = Browser::start() else { return };
    browser.opens(&served.address);
    let local = format!("file://{}", file.display());
    for address in [format!("http://{}/c/toy", served.host), local] {
        browser.opens(&address);
        clicks_a_ring(&mut browser);
        browser.waits_for("document.body?.dataset.ready === 'yes'");
        browser.waits_for(SHOWN);
    }
    // A reader without scripts gets there, too.
    browser.call("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    browser.call("Page.navigate", &json!({"url": format!("http://{}/c/toy", served.host)}));
    browser
        .waits_for("document.readyState === 'complete' && !!document.querySelector('circle.turn')");
    clicks_a_ring(&mut browser);
    browser.waits_for(SHOWN);
    assert_eq!(browser.problems(), Vec::<String>::new());
}

/// The transcript is open and in the window.
const SHOWN: &str = "(() => { const at = document.querySelector(':target');
    if (!at || !at.id.startsWith('turn-') || !at.closest('details').open) return false;
    const top = at.getBoundingClientRect().top;
    const text = at.closest('details').innerText;
    return top >= 0 && top < innerHeight && text.includes('brief'); })()";

/// Clicks the first ring once it stays where it is: parts of a page get their real height when
/// they come into view.
fn clicks_a_ring(browser: &mut Browser) {
    let mut place = Value::Null;
    for _ in 0..100 {
        browser.value("document.querySelector('circle.turn').scrollIntoView({block: 'center'})");
        std::thread::sleep(Duration::from_millis(100));
        let now = browser.value(
            "(() => { const box = document.querySelector('circle.turn').getBoundingClientRect();
             return [box.x + box.width / 2, box.y + box.height / 2]; })()",
        );
        if now == place {
            break;
        }
        place = now;
    }
    for kind in ["mousePressed", "mouseReleased"] {
        let press = json!({"type": kind, "x": place[0], "y": place[1], "button": "left",
            "clickCount": 1});
        browser.call("Input.dispatchMouseEvent", &press);
    }
}

#[test]
fn the_time_of_each_family_of_kernels_is_on_the_page_of_a_campaign() {
    let lab = profiled();
    let plots = lab.beside("plots");
    lab.karve(&["report", "--svg", &plots.display().to_string()]).ends(0);
    let served = serve(&lab, &[]);
    let (_, text) = served.gets("/c/toy/payload.json");
    let payload: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let profiles = payload["profiles"].as_array().unwrap();
    assert!(profiles.len() >= 2, "{profiles:?}");
    let families = profiles[0]["families"].as_array().unwrap();
    assert_eq!(families[0]["family"], "matrix product");
    // The trace as a whole is not a kernel.
    let names = profiles[0]["kernels"].as_array().unwrap();
    assert_eq!(names.len(), 2, "{names:?}");
    let all: f64 = families.iter().map(|family| family["us"].as_f64().unwrap()).sum();
    let (_, page) = served.gets("/c/toy");
    let svg = fs::read_to_string(plots.join("families.svg")).unwrap();
    for shown in [&page, &svg] {
        assert!(shown.contains("Kernel time by family"), "{shown}");
        for family in families {
            let name = family["family"].as_str().unwrap();
            let percent = 100.0 * family["us"].as_f64().unwrap() / all;
            let about = format!("<title>{name}: {percent:.2}%");
            assert_eq!(shown.matches(&about).count(), profiles.len(), "{about} in {shown}");
        }
    }
}
