//! A request: routing depends on nothing else.

use super::{Duty, Language, LanguageNeed};
use crate::knowledge::Situation;
use crate::profile::CounterValues;

/// A request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoleRequest {
    /// The wish, in words; empty without a preference.
    pub intent: String,
    /// The duty to perform.
    pub duty: Duty,
    /// The architecture of the device; empty if it is not known.
    pub arch: String,
    /// The operation.
    pub op: String,
    /// The language of the existing kernel; empty if there is none.
    pub kernel: String,
    /// The preferred backend; empty without a preference.
    pub backend: String,
    /// The counters of the kernel.
    pub counters: CounterValues,
}

/// An architecture: a family, and a number in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceArch {
    /// Its letters.
    pub family: String,
    /// Its number, if it has one.
    pub number: Option<u32>,
}

impl DeviceArch {
    /// Reads an architecture such as `xy_90`, `xy90a` or `xy`; none if it is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.trim().to_lowercase();
        let at = lower.find(|c: char| c.is_ascii_digit());
        let (letters, rest) = lower.split_at(at.unwrap_or(lower.len()));
        let family = letters.trim_end_matches(['_', '-', ' ']).to_owned();
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let number = rest[..end.unwrap_or(rest.len())].parse().ok();
        (!family.is_empty()).then_some(Self { family, number })
    }
}

/// Whether a need is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeedStatus {
    Yes,
    No,
    /// The architecture is not known.
    Unknown,
}

impl LanguageNeed {
    fn status(&self, arch: Option<&DeviceArch>) -> NeedStatus {
        match arch {
            None => NeedStatus::Unknown,
            Some(arch) if arch.family != self.family => NeedStatus::No,
            Some(arch) => match arch.number {
                None => NeedStatus::Unknown,
                Some(number) if number >= self.at_least && !self.not.contains(&number) => {
                    NeedStatus::Yes
                }
                Some(_) => NeedStatus::No,
            },
        }
    }
}

impl Language {
    /// The first need that is not met, or not known to be met, for an operation on a device.
    pub(super) fn lacks(&self, request: &RoleRequest) -> Option<(&LanguageNeed, NeedStatus)> {
        let arch = DeviceArch::parse(&request.arch);
        let ops = Situation::new(&request.op, &[], &[], &[]).op;
        let of_op =
            |need: &&LanguageNeed| need.op.is_empty() || need.op.iter().any(|op| ops.contains(op));
        // Needs for the device's own family count, if there are any.
        let is_own =
            |need: &&LanguageNeed| arch.as_ref().is_some_and(|arch| arch.family == need.family);
        let has_own = self.needs.iter().filter(of_op).any(|need| is_own(&need));
        let all = self.needs.iter().filter(of_op);
        let all = all.filter(|need| !has_own || is_own(need));
        let judged: Vec<_> = all.map(|need| (need, need.status(arch.as_ref()))).collect();
        let find = |met: NeedStatus| judged.iter().find(|(_, is)| *is == met).copied();
        find(NeedStatus::No).or_else(|| find(NeedStatus::Unknown))
    }
}
