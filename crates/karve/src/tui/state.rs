//! What the reader of a screen chose, and what each key does.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Characters of a search.
const SEARCH_CHARS_MAX: usize = 60;

/// A row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowId {
    /// The campaign as a whole.
    Campaign,
    /// A round.
    Round(u32),
}

/// What the details show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DetailTab {
    #[default]
    Log,
    Evidence,
    Diff,
    Transcript,
}

impl DetailTab {
    pub(super) const ALL: [Self; 4] = [Self::Log, Self::Evidence, Self::Diff, Self::Transcript];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Evidence => "evidence",
            Self::Diff => "diff",
            Self::Transcript => "transcript",
        }
    }

    fn moved(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// Which rounds are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RoundFilter {
    #[default]
    All,
    Kept,
    Dropped,
    Undecided,
}

impl RoundFilter {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Kept => "kept",
            Self::Dropped => "dropped",
            Self::Undecided => "undecided",
        }
    }

    /// What a verdict, as a word, belongs to.
    pub(super) fn of(verdict: &str) -> Self {
        match verdict {
            "keep" | "keep (gated)" => Self::Kept,
            "drop" => Self::Dropped,
            _ => Self::Undecided,
        }
    }

    /// Whether a verdict is listed.
    pub(super) fn lists(self, verdict: &str) -> bool {
        self == Self::All || self == Self::of(verdict)
    }

    fn next(self) -> Self {
        match self {
            Self::All => Self::Kept,
            Self::Kept => Self::Dropped,
            Self::Dropped => Self::Undecided,
            Self::Undecided => Self::All,
        }
    }
}

/// What the reader chose.
#[derive(Debug, Default)]
pub(super) struct WatchState {
    /// The selected row; none follows the newest one.
    pub(super) selected: Option<RowId>,
    pub(super) tab: DetailTab,
    pub(super) filter: RoundFilter,
    /// Only rounds whose title has this.
    pub(super) search: String,
    /// Whether the search is being typed.
    pub(super) is_typing: bool,
    pub(super) shows_keys: bool,
    /// Lines of the details above the screen.
    pub(super) scroll: usize,
    /// Rows of the list and lines of the details that fit, as drawn last.
    pub(super) page: (usize, usize),
    /// The rows of the list, as drawn last.
    pub(super) rows: Vec<RowId>,
}

/// Whether the screen goes on after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOutcome {
    Stay,
    Quit,
}

impl WatchState {
    /// The selected row.
    pub(super) fn row(&self) -> RowId {
        let listed = self.selected.filter(|row| self.rows.contains(row));
        listed.or_else(|| self.rows.last().copied()).unwrap_or(RowId::Campaign)
    }

    /// What a key does.
    pub(super) fn press(&mut self, key: KeyEvent) -> KeyOutcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c')) {
            return KeyOutcome::Quit;
        }
        if self.is_typing {
            self.type_key(key.code);
            return KeyOutcome::Stay;
        }
        if self.shows_keys {
            self.shows_keys = false;
            return KeyOutcome::Stay;
        }
        let (rows, lines) = self.page;
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return KeyOutcome::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.select_by(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select_by(1),
            KeyCode::Home | KeyCode::Char('g') => self.select_at(0),
            KeyCode::End | KeyCode::Char('G') => self.follow(),
            KeyCode::Char('[') => self.select_by(-i64::try_from(rows.max(1)).unwrap_or(1)),
            KeyCode::Char(']') => self.select_by(i64::try_from(rows.max(1)).unwrap_or(1)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll += lines.max(2) - 1,
            KeyCode::PageUp | KeyCode::Char('b') => {
                self.scroll = self.scroll.saturating_sub(lines.max(2) - 1);
            }
            KeyCode::Char('J') => self.scroll += 1,
            KeyCode::Char('K') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Tab | KeyCode::Right | KeyCode::Char('l') => self.open(self.tab.moved(1)),
            KeyCode::BackTab | KeyCode::Left | KeyCode::Char('h') => self.open(self.tab.moved(3)),
            KeyCode::Char(digit @ '1'..='4') => {
                let at = digit.to_digit(10).map_or(0, |digit| digit as usize - 1);
                self.open(DetailTab::ALL[at]);
            }
            KeyCode::Char('f') => {
                self.filter = self.filter.next();
                self.scroll = 0;
            }
            KeyCode::Char('/') => {
                self.search.clear();
                self.is_typing = true;
            }
            KeyCode::Char('?') => self.shows_keys = true,
            _ => {}
        }
        KeyOutcome::Stay
    }

    fn type_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.search.clear();
            }
            KeyCode::Backspace => {
                self.search.pop();
            }
            KeyCode::Char(c) if self.search.chars().count() < SEARCH_CHARS_MAX => {
                self.search.push(c);
            }
            _ => {}
        }
        self.scroll = 0;
    }

    fn open(&mut self, tab: DetailTab) {
        self.tab = tab;
        self.scroll = 0;
    }

    fn select_by(&mut self, by: i64) {
        let row = self.row();
        let at = self.rows.iter().position(|listed| *listed == row).unwrap_or(0);
        let at = i64::try_from(at).unwrap_or(0).saturating_add(by).max(0);
        self.select_at(usize::try_from(at).unwrap_or(0));
    }

    /// The last row follows the newest one.
    fn select_at(&mut self, at: usize) {
        self.scroll = 0;
        match at + 1 < self.rows.len() {
            true => self.selected = Some(self.rows[at]),
            false => self.follow(),
        }
    }

    fn follow(&mut self) {
        self.selected = None;
        self.scroll = 0;
    }
}
