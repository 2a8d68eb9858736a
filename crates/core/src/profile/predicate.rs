//! Conditions on counters, such as `l2_hit_pct < 80 && dram_pct > 60`. A counter that was not read
//! is neither large nor small: a condition on it may be unknown.

use karve_numerics::expr::{BinaryOp, Expr, ExprError, MathFunction, parse_expr};
use std::collections::BTreeMap;

/// Names and values of counters.
pub type CounterValues = BTreeMap<String, f64>;

/// The truth of a condition, given some counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredicateValue {
    /// It holds.
    Holds,
    /// It does not.
    Fails,
    /// A counter that it uses was not read.
    Unknown,
}

/// A condition on counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    text: String,
    expr: Expr,
}

impl Predicate {
    /// Parses a condition.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        Ok(Self { text: text.trim().to_owned(), expr: parse_expr(text)? })
    }

    /// Its source text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The counters that it uses, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names = self.expr.names();
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(*name));
        names
    }

    /// Whether it holds.
    pub fn truth(&self, values: &CounterValues) -> PredicateValue {
        truth(&self.expr, values)
    }

    /// The part that makes it hold: of several alternatives, the first that does.
    pub fn holding_part(&self, values: &CounterValues) -> Self {
        let expr = conditions_that_hold(&self.expr, values).clone_whole();
        Self { text: written(&expr), expr }
    }

    /// The counters it uses that were read, as `name=value`.
    pub fn quote(&self, values: &CounterValues) -> String {
        let read = self.names().into_iter().filter_map(|name| {
            let value = values.get(name)?;
            Some(format!("{name}={}", short(*value)))
        });
        read.collect::<Vec<_>>().join(", ")
    }
}

fn truth(expr: &Expr, values: &CounterValues) -> PredicateValue {
    match expr {
        Expr::Binary(BinaryOp::And, a, b) => match (truth(a, values), truth(b, values)) {
            (PredicateValue::Fails, _) | (_, PredicateValue::Fails) => PredicateValue::Fails,
            (PredicateValue::Holds, PredicateValue::Holds) => PredicateValue::Holds,
            _ => PredicateValue::Unknown,
        },
        Expr::Binary(BinaryOp::Or, a, b) => match (truth(a, values), truth(b, values)) {
            (PredicateValue::Holds, _) | (_, PredicateValue::Holds) => PredicateValue::Holds,
            (PredicateValue::Fails, PredicateValue::Fails) => PredicateValue::Fails,
            _ => PredicateValue::Unknown,
        },
        Expr::Unary('!', inner) => match truth(inner, values) {
            PredicateValue::Holds => PredicateValue::Fails,
            PredicateValue::Fails => PredicateValue::Holds,
            PredicateValue::Unknown => PredicateValue::Unknown,
        },
        Expr::Number(_)
        | Expr::Text(_)
        | Expr::Name(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..) => match expr.evaluate(&|name| values.get(name).copied()) {
            Ok(value) if value.is_nan() => PredicateValue::Unknown,
            Ok(value) if value != 0.0 => PredicateValue::Holds,
            Ok(_) => PredicateValue::Fails,
            Err(_) => PredicateValue::Unknown,
        },
    }
}

/// A condition without the alternatives that do not hold.
struct HoldingConditions<'a>(Vec<&'a Expr>);

impl HoldingConditions<'_> {
    /// All of its conjuncts joined.
    fn clone_whole(self) -> Expr {
        let mut all = self.0.into_iter().cloned();
        let first = all.next().unwrap_or(Expr::Number(1.0));
        all.fold(first, |whole, more| Expr::Binary(BinaryOp::And, Box::new(whole), Box::new(more)))
    }
}

/// The conditions that make it hold.
fn conditions_that_hold<'a>(expr: &'a Expr, values: &CounterValues) -> HoldingConditions<'a> {
    match expr {
        Expr::Binary(BinaryOp::Or, a, b) => match truth(a, values) {
            PredicateValue::Holds => conditions_that_hold(a, values),
            PredicateValue::Fails | PredicateValue::Unknown => conditions_that_hold(b, values),
        },
        Expr::Binary(BinaryOp::And, a, b) => {
            let (mut all, more) =
                (conditions_that_hold(a, values), conditions_that_hold(b, values));
            all.0.extend(more.0);
            all
        }
        Expr::Number(_)
        | Expr::Text(_)
        | Expr::Name(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..) => HoldingConditions(vec![expr]),
    }
}

