//! How long blocks wait for a calm device, and when a reason to wait is checked again.
//!
//! Verdicts are valid without pauses, which only add statistical power. So every pause is bounded,
//! and one that did not help is not repeated soon: on a host that is always busy a campaign
//! loses at most a tenth of its time.

use crate::charter::DeviceRule;
use std::time::Duration;

/// The limit for all pauses of one duel together.
const DUEL_MAX: Duration = Duration::from_secs(120);
/// After a pause that did not help, the reason is not checked for this long.
const VAIN_REST: Duration = Duration::from_secs(300);
/// The same after a pause that helped: the average still includes the past load.
const CALM_REST: Duration = Duration::from_secs(10);

/// How a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseEnd {
    /// The reason was gone.
    Calm,
    /// The limit was reached.
    Vain,
    /// The user wants to stop.
    Stopped,
}

impl PauseEnd {
    /// How long the reason is not checked after this.
    pub fn rest(self) -> Duration {
        match self {
            Self::Calm => CALM_REST,
            Self::Vain => VAIN_REST,
            Self::Stopped => Duration::ZERO,
        }
    }
}

/// How much waiting is left in a duel, and the limit of a single pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseBudget {
    once: Duration,
    left: Duration,
}

impl PauseBudget {
    /// What a charter allows.
    pub fn new(rule: &DeviceRule) -> Self {
        Self::of(Duration::from_secs(rule.pause_max_s))
    }

    /// A budget with this limit of a single pause.
    pub fn of(once: Duration) -> Self {
        Self { once, left: DUEL_MAX }
    }

    /// Starts a new duel.
    pub fn renew(&mut self) {
        self.left = DUEL_MAX;
    }

    /// The limit of the next pause.
    pub fn limit(&self) -> Duration {
        self.once.min(self.left)
    }

    /// Takes a pause from what is left.
    pub fn spend(&mut self, waited: Duration) {
        self.left = self.left.saturating_sub(waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_of_a_duel_have_a_bound_together() {
        let once = Duration::from_secs(50);
        let mut budget = PauseBudget::of(once);
        let limits = [0; 4].map(|_| {
            let limit = budget.limit();
            budget.spend(limit);
            limit.as_secs()
        });
        assert_eq!(limits, [50, 50, 20, 0]);
        budget.renew();
        assert_eq!(budget.limit(), once);
    }

    #[test]
    fn a_pause_in_vain_is_repeated_late_and_one_that_was_stopped_at_once() {
        assert!(PauseEnd::Vain.rest() > PauseEnd::Calm.rest());
        assert_eq!(PauseEnd::Stopped.rest(), Duration::ZERO);
    }
}
