//! What a self-reported gain claims, against karve's own clock around the command: by as much as
//! the calls of a run are said to be shorter, the run must be shorter too.
//!
//! Only differences are compared, so what a command needs to start does not count. How often a
//! benchmark calls the kernel is seldom known. That it is at least once is always true, and a claim
//! that is too small makes this check miss a cheat, but not accuse an honest kernel.

use crate::charter::Metric;
use crate::comparison::ClaimCheck;
use crate::measurement::{Block, Pair, Sample};
use karve_numerics::stats::{self, SignEvidence};

/// The part of the claimed time that at least one of karve's clocks must show: the number of calls
/// is an estimate, and calls that are not timed may take a different path.
const SEEN_SHARE_MIN: f64 = 0.5;

/// The spread of what the clock shows, as a part of the claim: then an honest benchmark shows less
/// than half of its claim in one block out of four at most.
const SPREAD_SHARE_MAX: f64 = 0.5;

/// Evidence for a contradiction: no more than a keep needs, which comes at the same block.
const CONTRADICTION_EVIDENCE: f64 = 20.0;

/// The share of the incumbent's run that its known calls must take: only then does the time of a
/// run tell something about them.
const CALLS_SHARE_MIN: f64 = 0.5;

/// Cases from which the number of calls can be estimated.
const FIT_CASES_MIN: usize = 3;
/// How much longer the slowest of these cases must take than the fastest.
const FIT_RANGE_MIN: f64 = 4.0;
/// How much the calls may differ from case to case.
const FIT_SPREAD_MAX: f64 = 1.5;

/// What the calls of one case take in a run, by what the benchmark reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaseClaim {
    /// Index of the case in the charter.
    pub case: usize,
    /// Seconds of one call at a reading of 1.
    pub unit_s: f64,
    /// Calls in a run, at least.
    pub calls: f64,
}

/// Claimed and seen time, block by block.
#[derive(Clone, Debug, Default)]
pub struct ClaimTrack {
    cases: Vec<CaseClaim>,
    /// All that was taken in: how many calls there are may be known only later.
    blocks: Vec<Block>,
    /// Whether the metric is a time rather than a rate.
    is_time: bool,
    /// Seconds that a run became shorter by what it reports, one per block.
    claimed_s: Vec<f64>,
    /// Seconds of the incumbent's known calls, and of the runs that they are part of.
    calls_s: Vec<f64>,
    runs_s: Vec<f64>,
    /// By how much a run became shorter by each of karve's clocks: CPU time, which a busy host does
    /// not stretch, and wall time, which threads shorten.
    seen: [SeenTrack; 2],
}

/// What one of karve's clocks shows.
#[derive(Clone, Debug, Default)]
struct SeenTrack {
    /// Seconds that a run became shorter, one per block.
    saved_s: Vec<f64>,
    /// Evidence that this is less than a part of the claim.
    contradicted: SignEvidence,
}

impl SeenTrack {
    /// Whether the clock alone is sure that a claim is wrong. Where runs differ by more than the
    /// claim, it is not.
    fn denies(&self, claimed_s: f64, seen_s: f64) -> bool {
        let apart: Vec<f64> = self.saved_s.iter().map(|saved| (saved - seen_s).abs()).collect();
        let spread_s = stats::median(&apart).unwrap_or(f64::INFINITY);
        self.contradicted.reached(CONTRADICTION_EVIDENCE)
            && spread_s <= SPREAD_SHARE_MAX * claimed_s
    }
}

impl ClaimTrack {
    pub(super) fn of(metric: &Metric, cases: Vec<CaseClaim>) -> Self {
        Self { cases, is_time: metric.seconds_per_unit().is_some(), ..Self::default() }
    }

    /// Takes in one block. Pairs of one command share its clock.
    pub(super) fn take(&mut self, block: &Block) {
        if !self.cases.is_empty() {
            self.blocks.push(block.clone());
        }
        self.count(block);
    }

    /// The contradiction on a case of which only now is known how often a run calls the kernel, if
    /// there is one. The case must have runs of its own.
    pub fn counted(&self, calls: &dyn Fn(usize) -> Option<f64>) -> Option<ClaimCheck> {
        let unknown = self.cases.iter().filter(|claim| claim.calls <= 1.0);
        let known = unknown.filter_map(|claim| {
            let calls = calls(claim.case).filter(|calls| *calls > 1.0)?;
            Some(CaseClaim { calls, ..*claim })
        });
        let check = |claim: CaseClaim| {
            let mut track = Self { cases: vec![claim], is_time: self.is_time, ..Self::default() };
            for block in &self.blocks {
                let pair = block.pairs.iter().find(|pair| pair.case == claim.case)?;
                let shares = |other: &Pair| other.case != claim.case && same_run(other, pair);
                if block.pairs.iter().any(shares) {
                    return None;
                }
                track.count(&Block { pairs: vec![*pair], ..block.clone() });
            }
            track.contradiction()
        };
        known.into_iter().find_map(check)
    }

