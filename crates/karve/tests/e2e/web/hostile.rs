//! Pages under attack: forms of other pages, hostile text everywhere, and logs that are changed.

use super::browser::Browser;
use super::{finished, serve};
use crate::e2e::lab::{Lab, wait_until};
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

/// What would run, or control a terminal, if it were not text.
const EVIL: &str = "<script>document.title='owned'</script><img src=x onerror=alert(1)>";

/// A page of another server on this host.
fn elsewhere(html: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\
         \r\n\r\n{html}",
        html.len()
    );
    std::thread::spawn(move || {
        // A browser may connect before it knows what to ask for.
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    address
}

#[test]
fn a_page_of_another_origin_cannot_act() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new("gains");
    lab.dies("after:30");
    let served = serve(&lab, &["--allow-actions", "--at", "localhost:0"]);
    // The browser has the token now. Cookies do not know ports, so it sends ours along with what a
    // page of another port asks for.
    browser.opens(&served.address);
    let target = format!("http://{}/c/toy/answer", served.host);
    let attack = format!(
        "<iframe name=shown></iframe><form method=post target=shown action={target}>\
         <input name=text value=forged></form><script>\
         document.querySelector('iframe').onload = () => document.body.dataset.form = 'sent';\
         document.forms[0].submit();\
         fetch('{target}', {{method: 'POST', mode: 'no-cors', credentials: 'include', \
         body: new URLSearchParams({{text: 'forged'}})}}).finally(() => document.title = 'sent')\
         </script>"
    );
    browser.call("Page.navigate", &json!({"url": elsewhere(&attack)}));
    browser.waits_for("document.title === 'sent' && document.body?.dataset.form === 'sent'");
    let sent = browser.requests().into_iter().filter(|url| *url == target).count();
    assert_eq!(sent, 2, "{:#?}", browser.requests());
    let inbox = || fs::read_dir(lab.campaign("inbox")).map_or(0, Iterator::count);
    assert_eq!(inbox(), 0);
    // The form of the page itself can.
    browser.opens(&format!("http://{}/c/toy", served.host));
    browser.value("document.querySelector('input[name=text]').value = 'from the page'");
    browser.value("document.querySelector('form[action$=answer]').requestSubmit()");
    wait_until("the answer", || inbox() == 1);
    lab.karve(&["run", "--yes"]).ends(0);
    let answers = lab.events("answered");
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["text"], "from the page");
}

#[test]
fn the_printed_address_can_be_a_link_on_another_site() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = finished("gains");
    let served = serve(&lab, &[]);
    let link = elsewhere(&format!("<a href=\"{}\">open</a>", served.address));
    browser.call("Page.navigate", &json!({"url": link.replace("127.0.0.1", "localhost")}));
    browser.waits_for("document.readyState === 'complete' && !!document.querySelector('a')");
    browser.value("document.querySelector('a').click()");
    browser.waits_for("document.querySelector('h1')?.textContent === 'Campaigns'");
    assert_eq!(browser.value("location.search"), json!(""), "the token is out of the address");
}

#[test]
fn artifacts_that_lead_elsewhere_or_never_end_are_left_out() {
    let lab = finished("gains");
    let served = serve(&lab, &[]);
    assert!(served.gets("/c/toy/round/1").1.contains("Agent transcript"));
    let artifacts: Vec<_> =
        fs::read_dir(lab.campaign("artifacts")).unwrap().map(|one| one.unwrap().path()).collect();
    let secret = lab.beside("secret");
    fs::write(&secret, "nobody may read this\n").unwrap();
    let replace = |make: &dyn Fn(&std::path::Path)| {
        for path in &artifacts {
            let _ = fs::remove_file(path);
            make(path);
        }
    };
    let check = || {
        let (status, text) = served.gets("/c/toy/round/1");
        assert_eq!(status, 200);
        assert!(text.contains("halve the work") && !text.contains("nobody may read"), "{text}");
    };
    replace(&|path| std::os::unix::fs::symlink(&secret, path).unwrap());
    check();
    replace(&|path| std::os::unix::fs::symlink("/dev/zero", path).unwrap());
    check();
    replace(&|path| {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    });
    check();
    // Zeros without an end of a line, which take no place on the disk.
    replace(&|path| fs::File::create(path).and_then(|file| file.set_len(1 << 40)).unwrap());
    check();
}

