//! Restrictions on settings: expressions over the values of the knobs.

use super::Axis;
use crate::expr::{BinaryOp, Expr, MathFunction, parse_expr, truth};
use std::collections::BTreeMap;

/// Words in knobs and restrictions are numbered downward from here, far from any value.
const FIRST_WORD: f64 = -1e300;

/// Maximum length of an expression in a message, in characters.
const EXCERPT_CHARS: usize = 200;

/// The beginning of a text that may be long.
fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Names that restrictions may use: the knobs, and constants.
#[derive(Debug)]
pub struct RestrictionNames<'a> {
    axes: &'a [Axis],
    constants: BTreeMap<String, String>,
    words: Vec<String>,
}

/// A restriction, ready to be checked.
#[derive(Clone, Debug)]
pub struct Restriction {
    text: String,
    node: RestrictionExpr,
    axes: Vec<usize>,
}

/// An expression with resolved names.
#[derive(Clone, Debug)]
enum RestrictionExpr {
    Number(f64),
    /// An axis with the number of each of its values.
    Axis(usize, Vec<f64>),
    Unary(char, Box<RestrictionExpr>),
    Binary(BinaryOp, Box<RestrictionExpr>, Box<RestrictionExpr>),
    Call(MathFunction, Vec<RestrictionExpr>),
}

/// Why a restriction cannot be evaluated for some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DividesByZero;

impl<'a> RestrictionNames<'a> {
    /// The names of a space.
    pub fn new(axes: &'a [Axis], constants: BTreeMap<String, String>) -> Self {
        Self { axes, constants, words: Vec::new() }
    }

    /// Parses a restriction.
    pub fn restriction(&mut self, text: &str) -> Result<Restriction, String> {
        let wrong = |why: String| {
            let (text, why) = (excerpt(text), excerpt(&why));
            format!("the restriction `{text}` cannot be read: {why}")
        };
        let expr = parse_expr(text).map_err(|error| wrong(error.to_string()))?;
        let mut axes = Vec::new();
        let node = self.resolve(&expr, &mut axes).map_err(wrong)?;
        axes.sort_unstable();
        axes.dedup();
        Ok(Restriction { text: excerpt(text), node, axes })
    }

    /// A knob that matters only where `when` holds keeps its default elsewhere.
    pub fn conditional(&mut self, name: &str, when: &str) -> Result<Restriction, String> {
        let Some(index) = self.axes.iter().position(|axis| axis.name == name) else {
            return Err(format!("`{name}` is not a knob"));
        };
        let condition = self.restriction(when)?;
        let axis = &self.axes[index];
        let ranks: Vec<f64> = (0..axis.values.len()).map(|rank| rank as f64).collect();
        let default = RestrictionExpr::Number(axis.default as f64);
        let keeps = RestrictionExpr::Binary(
            BinaryOp::Equal,
            Box::new(RestrictionExpr::Axis(index, ranks)),
            Box::new(default),
        );
        let mut axes = condition.axes;
        axes.push(index);
        axes.sort_unstable();
        axes.dedup();
        Ok(Restriction {
            text: excerpt(&format!("{name} matters only when {when}")),
            node: RestrictionExpr::Binary(BinaryOp::Or, Box::new(condition.node), Box::new(keeps)),
            axes,
        })
    }

