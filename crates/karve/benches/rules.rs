//! The rules benchmark: how often does a rule call a no-op faster, and which gains does it see?
//!
//! `cargo bench --bench rules` replays the recorded duels of `testdata/timings` through karve's own
//! rule and through those of other tools, and prints one table for each load and one for all. The
//! truth is known: the arms were equal, or one did 1, 2, 3 or 5% more work by instruction count.
//! Every duel is judged with both labels: two null decisions for equal arms, otherwise a gain and
//! a loss. The exit code is 1 if karve's rule misses a bound.

#[path = "rules/campaign.rs"]
mod campaign;
#[path = "rules/others.rs"]
mod others;
#[path = "rules/ours.rs"]
mod ours;
#[path = "rules/significance.rs"]
mod significance;
#[path = "rules/trials.rs"]
mod trials;

use karve::ui;
use karve_numerics::stats;
use karve_os::error::Result;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use trials::{LOADS, Series, Trial};

/// The true gains that were recorded, in percent.
const EFFECTS: [u32; 4] = [1, 2, 3, 5];
/// Rounds that share the error.
const ROUNDS: i32 = 120;
/// Null decisions at least.
const NULLS_MIN: usize = 1_000;
/// The highest share of no-ops that may be accepted.
const FALSE_MAX: f64 = 0.001;
/// Slower candidates at least; none may be accepted.
const SLOWER_MIN: usize = 300;
/// Gains that must be seen: percent, and the share of duels.
const POWER_MIN: [(u32, f64); 2] = [(3, 0.90), (5, 0.99)];
/// Runs that a decision may take on average, for a no-op and for a gain of 5%.
const RUNS_MAX: f64 = 200.0;
/// How far the median ratio on the CPU clock may be from the calibrated effect.
const CALIBRATION_OFF_MAX: f64 = 0.005;

/// What a rule said to one duel.
pub(crate) struct Decision {
    accepts: bool,
    /// `false` if the rule asked for more pairs than there are.
    decided: bool,
    pairs: usize,
}

impl Decision {
    pub(crate) fn new(accepts: bool, pairs: usize) -> Self {
        Self { accepts, decided: true, pairs }
    }

    pub(crate) fn undecided(pairs: usize) -> Self {
        Self { accepts: false, decided: false, pairs }
    }
}

/// What was true about a duel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Equal,
    Faster(u32),
    Slower,
}

/// A decision with what was true.
struct Outcome {
    rule: usize,
    load: usize,
    truth: Truth,
    decision: Decision,
}

fn main() -> ExitCode {
    match replay() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            ui::note(&error.to_string());
            ExitCode::from(error.kind.exit_code())
        }
    }
}

/// Replays everything, prints the tables and says whether all bounds hold.
fn replay() -> Result<bool> {
    let begun = Instant::now();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/timings");
    let trials = trials::read_all(&dir)?;
    let rules = rules();
    let outcomes = decide_all(&rules, &trials);
    let calibrated = print_recording(&trials);
    for load in 0..LOADS.len() {
        print_table(&rules, &outcomes, Some(load));
    }
    print_table(&rules, &outcomes, None);
    campaign::print(&trials);
    let held = check(&rules, &outcomes);
    let sound = significance::tables_hold();
    if !sound {
        ui::outln("MISSED: Student's distribution differs from the printed tables");
    }
    ui::outln(&format!("took {:.1} s", begun.elapsed().as_secs_f64()));
    Ok(held && calibrated && sound)
}

/// A row of the table.
struct Rule {
    name: String,
    /// What the chance of any false accept in 120 null rounds cannot exceed, where that is known.
    by_construction: Option<&'static str>,
    bound: bool,
    decide: Box<dyn Fn(&Trial) -> Decision + Sync>,
}