    fn count(&mut self, block: &Block) {
        let mut runs: Vec<&Pair> = Vec::new();
        let (mut claimed, mut calls_s, mut run_s) = (0.0, 0.0, 0.0);
        for pair in &block.pairs {
            let Some([parent, candidate]) = self.calls_s(pair) else {
                return;
            };
            claimed += parent - candidate;
            calls_s += parent;
            if !runs.iter().any(|of| same_run(of, pair)) {
                run_s += pair.parent.wall_us as f64 * 1e-6;
                runs.push(pair);
            }
        }
        let clocks: [fn(&Sample) -> u64; 2] = [|sample| sample.cpu_us, |sample| sample.wall_us];
        for (track, time) in self.seen.iter_mut().zip(clocks) {
            let saved = |pair: &&Pair| time(&pair.parent) as f64 - time(&pair.candidate) as f64;
            let saved_s = runs.iter().map(saved).sum::<f64>() * 1e-6;
            track.contradicted.see(claimed > 0.0 && saved_s < SEEN_SHARE_MIN * claimed);
            track.saved_s.push(saved_s);
        }
        self.claimed_s.push(claimed);
        self.calls_s.push(calls_s);
        self.runs_s.push(run_s);
    }

    /// The contradiction, if there is one: one clock is sure, and the other does not object.
    pub(super) fn contradiction(&self) -> Option<ClaimCheck> {
        let claimed_s = stats::median(&self.claimed_s)?;
        // The shortest run is the one that the host disturbed least.
        let run_s = self.runs_s.iter().copied().fold(f64::INFINITY, f64::min);
        if stats::median(&self.calls_s)? < CALLS_SHARE_MIN * run_s {
            return None;
        }
        let [cpu, wall] = &self.seen;
        let (cpu_s, wall_s) = (stats::median(&cpu.saved_s)?, stats::median(&wall.saved_s)?);
        let seen_s = cpu_s.max(wall_s);
        let denied = cpu.denies(claimed_s, cpu_s) || wall.denies(claimed_s, wall_s);
        (denied && seen_s < SEEN_SHARE_MIN * claimed_s).then_some(ClaimCheck { claimed_s, seen_s })
    }

    /// Seconds of all known calls of both arms; none if that is unknown, or if they do not fit into
    /// the command that they are part of.
    fn calls_s(&self, pair: &Pair) -> Option<[f64; 2]> {
        let claim = self.cases.iter().find(|claim| claim.case == pair.case)?;
        let calls_s = |sample: &Sample| match self.is_time {
            true => claim.calls * claim.unit_s * sample.value,
            false => claim.calls * claim.unit_s / sample.value,
        };
        let times = [calls_s(&pair.parent), calls_s(&pair.candidate)];
        let fits = pair.parent.can_hold(times[0]) && pair.candidate.can_hold(times[1]);
        (fits && times.iter().all(|time| time.is_finite())).then_some(times)
    }
}

/// Whether two pairs were read from the same runs.
fn same_run(a: &Pair, b: &Pair) -> bool {
    let clocks =
        |pair: &Pair| [pair.parent, pair.candidate].map(|sample| (sample.wall_us, sample.cpu_us));
    clocks(a) == clocks(b)
}

