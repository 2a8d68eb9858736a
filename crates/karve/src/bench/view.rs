//! The result of a bench as plain data: the text, the Markdown and the JSON are made from it.

use super::record::{BenchEnd, BenchRecord, BenchSide};
use karve_core::bench::{Bench, BenchGoal, CaseSigns, ClockSigns, SpeedupSigns};
use karve_core::comparison::{Clock, Estimate};
pub use karve_core::score::percent_text;
use karve_core::verdict::{BenchFinding, LimitVerdict};
use karve_core::{score, verdict};
use karve_os::error::Result;
use karve_os::text::counted;
use serde::Serialize;
use std::collections::BTreeMap;

/// The seed of the power simulation; any number works.
const SEED: u64 = 1;

/// Everything that people and scripts get to see.
#[derive(Clone, Debug, Serialize)]
pub struct BenchView {
    /// The version of this shape.
    pub version: u32,
    /// What was found overall.
    pub finding: BenchFinding,
    /// The same as text.
    pub words: String,
    /// Why the bench ended.
    pub end: BenchEnd,
    /// What B is compared with.
    pub a: BenchSide,
    /// What is compared.
    pub b: BenchSide,
    /// The name of the metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The thresholds.
    pub rule: RuleView,
    /// Pairs that counted, for each case.
    pub pairs: u32,
    /// Pairs that were measured and left out.
    pub discarded: u32,
    /// How long it took.
    pub seconds: f64,
    /// The share of that time in which no side ran: conditioning, starting and karve itself.
    pub own_share: f64,
    /// The geometric mean over the cases, by each clock.
    pub clocks: Vec<ClockView>,
    /// Case by case, by the metric.
    pub cases: Vec<CaseView>,
    /// The smallest difference that this host shows four times out of five, in percent.
    pub smallest_percent: Option<f64>,
    /// The slowdown limit.
    pub limit: Option<LimitView>,
    /// Facts about the host.
    pub environment: BTreeMap<String, String>,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

/// The thresholds, for people.
#[derive(Clone, Debug, Serialize)]
pub struct RuleView {
    /// The false positive rate.
    pub alpha: f64,
    /// The difference that must be disproved, in percent.
    pub null_percent: f64,
    /// The smallest difference that counts, in percent.
    pub min_effect_percent: f64,
    /// Evidence needed for a difference.
    pub evidence_needed: f64,
    /// Evidence needed for no difference.
    pub same_needed: f64,
    /// The most pairs.
    pub pairs_max: u32,
}

/// The result for one clock.
#[derive(Clone, Debug, Serialize)]
pub struct ClockView {
    /// Which clock.
    pub clock: Clock,
    /// Its name for people.
    pub name: String,
    /// Whether it counts for the finding.
    pub counts: bool,
    /// The speedup of B over A.
    pub estimate: Estimate,
    /// Evidence that B is faster.
    pub evidence_faster: f64,
    /// Evidence that B is slower.
    pub evidence_slower: f64,
    /// Evidence that the difference is smaller than what counts.
    pub evidence_same: f64,
}

/// One case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseView {
    /// Its name.
    pub case: String,
    /// What was found.
    pub finding: BenchFinding,
    /// The speedup of B over A, by the clock that has the proof, or else by the metric.
    pub estimate: Estimate,
    /// The name of that clock.
    pub by: String,
    /// Median of A in the metric's unit.
    pub a_median: f64,
    /// Median of B.
    pub b_median: f64,
    /// Mean of A.
    pub a_mean: f64,
    /// Mean of B.
    pub b_mean: f64,
}

/// A slowdown limit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LimitView {
    /// The limit in percent.
    pub percent: f64,
    /// What is known.
    pub state: LimitVerdict,
}

impl BenchView {
    /// What a record shows.
    pub fn of(recorded: &BenchRecord) -> Result<Self> {
        Self::advising(recorded, &str::to_owned)
    }

    /// The same for a duel of a command without the flags of a bench: it advises a bench of the
    /// same two commits.
    pub fn of_duel(recorded: &BenchRecord) -> Result<Self> {
        let [a, b] = [&recorded.a, &recorded.b].map(|side| side.label.as_str());
        Self::advising(recorded, &|flags| format!("\"karve bench {a} {b} {flags}\""))
    }

