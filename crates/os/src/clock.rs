//! The host's clock, for people: timestamps in the log and in names. Limits never depend on it.

use std::time::{SystemTime, UNIX_EPOCH};

/// The most that a calendar can be ahead of UTC.
const AHEAD_MAX_S: i64 = 14 * 3600;

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Seconds since 1970.
pub fn now_s() -> i64 {
    now_ms() / 1_000
}

/// The minute, as `YYYY-MM-DD HH:MM` in local time.
pub fn minute() -> String {
    second()[..16].to_owned()
}

/// The second, as `YYYY-MM-DD HH:MM:SS` in local time.
pub fn second() -> String {
    let now_s = now_s();
    utc_second(now_s + offset_s(now_s))
}

/// The day, as `YYYY-MM-DD` in local time.
pub fn day() -> String {
    second()[..10].to_owned()
}

/// The latest date that a calendar can show anywhere now, as `YYYY-MM-DD`.
pub fn latest_day() -> String {
    utc_second(now_s() + AHEAD_MAX_S)[..10].to_owned()
}

/// The minute of a time in milliseconds, in UTC, as `YYYY-MM-DD HH:MM`.
pub fn utc_minute(at_ms: i64) -> String {
    utc_second(at_ms.div_euclid(1_000)).chars().take(16).collect()
}

/// A time in UTC, as `YYYY-MM-DD HH:MM:SS`; years outside 0 to 9999 are shown as the nearest one.
pub fn utc_second(at_s: i64) -> String {
    let at_s = at_s.clamp(-62_167_219_200, 253_402_300_799);
    let (day, second) = (at_s.div_euclid(86_400), at_s.rem_euclid(86_400));
    // A year starts in March, so that a leap day is its last; eras have 400 years.
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02}")
}

/// How far the local time is ahead of UTC.
#[allow(unsafe_code, reason = "only the C library knows the time zone")]
fn offset_s(at_s: i64) -> i64 {
    // SAFETY: both pointers are valid for the call, and all-zero is a valid `tm`.
    unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&raw const at_s, &raw mut local).is_null() {
            return 0;
        }
        local.tm_gmtoff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        let check = |at_s: i64, want: &str| assert_eq!(utc_second(at_s), want);
        check(0, "1970-01-01 00:00:00");
        check(-1, "1969-12-31 23:59:59");
        check(951_782_400, "2000-02-29 00:00:00");
        check(4_107_542_399, "2100-02-28 23:59:59");
        check(4_107_542_400, "2100-03-01 00:00:00");
        check(1_794_864_600, "2026-11-16 21:30:00");
        check(i64::MIN, "0000-01-01 00:00:00");
        check(i64::MAX, "9999-12-31 23:59:59");
    }

    #[test]
    fn local_time_is_within_fourteen_hours_of_utc() {
        assert!(offset_s(now_s()).abs() <= AHEAD_MAX_S);
        assert_eq!(minute().len(), 16);
        assert!(day() <= latest_day());
    }
}