/// An expression as text; operators that bind less than their context are in parentheses.
fn written(expr: &Expr) -> String {
    let inner = |expr: &Expr| match expr {
        Expr::Binary(..) => format!("({})", written(expr)),
        Expr::Number(_) | Expr::Text(_) | Expr::Name(_) | Expr::Unary(..) | Expr::Call(..) => {
            written(expr)
        }
    };
    match expr {
        Expr::Number(number) => format!("{number}"),
        Expr::Text(text) => format!("'{text}'"),
        Expr::Name(name) => name.clone(),
        Expr::Unary(sign, of) => format!("{sign}{}", inner(of)),
        Expr::Binary(BinaryOp::And, a, b) => format!("{} && {}", written(a), written(b)),
        Expr::Binary(op, a, b) => format!("{} {} {}", inner(a), symbol(*op), inner(b)),
        Expr::Call(function, of) => {
            let of: Vec<String> = of.iter().map(written).collect();
            let name = match function {
                MathFunction::Min => "min",
                MathFunction::Max => "max",
                MathFunction::Sqrt => "sqrt",
                MathFunction::Ln => "ln",
            };
            format!("{name}({})", of.join(", "))
        }
    }
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::FloorDivide => "//",
        BinaryOp::Remainder => "%",
        BinaryOp::Power => "**",
        BinaryOp::Less => "<",
        BinaryOp::LessOrEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterOrEqual => ">=",
        BinaryOp::Equal => "==",
        BinaryOp::NotEqual => "!=",
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
    }
}

/// A value in few digits, as a person would quote it.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let size = value.abs();
    if !(1e-3..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    let digits = if size >= 1_000.0 {
        0
    } else if size >= 100.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        4
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> CounterValues {
        [("l2_hit_pct", 43.125), ("dram_pct", 70.0)]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    #[test]
    fn what_was_not_read_is_unknown_unless_the_rest_decides() {
        let check = |text: &str, want: PredicateValue| {
            let predicate = Predicate::parse(text).unwrap();
            assert_eq!(predicate.truth(&values()), want, "{text}");
        };
        check("l2_hit_pct < 80", PredicateValue::Holds);
        check("l2_hit_pct < 80 && dram_pct > 60", PredicateValue::Holds);
        check("l2_hit_pct < 40", PredicateValue::Fails);
        check("waves < 1", PredicateValue::Unknown);
        check("waves < 1 && l2_hit_pct < 40", PredicateValue::Fails);
        check("waves < 1 && l2_hit_pct < 80", PredicateValue::Unknown);
        check("waves < 1 || l2_hit_pct < 80", PredicateValue::Holds);
        check("not (waves < 1)", PredicateValue::Unknown);
        check("!(l2_hit_pct < 80)", PredicateValue::Fails);
        check("dram_pct / (dram_pct - 70) > 1 && waves > 1", PredicateValue::Unknown);
        check("0 / (dram_pct - 70) > 1", PredicateValue::Fails);
    }

    #[test]
    fn of_several_ways_the_one_is_told_by_which_it_holds() {
        let check = |text: &str, want: &str| {
            let predicate = Predicate::parse(text).unwrap();
            assert_eq!(predicate.truth(&values()), PredicateValue::Holds, "{text}");
            assert_eq!(predicate.holding_part(&values()).text(), want);
        };
        check("dram_pct > 60", "dram_pct > 60");
        check("l2_hit_pct < 10 || waves < 1 || dram_pct >= 70", "dram_pct >= 70");
        check(
            "dram_pct > 60 && (waves < 1 || l2_hit_pct + 1 < max(50, dram_pct))",
            "dram_pct > 60 && (l2_hit_pct + 1) < max(50, dram_pct)",
        );
    }

    #[test]
    fn values_are_quoted_in_few_digits() {
        let predicate = Predicate::parse("l2_hit_pct < 80 and waves > 2 or l2_hit_pct > 90");
        assert_eq!(predicate.unwrap().quote(&values()), "l2_hit_pct=43.12");
        let check = |value: f64, want: &str| assert_eq!(short(value), want);
        check(0.0, "0");
        check(100.0, "100");
        check(1_234.5, "1234");
        check(0.25, "0.25");
        check(97.301, "97.3");
        check(3.2e9, "3.200e9");
        check(0.0001, "1.000e-4");
    }
}