/// Knobs that a tuner tried, and their names as an agent gives them.
fn hostile_knobs(lab: &Lab) {
    let names = [
        format!("{EVIL}\u{202e}\u{7}"),
        "</title></text></svg><script>document.title='owned'</script>".to_owned(),
        format!("\"'&quot; onload=alert(4) {}", "x".repeat(10_000)),
        "]]><!--".to_owned(),
    ];
    let lines = (0..120).map(|n: usize| {
        let value = |at: usize| format!("{} {n}", names[(n + at) % names.len()]);
        let config = names.iter().enumerate().map(|(at, name)| (name.clone(), value(at)));
        let config: std::collections::BTreeMap<String, String> = config.collect();
        // Values that a formula may stumble over, too.
        let value = [1.0, 0.0, -1.0, 1e308, 1e-308][n % 5];
        json!({"kind": "read", "config": config, "value": value, "spent_ms": 1}).to_string()
    });
    fs::create_dir_all(lab.campaign("tune")).unwrap();
    let lines: Vec<String> = lines.collect();
    fs::write(lab.campaign("tune/round-1.jsonl"), lines.join("\n")).unwrap();
}

#[test]
fn hostile_knobs_are_text_in_plots_and_tables() {
    let lab = Lab::new("gains");
    let config = json!({EVIL: "<img src=x onerror=alert(5)>\u{202e}", "</dd></dl>": EVIL});
    let proposal = json!({"title": "half of it", "mechanism": "less work", "config": config,
        "expected_ratio": 2.0});
    lab.script("1", "propose", &format!("cat <<'END'\n{proposal}\nEND"));
    lab.commit();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    hostile_knobs(&lab);
    let (file, plots) = (lab.beside("report.html"), lab.beside("plots"));
    lab.karve(&["report", "--html", &file.display().to_string()]).ends(0);
    lab.karve(&["report", "--svg", &plots.display().to_string()]).ends(0);
    let svgs: Vec<String> = (1..=3)
        .map(|n| fs::read_to_string(plots.join(format!("knobs-{n}.svg"))).unwrap())
        .collect();
    let served = serve(&lab, &[]);
    let pages = ["/c/toy", "/c/toy/round/1"].map(|path| {
        let (status, text) = served.gets(path);
        assert_eq!(status, 200, "{path}");
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    });
    assert!(pages[1].contains("&lt;script&gt;"), "{}", pages[1]);
    for text in svgs.iter().chain(&pages) {
        for bad in ["<script>document", "<img", "\u{202e}", "\u{7}", "NaN", "\"inf"] {
            assert!(!text.contains(bad), "{bad:?} in {text}");
        }
        assert!(text.len() < 1_000_000);
    }
    let Some(mut browser) = Browser::start() else { return };
    browser.opens(&served.address);
    let local = format!("file://{}", file.display());
    for address in [format!("http://{}/c/toy", served.host), local] {
        browser.opens(&address);
        assert_eq!(browser.value("document.querySelectorAll('#knobs svg').length"), json!(3));
        assert_ne!(browser.value("document.title"), json!("owned"));
        assert_eq!(browser.value("document.querySelectorAll('img').length"), json!(0));
    }
    // A page with a policy would refuse the style that a picture has as a file.
    browser.call("Page.navigate", &json!({"url": "about:blank"}));
    for svg in &svgs {
        let read = format!(
            "new DOMParser().parseFromString({}, 'image/svg+xml').querySelector('parsererror') \
             === null",
            json!(svg)
        );
        browser.waits_for(&read);
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn hostile_text_is_text_in_every_place() {
    let lab = Lab::new("gains");
    lab.replace("karve.toml", "device = \"cpu\"", "device = \"<img src=x onerror=alert(2)>\"");
    lab.replace("karve.toml", "[\"n=1\"]", "[\"n=1\", \"n=2,t=<svg/onload=alert(3)>\"]");
    let bent = "\\u001b[2J\\u001b]0;owned\\u0007\\u202e";
    let title = format!("{EVIL}{bent}");
    lab.script("1", "propose", &format!("claim \"{title}\" \"half of it {EVIL}\" 2.0"));
    let summary = format!("echo '{{\"summary\": \"{}{bent}\"}}'", EVIL.replace('\'', "`"));
    let long = "head -c 10000000 /dev/zero | tr '\\0' x";
    let note =
        format!("{{ printf '# </code>%s ' '{}'; {long}; echo; }} >>kernel.sh", "<img src=x>");
    lab.script(
        "1",
        "implement",
        &format!("edit 's/^TIME=.*/TIME=50/'\n{note}\n{long} >&2\n{summary}"),
    );
    lab.commit();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let file = lab.beside("report.html");
    let said = lab.karve(&["report", "--html", &file.display().to_string(), "--json"]).ends(0);
    let bytes = fs::read(&file).unwrap();
    assert_eq!(said.json()["html"]["bytes"], bytes.len());
    assert!(bytes.len() < 3_000_000, "{}", bytes.len());
    let served = serve(&lab, &[]);
    let paths = ["/", "/c/toy", "/c/toy/round/1", "/c/toy/payload.json", "/c/toy/with/toy"];
    let mut pages = vec![String::from_utf8(bytes).unwrap()];
    for path in paths {
        let (status, text) = served.gets(path);
        assert_eq!(status, 200, "{path}");
        pages.push(text.split_once("\r\n\r\n").unwrap().1.to_owned());
    }
    for (page, path) in pages.iter().zip(["report.html"].iter().chain(&paths)) {
        for tag in ["<script>document", "<img", "<svg/onload", "\u{1b}", "\u{202e}", "\u{7}"] {
            assert!(!page.contains(tag), "{tag:?} in {path}");
        }
    }
    lab.karve(&["watch", "--once"]).ends(0).shows(&["<script>"]);
    let Some(mut browser) = Browser::start() else { return };
    browser.opens(&served.address);
    for path in &paths[1..3] {
        browser.opens(&format!("http://{}{path}", served.host));
        assert_ne!(browser.value("document.title"), json!("owned"));
        assert_eq!(browser.value("document.querySelectorAll('img').length"), json!(0));
    }
    browser.opens(&format!("file://{}", file.display()));
    assert_ne!(browser.value("document.title"), json!("owned"));
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn a_log_that_was_changed_is_named_and_one_that_was_replaced_is_read_anew() {
    let lab = finished("gains");
    let served = serve(&lab, &[]);
    let log = lab.campaign("events.jsonl");
    let original = fs::read_to_string(&log).unwrap();
    let page = || served.gets("/c/toy").1;
    assert!(page().contains("every verdict was judged again"));
    // A better reading in the final duel.
    let better = |line: &str| match line.contains("\"duel\":{\"duel\":\"final\"}") {
        true => line.replace("\"value\":40.0", "\"value\":38.0"),
        false => line.to_owned(),
    };
    let changed: String = original.lines().map(|line| better(line) + "\n").collect();
    assert_ne!(changed, original);
    fs::write(&log, &changed).unwrap();
    let text = page();
    assert!(text.contains("Do not trust this page"), "{text}");
    assert!(text.contains("the log was changed"), "{text}");
    lab.karve(&["verify"]).ends(1).shows(&["final duel: stored \"2.500x", "the samples say \"2.6"]);
    fs::write(&log, "").unwrap();
    let (status, text) = served.gets("/c/toy");
    assert!(status >= 400 && !text.contains("judged again"), "{text}");
    fs::write(&log, &original).unwrap();
    assert!(page().contains("every verdict was judged again"));
    // Damage, and then the log as it was, which is as long.
    fs::write(&log, original.replacen("\"seq\":4", "\"seq\":9", 1)).unwrap();
    let (status, text) = served.gets("/c/toy");
    assert_eq!(status, 400);
    assert!(text.contains("is damaged"), "{text}");
    fs::write(&log, &original).unwrap();
    assert!(page().contains("every verdict was judged again"));
}

#[test]
fn an_open_page_says_that_the_log_was_replaced() {
    let lab = finished("gains");
    let log = lab.campaign("events.jsonl");
    let original = fs::read_to_string(&log).unwrap();
    let first = |n: usize, text: &str| -> String {
        text.lines().take(n).map(|line| format!("{line}\n")).collect()
    };
    fs::write(&log, first(12, &original)).unwrap();
    let served = serve(&lab, &[]);
    let Some(mut browser) = Browser::start() else { return };
    browser.opens(&served.address);
    browser.opens(&format!("http://{}/c/toy", served.host));
    browser.waits_for("+document.body.dataset.updates > 0");
    // What is only added is not worth a word.
    let before = browser.value("+document.body.dataset.updates").as_u64().unwrap();
    let added = first(14, &original).split_off(first(12, &original).len());
    fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(added.as_bytes()).unwrap();
    browser.waits_for(&format!("+document.body.dataset.updates > {before}"));
    assert_eq!(browser.value("document.querySelector('#replaced').hidden"), json!(true));
    let other = original.replace("\"at_ms\":1", "\"at_ms\":2");
    fs::write(&log, first(12, &other)).unwrap();
    browser.waits_for("!document.querySelector('#replaced').hidden");
    assert_eq!(browser.problems(), Vec::<String>::new());
}
