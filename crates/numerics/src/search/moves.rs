//! The built-in strategy: which knob to change next, based on the history.
//!
//! Every earlier trial gives a log gain for the moves it made. A trial in another context counts
//! less: its weight shrinks with every other knob that has changed since, because a tile size that
//! did nothing for a naive loop may matter for a blocked one. Untried moves are expected to gain a
//! little, less so the more often the same knob was tried without success, and design choices more
//! than sizes. A knob that left the built artifact unchanged does nothing in its context. One knob
//! moves at a time; pairs come when single moves promise nothing more.

use crate::space::{Knob, KnobSetting};
use crate::stats::DrawRng;

/// Expected log gain of a size that was never changed.
const UNTRIED_GAIN: f64 = 0.15;
/// Expected log gain of a design choice (a knob whose values are words) that was never changed.
const UNTRIED_CHOICE_GAIN: f64 = 0.25;
/// From this weight on, a trial without effect counts for the whole knob.
const DEAD_WEIGHT: f64 = 0.4;
/// Assumed log gain of a trial that did not build or was wrong.
const FAILURE_GAIN: f64 = -0.7;
/// Below this log gain a move is not worth a round.
const GAIN_MIN_LN: f64 = 0.008;
/// If no single move promises this much, pairs are considered.
const PAIR_GAIN: f64 = 0.02;
/// The neighbors of an ordered knob's value promise at least this until they were tried: the best
/// value may lie between two that were.
const NEIGHBOUR_GAIN: f64 = 0.03;
/// A trial's weight is multiplied by this for every other size that differs now,
const CONTEXT_DECAY: f64 = 0.5;
/// and by this for every other design choice.
const CHOICE_DECAY: f64 = 0.2;
/// The share of a trial's result that counts for a neighboring value.
const NEIGHBOUR_DECAY: f64 = 0.5;
/// Maximum number of pairs to consider.
const PAIRS_MAX: usize = 4_000;

/// One earlier round of the built-in strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct KnobTrial {
    /// The knob values of the candidate; a knob that is left out keeps its value.
    pub config: KnobSetting,
    /// How it ended.
    pub outcome: TrialOutcome,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrialOutcome {
    /// It was measured, and kept or not.
    Measured {
        /// The speedup over its parent.
        ratio: f64,
        /// Whether it became the incumbent.
        kept: bool,
    },
    /// It did not build, was wrong or exceeded a limit.
    Failed,
    /// The build made the same artifact, so the knob does nothing here.
    NoEffect,
}

/// What to try next.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedMove {
    /// All knob values.
    pub config: KnobSetting,
    /// The knobs that move: name, from, to.
    pub changes: Vec<(String, String, String)>,
    /// The expected speedup.
    pub expected_ratio: f64,
    /// Why this one, in words.
    pub why: String,
}

/// A move of one knob and its expected gain.
#[derive(Clone, Debug)]
struct KnobStep<'a> {
    knob: &'a Knob,
    to: &'a str,
    gain: f64,
    /// Weighted number of relevant trials.
    weight: f64,
}

/// A trial as the model sees it: the moves from its parent.
struct Observation {
    parent: KnobSetting,
    config: KnobSetting,
    gain: f64,
    outcome: TrialOutcome,
}

/// The next move, or `None` if nothing promises enough.
pub fn propose(
    knobs: &[Knob],
    base: &KnobSetting,
    trials: &[KnobTrial],
    seed: u64,
) -> Option<ProposedMove> {
    let (incumbent, observations) = observe(base, trials);
    let tried = |config: &KnobSetting| config == base || trials.iter().any(|t| t.config == *config);
    let mut draws = DrawRng::new(seed ^ trials.len() as u64);
    let seen = TrialHistory { knobs, now: &incumbent, observations: &observations };
    let mut steps = seen.single_steps();
    // Knobs with the same promise are tried in declared order, the values of one in random order.
    let n_steps = steps.len() as f64;
    for (index, step) in steps.iter_mut().enumerate() {
        let knob = knobs.iter().position(|knob| knob.name == step.knob.name).unwrap_or(index);
        step.gain += (draws.next_f64() - knob as f64) / n_steps.max(1.0) * 1e-3;
    }
    let fresh = |step: &&KnobStep<'_>| !tried(&changed(&incumbent, &[step]));
    let best = steps.iter().filter(fresh).max_by(|a, b| a.gain.total_cmp(&b.gain));
    if let Some(best) = best
        && best.gain >= PAIR_GAIN
    {
        return Some(describe(&incumbent, &[best]));
    }
    let pair = best_pair(&steps, &incumbent, &tried);
    let single = best.filter(|best| best.gain >= GAIN_MIN_LN);
    match (single, pair) {
        (Some(single), Some((a, b))) if single.gain < a.gain + b.gain => {
            Some(describe(&incumbent, &[a, b]))
        }
        (Some(single), _) => Some(describe(&incumbent, &[single])),
        (None, Some((a, b))) => Some(describe(&incumbent, &[a, b])),
        (None, None) => None,
    }
}

