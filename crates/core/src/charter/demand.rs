//! The least work of one call on a case, as the charter declares it.

use super::Charter;
use karve_numerics::case::Case;
use karve_numerics::expr::parse_expr;
use karve_numerics::roof::{CallDemand, is_amount};

impl Charter {
    /// Whether the least work of a call is declared. Without that it is writing the outputs, which
    /// is a bound for a check and none that a kernel is scored by.
    pub fn declares_work(&self) -> bool {
        let of_contract = self.contract.as_ref().map(|contract| &contract.work);
        of_contract.is_some_and(|work| work.flops.is_some() || work.bytes.is_some())
            || self.metric.work.is_some()
            || self.metric.bytes.is_some()
    }

    /// The least work of one call on a case: as the contract declares it, else as the metric does.
    pub fn demand(&self, case: &Case) -> Option<CallDemand> {
        let metric = &self.metric;
        let mut demand = match &self.contract {
            Some(contract) => contract.demand(case).ok()?,
            None => CallDemand::default(),
        };
        let amount = |text: &String| {
            let amount = parse_expr(text).ok()?.evaluate_params(&case.params).ok()?;
            is_amount(amount).then_some(amount)
        };
        // For other metrics the work may be in bytes.
        let in_flops = metric.rate_per_unit().or(metric.seconds_per_unit());
        if demand.work.is_none() && in_flops.is_some() {
            demand.work = metric.work.as_ref().and_then(amount);
        }
        // Under a contract without a declaration, the bytes of the outputs are the least.
        let declared = self.contract.as_ref().and_then(|c| c.work.bytes.as_ref());
        if let (None, Some(bytes)) = (declared, metric.bytes.as_ref().and_then(amount)) {
            demand.bytes = Some(bytes);
        }
        Some(demand)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing;
    use karve_numerics::roof::CallDemand;

    #[test]
    fn work_and_bytes_are_computed_from_the_parameters_of_a_case() {
        let mut charter = testing::charter();
        let mut case = charter.cases[0].clone();
        case.params = [("M".to_owned(), "8".to_owned())].into();
        let check = |charter: &super::Charter, want: (Option<f64>, Option<f64>)| {
            let (work, bytes) = want;
            assert_eq!(charter.demand(&case), Some(CallDemand { work, bytes }));
        };
        charter.metric.work = None;
        assert!(!charter.declares_work());
        charter.metric.work = Some("2*M".into());
        assert!(charter.declares_work());
        check(&charter, (Some(16.0), None));
        charter.metric.bytes = Some("M*M".into());
        check(&charter, (Some(16.0), Some(64.0)));
        charter.metric.bytes = Some("M-8".into());
        check(&charter, (Some(16.0), None));
        charter.metric.bytes = Some("Q".into());
        check(&charter, (Some(16.0), None));
        // The work of a rate in rows is in rows.
        charter.metric.unit = "rows/s".into();
        charter.metric.bytes = Some("M".into());
        check(&charter, (None, Some(8.0)));
    }

    #[test]
    fn a_metric_without_bytes_is_stored_as_before() {
        let mut metric = testing::charter().metric;
        let text = serde_json::to_string(&metric).unwrap();
        assert!(!text.contains("bytes"), "{text}");
        assert_eq!(metric, serde_json::from_str(&text).unwrap());
        metric.bytes = Some("4*M".into());
        let text = serde_json::to_string(&metric).unwrap();
        assert_eq!(metric, serde_json::from_str(&text).unwrap());
    }
}
