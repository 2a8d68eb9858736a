//! Gates and measures the unchanged kernel, and finds the limits of the device.

use super::context::Context;
use super::raw_output;
use crate::checks::fit_cases;
use karve_core::campaign::{Baseline, Campaign, Event, HalvedCase, Repeats};
use karve_core::integrity::SeedReaction;
use karve_core::measurement::{BaselineReading, Gate};
use karve_core::sampling::{BASELINE_READINGS, RepeatSearch};
use karve_harness::commands::{BenchParams, CaseRunSettings, CommandVariant, Harness};
use karve_harness::outcome::{GateResult, split};
use karve_harness::{runner, store};
use karve_numerics::case::Case;
use karve_numerics::roof::Roof;
use karve_os::error::{Result, WithContext as _};
use karve_os::{files, host};
use karve_profile::roofline;
use std::collections::BTreeMap;
use std::path::Path;

/// The largest reference, in bytes.
const REFERENCE_BYTES_MAX: u64 = 1 << 30;

pub(crate) fn perform(context: &mut Context, campaign: &Campaign) -> Result<Event> {
    raw_output::discard(context);
    let baseline = match split(gate_and_measure(context, campaign))? {
        Ok(baseline) => baseline,
        Err(gate) => Baseline {
            gate,
            readings: Vec::new(),
            peak: BTreeMap::new(),
            halved: Vec::new(),
            repeats: Vec::new(),
            raw: None,
            conditions: None,
            reference: None,
            roof: None,
            seeds: None,
        },
    };
    raw_output::store_with(context, Event::BaselineMeasured(baseline))
}

/// Builds the base, tests it on all cases, and reads it.
fn gate_and_measure(context: &mut Context, campaign: &Campaign) -> GateResult<Baseline> {
    let harness = context.harness();
    let built = context.repos.built(&harness, campaign.base_commit())?;
    context.repos.trees.keep_seed(&harness, &built.path);
    let mut cases = context.charter.cases.clone();
    let halved = fit_cases(&harness, &built.path, &mut cases)?
        .into_iter()
        .map(|case| HalvedCase { params: cases[case].params.clone(), case })
        .collect();
    let conditions = context.device.session.before_block(&context.stop, &context.device.notices)?;
    let measured = read_baseline(&harness, &built.path, &cases);
    let peak = harness.peak(&built.path);
    context.device.session.after_block();
    let peak = peak?;
    let BaselineReadings { readings, repeats, seeds } = measured?;
    Ok(Baseline {
        gate: Gate::Passed,
        readings,
        halved,
        repeats,
        seeds,
        raw: None,
        conditions: Some(Box::new(conditions)),
        reference: store_reference(context, &harness, &built.path)?,
        roof: find_roof(context, &peak),
        peak,
    })
}

/// Stores the reference of the unchanged project: a candidate may influence what a later build
/// produces.
fn store_reference(context: &Context, harness: &Harness, tree: &Path) -> Result<Option<String>> {
    let Some(path) = harness.reference_in(tree) else {
        return Ok(None);
    };
    let contract = context.charter.contract.as_deref();
    if let Some(contract) = contract.filter(|_| !path.exists()) {
        return Err(runner::no_reference(&contract.reference));
    }
    let charter = &context.charter;
    runner::check_baselines(&tree.join(&charter.workdir), &charter.baselines)?;
    let bytes = files::read(&path, REFERENCE_BYTES_MAX)
        .context(|| format!("cannot read {}", path.display()))?;
    store::put_artifact(&context.dir, &bytes).map(Some)
}

/// The limits of the device: declared or measured by the project, or else stored by
/// `karve roofline`, if the charter says how many bytes a call moves.
fn find_roof(context: &Context, peak: &BTreeMap<String, f64>) -> Option<Roof> {
    let charter = &context.charter;
    let stored = || {
        let on_cpu = charter.target.device.eq_ignore_ascii_case("cpu");
        let wanted = on_cpu && charter.contract.is_none() && charter.metric.bytes.is_some();
        wanted.then(roofline::measured_roof).flatten()
    };
    host::roof_of(peak, charter.contract.as_deref()).or_else(stored)
}

/// How often each case is repeated in one run so that a sample is long enough for the clock,
/// derived from the unchanged kernel alone. None if the benchmark does not let us choose.
fn choose_repeats(harness: &Harness, tree: &Path, cases: &[Case]) -> GateResult<Vec<Repeats>> {
    let mut chosen = Vec::new();
    if harness.is_under_contract() {
        for (index, case) in cases.iter().enumerate() {
            let calls = harness.calls_for(tree, case)?;
            chosen.extend(calls.map(|calls| Repeats { case: index, calls }));
        }
        return Ok(chosen);
    }
    if !harness.lets_repeat() {
        return Ok(chosen);
    }
    for (index, case) in cases.iter().enumerate() {
        let mut search = RepeatSearch::default();
        while search.is_due() {
            let of_case = CaseRunSettings { repeats: search.repeats, spin_us: None };
            let once = harness.clone().with_cases([(case.name.clone(), of_case)].into());
            let call = BenchParams::fresh(CommandVariant::Usual)?;
            let sample = once.bench(tree, std::slice::from_ref(case), call)?[0];
            search.add(harness.metric(), &sample);
        }
        chosen.push(Repeats { case: index, calls: search.repeats });
    }
    Ok(chosen)
}

/// What the runs of the unchanged kernel show.
struct BaselineReadings {
    readings: Vec<BaselineReading>,
    /// How often each case was repeated in one run.
    repeats: Vec<Repeats>,
    seeds: Option<SeedReaction>,
}

/// The readings of the unchanged kernel.
fn read_baseline(harness: &Harness, tree: &Path, cases: &[Case]) -> GateResult<BaselineReadings> {
    let repeats = choose_repeats(harness, tree, cases)?;
    let settings = repeats.iter().map(|of| {
        let of_case = CaseRunSettings { repeats: of.calls, spin_us: None };
        (cases[of.case].name.clone(), of_case)
    });
    let harness = harness.clone().with_cases(settings.collect());
    let (mut readings, mut checksums) = (Vec::new(), Vec::new());
    let kept = harness.clone().keeping_output();
    let mut solo = harness.solo(tree, cases)?;
    for _ in 0..BASELINE_READINGS {
        let samples = match &mut solo {
            Some(kernel) => kernel.read(harness.metric())?,
            None => {
                let call = BenchParams::fresh(CommandVariant::Usual)?;
                let run = kept.bench_with_checksums(tree, cases, call)?;
                checksums.push(run.checksums);
                run.samples
            }
        };
        let samples = samples.into_iter().enumerate();
        readings.extend(samples.map(|(case, sample)| BaselineReading { case, sample }));
    }
    Ok(BaselineReadings { readings, repeats, seeds: SeedReaction::of_fresh(&checksums) })
}
