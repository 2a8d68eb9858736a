//! The budget of a tuning run: a number of settings, or a time.

use crate::bench::command_args::parse_time;
use std::time::Duration;

/// How much may be tried; whichever limit is reached first ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TuneBudget {
    /// The most settings, including those of earlier runs.
    pub settings: usize,
    /// The longest time, including earlier runs.
    pub time: Duration,
}

/// The default budget.
pub const DEFAULT: TuneBudget = TuneBudget {
    settings: 50,
    time: Duration::MAX,
};

/// Reads `50` or `10m`.
pub fn parse(text: &str) -> Result<TuneBudget, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least one setting must be tried".into()),
        Ok(settings) => Ok(TuneBudget {
            settings,
            ..DEFAULT
        }),
        Err(_) => parse_time(text)
            .map(|time| TuneBudget {
                settings: usize::MAX,
                time,
            })
            .map_err(|_| "a budget is a number of settings or a time, such as 50 or 10m".into()),
    }
}

impl TuneBudget {
    /// Whether only the time is limited.
    pub fn is_time(&self) -> bool {
        self.settings == usize::MAX
    }
}