type Clock = (&'static str, fn(&Trial) -> &Series);

const CLOCKS: [Clock; 2] = [("CPU", |trial| &trial.cpu), ("wall", |trial| &trial.wall)];

fn rules() -> Vec<Rule> {
    let mut rules = Vec::new();
    for (clock, pick) in CLOCKS {
        let charter = ours::charter();
        rules.push(Rule {
            name: format!("karve, {clock}"),
            by_construction: Some("<=.05"),
            bound: clock == "CPU",
            decide: Box::new(move |trial| ours::by_one(&charter, trial, pick(trial))),
        });
    }
    let charter = ours::charter();
    rules.push(Rule {
        name: "karve, both clocks".into(),
        // Either clock may supply the proof, so both have a chance to be wrong.
        by_construction: Some("<=.05"),
        bound: false,
        decide: Box::new(move |trial| ours::by_both(&charter, trial)),
    });
    for (clock, pick) in CLOCKS {
        for other in others::ALL {
            rules.push(Rule {
                name: format!("{}, {clock}", other.name),
                by_construction: None,
                bound: false,
                decide: Box::new(move |trial| (other.decide)(pick(trial))),
            });
        }
    }
    rules
}

/// Every rule on every trial with both labels, shared among the cores.
fn decide_all(rules: &[Rule], trials: &[Trial]) -> Vec<Outcome> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = trials.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = trials
            .chunks(share)
            .map(|trials| scope.spawn(|| trials.iter().flat_map(|t| decide(rules, t)).collect()))
            .collect();
        let done = workers.into_iter().map(|worker| worker.join());
        done.flat_map(|outcomes: std::thread::Result<Vec<Outcome>>| outcomes.unwrap_or_default())
            .collect()
    })
}

fn decide(rules: &[Rule], trial: &Trial) -> Vec<Outcome> {
    let mirrored = trial.mirrored();
    let truths = if trial.effect == 0 {
        [Truth::Equal, Truth::Equal]
    } else {
        [Truth::Faster(trial.effect), Truth::Slower]
    };
    let mut outcomes = Vec::new();
    for (rule, row) in rules.iter().enumerate() {
        for (trial, truth) in [trial, &mirrored].into_iter().zip(truths) {
            outcomes.push(Outcome { rule, load: trial.load, truth, decision: (row.decide)(trial) });
        }
    }
    outcomes
}

/// How often a rule accepted.
#[derive(Clone, Copy, Default)]
struct Count {
    accepted: usize,
    of: usize,
}

impl Count {
    fn share(self) -> f64 {
        self.accepted as f64 / self.of as f64
    }

    fn fraction(self) -> String {
        format!("{} of {}", self.accepted, self.of)
    }
}

fn count(outcomes: &[&Outcome], truth: Truth) -> Count {
    let of_truth = outcomes.iter().filter(|outcome| outcome.truth == truth);
    of_truth.fold(Count::default(), |count, outcome| Count {
        accepted: count.accepted + usize::from(outcome.decision.accepts),
        of: count.of + 1,
    })
}

fn of_rule(outcomes: &[Outcome], rule: usize, load: Option<usize>) -> Vec<&Outcome> {
    let meant =
        |outcome: &&Outcome| outcome.rule == rule && load.is_none_or(|load| outcome.load == load);
    outcomes.iter().filter(meant).collect()
}

/// What was recorded, and whether the clocks show the calibrated effects.
fn print_recording(trials: &[Trial]) -> bool {
    let nulls = trials.iter().filter(|trial| trial.effect == 0).count();
    ui::outln(&format!(
        "{} recorded duels of {} pairs: {nulls} of equal arms\n",
        trials.len(),
        trials.first().map_or(0, |trial| trial.candidate_first.len()),
    ));
    ui::outln(
        "load   average  true ratio  trials  CPU: median ratio, IQR  wall: median ratio, IQR",
    );
    let mut calibrated = true;
    for (load, name) in LOADS.iter().enumerate() {
        for effect in [0].into_iter().chain(EFFECTS) {
            let meant = |trial: &&Trial| trial.load == load && trial.effect == effect;
            let meant: Vec<&Trial> = trials.iter().filter(meant).collect();
            let true_ratio = 1.0 + f64::from(effect) / 100.0;
            let averages: Vec<f64> = meant.iter().map(|trial| trial.average).collect();
            let average = stats::median(&averages).unwrap_or(f64::NAN);
            let (cpu, cpu_width) = middle_and_width(&meant, |trial| &trial.cpu);
            let (wall, wall_width) = middle_and_width(&meant, |trial| &trial.wall);
            calibrated &= (cpu - true_ratio).abs() <= CALIBRATION_OFF_MAX;
            ui::outln(&format!(
                "{name:<6} {average:>7.1} {true_ratio:>11.2} {:>7} {cpu:>14.4} {cpu_width:>8.4} \
                 {wall:>15.4} {wall_width:>8.4}",
                meant.len(),
            ));
        }
    }
    if !calibrated {
        ui::outln("MISSED: the CPU clock does not show a calibrated effect");
    }
    calibrated
}

