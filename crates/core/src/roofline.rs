//! How far a kernel is from the device's limits: intensity, ridge, ceiling, and the share reached.

use crate::charter::Charter;
use karve_numerics::case::Case;
use karve_numerics::roof::{CallDemand, Cores, DevicePeaks, Roof, roofline_s};
use serde::Serialize;
use std::collections::BTreeMap;

/// What sets the ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CeilingLimit {
    /// Operations per second.
    Compute,
    /// Bytes per second.
    Bandwidth,
}

/// One call on the roofline of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ceiling {
    /// Operations of a call.
    pub work: f64,
    /// Bytes that a call must move, each counted once.
    pub bytes: f64,
    /// Operations per byte.
    pub intensity: f64,
    /// The intensity at which the compute and bandwidth limits meet.
    pub ridge: f64,
    /// Operations per second that are possible at this intensity.
    pub ceiling: f64,
    /// What sets the ceiling.
    pub limit: CeilingLimit,
    /// The shortest possible time of a call, in seconds.
    pub floor_s: f64,
    /// The time of a call, in seconds.
    pub time_s: Option<f64>,
    /// Operations per second that were reached.
    pub reached: Option<f64>,
    /// The share of the ceiling that was reached, 0 to 1.
    pub share: Option<f64>,
}

/// A roofline measured on a busy host is too low by less than this factor.
pub const SHARE_MAX: f64 = 1.5;

impl Ceiling {
    /// Whether a call is so far above its ceiling that its work or its bytes must be wrong.
    pub fn is_impossible(&self) -> bool {
        self.share.is_some_and(|share| share > SHARE_MAX)
    }
}

/// A call on the roofline, if work, bytes and both peaks are known.
pub fn ceiling(demand: CallDemand, peaks: DevicePeaks, time_s: Option<f64>) -> Option<Ceiling> {
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    let (work, bytes) = (demand.work.filter(usable)?, demand.bytes.filter(usable)?);
    let (flops, rate) = (peaks.flops.filter(usable)?, peaks.bytes.filter(usable)?);
    let floor_s = roofline_s(demand, peaks)?;
    let time_s = time_s.filter(usable);
    let limit =
        if work / flops >= bytes / rate { CeilingLimit::Compute } else { CeilingLimit::Bandwidth };
    Some(Ceiling {
        work,
        bytes,
        intensity: work / bytes,
        ridge: flops / rate,
        ceiling: work / floor_s,
        limit,
        floor_s,
        time_s,
        reached: time_s.map(|time| work / time),
        share: time_s.map(|time| floor_s / time),
    })
}

/// A case on the part of the roofline that applies to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseUnderRoof {
    /// The index of the case.
    pub case: usize,
    /// The cache level that fits its bytes, if levels were measured.
    pub level: Option<String>,
    /// The cores it is compared with.
    pub cores: Cores,
    /// Intensity, ceiling, and the share that is reached.
    pub ceiling: Ceiling,
}

impl CaseUnderRoof {
    /// Whose roofline it is, in words.
    pub fn roof_name(&self) -> String {
        match &self.level {
            Some(level) => format!("{level}, {}", self.cores.name()),
            None => "the device".to_owned(),
        }
    }
}

/// The ceiling of each case whose work, bytes and peaks are known. Times are in seconds, by the
/// index of the case.
pub fn ceilings(
    charter: &Charter,
    cases: &[(usize, Case)],
    roof: &Roof,
    cores: Cores,
    times: &BTreeMap<usize, f64>,
) -> Vec<CaseUnderRoof> {
    let of_case = |(index, case): &(usize, Case)| {
        let demand = charter.demand(case)?;
        let time_s = times.get(index).copied();
        let (peaks, level) = roof.peaks_on(cores, demand);
        Some(CaseUnderRoof {
            case: *index,
            level: level.map(|level| level.name.clone()),
            cores,
            ceiling: ceiling(demand, peaks, time_s)?,
        })
    };
    cases.iter().filter_map(of_case).collect()
}

/// Which cores the cases are compared with: as many as the contract has threads, else one, unless a
/// call was faster than one core can be.
pub fn shown_cores(
    charter: &Charter,
    cases: &[(usize, Case)],
    roof: &Roof,
    times: &[&BTreeMap<usize, f64>],
) -> Cores {
    let threads = charter.contract.as_ref().map(|contract| contract.threads);
    let beyond = |times: &&BTreeMap<usize, f64>| {
        let one = ceilings(charter, cases, roof, Cores::One, times);
        let mut shares = one.iter().filter_map(|under| under.ceiling.share);
        shares.any(|share| share > 1.0)
    };
    match threads {
        Some(0 | 1) => Cores::One,
        Some(_) => Cores::All,
        None if roof.levels.is_empty() || times.iter().any(beyond) => Cores::All,
        None => Cores::One,
    }
}

