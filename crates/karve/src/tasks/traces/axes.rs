//! The axes of a definition: as expressions over the parameters of a case, and as numbers.

use super::super::names::param_name;
use super::format::{AxisSpec, TensorSpec, TraceDefinition, TraceWorkload};
use karve_numerics::expr::parse_expr;
use std::collections::BTreeMap;

/// How often expressions may refer to others.
const DEPTH_MAX: usize = 8;

/// The axes, each as an expression over the variable ones.
pub(super) struct Axes {
    all: Vec<(String, String)>,
    variable: Vec<String>,
}

impl Axes {
    /// The axes of a definition.
    pub(super) fn of(definition: &TraceDefinition) -> Result<Self, String> {
        let mut axes = Self { all: Vec::new(), variable: Vec::new() };
        for (name, spec) in &definition.axes.0 {
            let text = match spec {
                AxisSpec::Const { value } => value.to_string(),
                AxisSpec::Var => {
                    axes.variable.push(name.clone());
                    param_name(name)
                }
                AxisSpec::Expr { expression } => {
                    parse_expr(expression)
                        .map_err(|error| format!("the axis `{name}`: {error}"))?;
                    format!("({expression})")
                }
            };
            axes.all.push((name.clone(), text));
        }
        for _ in 0..DEPTH_MAX {
            let known = axes.all.clone();
            for (_, text) in axes.all.iter_mut().filter(|(_, text)| text.starts_with('(')) {
                *text = substituted(text, &known, &axes.variable);
            }
        }
        Ok(axes)
    }

    /// Whether there is such an axis.
    pub(super) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|(own, _)| own == name)
    }

    /// The extent of an axis, or of a number in its place, as an expression.
    pub(super) fn expression(&self, axis: &str) -> Option<String> {
        let own = self.all.iter().find(|(name, _)| name == axis).map(|(_, text)| text.clone());
        own.or_else(|| axis.parse::<u64>().ok().map(|n| n.to_string()))
    }

    /// The variable axes of a workload.
    pub(super) fn variable<'a>(
        &'a self,
        workload: &'a TraceWorkload,
    ) -> impl Iterator<Item = (&'a str, i64)> {
        let own = self.variable.iter();
        own.filter_map(|name| Some((name.as_str(), *workload.axes.get(name)?)))
    }

    /// All axes of a workload as numbers.
    pub(super) fn numbers(
        &self,
        workload: &TraceWorkload,
    ) -> Result<BTreeMap<String, i64>, String> {
        let mut params = BTreeMap::new();
        for name in &self.variable {
            let value = workload.axes.get(name).filter(|n| **n >= 0);
            let value =
                value.ok_or_else(|| format!("a workload does not give the axis `{name}`"))?;
            params.insert(param_name(name), value.to_string());
        }
        let mut numbers = BTreeMap::new();
        for (name, text) in &self.all {
            let wrong = || format!("the axis `{name}` is not a whole number");
            let expr = parse_expr(text).map_err(|error| format!("the axis `{name}`: {error}"))?;
            let value = expr.evaluate_params(&params).map_err(|_| wrong())?;
            if value.fract() != 0.0 || !(0.0..=1e15).contains(&value) {
                return Err(wrong());
            }
            numbers.insert(name.clone(), value as i64);
        }
        Ok(numbers)
    }

    /// The extents of a tensor as numbers; none for a number.
    pub(super) fn extents(
        &self,
        spec: &TensorSpec,
        numbers: &BTreeMap<String, i64>,
    ) -> Result<Vec<i64>, String> {
        let extent = |axis: &String| {
            let own = numbers.get(axis).copied().or_else(|| axis.parse().ok());
            own.ok_or_else(|| format!("there is no axis `{axis}`"))
        };
        spec.shape.iter().flatten().map(extent).collect()
    }
}

/// An expression with the names of other axes replaced by what they are.
fn substituted(text: &str, known: &[(String, String)], variable: &[String]) -> String {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_name) {
        let end = rest[at..].find(|c| !is_name(c)).map_or(rest.len(), |n| at + n);
        let word = &rest[at..end];
        out.push_str(&rest[..at]);
        let is_own = variable.iter().any(|name| name == word);
        match known.iter().find(|(name, of)| name == word && (!is_own || of != word)) {
            Some((_, of)) if out.len() < 2_000 => out.push_str(of),
            _ => out.push_str(word),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}
