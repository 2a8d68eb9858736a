//! Whether two charters are about the same task: a campaign counts only for the task that it was
//! measured on.

use super::Charter;
use karve_numerics::case::Case;
use karve_numerics::contract::Contract;

impl Charter {
    /// The tables of `karve.toml` in which the tasks of two charters differ. What belongs to a
    /// campaign, such as its agent, limits, device and name, does not count, nor does what a newer
    /// karve may read differently from the same file.
    pub fn task_differences(&self, other: &Self) -> Vec<&'static str> {
        let target = |of: &Self| (of.target.op.clone(), of.target.backend.clone());
        let metric = |of: &Self| (of.metric.name.clone(), of.metric.better);
        let commands = |of: &Self| {
            let commands = &of.commands;
            (commands.build.clone(), commands.test.clone(), commands.bench.clone())
        };
        let parts = [
            ("target", target(self) == target(other)),
            ("sources", self.editable == other.editable && self.workdir == other.workdir),
            ("commands", commands(self) == commands(other)),
            ("contract", same_call(self.contract.as_deref(), other.contract.as_deref())),
            ("baselines", self.baselines == other.baselines),
            ("metric", metric(self) == metric(other)),
            ("cases", same_cases(&self.cases, &other.cases)),
        ];
        parts.into_iter().filter(|(_, same)| !same).map(|(table, _)| table).collect()
    }
}

/// What is called, and what it must agree with. A module may be asked for its arguments later.
fn same_call(a: Option<&Contract>, b: Option<&Contract>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => {
            let args = a.modules.asks || a.args == b.args;
            args && a.kernel == b.kernel && a.reference == b.reference && a.accuracy == b.accuracy
        }
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn same_cases(a: &[Case], b: &[Case]) -> bool {
    let same = |(a, b): (&Case, &Case)| a.name == b.name && a.params == b.params && a.set == b.set;
    a.len() == b.len() && a.iter().zip(b).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::script::script;
    use karve_numerics::contract::{BaselineKernel, NamedBaseline};

    #[test]
    fn a_campaign_of_another_task_is_told_by_what_differs() {
        let charter = script(&[]).charter;
        let check = |change: &dyn Fn(&mut Charter), want: &[&str]| {
            let mut other = charter.clone();
            change(&mut other);
            assert_eq!(charter.task_differences(&other), want);
            assert_eq!(other.task_differences(&charter), want);
        };
        check(&|_| {}, &[]);
        check(
            &|other| {
                other.name = "another".into();
                other.agent = "mine".into();
                other.limits.rounds += 1;
                other.target.device = "elsewhere".into();
                other.seed += 1;
            },
            &[],
        );
        check(&|other| other.target.op.push('x'), &["target"]);
        check(&|other| other.workdir = "x".into(), &["sources"]);
        check(&|other| other.commands.test.push('x'), &["commands"]);
        check(&|other| other.cases[0].name.push('x'), &["cases"]);
        check(&|other| drop(other.cases.pop()), &["cases"]);
        check(&|other| other.metric.name.push('x'), &["metric"]);
        let kernel = BaselineKernel::Library { path: "b.so".into(), entry: "f".into() };
        let named = NamedBaseline { name: "b".into(), kernel };
        check(&|other| other.baselines = vec![named.clone()], &["baselines"]);
    }
}
