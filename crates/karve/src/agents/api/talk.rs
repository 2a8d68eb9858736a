//! A conversation, in no API's form: what was asked, what was said, and what tools gave.
//!
//! When it grows too long for the model, the oldest results of tools are condensed first, then
//! whole steps are left out. The last brief always stays, and no result is left without its call.

use serde_json::Value;

/// A shorter result of a tool is not worth condensing, in bytes.
const CONDENSED_BYTES: usize = 200;

/// One thing in a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    /// What karve asks: a brief.
    Asked(String),
    /// What the model said.
    Said(Said),
    /// What its tools gave, in the order of its calls.
    Given(Vec<Given>),
}

/// What a model said, in the form of its API, to be sent back as it came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    /// Parts, blocks or items.
    pub(super) raw: Vec<Value>,
    /// Their size, in bytes.
    pub(super) bytes: usize,
}

/// A tool that a model asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    /// What its result is to be named by.
    pub(super) id: String,
    pub(super) name: String,
    /// An object, or null where it was none.
    pub(super) input: Value,
}

/// What a tool gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// The call that it answers.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
    /// Whether the tool refused or failed.
    pub(super) failed: bool,
}

impl Item {
    fn bytes(&self) -> usize {
        match self {
            Self::Asked(text) => text.len(),
            Self::Said(said) => said.bytes,
            Self::Given(all) => all.iter().map(|one| one.text.len() + one.id.len()).sum(),
        }
    }
}

/// A conversation within a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Talk {
    /// The round, and which of several realizations.
    pub(super) of: (u32, u32),
    /// All of it, the oldest first.
    pub(super) items: Vec<Item>,
}

impl Talk {
    /// The conversation that a turn goes on with: the last one, if it is of the same round and of
    /// the same realization, or else a new one. Realizations do not know of each other.
    pub(super) fn going_on(last: Option<Self>, of: (u32, u32)) -> Self {
        last.filter(|talk| talk.of == of).unwrap_or(Self {
            of,
            items: Vec::new(),
        })
    }

    /// The size of what it holds, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.items.iter().map(Item::bytes).sum()
    }

    /// Makes it as small as that if it can; tells whether it became smaller at all.
    pub(super) fn compact(&mut self, bytes_max: usize) -> bool {
        let before = self.bytes();
        self.condense(bytes_max);
        self.drop_oldest(bytes_max);
        self.bytes() < before
    }

    /// Says of old results how long they were; the newest stay whole.
    fn condense(&mut self, bytes_max: usize) {
        let mut bytes = self.bytes();
        let last = self.items.iter().rposition(|i| matches!(i, Item::Given(_)));
        for item in &mut self.items[..last.unwrap_or(0)] {
            let Item::Given(all) = item else { continue };
            for one in all {
                if bytes <= bytes_max {
                    return;
                }
                if one.text.len() > CONDENSED_BYTES {
                    let note = format!("[{} bytes, left out by now]", one.text.len());
                    bytes -= one.text.len() - note.len();
                    one.text = note;
                }
            }
        }
    }

    /// Leaves out whole steps: all of earlier briefs, then what was said since the last one. What
    /// came last stays.
    fn drop_oldest(&mut self, bytes_max: usize) {
        if self.bytes() <= bytes_max {
            return;
        }
        let is_asked = |item: &Item| matches!(item, Item::Asked(_));
        let brief = self.items.iter().rposition(is_asked).unwrap_or(0);
        self.items.drain(..brief);
        // A step is what the model said and what its tools gave.
        while self.bytes() > bytes_max && self.items.len() > 3 {
            self.items.drain(1..3);
        }
    }
}
