//! Arithmetic over case parameters and result columns, as `karve.toml` writes it.
//!
//! `2*M*N*K`, `6/(2/fwd+4/bwd)`, `TILE_M % (WM*VEC) == 0`. Comparisons and logic give 1 or 0.
//! Names may contain letters, digits, `_` and `.`; a name with other characters is written
//! between backquotes, as in `` `Forward TFLOPS` ``. Python syntax is accepted too, since tuning
//! spaces often use it: `and`, `or`, `not`, `//`, `**`, `x in [1, 2]`, `1 <= x < 8`.

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
    /// A quoted word; it can only be compared.
    Text(String),
    /// A case parameter or a column.
    Name(String),
    /// `-x` or `!x`.
    Unary(char, Box<Expr>),
    /// `a op b`.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `min(a, b)`, `max(a, b)`, `sqrt(a)`, `ln(a)`.
    Call(MathFunction, Vec<Expr>),
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
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
pub enum MathFunction {
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
        return Err(ExprError { at: LENGTH_MAX, reason: "the expression is too long".into() });
    }
    let mut parser = ExprParser { text, at: 0, depth: 0 };
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
            Self::Text(text) => return Err(format!("'{text}' is not a number")),
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

    /// The value over case parameters; only numeric ones count.
    pub fn evaluate_params(&self, params: &BTreeMap<String, String>) -> Result<f64, String> {
        self.evaluate(&|name| params.get(name).and_then(|value| value.parse().ok()))
    }

    /// Every name that occurs.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(_) | Self::Text(_) => Vec::new(),
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

