//! Pages of campaigns: what a browser shows, and whom the server refuses.

mod browser;
mod hostile;
mod long;
// Shared with the benchmark of pages.
#[allow(dead_code)]
#[path = "../../benches/scale/made_up.rs"]
mod made_up;
mod panels;
#[allow(dead_code)]
#[path = "../../benches/scale/stage.rs"]
mod stage;

use crate::e2e::lab::{Lab, Running, wait_until};
use browser::Browser;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A running server: the address with the token, without the address, and the token.
pub(crate) struct Served {
    address: String,
    host: String,
    token: String,
    _running: Running,
}

pub(crate) fn serve(lab: &Lab, args: &[&str]) -> Served {
    let said = lab.beside("served");
    let file = std::fs::File::create(&said).unwrap();
    let mut command = lab.command(&["serve"]);
    let child = command.args(args).stdout(file).spawn().unwrap();
    let running = Running::of(child, [said.clone(), said.clone()]);
    wait_until("the server to start", || running.shows("token="));
    let address = std::fs::read_to_string(&said).unwrap().trim().to_owned();
    let (place, token) = address.split_once("?token=").unwrap();
    let host = place.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let token = token.to_owned();
    Served { address, host, token, _running: running }
}

impl Served {
    /// The name of the cookie.
    fn cookie(&self) -> String {
        format!("karve_token_{}", self.host.rsplit(':').next().unwrap())
    }

    /// The answer to a request: status, headers and text.
    fn asks(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let status = text.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, text)
    }

    /// The same as a browser asks that has the token.
    pub(crate) fn gets(&self, path: &str) -> (u16, String) {
        let headers =
            format!("Host: {}\r\nCookie: {}={}\r\n", self.host, self.cookie(), self.token);
        self.asks("GET", path, &headers, "")
    }
}

/// A finished campaign.
fn finished(tree: &str) -> Lab {
    let lab = Lab::new(tree);
    lab.karve(&["run", "--yes"]).ends(0);
    lab
}

#[test]
fn only_a_browser_of_this_host_with_the_token_is_answered() {
    let lab = finished("gains");
    let served = serve(&lab, &[]);
    let (host, token) = (&served.host, &served.token);
    let name = served.cookie();
    let cookie = format!("Cookie: {name}={token}\r\n");
    let own = format!("Host: {host}\r\n");
    for (headers, want) in [
        (format!("{own}{cookie}"), 200),
        (own.clone(), 401),
        (format!("{own}Cookie: {name}={}\r\n", "0".repeat(32)), 401),
        (format!("{own}Cookie: {name}=bad; {name}={token}\r\n"), 200),
        (format!("Host: evil.example\r\n{cookie}"), 403),
        (format!("Host: localhost.evil.example\r\n{cookie}"), 403),
        (format!("{own}{cookie}Origin: http://evil.example\r\n"), 403),
        (format!("{own}{cookie}Origin: null\r\n"), 403),
        (format!("{own}{cookie}Origin: http://{host}\r\n"), 200),
        (format!("{own}{cookie}Sec-Fetch-Site: same-origin\r\n"), 200),
        // A picture of a page of another port, and a link there.
        (format!("{own}{cookie}Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n"), 403),
        (format!("{own}{cookie}Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate\r\n"), 200),
    ] {
        assert_eq!(served.asks("GET", "/", &headers, "").0, want, "{headers}");
    }
    let (status, text) = served.asks("GET", &format!("/?token={token}"), &own, "");
    assert_eq!(status, 200);
    assert!(text.contains("HttpOnly; SameSite=Strict"), "{text}");
    assert!(!text.contains("Campaigns"), "{text}");
    assert_eq!(served.asks("GET", "/?token=wrong", &own, "").0, 401);
    for path in ["/c/..%2f..%2fetc", "/c/%2e%2e", "/c/../../etc/passwd", "/c/toy/round/99", "/x"] {
        assert_eq!(served.gets(path).0, 404, "{path}");
    }
    assert_eq!(served.gets("/c/toy/round/-1").0, 400);
    let (status, text) = served.gets("/c/toy");
    assert_eq!(status, 200);
    assert!(text.contains("content-security-policy: default-src 'none'"), "{text}");
    lab.karve(&["serve", "--at", "0.0.0.0:0"]).ends(2).complains(&["other hosts", "--at"]);
    lab.karve(&["serve", "--at", "example.org:1"]).ends(2).complains(&["localhost:PORT"]);
}

