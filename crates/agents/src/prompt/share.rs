//! How much of each part a brief shows, so that it stays within its token budget. The oldest and
//! least useful parts are left out first, and the brief says what is missing.

use karve_core::campaign::strategy::Brief;
use karve_core::charter::TOKEN_BYTES;
use karve_os::error::Result;

/// Tokens reserved for what an adapter adds: where the answer goes.
const ADDED_TOKENS: usize = 40;

/// The head of the last section of a brief, which is never cut.
const ANSWER: &str = "## Answer\n";

/// A part of a brief that can be shown in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BriefPart {
    /// Earlier rounds, the newest first.
    Tried,
    /// Entries of the library, the most promising first.
    Entries,
    /// Refuted entries.
    Refuted,
    /// Lessons from earlier campaigns.
    Tips,
    /// Findings of the last audit.
    Audited,
    /// The user's answers.
    Answers,
    /// Errors in the last answer.
    Errors,
    /// Cases that are named.
    Cases,
    /// Characters of the profile.
    Profile,
}

/// All parts, and what is left out of each, in words.
const PARTS: [(BriefPart, &str); 9] = [
    (BriefPart::Tried, "older rounds"),
    (BriefPart::Entries, "library entries"),
    (BriefPart::Refuted, "refuted entries"),
    (BriefPart::Tips, "lessons from earlier campaigns"),
    (BriefPart::Audited, "audit findings"),
    (BriefPart::Answers, "older answers"),
    (BriefPart::Errors, "errors in the last answer"),
    (BriefPart::Cases, "cases"),
    (BriefPart::Profile, "characters of the profile"),
];

/// What is cut, in this order, and down to which minimum: the least useful first.
const CUTS: [(BriefPart, usize); 16] = [
    (BriefPart::Tried, 12),
    (BriefPart::Tips, 3),
    (BriefPart::Refuted, 6),
    (BriefPart::Entries, 4),
    (BriefPart::Cases, 64),
    (BriefPart::Tried, 6),
    (BriefPart::Tips, 0),
    (BriefPart::Profile, 1_500),
    (BriefPart::Entries, 2),
    (BriefPart::Refuted, 0),
    (BriefPart::Audited, 4),
    (BriefPart::Tried, 3),
    (BriefPart::Profile, 600),
    (BriefPart::Cases, 8),
    (BriefPart::Answers, 2),
    (BriefPart::Errors, 5),
];

/// At most how much of each part is shown.
#[derive(Clone, Debug)]
pub(super) struct BriefShares([usize; PARTS.len()]);

impl BriefShares {
    /// At most how much of a part is shown.
    pub(super) fn of(&self, part: BriefPart) -> usize {
        self.0[part as usize]
    }

    /// As many items of a part as are shown.
    pub(super) fn first<T>(&self, part: BriefPart, items: impl Iterator<Item = T>) -> Vec<T> {
        items.take(self.of(part)).collect()
    }

    /// What is left out, in words.
    pub(super) fn left_out(&self, brief: &Brief) -> Vec<String> {
        let missing = PARTS.iter().filter_map(|(part, what)| {
            let missing = size(brief, *part).saturating_sub(self.of(*part));
            (missing > 0).then(|| format!("{missing} {what}"))
        });
        let for_others = match brief.recall.not_for_role {
            0 => None,
            n => Some(format!("{n} entries for other roles")),
        };
        missing.chain(for_others).collect()
    }
}

/// How much of a part there is.
fn size(brief: &Brief, part: BriefPart) -> usize {
    match part {
        BriefPart::Tried => brief.tried.len(),
        BriefPart::Entries => brief.recall.entries.len(),
        BriefPart::Refuted => brief.recall.refuted.len(),
        BriefPart::Tips => brief.tips.len(),
        BriefPart::Audited => brief.audited.len(),
        BriefPart::Answers => brief.answers.len(),
        BriefPart::Errors => brief.errors.len(),
        BriefPart::Cases => brief.cases.len(),
        BriefPart::Profile => brief.profile.chars().count(),
    }
}

/// The number of tokens in a text, by karve's own estimate.
fn tokens(text: &str) -> usize {
    text.len().div_ceil(TOKEN_BYTES)
}

/// A brief within its token budget: as much of each part as fits, then how to answer, which is
/// never cut.
pub(super) fn fit(
    brief: &Brief,
    render: impl Fn(&BriefShares) -> Result<String>,
) -> Result<String> {
    let most = (brief.tokens_max as usize).saturating_sub(ADDED_TOKENS);
    // The share of the profile also limits what a reviewer sees of the change.
    let mut shown = BriefShares([usize::MAX / 4; PARTS.len()]);
    let mut text = render(&shown)?;
    // No data follows this head, so that it is the last one.
    let answer = text.split_off(text.rfind(ANSWER).unwrap_or(text.len()));
    for (part, rest) in CUTS {
        if tokens(&text) + tokens(&answer) <= most {
            break;
        }
        shown.0[part as usize] = shown.of(part).min(rest);
        text = render(&shown)?;
        text.truncate(text.len() - answer.len());
    }
    let room = (most * TOKEN_BYTES).saturating_sub(answer.len() + CUT.len());
    if text.len() > room {
        cut(&mut text, room);
    }
    text.push_str(&answer);
    Ok(text)
}

/// Shown if even the minimum is too long.
const CUT: &str = "\nThe rest is left out: agent.brief_tokens is too small for it.\n\n";

/// Cuts a text, and closes the fence that is open there.
fn cut(text: &mut String, room: usize) {
    let open = |text: &str| -> Option<String> {
        let mut fence: Option<&str> = None;
        for line in text.lines() {
            let ticks = line.strip_suffix("data").filter(|ticks| is_fence(ticks));
            match fence {
                None => fence = ticks,
                Some(own) if line == own => fence = None,
                Some(_) => {}
            }
        }
        fence.map(|fence| format!("{fence}\n"))
    };
    let mut end = room;
    loop {
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // Whole lines, so that no fence is cut.
        end = text[..end].rfind('\n').map_or(0, |at| at + 1);
        let closing = open(&text[..end]).unwrap_or_default();
        if end + closing.len() <= room || end == 0 {
            text.truncate(end);
            text.push_str(&closing);
            text.push_str(CUT);
            return;
        }
        end -= 1;
    }
}

fn is_fence(ticks: &str) -> bool {
    ticks.len() >= 3 && ticks.chars().all(|c| c == '`')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_ends_its_fence_and_keeps_its_size() {
        for room in 0..60 {
            let mut text =
                "# a\n\n````data\nx é ``` y\nmore\n````\n\nand then some text".to_owned();
            cut(&mut text, room);
            assert!(text.len() <= room.max(7) + CUT.len(), "{room}: {text}");
            let opened = text.matches("````data").count();
            let closed = text.lines().filter(|line| *line == "````").count();
            assert_eq!(opened, closed, "{room}: {text}");
        }
    }

    #[test]
    fn tokens_are_bytes_by_four_rounded_up() {
        assert_eq!((tokens(""), tokens("abcd"), tokens("abcde")), (0, 1, 2));
        assert_eq!(tokens("éé"), 1);
    }
}
