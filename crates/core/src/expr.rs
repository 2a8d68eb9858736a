//! Arithmetic over case parameters and result columns, as `karve.toml` writes it.
//!
//! `2*M*N*K`, `6/(2/fwd+4/bwd)`, `TILE_M % (WM*VEC) == 0`. Comparisons and logic give 1 or 0.
//! Names may contain letters, digits, `_` and `.`; a name with other characters is written
//! between backquotes, as in `` `Forward TFLOPS` ``.

use std::collections::BTreeMap;
use std::fmt;

/// How deep parentheses and operators may nest.
const DEPTH_MAX: u32 = 64;
/// How long an expression may be, in bytes.
const LENGTH_MAX: usize = 2_000;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// A case parameter or a column.
    Name(String),
    /// `-x` or `!x`.
    Unary(char, Box<Expr>),
    /// `a op b`.
    Binary(Op, Box<Expr>, Box<Expr>),
    /// `min(a, b)`, `max(a, b)`, `sqrt(a)`, `ln(a)`.
    Call(Function, Vec<Expr>),
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

/// A function of one or two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Function {
    Min,
    Max,
    Sqrt,
    Ln,
}

/// Why an expression cannot be read or computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Byte position in the text, from 0.
    pub at: usize,
    /// What is wrong, in words.
    pub reason: String,
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {})", self.reason, self.at + 1)
    }
}

/// Reads an expression.
pub fn parse_expr(text: &str) -> Result<Expr, ExprError> {
    if text.len() > LENGTH_MAX {
        return Err(ExprError {
            at: LENGTH_MAX,
            reason: "the expression is too long".into(),
        });
    }
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    let expr = parser.level(0)?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(parser.error("unexpected text"));
    }
    Ok(expr)
}

impl Expr {
    /// The value, given the value of each name.
    pub fn evaluate(&self, lookup: &dyn Fn(&str) -> Option<f64>) -> Result<f64, String> {
        Ok(match self {
            Self::Number(value) => *value,
            Self::Name(name) => lookup(name).ok_or_else(|| format!("`{name}` has no value"))?,
            Self::Unary('!', inner) => truth(inner.evaluate(lookup)? == 0.0),
            Self::Unary(_, inner) => -inner.evaluate(lookup)?,
            Self::Binary(op, left, right) => {
                op.apply(left.evaluate(lookup)?, right.evaluate(lookup)?)
            }
            Self::Call(function, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(argument.evaluate(lookup)?);
                }
                function.apply(&values)
            }
        })
    }

    /// The value over case parameters, of which the numeric ones count.
    pub fn evaluate_params(&self, params: &BTreeMap<String, String>) -> Result<f64, String> {
        self.evaluate(&|name| params.get(name).and_then(|value| value.parse().ok()))
    }

    /// Every name that occurs.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Unary(_, inner) => inner.names(),
            Self::Binary(_, left, right) => {
                let mut names = left.names();
                names.extend(right.names());
                names
            }
            Self::Call(_, arguments) => arguments.iter().flat_map(Expr::names).collect(),
        }
    }
}

fn truth(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

impl Op {
    fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
            Self::Remainder => a % b,
            Self::Less => truth(a < b),
            Self::LessOrEqual => truth(a <= b),
            Self::Greater => truth(a > b),
            Self::GreaterOrEqual => truth(a >= b),
            Self::Equal => truth(a == b),
            Self::NotEqual => truth(a != b),
            Self::And => truth(a != 0.0 && b != 0.0),
            Self::Or => truth(a != 0.0 || b != 0.0),
        }
    }
}

impl Function {
    fn apply(self, values: &[f64]) -> f64 {
        let first = values.first().copied().unwrap_or(f64::NAN);
        match self {
            Self::Min => values.iter().copied().fold(first, f64::min),
            Self::Max => values.iter().copied().fold(first, f64::max),
            Self::Sqrt => first.sqrt(),
            Self::Ln => first.ln(),
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "min" => Self::Min,
            "max" => Self::Max,
            "sqrt" => Self::Sqrt,
            "ln" => Self::Ln,
            _ => return None,
        })
    }
}

