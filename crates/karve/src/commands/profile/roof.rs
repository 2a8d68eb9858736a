//! How close the profiled case is to the peaks of this host, measured earlier by `karve roofline`.

use karve_core::charter::Charter;
use karve_core::roofline::{Ceiling, ceiling};
use karve_core::score::implied_seconds;
use karve_harness::commands::{BenchParams, CommandVariant, Harness};
use karve_harness::outcome::split;
use karve_numerics::roof::CallDemand;
use karve_os::error::Result;
use karve_profile::profilers::collect::{CollectedProfile, ProfileTarget};
use karve_profile::roofline::counters::add_ceiling;
use karve_profile::roofline::{self, Cores, HostRoofline};

/// Adds the roofline counters to a profile, from one reading of the benchmark. Adds none if the
/// work or bytes of the case are not declared, or the host was never measured.
pub(super) fn add(
    harness: &Harness,
    charter: &Charter,
    ProfileTarget { tree, case, .. }: ProfileTarget<'_>,
    taken: &mut CollectedProfile,
) -> Result<()> {
    let declared = |demand: &CallDemand| demand.work.is_some() && demand.bytes.is_some();
    let Some(demand) = charter.demand(case).filter(declared) else {
        return Ok(());
    };
    let Some(host) = roofline::read_cached() else {
        let note = "the peaks of this host are not known, so no ceiling is shown: measure them \
        with \"karve roofline\"";
        taken.parsed.notes.push(note.to_owned());
        return Ok(());
    };
    let sample = match taken.alone.take() {
        Some(sample) => sample.map(Some),
        None => {
            let call = BenchParams::fresh(CommandVariant::Usual)?;
            let samples = split(harness.bench(tree, std::slice::from_ref(case), call))?;
            samples.map(|samples| samples.first().copied())
        }
    };
    let parsed = &mut taken.parsed;
    let time_s = match sample {
        Ok(sample) => sample.and_then(|s| implied_seconds(&charter.metric, s.value, case)),
        Err(gate) => {
            let why = gate.describe();
            parsed.notes.push(format!("the case was not timed: {why}"));
            None
        }
    };
    let threads = charter.contract.as_ref().map(|contract| contract.threads);
    if let Some((cores, found)) = under(&host, demand, time_s, threads) {
        let level = demand.bytes.and_then(|bytes| host.level_of(bytes, cores));
        let level = level.map_or("memory", |level| level.level.as_str());
        let whose = cores.name();
        let note = format!("the ceiling is for {whose} of this host at {level}, in fp32");
        parsed.notes.push(note);
        let whose = format!("{level}, {whose}");
        add_ceiling(&mut parsed.kernels, &charter.target.op, &whose, &found);
    }
    Ok(())
}

/// A call under the roof of one core, unless it has more threads or is faster than one core allows.
fn under(
    host: &HostRoofline,
    demand: CallDemand,
    time_s: Option<f64>,
    threads: Option<u32>,
) -> Option<(Cores, Ceiling)> {
    let on = |cores| Some((cores, ceiling(demand, host.peaks(demand, cores), time_s)?));
    let (_, one) = on(Cores::One)?;
    let all = match threads {
        Some(threads) => threads > 1,
        None => one.share.is_some_and(|share| share > 1.0),
    };
    on(if all { Cores::All } else { Cores::One })
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_profile::roofline::{CorePeaks, LevelBandwidth, Peak};

    fn pair(one: f64, all: f64) -> CorePeaks {
        let peak = |best| Peak { best, spread: 0.0, runs: 1 };
        CorePeaks { one: peak(one), all: peak(all) }
    }

    #[test]
    fn a_call_stands_under_one_core_unless_it_must_have_more() {
        let rate = pair(1e9, 1e9);
        let host = HostRoofline {
            version: 1,
            fingerprint: String::new(),
            cpu: String::new(),
            cores: 4,
            lanes: 8,
            flops: pair(1e9, 4e9),
            levels: vec![LevelBandwidth {
                level: "memory".into(),
                holds_one: None,
                holds_all: None,
                read: rate,
                copy: rate,
                triad: rate,
            }],
        };
        let demand = CallDemand { work: Some(1e9), bytes: Some(1e6) };
        let check = |time_s: Option<f64>, threads: Option<u32>, want: (Cores, Option<f64>)| {
            let (cores, found) = under(&host, demand, time_s, threads).unwrap();
            assert_eq!((cores, found.share), want, "{time_s:?} {threads:?}");
        };
        check(Some(2.0), None, (Cores::One, Some(0.5)));
        check(Some(0.5), None, (Cores::All, Some(0.5)));
        check(Some(0.5), Some(1), (Cores::One, Some(2.0)));
        check(Some(0.5), Some(4), (Cores::All, Some(0.5)));
        check(None, None, (Cores::One, None));
    }
}
