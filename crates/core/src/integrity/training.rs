//! What real training does that a benchmark does not: new inputs in every step, new weights between
//! steps, and another number of rows for every group.

use super::{Bucket, Transfer};
use karve_numerics::case::{Case, CaseSet};

/// Steps of the trace.
const TRACE_STEPS: u32 = 4;
/// A cache that is hit less often than this is no gain.
const HIT_RATE_MIN: f64 = 0.5;

/// Parts of the names of operations on groups.
const GROUPED: [&str; 3] = ["group", "moe", "expert"];
/// Words that name a skewed distribution of rows among groups.
const SKEWED: [&str; 7] = ["skew", "imbalance", "unbalance", "uneven", "hot", "top_k=1", "zipf"];

/// How often a cache is found in the steps of real training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTrace {
    /// Times that something was found.
    pub hits: u32,
    /// Times that it was looked for: a forward and a backward pass in each step.
    pub uses: u32,
}

impl StepTrace {
    /// The share of hits, if anything is cached.
    pub fn rate(&self) -> Option<f64> {
        (self.uses > 0).then(|| f64::from(self.hits) / f64::from(self.uses))
    }

    /// Whether a change with this trace is rolled back.
    pub fn is_overfit(&self) -> bool {
        self.rate().is_some_and(|rate| rate < HIT_RATE_MIN)
    }
}

/// The trace of a change with these buckets. A step has new inputs and gradients, so nothing that
/// is kept of them is found; the weights change between steps, so that only the backward pass finds
/// them.
pub fn trace(buckets: &[Bucket]) -> StepTrace {
    let uses = 2 * TRACE_STEPS;
    if buckets.iter().any(|bucket| bucket.transfer() == Transfer::Overfit) {
        StepTrace { hits: 0, uses }
    } else if buckets.contains(&Bucket::W1) {
        StepTrace { hits: TRACE_STEPS, uses }
    } else {
        StepTrace { hits: 0, uses: 0 }
    }
}

/// Whether an operation works on groups of rows.
pub fn is_grouped(op: &str) -> bool {
    let op = op.to_lowercase();
    GROUPED.iter().any(|word| op.contains(word))
}

/// Whether a case distributes its rows unevenly among groups, by its name or a parameter.
pub fn is_skewed(case: &Case) -> bool {
    let params = case.params.iter().map(|(name, value)| format!("{name}={value}"));
    let mut texts = params.chain([case.name.clone()]).map(|text| text.to_lowercase());
    texts.any(|text| SKEWED.iter().any(|word| text.contains(word)))
}

/// Whether the representative shapes of a grouped operation lack a skewed one.
pub fn lacks_skew(op: &str, cases: &[Case]) -> bool {
    let is_quick = |case: &&Case| case.set == CaseSet::Quick;
    let has_quick = cases.iter().any(|case| is_quick(&case));
    let mut representative = cases.iter().filter(|case| match has_quick {
        true => is_quick(case),
        false => case.set == CaseSet::Full,
    });
    is_grouped(op) && !representative.any(is_skewed)
}

#[cfg(test)]
mod tests {
    use super::super::{AuditFinding, Severity, classify, state_in};
    use super::*;

    #[test]
    fn a_cache_that_is_hit_in_less_than_half_of_its_uses_is_rolled_back() {
        let check = |buckets: &[Bucket], rate: Option<f64>, is_overfit: bool| {
            let trace = trace(buckets);
            assert_eq!((trace.rate(), trace.is_overfit()), (rate, is_overfit), "{buckets:?}");
        };
        check(&[Bucket::K1], None, false);
        check(&[Bucket::K1, Bucket::W1], Some(0.5), false);
        check(&[Bucket::W1, Bucket::W2], Some(0.0), true);
        check(&[Bucket::W3], Some(0.0), true);
        // What the trace refuses is what the transfer check calls over-fit, and nothing else.
        for bucket in Bucket::ALL {
            assert_eq!(trace(&[bucket]).is_overfit(), bucket.transfer() == Transfer::Overfit);
        }
    }

    #[test]
    fn where_fresh_tensors_cannot_be_played_no_weight_cache_is_taken_for_real() {
        let cache = AuditFinding {
            rule: "weight-cache".into(),
            severity: Severity::Suspicious,
            bucket: Some(Bucket::W1),
            file: "k.py".into(),
            line: 3,
            what: "cached by id(weight) and _version".into(),
        };
        // Without a contract nobody checks that a new version is not served old data: the gain is
        // in doubt, and a doubt without a proof is not kept.
        assert!(state_in(std::slice::from_ref(&cache)).is_some());
        assert_eq!(classify(&[cache], None).transfer(), Transfer::WithAsterisk);
    }

    #[test]
    fn a_skewed_shape_is_known_by_its_name_or_a_parameter() {
        let case = |name: &str, params: &[(&str, &str)]| Case {
            name: name.into(),
            params: params.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect(),
            set: CaseSet::Full,
            minor: false,
            halve: None,
        };
        assert!(is_skewed(&case("half-to-one-expert-skewed", &[])));
        assert!(is_skewed(&case("b", &[("dist", "zipf")])) && !is_skewed(&case("uniform", &[])));
        assert!(is_grouped("grouped_gemm_fp8") && !is_grouped("gemm_fp8_blockwise"));
    }
}