/// The median ratio of all pairs, and the median over trials of the quartile distance.
fn middle_and_width(trials: &[&Trial], pick: fn(&Trial) -> &Series) -> (f64, f64) {
    let (mut all, mut widths) = (Vec::new(), Vec::new());
    for trial in trials {
        let speedups = pick(trial).ln_speedups();
        let quartile = |q| stats::quantile(&speedups, q).unwrap_or(f64::NAN);
        widths.push(quartile(0.75) - quartile(0.25));
        all.extend(speedups);
    }
    let median = |values: &[f64]| stats::median(values).unwrap_or(f64::NAN);
    (median(&all).exp(), median(&widths))
}

fn print_table(rules: &[Rule], outcomes: &[Outcome], load: Option<usize>) {
    let title = load.map_or("all loads".into(), |load| format!("load: {}", LOADS[load]));
    ui::outln(&format!(
        "\n{title:<43}{:>14} {:>6} {:>5} {:>5} {:>5} {:>5} {:>11} {:>6} {:>7}",
        "no-op accepted", "share", "+1%", "+2%", "+3%", "+5%", "slower", "pairs", "any/120"
    ));
    for (index, rule) in rules.iter().enumerate() {
        let of_rule = of_rule(outcomes, index, load);
        let null = count(&of_rule, Truth::Equal);
        let measured = || format!("{:.2}", 1.0 - (1.0 - null.share()).powi(ROUNDS));
        let any = rule.by_construction.map_or_else(measured, str::to_owned);
        let power: String = EFFECTS
            .iter()
            .map(|effect| format!(" {:>5.2}", count(&of_rule, Truth::Faster(*effect)).share()))
            .collect();
        let pairs: usize = of_rule.iter().map(|outcome| outcome.decision.pairs).sum();
        ui::outln(&format!(
            "{:<43}{:>14} {:>6.4}{power} {:>11} {:>6.0} {any:>7}",
            rule.name,
            null.fraction(),
            null.share(),
            count(&of_rule, Truth::Slower).fraction(),
            pairs as f64 / of_rule.len() as f64,
        ));
    }
}

/// Whether the bound rules keep what is promised of them.
fn check(rules: &[Rule], outcomes: &[Outcome]) -> bool {
    ui::outln("");
    let mut held = true;
    for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.bound) {
        let of_rule = of_rule(outcomes, index, None);
        for (what, holds) in promises(&of_rule) {
            held &= holds;
            let word = if holds { "ok" } else { "MISSED" };
            ui::outln(&format!("{word}: {}: {what}", rule.name));
        }
        let undecided = of_rule.iter().filter(|outcome| !outcome.decision.decided);
        ui::outln(&format!(
            "{}: {} of {} duels undecided",
            rule.name,
            undecided.count(),
            of_rule.len()
        ));
    }
    held
}

/// Each promise in words, and whether it was kept.
fn promises(of_rule: &[&Outcome]) -> Vec<(String, bool)> {
    let null = count(of_rule, Truth::Equal);
    let slower = count(of_rule, Truth::Slower);
    let mut promises = vec![
        (
            format!("no-ops accepted: {}, at most {FALSE_MAX}", null.fraction()),
            null.share() <= FALSE_MAX && null.of >= NULLS_MIN,
        ),
        (
            format!("slower ones accepted: {}, none allowed", slower.fraction()),
            slower.accepted == 0 && slower.of >= SLOWER_MIN,
        ),
    ];
    for (effect, least) in POWER_MIN {
        let seen = count(of_rule, Truth::Faster(effect));
        promises.push((
            format!("+{effect}% seen: {}, at least {least}", seen.fraction()),
            seen.share() >= least,
        ));
    }
    for (what, truth) in [("a no-op", Truth::Equal), ("+5%", Truth::Faster(5))] {
        let meant = of_rule.iter().filter(|outcome| outcome.truth == truth);
        let runs: Vec<f64> = meant.map(|o| 2.0 * o.decision.pairs as f64).collect();
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        promises.push((
            format!("{what} takes {mean:.0} runs on average, at most {RUNS_MAX}"),
            mean <= RUNS_MAX,
        ));
    }
    promises
}
