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
    browser.waits_for("document.title === 'sent' && document.body.dataset.form === 'sent'");
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
    // Damage, and then the log as it was, which is as long.
    fs::write(&log, original.replacen("\"seq\":4", "\"seq\":9", 1)).unwrap();
    let (status, text) = served.gets("/c/toy");
    assert_eq!(status, 400);
    assert!(text.contains("is damaged"), "{text}");
    fs::write(&log, &original).unwrap();
    assert!(page().contains("every verdict was judged again"));
}
