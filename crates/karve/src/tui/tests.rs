//! The screen as text, from a stored log, and what keys do.

use super::model::WatchModel;
use super::state::{DetailTab, KeyOutcome, RoundFilter, RowId, WatchState};
use super::theme::{Theme, TonedLine};
use super::{draw, render};
use karve_harness::store::CampaignDir;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use ratatui::text::Span;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 50);
/// A minute after the last record of the stored log would be; it is finished, so this is not shown.
const NOW_MS: i64 = 1_800_000_000_000;

fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// A campaign with the first lines of a log.
fn campaign_of(log: &str, lines: usize) -> (TempDir, CampaignDir) {
    let root = tempfile::tempdir().unwrap();
    let dir = CampaignDir::new(root.path(), "c");
    fs::create_dir_all(dir.join("artifacts")).unwrap();
    let text: String = log.split_inclusive('\n').take(lines).collect();
    fs::write(dir.log(), text).unwrap();
    (root, dir)
}

fn stored_log() -> String {
    fs::read_to_string(testdata().join("logs/v3-small.jsonl")).unwrap()
}

fn opened(lines: usize) -> (TempDir, WatchModel) {
    let (root, dir) = campaign_of(&stored_log(), lines);
    (root, WatchModel::open(dir).unwrap())
}

fn press(state: &mut WatchState, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\t' => KeyCode::Tab,
            '\n' => KeyCode::Enter,
            '^' => KeyCode::Up,
            'v' => KeyCode::Down,
            key => KeyCode::Char(key),
        };
        assert_eq!(state.press(KeyEvent::from(code)), KeyOutcome::Stay, "{key:?}");
    }
}

/// Compares with `testdata/reports/watch/<name>`; with KARVE_BLESS set, writes it instead.
fn check_golden(name: &str, text: &str) {
    let path = testdata().join("reports/watch").join(name);
    if std::env::var_os("KARVE_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let want = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, want, "{name} differs; KARVE_BLESS=1 rewrites it");
}

#[test]
fn the_screen_is_as_it_was_at_two_sizes_in_every_tab() {
    let (_root, mut model) = opened(usize::MAX);
    for (size, name) in [(SMALL, "80x24"), (LARGE, "200x50")] {
        let mut state = WatchState::default();
        let mut text = render(&mut model, &mut state, size, NOW_MS);
        press(&mut state, "2");
        text.push_str(&render(&mut model, &mut state, size, NOW_MS));
        press(&mut state, "g2");
        text.push_str(&render(&mut model, &mut state, size, NOW_MS));
        press(&mut state, "?");
        text.push_str(&render(&mut model, &mut state, size, NOW_MS));
        let (columns, rows) = size;
        assert_eq!(text.lines().count(), usize::from(rows) * 4);
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)));
        check_golden(&format!("{name}.txt"), &text);
    }
}

#[test]
fn a_campaign_under_way_shows_its_step_and_what_is_left() {
    let n_lines = stored_log().lines().count();
    // The first prefix that ends within a duel.
    let within = (1..n_lines).find(|lines| {
        let (_root, model) = opened(*lines);
        let current = &model.payload.campaign.current;
        current.as_ref().is_some_and(|current| current.blocks.is_some_and(|blocks| blocks > 0))
    });
    let (_root, mut model) = opened(within.unwrap());
    let now_ms = model.payload.to_ms + 61_500;
    let text = render(&mut model, &mut WatchState::default(), SMALL, now_ms);
    for part in ["last event 1 min 01 s ago", "… ", "under way: ", " of at most "] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn every_prefix_of_a_log_can_be_drawn_at_any_size() {
    for lines in 1..=stored_log().lines().count() {
        let (_root, mut model) = opened(lines);
        for size in [(1, 1), (59, 13), (60, 14), SMALL] {
            for tab in ["1", "2", "3", "4"] {
                let mut state = WatchState::default();
                press(&mut state, tab);
                render(&mut model, &mut state, size, NOW_MS);
            }
        }
    }
}

#[test]
fn a_small_terminal_says_so_and_a_larger_one_is_used_at_once() {
    let (_root, mut model) = opened(usize::MAX);
    let mut state = WatchState::default();
    let text = render(&mut model, &mut state, (40, 10), NOW_MS);
    assert!(text.contains("terminal too small: 40x10") && text.contains("karve status"), "{text}");
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
    let theme = Theme { color: false };
    let mut shown = |terminal: &mut Terminal<TestBackend>| {
        let draw = |frame: &mut ratatui::Frame<'_>| {
            draw::draw(frame, &mut model, &mut state, theme, NOW_MS);
        };
        terminal.draw(draw).unwrap();
        terminal.backend().to_string()
    };
    assert!(shown(&mut terminal).contains("transcript"));
    terminal.backend_mut().resize(40, 10);
    assert!(shown(&mut terminal).contains("terminal too small: 40x10"));
    terminal.backend_mut().resize(160, 40);
    assert!(shown(&mut terminal).contains("f filter: all"));
}

