//! What a reader of a keep should know.

use super::InflatedGain;
use crate::comparison::Clock;
use serde::{Deserialize, Serialize};

/// What a reader of a keep should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum KeepNote {
    /// The gain is below the small-gain limit of the policy.
    SmallGain,
    /// These cases lost something, within what the policy allows.
    Losses {
        /// Indices of the cases in the charter.
        cases: Vec<usize>,
    },
    /// The second clock proves it; the metric does not contradict it.
    ShownBy {
        /// That clock.
        clock: Clock,
    },
    /// The metric is better, but the whole command became slower.
    CommandSlower,
    /// The gain depends on the device.
    DeviceEffect {
        /// What two devices showed that differ.
        seen: String,
    },
    /// These cases are faster than the roofline or the profile says they can be.
    NearImpossible {
        /// Indices of the cases in the charter.
        cases: Vec<usize>,
    },
    /// The kept gains multiply to more than it shows against the original.
    Inflated(InflatedGain),
    /// The reviewer takes the gain for noise.
    NoiseBound,
    /// The tests notice none of the bugs that were planted in it.
    BlindTests {
        /// How many there were.
        planted: u32,
    },
}

impl KeepNote {
    /// In words; `list` names cases.
    pub(super) fn describe(&self, list: &dyn Fn(&[usize]) -> String) -> String {
        match self {
            Self::SmallGain => "a small gain".to_owned(),
            Self::Losses { cases } => format!("slower on {}", list(cases)),
            Self::ShownBy { clock } => format!("proven by the {}", clock.name()),
            Self::CommandSlower => {
                "the whole command got slower: check what moved there".to_owned()
            }
            Self::DeviceEffect { seen } => format!("the gain depends on the device: {seen}"),
            Self::NearImpossible { cases } => {
                format!("faster than the roofline allows on {}", list(cases))
            }
            Self::Inflated(gain) => gain.describe(),
            Self::NoiseBound => "the reviewer takes it for noise".to_owned(),
            Self::BlindTests { planted } => format!(
                "the tests do not notice a broken kernel: {planted} bugs were planted in it, one \
                 by one, and commands.test passed each time"
            ),
        }
    }
}
