//! The part of a turn's conversation that is kept: its beginning and its end, in bounded memory.
//! The end holds the answer, so a long conversation is cut in the middle.

use super::{TranscriptAuthor, TranscriptLine};
use karve_agents::session_event::SessionEvent;
use std::collections::VecDeque;

/// Messages of one turn that are kept from its beginning.
pub(super) const FIRST_MAX: usize = 60;
/// Messages that are kept from its end.
pub(super) const LAST_MAX: usize = 140;
/// Characters of one message of an agent.
pub(super) const MESSAGE_CHARS_MAX: usize = 4_000;
/// Characters of a tool's input or output.
const TOOL_CHARS_MAX: usize = 600;
/// Characters of a tool's name.
const NAME_CHARS_MAX: usize = 100;

/// The beginning and the end of a turn.
#[derive(Debug, Default)]
pub(super) struct TurnExcerpt {
    first: Vec<TranscriptLine>,
    last: VecDeque<TranscriptLine>,
    left_out: usize,
}

impl TurnExcerpt {
    /// Adds the next message.
    pub(super) fn push(&mut self, reported: SessionEvent) {
        let (who, tool, text, failed) = match reported {
            SessionEvent::TextMore(text) => match self.latest() {
                Some(latest) if latest.who == TranscriptAuthor::Agent => {
                    latest.text.push_str(&text);
                    // Not at every piece, because each check scans the whole text.
                    if latest.text.len() > 8 * MESSAGE_CHARS_MAX {
                        latest.text = cut(&latest.text, MESSAGE_CHARS_MAX);
                    }
                    return;
                }
                _ => (TranscriptAuthor::Agent, None, text, false),
            },
            SessionEvent::Text(text) => (TranscriptAuthor::Agent, None, text, false),
            SessionEvent::ToolCall { tool, with } => {
                (TranscriptAuthor::Call, Some(tool), with, false)
            }
            SessionEvent::ToolOutput { text, failed } => {
                (TranscriptAuthor::Result, None, text, failed)
            }
            SessionEvent::Note(text) => (TranscriptAuthor::Note, None, text, false),
        };
        self.end_latest();
        let most = chars_max(who);
        let text = cut(&text, most);
        let is_said = |latest: &mut TranscriptLine| latest.who == who && latest.text == text;
        let is_again = who == TranscriptAuthor::Agent && self.latest().is_some_and(is_said);
        if is_again
            || text.trim().is_empty()
                && matches!(who, TranscriptAuthor::Agent | TranscriptAuthor::Note)
        {
            return;
        }
        let utterance =
            TranscriptLine { who, tool: tool.map(|tool| cut(&tool, NAME_CHARS_MAX)), text, failed };
        if self.first.len() < FIRST_MAX {
            self.first.push(utterance);
            return;
        }
        self.last.push_back(utterance);
        if self.last.len() > LAST_MAX {
            self.last.pop_front();
            self.left_out += 1;
        }
    }

    /// Messages in the middle that are not kept.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    fn latest(&mut self) -> Option<&mut TranscriptLine> {
        if self.last.is_empty() { self.first.last_mut() } else { self.last.back_mut() }
    }

    /// Nothing more is added to the latest message.
    fn end_latest(&mut self) {
        if let Some(latest) = self.latest() {
            latest.text = cut(&latest.text, chars_max(latest.who));
        }
    }

    /// Everything that is kept, in order.
    pub(super) fn finish(mut self) -> Vec<TranscriptLine> {
        self.end_latest();
        if self.left_out > 0 {
            let count = self.left_out;
            self.first.push(TranscriptLine {
                who: TranscriptAuthor::Note,
                tool: None,
                text: format!("{count} more messages here"),
                failed: false,
            });
        }
        self.first.extend(self.last);
        self.first
    }
}

fn chars_max(who: TranscriptAuthor) -> usize {
    match who {
        TranscriptAuthor::Agent => MESSAGE_CHARS_MAX,
        TranscriptAuthor::Call | TranscriptAuthor::Result | TranscriptAuthor::Note => {
            TOOL_CHARS_MAX
        }
    }
}

/// A text within its limit: its beginning and its end, with a mark between them.
fn cut(text: &str, chars_max: usize) -> String {
    let count = if text.len() <= chars_max { return text.to_owned() } else { text.chars().count() };
    if count <= chars_max {
        return text.to_owned();
    }
    let room = chars_max.saturating_sub(1);
    let tail = room / 2;
    let head: String = text.chars().take(room - tail).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{head}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_too_long_is_cut_in_its_middle() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefgh", 5), "ab…gh");
        assert_eq!(cut("ééé", 3), "ééé");
        assert_eq!(cut("abc", 1), "…");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn words_that_come_in_pieces_keep_their_beginning_and_their_end(
            pieces in prop::collection::vec("[a-zé]{0,400}", 0..60)
        ) {
            let mut kept = TurnExcerpt::default();
            kept.push(SessionEvent::Text("begin".into()));
            pieces.iter().for_each(|piece| kept.push(SessionEvent::TextMore(piece.clone())));
            kept.push(SessionEvent::TextMore("the end".into()));
            let said = kept.finish();
            prop_assert_eq!(said.len(), 1);
            let text = &said[0].text;
            prop_assert!(text.chars().count() <= MESSAGE_CHARS_MAX);
            prop_assert!(text.starts_with("begin") && text.ends_with("the end"));
            let whole = format!("begin{}the end", pieces.concat());
            prop_assert_eq!(text.contains('…'), whole.chars().count() > MESSAGE_CHARS_MAX);
            prop_assert!(text.matches('…').count() <= 1);
        }
    }
}
