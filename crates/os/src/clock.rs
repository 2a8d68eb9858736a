//! The host's clock, for people: timestamps in the log and in names. Limits never depend on it.

use jiff::{Timestamp, Zoned};

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Seconds since 1970.
pub fn now_s() -> i64 {
    Timestamp::now().as_second()
}

/// The minute, as `YYYY-MM-DD HH:MM` in local time.
pub fn minute() -> String {
    Zoned::now().strftime("%Y-%m-%d %H:%M").to_string()
}

/// The second, as `YYYY-MM-DD HH:MM:SS` in local time.
pub fn second() -> String {
    Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The day, as `YYYY-MM-DD` in local time.
pub fn day() -> String {
    Zoned::now().strftime("%Y-%m-%d").to_string()
}

/// The latest date that a calendar can show anywhere now, as `YYYY-MM-DD`: the earliest time zone
/// is fourteen hours ahead of UTC.
pub fn latest_day() -> String {
    let ahead = jiff::tz::TimeZone::fixed(jiff::tz::offset(14));
    let there = Timestamp::now().to_zoned(ahead);
    there.strftime("%Y-%m-%d").to_string()
}
