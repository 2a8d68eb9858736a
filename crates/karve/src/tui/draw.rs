//! The screen: header, rounds, details, footer.

use super::evidence::{draw_duels, draw_trend};
use super::model::WatchModel;
use super::state::{DetailTab, RoundFilter, RowId, WatchState};
use super::theme::{Theme, TonedLine};
use crate::ui::gauges::{bar, time_text, trend_text};
use crate::ui::style::Tone;
use karve_core::comparison::Estimate;
use karve_core::payload::{Payload, TrendRow};
use karve_os::text::safe;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, List, ListItem, ListState};

/// The smallest terminal that the screen fits.
const COLUMNS_MIN: u16 = 60;
const ROWS_MIN: u16 = 14;
/// Columns of the list: a part of the screen, within bounds.
const LIST_COLUMNS: (u16, u16) = (30, 70);
/// Columns of a bar.
const BAR_COLUMNS: usize = 10;
/// Rounds in the small trend.
const TREND_COLUMNS: usize = 24;

/// Characters of a title that are looked at.
const TITLE_CHARS: usize = 400;

/// What each key does.
const KEYS: [(&str, &str); 10] = [
    ("↑ ↓  j k", "select a round; the last row follows the newest one"),
    ("g G  Home End", "the first and the last row"),
    ("[ ]", "a page of rounds up and down"),
    ("Tab  ← →  1-4", "log, evidence, diff, transcript"),
    ("PgUp PgDn  b Space", "scroll the details by a page"),
    ("J K", "scroll the details by a line"),
    ("f", "list all rounds, or those kept, dropped or undecided"),
    ("/", "list rounds whose title has a text; Esc ends the search"),
    ("?", "these keys"),
    ("q  Esc  Ctrl-C", "quit; the campaign goes on"),
];

/// Draws everything.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    model: &mut WatchModel,
    state: &mut WatchState,
    theme: Theme,
    now_ms: i64,
) {
    let area = frame.area();
    if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        draw_too_small(frame, area);
        return;
    }
    let parts = [Constraint::Length(3), Constraint::Min(6), Constraint::Length(1)];
    let [header, body, footer] = Layout::vertical(parts).areas(area);
    draw_header(frame, header, model, theme, now_ms);
    if state.shows_keys {
        draw_keys(frame, body, theme);
    } else {
        let columns = (body.width * 2 / 5).clamp(LIST_COLUMNS.0, LIST_COLUMNS.1);
        let halves = [Constraint::Length(columns), Constraint::Min(20)];
        let [list, details] = Layout::horizontal(halves).areas(body);
        draw_rounds(frame, list, model, state, theme);
        draw_details(frame, details, model, state, theme);
    }
    draw_footer(frame, footer, model, state, theme);
}

fn draw_too_small(frame: &mut Frame<'_>, area: Rect) {
    let lines = vec![
        Line::raw(format!("terminal too small: {}x{}", area.width, area.height)),
        Line::raw(format!("needs {COLUMNS_MIN}x{ROWS_MIN}; enlarge it,")),
        Line::raw("or use \"karve status\""),
    ];
    frame.render_widget(Text::from(lines), area);
}

fn draw_header(frame: &mut Frame<'_>, area: Rect, model: &WatchModel, theme: Theme, now_ms: i64) {
    let payload = &model.payload;
    let view = &payload.campaign;
    let about = payload.target.as_ref().map_or_else(String::new, |target| {
        format!("{} ({}) on {}", target.op, target.backend, target.device)
    });
    let state = view.stopped.as_ref().map_or_else(
        || {
            let ago = (now_ms - payload.to_ms).max(0) as f64 / 1_000.0;
            format!("{}, last event {} ago", view.step, time_text(ago.floor()))
        },
        |why| format!("finished: {why}"),
    );
    let first = Line::from(vec![
        Span::styled(format!(" {}", safe(&view.campaign, 60)), theme.tone(Tone::Strong)),
        Span::raw(format!("  {}  ", safe(&about, 60))),
        Span::styled(safe(&state, 120), theme.tone(Tone::Dim)),
    ]);
    let best: Vec<f64> = payload.trend.iter().map(|row| row.best).collect();
    let second = Line::from(vec![
        Span::styled(format!(" best {}", best_text(payload)), theme.tone(Tone::Good)),
        Span::raw(format!("  {}", trend_text(&best, TREND_COLUMNS))),
    ]);
    let third = Line::raw(format!(" {}", budget_text(payload)));
    frame.render_widget(Text::from(vec![first, second, third]), area);
}

