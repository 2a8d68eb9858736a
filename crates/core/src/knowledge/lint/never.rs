//! Triggers that divide by zero or can never hold, as far as that is cheap to detect: comparisons
//! of one counter with a number, in all combinations of and, or and not.

use crate::profile::counters::can_be;
use karve_numerics::expr::{BinaryOp, Expr, parse_expr};
use std::collections::BTreeMap;

/// Maximum number of ways to satisfy a condition to look at; with more, it is not judged.
const WAYS_MAX: usize = 64;

/// A counter compared with a number.
#[derive(Clone, Copy, Debug)]
struct CounterTest<'a> {
    name: &'a str,
    op: BinaryOp,
    value: f64,
}

/// Ways to satisfy a condition, each with what must be true for it.
type ConditionBranches<'a> = Vec<Vec<CounterTest<'a>>>;

/// Why a trigger that parses is useless.
pub(super) fn trigger_error(trigger: &str) -> Option<&'static str> {
    let expr = parse_expr(trigger).ok()?;
    if divides_by_zero(&expr) {
        return Some("divides by zero");
    }
    if expr.names().is_empty() {
        return Some("uses no counter, so it says nothing about a profile");
    }
    let ways = branches(&expr, ConditionSense::Holds);
    let never = ways.iter().all(|way| contradicts_itself(way));
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

#[derive(Clone, Copy, PartialEq)]
enum ConditionSense {
    Holds,
    Fails,
}

impl ConditionSense {
    fn other(self) -> Self {
        match self {
            Self::Holds => Self::Fails,
            Self::Fails => Self::Holds,
        }
    }
}

/// The ways in which an expression holds, or fails. Anything but a comparison of a counter with a
/// number may always hold.
fn branches(expr: &Expr, sense: ConditionSense) -> ConditionBranches<'_> {
    let open = || vec![Vec::new()];
    match (expr, sense) {
        (Expr::Binary(BinaryOp::And, a, b), ConditionSense::Holds)
        | (Expr::Binary(BinaryOp::Or, a, b), ConditionSense::Fails) => {
            let (a, b) = (branches(a, sense), branches(b, sense));
            if a.len() * b.len() > WAYS_MAX {
                return open();
            }
            let mut all = Vec::new();
            for one in &a {
                all.extend(b.iter().map(|other| [&one[..], &other[..]].concat()));
            }
            all
        }
        (Expr::Binary(BinaryOp::Or, a, b), ConditionSense::Holds)
        | (Expr::Binary(BinaryOp::And, a, b), ConditionSense::Fails) => {
            let mut all = branches(a, sense);
            all.extend(branches(b, sense));
            if all.len() > WAYS_MAX { open() } else { all }
        }
        (Expr::Unary('!', of), sense) => branches(of, sense.other()),
        (Expr::Binary(op, a, b), sense) => match atom(*op, a, b) {
            Some(atom) if sense == ConditionSense::Holds => vec![vec![atom]],
            Some(atom) => match opposite(atom.op) {
                Some(op) => vec![vec![CounterTest { op, ..atom }]],
                None => open(),
            },
            None => open(),
        },
        (Expr::Number(_) | Expr::Text(_) | Expr::Name(_) | Expr::Unary(..) | Expr::Call(..), _) => {
            open()
        }
    }
}

/// A comparison of a counter with a number, the counter first.
fn atom<'a>(op: BinaryOp, a: &'a Expr, b: &'a Expr) -> Option<CounterTest<'a>> {
    match (a, b) {
        (Expr::Name(name), b) => {
            Some(CounterTest { name, op: compares(op)?, value: number_of(b)? })
        }
        (a, Expr::Name(name)) => {
            Some(CounterTest { name, op: flipped(compares(op)?), value: number_of(a)? })
        }
        (_, _) => None,
    }
}

fn compares(op: BinaryOp) -> Option<BinaryOp> {
    let compares = matches!(
        op,
        BinaryOp::Less
            | BinaryOp::LessOrEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterOrEqual
            | BinaryOp::Equal
            | BinaryOp::NotEqual
    );
    compares.then_some(op)
}

/// The same comparison with its sides swapped.
fn flipped(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::FloorDivide
        | BinaryOp::Remainder => op,
        BinaryOp::Power | BinaryOp::Equal | BinaryOp::NotEqual | BinaryOp::And | BinaryOp::Or => op,
    }
}

/// The negation of a comparison.
fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    match op {
        BinaryOp::Less => Some(BinaryOp::GreaterOrEqual),
        BinaryOp::LessOrEqual => Some(BinaryOp::Greater),
        BinaryOp::Greater => Some(BinaryOp::LessOrEqual),
        BinaryOp::GreaterOrEqual => Some(BinaryOp::Less),
        BinaryOp::Equal => Some(BinaryOp::NotEqual),
        BinaryOp::NotEqual => Some(BinaryOp::Equal),
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::FloorDivide
        | BinaryOp::Remainder => None,
        BinaryOp::Power | BinaryOp::And | BinaryOp::Or => None,
    }
}

/// Whether no values of the counters satisfy all of them. The values that decide are those at and
/// next to the numbers in them.
fn contradicts_itself(way: &[CounterTest<'_>]) -> bool {
    let mut by_name: BTreeMap<&str, Vec<CounterTest<'_>>> = BTreeMap::new();
    for atom in way {
        by_name.entry(atom.name).or_default().push(*atom);
    }
    by_name.iter().any(|(name, atoms)| {
        let mut numbers: Vec<f64> = atoms.iter().map(|atom| atom.value).collect();
        numbers.extend([0.0, 50.0, 100.0]);
        numbers.sort_by(f64::total_cmp);
        let beside = numbers.iter().flat_map(|n| [n.next_down(), *n, n.next_up()]);
        let between = numbers.windows(2).map(|two| f64::midpoint(two[0], two[1]));
        let mut tried = beside.chain(between);
        !tried.any(|value| can_be(name, value) && atoms.iter().all(|atom| atom.is_true(value)))
    })
}

impl CounterTest<'_> {
    fn is_true(&self, value: f64) -> bool {
        match self.op {
            BinaryOp::Less => value < self.value,
            BinaryOp::LessOrEqual => value <= self.value,
            BinaryOp::Greater => value > self.value,
            BinaryOp::GreaterOrEqual => value >= self.value,
            BinaryOp::Equal => value == self.value,
            BinaryOp::NotEqual => value != self.value,
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::FloorDivide => true,
            BinaryOp::Remainder | BinaryOp::Power | BinaryOp::And | BinaryOp::Or => true,
        }
    }
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
