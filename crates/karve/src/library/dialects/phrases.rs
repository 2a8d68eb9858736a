//! Conditions on metrics as people write them, such as `L2 hit < 90%`.

use super::dialects;

/// Conditions found in a text, as triggers.
pub(super) fn triggers_in(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace('≤', "<=").replace('≥', ">=").replace('`', "");
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut taken: Vec<(usize, usize)> = Vec::new();
    let phrases = dialects().map_or(&[][..], |known| &known.phrases);
    for (phrase, counter) in phrases {
        for (at, _) in lower.match_indices(phrase.as_str()) {
            let end = at + phrase.len();
            let inside = taken.iter().any(|(from, to)| at < *to && end > *from);
            if inside || !starts_a_word(&lower, at) {
                continue;
            }
            taken.push((at, end));
            if let Some(condition) = condition_after(&lower[end..]) {
                found.push((at, format!("{counter} {condition}")));
            }
        }
    }
    found.sort();
    let mut triggers: Vec<String> = found.into_iter().map(|(_, trigger)| trigger).collect();
    triggers.dedup();
    triggers
}

fn starts_a_word(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// `< 90%` directly after a phrase, as `< 90`.
fn condition_after(rest: &str) -> Option<String> {
    let rest = rest.trim_start_matches([' ', '%', ':', '*']);
    let op = ["<=", ">=", "<", ">", "="].into_iter().find(|op| rest.starts_with(op))?;
    let number = rest[op.len()..].trim_start();
    let end = number.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let end = end.unwrap_or(number.len());
    let digits = number[..end].trim_end_matches('.');
    let follows = number[end..].chars().next();
    // 12,5 or 1e5 or 3k is not a clear number.
    if digits.parse::<f64>().is_err() || follows.is_some_and(|c| c == ',' || c.is_alphanumeric()) {
        return None;
    }
    let op = if op == "=" { "==" } else { op };
    Some(format!("{op} {digits}"))
}
