//! Pages of a long campaign: how soon they are there, how large they are, and how many people can
//! look at them at once.

// Shared with the tests, which may end with a panic.
#[allow(dead_code, clippy::unwrap_used, clippy::print_stdout)]
#[path = "../../tests/e2e/web/browser.rs"]
mod browser;

use super::stage::{charter, cheap_commands, for_each_case};
use super::{Figures, Size, made_up};
use karve::web::{self, Actions, CampaignWatch};
use karve_harness::store::CampaignDir;
use karve_os::error::{Result, WithContext as _};
use serde_json::json;
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The commit that the campaign began at.
const BASE: &str = "b000000000000000000000000000000000000000";
/// Cases of the campaign.
const CASES: usize = 8;
/// People who look at once.
const CLIENTS: usize = 20;
/// The token of the server.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Opening the page of the whole campaign, at most.
const OPEN_S_MAX: f64 = 1.0;
/// Times that a browser opens it.
const OPENINGS: usize = 7;
/// Changes of the campaign that open pages are told of, and how soon in the median, at most.
const CHANGES: usize = 40;
const TOLD_MS_MAX: f64 = 500.0;
/// A page that is not told by then will not be.
const PATIENCE: Duration = Duration::from_secs(20);
/// The report as one file, which has the pages of its last 100 rounds.
const FILE_MIB_MAX: f64 = 3.0;

pub(super) fn measure(size: &Size, scratch: &Path, figures: &mut Figures) -> Result<()> {
    let commands = for_each_case(&cheap_commands());
    let dir = CampaignDir::new(&scratch.join("campaigns"), "pages");
    let begun = Instant::now();
    made_up::write(&dir, &charter("pages", &commands, size.rounds, CASES), BASE)?;
    figures.tell("making up the campaign", begun.elapsed().as_secs_f64(), "s");
    let begun = Instant::now();
    let watch = CampaignWatch::open(dir.clone())?;
    let missing = size.rounds as usize - watch.campaign().rounds().len();
    figures.bound("rounds that are missing", missing as f64, "", 0.0);
    figures.tell("reading the log for pages", begun.elapsed().as_secs_f64(), "s");
    let begun = Instant::now();
    let file = web::render_file(&watch)?;
    figures.tell("rendering the report", begun.elapsed().as_secs_f64(), "s");
    figures.bound("the report as one file", file.len() as f64 / 1_048_576.0, "MiB", FILE_MIB_MAX);
    figures.bound("links of the report that lead nowhere", dead_links(&file) as f64, "", 0.0);
    served(&dir, figures)
}

/// Links within a page to places that are not in it.
fn dead_links(page: &str) -> usize {
    let named = |attribute| page.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
    let places: HashSet<&str> = named(" id=\"").collect();
    named("href=\"#").filter(|place| !places.contains(place)).count()
}

/// The same from the server, for one and for many.
fn served(dir: &CampaignDir, figures: &mut Figures) -> Result<()> {
    let failed = || "cannot start the server".to_owned();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context(failed)?;
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.context(failed)?;
    let at = listener.local_addr().context(failed)?;
    let root = dir.path().parent().unwrap_or(Path::new("/")).to_owned();
    runtime.spawn(web::serve((root, None), listener, (TOKEN.to_owned(), Actions::ReadOnly)));
    let path = format!("/c/{}", dir.name());
    let begun = Instant::now();
    let bytes = get(at, &path);
    figures.bound("the first page", begun.elapsed().as_secs_f64(), "s", OPEN_S_MAX);
    figures.tell("its size", bytes as f64 / 1_048_576.0, "MiB");
    let begun = Instant::now();
    get(at, &format!("{path}/round/1"));
    figures.tell("the page of a round", begun.elapsed().as_secs_f64(), "s");
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| get(at, &path));
        }
    });
    let each = begun.elapsed().as_secs_f64() / CLIENTS as f64;
    figures.bound("one of 20 pages asked for at once", each, "s", OPEN_S_MAX);
    told(dir, at, figures)?;
    let Some(mut browser) = browser::Browser::start() else { return Ok(()) };
    browser.looks((1280, 900), "light");
    let address = format!("http://{at}{path}");
    browser.opens(&format!("{address}?token={TOKEN}"));
    opened(&mut browser, &address, figures);
    scrolled(&mut browser, figures);
    Ok(())
}

