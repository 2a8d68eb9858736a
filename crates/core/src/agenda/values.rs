//! Items that set knobs: whether a change sets exactly the requested values.

use super::{AgendaItem, ItemAction};
use karve_numerics::space::KnobSetting;

impl AgendaItem {
    /// Why a change does not set the knobs as the item asks, given the values before and after it;
    /// `None` if it does, or if the item sets no values.
    pub fn misses_values(&self, before: &KnobSetting, after: &KnobSetting) -> Option<String> {
        let ItemAction::Knobs { config } = &self.how else {
            return None;
        };
        let asked = |name: &String, want: &String| match after.get(name) {
            Some(is) if is == want => None,
            Some(is) => Some(format!("{name} is {is}, not {want}")),
            None => Some(format!("{name} is gone, but should be {want}")),
        };
        let left = |name: &String, was: &String| match after.get(name) {
            Some(is) if is == was => None,
            Some(is) => Some(format!("{name} changed to {is}, but should stay {was}")),
            None => Some(format!("{name} is gone")),
        };
        let others = before.iter().filter(|(name, _)| !config.contains_key(*name));
        let wrong = config.iter().filter_map(|(name, want)| asked(name, want));
        let wrong = wrong.chain(others.filter_map(|(name, was)| left(name, was)));
        let wrong: Vec<String> = wrong.collect();
        (!wrong.is_empty()).then(|| format!("wrong values for {}: {}", self.id, wrong.join("; ")))
    }
}
