//! The page of a campaign of many rounds: only what is in view is laid out, and links into the page
//! still land on their place.

use super::browser::Browser;
use super::stage::{charter, cheap_commands, for_each_case};
use super::{Served, made_up, serve};
use crate::e2e::lab::Lab;
use karve_harness::store::CampaignDir;
use serde_json::json;

/// Rounds of the campaign.
const ROUNDS: u32 = 240;

/// A finished campaign of many rounds.
fn long() -> (Lab, Served) {
    let lab = Lab::new("gains");
    let base = lab.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let dir = CampaignDir::new(&lab.path(".karve"), "toy");
    let charter = charter("toy", &for_each_case(&cheap_commands()), ROUNDS, 8);
    made_up::write(&dir, &charter, &base).unwrap();
    let served = serve(&lab, &[]);
    (lab, served)
}

/// Where the place that the address names is, after two pictures; true if it is at the top, below
/// the bar, or as high as the end of the page allows.
const LANDED: &str = "(async () => {
    const frame = () => new Promise((done) => setTimeout(done, 40));
    await frame(); await frame();
    const place = document.getElementById(location.hash.slice(1));
    const wanted = parseFloat(getComputedStyle(place).scrollMarginTop);
    const page = document.scrollingElement;
    const isEnd = page.scrollTop + innerHeight >= page.scrollHeight - 2;
    const top = place.getBoundingClientRect().top;
    return Math.abs(top - wanted) <= 2 || (isEnd && top >= wanted && top < innerHeight)
        ? true : `${location.hash} is at ${top}, not at ${wanted}`; })()";

/// No part moves when others come into view: else a click on a ring in a plot, or a link that was
/// just followed, misses its place.
const STILL: &str = "(async () => {
    const parts = [...document.querySelectorAll('[data-part]')];
    const place = (part) => Math.round(part.getBoundingClientRect().top + scrollY);
    const places = () => parts.map(place).join();
    const before = places();
    for (const part of parts) {
        part.scrollIntoView();
        await new Promise((done) => setTimeout(done, 40));
    }
    return before === places() ? true : `${before} became ${places()}`; })()";

#[track_caller]
fn landed(browser: &mut Browser) {
    assert_eq!(browser.value(LANDED), json!(true));
}

/// Leaves the page, so that the next address is not a place in it.
fn leaves(browser: &mut Browser) {
    browser.call("Page.navigate", &json!({"url": "about:blank"}));
    browser.waits_for("location.href === 'about:blank'");
}

fn links(browser: &mut Browser, selector: &str) -> Vec<String> {
    let links = format!("[...document.querySelectorAll('{selector}')].map((a) => a.hash)");
    let found = browser.value(&links);
    found.as_array().unwrap().iter().map(|hash| hash.as_str().unwrap().to_owned()).collect()
}

#[test]
fn links_into_a_long_page_land_on_their_place() {
    let (lab, served) = long();
    let file = lab.beside("report.html").display().to_string();
    lab.karve(&["report", "--html", &file]).ends(0);
    let Some(mut browser) = Browser::start() else { return };
    browser.opens(&served.address);
    let page = format!("http://{}/c/toy", served.host);
    for (size, address) in
        [((1280, 900), &page), ((390, 844), &page), ((1280, 900), &format!("file://{file}"))]
    {
        browser.looks(size, "light");
        browser.opens(address);
        assert_eq!(browser.value(STILL), json!(true), "{size:?}");
        let mut all = links(&mut browser, ".toc a");
        assert!(all.len() >= 9, "{all:?}");
        let rounds = links(&mut browser, "table[data-rounds] a[href^=\"#round-\"]");
        // A file has the pages of the last 100.
        all.extend(rounds.into_iter().rev().step_by(40).take(3));
        for hash in &all {
            leaves(&mut browser);
            browser.opens(&format!("{address}{hash}"));
            landed(&mut browser);
        }
        // From wherever the last one led.
        for hash in all.iter().rev().chain(&all) {
            browser.value(&format!("document.querySelector('a[href=\"{hash}\"]').click()"));
            landed(&mut browser);
        }
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn a_long_table_of_rounds_lays_out_what_is_in_view_and_works_as_a_short_one() {
    let (_lab, served) = long();
    let Some(mut browser) = Browser::start() else { return };
    browser.opens(&served.address);
    for size in [(1280, 900), (390, 844)] {
        browser.looks(size, "light");
        leaves(&mut browser);
        browser.opens(&format!("http://{}/c/toy#rounds", served.host));
        let seen = "[...document.querySelectorAll('table[data-rounds] td.title')]
            .filter((td) => td.checkVisibility({contentVisibilityAuto: true})).length";
        browser.waits_for(&format!("{seen} >= 5 && {seen} <= {}", ROUNDS / 3));
        // Far down by keys, without losing the row.
        for _ in 0..60 {
            browser.presses("j");
        }
        let at = "(() => { const box = document.querySelector('.tall').getBoundingClientRect();
            const row = document.querySelector('tr.at').getBoundingClientRect();
            return [document.querySelector('tr.at').cells[0].textContent,
                row.top >= box.top - 1 && row.bottom <= box.bottom + 1 && row.height > 20]; })()";
        assert_eq!(browser.value(at), json!(["60", true]), "{size:?}");
        if size.0 > 600 {
            let aligned = "(() => {
                const left = (cell) => Math.round(cell.getBoundingClientRect().left);
                const of = (row) => [...document.querySelector(row).cells].map(left).join();
                return of('[data-rounds] thead tr') === of('[data-rounds] tbody tr'); })()";
            assert_eq!(browser.value(aligned), json!(true));
            browser.value("document.querySelectorAll('[data-rounds] thead th')[3].click()");
            browser.value("document.querySelectorAll('[data-rounds] thead th')[3].click()");
            let first = "document.querySelector('[data-rounds] tbody tr').dataset.verdict";
            assert_eq!(browser.value(first), json!("keep"));
        }
        browser.value(
            "{ const input = document.querySelector('[data-filter] input');
               input.value = 'verdict:keep'; input.dispatchEvent(new Event('input')); }",
        );
        let shown = "[...document.querySelectorAll('[data-rounds] tbody tr')]
            .filter((row) => row.getBoundingClientRect().height > 0).length";
        assert_eq!(browser.value(shown), json!(ROUNDS / 25), "{size:?}");
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}
