//! Numbers in lines of plain text, found by a pattern such as `dot {case}: {time_us} us {}`.
//!
//! `{case}` names the case, any other name is a number, `{}` is any text, and white space is any
//! amount of it. A line that does not match as a whole is other output.

use super::fields::OutputRows;
use super::{CaseCheck, OutputParseError, OutputRow, ParseSpec, names};

/// The part of a pattern that names the case.
const CASE: &str = "case";

/// One part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPart {
    /// Exactly this text; never empty.
    Text(String),
    /// White space, or nothing at the ends of a line.
    Space,
    /// Any text.
    Anything,
    /// The name of the case.
    Case,
    /// A number with this name.
    Number(String),
}

/// A line as a benchmark prints it, with names where the numbers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePattern(Vec<PatternPart>);

/// What a pattern found in a line.
#[derive(Clone, Debug, Default, PartialEq)]
struct MatchedLine {
    case: Option<String>,
    numbers: Vec<(String, f64)>,
}

impl LinePattern {
    /// Reads a pattern, or says what is wrong with it.
    ///
    /// # Errors
    ///
    /// A brace is not closed, a name is used twice, or it lacks a number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text.trim();
        while let Some(first) = rest.chars().next() {
            if first.is_whitespace() {
                rest = rest.trim_start();
                parts.push(PatternPart::Space);
            } else if let Some(after) = rest.strip_prefix('{') {
                let (name, after) = after.split_once('}').ok_or("a \"{\" is not closed")?;
                rest = after;
                parts.push(match name.trim() {
                    "" => PatternPart::Anything,
                    CASE => PatternPart::Case,
                    name => PatternPart::Number(name.to_owned()),
                });
            } else {
                let end = rest.find(|c: char| c == '{' || c.is_whitespace());
                let (literal, after) = rest.split_at(end.unwrap_or(rest.len()));
                parts.push(PatternPart::Text(literal.to_owned()));
                rest = after;
            }
        }
        let names = |part: &PatternPart| match part {
            PatternPart::Case => Some(CASE.to_owned()),
            PatternPart::Number(name) => Some(name.clone()),
            PatternPart::Text(_) | PatternPart::Space | PatternPart::Anything => None,
        };
        let mut seen: Vec<String> = Vec::new();
        for name in parts.iter().filter_map(names) {
            if seen.contains(&name) {
                return Err(format!("\"{{{name}}}\" is there twice"));
            }
            seen.push(name);
        }
        match parts.iter().any(|part| matches!(part, PatternPart::Number(_))) {
            true => Ok(Self(parts)),
            false => Err("it has no number, such as {time_ms}".to_owned()),
        }
    }

    fn matched(&self, line: &str) -> Option<MatchedLine> {
        let mut found = MatchedLine::default();
        let matched = match_rest(&self.0, line.trim(), &mut found);
        (matched == PatternMatch::Whole).then_some(found)
    }
}

/// How far the parts of a pattern match a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternMatch {
    Whole,
    /// Not from here on, but perhaps further right.
    NotHere,
    /// Nowhere in this text, so an earlier part need not take more of it.
    Nowhere,
}

/// Matches the parts with the whole text; each takes the shortest text that fits.
fn match_rest(parts: &[PatternPart], text: &str, found: &mut MatchedLine) -> PatternMatch {
    let Some((part, parts)) = parts.split_first() else {
        let is_end = text.trim().is_empty();
        return if is_end { PatternMatch::Whole } else { PatternMatch::NotHere };
    };
    match part {
        PatternPart::Text(literal) => match text.strip_prefix(literal.as_str()) {
            Some(rest) => match_rest(parts, rest, found),
            None => PatternMatch::NotHere,
        },
        PatternPart::Space => {
            let rest = text.trim_start();
            let is_there = rest.len() < text.len() || rest.is_empty();
            // Text of any kind may be empty, and then the space before it may be missing.
            let is_optional = matches!(parts.first(), Some(PatternPart::Anything) | None);
            match is_there || is_optional {
                true => match_rest(parts, rest, found),
                false => PatternMatch::NotHere,
            }
        }
        PatternPart::Anything if parts.is_empty() => PatternMatch::Whole,
        PatternPart::Anything => match_after(text, 0, parts, found).0,
        PatternPart::Case => {
            let (matched, end) = match_after(text, 1, parts, found);
            found.case = (matched == PatternMatch::Whole).then(|| text[..end].trim().to_owned());
            matched
        }
        PatternPart::Number(name) => {
            let end = text.find(|c: char| !is_of_number(c)).unwrap_or(text.len());
            // A full stop or a comma that follows a number belongs to the text after it.
            for end in (1..=end).rev() {
                let Some(number) = number_of(&text[..end]) else {
                    continue;
                };
                match match_rest(parts, &text[end..], found) {
                    PatternMatch::NotHere => {}
                    PatternMatch::Nowhere => return PatternMatch::Nowhere,
                    PatternMatch::Whole => {
                        found.numbers.push((name.clone(), number));
                        return PatternMatch::Whole;
                    }
                }
            }
            PatternMatch::NotHere
        }
    }
}