#[test]
fn two_servers_behind_ssh_do_not_take_each_others_place_in_a_browser() {
    let lab = finished("gains");
    // As a browser sees them through "ssh -L": on other ports than their own.
    let servers = [(serve(&lab, &[]), 9000), (serve(&lab, &[]), 9001)];
    let mut jar = std::collections::BTreeMap::new();
    for (served, port) in &servers {
        let host = format!("Host: localhost:{port}\r\n");
        let (status, text) = served.asks("GET", &format!("/?token={}", served.token), &host, "");
        assert_eq!(status, 200);
        let set = text.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
        assert_eq!(name, format!("karve_token_{port}"));
        jar.insert(name.to_owned(), value.to_owned());
    }
    let cookies: Vec<String> = jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let cookies = format!("Cookie: {}\r\n", cookies.join("; "));
    for (served, port) in &servers {
        let ask = |port: u16| {
            let headers = format!("Host: localhost:{port}\r\n{cookies}");
            served.asks("GET", "/c/toy", &headers, "").0
        };
        assert_eq!(ask(*port), 200, "{port}");
        assert_eq!(ask(9002), 401, "a token of another port");
    }
}

#[test]
fn nothing_can_be_done_unless_the_user_allows_it() {
    let lab = finished("gains");
    let served = serve(&lab, &[]);
    let may = format!(
        "Host: {0}\r\nCookie: {1}={2}\r\nOrigin: http://{0}\r\n",
        served.host,
        served.cookie(),
        served.token
    );
    for path in ["/c/toy/stop", "/c/toy/answer"] {
        let (status, text) = served.asks("POST", path, &may, "text=x");
        assert_eq!(status, 403, "{text}");
        assert!(text.contains("--allow-actions"), "{text}");
    }
    drop(served);
    let served = serve(&lab, &["--allow-actions"]);
    let (host, name) = (&served.host, served.cookie());
    let cookie = format!("Host: {host}\r\nCookie: {name}={}\r\n", served.token);
    assert_eq!(served.asks("POST", "/c/toy/stop", &cookie, "").0, 403, "without an origin");
    let may = format!("{cookie}Origin: http://{}\r\n", served.host);
    // The campaign is finished: it takes no answers, and there is nothing to stop.
    for path in ["/c/toy/answer", "/c/toy/stop"] {
        assert_eq!(served.asks("POST", path, &may, "text=x").0, 400, "{path}");
    }
    assert_eq!(served.gets("/c/..%2f..%2fx/events").0, 404);
}

#[test]
fn a_page_asks_a_running_campaign_to_stop_after_its_step() {
    let lab = Lab::new("gains");
    let running = lab.start(&["run", "--yes"]);
    wait_until("a record", || !lab.log().is_empty());
    let served = serve(&lab, &["--allow-actions"]);
    let may = format!(
        "Host: {0}\r\nCookie: {1}={2}\r\nOrigin: http://{0}\r\n",
        served.host,
        served.cookie(),
        served.token
    );
    let answered = served.asks("POST", "/c/toy/answer", &may, "text=try+%3Cb%3E+tiles");
    assert_eq!(answered.0, 303, "{}", answered.1);
    assert_eq!(served.asks("POST", "/c/toy/stop", &may, "").0, 303);
    running.wait().ends(130);
    lab.karve(&["run", "--yes"]).ends(0);
    let answers = lab.events("answered");
    assert_eq!(answers[0]["text"], "try <b> tiles");
    assert!(!lab.campaign("live.json").exists(), "only while it runs");
}

