//! What the host did to the readings of a campaign or a round: waits, and blocks on a busy host.

use super::{Campaign, Event};
use crate::measurement::Conditions;
use serde::{Deserialize, Serialize};

/// A host that was busy in this share of the blocks is named beside the headline.
const BUSY_SHARE: f64 = 0.25;
/// Clocks that differ by more than this are both named on a busy host.
const CLOCKS_RATIO: f64 = 1.1;

/// How long readings waited for the device, and how many blocks were measured on a busy host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostTally {
    /// Not part of any step's time of work.
    pub waited_ms: u64,
    /// Blocks that were measured while other processes kept the CPUs busy.
    pub busy_blocks: u32,
    /// All blocks.
    pub blocks: u32,
}

impl HostTally {
    /// Whether there is nothing to say.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Counts the readings of an event; above this pressure, in percent, a host is busy.
    pub(super) fn take(&mut self, event: &Event, pressure_max: f64) {
        let conditions = conditions(event);
        let pauses = conditions.iter().flat_map(|conditions| &conditions.pauses);
        self.waited_ms = pauses.fold(self.waited_ms, |sum, p| sum.saturating_add(p.waited_ms));
        if matches!(event, Event::BlockMeasured { .. }) {
            let pressure = conditions.and_then(|conditions| conditions.pressure);
            self.busy_blocks += u32::from(pressure.is_some_and(|now| now > pressure_max));
            self.blocks += 1;
        }
    }

    /// In how many blocks the host was busy, if in many.
    fn busy_note(self) -> Option<String> {
        let many = self.busy_blocks > 0
            && f64::from(self.busy_blocks) >= BUSY_SHARE * f64::from(self.blocks);
        many.then(|| format!("busy host in {} of {} blocks", self.busy_blocks, self.blocks))
    }
}

impl Campaign {
    /// What must be said beside the headline if the host was often busy: wall time stretches the
    /// slower arm more, so another clock that differs is named.
    pub fn busy_note(&self) -> Option<String> {
        let note = self.host.busy_note()?;
        let Some(comparison) = self.final_comparison() else {
            return Some(note);
        };
        let differs =
            |ratio: f64| (ratio / comparison.overall.ratio).ln().abs() > CLOCKS_RATIO.ln();
        let second = comparison.second.filter(|second| differs(second.overall.ratio));
        Some(match second {
            Some(second) => {
                format!("{note}, {:.3}x by {}", second.overall.ratio, second.clock.name())
            }
            None => note,
        })
    }
}

/// The state of the host when the readings of an event were taken.
fn conditions(event: &Event) -> Option<&Conditions> {
    match event {
        Event::BaselineMeasured(baseline) => baseline.conditions.as_deref(),
        Event::BlockMeasured { block, .. } => block.conditions.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Clock, Estimate, SecondClock};
    use crate::testing::script::{play, script};

    #[test]
    fn a_headline_of_a_busy_host_names_the_clock_that_differs() {
        let (mut campaign, _) = play(&script(&[1.3]));
        assert_eq!(campaign.busy_note(), None);
        campaign.host = HostTally { waited_ms: 0, busy_blocks: 2, blocks: 9 };
        assert_eq!(campaign.view().speedup_note, None);
        campaign.host.busy_blocks = 3;
        let busy = "busy host in 3 of 9 blocks";
        assert_eq!(campaign.view().speedup_note.as_deref(), Some(busy));
        let by = |ratio: f64| SecondClock {
            clock: Clock::Cpu,
            overall: Estimate { ratio, low: None, high: None },
            evidence_faster: 0.0,
            evidence_not_faster: 0.0,
        };
        let ratio = campaign.final_comparison().unwrap().overall.ratio;
        let mut told = |second| {
            campaign.final_comparison.as_mut().unwrap().second = Some(by(second));
            campaign.busy_note().unwrap()
        };
        assert_eq!(told(ratio * 1.09), busy);
        assert_eq!(told(0.31), format!("{busy}, 0.310x by CPU time"));
    }
}
