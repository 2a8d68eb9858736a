//! Numbers in plain text that a benchmark prints: from its output, or from its print statements.
//!
//! ```text
//! matvec 256x256  12.5 us  3.1 GFLOP/s  ──▶  matvec {case} {time_us} us {}
//! matvec 512x512  52.0 us  2.9 GFLOP/s
//! ```
//!
//! karve reads benchmarks strictly, so the guess is made here, once, and written down as a pattern.

use karve_core::charter::Better;

/// Words for units after a number: as written, the name of the metric, and its unit.
const UNITS: [(&str, &str, &str); 24] = [
    ("ns", "time_ns", "ns"),
    ("nsec", "time_ns", "ns"),
    ("nanoseconds", "time_ns", "ns"),
    ("us", "time_us", "us"),
    ("µs", "time_us", "us"),
    ("μs", "time_us", "us"),
    ("usec", "time_us", "us"),
    ("microseconds", "time_us", "us"),
    ("ms", "time_ms", "ms"),
    ("msec", "time_ms", "ms"),
    ("milliseconds", "time_ms", "ms"),
    ("s", "time_s", "s"),
    ("sec", "time_s", "s"),
    ("secs", "time_s", "s"),
    ("seconds", "time_s", "s"),
    ("tflops", "tflops", "TFLOPS"),
    ("tflop/s", "tflops", "TFLOPS"),
    ("gflops", "gflops", "GFLOPS"),
    ("gflop/s", "gflops", "GFLOPS"),
    ("mflops", "mflops", "MFLOPS"),
    ("mflop/s", "mflops", "MFLOPS"),
    ("gb/s", "gb_per_s", "GB/s"),
    ("gib/s", "gib_per_s", "GiB/s"),
    ("mb/s", "mb_per_s", "MB/s"),
];

/// Units of a time for one of something, after the time: `12 ns/iter`.
const PER: [&str; 5] = ["/iter", "/call", "/op", "/run", "/element"];

/// Words before a number that says what was computed.
const CHECKSUMS: [&str; 5] = ["checksum", "result", "sum", "digest", "crc"];

/// What is measured, as far as the sources show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MetricGuess {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) better: Better,
}

impl MetricGuess {
    /// What the timing records of pytest report.
    pub(super) fn of_records() -> Self {
        Self { name: "forward.mean".to_owned(), unit: "ms".to_owned(), better: Better::Lower }
    }

    /// The time of one call, as the tools that always report one do.
    pub(super) fn latency() -> Self {
        Self { name: "latency".to_owned(), unit: "us".to_owned(), better: Better::Lower }
    }
}

impl Default for MetricGuess {
    fn default() -> Self {
        Self { name: "time_ms".to_owned(), unit: "ms".to_owned(), better: Better::Lower }
    }
}

/// How the lines of a benchmark are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrintedNumbers {
    /// The pattern of `[output]`.
    pub(super) pattern: String,
    /// The metric.
    pub(super) metric: MetricGuess,
    /// Whether the lines name a case.
    pub(super) names_case: bool,
}

/// One line with a number that has a unit.
#[derive(Clone, Debug)]
struct MeasuredLine<'a> {
    before: String,
    unit: &'static (&'static str, &'static str, &'static str),
    /// What stands between the number and the end of the unit's word.
    written: &'a str,
    after: &'a str,
}

/// Finds the lines with measurements in a text, and a pattern that matches all of one kind.
pub(super) fn find(text: &str) -> Option<PrintedNumbers> {
    let measured = |want_time: bool| -> Vec<MeasuredLine<'_>> {
        text.lines().filter_map(|line| measured_line(line, want_time)).collect()
    };
    let times = measured(true);
    let lines = if times.is_empty() { measured(false) } else { times };
    let first = lines.first()?;
    // Lines of another kind, such as a total, have another unit or another text around it.
    let same: Vec<&MeasuredLine<'_>> = lines
        .iter()
        .filter(|line| line.unit == first.unit && line.written == first.written)
        .collect();
    let befores: Vec<&str> = same.iter().map(|line| line.before.as_str()).collect();
    let before = common(&befores)?;
    let (_, name, unit) = first.unit;
    let afters: Vec<&str> = same.iter().map(|line| line.after).collect();
    let checksum = checksum_in(&afters);
    let after = checksum.unwrap_or_else(|| "{}".to_owned());
    let pattern = format!("{before}{{{name}}}{}{after}", first.written);
    let better = if name.starts_with("time_") { Better::Lower } else { Better::Higher };
    let metric = MetricGuess { name: (*name).to_owned(), unit: (*unit).to_owned(), better };
    Some(PrintedNumbers { names_case: pattern.contains("{case}"), pattern, metric })
}

