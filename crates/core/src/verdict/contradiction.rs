//! What contradicts a proof: another clock, or one of the devices.

use crate::duel::{ClockTrack, Duel};
use karve_numerics::stats::SignEvidence;

/// Whether another clock, or any clock on one of several devices, shows that the candidate is
/// slower.
pub(super) fn is_contradicted(duel: &Duel, track: &ClockTrack) -> bool {
    let enough = duel.rule.guard_evidence;
    let mut others = duel.tracks.iter().filter(|other| other.clock != track.clock);
    others.any(|other| other.slower.reached(enough)) || is_slower_on_a_device(duel, enough)
}

fn is_slower_on_a_device(duel: &Duel, enough: f64) -> bool {
    let is_slower = |ln_speedups: &Vec<f64>| {
        let mut slower = SignEvidence::default();
        ln_speedups.iter().for_each(|ln| slower.see(*ln < 0.0));
        slower.reached(enough)
    };
    let of_track = |track: &ClockTrack| duel.strata.split(&track.ln_speedups);
    duel.strata.names().len() > 1 && duel.tracks.iter().flat_map(of_track).any(|s| is_slower(&s))
}
