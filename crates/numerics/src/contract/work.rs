//! The least work of a call: as declared, or as far as it is certain.

use super::{Contract, value_of};
use crate::case::Case;
use crate::roof::{CallDemand, is_amount};
use serde::{Deserialize, Serialize};

/// The least work of a call, as expressions over the parameters of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallWork {
    /// Floating-point operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<String>,
    /// Bytes that are read or written, each counted once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
}

impl CallWork {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Contract {
    /// The least work of a call on a case. Without a declaration, that is writing its outputs.
    pub fn demand(&self, case: &Case) -> Result<CallDemand, String> {
        let positive = |text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => match value_of(text, case)? {
                value if value == 0.0 || is_amount(value) => Ok(Some(value)),
                _ => Err(format!("`{text}` is not a valid amount on {}", case.name)),
            },
        };
        let written = || -> Result<f64, String> {
            let layout = self.layout(case)?;
            let outputs = layout.outputs().zip(self.written());
            let plain = outputs.filter(|(_, (_, arg))| arg.draw().is_none());
            Ok(plain.map(|((_, region), _)| region.bytes as f64).sum())
        };
        Ok(CallDemand {
            work: positive(&self.work.flops)?,
            bytes: match positive(&self.work.bytes)? {
                Some(bytes) => Some(bytes),
                None => Some(written()?),
            },
        })
    }
}