/// The first number of a line that has a unit of the wanted kind.
fn measured_line(line: &str, want_time: bool) -> Option<MeasuredLine<'_>> {
    let mut from = 0;
    while let Some(start) = line[from..].find(|c: char| c.is_ascii_digit()).map(|at| at + from) {
        let number = line[start..].find(|c: char| !(c.is_ascii_digit() || ".eE+-,".contains(c)));
        let end = number.map_or(line.len(), |at| at + start);
        let end = start + line[start..end].trim_end_matches(['.', ',', '-', '+', 'e', 'E']).len();
        from = end;
        let before = &line[..start];
        // `256x256` and `v2` are names.
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &line[end..];
        let word = rest.trim_start();
        let length = word.find(|c: char| !(c.is_alphanumeric() || c == '/'));
        let word = &word[..length.unwrap_or(word.len())];
        let plain = PER.iter().find_map(|per| word.strip_suffix(per)).unwrap_or(word);
        let unit = UNITS.iter().find(|(text, _, _)| plain.eq_ignore_ascii_case(text));
        let is_wanted = |name: &str| name.starts_with("time_") == want_time;
        if let Some(unit) = unit.filter(|(_, name, _)| is_wanted(name)) {
            let written = &rest[..rest.len() - rest.trim_start().len() + word.len()];
            let before = single_spaced(before);
            return Some(MeasuredLine { before, unit, written, after: &rest[written.len()..] });
        }
    }
    None
}

/// White space as one space each, also at the end.
fn single_spaced(text: &str) -> String {
    let mut out = String::new();
    for c in text.trim_start().chars() {
        match c.is_whitespace() {
            true if out.ends_with(' ') => {}
            true => out.push(' '),
            false => out.push(c),
        }
    }
    out
}

/// What texts have in common, with `{case}` where they differ; none if two are the same.
fn common(texts: &[&str]) -> Option<String> {
    let [first, others @ ..] = texts else {
        return None;
    };
    if first.contains(['{', '}']) {
        return None;
    }
    if others.is_empty() {
        return Some((*first).to_owned());
    }
    let mut sorted = texts.to_vec();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let same = |one: &str, other: &str| {
        let pairs = one.char_indices().zip(other.chars());
        let equal = pairs.take_while(|((_, a), b)| a == b);
        equal.last().map_or(0, |((at, c), _)| at + c.len_utf8())
    };
    let head = others.iter().map(|other| same(first, other)).min().unwrap_or(0);
    let is_word = |c: char| c.is_alphanumeric() || "_.".contains(c);
    // A name is not cut in the middle of a word.
    let head = first[..head].trim_end_matches(is_word);
    let reversed = |text: &str| text[head.len()..].chars().rev().collect::<String>();
    let last = reversed(first);
    let tail = others.iter().map(|other| same(&last, &reversed(other))).min().unwrap_or(0);
    let tail: String = last[..tail].chars().rev().collect();
    let tail = tail.trim_start_matches(is_word);
    Some(format!("{head}{{case}}{tail}"))
}

/// A pattern for the text after the time, if every line has a checksum at the same place.
fn checksum_in(afters: &[&str]) -> Option<String> {
    let of = |after: &&str| {
        let lower = after.to_ascii_lowercase();
        let (at, word) = CHECKSUMS.iter().find_map(|word| Some((lower.find(word)?, *word)))?;
        let rest = &after[at + word.len()..];
        let start = rest.find(|c: char| c.is_ascii_digit() || c == '-')?;
        let between = &rest[..start];
        let is_plain = between.chars().all(|c| " :=".contains(c)) && !between.is_empty();
        is_plain.then(|| format!("{{}}{}{between}{{checksum}}{{}}", &after[at..at + word.len()]))
    };
    let first = of(afters.first()?)?;
    afters.iter().all(|after| of(after).as_ref() == Some(&first)).then_some(first)
}

/// Lines as the print statements of a source would print them, two for each with other values.
pub(super) fn lines_of_source(source: &str) -> String {
    let mut lines = String::new();
    for statement in source.split(['\n', ';']).filter(|line| prints(line)) {
        for text in texts_in(statement) {
            let [one, other] = [1, 2].map(|value| filled(&text, value));
            lines.push_str(&one);
            lines.push('\n');
            if other != one {
                lines.push_str(&other);
                lines.push('\n');
            }
        }
    }
    lines
}

