//! What to do after a request that got no reply: retry after a wait, or give up.

use std::time::Duration;

/// No wait between two attempts is longer, unless the server asks for it.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// If a server asks for a longer wait, karve gives up.
pub const SERVER_WAIT_MAX: Duration = Duration::from_secs(600);

/// What the HTTP status of a failed request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMeaning {
    /// It may be temporary.
    Passes,
    /// The request may be too long; the server's message says so.
    MayBeTooLong,
    /// A retry would fail in the same way.
    Lasts,
}

/// What a status means.
pub fn meaning_of(status: u64) -> StatusMeaning {
    match status {
        408 | 425 | 429 | 500..=599 => StatusMeaning::Passes,
        400 | 413 | 422 => StatusMeaning::MayBeTooLong,
        _ => StatusMeaning::Lasts,
    }
}

/// Why there is no reply, as far as it matters for a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    /// It may be temporary, and the server asks for this wait.
    Passing(Duration),
    /// A retry would not help.
    Lasting,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Retry after this wait.
    AskAgain(Duration),
    /// Give up.
    GiveUp,
}

/// The state when deciding whether to retry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryState {
    /// Retries so far.
    pub tried: u32,
    /// From 0 to 1, so that many clients that failed at once do not all retry at once.
    pub chance: f64,
    /// The time left.
    pub left: Duration,
}

/// How often and how soon a request is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRule {
    /// Attempts after the first.
    pub retries: u32,
    /// The first wait; each further one is twice as long.
    pub base: Duration,
}

impl RetryRule {
    /// What to do after a request that got no reply. A wait is shortened at random by up to a half;
    /// it is never shorter than the server asks for, and never ends after the time that is left.
    pub fn next(&self, missed: RetryCause, at: RetryState) -> RetryDecision {
        let RetryCause::Passing(asked) = missed else {
            return RetryDecision::GiveUp;
        };
        if at.tried >= self.retries || asked > SERVER_WAIT_MAX {
            return RetryDecision::GiveUp;
        }
        let doubled = 1_u32.checked_shl(at.tried.min(31)).unwrap_or(u32::MAX);
        let wait = self.base.saturating_mul(doubled).min(WAIT_MAX);
        let jittered = wait.mul_f64(0.5 + at.chance.clamp(0.0, 1.0) / 2.0);
        match jittered.max(asked) {
            wait if wait < at.left => RetryDecision::AskAgain(wait),
            _ => RetryDecision::GiveUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONG: Duration = Duration::from_secs(100_000);

    #[test]
    fn waits_grow_are_spread_and_honour_the_server() {
        let rule = RetryRule { retries: 3, base: Duration::from_secs(1) };
        let check = |missed, (tried, chance), want: Option<u64>| {
            let left = LONG;
            let next = rule.next(missed, RetryState { tried, chance, left });
            let want = want.map_or(RetryDecision::GiveUp, |ms| {
                RetryDecision::AskAgain(Duration::from_millis(ms))
            });
            assert_eq!(next, want, "{missed:?} {tried} {chance}");
        };
        let passing = |s| RetryCause::Passing(Duration::from_secs(s));
        check(passing(0), (0, 0.0), Some(500));
        check(passing(0), (0, 1.0), Some(1_000));
        check(passing(0), (2, 1.0), Some(4_000));
        check(passing(0), (3, 1.0), None);
        check(passing(7), (0, 0.5), Some(7_000));
        check(passing(600), (0, 0.5), Some(600_000));
        check(passing(601), (0, 0.5), None);
        check(RetryCause::Lasting, (0, 1.0), None);
    }

    #[test]
    fn only_what_may_pass_is_asked_again() {
        let all = |status: &[u64], want: StatusMeaning| {
            for status in status {
                assert_eq!(meaning_of(*status), want, "{status}");
            }
        };
        all(&[408, 425, 429, 500, 502, 503, 529, 599], StatusMeaning::Passes);
        all(&[400, 413, 422], StatusMeaning::MayBeTooLong);
        all(&[0, 200, 301, 401, 402, 403, 404, 600], StatusMeaning::Lasts);
    }

    proptest! {
        #[test]
        fn waits_are_bounded_and_tries_come_to_an_end(
            (retries, base_ms) in (0_u32..50, 0_u64..200_000),
            (tried, chance) in (0_u32..60, -1.0..2.0_f64),
            (asked_ms, left_ms) in (0_u64..700_000, 0_u64..1_000_000),
        ) {
            let ms = Duration::from_millis;
            let rule = RetryRule { retries, base: ms(base_ms) };
            let moment = RetryState { tried, chance, left: ms(left_ms) };
            match rule.next(RetryCause::Passing(ms(asked_ms)), moment) {
                RetryDecision::AskAgain(wait) => {
                    prop_assert!(tried < retries);
                    prop_assert!(wait >= ms(asked_ms) && wait < ms(left_ms));
                    prop_assert!(wait <= WAIT_MAX.max(ms(asked_ms)));
                    // Jitter shortens a wait by at most half.
                    prop_assert!(wait >= ms(base_ms).min(WAIT_MAX).mul_f64(0.5));
                }
                RetryDecision::GiveUp => {
                    let longest = rule.base.saturating_mul(2_u32.pow(tried.min(31))).min(WAIT_MAX);
                    let had_time = ms(left_ms) > longest.max(ms(asked_ms));
                    prop_assert!(tried >= retries || ms(asked_ms) > SERVER_WAIT_MAX || !had_time);
                }
            }
        }
    }
}