    fn advising(recorded: &BenchRecord, advice: FlagNaming<'_>) -> Result<Self> {
        let bench = recorded.bench()?;
        let rule = &bench.rule;
        let finding = verdict::find(&bench);
        let percent = |ln: f64| ln.exp_m1() * 100.0;
        let discarded = recorded.blocks.iter().filter(|b| b.discarded.is_some());
        let cases: Vec<CaseView> = bench
            .main()
            .cases
            .iter()
            .enumerate()
            .map(|(index, case)| case_view(&bench, recorded, index, case))
            .collect();
        let limit = verdict::judge_limit(&bench).zip(rule.limit_ln);
        Ok(Self {
            version: 1,
            words: words(&finding, &bench, recorded.end),
            finding,
            end: recorded.end,
            a: recorded.a.clone(),
            b: recorded.b.clone(),
            metric: recorded.metric.name.clone(),
            unit: recorded.metric.unit.clone(),
            rule: RuleView {
                alpha: rule.alpha,
                null_percent: percent(rule.null_ln),
                min_effect_percent: percent(rule.effect_ln),
                evidence_needed: rule.differs_evidence(),
                same_needed: rule.guard_evidence(),
                pairs_max: rule.blocks_max,
            },
            pairs: bench.n_blocks(),
            discarded: u32::try_from(discarded.count()).unwrap_or(u32::MAX),
            seconds: recorded.spent_ms as f64 / 1e3,
            own_share: own_share(recorded),
            clocks: bench
                .clocks
                .iter()
                .enumerate()
                .map(|(number, clock)| ClockView {
                    counts: number < bench.counted().len(),
                    ..clock_view(recorded, clock)
                })
                .collect(),
            warnings: warnings(recorded, &bench, &finding, &cases, advice),
            cases,
            smallest_percent: bench.smallest_detectable(SEED).map(|r| (r - 1.0) * 100.0),
            limit: limit.map(|(state, ln)| LimitView { percent: percent(ln), state }),
            environment: recorded.environment.facts.clone(),
        })
    }

    /// The clock whose figures back the finding.
    pub fn deciding_clock(&self) -> &ClockView {
        let by = self.finding.by();
        let found = self.clocks.iter().find(|view| Some(view.clock) == by);
        found.unwrap_or(&self.clocks[0])
    }
}

fn own_share(recorded: &BenchRecord) -> f64 {
    let mut seen = 0_u64;
    for block in &recorded.blocks {
        for pair in &block.pairs {
            // A reading is one of several turns.
            let turns = pair.turns.map_or(1, |turns| u64::from(turns.n));
            seen += turns * (pair.parent.wall_us + pair.candidate.wall_us);
        }
    }
    let spent_us = recorded.spent_ms as f64 * 1e3;
    // One run that gives all cases is in every pair, so the sum may exceed the time.
    (1.0 - seen as f64 / spent_us.max(1.0)).max(0.0)
}

/// One case; its medians and means are always those of the metric.
fn case_view(bench: &Bench, recorded: &BenchRecord, index: usize, case: &CaseSigns) -> CaseView {
    let (a_median, b_median) = case.medians();
    let (a_mean, b_mean) = case.means();
    let finding = verdict::find_case(bench, index);
    let by = finding.by().unwrap_or(Clock::Metric);
    let telling = bench.clocks.iter().find(|clock| clock.clock == by);
    let reported = telling.and_then(|clock| clock.cases.get(index));
    CaseView {
        case: recorded.cases[index].clone(),
        finding,
        estimate: reported.unwrap_or(case).signs.estimate(),
        by: by.called(&recorded.metric).to_owned(),
        a_median,
        b_median,
        a_mean,
        b_mean,
    }
}

fn clock_view(recorded: &BenchRecord, clock: &ClockSigns) -> ClockView {
    let signs: &SpeedupSigns = &clock.overall;
    ClockView {
        clock: clock.clock,
        name: clock.clock.called(&recorded.metric).to_owned(),
        counts: true,
        estimate: signs.estimate(),
        evidence_faster: signs.faster.max(),
        evidence_slower: signs.slower.max(),
        evidence_same: signs.same(),
    }
}