fn prints(statement: &str) -> bool {
    ["printf(", "print(", "println!(", "eprintln!(", "std::print", "fmt::print"]
        .iter()
        .any(|call| statement.contains(call))
}

/// The texts between double or single quotes.
fn texts_in(statement: &str) -> Vec<String> {
    let start = statement.find('(').unwrap_or(0);
    let mut texts = Vec::new();
    let mut rest = &statement[start..];
    while let Some(at) = rest.find(['"', '\'']) {
        let quote = &rest[at..=at];
        let inner = &rest[at + 1..];
        let Some(end) = inner.find(quote) else {
            break;
        };
        texts.push(inner[..end].replace("\\n", "").replace("\\t", " "));
        rest = &inner[end + 1..];
    }
    texts
}

/// A format string with a value in each of its places.
fn filled(text: &str, value: u32) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut n_integers = 0;
    while let Some(at) = rest.find(['%', '{']) {
        out.push_str(&rest[..at]);
        let place = &rest[at..];
        let (spec, length) = match place.starts_with('{') {
            true => match place.find('}') {
                Some(end) => (&place[1..end], end + 1),
                None => break,
            },
            false => {
                let end = place[1..].find(|c: char| "diuxfgesc%".contains(c));
                match end {
                    Some(end) => (&place[1..end + 2], end + 2),
                    None => break,
                }
            }
        };
        let is_float =
            spec.ends_with(['f', 'g', 'e']) || spec.contains(":.") || spec.contains(">.");
        match (spec == "%", is_float) {
            (true, _) => out.push('%'),
            (false, true) => out.push_str("1.5"),
            (false, false) => {
                // Integers and names tell the lines apart; the first ones name the case.
                n_integers += 1;
                out.push_str(&format!("{}", value * 7 + n_integers));
            }
        }
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        let found = find(text).map(|found| format!("{} | {}", found.pattern, found.metric.name));
        assert_eq!(found.as_deref().unwrap_or("none"), want, "{text}");
    }

    #[test]
    fn the_pattern_of_lines_has_the_case_where_they_differ() {
        check(
            "best of 20\nmatvec  256x256    12.5 us   3.10 GFLOP/s\n\
             matvec  512x512    52.0 us   2.93 GFLOP/s\n",
            "matvec {case} {time_us} us{} | time_us",
        );
        check(
            "distance/200: 15.1 us per call (result 138)\n\
             distance/600: 99.0 us per call (result 9)\n",
            "distance/{case}: {time_us} us{}result {checksum}{} | time_us",
        );
        check("32x32: 1.250 ms\n96x96: 12.0 ms\n", "{case}: {time_ms} ms{} | time_ms");
        check(
            "n = 1024: 0.1 ms, 9 GB/s\nn = 2024: 0.2 ms, 8 GB/s",
            "n = {case}: {time_ms} ms{} | time_ms",
        );
    }

    #[test]
    fn one_line_has_no_case_and_a_rate_is_taken_if_there_is_no_time() {
        check(
            "Average execution time: 0.0123 ms",
            "Average execution time: {time_ms} ms{} | time_ms",
        );
        check("got 812.5 GFLOPS on 4 cores", "got {gflops} GFLOPS{} | gflops");
        check("3 passed in 0.1\n", "none");
        check("took 12ns/iter", "took {time_ns}ns/iter{} | time_ns");
    }

    #[test]
    fn lines_that_cannot_be_told_apart_are_not_guessed() {
        check("run: 1.0 ms\nrun: 2.0 ms\n", "none");
        check("", "none");
    }

    #[test]
    fn print_statements_show_what_will_be_printed() {
        let check = |source: &str, want: &str| check(&lines_of_source(source), want);
        check(
            "printf(\"n = %5d: %8.4f ms, %7.1f GB/s\\n\", n, ms, rate);",
            "n = {case}: {time_ms} ms{} | time_ms",
        );
        check(
            "    print(f\"Average execution time: {avg_time:.4f} ms\")",
            "Average execution time: {time_ms} ms{} | time_ms",
        );
        check(
            "println!(\"distance/{n}: {:.1} us per call\", best * 1e6);",
            "distance/{case}: {time_us} us{} | time_us",
        );
    }
}
