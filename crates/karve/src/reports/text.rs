//! Text that cannot break a table, a fence, a terminal or a YAML file, and figures in one format.
//!
//! Hypotheses, lessons and logs are written by agents and by the programs they change. Everything
//! here is bounded, free of control characters, and escaped for the place where it is put.

use karve_core::campaign::{Campaign, HostTally};
use karve_core::comparison::Estimate;
use karve_core::score::percent_change;
use karve_core::spending::CostPerPercent;
use karve_os::clock;

/// The most characters of a title.
pub(super) const TITLE_MAX: usize = 100;
/// The most characters of one table cell.
pub(super) const CELL_MAX: usize = 200;
/// The most characters of an untrusted paragraph.
pub(super) const PARAGRAPH_MAX: usize = 1_200;
/// How many characters of a log are shown; its end is kept.
pub(super) const EXCERPT_MAX: usize = 4_000;
/// The most entries of a list of files or names; the rest is counted.
const LIST_MAX: usize = 20;
/// How many characters of a commit are shown.
const COMMIT_CHARS: usize = 12;
/// Significant digits of a reading.
const DIGITS: i32 = 5;
/// Shown if there is no value.
pub(super) const NO_VALUE: &str = "-";

/// Characters that are invisible or change the text direction.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{00ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// The text without terminal escape sequences.
fn without_escapes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            // The parameters end with a letter, or with anything that is not a parameter.
            while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
            let _final_byte = chars.next_if(|c| matches!(c, '@'..='~'));
        } else {
            kept.push(c);
        }
    }
    kept
}

/// Whether a text is already one line; nearly all are, and a long campaign has thousands.
fn is_one_line(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !text.contains("  ")
        && !text.starts_with(' ')
        && !text.ends_with(' ')
}

/// One line, bounded.
pub(super) fn line(text: &str, max: usize) -> String {
    bounded(&one_line(text), max)
}

/// The text as one line: control characters and runs of blanks become one blank.
pub(super) fn one_line(text: &str) -> String {
    if is_one_line(text) {
        return text.to_owned();
    }
    let seen: String = without_escapes(text)
        .chars()
        .filter(|c| !is_unseen(*c))
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `max` characters, with an ellipsis if something was cut off.
pub(super) fn bounded(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// With a capital first letter.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    first + chars.as_str()
}

/// Escapes one line for Markdown, inside a table or outside.
pub(super) fn escaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for (index, c) in line.chars().enumerate() {
        let inline = matches!(c, '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~');
        let block = index == 0 && matches!(c, '#' | '+' | '-' | '=' | '_');
        if inline || block {
            text.push('\\');
        }
        text.push(c);
    }
    // "1. x" at the start of a line would be a list.
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = text[digits..].chars().take(2).collect::<String>();
    if digits > 0 && matches!(mark.as_str(), "." | ")" | ". " | ") ") {
        text.insert(digits, '\\');
    }
    text
}

/// The longest run of backticks in a text.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// One line as a code span that is also safe inside a table.
pub(super) fn code(line: &str) -> String {
    let line = line.replace('|', "\\|");
    match longest_run(&line) {
        0 if line.trim().is_empty() => NO_VALUE.to_owned(),
        0 => format!("`{line}`"),
        run => {
            let ticks = "`".repeat(run + 1);
            format!("{ticks} {line} {ticks}")
        }
    }
}

/// A log without control characters, line by line.
pub(super) fn printable(log: &str) -> String {
    without_escapes(log)
        .replace("\r\n", "\n")
        .chars()
        .filter(|c| !is_unseen(*c))
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}

/// A printable log in a fence that is longer than any inside; its end is kept.
pub(super) fn fenced(log: &str) -> String {
    let log = log.trim_matches('\n');
    let skipped = log.chars().count().saturating_sub(EXCERPT_MAX);
    let tail: String = log.chars().skip(skipped).collect();
    let cut = if skipped > 0 { "…\n" } else { "" };
    let fence = "`".repeat(longest_run(&tail).max(2) + 1);
    format!("{fence}text\n{cut}{tail}\n{fence}")
}

/// A double-quoted YAML string, which is also a JSON string.
pub(super) fn yaml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || is_unseen(c) || matches!(c, '\u{2028}' | '\u{2029}') => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    quoted.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Names joined by commas; a long list is cut and counted.
pub(super) fn list(names: &[String]) -> String {
    let shown = names.iter().take(LIST_MAX).cloned().collect::<Vec<_>>();
    let rest = names.len().saturating_sub(LIST_MAX);
    match (names.is_empty(), rest) {
        (true, _) => "none".to_owned(),
        (false, 0) => shown.join(", "),
        (false, rest) => format!("{} and {rest} more", shown.join(", ")),
    }
}

/// A file name with only characters that every file system accepts.
pub(super) fn file_name(text: &str) -> String {
    let name: String = bounded(text, TITLE_MAX)
        .chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() => c,
            '.' | '_' | '-' => c,
            _ => '_',
        })
        .collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "kernel".to_owned() } else { name.to_owned() }
}

/// The first characters of a commit.
pub(super) fn short(commit: &str) -> String {
    commit.chars().take(COMMIT_CHARS).collect()
}