/// How often a benchmark calls its kernel in one run, if that is the same for all cases: from the
/// seconds of a call and of the whole run, one entry per case. A benchmark that repeats calls until
/// some time has passed takes equally long on all cases, and nothing is known about it.
pub fn fixed_calls(times_s: &[(f64, f64)]) -> Option<f64> {
    let mut times = times_s.to_vec();
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (first, last) = (times.first()?, times.last()?);
    if times.len() < FIT_CASES_MIN || last.0 < FIT_RANGE_MIN * first.0 {
        return None;
    }
    let slopes = times.windows(2).map(|two| (two[1].1 - two[0].1) / (two[1].0 - two[0].0));
    let slopes: Vec<f64> = slopes.collect();
    let fewest = slopes.iter().copied().fold(f64::INFINITY, f64::min);
    let most = slopes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let agree = slopes.iter().all(|slope| slope.is_finite()) && most <= FIT_SPREAD_MAX * fewest;
    let fits = times.iter().all(|(call, run)| fewest * call <= *run);
    (agree && fits && fewest >= 1.0).then_some(fewest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::FirstArm;
    use karve_numerics::stats::DrawRng;

    /// A benchmark that reports milliseconds, with 10 ms to start and 100 calls.
    fn metric() -> Metric {
        Metric { unit: "ms".into(), ..Metric::default() }
    }

    fn block(parent: (f64, f64), candidate: (f64, f64)) -> Block {
        let sample = |(value, wall_ms): (f64, f64)| Sample {
            value,
            wall_us: (wall_ms * 1e3) as u64,
            cpu_us: (wall_ms * 1e3) as u64,
            passes: None,
            snr_db: None,
        };
        let pair = Pair {
            case: 0,
            first: FirstArm::Parent,
            parent: sample(parent),
            candidate: sample(candidate),
            turns: None,
        };
        Block { seed: 0, pad: 0, pairs: vec![pair], aged: 0, discarded: None, conditions: None }
    }

    /// Whether 20 blocks contradict: reported times in ms, whole runs in ms, and calls that are
    /// known.
    fn contradicts(parent: (f64, f64), candidate: (f64, f64), calls: f64) -> bool {
        let claim = CaseClaim { case: 0, unit_s: 1e-3, calls };
        let mut track = ClaimTrack::of(&metric(), vec![claim]);
        (0..20).for_each(|_| track.take(&block(parent, candidate)));
        track.contradiction().is_some()
    }

    #[test]
    fn a_run_must_be_shorter_by_half_of_what_its_calls_are_said_to_save() {
        // Parent, candidate (reported, whole run), known calls, and whether it is contradicted.
        let table = [
            // Three times as fast: 100 calls of 1 ms become 100 of a third.
            ((1.0, 110.0), (1.0 / 3.0, 43.3), 100.0, false),
            // The benchmark says so, the command takes as long as before.
            ((1.0, 110.0), (1.0 / 3.0, 110.0), 100.0, true),
            ((1.0, 110.0), (1.0 / 3.0, 90.0), 100.0, true),
            // A third of the calls is not timed and did not become faster.
            ((1.0, 160.0), (1.0 / 3.0, 93.3), 100.0, false),
            // The known calls are less than half of the command.
            ((1.0, 250.0), (1.0 / 3.0, 250.0), 100.0, false),
            // How many calls there are is unknown, and one is a small part of the command.
            ((1.0, 110.0), (1.0 / 3.0, 43.3), 1.0, false),
            ((1.0, 110.0), (1.0 / 3.0, 110.0), 1.0, false),
            // What is reported is the time of all calls together.
            ((100.0, 110.0), (33.3, 43.3), 1.0, false),
            ((100.0, 110.0), (33.3, 110.0), 1.0, true),
            // Nothing is claimed.
            ((1.0, 110.0), (1.0, 110.0), 100.0, false),
            ((1.0, 110.0), (1.1, 110.0), 100.0, false),
            // More calls than fit into the command: the number is wrong.
            ((1.0, 110.0), (1.0 / 3.0, 110.0), 200.0, false),
        ];
        for (parent, candidate, calls, want) in table {
            assert_eq!(
                contradicts(parent, candidate, calls),
                want,
                "{parent:?} {candidate:?} {calls}"
            );
        }
    }

    #[test]
    fn a_rate_claims_the_time_that_it_implies() {
        let rate = Metric { unit: "GFLOPS".into(), ..Metric::default() };
        let claim = CaseClaim { case: 0, unit_s: 1e-3, calls: 100.0 };
        let check = |candidate: (f64, f64)| {
            let mut track = ClaimTrack::of(&rate, vec![claim]);
            (0..20).for_each(|_| track.take(&block((1.0, 110.0), candidate)));
            track.contradiction()
        };
        assert_eq!(check((3.0, 43.3)), None);
        let found = check((3.0, 110.0)).unwrap();
        assert!((found.claimed_s - 0.0667).abs() < 1e-3 && found.seen_s.abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn noise_on_an_honest_benchmark_contradicts_nothing() {
        let mut draws = DrawRng::new(7);
        for _ in 0..200 {
            let claim = CaseClaim { case: 0, unit_s: 1e-3, calls: 100.0 };
            let mut track = ClaimTrack::of(&metric(), vec![claim]);
            for _ in 0..60 {
                // The gain of 5 ms drowns in up to 40 ms of other work on both sides.
                let mut run = |ms: f64| (ms, 10.0 + 100.0 * ms + 40.0 * draws.next_f64());
                let (parent, candidate) = (run(1.0), run(0.95));
                track.take(&block(parent, candidate));
            }
            assert_eq!(track.contradiction(), None);
        }
    }

    #[test]
    fn one_clock_is_enough_if_the_other_does_not_object() {
        let claim = CaseClaim { case: 0, unit_s: 1e-3, calls: 100.0 };
        // Milliseconds of CPU time and wall time, parent and candidate; 60 ms are claimed.
        let check = |cpu: [u64; 2], wall: [u64; 2], noise_ms: u64| {
            let mut draws = DrawRng::new(3);
            let mut track = ClaimTrack::of(&metric(), vec![claim]);
            for _ in 0..20 {
                let mut block = block((1.0, 110.0), (0.4, 110.0));
                let pair = &mut block.pairs[0];
                (pair.parent.cpu_us, pair.candidate.cpu_us) = (cpu[0] * 1_000, cpu[1] * 1_000);
                let mut busy = || (draws.next_f64() * 1e3 * noise_ms as f64) as u64;
                pair.parent.wall_us = wall[0] * 1_000 + busy();
                pair.candidate.wall_us = wall[1] * 1_000 + busy();
                track.take(&block);
            }
            track.contradiction().is_some()
        };
        // A clock that lies, on a host with nothing else and on a busy one.
        assert!(check([110, 110], [110, 110], 0));
        assert!(check([110, 110], [110, 110], 300));
        // Threads, and a device that the command only waits for.
        assert!(!check([110, 115], [110, 50], 0));
        assert!(!check([10, 10], [110, 50], 0));
        // CPU time shows the gain on a host that is too busy for wall time.
        assert!(!check([110, 50], [110, 50], 300));
    }

    #[test]
    fn cases_of_one_run_share_its_clock() {
        let claim = |case| CaseClaim { case, unit_s: 1e-3, calls: 1.0 };
        let mut track = ClaimTrack::of(&metric(), vec![claim(0), claim(1)]);
        for _ in 0..20 {
            // Each case says that it saves 40 ms; the run became 40 ms shorter in all.
            let mut both = block((50.0, 110.0), (10.0, 85.0));
            both.pairs.push(Pair { case: 1, ..both.pairs[0] });
            track.take(&both);
        }
        let found = track.contradiction().unwrap();
        assert!((found.claimed_s - 0.08).abs() < 1e-9, "{found:?}");
        assert!((found.seen_s - 0.025).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn calls_that_are_counted_later_are_held_against_the_same_blocks() {
        let claim = |case, calls| CaseClaim { case, unit_s: 1e-3, calls };
        let counts = |calls: f64| move |case: usize| (case == 0).then_some(calls);
        let track_of = |claims: Vec<CaseClaim>, blocks: &[Block]| {
            let mut track = ClaimTrack::of(&metric(), claims);
            blocks.iter().cycle().take(20).for_each(|block| track.take(block));
            track
        };
        // Reported 1 ms and half of it, and the command takes as long as before.
        let lie = block((1.0, 110.0), (0.5, 110.0));
        let track = track_of(vec![claim(0, 1.0)], std::slice::from_ref(&lie));
        assert_eq!(track.contradiction(), None);
        let found = track.counted(&counts(100.0)).unwrap();
        assert!((found.claimed_s - 0.05).abs() < 1e-9 && found.seen_s.abs() < 1e-9, "{found:?}");
        // Too few calls to say anything, more than fit into the run, or nothing counted.
        for calls in [1.0, 20.0, 200.0] {
            assert_eq!(track.counted(&counts(calls)), None, "{calls}");
        }
        assert_eq!(track.counted(&|_| None), None);
        // An honest gain, and calls that were known before.
        let honest = [block((1.0, 110.0), (0.5, 60.0))];
        assert_eq!(track_of(vec![claim(0, 1.0)], &honest).counted(&counts(100.0)), None);
        let known = track_of(vec![claim(0, 2.0)], std::slice::from_ref(&lie));
        assert_eq!(known.counted(&counts(100.0)), None);
        // Cases with runs of their own are checked one by one, those of one run are not.
        let mut own = lie.clone();
        own.pairs.push(Pair { case: 1, ..block((3.0, 320.0), (3.0, 320.0)).pairs[0] });
        let both = || vec![claim(0, 1.0), claim(1, 1.0)];
        assert!(track_of(both(), &[own]).counted(&counts(100.0)).is_some());
        let mut shared = lie.clone();
        shared.pairs.push(Pair { case: 1, ..lie.pairs[0] });
        assert_eq!(track_of(both(), &[shared]).counted(&counts(100.0)), None);
    }

    #[test]
    fn calls_are_known_where_runs_grow_with_the_calls_of_at_least_three_cases() {
        let fixed = [(0.001, 0.11), (0.002, 0.21), (0.008, 0.81)];
        let calls = fixed_calls(&fixed).unwrap();
        assert!((calls - 100.0).abs() < 1e-6, "{calls}");
        // Until a second has passed, whatever the case.
        assert_eq!(fixed_calls(&[(0.001, 1.0), (0.002, 1.001), (0.008, 1.002)]), None);
        // Each case has its own number of calls.
        assert_eq!(fixed_calls(&[(0.001, 0.2), (0.002, 0.21), (0.008, 5.0)]), None);
        assert_eq!(fixed_calls(&fixed[..2]), None);
        assert_eq!(fixed_calls(&[(0.001, 0.11), (0.001, 0.11), (0.001, 0.11)]), None);
    }
}
