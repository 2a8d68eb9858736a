//! How much a tuning run may try: so many settings, or so long.

use crate::bench::given::parse_time;
use std::time::Duration;

/// How much may be tried; what is reached first ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// So many settings, with those of earlier runs.
    pub settings: usize,
    /// So long, with what earlier runs took.
    pub time: Duration,
}

/// What is tried where nobody says.
pub const DEFAULT: Budget = Budget {
    settings: 50,
    time: Duration::MAX,
};

/// Reads `50` or `10m`.
pub fn parse(text: &str) -> Result<Budget, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least one setting must be tried".into()),
        Ok(settings) => Ok(Budget {
            settings,
            ..DEFAULT
        }),
        Err(_) => parse_time(text)
            .map(|time| Budget {
                settings: usize::MAX,
                time,
            })
            .map_err(|_| "a budget is a number of settings or a time, such as 50 or 10m".into()),
    }
}

impl Budget {
    /// Whether only the time is bounded.
    pub fn is_time(&self) -> bool {
        self.settings == usize::MAX
    }
}
