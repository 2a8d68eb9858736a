//! What is left out of a conversation that grows too long for a model.
//!
//! The oldest tool outputs are condensed first, then whole steps are left out. The last brief
//! always stays, the latest step stays whole, and no tool output is left without its call.

use super::budget::TokenGauge;

/// A shorter tool output is not worth condensing, in bytes.
const CONDENSED_BYTES: usize = 200;
/// The share of the model's context that a conversation is cut down to.
const ROOMY: f64 = 0.6;

/// One part of a conversation, by its size in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemSize {
    /// A brief.
    Prompt(usize),
    /// Text from the model.
    Reply(usize),
    /// Outputs of its tools.
    Given(Vec<ToolOutputSize>),
}

/// One tool output, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolOutputSize {
    /// The part that can be condensed.
    pub text: usize,
    /// The part that always stays.
    pub around: usize,
}

impl ItemSize {
    fn bytes(&self) -> usize {
        match self {
            Self::Prompt(bytes) | Self::Reply(bytes) => *bytes,
            Self::Given(all) => all.iter().map(|one| one.text + one.around).sum(),
        }
    }
}

/// The size of a conversation, in bytes.
pub fn bytes_of(pieces: &[ItemSize]) -> usize {
    pieces.iter().map(ItemSize::bytes).sum()
}

/// What to leave out, by the current indices of the pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextCut {
    /// Tool outputs whose text becomes a note: the piece, and which of its outputs.
    pub condensed: Vec<(usize, usize)>,
    /// Pieces to drop, in order.
    pub dropped: Vec<usize>,
}

/// The note that replaces a tool output of this many bytes.
pub fn note_of(bytes: usize) -> String {
    format!("[{bytes} bytes, omitted]")
}

/// What to leave out so that a conversation shrinks to this many bytes, if it can.
pub fn cut(pieces: &[ItemSize], bytes_max: usize) -> ContextCut {
    let mut left = pieces.to_vec();
    let condensed = condense(&mut left, bytes_max);
    let dropped = drop_oldest(&left, bytes_max);
    ContextCut {
        // Pieces that are dropped need not be condensed.
        condensed: condensed.into_iter().filter(|(piece, _)| !dropped.contains(piece)).collect(),
        dropped,
    }
}

/// Old tool outputs; the newest stay whole.
fn condense(pieces: &mut [ItemSize], bytes_max: usize) -> Vec<(usize, usize)> {
    let mut bytes = bytes_of(pieces);
    let mut condensed = Vec::new();
    let is_given = |piece: &ItemSize| matches!(piece, ItemSize::Given(_));
    let newest = pieces.iter().rposition(is_given).unwrap_or(0);
    for (at, piece) in pieces.iter_mut().enumerate().take(newest) {
        let ItemSize::Given(all) = piece else {
            continue;
        };
        for (which, one) in all.iter_mut().enumerate() {
            if bytes <= bytes_max {
                return condensed;
            }
            if one.text > CONDENSED_BYTES {
                let note = note_of(one.text).len();
                bytes -= one.text - note;
                one.text = note;
                condensed.push((at, which));
            }
        }
    }
    condensed
}

/// Whole steps: all of the earlier briefs, then steps since the last one. The latest step stays.
fn drop_oldest(pieces: &[ItemSize], bytes_max: usize) -> Vec<usize> {
    let mut bytes = bytes_of(pieces);
    if bytes <= bytes_max {
        return Vec::new();
    }
    let is_asked = |piece: &ItemSize| matches!(piece, ItemSize::Prompt(_));
    let brief = pieces.iter().rposition(is_asked).unwrap_or(0);
    let mut dropped: Vec<usize> = (0..brief).collect();
    bytes -= bytes_of(&pieces[..brief]);
    // A step is the model's text and the tool outputs that follow it.
    let mut first = brief + 1;
    while bytes > bytes_max && pieces.len() - first > 2 {
        bytes -= bytes_of(&pieces[first..first + 2]);
        dropped.extend([first, first + 1]);
        first += 2;
    }
    dropped
}

/// The model's context and output limits, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextWindow {
    /// The context size.
    pub context_tokens: u64,
    /// The part of it that a reply may use.
    pub answer_tokens: u64,
}

