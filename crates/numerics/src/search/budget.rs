//! The budget of a tuning run: a number of settings, or a time.

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
pub const DEFAULT: TuneBudget = TuneBudget { settings: 50, time: Duration::MAX };

/// Reads `50` or `10m`.
pub fn parse(text: &str) -> Result<TuneBudget, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least one setting must be tried".into()),
        Ok(settings) => Ok(TuneBudget { settings, ..DEFAULT }),
        Err(_) => parse_time(text)
            .map(|time| TuneBudget { settings: usize::MAX, time })
            .map_err(|_| "a budget is a number of settings or a time, such as 50 or 10m".into()),
    }
}

impl TuneBudget {
    /// Whether only the time is limited.
    pub fn is_time(&self) -> bool {
        self.settings == usize::MAX
    }
}

/// Reads `60s`, `5m`, `1.5h` or `500ms`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let usage = || "write a time like 60s, 500ms, 5m or 1.5h".to_owned();
    let split = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(split.ok_or_else(usage)?);
    let seconds = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(usage()),
    };
    let number: f64 = number.trim().parse().map_err(|_| usage())?;
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| usage())?;
    if time.is_zero() { Err(usage()) } else { Ok(time) }
}