/// Replays the trials: the incumbent's values now, and the result of each trial.
fn observe(base: &KnobSetting, trials: &[KnobTrial]) -> (KnobSetting, Vec<Observation>) {
    let mut incumbent = base.clone();
    let mut observations = Vec::with_capacity(trials.len());
    for trial in trials {
        let (gain, kept) = match trial.outcome {
            TrialOutcome::Measured { ratio, kept } => (ratio.max(1e-6).ln(), kept),
            TrialOutcome::Failed => (FAILURE_GAIN, false),
            TrialOutcome::NoEffect => (0.0, false),
        };
        let mut config = incumbent.clone();
        config.extend(trial.config.clone());
        observations.push(Observation {
            parent: incumbent.clone(),
            config: config.clone(),
            gain,
            outcome: trial.outcome,
        });
        if kept {
            incumbent = config;
        }
    }
    (incumbent, observations)
}

/// What is known: the knobs, the incumbent's values, and every trial.
struct TrialHistory<'a> {
    knobs: &'a [Knob],
    now: &'a KnobSetting,
    observations: &'a [Observation],
}

impl<'a> TrialHistory<'a> {
    fn single_steps(&self) -> Vec<KnobStep<'a>> {
        let mut steps = Vec::new();
        for knob in self.knobs {
            let current = self.now.get(&knob.name).unwrap_or(&knob.current);
            let dead = self.is_dead(knob);
            for to in knob.values.iter().filter(|value| *value != current) {
                let (mut gain, weight) = self.expected_gain(knob, (current, to));
                if dead {
                    gain = gain.min(0.0);
                } else if is_neighbour(knob, current, to) && !self.tried_here(knob, to) {
                    gain = gain.max(NEIGHBOUR_GAIN);
                }
                steps.push(KnobStep { knob, to, gain, weight });
            }
        }
        steps
    }

    /// Whether the knob did nothing in a context like this one.
    fn is_dead(&self, knob: &Knob) -> bool {
        self.moves_of(knob).any(|observation| {
            observation.outcome == TrialOutcome::NoEffect
                && moved(observation) == 1
                && self.context_weight(knob, observation) >= DEAD_WEIGHT
        })
    }

    /// The trials that changed a knob.
    fn moves_of(&self, knob: &Knob) -> impl Iterator<Item = &'a Observation> {
        let name = knob.name.clone();
        self.observations.iter().filter(move |o| o.parent.get(&name) != o.config.get(&name))
    }

    /// Whether a value was tried while all other knobs had their present values, or nearly so.
    fn tried_here(&self, knob: &Knob, value: &str) -> bool {
        self.moves_of(knob).any(|observation| {
            observation.config.get(&knob.name).is_some_and(|v| v == value)
                && self.context_weight(knob, observation) >= CONTEXT_DECAY
        })
    }

    /// The expected log gain of a move, and how much is known about it.
    fn expected_gain(&self, knob: &Knob, (from, to): (&str, &str)) -> (f64, f64) {
        let (mut weight, mut sum) = (0.0, 0.0);
        let (mut knob_weight, mut knob_gain) = (0.0, 0.0);
        for observation in self.moves_of(knob) {
            let before = observation.parent.get(&knob.name);
            let after = observation.config.get(&knob.name);
            let (Some(before), Some(after)) = (before, after) else {
                continue;
            };
            let context = self.context_weight(knob, observation);
            let gain = observation.gain / moved(observation) as f64;
            knob_weight += context;
            knob_gain += context * gain.max(0.0);
            // A failure says nothing about the neighbors.
            if observation.outcome == TrialOutcome::Failed && after != to {
                continue;
            }
            let (near, signed) = relevance(knob, (from, to), (before, after));
            weight += context * near;
            sum += context * near * signed * gain;
        }
        let untried = if knob.is_ordered() { UNTRIED_GAIN } else { UNTRIED_CHOICE_GAIN };
        // A knob that gained once is not expected to gain as much again.
        let prior = ((knob_gain + untried) / (knob_weight + 1.0)).min(2.0 * untried);
        // Half a trial's worth of optimism remains whatever the results.
        ((sum + 0.5 * prior) / (weight + 0.5), weight)
    }

    /// How similar a trial's context is to the incumbent, apart from the knob itself.
    fn context_weight(&self, knob: &Knob, observation: &Observation) -> f64 {
        let others = self.knobs.iter().filter(|other| other.name != knob.name);
        let differing =
            others.filter(|other| self.now.get(&other.name) != observation.parent.get(&other.name));
        differing.map(|o| if o.is_ordered() { CONTEXT_DECAY } else { CHOICE_DECAY }).product()
    }
}