impl ContextWindow {
    /// The size in bytes to which a conversation is cut before it is sent, if it does not fit. It
    /// cuts more than needed, so that not every request needs another cut. `sent` is the size of
    /// the whole request, `talk` that of the conversation in it.
    pub fn needs_cut(&self, gauge: &TokenGauge, sent: usize, talk: usize) -> Option<usize> {
        let most = self.context_tokens.saturating_sub(self.answer_tokens);
        if gauge.tokens(sent) <= most {
            return None;
        }
        let around = sent.saturating_sub(talk);
        let roomy = gauge.bytes((most as f64 * ROOMY) as u64);
        Some(roomy.saturating_sub(around))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn given(text: usize) -> ItemSize {
        ItemSize::Given(vec![ToolOutputSize { text, around: 4 }])
    }

    /// What is left after a cut.
    fn after(pieces: &[ItemSize], cut: &ContextCut) -> Vec<ItemSize> {
        let mut left = pieces.to_vec();
        for (at, which) in &cut.condensed {
            let ItemSize::Given(all) = &mut left[*at] else {
                panic!("{at} holds no result");
            };
            all[*which].text = note_of(all[*which].text).len();
        }
        let stays = |at: &usize| !cut.dropped.contains(at);
        let places = (0..left.len()).filter(stays);
        places.map(|at| left[at].clone()).collect()
    }

    #[test]
    fn old_results_go_first_then_old_steps_and_the_newest_stays() {
        let talk = [
            ItemSize::Prompt(100),
            ItemSize::Reply(10),
            given(5_000),
            ItemSize::Reply(10),
            given(5_000),
            ItemSize::Reply(10),
            given(5_000),
        ];
        let check = |bytes_max, condensed: &[(usize, usize)], dropped: &[usize]| {
            let cut = cut(&talk, bytes_max);
            assert_eq!(cut.condensed, condensed, "{bytes_max}");
            assert_eq!(cut.dropped, dropped, "{bytes_max}");
        };
        check(20_000, &[], &[]);
        check(12_000, &[(2, 0)], &[]);
        check(6_000, &[(2, 0), (4, 0)], &[]);
        check(5_160, &[(4, 0)], &[1, 2]);
        check(0, &[], &[1, 2, 3, 4]);
    }

    #[test]
    fn earlier_briefs_go_with_all_that_followed() {
        let talk = [
            ItemSize::Prompt(100),
            ItemSize::Reply(10),
            ItemSize::Prompt(100),
            ItemSize::Reply(10),
            given(50),
        ];
        let cut = cut(&talk, 180);
        assert_eq!((cut.condensed.len(), cut.dropped), (0, vec![0, 1]));
    }

    #[test]
    fn room_is_made_only_where_a_question_does_not_fit() {
        let room = ContextWindow { context_tokens: 1_200, answer_tokens: 200 };
        let mut gauge = TokenGauge::default();
        gauge.learn(1_000, 500);
        assert_eq!(room.needs_cut(&gauge, 1_000, 900), None);
        let cut = room.needs_cut(&gauge, 2_000, 1_900);
        // 600 tokens are 1,090 bytes, of which 100 are around the conversation.
        assert_eq!(cut, Some(990));
        let none = ContextWindow { context_tokens: 10, answer_tokens: 200 };
        assert_eq!(none.needs_cut(&gauge, 500, 400), Some(0));
    }

    proptest! {
        #[test]
        fn a_cut_keeps_the_brief_the_newest_and_every_result_its_call(
            steps in prop::collection::vec((0_usize..3, 0_usize..3_000), 1..12),
            bytes_max in 0_usize..20_000,
        ) {
            let mut pieces = vec![ItemSize::Prompt(5)];
            for (kind, bytes) in &steps {
                pieces.push(ItemSize::Reply(10));
                pieces.push(match kind {
                    0 => ItemSize::Prompt(7),
                    _ => given(*bytes),
                });
            }
            let cut = cut(&pieces, bytes_max);
            let left = after(&pieces, &cut);
            prop_assert!(bytes_of(&left) <= bytes_of(&pieces));
            if bytes_of(&pieces) <= bytes_max {
                prop_assert_eq!(&left, &pieces);
            }
            // It fits, or nothing more could be dropped: only the brief and the last step remain.
            prop_assert!(bytes_of(&left) <= bytes_max || left.len() <= 3);
            let is_asked = |piece: &&ItemSize| matches!(piece, ItemSize::Prompt(_));
            prop_assert_eq!(left.iter().rfind(is_asked), pieces.iter().rfind(is_asked));
            prop_assert!(is_asked(&&left[0]));
            prop_assert_eq!(left.last(), pieces.last());
            for (at, piece) in left.iter().enumerate() {
                let follows_words = at > 0 && matches!(left[at - 1], ItemSize::Reply(_));
                prop_assert!(!matches!(piece, ItemSize::Given(_)) || follows_words);
            }
        }
    }
}