/// How soon each of many open pages is told of a change.
fn told(dir: &CampaignDir, at: SocketAddr, figures: &mut Figures) -> Result<()> {
    let failed = || "cannot read a stream of changes".to_owned();
    let path = format!("/c/{}/events", dir.name());
    let (sender, seen) = mpsc::channel();
    for _ in 0..CLIENTS {
        let mut stream = BufReader::new(ask(at, &path).context(failed)?);
        let sender = sender.clone();
        thread::spawn(move || {
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|n| n > 0) {
                if line.starts_with("event: changed") && sender.send(Instant::now()).is_err() {
                    return;
                }
                line.clear();
            }
        });
    }
    let all = || -> Vec<Instant> {
        (0..CLIENTS).map_while(|_| seen.recv_timeout(PATIENCE).ok()).collect()
    };
    // A page is told of the state it begins with, too.
    let mut n_told = all().len();
    let mut delays = Vec::new();
    for change in 0..CHANGES {
        // At any time between two looks of the server.
        thread::sleep(Duration::from_millis(change as u64 * 37 % 250));
        let begun = Instant::now();
        fs::write(dir.join(web::LIVE), change.to_string()).context(failed)?;
        delays.extend(all().into_iter().map(|told| (told - begun).as_secs_f64() * 1e3));
    }
    fs::remove_file(dir.join(web::LIVE)).context(failed)?;
    n_told += delays.len();
    let missing = CLIENTS * (CHANGES + 1) - n_told;
    figures.bound("changes that a page was not told of", missing as f64, "", 0.0);
    delays.sort_by(f64::total_cmp);
    let at = |share: f64| delays.get((delays.len() as f64 * share) as usize).copied();
    let late = delays.iter().filter(|delay| **delay > TOLD_MS_MAX).count();
    let median = at(0.5).unwrap_or(f64::MAX);
    figures.bound("20 pages are told after, the median", median, "ms", TOLD_MS_MAX);
    figures.tell("95% of them before", at(0.95).unwrap_or(0.0), "ms");
    figures.tell("the last one", delays.last().copied().unwrap_or(0.0), "ms");
    figures.tell(&format!("later than {TOLD_MS_MAX} ms, of {}", delays.len()), late as f64, "");
    Ok(())
}

/// Notes when a page is ready to be used and drawn, as milliseconds since it was asked for.
const OPENED: &str = "(function look() {
    if (document.body?.dataset.ready !== 'yes') return requestAnimationFrame(look);
    requestAnimationFrame(() => requestAnimationFrame((now) => { window.karveOpened = now; }));
})()";

/// How long a browser takes from asking for a page to its picture.
fn opened(browser: &mut browser::Browser, address: &str, figures: &mut Figures) {
    browser.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": OPENED }));
    let mut open = || {
        browser.opens(address);
        browser.waits_for("window.karveOpened > 0");
        browser.value("window.karveOpened").as_f64().unwrap_or(f64::MAX) / 1e3
    };
    let mut times: Vec<f64> = (0..OPENINGS).map(|_| open()).collect();
    times.sort_by(f64::total_cmp);
    figures.bound("opening it in a browser, the median", times[OPENINGS / 2], "s", OPEN_S_MAX);
    figures.tell("the fastest", times[0], "s");
    figures.tell("the slowest", times[OPENINGS - 1], "s");
}

/// Scrolls to the end of an element, a step in each frame: the times between frames, in order.
const SCROLL: &str = "(async (box) => {
    const frame = () => new Promise(requestAnimationFrame);
    const times = [];
    box.scrollTop = 0;
    let last = await frame();
    for (let at = 0; at < box.scrollHeight; at += 120) {
        box.scrollTop = at;
        const now = await frame();
        times.push(now - last);
        last = now;
    }
    return times.sort((a, b) => a - b);
})";
/// A frame of this many milliseconds is noticed as a jerk.
const LONG_MS: f64 = 50.0;

/// How smoothly a browser scrolls. It depends on the machine, so there is no bound.
fn scrolled(browser: &mut browser::Browser, figures: &Figures) {
    browser.waits_for("!!document.querySelector('table[data-rounds]')");
    for (what, element) in [
        ("rounds", "document.querySelector('table[data-rounds]').parentElement"),
        ("page", "document.scrollingElement"),
    ] {
        let frames = browser.value(&format!("{SCROLL}({element})"));
        let times: Vec<f64> =
            frames.as_array().into_iter().flatten().filter_map(|t| t.as_f64()).collect();
        let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied();
        let long = times.iter().filter(|time| **time > LONG_MS).count();
        figures.tell(&format!("scrolling the {what}: frames"), times.len() as f64, "");
        figures.tell("time between two of them, the median", at(0.5).unwrap_or(0.0), "ms");
        figures.tell("95% of them below", at(0.95).unwrap_or(0.0), "ms");
        figures.tell("the longest", times.last().copied().unwrap_or(0.0), "ms");
        figures.tell(&format!("longer than {LONG_MS} ms"), long as f64, "");
    }
}

/// The size of an answer; 0 if there is none.
fn get(at: SocketAddr, path: &str) -> usize {
    let mut answer = Vec::new();
    let read = ask(at, path).and_then(|mut stream| stream.read_to_end(&mut answer));
    if read.is_ok() && answer.starts_with(b"HTTP/1.1 200") { answer.len() } else { 0 }
}

/// Asks for a page.
fn ask(at: SocketAddr, path: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(at)?;
    let cookie = format!("karve_token_{}={TOKEN}", at.port());
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {at}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    )?;
    Ok(stream)
}
