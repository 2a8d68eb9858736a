//! Triggers that divide by zero or can never hold, as far as that is cheap to detect: a trigger is
//! tried with values of its counters at, next to and between the numbers they are compared with.

use crate::profile::counters::can_be;
use karve_numerics::expr::{BinaryOp, Expr, parse_expr};
use std::collections::BTreeMap;

/// Maximum number of combinations of values to try; with more, a trigger is not judged.
const TRIES_MAX: usize = 100_000;

/// Why a trigger that parses is useless.
pub(super) fn trigger_error(trigger: &str) -> Option<&'static str> {
    let expr = parse_expr(trigger).ok()?;
    if divides_by_zero(&expr) {
        return Some("divides by zero");
    }
    if expr.names().is_empty() {
        return Some("uses no counter, so it says nothing about a profile");
    }
    let mut limits = BTreeMap::new();
    collect_limits(&expr, &mut limits);
    let choices: Vec<(&str, Vec<f64>)> =
        limits.into_iter().map(|(name, numbers)| (name, values_to_try(name, numbers))).collect();
    let n_tries = choices.iter().fold(1_usize, |n, (_, values)| n.saturating_mul(values.len()));
    let never = n_tries <= TRIES_MAX
        && !(0..n_tries).any(|number| may_hold(&expr, &combination(&choices, number)));
    never.then_some("can never fire: its conditions contradict each other")
}

/// Whether it divides by something that is zero whatever was read.
fn divides_by_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) | Expr::Text(_) | Expr::Name(_) => false,
        Expr::Unary(_, of) => divides_by_zero(of),
        Expr::Call(_, of) => of.iter().any(divides_by_zero),
        Expr::Binary(op, a, b) => {
            let divides =
                matches!(op, BinaryOp::Divide | BinaryOp::FloorDivide | BinaryOp::Remainder);
            let zero = divides && number_of(b).is_some_and(|value| value == 0.0);
            zero || divides_by_zero(a) || divides_by_zero(b)
        }
    }
}

/// The value of an expression without counters.
fn number_of(expr: &Expr) -> Option<f64> {
    let constant = expr.names().is_empty();
    let value = constant.then(|| expr.evaluate(&|_| None).ok()).flatten();
    value.filter(|value| value.is_finite())
}

/// The counter and the number that a comparison compares.
fn limit_of(expr: &Expr) -> Option<(&str, f64)> {
    let Expr::Binary(
        BinaryOp::Less
        | BinaryOp::LessOrEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterOrEqual
        | BinaryOp::Equal
        | BinaryOp::NotEqual,
        a,
        b,
    ) = expr
    else {
        return None;
    };
    match (&**a, &**b) {
        (Expr::Name(name), other) | (other, Expr::Name(name)) => Some((name, number_of(other)?)),
        (_, _) => None,
    }
}

/// The numbers that each counter is compared with.
fn collect_limits<'a>(expr: &'a Expr, limits: &mut BTreeMap<&'a str, Vec<f64>>) {
    if let Some((name, number)) = limit_of(expr) {
        limits.entry(name).or_default().push(number);
        return;
    }
    match expr {
        Expr::Unary('!', of) => collect_limits(of, limits),
        Expr::Binary(BinaryOp::And | BinaryOp::Or, a, b) => {
            collect_limits(a, limits);
            collect_limits(b, limits);
        }
        _ => {}
    }
}

/// The values of a counter that decide.
fn values_to_try(name: &str, mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.extend([0.0, 50.0, 100.0]);
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    let beside = numbers.iter().flat_map(|n| [n.next_down(), *n, n.next_up()]);
    let between = numbers.windows(2).map(|two| f64::midpoint(two[0], two[1]));
    beside.chain(between).filter(|value| can_be(name, *value)).collect()
}

/// One of all combinations of values.
fn combination<'a>(choices: &[(&'a str, Vec<f64>)], mut number: usize) -> BTreeMap<&'a str, f64> {
    let mut values = BTreeMap::new();
    for (name, choice) in choices {
        values.insert(*name, choice[number % choice.len()]);
        number /= choice.len();
    }
    values
}