#[test]
fn the_values_of_the_page_are_those_of_the_report() {
    let lab = finished("gains");
    let served = serve(&lab, &[]);
    let (_, text) = served.gets("/c/toy/payload.json");
    let payload: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let report = lab.karve(&["report", "--json"]).ends(0).json();
    assert_eq!(payload["version"], 1);
    for part in ["campaign", "final", "environment"] {
        assert_eq!(payload[part], report[part], "{part}");
    }
    let rounds = report["rounds"].as_array().unwrap();
    for (at, round) in rounds.iter().enumerate() {
        for (name, value) in round.as_object().unwrap() {
            assert_eq!(&payload["rounds"][at][name], value, "round {at}: {name}");
        }
        let path = format!("/c/toy/round/{}/payload.json", at + 1);
        let (status, text) = served.gets(&path);
        assert_eq!(status, 200);
        let shown: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!(shown["round"]["verdict"], round["verdict"]);
    }
}

#[test]
fn a_browser_follows_a_campaign_and_opens_its_report_without_a_network() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new("gains");
    let running = lab.start(&["run", "--yes"]);
    wait_until("a record", || !lab.log().is_empty());
    let served = serve(&lab, &[]);
    browser.looks((1280, 800), "light");
    browser.opens(&served.address);
    browser.waits_for("document.querySelectorAll('tr[data-row]').length === 1");
    browser.opens(&format!("http://{}/c/toy", served.host));
    running.wait().ends(0);
    browser.waits_for("!document.querySelector('[data-part=live]')");
    let answer = browser.value("document.querySelector('.answer').textContent");
    assert!(answer.as_str().unwrap().contains("the final duel shows"), "{answer}");
    let kept = browser.value("document.querySelector('.kept').textContent");
    assert!(kept.as_str().unwrap().contains("round 1, halve the work (2.000x)"), "{kept}");
    assert!(browser.value("+document.body.dataset.updates || 0").as_u64() > Some(0));
    check_page(&mut browser, &lab);
    // From the table to a round by keys, to the next one, and up again.
    browser.presses("j");
    browser.presses("Enter");
    browser.waits_for("location.pathname.endsWith('/round/1') && !!document.body?.dataset.ready");
    let parts = "document.querySelectorAll('.round svg').length >= 4";
    assert_eq!(browser.value(parts), json!(true));
    browser.presses("n");
    browser.waits_for("location.pathname.endsWith('/round/2') && !!document.body?.dataset.ready");
    browser.presses("u");
    browser.waits_for("location.pathname.endsWith('/c/toy') && !!document.body?.dataset.ready");
    assert_eq!(browser.problems(), Vec::<String>::new());
    browser.call("Page.navigate", &json!({"url": "about:blank"}));
    drop(served);

    let file = lab.beside("report.html");
    let path = file.display().to_string();
    lab.karve(&["report", "--html", &path]).ends(0);
    let offline = json!({"offline": true, "latency": 0, "downloadThroughput": 0,
        "uploadThroughput": 0});
    browser.call("Network.emulateNetworkConditions", &offline);
    let before = browser.requests().len();
    browser.opens(&format!("file://{path}"));
    check_page(&mut browser, &lab);
    assert_eq!(browser.value("document.querySelectorAll('article.round').length"), json!(5));
    for (size, scheme) in [((1280, 900), "dark"), ((768, 1024), "light"), ((390, 844), "dark")] {
        browser.looks(size, scheme);
        browser.opens(&format!("file://{path}"));
        let fits = "document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(browser.value(fits), json!(true), "{size:?}");
        if size.0 != 768 {
            // Why a round was dropped is seen without moving the table.
            let seen = "[...document.querySelectorAll('table[data-rounds] td.why')]
                .every(td => td.textContent && td.getBoundingClientRect().right <= innerWidth)";
            assert_eq!(browser.value(seen), json!(true), "{size:?}");
        }
    }
    let asked = browser.requests().split_off(before);
    let elsewhere = |url: &&String| !(url.starts_with("file://") || url.starts_with("data:"));
    assert_eq!(asked.iter().find(elsewhere), None);
    assert_eq!(browser.problems(), Vec::<String>::new());
}