fn is_neighbour(knob: &Knob, a: &str, b: &str) -> bool {
    let place = |value: &str| knob.position(value).unwrap_or(usize::MAX);
    knob.is_ordered() && place(a).abs_diff(place(b)) == 1
}

/// How many knobs a trial changed; at least one.
fn moved(observation: &Observation) -> usize {
    let differs = |(name, value): &(&String, &String)| observation.parent.get(*name) != Some(value);
    observation.config.iter().filter(differs).count().max(1)
}

/// How much a tried move says about a wanted one, and with which sign.
fn relevance(knob: &Knob, wanted: (&str, &str), seen: (&str, &str)) -> (f64, f64) {
    if wanted == seen {
        return (1.0, 1.0);
    }
    if wanted == (seen.1, seen.0) {
        return (1.0, -1.0);
    }
    if wanted.1 == seen.0 && !knob.is_ordered() {
        // Back to a value that another one beat.
        return (0.7, -1.0);
    }
    if !knob.is_ordered() {
        return if wanted.1 == seen.1 { (0.5, 1.0) } else { (0.0, 1.0) };
    }
    let place = |value: &str| knob.position(value).unwrap_or(0) as i32;
    let upward = |pair: (&str, &str)| place(pair.1) > place(pair.0);
    let distance = (place(wanted.1) - place(seen.1)).abs().max(1);
    let sign = if upward(wanted) == upward(seen) { 1.0 } else { -1.0 };
    (NEIGHBOUR_DECAY.powi(distance), sign)
}

fn changed(incumbent: &KnobSetting, steps: &[&KnobStep<'_>]) -> KnobSetting {
    let mut config = incumbent.clone();
    for step in steps {
        config.insert(step.knob.name.clone(), step.to.to_owned());
    }
    config
}

/// The most promising pair of moves of two knobs, both of which were changed alone before.
fn best_pair<'s, 'a>(
    steps: &'s [KnobStep<'a>],
    incumbent: &KnobSetting,
    tried: &dyn Fn(&KnobSetting) -> bool,
) -> Option<(&'s KnobStep<'a>, &'s KnobStep<'a>)> {
    let known: Vec<&KnobStep<'_>> =
        steps.iter().filter(|s| s.weight > 0.2 && s.gain > -0.05).collect();
    let mut best: Option<(f64, &KnobStep<'_>, &KnobStep<'_>)> = None;
    let mut looked_at = 0;
    for (index, a) in known.iter().enumerate() {
        for b in &known[index + 1..] {
            if a.knob.name == b.knob.name || looked_at >= PAIRS_MAX {
                continue;
            }
            looked_at += 1;
            let gain = a.gain + b.gain;
            let better = best.is_none_or(|(so_far, _, _)| gain > so_far);
            if better && gain >= GAIN_MIN_LN && !tried(&changed(incumbent, &[a, b])) {
                best = Some((gain, a, b));
            }
        }
    }
    best.map(|(_, a, b)| (a, b))
}