/// Whether an expression may hold with these values. Anything but a comparison of a counter with a
/// number may always hold.
fn may_hold(expr: &Expr, values: &BTreeMap<&str, f64>) -> bool {
    match expr {
        Expr::Binary(BinaryOp::And, a, b) => may_hold(a, values) && may_hold(b, values),
        Expr::Binary(BinaryOp::Or, a, b) => may_hold(a, values) || may_hold(b, values),
        Expr::Unary('!', of) => may_fail(of, values),
        other => truth_of(other, values).unwrap_or(true),
    }
}

/// Whether an expression may fail with these values.
fn may_fail(expr: &Expr, values: &BTreeMap<&str, f64>) -> bool {
    match expr {
        Expr::Binary(BinaryOp::And, a, b) => may_fail(a, values) || may_fail(b, values),
        Expr::Binary(BinaryOp::Or, a, b) => may_fail(a, values) && may_fail(b, values),
        Expr::Unary('!', of) => may_hold(of, values),
        other => !truth_of(other, values).unwrap_or(false),
    }
}

/// Whether a comparison of a counter with a number holds.
fn truth_of(expr: &Expr, values: &BTreeMap<&str, f64>) -> Option<bool> {
    limit_of(expr)?;
    let value = expr.evaluate(&|name| values.get(name).copied()).ok()?;
    Some(value != 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CounterValues, Predicate, PredicateValue};
    use proptest::prelude::*;

    #[test]
    fn what_can_never_fire_is_told_and_what_can_is_not() {
        let check = |trigger: &str, want: Option<&str>| {
            let found = trigger_error(trigger);
            let same = match want {
                Some(part) => found.is_some_and(|found| found.contains(part)),
                None => found.is_none(),
            };
            assert!(same, "{trigger}: {found:?}");
        };
        check("ipc / 0 > 5", Some("divides by zero"));
        check("ipc // (2 - 2) > 5", Some("divides by zero"));
        check("max(ipc % 0, 1) > 5", Some("divides by zero"));
        check("ipc / (waves - 1) > 5", None);
        check("1 > 0", Some("no counter"));
        for never in [
            "ipc > 5 && ipc < 3",
            "ipc > 5 && 5 > ipc",
            "ipc > 5 && ipc <= 5",
            "ipc == 1 && ipc == 2",
            "ipc == 1 && ipc != 1",
            "l1_miss_pct > 200",
            "l1_miss_pct < 0",
            "!(ipc < 3 || ipc > 2)",
            "(ipc > 5 || l1_miss_pct < 0) && ipc < 3",
        ] {
            check(never, Some("never fire"));
        }
        for fires in [
            "ipc > 5 && ipc < 5.5",
            "ipc >= 5 && ipc <= 5",
            "ipc > 5 || ipc < 3",
            "ipc > 5 && waves < 3",
            "l1_miss_pct > 5 && dram_pct < 200",
            "l1_miss_pct >= 0",
            "!(ipc > 5 && ipc < 3)",
            "ipc + 1 > 5 && ipc < 3",
            "min(ipc, 1) > 5",
        ] {
            check(fires, None);
        }
        let many = vec!["(ipc > 5 || ipc < 3)"; 40].join(" && ");
        check(&many, None);
    }

    proptest! {
        /// A trigger that fires on some values is never reported as impossible.
        #[test]
        fn what_fires_somewhere_is_not_complained_of(
            parts in prop::collection::vec(
                (0..2_usize, 0..6_usize, -2..8_i32, any::<bool>(), any::<bool>()),
                1..6,
            ),
            values in (-3..9_i32, -3..9_i32),
        ) {
            let names = ["ipc", "waves"];
            let ops = ["<", "<=", ">", ">=", "==", "!="];
            let mut text = String::new();
            for (number, (name, op, value, or, not)) in parts.iter().enumerate() {
                if number > 0 {
                    text.push_str(if *or { " || " } else { " && " });
                }
                let not = if *not { "!" } else { "" };
                text.push_str(&format!("{not}({} {} {value})", names[*name], ops[*op]));
            }
            let read: CounterValues = [
                ("ipc".to_owned(), f64::from(values.0)),
                ("waves".to_owned(), f64::from(values.1)),
            ]
            .into();
            let fires = Predicate::parse(&text).unwrap().truth(&read) == PredicateValue::Holds;
            prop_assert!(!fires || trigger_error(&text).is_none(), "{text} fires on {read:?}");
        }
    }
}
