//! The limits of a change that the implementer is told: registers, occupancy, what the language
//! can control.

use super::in_role;
use crate::campaign::Campaign;
use crate::profile::classify::with_derived;

/// Registers of a thread to aim for: more keep a second block from the multiprocessor.
const REGISTERS_AIM: f64 = 128.0;
/// The occupancy to aim for, in percent.
const OCCUPANCY_AIM_PCT: f64 = 25.0;

/// The limits of a change to the incumbent, from its profile and the language.
pub(super) fn limits(campaign: &Campaign) -> Vec<String> {
    let kernel = campaign.profile().and_then(|profile| profile.main_kernel());
    let values = kernel.map(with_derived).unwrap_or_default();
    let now = |name: &str| values.get(name).copied();
    let mut lines = Vec::new();
    if let Some(registers) = now("registers") {
        lines.push(format!("registers: at most {REGISTERS_AIM} per thread ({registers} now)"));
    }
    if let Some(occupancy) = now("occupancy_pct") {
        lines.push(format!("occupancy: at least {OCCUPANCY_AIM_PCT}% ({occupancy:.0}% now)"));
    }
    if let Some(spills) = now("spill_bytes") {
        lines.push(format!("spills: none ({spills} bytes now)"));
    }
    if let Some(shared) = now("shared_bytes") {
        lines.push(format!("shared memory: {shared} bytes per block now"));
    }
    let Some(charter) = campaign.charter() else {
        return lines;
    };
    let own = charter.target.language.clone();
    let language = in_role(campaign).map(|roles| roles.route.language);
    let language = language.filter(|language| !language.is_empty()).unwrap_or(own);
    let table_of_roles = charter.asks.role_table.as_deref();
    let note = table_of_roles.and_then(|table| table.called(&language)).map(|of| of.note.as_str());
    let control = note.filter(|note| !note.is_empty()).map(|note| format!("; {note}"));
    lines.push(format!("language: {language}{}", control.unwrap_or_default()));
    lines
}