#[test]
fn no_color_means_no_color() {
    let (_root, mut model) = opened(usize::MAX);
    for color in [false, true] {
        let mut colors = 0;
        for tab in ["1", "2", "g2"] {
            let mut state = WatchState::default();
            let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
            press(&mut state, tab);
            for _ in 0..2 {
                let draw = |frame: &mut ratatui::Frame<'_>| {
                    draw::draw(frame, &mut model, &mut state, Theme { color }, NOW_MS);
                };
                terminal.draw(draw).unwrap();
            }
            let cells = terminal.backend().buffer().content().iter();
            colors +=
                cells.filter(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset)).count();
        }
        assert_eq!(colors > 0, color);
    }
}

#[test]
fn keys_select_filter_and_search() {
    let (_root, mut model) = opened(usize::MAX);
    let mut state = WatchState::default();
    let mut draw = |state: &mut WatchState| render(&mut model, state, SMALL, NOW_MS);
    draw(&mut state);
    let n_rounds = state.rows.len() - 1;
    assert!(n_rounds >= 5);
    assert_eq!(state.row(), *state.rows.last().unwrap(), "the newest");
    press(&mut state, "g");
    assert_eq!(state.row(), RowId::Campaign);
    press(&mut state, "vv^k^j");
    assert_eq!(state.row(), RowId::Round(1));
    press(&mut state, "f");
    let text = draw(&mut state);
    assert_eq!(state.filter, RoundFilter::Kept);
    assert!(text.contains("rounds: kept") && state.rows.len() < n_rounds + 1, "{text}");
    press(&mut state, "fff/no such title");
    assert!(draw(&mut state).contains("/no such title"));
    assert_eq!(state.rows, [RowId::Campaign]);
    // Letters of a search are not commands, and Esc ends it.
    assert!(state.is_typing);
    assert_eq!(state.press(KeyEvent::from(KeyCode::Esc)), KeyOutcome::Stay);
    draw(&mut state);
    assert_eq!(state.rows.len(), n_rounds + 1);
    press(&mut state, "\t\t");
    assert_eq!(state.tab, DetailTab::Diff);
    for quit in [
        KeyEvent::from(KeyCode::Char('q')),
        KeyEvent::from(KeyCode::Esc),
        KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
    ] {
        assert_eq!(state.press(quit), KeyOutcome::Quit);
    }
}

#[test]
fn hostile_text_is_shown_as_text() {
    let hostile = "\\u001b[2J\\u001b]0;owned\\u0007\\u202e <script> ";
    let log = stored_log().replace("\"title\":\"", &format!("\"title\":\"{hostile}"));
    assert_ne!(log, stored_log());
    let (_root, dir) = campaign_of(&log, usize::MAX);
    let mut model = WatchModel::open(dir).unwrap();
    let mut state = WatchState::default();
    render(&mut model, &mut state, LARGE, NOW_MS);
    press(&mut state, "gv");
    let text = render(&mut model, &mut state, LARGE, NOW_MS);
    assert!(text.contains("<script>"), "{text}");
    let controls = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(controls) && !text.contains('\u{202e}'), "{text:?}");
    let long = TonedLine::new(&"x".repeat(10_000_000));
    assert_eq!(long.wrapped(100).len(), 20);
}

#[test]
fn a_damaged_log_is_named_at_the_bottom_and_what_was_read_stays() {
    let (_root, dir) = campaign_of(&stored_log(), 20);
    let mut model = WatchModel::open(dir.clone()).unwrap();
    let lines: String = stored_log().split_inclusive('\n').take(20).collect();
    fs::write(dir.log(), format!("{lines}garbage\nmore garbage\n")).unwrap();
    assert!(model.poll());
    let text = render(&mut model, &mut WatchState::default(), LARGE, NOW_MS);
    assert!(text.contains("is damaged at line 21") && text.contains(" rounds "), "{text}");
    assert!(!model.poll());
}