/// Every part is drawn, the filter works, and the values are those of the report.
#[track_caller]
fn check_page(browser: &mut Browser, lab: &Lab) {
    let parts = "[...document.querySelectorAll('[data-part]')].map(p => p.dataset.part).join(' ')";
    let parts = browser.value(parts);
    let parts = parts.as_str().unwrap();
    for part in ["head", "trend", "rounds", "cases", "lineage", "heatmap", "cost", "integrity"] {
        assert!(parts.contains(part), "no {part} in {parts}");
    }
    browser.waits_for("!document.querySelector('[data-zoom]').hidden");
    browser.value("document.querySelector('[data-zoom]').click()");
    browser.waits_for("!!document.querySelector('[data-chart=trend] .uplot canvas')");
    browser.value("document.querySelector('[data-zoom]').click()");
    let rounds = browser.value("document.querySelectorAll('table[data-rounds] tbody tr').length");
    let report = lab.karve(&["report", "--json"]).ends(0).json();
    assert_eq!(rounds.as_u64(), Some(report["rounds"].as_array().unwrap().len() as u64));
    let headline = report["campaign"]["headline"]["ratio"].as_f64().unwrap();
    let shown = browser.value("document.querySelector('.cards dd.big').textContent");
    assert_eq!(shown.as_str().unwrap(), format!("{headline:.3}x"));
    browser.presses("/");
    for key in ["d", "r", "o", "p"] {
        browser.presses(key);
    }
    let visible = "[...document.querySelectorAll('table[data-rounds] tbody tr')]
        .filter(r => !r.hidden).map(r => r.dataset.verdict).join(' ')";
    let visible = browser.value(visible);
    let dropped = report["rounds"].as_array().unwrap().iter();
    let dropped = dropped.filter(|round| round["verdict"] == "drop").count();
    assert!(visible.as_str().unwrap().split_whitespace().count() >= dropped);
    browser.presses("Escape");
    browser.value("document.querySelector('[data-filter] input').value = ''");
    browser
        .value("document.querySelector('[data-filter] input').dispatchEvent(new Event('input'))");
}

#[test]
fn two_campaigns_are_compared_side_by_side() {
    let lab = finished("gains");
    lab.karve(&["run", "--yes", "--campaign", "again", "--rounds", "1"]).ends(0);
    let served = serve(&lab, &[]);
    let (_, page) = served.gets("/c/toy");
    assert!(page.contains("href=\"/c/toy/with/again\""), "{page}");
    let (status, page) = served.gets("/c/toy/with/again");
    assert_eq!(status, 200, "{page}");
    let reports = ["toy", "again"]
        .map(|name| lab.karve(&["report", "--json", "--campaign", name]).ends(0).json());
    for report in &reports {
        let ratio = report["campaign"]["headline"]["ratio"].as_f64().unwrap();
        assert!(page.contains(&format!("{ratio:.3}x")), "{ratio}: {page}");
    }
    assert_eq!(page.matches("<svg ").count(), 2, "both trends");
    assert!(page.contains("<td>n=1</td>") && !page.contains("n=3"), "{page}");
    assert!(page.contains("karve bench "), "{page}");
    for path in ["/c/toy/with/none", "/c/none/with/toy", "/c/toy/with/..%2f..%2fetc"] {
        assert_eq!(served.gets(path).0, 404, "{path}");
    }
    let Some(mut browser) = Browser::start() else { return };
    browser.opens(&served.address);
    for size in [(1280, 800), (390, 844)] {
        browser.looks(size, "dark");
        browser.opens(&format!("http://{}/c/toy/with/again", served.host));
        let fits = "document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(browser.value(fits), json!(true), "{size:?}");
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn plots_are_files_too() {
    let lab = finished("gains");
    let dir = lab.beside("plots");
    let to = dir.display().to_string();
    lab.karve(&["report", "--svg", &to]).ends(0).shows(&["plots in"]);
    let written = lab.karve(&["report", "--svg", &to, "--json"]).ends(0).json();
    assert!(written["svg"]["files"].as_array().unwrap().contains(&json!("trend.svg")));
    for name in ["trend.svg", "cases.svg", "lineage.svg", "round-1-1-evidence.svg"] {
        let svg = std::fs::read_to_string(dir.join(name)).unwrap();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{name}");
    }
    let there = dir.join("trend.svg").join("x.html").display().to_string();
    lab.karve(&["report", "--html", &there]).ends(3).complains(&["--html FILE"]);
}
