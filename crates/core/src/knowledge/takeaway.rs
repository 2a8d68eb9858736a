//! What a round teaches in reusable words: the condition, the effect, and what shows it.
//!
//! An agent that was asked says it better; without one the words are made of the figures.

use super::learning::Learning;
use super::{EvidenceEffect, effect_of};

/// Counters that are quoted.
const COUNTERS_MAX: usize = 3;

/// The lesson of a round for a later campaign, which need not know the round.
pub fn takeaway(learning: &Learning) -> String {
    let words = &learning.words;
    if !words.mechanism.is_empty() {
        return match words.pitfall.as_str() {
            "" => words.mechanism.clone(),
            pitfall => format!("{}; look out for: {pitfall}", words.mechanism),
        };
    }
    let evidence = &learning.evidence;
    let percent = (evidence.ratio - 1.0) * 100.0;
    let place = match learning.bottleneck.trim() {
        "" => "on kernels of this kind".to_owned(),
        limit => format!("where {limit} limits the kernel"),
    };
    let title = learning.title.trim().trim_end_matches('.');
    let effect = match effect_of(evidence) {
        _ if evidence.failed => format!("{title} does not work {place}"),
        EvidenceEffect::Supports => format!("{title} pays {place} ({percent:+.1}%)"),
        EvidenceEffect::Refutes => {
            format!("do not expect {title} to pay {place} ({percent:+.1}%)")
        }
        EvidenceEffect::Open => format!("{title} made no difference {place}"),
    };
    let beside = match learning.beside.as_slice() {
        [] => String::new(),
        beside => format!(", on top of {}", beside.join(", ")),
    };
    match shown_by(learning) {
        Some(counters) => format!("{effect}{beside}; it shows in {counters}"),
        None => format!("{effect}{beside}"),
    }
}

/// Why a round ended as it did, beyond its figure: the agent's words, or the counters that moved.
pub fn root_cause(learning: &Learning) -> Option<String> {
    match learning.words.mechanism.as_str() {
        "" => shown_by(learning).map(|counters| format!("the counters that moved: {counters}")),
        mechanism => Some(mechanism.to_owned()),
    }
}

/// The family of trtllm's casebook that an idea belongs to, by its words.
pub fn casebook_family(words: &str) -> &'static str {
    const COMMUNICATION: [&str; 6] =
        ["communicat", "nccl", "allreduce", "all-reduce", "collective", "interconnect"];
    const RUNTIME: [&str; 9] =
        ["graph", "launch", "schedul", "stream", "host", "batching", "allocat", "runtime", "sync"];
    let words = words.to_lowercase();
    let names = |list: &[&str]| list.iter().any(|word| words.contains(word));
    match (names(&COMMUNICATION), names(&RUNTIME)) {
        (true, _) => "communication",
        (false, true) => "runtime-execution",
        (false, false) => "kernel-and-fusion",
    }
}

fn shown_by(learning: &Learning) -> Option<String> {
    let counters: Vec<&str> =
        learning.moved.iter().take(COUNTERS_MAX).map(String::as_str).collect();
    (!counters.is_empty()).then(|| counters.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::{Evidence, LessonNotes};

    fn learning(ratio: f64) -> Learning {
        Learning {
            title: "Use 256x256 tiles.".into(),
            bottleneck: "occupancy".into(),
            evidence: Evidence {
                ratio,
                low: Some(ratio * 0.99),
                high: Some(ratio * 1.01),
                not_faster: ratio < 1.0,
                ..Evidence::default()
            },
            ..Learning::default()
        }
    }

    #[test]
    fn a_lesson_names_its_condition_its_effect_and_what_shows_it() {
        let mut lost = learning(0.8);
        lost.moved = vec!["occupancy_pct 50 to 12".into()];
        let want = "do not expect Use 256x256 tiles to pay where occupancy limits the kernel \
                    (-20.0%); it shows in occupancy_pct 50 to 12";
        assert_eq!(takeaway(&lost), want);
        assert_eq!(
            root_cause(&lost).as_deref(),
            Some("the counters that moved: occupancy_pct 50 to 12")
        );
        let mut won = learning(1.2);
        won.beside = vec!["vectorized-loads".into()];
        assert!(takeaway(&won).contains("pays where occupancy limits the kernel (+20.0%), on top"));
        assert_eq!(root_cause(&won), None);
    }

    #[test]
    fn ideas_belong_to_the_families_of_the_casebook() {
        assert_eq!(casebook_family("overlap NCCL with the product"), "communication");
        assert_eq!(casebook_family("cuda-graph for small launches"), "runtime-execution");
        assert_eq!(casebook_family("fuse the epilogue"), "kernel-and-fusion");
    }

    #[test]
    fn the_words_of_an_agent_come_first() {
        let mut said = learning(0.8);
        said.words = LessonNotes {
            mechanism: "the larger tile spills".into(),
            pitfall: "the compiler does not warn".into(),
            ..LessonNotes::default()
        };
        let want = "the larger tile spills; look out for: the compiler does not warn";
        assert_eq!(takeaway(&said), want);
        assert_eq!(root_cause(&said).as_deref(), Some("the larger tile spills"));
    }
}