#[test]
fn wide_characters_and_heaps_of_marks_keep_to_their_columns() {
    let wide = TonedLine::new(&"漢字".repeat(100));
    let pieces = wide.wrapped(41);
    assert!(pieces.iter().all(|piece| Span::raw(piece.text.as_str()).width() <= 41));
    assert_eq!(pieces.iter().map(|piece| piece.text.chars().count()).sum::<usize>(), 200);
    assert_eq!(wide.wrapped(1).len(), 200, "one by one, if there is no room");
    let marked = TonedLine::new(&format!("a{}b", "\u{301}".repeat(1_000)));
    assert_eq!(marked.text.chars().count(), 6);
}

#[test]
fn a_hostile_log_is_drawn_at_every_size() {
    let evil = "\\u001b]52;c;aGk=\\u0007\\u001b[2J\\u009b31m\\u202e漢\\u200d\\ud83d\\ude00 ";
    let evil = format!("{evil}{}{}", "\\u0301".repeat(500), "漢".repeat(3_000_000));
    let log = stored_log().replace("halve the work", &evil);
    assert!(log.len() > 9_000_000);
    let (_root, dir) = campaign_of(&log, usize::MAX);
    let mut model = WatchModel::open(dir).unwrap();
    let mut state = WatchState::default();
    render(&mut model, &mut state, LARGE, NOW_MS);
    press(&mut state, "gv");
    for size in [(1, 1), (59, 14), (60, 14), SMALL, LARGE, (400, 120)] {
        for tab in "1234?".chars() {
            press(&mut state, &tab.to_string());
            let text = render(&mut model, &mut state, size, NOW_MS);
            let unseen = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.contains(unseen), "{size:?} {tab}");
        }
        press(&mut state, "?");
    }
}

#[test]
fn a_log_that_ends_anywhere_is_drawn_or_refused() {
    let log = stored_log();
    let cuts = (0..log.len()).step_by(log.len() / 60).filter(|at| log.is_char_boundary(*at));
    for cut in cuts {
        let (_root, dir) = campaign_of(&log[..cut], usize::MAX);
        if let Ok(mut model) = WatchModel::open(dir) {
            let text = render(&mut model, &mut WatchState::default(), SMALL, NOW_MS);
            assert!(text.contains(" rounds "), "{cut}: {text}");
        }
    }
}

#[test]
fn a_log_that_is_gone_or_replaced_is_followed_again() {
    let log = stored_log();
    let first: String = log.split_inclusive('\n').take(20).collect();
    let (_root, dir) = campaign_of(&first, usize::MAX);
    let mut model = WatchModel::open(dir.clone()).unwrap();
    let shown = |model: &mut WatchModel| render(model, &mut WatchState::default(), LARGE, NOW_MS);
    fs::remove_file(dir.log()).unwrap();
    assert!(model.poll());
    assert!(shown(&mut model).contains("cannot read"), "{}", shown(&mut model));
    assert!(!model.poll(), "once is enough");
    // Another log, which is longer.
    fs::write(dir.log(), log.replace("halve the work", "another idea")).unwrap();
    assert!(model.poll());
    let text = shown(&mut model);
    assert!(text.contains("another idea") && !text.contains("cannot read"), "{text}");
    fs::write(dir.log(), &first).unwrap();
    assert!(model.poll());
    assert!(!shown(&mut model).contains("another idea"));
    fs::write(dir.log(), &log).unwrap();
    assert!(model.poll());
    assert!(shown(&mut model).contains("halve the work"));
}

#[test]
fn a_log_that_was_emptied_is_named_and_what_was_read_stays() {
    let (_root, dir) = campaign_of(&stored_log(), usize::MAX);
    let mut model = WatchModel::open(dir.clone()).unwrap();
    let shown = |model: &mut WatchModel| render(model, &mut WatchState::default(), LARGE, NOW_MS);
    let first = stored_log().split_inclusive('\n').next().unwrap().to_owned();
    // Nothing, part of a record, and nothing again.
    for (at, text) in ["", &first[..first.len() / 2], ""].into_iter().enumerate() {
        fs::write(dir.log(), text).unwrap();
        assert!(model.poll(), "{at}");
        let text = shown(&mut model);
        assert!(text.contains("the log was emptied") && text.contains("halve the work"), "{text}");
        assert!(!model.poll() && !model.is_reading(), "{at}: once is enough");
    }
    fs::write(dir.log(), stored_log().replace("halve the work", "another idea")).unwrap();
    assert!(model.poll());
    let text = shown(&mut model);
    assert!(text.contains("another idea") && !text.contains("emptied"), "{text}");
    fs::write(dir.log(), "").unwrap();
    let error = WatchModel::open(dir).unwrap_err().to_string();
    assert!(error.contains("has no records") && error.contains("karve list"), "{error}");
}