/// Skips at least so many characters, then as few as possible, until the parts match.
fn match_after(
    text: &str,
    skipped: usize,
    parts: &[PatternPart],
    found: &mut MatchedLine,
) -> (PatternMatch, usize) {
    for end in ends(text).skip(skipped) {
        let matched = match_rest(parts, &text[end..], found);
        if matched != PatternMatch::NotHere {
            return (matched, end);
        }
    }
    (PatternMatch::Nowhere, 0)
}

/// Where a part of a text can end, the shortest first.
fn ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.char_indices().map(|(at, _)| at).chain([text.len()])
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || "+-.,eE".contains(c)
}

/// A number, which may have commas between groups of three digits.
fn number_of(text: &str) -> Option<f64> {
    let has_digit_ends = text.ends_with(|c: char| c.is_ascii_digit());
    let groups_are_whole = text
        .split(',')
        .skip(1)
        .all(|group| group.split('.').next().is_some_and(|digits| digits.len() == 3));
    let number = text.replace(',', "").parse::<f64>().ok()?;
    (has_digit_ends && groups_are_whole && number.is_finite()).then_some(number)
}

/// Reads one row for each line that matches the pattern.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let pattern = spec.pattern.ok_or_else(|| "output.pattern is missing".to_owned());
    let pattern = pattern
        .and_then(|pattern| LinePattern::parse(pattern).map_err(|why| format!("pattern: {why}")))
        .map_err(|reason| OutputParseError::at(text, 1, reason))?;
    let mut rows = OutputRows::default();
    for (index, line) in text.lines().enumerate() {
        if let Some(found) = pattern.matched(line) {
            rows.add(text, index + 1, row_of(found, index + 1))?;
        }
    }
    Ok(rows.finish())
}

fn row_of(found: MatchedLine, line: usize) -> Result<OutputRow, String> {
    let mut row = OutputRow::new(found.case, CaseCheck::NotStated, line);
    for (name, number) in found.numbers {
        if names::is_never_negative(&name) && number <= 0.0 {
            return Err(format!("{name} is {number}, and must be above 0"));
        }
        row.values.insert(name, number);
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, ParseSpec};
    use super::*;

    fn check(pattern: &str, text: &str, want: &str) {
        let spec = ParseSpec { pattern: Some(pattern), ..spec(OutputFormat::Text) };
        let got = render(&super::super::parse(text, &spec));
        assert_eq!(got, want, "{pattern}");
    }

    #[test]
    fn names_and_numbers_are_found_in_lines_of_text() {
        check(
            "matvec {case} {time_us} us {}",
            "best of 20\nmatvec  256x256      12.500 us   3.1 GFLOP/s\nmatvec 512x512 1,050 us\n",
            "2 256x256 NotStated [] time_us=12.5\n3 512x512 NotStated [] time_us=1050",
        );
        check(
            "distance/{case}: {time_us} us per call (result {checksum})",
            "distance/200: 15.1 us per call (result 138)\n",
            "1 200 NotStated [] checksum=138; time_us=15.1",
        );
        check("took {time_ms}ms{}", "took 1.5e-3ms.", "1 - NotStated [] time_ms=0.0015");
        check("{case} {} {gflops}", "a b c 7", "1 a NotStated [] gflops=7");
    }

    #[test]
    fn what_does_not_match_is_other_output_and_nothing_at_all_is_refused() {
        let none = "line 1: the output has no rows; looked for lines that match output.pattern";
        check("dot took {time_ms} ms", "dot took -- ms", none);
        check(
            "dot took {time_ms} ms",
            "dot took 1 ms, or so\ndot took 2 ms",
            "2 - NotStated [] time_ms=2",
        );
    }

    #[test]
    fn a_case_that_is_there_twice_or_takes_no_time_is_refused() {
        let twice = "line 2: the case \"a\" is already on line 1; each case may appear once";
        check("{case} {time_ms} ms", "a 1 ms\na 2 ms", twice);
        check("{case} {time_ms} ms", "a 0 ms", "line 1: time_ms is 0, and must be above 0");
    }

    #[test]
    fn a_wrong_pattern_is_explained() {
        for (pattern, want) in [
            ("{time_ms", "a \"{\" is not closed"),
            ("{case} ms", "it has no number, such as {time_ms}"),
            ("{a} {a}", "\"{a}\" is there twice"),
        ] {
            assert_eq!(LinePattern::parse(pattern).unwrap_err(), want);
        }
    }
}