fn describe(incumbent: &KnobSetting, steps: &[&KnobStep<'_>]) -> ProposedMove {
    let gain: f64 = steps.iter().map(|step| step.gain).sum();
    let changes = steps
        .iter()
        .map(|step| {
            let from = incumbent.get(&step.knob.name).unwrap_or(&step.knob.current);
            (step.knob.name.clone(), from.clone(), step.to.to_owned())
        })
        .collect();
    let known = steps.iter().map(|step| step.weight).fold(f64::INFINITY, f64::min);
    let why = if steps.len() > 1 {
        "no single move promises more, and these two were close on their own"
    } else if known < 0.1 {
        "no trial in this context has moved it yet"
    } else if gain > UNTRIED_CHOICE_GAIN {
        "moves like it gained before"
    } else {
        "the trials of its neighbors leave room"
    };
    ProposedMove {
        config: changed(incumbent, steps),
        changes,
        expected_ratio: gain.exp(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(name: &str, values: &[&str]) -> Knob {
        Knob {
            name: name.into(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
            file: "k.c".into(),
            spot: crate::space::KnobLocation::Value { line: 0 },
            when: None,
            current: values[0].into(),
        }
    }

    fn knobs() -> Vec<Knob> {
        vec![
            knob("ORDER", &["ijk", "ikj", "tiled"]),
            knob("TILE", &["8", "16", "32", "64", "128"]),
            knob("OPT", &["-O1", "-O2", "-O3"]),
            knob("UNROLL", &["1", "2", "4"]),
        ]
    }

    fn base(knobs: &[Knob]) -> KnobSetting {
        knobs.iter().map(|knob| (knob.name.clone(), knob.current.clone())).collect()
    }

    /// A made-up kernel: tiles matter only when tiled, -O3 breaks with UNROLL 4.
    fn time(config: &KnobSetting) -> Option<f64> {
        let get = |name: &str| config[name].as_str();
        let mut time = match get("ORDER") {
            "ijk" => 20.0,
            "ikj" => 8.0,
            _ => match get("TILE") {
                "8" => 7.5,
                "16" => 5.0,
                "32" => 3.0,
                "64" => 4.0,
                _ => 6.0,
            },
        };
        time *= match get("OPT") {
            "-O1" => 1.0,
            "-O2" => 0.8,
            _ if get("UNROLL") == "4" => return None,
            _ => 0.5,
        };
        Some(time * if get("UNROLL") == "2" { 0.95 } else { 1.0 })
    }

    fn climb(seed: u64) -> (f64, usize, usize) {
        let knobs = knobs();
        let base = base(&knobs);
        let mut trials: Vec<KnobTrial> = Vec::new();
        let mut now = time(&base).unwrap();
        let mut to_optimum = usize::MAX;
        while let Some(next) = propose(&knobs, &base, &trials, seed) {
            let outcome = match time(&next.config) {
                None => TrialOutcome::Failed,
                Some(t) => {
                    let (ratio, kept) = (now / t, now / t > 1.02);
                    now = if kept { t } else { now };
                    TrialOutcome::Measured { ratio, kept }
                }
            };
            trials.push(KnobTrial { config: next.config, outcome });
            if now < 1.43 {
                to_optimum = to_optimum.min(trials.len());
            }
            assert!(trials.len() <= 135, "the space has 135 points");
        }
        (now, to_optimum, trials.len())
    }

    #[test]
    fn it_finds_the_optimum_of_a_made_up_kernel_in_few_trials() {
        for seed in 0..20 {
            let (time, to_optimum, trials) = climb(seed);
            assert!(time < 1.43, "seed {seed} ended at {time} after {trials}");
            assert!(to_optimum <= 25, "seed {seed} needed {to_optimum} of 135");
        }
    }

    #[test]
    fn nothing_is_tried_twice_and_the_same_history_gives_the_same_move() {
        let knobs = knobs();
        let base = base(&knobs);
        let mut trials = Vec::new();
        while let Some(next) = propose(&knobs, &base, &trials, 4) {
            assert_eq!(propose(&knobs, &base, &trials, 4), Some(next.clone()));
            assert!(trials.iter().all(|trial: &KnobTrial| trial.config != next.config));
            let outcome = TrialOutcome::Measured { ratio: 1.0, kept: false };
            trials.push(KnobTrial { config: next.config, outcome });
        }
        assert!((10..=60).contains(&trials.len()), "{} trials without success", trials.len());
    }
}