/// The result of a comparison.
pub(crate) fn truth(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

impl BinaryOp {
    /// The result for two numbers.
    pub(crate) fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
            Self::FloorDivide => (a / b).floor(),
            Self::Remainder => a % b,
            Self::Power => a.powf(b),
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

impl MathFunction {
    /// The result for a list of numbers.
    pub(crate) fn apply(self, values: &[f64]) -> f64 {
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
const LEVELS: &[&[(&str, BinaryOp)]] = &[
    &[("||", BinaryOp::Or), ("or", BinaryOp::Or)],
    &[("&&", BinaryOp::And), ("and", BinaryOp::And)],
    COMPARISONS,
    &[("+", BinaryOp::Add), ("-", BinaryOp::Subtract)],
    &[
        ("*", BinaryOp::Multiply),
        ("//", BinaryOp::FloorDivide),
        ("/", BinaryOp::Divide),
        ("%", BinaryOp::Remainder),
    ],
];

/// The level of comparisons, which may be chained.
const COMPARISONS: &[(&str, BinaryOp)] = &[
    ("<=", BinaryOp::LessOrEqual),
    (">=", BinaryOp::GreaterOrEqual),
    ("==", BinaryOp::Equal),
    ("!=", BinaryOp::NotEqual),
    ("<", BinaryOp::Less),
    (">", BinaryOp::Greater),
];
/// The position of the comparisons among the levels.
const COMPARING: usize = 2;
/// Values in one `in [...]` at most.
const LISTED_MAX: usize = 256;

struct ExprParser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl ExprParser<'_> {
    fn error(&self, reason: &str) -> ExprError {
        ExprError { at: self.at, reason: reason.into() }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().strip_prefix(token).is_some_and(|after| {
            let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            // `or` must not be the start of a name, and `*` not the start of `**`.
            let goes_on = match token {
                "*" => after.starts_with('*'),
                _ => token.ends_with(char::is_alphabetic) && after.starts_with(word),
            };
            !goes_on
        });
        if found {
            self.at += token.len();
        }
        found
    }

    fn level(&mut self, level: usize) -> Result<Expr, ExprError> {
        if level == COMPARING {
            return self.negation();
        }
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.level(level + 1)?;
        while let Some(op) = self.operator(operators) {
            let right = self.level(level + 1)?;
            left = Expr::Binary(op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn operator(&mut self, operators: &[(&str, BinaryOp)]) -> Option<BinaryOp> {
        let found = operators.iter().find(|(token, _)| self.eat(token));
        found.map(|(_, op)| *op)
    }

    /// `not x`, which binds weaker than a comparison.
    fn negation(&mut self) -> Result<Expr, ExprError> {
        if !self.eat("not") {
            return self.comparison();
        }
        self.deeper(|parser| Ok(Expr::Unary('!', Box::new(parser.negation()?))))
    }

    /// `a < b`, `a <= b < c`, `a in [1, 2]`, `a not in [1, 2]`.
    fn comparison(&mut self) -> Result<Expr, ExprError> {
        let mut left = self.level(COMPARING + 1)?;
        let mut whole: Option<Expr> = None;
        loop {
            let compared = if let Some(op) = self.operator(COMPARISONS) {
                let right = self.level(COMPARING + 1)?;
                let compared = Expr::Binary(op, Box::new(left), Box::new(right.clone()));
                left = right;
                compared
            } else if self.eat("in") {
                self.listed(&left)?
            } else if self.eat("not") {
                if !self.eat("in") {
                    return Err(self.error("expected `in`"));
                }
                Expr::Unary('!', Box::new(self.listed(&left)?))
            } else {
                return Ok(whole.unwrap_or(left));
            };
            whole = Some(match whole {
                None => compared,
                Some(earlier) => Expr::Binary(BinaryOp::And, Box::new(earlier), Box::new(compared)),
            });
        }
    }

    /// Whether a value is one of a list.
    fn listed(&mut self, value: &Expr) -> Result<Expr, ExprError> {
        let close = match (self.eat("["), self.eat("(")) {
            (true, _) => "]",
            (_, true) => ")",
            _ => return Err(self.error("expected a list like `[1, 2]`")),
        };
        let mut any = Expr::Number(0.0);
        for _ in 0..LISTED_MAX {
            if self.eat(close) {
                return Ok(any);
            }
            let one = self.level(COMPARING + 1)?;
            let equal = Expr::Binary(BinaryOp::Equal, Box::new(value.clone()), Box::new(one));
            any = Expr::Binary(BinaryOp::Or, Box::new(any), Box::new(equal));
            let _ = self.eat(",");
        }
        Err(self.error("the list is too long"))
    }

    fn deeper(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Expr, ExprError>,
    ) -> Result<Expr, ExprError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error("the expression is nested too deeply"));
        }
        let expr = read(self)?;
        self.depth -= 1;
        Ok(expr)
    }

    fn unary(&mut self) -> Result<Expr, ExprError> {
        self.deeper(|parser| {
            if parser.eat("-") {
                return Ok(Expr::Unary('-', Box::new(parser.unary()?)));
            }
            if parser.eat("!") {
                return Ok(Expr::Unary('!', Box::new(parser.unary()?)));
            }
            let base = parser.atom()?;
            if !parser.eat("**") {
                return Ok(base);
            }
            let exponent = parser.unary()?;
            Ok(Expr::Binary(BinaryOp::Power, Box::new(base), Box::new(exponent)))
        })
    }

    fn atom(&mut self) -> Result<Expr, ExprError> {
        if self.eat("(") {
            let inner = self.level(0)?;
            return if self.eat(")") { Ok(inner) } else { Err(self.error("a `)` is missing")) };
        }
        if self.eat("`") {
            let Some(length) = self.rest().find('`') else {
                return Err(self.error("a closing backquote is missing"));
            };
            let name = self.rest()[..length].to_owned();
            self.at += length + 1;
            return Ok(Expr::Name(name));
        }
        for quote in ["'", "\""] {
            if self.eat(quote) {
                let Some(length) = self.rest().find(quote) else {
                    return Err(self.error("a closing quote is missing"));
                };
                let text = self.rest()[..length].to_owned();
                self.at += length + 1;
                return Ok(Expr::Text(text));
            }
        }
        self.skip_space();
        match self.rest().chars().next() {
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.name_or_call(),
            Some(_) => Err(self.error("expected a number, a name or `(`")),
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
        let number = rest[..length].parse().map_err(|_| self.error("not a number"))?;
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
        let Some(function) = MathFunction::by_name(&name) else {
            return Err(
                self.error(&format!("`{name}` is not a function; use min, max, sqrt or ln"))
            );
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
            "orbit_is_no_or" => Some(1.0),
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
        check("2 ** 3 ** 2 - -2 ** 2", 516.0);
    }

    #[test]
    fn what_python_writes_is_read_too() {
        check("1 <= M < 8 and not M == 5", 1.0);
        check("8 > M > 4 or 7 // 2 == 3", 1.0);
        check("M in [1, 2, 4] and M not in (3, 5,)", 1.0);
        check("not M in [] and orbit_is_no_or == 0 or 1", 1.0);
        assert!(parse_expr("M in 4").is_err());
        assert!(parse_expr("'tiled' == 'tiled'").is_ok());
        assert!(parse_expr("'tiled").is_err());
    }

    #[test]
    fn a_name_with_spaces_stands_between_backquotes() {
        check("6/(2/`Forward TFLOPS`+4/bwd)", 300.0);
    }

    #[test]
    fn mistakes_say_where() {
        for (text, at) in [("1 +", 3), ("(1", 2), ("1 1", 2), ("foo(1)", 4), ("`x", 1), ("", 0)] {
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
