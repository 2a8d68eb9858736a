//! How much a tuning run may try: so many settings, or so long.

use crate::bench::given::parse_time;
use std::time::Duration;

/// How much may be tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// So many settings.
    Settings(usize),
    /// So long, with what earlier runs took.
    Time(Duration),
}

/// What is tried where nobody says.
pub const DEFAULT: Budget = Budget::Settings(50);

/// Reads `50` or `10m`.
pub fn parse(text: &str) -> Result<Budget, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least one setting must be tried".into()),
        Ok(settings) => Ok(Budget::Settings(settings)),
        Err(_) => parse_time(text)
            .map(Budget::Time)
            .map_err(|_| "a budget is a number of settings or a time, such as 50 or 10m".into()),
    }
}