fn words(finding: &BenchFinding, bench: &Bench, end: BenchEnd) -> String {
    let ratio = |by: Clock| {
        let found = bench.clocks.iter().find(|clock| clock.clock == by);
        found.map_or(f64::NAN, |clock| clock.overall.estimate().ratio)
    };
    let pairs = bench.n_blocks();
    match finding {
        BenchFinding::Faster { by } => score::faster_text(ratio(*by), ["A", "B"]),
        BenchFinding::Slower { by } => score::slower_text(ratio(*by), ["A", "B"]),
        BenchFinding::NoDifference { percent, .. } => {
            format!("no difference of {} or more", percent_text(*percent))
        }
        BenchFinding::ClocksDisagree { metric, second, clock } => format!(
            "the clocks disagree: {metric:.3}x by the metric, {second:.3}x by the {}; the work \
             sleeps, waits or runs in other threads",
            clock.name()
        ),
        BenchFinding::CouldNotTell => {
            let pairs = counted(pairs as usize, "pair");
            let why = match end {
                BenchEnd::Stopped => format!("stopped after {pairs}"),
                BenchEnd::Time => format!("time limit after {pairs}"),
                BenchEnd::Pairs | BenchEnd::Found => pairs,
            };
            match finding.word_beside(&bench.main().overall.estimate()) {
                plain if plain == finding.word() => format!("{plain} ({why})"),
                likely => format!("could not tell, B is {likely} ({why})"),
            }
        }
    }
}

/// How to advise some flags of a bench to a reader.
type FlagNaming<'a> = &'a dyn Fn(&str) -> String;

/// What is missing for a case that is only likely faster or slower.
const LIKELY: &str = "likely: the interval excludes 1, but a finding must also account for \
                      checking after every pair";

fn warnings(
    recorded: &BenchRecord,
    bench: &Bench,
    finding: &BenchFinding,
    cases: &[CaseView],
    advice: FlagNaming<'_>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let fact = |name: &str| -> Option<f64> {
        let text = recorded.environment.facts.get(name)?;
        text.split(' ').next()?.parse().ok()
    };
    if let (Some(load), Some(cores)) = (fact("load"), fact("cores"))
        && load > cores
    {
        warnings.push(format!(
            "the load was {load:.1} on {cores:.0} cores: the finding holds, but small differences \
             are harder to show"
        ));
    }
    let held_back = bench.counted().len() < bench.clocks.len();
    if held_back && *finding == BenchFinding::CouldNotTell {
        warnings.push(format!(
            "CPU time did not count: the host was never calm enough to show that both sides do not \
             wait; if both have one thread and never wait, {} decides sooner",
            advice("--clocks both")
        ));
    }
    let same_way = !matches!(finding, BenchFinding::ClocksDisagree { .. });
    if !held_back && bench.clocks_differ() && same_way {
        warnings.push("the clocks agree on the direction but not on the size".to_owned());
    }
    let opposite = cases.iter().filter(|case| is_opposite(finding, &case.finding));
    let opposite: Vec<&str> = opposite.map(|case| case.case.as_str()).collect();
    if !opposite.is_empty() {
        let names = opposite.join(", ");
        warnings.push(format!("the cases disagree: look at {names}"));
    }
    let open = cases.iter().any(|c| c.finding == BenchFinding::CouldNotTell);
    if cases.iter().any(|c| c.finding.word_beside(&c.estimate) != c.finding.word()) {
        let more = advice("--every-case --pairs 1000");
        warnings.push(format!("{LIKELY}; {more} may give one"));
    }
    let ended = recorded.end == BenchEnd::Found && recorded.rule.until == BenchGoal::Overall;
    if open && ended && cases.len() > 1 {
        warnings.push(format!(
            "the bench stopped at the overall finding, before every case had one; {} continues \
             until every case has one",
            advice("--every-case")
        ));
    }
    if let Some(Clock::Cpu) = finding.by() {
        warnings.push("the finding is by CPU time; wall time does not contradict it".to_owned());
    }
    warnings.extend(not_audited(&recorded.a, &recorded.b));
    warnings
}

/// Says that a change of the project was not audited, and how to do that.
fn not_audited(a: &BenchSide, b: &BenchSide) -> Option<String> {
    let short = |commit: &String| commit.get(..10).unwrap_or(commit).to_owned();
    let (from, to) = (short(a.commit.as_ref()?), short(b.commit.as_ref()?));
    let change = match (from == to, b.changed.is_empty()) {
        (true, true) => return None,
        (false, true) => format!("{from}..{to}"),
        (_, false) => from,
    };
    Some(format!(
        "a bench audits nothing: run \"karve audit {change}\" before you trust a change that is \
         not yours"
    ))
}

/// Whether a case contradicts the finding over all cases.
fn is_opposite(overall: &BenchFinding, case: &BenchFinding) -> bool {
    use BenchFinding::{Faster, NoDifference, Slower};
    matches!(
        (overall, case),
        (Faster { .. } | NoDifference { .. }, Slower { .. })
            | (Slower { .. } | NoDifference { .. }, Faster { .. })
    )
}