/// The best kernel: as the final duel shows it, or as its round did.
fn best_text(payload: &Payload) -> String {
    let view = &payload.campaign;
    if let Some(headline) = &view.headline {
        return match &view.headline_over {
            Some(_) => format!("{} over {}", confident(headline), safe(&view.gain_over(), 60)),
            None => format!("{}, original against final", confident(headline)),
        };
    }
    if view.kept == 0 {
        return "none kept yet".to_owned();
    }
    let of_best = |row: &&TrendRow| row.round == view.best_round;
    let estimate = payload.trend.iter().find(of_best).and_then(|row| row.estimate);
    let text = match estimate {
        Some(estimate) => confident(&estimate),
        None => format!("{:.3}x", view.cumulative_ratio),
    };
    format!("{text} in round {}{}", view.best_round, safe(&view.gain_note(), 60))
}

/// An estimate, with how sure its interval is.
fn confident(estimate: &Estimate) -> String {
    let level = if estimate.low.is_some() { " at 95%" } else { "" };
    format!("{}{level}", estimate.describe())
}

fn budget_text(payload: &Payload) -> String {
    let view = &payload.campaign;
    let share = |used: f64, limit: f64| bar(used / limit.max(f64::MIN_POSITIVE), BAR_COLUMNS);
    let (done, most) = (view.rounds_done, view.rounds_max);
    let kept = view.kept;
    let rounds = share(f64::from(done), f64::from(most));
    let mut parts = vec![format!("rounds {rounds} {done}/{most}, {kept} kept")];
    let limits = payload.target.as_ref().map(|target| target.limits);
    let spent = time_text(view.spent_s);
    parts.push(match limits.and_then(|limits| limits.wall_s) {
        Some(wall_s) => {
            let limit = time_text(wall_s as f64);
            format!("time {} {spent} of {limit}", share(view.spent_s, wall_s as f64))
        }
        None => format!("time {spent}"),
    });
    let usd = view.usage.usd;
    match limits.and_then(|limits| limits.agent_usd) {
        Some(limit) => parts.push(format!("cost {} ${usd:.2} of ${limit:.2}", share(usd, limit))),
        None if usd > 0.0 => parts.push(format!("cost ${usd:.2}")),
        None => {}
    }
    parts.join("  ")
}

/// A row of the list: its text and tone.
fn rows_of(model: &WatchModel, state: &WatchState) -> Vec<(RowId, String, Tone)> {
    let wanted = state.search.to_lowercase();
    let short = |title: &str| title.chars().take(TITLE_CHARS).collect::<String>();
    let has = |title: &str| wanted.is_empty() || title.to_lowercase().contains(&wanted);
    let name = &model.payload.campaign.campaign;
    let mut rows = vec![(RowId::Campaign, format!("campaign {}", safe(name, 60)), Tone::Strong)];
    for round in &model.payload.rounds {
        let view = &round.view;
        let title = short(&view.title);
        if !state.filter.lists(&view.verdict) || !has(&title) {
            continue;
        }
        let (mark, tone) = match RoundFilter::of(&view.verdict) {
            RoundFilter::Kept => ("+", Tone::Good),
            RoundFilter::Dropped => ("-", Tone::Dim),
            RoundFilter::Undecided | RoundFilter::All => ("?", Tone::Dim),
        };
        let ratio = view.ratio.map_or_else(|| "      -".to_owned(), |r| format!("{r:>6.3}x"));
        let text = format!("{:>3} {mark} {ratio} {}", view.round, safe(&title, 100));
        rows.push((RowId::Round(view.round), text, tone));
    }
    if let Some(current) = &model.payload.campaign.current {
        let title = short(current.title.as_deref().unwrap_or_default());
        if state.filter == RoundFilter::All && has(&title) {
            let phase = safe(&current.phase, 20);
            let text = format!("{:>3} … {phase}  {}", current.round, safe(&title, 100));
            rows.push((RowId::Round(current.round), text, Tone::Strong));
        }
    }
    rows
}