impl CeilingLimit {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Bandwidth => "bandwidth",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_numerics::roof::{LevelRate, RoofLevel};

    fn peaks(flops: f64, bytes: f64) -> DevicePeaks {
        DevicePeaks { flops: Some(flops), bytes: Some(bytes) }
    }

    fn demand(work: f64, bytes: f64) -> CallDemand {
        CallDemand { work: Some(work), bytes: Some(bytes) }
    }

    #[test]
    fn a_call_is_under_the_slope_or_under_the_flat_part() {
        // A matrix product of 2048 on 67 TFLOP/s and 4.8 TB/s.
        let n = 2048.0_f64;
        let product = demand(2.0 * n.powi(3), 12.0 * n * n);
        let roof = peaks(67e12, 4.8e12);
        let found = ceiling(product, roof, Some(2.105e-3)).unwrap();
        assert_eq!(found.limit, CeilingLimit::Compute);
        assert!((found.intensity - 341.33).abs() < 0.01);
        assert!((found.ridge - 13.958).abs() < 0.01);
        assert!((found.share.unwrap() - 0.1218).abs() < 0.001);
        assert!(!found.is_impossible());
        // A copy.
        let copy = ceiling(demand(1.0, 2.0 * 4.0), roof, Some(2e-12)).unwrap();
        assert_eq!(copy.limit, CeilingLimit::Bandwidth);
        assert!((copy.ceiling - 0.6e12).abs() < 1e9);
        assert!((copy.share.unwrap() - 8.0 / 4.8 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn every_case_with_work_and_bytes_has_a_ceiling() {
        let mut charter = crate::testing::charter();
        charter.metric.work = Some("2*M*M*M".into());
        let mut case = charter.cases[0].clone();
        case.params = [("M".to_owned(), "100".to_owned())].into();
        let cases = [(3, case)];
        let roof = Roof {
            flops: Some(1e9),
            rates: vec![karve_numerics::roof::ByteRate { bytes: 1 << 20, per_s: 1e9 }],
            ..Roof::default()
        };
        let times = [(3, 4e-3)].into();
        let of = |charter: &Charter, roof: &Roof| {
            let cores = shown_cores(charter, &cases, roof, &[&times]);
            ceilings(charter, &cases, roof, cores, &times)
        };
        assert!(of(&charter, &roof).is_empty());
        charter.metric.bytes = Some("12*M*M".into());
        let found = of(&charter, &roof);
        assert_eq!(found.len(), 1);
        let ceiling = found[0].ceiling;
        assert_eq!((found[0].case, ceiling.limit), (3, CeilingLimit::Compute));
        assert_eq!(found[0].roof_name(), "the device");
        assert!((ceiling.share.unwrap() - 0.5).abs() < 1e-12);
        // So few bytes may be in a cache: no floor, but a ceiling to show.
        let demand = charter.demand(&cases[0].1).unwrap();
        assert_eq!(roof.peaks(demand).bytes, None);
        assert_eq!(roof.shown_peaks(demand).bytes, Some(1e9));
        assert!(of(&charter, &Roof::default()).is_empty());
        // With levels, the call is compared with one core and the level that fits its 120 KB,
        // unless one core cannot be that fast.
        let level = |name: &str, holds: Option<u64>, per_s: f64| RoofLevel {
            name: name.into(),
            one: LevelRate { per_s, holds },
            all: LevelRate { per_s: 2.0 * per_s, holds: holds.map(|holds| 2 * holds) },
        };
        let levels = vec![
            level("L1", Some(32_000), 4e9),
            level("L2", Some(1_000_000), 1e8),
            level("memory", None, 1e7),
        ];
        let host = |flops: f64| Roof {
            flops: Some(2.0 * flops),
            flops_one: Some(flops),
            levels: levels.clone(),
            ..Roof::default()
        };
        let found = of(&charter, &host(1e9));
        assert_eq!(found[0].roof_name(), "L2, one core");
        assert!((found[0].ceiling.ridge - 10.0).abs() < 1e-12);
        assert!((found[0].ceiling.share.unwrap() - 0.5).abs() < 1e-12);
        let found = of(&charter, &host(4e8));
        assert_eq!(found[0].roof_name(), "L2, all cores");
    }

    #[test]
    fn what_is_not_known_or_not_a_number_gives_no_ceiling() {
        let roof = peaks(1e12, 1e11);
        assert!(ceiling(CallDemand::default(), roof, None).is_none());
        assert!(ceiling(demand(1.0, 0.0), roof, None).is_none());
        assert!(ceiling(demand(1.0, 1.0), peaks(f64::NAN, 1.0), None).is_none());
        let untimed = ceiling(demand(1.0, 1.0), roof, Some(-1.0)).unwrap();
        assert_eq!((untimed.share, untimed.reached), (None, None));
    }
}