    fn resolve(&mut self, expr: &Expr, axes: &mut Vec<usize>) -> Result<RestrictionExpr, String> {
        Ok(match expr {
            Expr::Number(value) => RestrictionExpr::Number(*value),
            Expr::Text(text) => RestrictionExpr::Number(self.word(text)),
            Expr::Name(name) => self.name(name, axes)?,
            Expr::Unary(sign, inner) => {
                let node = self.resolve(inner, axes)?;
                if *sign != '!' {
                    is_number(&node)?;
                }
                RestrictionExpr::Unary(*sign, Box::new(node))
            }
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.resolve(left, axes)?, self.resolve(right, axes)?);
                if !matches!(
                    op,
                    BinaryOp::Equal | BinaryOp::NotEqual | BinaryOp::And | BinaryOp::Or
                ) {
                    is_number(&left)?;
                    is_number(&right)?;
                }
                RestrictionExpr::Binary(*op, Box::new(left), Box::new(right))
            }
            Expr::Call(function, arguments) => {
                let mut nodes = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    let node = self.resolve(argument, axes)?;
                    is_number(&node)?;
                    nodes.push(node);
                }
                RestrictionExpr::Call(*function, nodes)
            }
        })
    }

    fn name(&mut self, name: &str, axes: &mut Vec<usize>) -> Result<RestrictionExpr, String> {
        let found = self.axes.iter().position(|axis| axis.name == name);
        if let Some(index) = found {
            axes.push(index);
            let axis = &self.axes[index];
            let numbers = match &axis.numbers {
                Some(numbers) => numbers.clone(),
                None => axis.values.iter().map(|v| self.value(v)).collect(),
            };
            return Ok(RestrictionExpr::Axis(index, numbers));
        }
        match (self.constants.get(name).cloned(), name) {
            (Some(value), _) => Ok(RestrictionExpr::Number(self.value(&value))),
            (None, "True" | "true") => Ok(RestrictionExpr::Number(1.0)),
            (None, "False" | "false") => Ok(RestrictionExpr::Number(0.0)),
            (None, _) => {
                let known: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
                Err(format!("`{name}` is not a knob; there are {}", known.join(", ")))
            }
        }
    }

    fn value(&mut self, value: &str) -> f64 {
        value.parse().unwrap_or_else(|_| self.word(value))
    }

    fn word(&mut self, word: &str) -> f64 {
        let at = self.words.iter().position(|known| known == word);
        let at = at.unwrap_or_else(|| {
            self.words.push(word.to_owned());
            self.words.len() - 1
        });
        // Distinct numbers, each a little further out.
        FIRST_WORD * (1.0 + at as f64 / 1_000.0)
    }
}

/// A word has no size: it cannot be multiplied or compared by size.
fn is_number(node: &RestrictionExpr) -> Result<(), String> {
    let word = |value: &f64| *value <= FIRST_WORD;
    match node {
        RestrictionExpr::Number(value) if word(value) => Err("a word is used as a number".into()),
        RestrictionExpr::Axis(_, values) if values.iter().any(word) => {
            Err("a knob whose values are words is used as a number".into())
        }
        RestrictionExpr::Number(_)
        | RestrictionExpr::Axis(..)
        | RestrictionExpr::Unary(..)
        | RestrictionExpr::Binary(..)
        | RestrictionExpr::Call(..) => Ok(()),
    }
}

impl Restriction {
    /// Its source text, or the beginning of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The knobs it depends on, ascending.
    pub(super) fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// Whether it holds for the ranks of a setting; only its own axes count.
    pub(super) fn holds(&self, ranks: &[u16]) -> Result<bool, DividesByZero> {
        Ok(self.node.evaluate(ranks)? != 0.0)
    }

    /// Whether it may still hold while the axes that are not `known` are open.
    pub(super) fn may_hold(&self, ranks: &[u16], known: &[bool]) -> bool {
        let (low, high) = self.node.bounds(ranks, known);
        // Not a number: nothing is known.
        !(low == 0.0 && high == 0.0)
    }
}