/// `YYYY-MM-DD HH:MM`, UTC.
pub(super) fn stamp(at_ms: i64) -> String {
    clock::utc_second(at_ms.div_euclid(1_000))[..16].to_owned()
}

/// How long something took.
pub(super) fn duration(ms: u64) -> String {
    let s = ms / 1_000;
    match (s / 3_600, s / 60 % 60, s % 60) {
        (0, 0, _) => format!("{}.{} s", s, ms % 1_000 / 100),
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
    }
}

/// How long a campaign has worked, how long it also waited, and how busy the host was.
pub(super) fn time_of_work(campaign: &Campaign) -> String {
    time_with_waits(campaign.spent_ms(), campaign.host())
}

/// The same for anything that took this long.
pub(super) fn time_with_waits(spent_ms: u64, host: HostTally) -> String {
    let mut text = duration(spent_ms);
    if host.waited_ms > 0 {
        let waited = duration(host.waited_ms);
        text.push_str(&format!(", plus {waited} waiting for the device"));
    }
    if let (busy @ 1.., all) = (host.busy_blocks, host.blocks) {
        text.push_str(&format!("; {busy} of {all} blocks on a busy host, which widens intervals"));
    }
    text
}

/// A value with this many decimals, or the placeholder for none.
pub(super) fn decimals(value: Option<f64>, decimals: usize) -> String {
    match value {
        Some(value) if value.is_finite() => format!("{value:.decimals$}"),
        Some(_) | None => NO_VALUE.to_owned(),
    }
}

/// A signed percentage with three decimals, from a ratio: 1.1 is `+10.000%`.
pub(super) fn percent(ratio: Option<f64>) -> String {
    let percent = ratio.map(|ratio| percent_change(1.0, ratio));
    match percent {
        Some(percent) if percent.is_finite() => {
            let text = format!("{percent:+.3}%");
            if text == "-0.000%" { "+0.000%".to_owned() } else { text }
        }
        Some(_) | None => NO_VALUE.to_owned(),
    }
}

/// The same up to twice as fast, and a speedup above: percentages of large gains mislead.
pub(super) fn gain(value: Option<f64>) -> String {
    match value {
        Some(value) if value > 2.0 => ratio(Some(value)),
        _ => percent(value),
    }
}

/// A limit as a percentage, from a ratio: 1.02 is `2%`.
pub(super) fn limit(ratio: f64) -> String {
    format!("{}%", typed(percent_change(1.0, ratio)))
}

/// A speedup: `1.104x`.
pub(super) fn ratio(ratio: Option<f64>) -> String {
    match ratio {
        Some(ratio) if ratio.is_finite() => format!("{ratio:.3}x"),
        Some(_) | None => NO_VALUE.to_owned(),
    }
}

/// The interval of an estimate: `1.098x to 1.110x`.
pub(super) fn interval(estimate: &Estimate) -> String {
    match (estimate.low, estimate.high) {
        (None, None) => NO_VALUE.to_owned(),
        (low, high) => format!("{} to {}", ratio(low), ratio(high)),
    }
}

/// `1.104x (1.098x to 1.110x)`.
pub(super) fn estimated(estimate: &Estimate) -> String {
    let shown = ratio(Some(estimate.ratio));
    match (estimate.low, estimate.high) {
        (None, None) => format!("{shown} (no interval)"),
        _ => format!("{shown} ({})", interval(estimate)),
    }
}

/// A share as a percentage: `12.3%`.
pub(super) fn share(share: Option<f64>) -> String {
    match share {
        Some(share) if share.is_finite() => format!("{:.1}%", share * 100.0),
        Some(_) | None => NO_VALUE.to_owned(),
    }
}

/// A reading with five significant digits.
pub(super) fn number(value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else {
        return NO_VALUE.to_owned();
    };
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if !(-6.0..9.0).contains(&magnitude) {
        return format!("{value:.4e}");
    }
    let decimals = (DIGITS - 1 - magnitude as i32).max(0);
    format!("{value:.*}", decimals as usize)
}

/// A plain number without trailing zeros, for values that a person typed.
pub(super) fn typed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The cost of a percent of gain as text.
pub fn price_of(price: &CostPerPercent) -> String {
    // Money has enough digits to differ from zero.
    let usd = price.usd.map(|usd| match usd {
        usd if usd >= 0.01 => format!("{usd:.2} USD"),
        usd => format!("{usd:.6} USD"),
    });
    let tokens = price.tokens.map(|tokens| format!("{tokens:.0} tokens"));
    let parts: Vec<String> = usd.into_iter().chain(tokens).collect();
    parts.join(" and ")
}

/// Lines of at most `width` characters, each after `indent`; words longer than that are cut.
pub(super) fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let room = width.saturating_sub(indent.chars().count()).max(1);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let chars: Vec<char> = word.chars().collect();
        for piece in chars.chunks(room) {
            let used = line.chars().count();
            if used > 0 && used + 1 + piece.len() > room {
                lines.push(std::mem::take(&mut line));
            } else if used > 0 {
                line.push(' ');
            }
            line.extend(piece);
        }
    }
    lines.push(line);
    let indented: Vec<String> = lines.iter().map(|line| format!("{indent}{line}")).collect();
    indented.join("\n")
}
