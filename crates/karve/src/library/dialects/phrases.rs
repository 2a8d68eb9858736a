//! Conditions on metrics as people write them, such as `L2 hit < 90%`.

/// Common names of counters; longer phrases first.
const PHRASES: &[(&str, &str)] = &[
    ("l2 hit rate", "l2_hit_pct"),
    ("l2 hit", "l2_hit_pct"),
    ("l1 hit", "l1_hit_pct"),
    ("tensor core utilization", "tensor_pct"),
    ("tensor core", "tensor_pct"),
    ("tc utilization", "tensor_pct"),
    ("tc util", "tensor_pct"),
    ("tc%", "tensor_pct"),
    ("mfma utilization", "tensor_pct"),
    ("mfma", "tensor_pct"),
    ("dram throughput", "dram_pct"),
    ("dram", "dram_pct"),
    ("hbm", "dram_pct"),
    ("achieved occupancy", "occupancy_pct"),
    ("occupancy", "occupancy_pct"),
    ("waves per sm", "waves"),
    ("waves/sm", "waves"),
    ("registers per thread", "registers"),
    ("regs/thread", "registers"),
    ("registers", "registers"),
    ("local spill", "spill_bytes"),
    ("spills", "spill_bytes"),
    ("spill", "spill_bytes"),
    ("bank conflicts", "bank_conflict_pct"),
    ("bank conflict", "bank_conflict_pct"),
    ("lds conflict", "bank_conflict_pct"),
    ("eligible warps", "eligible_warps"),
    ("sm throughput", "compute_pct"),
    ("compute throughput", "compute_pct"),
    ("memory throughput", "memory_pct"),
    ("arithmetic intensity", "intensity"),
    ("gpu idle", "gpu_idle_pct"),
    ("gpu utilization", "gpu_busy_pct"),
    ("gpu util", "gpu_busy_pct"),
    ("kernel duration", "duration_us"),
    ("ipc", "ipc"),
];

/// Conditions found in a text, as triggers.
pub fn triggers_in(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace('≤', "<=").replace('≥', ">=").replace('`', "");
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut taken: Vec<(usize, usize)> = Vec::new();
    for (phrase, counter) in PHRASES {
        for (at, _) in lower.match_indices(phrase) {
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
