//! How much of each part a brief shows, so that it stays within its token budget. The oldest and
//! least useful parts are left out first, and the brief says what is missing.

use karve_core::campaign::strategy::Brief;
use karve_core::charter::TOKEN_BYTES;
use std::fmt::Write;

/// Tokens reserved for what an adapter adds: where the answer goes.
const ADDED_TOKENS: usize = 40;

/// How much of each part is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BriefShares {
    /// Earlier rounds, the newest first.
    pub(super) tried: usize,
    /// Entries of the library, the most promising first.
    pub(super) entries: usize,
    /// Refuted entries.
    pub(super) refuted: usize,
    /// Lessons from earlier campaigns.
    pub(super) tips: usize,
    /// Characters of the profile.
    pub(super) profile_chars: usize,
    /// Findings of the last audit.
    pub(super) audited: usize,
    /// The user's answers.
    pub(super) answers: usize,
    /// Errors in the last answer.
    pub(super) errors: usize,
    /// Cases that are named.
    pub(super) cases: usize,
}

/// A part of a brief that can be shown in part.
#[derive(Clone, Copy)]
enum BriefPart {
    Tried,
    Entries,
    Refuted,
    Tips,
    Profile,
    Audited,
    Answers,
    Errors,
    Cases,
}

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

impl BriefShares {
    /// All of a brief.
    fn all(brief: &Brief) -> Self {
        Self {
            tried: brief.tried.len(),
            entries: brief.recall.entries.len(),
            refuted: brief.recall.refuted.len(),
            tips: brief.tips.len(),
            profile_chars: usize::MAX / 4,
            audited: brief.audited.len(),
            answers: brief.answers.len(),
            errors: brief.errors.len(),
            cases: brief.cases.len(),
        }
    }

    fn part(&mut self, part: BriefPart) -> &mut usize {
        match part {
            BriefPart::Tried => &mut self.tried,
            BriefPart::Entries => &mut self.entries,
            BriefPart::Refuted => &mut self.refuted,
            BriefPart::Tips => &mut self.tips,
            BriefPart::Profile => &mut self.profile_chars,
            BriefPart::Audited => &mut self.audited,
            BriefPart::Answers => &mut self.answers,
            BriefPart::Errors => &mut self.errors,
            BriefPart::Cases => &mut self.cases,
        }
    }

    /// What is left out, in words.
    fn left_out(&self, brief: &Brief) -> Vec<String> {
        let all = Self::all(brief);
        let mut said = Vec::new();
        let mut say = |all: usize, shown: usize, what: &str| {
            if shown < all {
                said.push(format!("{} {what}", all - shown));
            }
        };
        say(all.tried, self.tried, "older rounds");
        say(all.entries, self.entries, "library entries");
        say(all.refuted, self.refuted, "refuted entries");
        say(all.tips, self.tips, "lessons from earlier campaigns");
        say(all.audited, self.audited, "audit findings");
        say(all.answers, self.answers, "older answers");
        say(all.errors, self.errors, "errors in the last answer");
        say(all.cases, self.cases, "cases");
        say(brief.profile.chars().count(), self.profile_chars, "characters of the profile");
        if brief.recall.not_for_role > 0 {
            let n = brief.recall.not_for_role;
            said.push(format!("{n} entries for other roles"));
        }
        said
    }
}

/// The number of tokens in a text, by karve's own estimate.
pub(super) fn tokens(text: &str) -> usize {
    text.len().div_ceil(TOKEN_BYTES)
}

/// A brief within its token budget: as much of each part as fits, then how to answer, which is
/// never cut.
pub(super) fn fit(brief: &Brief, answer: &str, render: impl Fn(&BriefShares) -> String) -> String {
    let most = (brief.tokens_max as usize).saturating_sub(ADDED_TOKENS);
    let whole = |shown: &BriefShares| {
        let mut text = render(shown);
        push_left_out(&mut text, &shown.left_out(brief), brief.tokens_max);
        text
    };
    let mut shown = BriefShares::all(brief);
    let mut text = whole(&shown);
    for (part, rest) in CUTS {
        if tokens(&text) + tokens(answer) <= most {
            break;
        }
        let now = shown.part(part);
        if *now > rest {
            *now = rest;
            text = whole(&shown);
        }
    }
    let room = (most * TOKEN_BYTES).saturating_sub(answer.len() + CUT.len());
    if text.len() > room {
        cut(&mut text, room);
    }
    text.push_str(answer);
    text
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

fn push_left_out(text: &mut String, left_out: &[String], most: u32) {
    if !left_out.is_empty() {
        let _ = write!(
            text,
            "## Left out\n\nThis brief has at most {most} tokens. It leaves out: {}.\n\n",
            left_out.join(", ")
        );
    }
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