impl RestrictionExpr {
    fn evaluate(&self, ranks: &[u16]) -> Result<f64, DividesByZero> {
        Ok(match self {
            Self::Number(value) => *value,
            Self::Axis(axis, values) => values[usize::from(ranks[*axis])],
            Self::Unary('!', inner) => truth(inner.evaluate(ranks)? == 0.0),
            Self::Unary(_, inner) => -inner.evaluate(ranks)?,
            Self::Binary(BinaryOp::And, left, right) => {
                truth(left.evaluate(ranks)? != 0.0 && right.evaluate(ranks)? != 0.0)
            }
            Self::Binary(BinaryOp::Or, left, right) => {
                truth(left.evaluate(ranks)? != 0.0 || right.evaluate(ranks)? != 0.0)
            }
            Self::Binary(op, left, right) => {
                let (left, right) = (left.evaluate(ranks)?, right.evaluate(ranks)?);
                let divides =
                    matches!(op, BinaryOp::Divide | BinaryOp::FloorDivide | BinaryOp::Remainder);
                if divides && right == 0.0 {
                    return Err(DividesByZero);
                }
                op.apply(left, right)
            }
            Self::Call(function, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(argument.evaluate(ranks)?);
                }
                function.apply(&values)
            }
        })
    }

    /// The smallest and the largest value it can have; unbounded where that is not known.
    fn bounds(&self, ranks: &[u16], known: &[bool]) -> (f64, f64) {
        const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
        match self {
            Self::Number(value) => (*value, *value),
            Self::Axis(axis, values) if known[*axis] => {
                let value = values[usize::from(ranks[*axis])];
                (value, value)
            }
            Self::Axis(_, values) => {
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (least, most)
            }
            Self::Unary('!', inner) => match inner.bounds(ranks, known) {
                (low, high) if low > 0.0 || high < 0.0 => (0.0, 0.0),
                (0.0, 0.0) => (1.0, 1.0),
                _ => (0.0, 1.0),
            },
            Self::Unary(_, inner) => {
                let (low, high) = inner.bounds(ranks, known);
                (-high, -low)
            }
            Self::Binary(op, left, right) => {
                let (a, b) = (left.bounds(ranks, known), right.bounds(ranks, known));
                bounds_of(*op, a, b).unwrap_or(ANY)
            }
            Self::Call(function, arguments) => {
                let all: Vec<(f64, f64)> =
                    arguments.iter().map(|a| a.bounds(ranks, known)).collect();
                let low: Vec<f64> = all.iter().map(|bounds| bounds.0).collect();
                let high: Vec<f64> = all.iter().map(|bounds| bounds.1).collect();
                // All four functions are monotonic in their arguments.
                let bounds = (function.apply(&low), function.apply(&high));
                if bounds.0.is_nan() || bounds.1.is_nan() { ANY } else { bounds }
            }
        }
    }
}

/// The bounds of `a op b`, if they follow from the bounds of both.
fn bounds_of(op: BinaryOp, a: (f64, f64), b: (f64, f64)) -> Option<(f64, f64)> {
    let duel_cases = |op: BinaryOp| {
        let all = [op.apply(a.0, b.0), op.apply(a.0, b.1), op.apply(a.1, b.0), op.apply(a.1, b.1)];
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (!all.iter().any(|value| value.is_nan())).then_some((low, high))
    };
    let decided = |always: bool, never: bool| match (always, never) {
        (true, _) => (1.0, 1.0),
        (_, true) => (0.0, 0.0),
        _ => (0.0, 1.0),
    };
    let apart = a.1 < b.0 || b.1 < a.0;
    let same = a.0 == a.1 && b.0 == b.1 && a.0 == b.0;
    let zero = |x: (f64, f64)| x == (0.0, 0.0);
    let never_zero = |x: (f64, f64)| x.0 > 0.0 || x.1 < 0.0;
    match op {
        BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply => duel_cases(op),
        // Rounding down is monotonic as long as the divisor does not cross zero.
        BinaryOp::Divide | BinaryOp::FloorDivide => duel_cases(op).filter(|_| never_zero(b)),
        BinaryOp::Remainder => (a.0 == a.1 && b.0 == b.1 && b.0 != 0.0)
            .then(|| (op.apply(a.0, b.0), op.apply(a.0, b.0))),
        BinaryOp::Power => duel_cases(op).filter(|_| a.0 >= 1.0),
        BinaryOp::Less => Some(decided(a.1 < b.0, a.0 >= b.1)),
        BinaryOp::LessOrEqual => Some(decided(a.1 <= b.0, a.0 > b.1)),
        BinaryOp::Greater => Some(decided(a.0 > b.1, a.1 <= b.0)),
        BinaryOp::GreaterOrEqual => Some(decided(a.0 >= b.1, a.1 < b.0)),
        BinaryOp::Equal => Some(decided(same, apart)),
        BinaryOp::NotEqual => Some(decided(apart, same)),
        BinaryOp::And => Some(decided(never_zero(a) && never_zero(b), zero(a) || zero(b))),
        BinaryOp::Or => Some(decided(never_zero(a) || never_zero(b), zero(a) && zero(b))),
    }
}