fn draw_rounds(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &WatchModel,
    state: &mut WatchState,
    theme: Theme,
) {
    let rows = rows_of(model, state);
    state.rows = rows.iter().map(|(row, ..)| *row).collect();
    state.page.0 = usize::from(area.height.saturating_sub(2));
    let selected = state.row();
    let at = state.rows.iter().position(|row| *row == selected);
    let columns = usize::from(area.width.saturating_sub(2));
    let item = |(_, text, tone): &(RowId, String, Tone)| {
        ListItem::new(Line::styled(
            TonedLine::new(&text.chars().take(columns).collect::<String>()).text,
            theme.tone(*tone),
        ))
    };
    let title = match (state.search.is_empty(), state.filter) {
        (true, RoundFilter::All) => " rounds ".to_owned(),
        (true, filter) => format!(" rounds: {} ", filter.name()),
        (false, filter) => format!(" rounds: {}, \"{}\" ", filter.name(), safe(&state.search, 20)),
    };
    let list = List::new(rows.iter().map(item))
        .block(Block::new().borders(Borders::TOP | Borders::RIGHT).title(title))
        .highlight_style(theme.selected());
    frame.render_stateful_widget(list, area, &mut ListState::default().with_selected(at));
}

fn draw_details(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &mut WatchModel,
    state: &mut WatchState,
    theme: Theme,
) {
    let mut title = Vec::new();
    for (at, tab) in DetailTab::ALL.into_iter().enumerate() {
        let style = if tab == state.tab { theme.selected() } else { theme.tone(Tone::Dim) };
        title.push(Span::styled(format!(" {} {} ", at + 1, tab.name()), style));
    }
    let block = Block::new().borders(Borders::TOP).title(Line::from(title));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(1), ..inner };
    let row = state.row();
    if state.tab == DetailTab::Evidence {
        match row {
            RowId::Campaign => draw_trend(frame, inner, &model.payload, theme),
            RowId::Round(number) => {
                draw_duels(frame, inner, model.follower.duels(number), theme);
            }
        }
        return;
    }
    let (columns, height) = (usize::from(inner.width), usize::from(inner.height));
    let lines = model.text(row, state.tab, columns);
    state.page.1 = height;
    state.scroll = state.scroll.min(lines.len().saturating_sub(height));
    let shown = lines.iter().skip(state.scroll).take(height);
    let shown = shown.map(|line| {
        let style = line.tone.map(|tone| theme.tone(tone)).unwrap_or_default();
        Line::styled(line.text.clone(), style)
    });
    frame.render_widget(Text::from(shown.collect::<Vec<_>>()), inner);
    if lines.len() > height {
        let last = (state.scroll + height).min(lines.len());
        let text = format!(" {}-{last} of {} ", state.scroll + 1, lines.len());
        let width = u16::try_from(text.chars().count()).unwrap_or(0).min(area.width);
        let place = Rect { x: area.right() - width, y: area.y, width, height: 1 };
        if usize::from(area.width) > 52 + usize::from(width) {
            frame.render_widget(Line::raw(text), place);
        }
    }
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let block = Block::new().borders(Borders::TOP).title(" keys ");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let line = |(keys, what): (&'static str, &'static str)| {
        Line::from(vec![
            Span::styled(format!(" {keys:<20}"), theme.tone(Tone::Strong)),
            Span::raw(what),
        ])
    };
    let lines: Vec<Line<'_>> = KEYS.into_iter().map(line).collect();
    frame.render_widget(Text::from(lines), inner);
}

fn draw_footer(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &WatchModel,
    state: &WatchState,
    theme: Theme,
) {
    let line = if let Some(trouble) = &model.trouble {
        Line::styled(format!(" {}", safe(trouble, 300)), theme.tone(Tone::Bad))
    } else if state.is_typing {
        Line::raw(format!(" /{}▏ Enter to search, Esc to end it", safe(&state.search, 60)))
    } else if model.is_reading() {
        Line::raw(format!(" reading the log: {} records", model.payload.events))
    } else {
        let filter = state.filter.name();
        let text = format!(
            " ↑↓ round  Tab tab  PgUp/PgDn scroll  f filter: {filter}  / search  ? keys  q quit"
        );
        Line::styled(text, theme.tone(Tone::Dim))
    };
    frame.render_widget(line, area);
}