/// Operators from the weakest binding to the strongest; longer spellings first.
const LEVELS: &[&[(&str, Op)]] = &[
    &[("||", Op::Or)],
    &[("&&", Op::And)],
    &[
        ("<=", Op::LessOrEqual),
        (">=", Op::GreaterOrEqual),
        ("==", Op::Equal),
        ("!=", Op::NotEqual),
        ("<", Op::Less),
        (">", Op::Greater),
    ],
    &[("+", Op::Add), ("-", Op::Subtract)],
    &[("*", Op::Multiply), ("/", Op::Divide), ("%", Op::Remainder)],
];

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn error(&self, reason: &str) -> ExprError {
        ExprError {
            at: self.at,
            reason: reason.into(),
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn level(&mut self, level: usize) -> Result<Expr, ExprError> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.level(level + 1)?;
        'more: loop {
            for (token, op) in *operators {
                if self.eat(token) {
                    let right = self.level(level + 1)?;
                    left = Expr::Binary(*op, Box::new(left), Box::new(right));
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn unary(&mut self) -> Result<Expr, ExprError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error("the expression nests too deep"));
        }
        let expr = if self.eat("-") {
            Expr::Unary('-', Box::new(self.unary()?))
        } else if self.eat("!") {
            Expr::Unary('!', Box::new(self.unary()?))
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn atom(&mut self) -> Result<Expr, ExprError> {
        if self.eat("(") {
            let inner = self.level(0)?;
            return if self.eat(")") {
                Ok(inner)
            } else {
                Err(self.error("a `)` is missing"))
            };
        }
        if self.eat("`") {
            let Some(length) = self.rest().find('`') else {
                return Err(self.error("a closing backquote is missing"));
            };
            let name = self.rest()[..length].to_owned();
            self.at += length + 1;
            return Ok(Expr::Name(name));
        }
        self.skip_space();
        match self.rest().chars().next() {
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.name_or_call(),
            Some(_) => Err(self.error("a number, a name or `(` is expected")),
            None => Err(self.error("the expression ends too early")),
        }
    }

    fn number(&mut self) -> Result<Expr, ExprError> {
        let rest = self.rest();
        let mut length = 0;
        let mut previous = ' ';
        for c in rest.chars() {
            let sign_of_exponent = (c == '+' || c == '-') && (previous == 'e' || previous == 'E');
            if !(c.is_ascii_digit() || c == '.' || c == 'e' || c == 'E' || sign_of_exponent) {
                break;
            }
            previous = c;
            length += c.len_utf8();
        }
        let number = rest[..length]
            .parse()
            .map_err(|_| self.error("not a number"))?;
        self.at += length;
        Ok(Expr::Number(number))
    }

    fn name_or_call(&mut self) -> Result<Expr, ExprError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
        let name = rest[..end.unwrap_or(rest.len())].to_owned();
        self.at += name.len();
        if !self.eat("(") {
            return Ok(Expr::Name(name));
        }
        let Some(function) = Function::by_name(&name) else {
            return Err(self.error(&format!(
                "`{name}` is no function; there are min, max, sqrt, ln"
            )));
        };
        let mut arguments = vec![self.level(0)?];
        while self.eat(",") {
            arguments.push(self.level(0)?);
        }
        if self.eat(")") {
            Ok(Expr::Call(function, arguments))
        } else {
            Err(self.error("a `)` is missing"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, want: f64) {
        let value = parse_expr(text).unwrap().evaluate(&|name| match name {
            "M" => Some(4.0),
            "Forward TFLOPS" => Some(500.0),
            "bwd" => Some(250.0),
            _ => None,
        });
        assert_eq!(value, Ok(want), "{text}");
    }

    #[test]
    fn arithmetic_binds_as_usual() {
        check("1 + 2*3", 7.0);
        check("-(1 - 3) / 4", 0.5);
        check("7 % 4 == 3 && !(2 > 3)", 1.0);
        check("2*M*M*M", 128.0);
        check("max(1, M, 3) - min(2, 1)", 3.0);
        check("1e3 + 2.5E-1", 1000.25);
    }

    #[test]
    fn a_name_with_spaces_stands_between_backquotes() {
        check("6/(2/`Forward TFLOPS`+4/bwd)", 300.0);
    }

    #[test]
    fn mistakes_say_where() {
        for (text, at) in [
            ("1 +", 3),
            ("(1", 2),
            ("1 1", 2),
            ("foo(1)", 4),
            ("`x", 1),
            ("", 0),
        ] {
            assert_eq!(parse_expr(text).unwrap_err().at, at, "{text}");
        }
        assert!(parse_expr(&"(".repeat(500)).is_err());
        assert!(parse_expr("x").unwrap().evaluate(&|_| None).is_err());
    }

    proptest! {
        #![proptest_config(crate::testing::fixed(256))]

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            if let Ok(expr) = parse_expr(&text) {
                let _ = expr.evaluate(&|_| Some(1.0));
            }
        }
    }
}
